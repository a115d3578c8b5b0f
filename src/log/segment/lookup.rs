//! Lookups in a segment: offset to position, timestamp to offset, end offset and largest timestamp.

use crate::compression::Scratch;
use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Batch;
use crate::format::header::{BatchHeader, NO_PARTITION_LEADER_EPOCH, NO_TIMESTAMP};
use crate::log::headers::HeaderReader;
use crate::log::index::TimeEntry;
use crate::log::resync::Resync;
use crate::log::segment::Segment;
use crate::log::tail::SegmentTail;
use crate::log::walk::Follower;
use crate::store::names::MAX_SEGMENT_OFFSETS;

/// Whether a lookup could use an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IndexUse {
    /// The search started at the position that the index returned.
    Used,
    /// There is no index: the search started at the first batch.
    Missing,
    /// The index contradicts the log or itself: the search started at the first batch. `verify` reports details.
    Broken,
}

impl IndexUse {
    /// Name in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Used => "used",
            Self::Missing => "missing",
            Self::Broken => "broken",
        }
    }

    fn or(self, other: Self) -> Self {
        if self == Self::Used { other } else { self }
    }
}

/// The batch that contains an offset, or the next one if the offset is in a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct OffsetPlace {
    /// Position of the batch in the file, in bytes.
    pub position: u64,
    /// Base offset of the batch.
    pub base_offset: i64,
    /// Last offset of the batch.
    pub last_offset: i64,
    /// Size of the batch in bytes, including its log overhead.
    pub size: usize,
    /// Whether the lookup could use the offset index.
    pub index: IndexUse,
}

/// A batch that a search for an offset found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoundBatch {
    pub(crate) place: OffsetPlace,
    pub(crate) header: BatchHeader,
    /// The batch whose size led there; `None` if the search started there.
    pub(crate) before: Option<BatchHeader>,
    /// Whether the offsets of all batches that the search passed rise.
    pub(crate) is_rising: bool,
}

/// The first record whose timestamp is late enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TimestampPlace {
    /// Timestamp of the record in milliseconds since the epoch.
    pub timestamp: i64,
    /// Offset of the record.
    pub offset: i64,
    /// Leader epoch of the batch, if it has one.
    pub leader_epoch: Option<i32>,
    /// Whether the lookup could use the indexes.
    pub index: IndexUse,
}

/// The start of a walk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub(super) position: u64,
    index: IndexUse,
}

impl Segment {
    /// Finds the first batch whose last offset is `offset` or larger: the one that contains the offset, or the next
    /// one if the offset is in a gap or before the segment. Returns `None` if the segment ends before the offset.
    ///
    /// # Errors
    /// Corruption before the batch; I/O errors.
    pub fn find_offset(&self, offset: i64) -> Result<Option<OffsetPlace>> {
        Ok(self.find_batch(offset)?.map(|found| found.place))
    }

    /// Like [`Segment::find_offset`], with the batch that led there.
    ///
    /// # Errors
    /// Those of [`Segment::find_offset`].
    pub(crate) fn find_batch(&self, offset: i64) -> Result<Option<FoundBatch>> {
        let mut reader = self.headers()?;
        let start = self.start_at(&mut reader, offset)?;
        reader.seek(start.position);
        let (mut before, mut is_rising) = (None::<BatchHeader>, true);
        while let Some(header) = reader.next_header() {
            let header = header?;
            let first = header.base_offset().unwrap_or(header.last_offset());
            is_rising &= before.is_none_or(|before| before.last_offset() < first);
            if header.last_offset() >= offset {
                let base_offset = self.first_offset(&mut reader, &header)?;
                if let Some(before) = before.filter(|_| offset < base_offset) {
                    self.check_length(&mut reader, &before, &header)?;
                }
                let (position, last_offset, size) = (header.position(), header.last_offset(), header.size());
                let place = OffsetPlace { position, base_offset, last_offset, size, index: start.index };
                return Ok(Some(FoundBatch { place, header, before, is_rising }));
            }
            before = Some(header);
        }
        self.check_last(before, &reader)?;
        Ok(None)
    }

    /// Fails if a batch, after which offsets are missing, has a corrupt length: see [`Follower::is_length_corrupt`].
    pub(super) fn check_length(
        &self,
        reader: &mut HeaderReader,
        header: &BatchHeader,
        following: &BatchHeader,
    ) -> Result<()> {
        let mut bytes = Vec::new();
        let verified = reader.read_batch(header, &mut bytes).and_then(|batch| batch.verify_crc());
        let Err(error) = verified else { return Ok(()) };
        if error.is_of_reading() {
            return Err(error);
        }
        let (mut resync, file) = (Resync::new(self.limits()), self.location().open()?);
        let (following, least_offset) = (Some(following), header.base_offset());
        let is_corrupt = Follower::Next.is_length_corrupt(&mut resync, &file, header, following, least_offset)?;
        if is_corrupt { Err(self.location().locate(error)) } else { Ok(()) }
    }

    /// Fails if the search ended before the end of the segment: at a corrupt length, or after a corrupt batch.
    pub(super) fn check_last(&self, last: Option<BatchHeader>, reader: &HeaderReader) -> Result<()> {
        if let Some(last) = last
            && !self.is_intact(&last)?
        {
            self.end_before(&last)?;
        }
        self.check_end(reader, last.map_or(self.base_offset(), |last| last.next_offset()))
    }

    /// Finds the first record, in log order, whose timestamp is `timestamp` or larger and whose offset is
    /// `starting_offset` or larger. Records of magic 0 have no timestamp (−1).
    ///
    /// # Errors
    /// Corruption before the record, records that cannot be decoded; I/O errors.
    pub fn find_timestamp(&self, timestamp: i64, starting_offset: Option<i64>) -> Result<Option<TimestampPlace>> {
        let starting_offset = starting_offset.unwrap_or(self.base_offset());
        let mut reader = self.headers()?;
        let start = self.start_at_timestamp(&mut reader, timestamp, starting_offset)?;
        reader.seek(start.position);
        let (mut bytes, mut scratch, mut last) = (Vec::new(), Scratch::new(), None::<BatchHeader>);
        while let Some(header) = reader.next_header() {
            let header = header?;
            if let Some(last) = last.replace(header).filter(|last| !header.continues(last)) {
                self.check_length(&mut reader, &last, &header)?;
            }
            if header.max_timestamp() < timestamp || header.last_offset() < starting_offset {
                continue;
            }
            let batch = reader.read_batch(&header, &mut bytes)?;
            let found = self.first_since(&batch, timestamp, starting_offset, &mut scratch)?;
            if let Some((timestamp, offset)) = found {
                let epoch = header.partition_leader_epoch();
                let leader_epoch = (epoch != NO_PARTITION_LEADER_EPOCH).then_some(epoch);
                return Ok(Some(TimestampPlace { timestamp, offset, leader_epoch, index: start.index }));
            }
        }
        self.check_last(last, &reader)?;
        Ok(None)
    }

    /// The offset after the last batch, or the base offset if the segment has no batches.
    ///
    /// # Errors
    /// Corruption that is followed by complete batches, a last offset outside the range of the segment; I/O errors.
    pub fn end_offset(&self) -> Result<i64> {
        // the last batch, the one before it, and the offset after the batch before that one
        let (mut last, mut before, mut earlier) = (None::<BatchHeader>, None::<BatchHeader>, self.base_offset());
        let mut falls_count = 0_u32;
        let mut reader = self.walk_tail(|header| {
            let falls = last.is_some_and(|last| header.last_offset() < last.next_offset());
            falls_count = falls_count.saturating_add(u32::from(falls));
            earlier = before.map_or(earlier, |before| before.next_offset());
            (before, last) = (last, Some(*header));
        })?;
        let end = last.map_or(self.base_offset(), |last| last.next_offset());
        let falls = |last: &BatchHeader| {
            let offset = last.last_offset();
            // unless the previous offset is the corrupt one, and this batch continues the batches before it
            let continues = |before: BatchHeader| before.stored_base_offset > earlier && offset >= earlier;
            // unless earlier offsets fall too, as in requests of producers
            falls_count == 1 && before.is_some_and(|before| offset < before.next_offset() && !continues(before))
        };
        if let Some(last) = last.filter(falls) {
            let kind = ErrorKind::InvalidValue {
                value: last.stored_base_offset,
                expected: "an offset after those of earlier batches",
            };
            let error = Error::new(kind).at(last.position()).in_batch(last.stored_base_offset).in_field("base_offset");
            return Err(self.location().locate(error));
        }
        if let Some(last) = last.filter(|_| end.saturating_sub(self.base_offset()) > MAX_SEGMENT_OFFSETS) {
            let kind = ErrorKind::InvalidValue {
                value: last.stored_base_offset,
                expected: "an offset within 2^31 of the segment's",
            };
            let error = Error::new(kind).at(last.position()).in_batch(last.stored_base_offset).in_field("base_offset");
            return Err(self.location().locate(error));
        }
        // the same reader: it still has the bytes of the last batches
        if let Some(last) = last
            && !is_intact(&mut reader, &last)?
        {
            return self.end_before(&last);
        }
        self.check_end(&reader, end)?;
        Ok(end.max(self.base_offset()))
    }

    /// The header of the last batch, if there is one, and the number of bytes after it: those of an incomplete batch, or
    /// zeros. [`Segment::end_offset`] checks whether this is a valid end.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn last_header(&self) -> Result<(Option<BatchHeader>, u64)> {
        let mut last = None;
        let bytes_left = self.walk_tail(|header| last = Some(*header))?.remainder_len();
        Ok((last, bytes_left))
    }

    /// The number of bytes of an incomplete batch at the end of the file; 0 if a batch or zeros end it.
    ///
    /// # Errors
    /// I/O errors.
    pub fn incomplete_bytes(&self) -> Result<u64> {
        let reader = self.walk_tail(|_| ())?;
        let tail = SegmentTail::at(&self.location().open()?, reader.position())?;
        let is_incomplete = tail == SegmentTail::Partial && !reader.is_written_since()?;
        Ok(if is_incomplete { reader.remainder_len() } else { 0 })
    }

    /// Whether the checksum of a batch is correct.
    pub(super) fn is_intact(&self, header: &BatchHeader) -> Result<bool> {
        is_intact(&mut self.headers()?, header)
    }

    /// The end of a segment whose last batch is corrupt: an error, unless it is being written.
    fn end_before(&self, last: &BatchHeader) -> Result<i64> {
        let file = self.location().open()?;
        let place = last.position()..last.end();
        if SegmentTail::is_being_written(&file, place, last.stored_base_offset, self.limits())? {
            return Ok(last.base_offset().unwrap_or_else(|| last.last_offset()));
        }
        self.verify_crc(last)?;
        Ok(last.next_offset())
    }

    /// Reads a batch, and fails if its checksum is wrong.
    pub(crate) fn verify_crc(&self, header: &BatchHeader) -> Result<()> {
        let mut bytes = Vec::new();
        let mut reader = self.headers()?;
        let batch = reader.read_batch(header, &mut bytes)?;
        batch.verify_crc().map_err(|error| self.location().locate(error))
    }

    /// Fails if the bytes after the last batch contain complete batches. An incomplete batch or zeros are a valid end,
    /// and so are batches that were written since the file was opened.
    fn check_end(&self, reader: &HeaderReader, end_offset: i64) -> Result<()> {
        if reader.remainder_len() == 0 {
            return Ok(());
        }
        let (file, position) = (self.location().open()?, reader.position());
        let tail = SegmentTail::search(&file, position, Some(end_offset), self.limits())?;
        if reader.is_written_since()? {
            return Ok(());
        }
        tail.check(position, Some(end_offset), None).map_err(|error| self.location().locate(error))
    }

    /// Calls `show` with the headers from the last indexed batch on. Returns the reader, which is after the last batch.
    fn walk_tail(&self, mut show: impl FnMut(&BatchHeader)) -> Result<HeaderReader> {
        let mut reader = self.headers()?;
        let start = self.start_at(&mut reader, i64::MAX)?;
        reader.seek(start.position);
        while let Some(header) = reader.next_header() {
            show(&header?);
        }
        Ok(reader)
    }

    /// Returns the start position of a search for an offset.
    pub(super) fn start_at(&self, reader: &mut HeaderReader, offset: i64) -> Result<Start> {
        let index = match usable(self.offset_index())? {
            Ok(index) => index,
            Err(index) => return Ok(Start { position: 0, index }),
        };
        if !index.is_rising()? {
            return Ok(Start { position: 0, index: IndexUse::Broken });
        }
        let entry = index.lookup(offset)?;
        if entry.position == 0 {
            return Ok(Start { position: 0, index: IndexUse::Used });
        }
        match u64::try_from(entry.position) {
            Ok(position) if entry.offset <= offset && self.begins_by(reader, position, entry.offset)? => {
                Ok(Start { position, index: IndexUse::Used })
            }
            _ => Ok(Start { position: 0, index: IndexUse::Broken }),
        }
    }

    /// Whether a complete batch is at a position and starts at or before an offset.
    pub(super) fn begins_by(&self, reader: &mut HeaderReader, position: u64, offset: i64) -> Result<bool> {
        reader.seek(position);
        let Some(Ok(header)) = reader.next_header() else { return Ok(false) };
        let mut bytes = Vec::new();
        let batch = reader.read_batch(&header, &mut bytes)?;
        if batch.verify_crc().is_err() || header.stored_base_offset < self.base_offset() {
            return Ok(false);
        }
        Ok(batch.first_offset(&mut Scratch::new(), self.limits()).is_ok_and(|first| first <= offset))
    }

    /// Returns the start position of a search for a timestamp.
    pub(super) fn start_at_timestamp(
        &self,
        reader: &mut HeaderReader,
        timestamp: i64,
        starting_offset: i64,
    ) -> Result<Start> {
        let index = match usable(self.time_index())? {
            Ok(index) => index,
            Err(index) => return Ok(Start { position: 0, index }),
        };
        let entry = index.lookup(timestamp)?;
        let sound = index.is_rising()? && (entry.timestamp == NO_TIMESTAMP || self.find_time(reader, entry)?.is_some());
        let (from, time_use) =
            if sound { (entry.offset, IndexUse::Used) } else { (self.base_offset(), IndexUse::Broken) };
        let start = self.start_at(reader, from.max(starting_offset))?;
        Ok(Start { position: start.position, index: time_use.or(start.index) })
    }

    /// Searches the batch at the offset of a time index entry. Returns the position at which the search started; `None` if
    /// the entry's timestamp is not the largest one of the batch.
    pub(super) fn find_time(&self, reader: &mut HeaderReader, entry: TimeEntry) -> Result<Option<u64>> {
        let start = self.start_at(reader, entry.offset)?;
        reader.seek(start.position);
        while let Some(Ok(header)) = reader.next_header() {
            if header.last_offset() >= entry.offset {
                return Ok((header.max_timestamp() == entry.timestamp).then_some(start.position));
            }
        }
        Ok(None)
    }

    fn first_offset(&self, reader: &mut HeaderReader, header: &BatchHeader) -> Result<i64> {
        if let Some(base_offset) = header.base_offset() {
            return Ok(base_offset);
        }
        let mut bytes = Vec::new();
        let batch = reader.read_batch(header, &mut bytes)?;
        batch.first_offset(&mut Scratch::new(), self.limits()).map_err(|error| self.location().locate(error))
    }

    /// Returns the timestamp and offset of the batch's first record that is late enough.
    fn first_since(
        &self,
        batch: &Batch<'_>,
        timestamp: i64,
        starting_offset: i64,
        scratch: &mut Scratch,
    ) -> Result<Option<(i64, i64)>> {
        let locate = |error: Error| self.location().locate(error);
        for record in batch.records(scratch, self.limits()).map_err(locate)? {
            let record = record.map_err(locate)?;
            if record.timestamp() >= timestamp && record.offset() >= starting_offset {
                return Ok(Some((record.timestamp(), record.offset())));
            }
        }
        Ok(None)
    }
}

/// Whether the checksum of a batch is correct.
fn is_intact(reader: &mut HeaderReader, header: &BatchHeader) -> Result<bool> {
    let mut bytes = Vec::new();
    Ok(reader.read_batch(header, &mut bytes)?.verify_crc().is_ok())
}

/// An index that lookups can use, or why they cannot: an index whose stored bytes are damaged is broken.
///
/// # Errors
/// I/O errors.
pub(super) fn usable<T>(opened: Result<Option<T>>) -> Result<std::result::Result<T, IndexUse>> {
    match opened {
        Ok(index) => Ok(index.ok_or(IndexUse::Missing)),
        Err(error) if error.is_of_reading() => Err(error),
        Err(_) => Ok(Err(IndexUse::Broken)),
    }
}
