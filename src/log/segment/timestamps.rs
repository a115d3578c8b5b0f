//! The largest timestamp of a segment, and whether all of its records are older than a time.

use crate::error::Result;
use crate::format::header::{BatchHeader, NO_TIMESTAMP};
use crate::log::headers::HeaderReader;
use crate::log::index::TimeEntry;
use crate::log::segment::Segment;
use crate::log::segment::lookup::usable;

/// Bytes from the batch of the last entry of a time index to the last batch of the offset index that are searched for newer
/// timestamps. With more, which is possible if timestamps fall, reading the segment is faster.
const MAX_UNINDEXED_LEN: u64 = 4 << 20;

impl Segment {
    /// The largest timestamp of the segment's records and the last offset of the first batch that has it. −1 and the
    /// base offset if no record has a timestamp.
    ///
    /// # Errors
    /// Corruption in the segment; I/O errors.
    pub fn largest_timestamp(&self) -> Result<TimeEntry> {
        let mut reader = self.headers()?;
        let indexed = self.last_time(&mut reader)?.map(|(entry, _)| entry);
        let position = if indexed.is_some() { self.start_at(&mut reader, i64::MAX)?.position } else { 0 };
        let check = |reader: &mut HeaderReader, before: &_, header: &_| self.check_length(reader, before, header);
        let times = self.walk_timestamps(&mut reader, indexed, position, check)?;
        self.check_last(times.last, &reader)?;
        Ok(times.largest)
    }

    /// Whether the first batch is a v2 batch. The timestamps in the wrapper of a v1 set were written by the client, so
    /// they are not reliable, and neither is a time index derived from them.
    pub(super) fn begins_with_v2(&self) -> Result<bool> {
        Ok(self.headers()?.next_header().transpose()?.is_some_and(|header| header.magic() >= 2))
    }

    /// Whether all records are known to be older than a timestamp. Returns `false` if the segment contains a v0 or v1
    /// set, whose wrapper has timestamps from the client, or if newer batches may be in bytes after the last batch, in
    /// a gap of the offsets, inside a batch whose length is corrupt, or among many that the time index does not know.
    ///
    /// # Errors
    /// The errors of [`Segment::largest_timestamp`].
    pub fn is_older(&self, timestamp: i64) -> Result<bool> {
        if !self.begins_with_v2()? {
            return Ok(false);
        }
        let mut reader = self.headers()?;
        let indexed = self.last_time(&mut reader)?;
        // the time index may have lost its last entries, so that the batches after its last one decide
        if let Some((entry, position)) = indexed
            && (entry.timestamp >= timestamp
                || self.start_at(&mut reader, i64::MAX)?.position.saturating_sub(position) > MAX_UNINDEXED_LEN)
        {
            return Ok(false);
        }
        let (entry, position) = indexed.unzip();
        let times = self.walk_timestamps(&mut reader, entry, position.unwrap_or(0), |_, _, _| Ok(()))?;
        let is_whole = times.is_v2 && reader.remainder_len() == 0 && !times.has_gap;
        let is_older = is_whole && times.largest.timestamp < timestamp;
        // a corrupt length may lead past newer batches to the end
        Ok(is_older && times.last.map_or(Ok(true), |last| self.is_intact(&last))?)
    }

    /// The last entry of the time index, if there is one and it is that of a batch, and a position at or before the batch.
    fn last_time(&self, reader: &mut HeaderReader) -> Result<Option<(TimeEntry, u64)>> {
        let indexed = match usable(self.time_index())? {
            Ok(index) if index.is_rising()? => index.last_entry()?,
            _ => return Ok(None),
        };
        if indexed.timestamp <= NO_TIMESTAMP {
            return Ok(None);
        }
        Ok(self.find_time(reader, indexed)?.map(|position| (indexed, position)))
    }

    /// Finds the largest timestamp: that of the time index, or one of the batches from a position on. Calls `check` with
    /// the batches before and after missing offsets. The reader is after the last batch in the end.
    fn walk_timestamps(
        &self,
        reader: &mut HeaderReader,
        indexed: Option<TimeEntry>,
        position: u64,
        check: impl Fn(&mut HeaderReader, &BatchHeader, &BatchHeader) -> Result<()>,
    ) -> Result<TimestampWalk> {
        let none = TimeEntry { timestamp: NO_TIMESTAMP, offset: self.base_offset() };
        let mut times = TimestampWalk { largest: indexed.unwrap_or(none), is_v2: true, has_gap: false, last: None };
        reader.seek(position);
        while let Some(header) = reader.next_header() {
            let header = header?;
            if let Some(before) = times.add(&header) {
                check(reader, &before, &header)?;
            }
        }
        Ok(times)
    }
}

/// The result of walking headers for timestamps.
struct TimestampWalk {
    largest: TimeEntry,
    /// Whether all batches are v2.
    is_v2: bool,
    /// Whether offsets are missing between two batches.
    has_gap: bool,
    last: Option<BatchHeader>,
}

impl TimestampWalk {
    /// Adds a batch. Of equal timestamps, the earlier batch counts. Returns the batch before if offsets are missing
    /// after it, or may be.
    fn add(&mut self, header: &BatchHeader) -> Option<BatchHeader> {
        if header.max_timestamp() > self.largest.timestamp {
            self.largest = TimeEntry { timestamp: header.max_timestamp(), offset: header.last_offset() };
        }
        self.is_v2 &= header.magic() >= 2;
        let before_gap = self.last.replace(*header).filter(|last| !header.continues(last));
        self.has_gap |= before_gap.is_some();
        before_gap
    }
}
