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

use std::path::Path;

use super::{EntryFile, Fields, base_offset_for, join, relative_offset};
use crate::error::Result;
use crate::format::header::NO_TIMESTAMP;
use crate::io::Location;

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

impl TimeEntry {
    fn parse(entry: [u8; ENTRY_LEN], base_offset: i64) -> Self {
        let mut fields = Fields(&entry);
        Self { timestamp: fields.i64(), offset: base_offset.wrapping_add(i64::from(fields.i32())) }
    }

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
#[derive(Debug)]
pub struct TimeIndex {
    entries: EntryFile<ENTRY_LEN>,
    base_offset: i64,
    entry_count: u64,
}

impl TimeIndex {
    /// Opens an index. If `base_offset` is `None`, it is parsed from the file's name.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if neither provides the base offset; I/O
    /// errors.
    pub fn open(path: impl Into<Location>, base_offset: Option<i64>) -> Result<Self> {
        let path: &Location = &path.into();
        let entries = EntryFile::open(path)?;
        let base_offset = base_offset_for(path, base_offset)?;
        let entry_count = entries.count_before_zeros(|entry| TimeEntry::parse(entry, 0).offset == 0)?;
        Ok(Self { entries, base_offset, entry_count })
    }

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.entries.path()
    }

    /// Base offset of the segment.
    #[must_use]
    pub fn base_offset(&self) -> i64 {
        self.base_offset
    }

    /// Number of entries before the zeros at the end.
    #[must_use]
    pub fn entry_count(&self) -> u64 {
        self.entry_count
    }

    /// Number of entries that fit into the file: its length divided by the entry size, as a broker computes it on
    /// opening.
    #[must_use]
    pub fn slot_count(&self) -> u64 {
        self.entries.slot_count()
    }

    /// Reads one entry, counted from 0. Returns `None` past the last.
    ///
    /// # Errors
    /// I/O errors.
    pub fn entry(&self, slot: u64) -> Result<Option<TimeEntry>> {
        if slot >= self.entry_count {
            return Ok(None);
        }
        Ok(self.entries.entry(slot)?.map(|entry| TimeEntry::parse(entry, self.base_offset)))
    }

    /// Reads the last entry. Returns timestamp −1 and the base offset if the index is empty, like Kafka.
    ///
    /// # Errors
    /// I/O errors.
    pub fn last_entry(&self) -> Result<TimeEntry> {
        let last = self.entry_count.checked_sub(1).map_or(Ok(None), |last| self.entry(last))?;
        Ok(last.unwrap_or_else(|| self.no_entry()))
    }

    fn no_entry(&self) -> TimeEntry {
        TimeEntry { timestamp: NO_TIMESTAMP, offset: self.base_offset }
    }

    /// Reads all entries, up to the first that marks the end for `kafka-dump-log`.
    ///
    /// # Errors
    /// I/O errors.
    pub fn entries(&self) -> Result<Vec<TimeEntry>> {
        let mut entries = Vec::new();
        self.entries.visit(self.entry_count, |slot, entry| {
            let entry = TimeEntry::parse(entry, self.base_offset);
            let is_entry = slot == 0 || entry.offset != self.base_offset;
            entries.extend(is_entry.then_some(entry));
            Ok(is_entry)
        })?;
        Ok(entries)
    }

    /// Returns the entry with the largest timestamp that is at most `timestamp`. Returns timestamp −1 and the base
    /// offset if there is no such entry.
    ///
    /// # Errors
    /// I/O errors.
    pub fn lookup(&self, timestamp: i64) -> Result<TimeEntry> {
        let key = |entry: [u8; ENTRY_LEN]| TimeEntry::parse(entry, 0).timestamp.cmp(&timestamp);
        let found = self.entries.floor_slot(self.entry_count, key)?;
        Ok(found.map_or_else(|| self.no_entry(), |(_, entry)| TimeEntry::parse(entry, self.base_offset)))
    }

    /// Whether the last entry before the zero tail has neither a smaller timestamp nor a smaller offset than the
    /// first.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn is_rising(&self) -> Result<bool> {
        let (first, last) = (self.entry(0)?, self.last_entry()?);
        let rises = |first: TimeEntry| first.timestamp <= last.timestamp && first.offset <= last.offset;
        Ok(first.is_none_or(|first| self.base_offset <= first.offset && rises(first)))
    }

    /// Performs Kafka's own check: the length is a multiple of the entry size, and the last entry, even in a zero
    /// tail, is neither older than the first nor below the base offset.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidFile`](crate::ErrorKind::InvalidFile) if a check fails; I/O errors.
    pub fn sanity_check(&self) -> Result<()> {
        if let Some(last) = self.slot_count().checked_sub(1)
            && let (Some(first), Some(last)) = (self.entries.entry(0)?, self.entries.entry(last)?)
        {
            let (first, last) = (TimeEntry::parse(first, self.base_offset), TimeEntry::parse(last, self.base_offset));
            if last.timestamp < first.timestamp {
                let (last, first) = (last.timestamp, first.timestamp);
                let message = format!("the last timestamp {last} is before the first timestamp {first}");
                return Err(self.entries.fault(message));
            }
            self.entries.check_last_offset(last.offset, self.base_offset)?;
        }
        self.entries.check_len()
    }
}
