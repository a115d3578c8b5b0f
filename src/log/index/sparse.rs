//! [`SegmentIndexer`]: decides which batches of a segment get entries in the offset and time indexes.
//!
//! ```text
//! batches        |  1  |   2   |  3  |   4    | 5 |  6  |
//! bytes since    0     n       n     ▲ more than the interval: batch 4 gets an entry, counting restarts at its start
//! ```
//!
//! The check precedes the addition of a batch's own size, so the first batch never gets an entry. The time index gets
//! an entry together with the offset index if the largest timestamp has grown, and a last one when the segment ends.
//!
//! Source: `LogSegment.append`, `LogSegment.recover` and `TimeIndex.maybeAppend` of Kafka 4.

use super::offset::{self, OffsetEntry};
use super::relative_offset;
use super::time::{self, TimeEntry};
use crate::error::{Error, Result};
use crate::format::header::{BatchHeader, NO_TIMESTAMP};
use crate::num::u64_of;

/// Default of a broker's `log.index.interval.bytes`.
pub const DEFAULT_INDEX_INTERVAL_BYTES: u64 = 4096;
/// Default of a broker's `log.index.size.max.bytes`.
pub const DEFAULT_MAX_INDEX_BYTES: u64 = 10 * 1024 * 1024;

/// The index entries of a batch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IndexEntries {
    /// Entry for the offset index.
    pub offset: Option<OffsetEntry>,
    /// Entry for the time index.
    pub time: Option<TimeEntry>,
}

/// Creates the offset and time index entries of a segment from the headers of its batches, in order.
#[derive(Debug, Clone)]
pub struct SegmentIndexer {
    base_offset: i64,
    interval_bytes: u64,
    max_offset_entries: u64,
    max_time_entries: u64,
    bytes_since_last_entry: u64,
    offset_entries: u64,
    time_entries: u64,
    last_offset: Option<i64>,
    last_time: TimeEntry,
    /// Largest timestamp so far, with the last offset of the first batch that has it.
    max_timestamp: TimeEntry,
}

impl SegmentIndexer {
    /// Creates an indexer for a segment with this base offset. `interval_bytes` is Kafka's `index.interval.bytes`,
    /// `max_index_bytes` its `segment.index.bytes`.
    #[must_use]
    pub fn new(base_offset: i64, interval_bytes: u64, max_index_bytes: u64) -> Self {
        let none = TimeEntry { timestamp: NO_TIMESTAMP, offset: base_offset };
        let mut indexer = Self {
            base_offset,
            interval_bytes,
            max_offset_entries: 0,
            max_time_entries: 0,
            bytes_since_last_entry: 0,
            offset_entries: 0,
            time_entries: 0,
            last_offset: None,
            last_time: none,
            max_timestamp: none,
        };
        indexer.resize(max_index_bytes);
        indexer
    }

    /// Changes the size limit of both indexes. Existing entries stay, even if they exceed it.
    pub(crate) fn resize(&mut self, max_index_bytes: u64) {
        let capacity = |entry_len: usize| max_index_bytes.checked_div(u64_of(entry_len)).unwrap_or(0);
        self.max_offset_entries = capacity(offset::ENTRY_LEN);
        self.max_time_entries = capacity(time::ENTRY_LEN);
    }

    /// Adds the next batch and returns its index entries.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument), without adding the batch, if its last offset
    /// is not within 2³¹ − 1 of the base offset. The same if it is due for an entry, but its offset is not above that
    /// of the last entry, its position exceeds 2³¹ − 1, or the index is full.
    pub fn observe(&mut self, batch: &BatchHeader) -> Result<IndexEntries> {
        let last_offset = batch.last_offset();
        let place = |error: Error| error.at(batch.position());
        relative_offset(last_offset, self.base_offset).map_err(place)?;
        let max_timestamp = if batch.max_timestamp() > self.max_timestamp.timestamp {
            TimeEntry { timestamp: batch.max_timestamp(), offset: last_offset }
        } else {
            self.max_timestamp
        };
        let mut entries = IndexEntries::default();
        if self.bytes_since_last_entry > self.interval_bytes {
            entries.offset = Some(self.offset_entry(batch).map_err(place)?);
            entries.time = self.time_entry(max_timestamp);
        }
        self.max_timestamp = max_timestamp;
        self.note(entries);
        self.bytes_since_last_entry = self.bytes_since_last_entry.saturating_add(u64_of(batch.size()));
        Ok(entries)
    }

    fn offset_entry(&self, batch: &BatchHeader) -> Result<OffsetEntry> {
        let offset = batch.last_offset();
        if self.is_full() {
            return Err(Error::argument("the segment's index is full"));
        }
        if let Some(last) = self.last_offset.filter(|last| offset <= *last) {
            return Err(Error::argument(format!("offset {offset} is not above the last indexed offset {last}")));
        }
        let position = i32::try_from(batch.position()).map_err(|_| {
            Error::argument("a batch starts after the first 2^31 - 1 bytes, which an index cannot represent")
        })?;
        Ok(OffsetEntry { offset, position })
    }

    fn time_entry(&self, max_timestamp: TimeEntry) -> Option<TimeEntry> {
        (max_timestamp.timestamp > self.last_time.timestamp).then_some(max_timestamp)
    }

    fn note(&mut self, entries: IndexEntries) {
        if let Some(entry) = entries.offset {
            self.last_offset = Some(entry.offset);
            self.offset_entries = self.offset_entries.saturating_add(1);
            self.bytes_since_last_entry = 0;
        }
        if let Some(entry) = entries.time {
            self.last_time = entry;
            self.time_entries = self.time_entries.saturating_add(1);
        }
    }

    /// Returns the last entry of the time index, to be written when the segment is rolled or closed: its largest
    /// timestamp, unless an entry has it already. A full index has space for it.
    pub fn finish(&mut self) -> Option<TimeEntry> {
        let time = self.time_entry(self.max_timestamp);
        self.note(IndexEntries { offset: None, time });
        time
    }

    /// Whether the segment must be rolled before the next batch: the offset index is full, or the time index only has
    /// space for its last entry.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.offset_entries >= self.max_offset_entries || self.time_entries >= self.max_time_entries.saturating_sub(1)
    }

    /// Largest timestamp so far, with the last offset of the first batch that has it. −1 and the base offset if no
    /// batch has a timestamp.
    #[must_use]
    pub fn max_timestamp(&self) -> TimeEntry {
        self.max_timestamp
    }
}
