//! The time index `.timeindex`: up to which offset no record is younger than a timestamp.
//!
//! ```text
//! 0  timestamp        i64   largest timestamp of the segment so far, milliseconds since the epoch
//! 8  relative_offset  i32   last offset of the first batch that has it − base offset of the segment
//! ```
//!
//! Timestamps increase strictly; offsets may repeat. The offset is that of the batch's end, though an earlier record of the
//! batch has the timestamp. The last entry is written when the segment is rolled or closed and holds its largest timestamp.
//!
//! Source: `TimeIndex` of Kafka.

use std::path::Path;

use super::{EntryFile, Fields, base_offset_for, join, relative_offset};
use crate::error::Result;
use crate::format::header::NO_TIMESTAMP;

/// Bytes of an entry.
pub(crate) const ENTRY_LEN: usize = 12;

/// An entry of the time index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TimeEntry {
    /// Largest timestamp so far in milliseconds since the epoch.
    pub timestamp: i64,
    /// Last offset of the first batch that has it.
    pub offset: i64,
}

impl TimeEntry {
    fn parse(entry: [u8; ENTRY_LEN], base_offset: i64) -> Self {
        let mut fields = Fields(&entry);
        Self { timestamp: fields.i64(), offset: base_offset.wrapping_add(i64::from(fields.i32())) }
    }

    /// The bytes of the entry in the index of a segment.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where the offset is not within 2³¹ − 1 of the
    /// base offset.
    pub fn encode(self, base_offset: i64) -> Result<[u8; ENTRY_LEN]> {
        let relative = relative_offset(self.offset, base_offset)?;
        Ok(join(&[&self.timestamp.to_be_bytes(), &relative.to_be_bytes()]))
    }

    /// Keeps the entries below an offset, as Kafka's `truncateTo`.
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
    /// Opens an index. Without a base offset, the file's name tells it.
    ///
    /// # Errors
    /// Those of reading; [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where neither tells the base offset.
    pub fn open(path: impl AsRef<Path>, base_offset: Option<i64>) -> Result<Self> {
        let path = path.as_ref();
        let entries = EntryFile::open(path)?;
        let base_offset = base_offset_for(path, base_offset)?;
        let entry_count = entries.count_before_zeros(|entry| TimeEntry::parse(entry, 0).offset == 0)?;
        Ok(Self { entries, base_offset, entry_count })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.entries.path()
    }

    /// Base offset of the segment.
    #[must_use]
    pub fn base_offset(&self) -> i64 {
        self.base_offset
    }

    /// Entries before the zeros at the end.
    #[must_use]
    pub fn entry_count(&self) -> u64 {
        self.entry_count
    }

    /// Entries that the file has room for: its length by the length of an entry, as a broker counts that opens it.
    #[must_use]
    pub fn slot_count(&self) -> u64 {
        self.entries.slot_count()
    }

    /// One entry, counted from 0; `None` past the last.
    ///
    /// # Errors
    /// Those of reading.
    pub fn entry(&self, slot: u64) -> Result<Option<TimeEntry>> {
        if slot >= self.entry_count {
            return Ok(None);
        }
        Ok(self.entries.entry(slot)?.map(|entry| TimeEntry::parse(entry, self.base_offset)))
    }

    /// The last entry; timestamp −1 and the base offset in an empty index, as in Kafka.
    ///
    /// # Errors
    /// Those of reading.
    pub fn last_entry(&self) -> Result<TimeEntry> {
        let last = self.entry_count.checked_sub(1).map_or(Ok(None), |last| self.entry(last))?;
        Ok(last.unwrap_or_else(|| self.no_entry()))
    }

    fn no_entry(&self) -> TimeEntry {
        TimeEntry { timestamp: NO_TIMESTAMP, offset: self.base_offset }
    }

    /// All entries, up to the first that `kafka-dump-log` takes for the end.
    ///
    /// # Errors
    /// Those of reading.
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

    /// The entry with the largest timestamp that is at most `timestamp`; timestamp −1 and the base offset where there is none.
    ///
    /// # Errors
    /// Those of reading.
    pub fn lookup(&self, timestamp: i64) -> Result<TimeEntry> {
        let key = |entry: [u8; ENTRY_LEN]| TimeEntry::parse(entry, 0).timestamp.cmp(&timestamp);
        let found = self.entries.floor_slot(self.entry_count, key)?;
        Ok(found.map_or_else(|| self.no_entry(), |(_, entry)| TimeEntry::parse(entry, self.base_offset)))
    }

    /// Whether the last entry before a zero tail is neither older nor of a smaller offset than the first.
    ///
    /// # Errors
    /// Those of reading.
    pub(crate) fn is_rising(&self) -> Result<bool> {
        let (first, last) = (self.entry(0)?, self.last_entry()?);
        let rises = |first: TimeEntry| first.timestamp <= last.timestamp && first.offset <= last.offset;
        Ok(first.is_none_or(|first| self.base_offset <= first.offset && rises(first)))
    }

    /// Kafka's own check: whole entries only, and the last one, zeros included, neither older than the first nor below the
    /// base offset.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidFile`](crate::ErrorKind::InvalidFile) where a check fails; those of reading.
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
