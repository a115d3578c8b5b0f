//! The time index `.timeindex`: largest timestamps and the offsets up to which they apply.
//!
//! ```text
//! 0  timestamp        i64   largest timestamp of the segment so far, milliseconds since the epoch
//! 8  relative_offset  i32   last offset of the first batch that has it − base offset of the segment
//! ```
//!
//! Timestamps increase strictly; offsets may repeat. The offset is the last one of the batch, even if an earlier
//! record of the batch has the timestamp. The last entry is written when the segment is rolled or closed. It contains
//! the segment's largest timestamp.
//!
//! Source: `TimeIndex` of Kafka.

use super::sorted::{SortedEntry, SortedIndex};
use super::{EntryFields, join, relative_offset};
use crate::error::Result;
use crate::format::header::NO_TIMESTAMP;

/// Size of an entry in bytes.
pub(crate) const ENTRY_LEN: usize = 12;

/// An entry of the time index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeEntry {
    /// Largest timestamp so far, in milliseconds since the epoch.
    pub timestamp: i64,
    /// Last offset of the first batch that has it.
    pub offset: i64,
}

impl SortedEntry<ENTRY_LEN> for TimeEntry {
    fn parse(entry: [u8; ENTRY_LEN], base_offset: i64) -> Self {
        let mut fields = EntryFields(&entry);
        Self { timestamp: fields.i64(), offset: base_offset.wrapping_add(i64::from(fields.i32())) }
    }

    fn key(&self) -> i64 {
        self.timestamp
    }

    fn offset(&self) -> i64 {
        self.offset
    }
}

impl TimeEntry {
    /// Encodes the entry for the index of a segment.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if the offset is not within 2³¹ − 1 of the
    /// base offset.
    pub fn encode(self, base_offset: i64) -> Result<[u8; ENTRY_LEN]> {
        let relative = relative_offset(self.offset, base_offset)?;
        Ok(join(&[&self.timestamp.to_be_bytes(), &relative.to_be_bytes()]))
    }

    /// Keeps the entries below an offset, like Kafka's `truncateTo`.
    pub fn truncate_to(entries: &mut Vec<Self>, offset: i64) {
        entries.retain(|entry| entry.offset < offset);
    }
}

/// Reads a time index.
pub type TimeIndex = SortedIndex<TimeEntry, ENTRY_LEN>;

impl TimeIndex {
    /// Reads the last entry. Returns timestamp −1 and the base offset if the index is empty, like Kafka.
    ///
    /// # Errors
    /// I/O errors.
    pub fn last_entry(&self) -> Result<TimeEntry> {
        Ok(self.last()?.unwrap_or_else(|| self.no_entry()))
    }

    fn no_entry(&self) -> TimeEntry {
        TimeEntry { timestamp: NO_TIMESTAMP, offset: self.base_offset() }
    }

    /// Returns the entry with the largest timestamp that is at most `timestamp`. Returns timestamp −1 and the base
    /// offset if there is no such entry.
    ///
    /// # Errors
    /// I/O errors.
    pub fn lookup(&self, timestamp: i64) -> Result<TimeEntry> {
        Ok(self.floor(timestamp)?.unwrap_or_else(|| self.no_entry()))
    }

    /// Whether the last entry before the zero tail has neither a smaller timestamp nor a smaller offset than the
    /// first.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn is_rising(&self) -> Result<bool> {
        let (first, last) = (self.entry(0)?, self.last_entry()?);
        let rises = |first: TimeEntry| first.timestamp <= last.timestamp && first.offset <= last.offset;
        Ok(first.is_none_or(|first| self.base_offset() <= first.offset && rises(first)))
    }

    /// Performs Kafka's own check: the length is a multiple of the entry size, and the last entry, even in a zero
    /// tail, is neither older than the first nor below the base offset.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidFile`](crate::ErrorKind::InvalidFile) if a check fails; I/O errors.
    pub fn sanity_check(&self) -> Result<()> {
        if let Some(last) = self.slot_count().checked_sub(1)
            && let (Some(first), Some(last)) = (self.slot(0)?, self.slot(last)?)
        {
            if last.timestamp < first.timestamp {
                let (last, first) = (last.timestamp, first.timestamp);
                let message = format!("the last timestamp {last} is before the first timestamp {first}");
                return Err(self.file.fault(message));
            }
            self.file.check_last_offset(last.offset, self.base_offset())?;
        }
        self.file.check_len()
    }
}
