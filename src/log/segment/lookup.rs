//! Offset to position, timestamp to offset, the end of a segment and its largest timestamp.

use crate::compression::Scratch;
use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Batch;
use crate::format::frame::is_zeros;
use crate::format::header::{BatchHeader, HEADER_LEN_UP_TO_MAGIC, NO_PARTITION_LEADER_EPOCH, NO_TIMESTAMP};
use crate::io::PositionedFile;
use crate::log::headers::HeaderReader;
use crate::log::index::TimeEntry;
use crate::log::resync::Resync;
use crate::log::segment::Segment;

/// Whether an index could be used to find a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IndexUse {
    /// The search began where the index said.
    Used,
    /// There is no index: the search began at the first batch.
    Missing,
    /// The index contradicts the log or itself: the search began at the first batch. `verify` says more.
    Broken,
}

impl IndexUse {
    /// A name in lower case.
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

/// The batch that holds an offset, or the next one where the offset lies in a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct OffsetPlace {
    /// Where in the file the batch begins, in bytes.
    pub position: u64,
    /// Base offset of the batch.
    pub base_offset: i64,
    /// Last offset of the batch.
    pub last_offset: i64,
    /// Bytes of the batch with its log overhead.
    pub size: usize,
    /// Whether the offset index could be used.
    pub index: IndexUse,
}

/// The first record with a timestamp that is large enough.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct TimestampPlace {
    /// Its timestamp in milliseconds since the epoch.
    pub timestamp: i64,
    /// Its offset.
    pub offset: i64,
    /// Leader epoch of its batch; `None` where the batch has none.
    pub leader_epoch: Option<i32>,
    /// Whether the indexes could be used.
    pub index: IndexUse,
}

/// Where a walk begins.
#[derive(Debug, Clone, Copy)]
pub(super) struct Start {
    pub(super) position: u64,
    index: IndexUse,
}

impl Segment {
    /// The first batch whose last offset is `offset` or larger: the one that holds the offset, or the next one where the offset
    /// lies in a gap or before the segment. `None` where the segment ends before.
    ///
    /// # Errors
    /// A log that can't be walked up to the batch, reading.
    pub fn find_offset(&self, offset: i64) -> Result<Option<OffsetPlace>> {
        let mut reader = self.headers()?;
        let start = self.start_at(&mut reader, offset)?;
        reader.seek(start.position);
        while let Some(header) = reader.next_header() {
            let header = header?;
            if header.last_offset() >= offset {
                let base_offset = self.first_offset(&mut reader, &header)?;
                let (position, last_offset, size) = (header.position(), header.last_offset(), header.size());
                return Ok(Some(OffsetPlace { position, base_offset, last_offset, size, index: start.index }));
            }
        }
        Ok(None)
    }

    /// The first record whose timestamp is `timestamp` or larger and whose offset is `starting_offset` or larger, in the order
    /// of the log. Records of magic 0 have no timestamp (−1).
    ///
    /// # Errors
    /// A log that can't be walked up to the record, records that can't be read, reading.
    pub fn find_timestamp(&self, timestamp: i64, starting_offset: Option<i64>) -> Result<Option<TimestampPlace>> {
        let starting_offset = starting_offset.unwrap_or(self.base_offset());
        let mut reader = self.headers()?;
        let start = self.start_at_timestamp(&mut reader, timestamp, starting_offset)?;
        reader.seek(start.position);
        let (mut bytes, mut scratch) = (Vec::new(), Scratch::new());
        while let Some(header) = reader.next_header() {
            let header = header?;
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
        Ok(None)
    }

    /// The offset after the last batch; the base offset of a segment without batches.
    ///
    /// # Errors
    /// Corruption that complete batches follow, a last offset that the segment can't have, reading.
    pub fn end_offset(&self) -> Result<i64> {
        let (mut last, mut end) = (None, self.base_offset());
        let bytes_left = self.walk_tail(|header| {
            (last, end) = (Some(*header), header.next_offset());
        })?;
        if let Some(last) = last.filter(|_| end.saturating_sub(self.base_offset()) > 1 << 31) {
            let kind =
                ErrorKind::InvalidValue { value: last.base_offset, expected: "an offset within 2^31 of the segment's" };
            let error = Error::new(kind).at(last.position()).in_batch(last.base_offset).in_field("base_offset");
            return Err(error.with_path(self.path()));
        }
        if bytes_left > 0 {
            self.check_end(bytes_left, end)?;
        }
        Ok(end.max(self.base_offset()))
    }

    /// Refuses bytes after the last batch if complete batches follow in them. Half a batch or zeros are an end.
    fn check_end(&self, bytes_left: u64, end_offset: i64) -> Result<()> {
        let file = PositionedFile::open(self.path())?;
        let position = file.len()?.saturating_sub(bytes_left);
        let mut head = [0; HEADER_LEN_UP_TO_MAGIC];
        file.read_at(&mut head, position)?;
        if is_zeros(&head) {
            return Ok(());
        }
        match Resync::new(self.limits()).find_batch(&file, position, Some(end_offset))? {
            Some(_) => {
                let error = Error::new(ErrorKind::CutBatch).at(position).in_batch(end_offset).in_field("size");
                Err(error.with_path(self.path()))
            }
            None => Ok(()),
        }
    }

    /// The largest timestamp of the segment's records and the last offset of the first batch that has it; −1 and the base
    /// offset where no record has one.
    ///
    /// # Errors
    /// A log that can't be walked to its end, reading.
    pub fn largest_timestamp(&self) -> Result<TimeEntry> {
        Ok(self.walk_timestamps()?.largest)
    }

    /// Whether the first batch is one of v2. What batches and the time index of others say of timestamps need not hold: the wrapper of a
    /// v1 set has what its client wrote.
    pub(super) fn begins_with_v2(&self) -> Result<bool> {
        Ok(self.headers()?.next_header().transpose()?.is_some_and(|header| header.magic() >= 2))
    }

    /// Whether all records are known to be older than a timestamp. They are not where a set of v0 or v1 is met, whose wrapper has what
    /// its client wrote, nor where bytes are left that no batch was made of, behind which others may lie.
    ///
    /// # Errors
    /// As [`Segment::largest_timestamp`].
    pub fn is_older(&self, timestamp: i64) -> Result<bool> {
        if !self.begins_with_v2()? {
            return Ok(false);
        }
        let times = self.walk_timestamps()?;
        Ok(times.largest.timestamp < timestamp && times.is_v2 && times.bytes_left == 0)
    }

    /// The entry of the largest timestamp, of the time index where it holds and of the batches behind it.
    fn walk_timestamps(&self) -> Result<Times> {
        let none = TimeEntry { timestamp: NO_TIMESTAMP, offset: self.base_offset() };
        let mut reader = self.headers()?;
        let indexed = match self.time_index()? {
            Some(index) if index.is_rising()? => index.last_entry()?,
            _ => none,
        };
        let mut times = Times { largest: none, is_v2: true, bytes_left: 0 };
        if indexed.timestamp > NO_TIMESTAMP && self.is_at(&mut reader, indexed)? {
            times.largest = indexed;
            times.bytes_left = self.walk_tail(|header| times.add(header))?;
            return Ok(times);
        }
        reader.seek(0);
        while let Some(header) = reader.next_header() {
            times.add(&header?);
        }
        times.bytes_left = reader.remainder_len();
        Ok(times)
    }

    /// Shows the headers from the last indexed batch on. Returns the bytes after the last batch.
    fn walk_tail(&self, mut show: impl FnMut(&BatchHeader)) -> Result<u64> {
        let mut reader = self.headers()?;
        let start = self.start_at(&mut reader, i64::MAX)?;
        reader.seek(start.position);
        while let Some(header) = reader.next_header() {
            show(&header?);
        }
        Ok(reader.remainder_len())
    }

    /// Where to begin looking for an offset.
    pub(super) fn start_at(&self, reader: &mut HeaderReader, offset: i64) -> Result<Start> {
        let Some(index) = self.offset_index()? else { return Ok(Start { position: 0, index: IndexUse::Missing }) };
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

    /// Whether a whole batch lies at a position that begins no later than at an offset.
    pub(super) fn begins_by(&self, reader: &mut HeaderReader, position: u64, offset: i64) -> Result<bool> {
        reader.seek(position);
        let Some(Ok(header)) = reader.next_header() else { return Ok(false) };
        let mut bytes = Vec::new();
        let batch = reader.read_batch(&header, &mut bytes)?;
        if batch.verify_crc().is_err() || header.base_offset < self.base_offset() {
            return Ok(false);
        }
        Ok(batch.first_offset(&mut Scratch::new(), self.limits()).is_ok_and(|first| first <= offset))
    }

    /// Where to begin looking for a timestamp.
    pub(super) fn start_at_timestamp(
        &self,
        reader: &mut HeaderReader,
        timestamp: i64,
        starting_offset: i64,
    ) -> Result<Start> {
        let Some(index) = self.time_index()? else { return Ok(Start { position: 0, index: IndexUse::Missing }) };
        let entry = index.lookup(timestamp)?;
        let sound = index.is_rising()? && (entry.timestamp == NO_TIMESTAMP || self.is_at(reader, entry)?);
        let (from, time_use) =
            if sound { (entry.offset, IndexUse::Used) } else { (self.base_offset(), IndexUse::Broken) };
        let start = self.start_at(reader, from.max(starting_offset))?;
        Ok(Start { position: start.position, index: time_use.or(start.index) })
    }

    /// Whether the batch at a time entry's offset has the entry's timestamp as its largest.
    fn is_at(&self, reader: &mut HeaderReader, entry: TimeEntry) -> Result<bool> {
        let start = self.start_at(reader, entry.offset)?;
        reader.seek(start.position);
        while let Some(Ok(header)) = reader.next_header() {
            if header.last_offset() >= entry.offset {
                return Ok(header.max_timestamp() == entry.timestamp);
            }
        }
        Ok(false)
    }

    fn first_offset(&self, reader: &mut HeaderReader, header: &BatchHeader) -> Result<i64> {
        if let Some(base_offset) = header.base_offset() {
            return Ok(base_offset);
        }
        let mut bytes = Vec::new();
        let batch = reader.read_batch(header, &mut bytes)?;
        batch.first_offset(&mut Scratch::new(), self.limits()).map_err(|error| error.with_path(self.path()))
    }

    /// Timestamp and offset of a batch's first record that is late enough.
    fn first_since(
        &self,
        batch: &Batch<'_>,
        timestamp: i64,
        starting_offset: i64,
        scratch: &mut Scratch,
    ) -> Result<Option<(i64, i64)>> {
        let locate = |error: crate::Error| error.with_path(self.path());
        for record in batch.records(scratch, self.limits()).map_err(locate)? {
            let record = record.map_err(locate)?;
            if record.timestamp() >= timestamp && record.offset() >= starting_offset {
                return Ok(Some((record.timestamp(), record.offset())));
            }
        }
        Ok(None)
    }
}

/// What a walk over headers tells of timestamps.
struct Times {
    largest: TimeEntry,
    /// Whether all batches that were walked over are of v2.
    is_v2: bool,
    /// After the last batch.
    bytes_left: u64,
}

impl Times {
    /// Takes a batch in; of equal timestamps the earlier one stays.
    fn add(&mut self, header: &BatchHeader) {
        if header.max_timestamp() > self.largest.timestamp {
            self.largest = TimeEntry { timestamp: header.max_timestamp(), offset: header.last_offset() };
        }
        self.is_v2 &= header.magic() >= 2;
    }
}
