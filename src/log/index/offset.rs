//! The offset index `.index`: the position of a batch in the segment.
//!
//! ```text
//! 0  relative_offset  i32   last offset of a batch − base offset of the segment
//! 4  position         i32   byte of the segment at which the batch starts
//! ```
//!
//! Brokers up to 0.10 store the first offset of an append. Brokers 2.x store, for uncompressed messages, the last
//! offset of an append with the position of its first message. So an entry is valid with any offset of the batches at
//! its position.
//!
//! Source: `OffsetIndex` of Kafka.

use super::sorted::{SortedEntry, SortedIndex};
use super::{EntryFields, join, relative_offset};
use crate::error::Result;

/// Size of an entry in bytes.
pub(crate) const ENTRY_LEN: usize = 8;

/// An entry of the offset index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OffsetEntry {
    /// Last offset of the batch.
    pub offset: i64,
    /// Position of the batch in the segment, in bytes. Negative only in a corrupt index.
    pub position: i32,
}

impl SortedEntry<ENTRY_LEN> for OffsetEntry {
    fn parse(entry: [u8; ENTRY_LEN], base_offset: i64) -> Self {
        let mut fields = EntryFields(&entry);
        Self { offset: base_offset.wrapping_add(i64::from(fields.i32())), position: fields.i32() }
    }

    fn key(&self) -> i64 {
        self.offset
    }

    fn offset(&self) -> i64 {
        self.offset
    }
}

impl OffsetEntry {
    /// Encodes the entry for the index of a segment.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if the offset is not within 2³¹ − 1 of the
    /// base offset.
    pub fn encode(self, base_offset: i64) -> Result<[u8; ENTRY_LEN]> {
        let relative = relative_offset(self.offset, base_offset)?;
        Ok(join(&[&relative.to_be_bytes(), &self.position.to_be_bytes()]))
    }

    /// Keeps the entries below an offset, like Kafka's `truncateTo`.
    pub fn truncate_to(entries: &mut Vec<Self>, offset: i64) {
        entries.retain(|entry| entry.offset < offset);
    }
}

/// Reads an offset index.
///
/// ```no_run
/// # fn main() -> kbat::Result<()> {
/// let index = kbat::log::index::OffsetIndex::open("topic-0/00000000000000000042.index", None)?;
/// let entry = index.lookup(1000)?;
/// println!("a batch with offsets up to {} starts at byte {}", entry.offset, entry.position);
/// # Ok(()) }
/// ```
pub type OffsetIndex = SortedIndex<OffsetEntry, ENTRY_LEN>;

impl OffsetIndex {
    /// Reads the last entry. Returns `None` if the index is empty.
    ///
    /// # Errors
    /// I/O errors.
    pub fn last_entry(&self) -> Result<Option<OffsetEntry>> {
        self.last()
    }

    /// Returns the entry with the largest offset that is at most `offset`. Returns the base offset and position 0 if
    /// there is no such entry.
    ///
    /// # Errors
    /// I/O errors.
    pub fn lookup(&self, offset: i64) -> Result<OffsetEntry> {
        Ok(self.floor(offset)?.unwrap_or(OffsetEntry { offset: self.base_offset(), position: 0 }))
    }

    /// Returns the first entry whose position is at least `size` bytes after that of `from`. A read of `size` bytes
    /// from there contains no batch with a larger offset. Returns `None` if no entry is that far.
    ///
    /// # Errors
    /// I/O errors.
    pub fn fetch_upper_bound(&self, from: OffsetEntry, size: u32) -> Result<Option<OffsetEntry>> {
        let target = i64::from(from.position).saturating_add(i64::from(size));
        let position = |entry: [u8; ENTRY_LEN]| i64::from(self.parse(entry).position);
        match self.file.floor_slot(self.entry_count(), |entry| position(entry).cmp(&target))? {
            None => self.entry(0),
            Some((slot, entry)) if position(entry) == target => self.entry(slot),
            Some((slot, _)) => self.entry(slot.saturating_add(1)),
        }
    }

    /// Whether the last entry before the zero tail has neither a smaller offset nor a smaller position than the first.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn is_rising(&self) -> Result<bool> {
        let (Some(first), Some(last)) = (self.entry(0)?, self.last_entry()?) else { return Ok(true) };
        Ok(self.base_offset() <= first.offset && first.offset <= last.offset && first.position <= last.position)
    }

    /// Performs Kafka's own check: the length is a multiple of the entry size, and the offset of the last entry, even
    /// in a zero tail, is not below the base offset.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidFile`](crate::ErrorKind::InvalidFile) if a check fails; I/O errors.
    pub fn sanity_check(&self) -> Result<()> {
        if let Some(last) = self.slot_count().checked_sub(1)
            && let Some(entry) = self.slot(last)?
        {
            self.file.check_last_offset(entry.offset, self.base_offset())?;
        }
        self.file.check_len()
    }
}
