//! [`SortedIndex`]: what the offset index and the time index have in common.

use std::marker::PhantomData;
use std::path::Path;

use super::{EntryFile, base_offset_for};
use crate::error::Result;
use crate::io::Location;

/// An entry of a sorted index, `N` bytes long.
pub trait SortedEntry<const N: usize>: Copy {
    /// Parses an entry of a segment.
    fn parse(entry: [u8; N], base_offset: i64) -> Self;

    /// The number by which the index is searched.
    fn key(&self) -> i64;

    /// The offset that the entry contains; the file has its distance from the base offset.
    fn offset(&self) -> i64;
}

/// An index with entries of `N` bytes in the order of their keys: an [`OffsetIndex`](super::OffsetIndex) or a
/// [`TimeIndex`](super::TimeIndex).
#[derive(Debug)]
pub struct SortedIndex<E, const N: usize> {
    pub(super) file: EntryFile<N>,
    base_offset: i64,
    entry_count: u64,
    entry: PhantomData<E>,
}

impl<E: SortedEntry<N>, const N: usize> SortedIndex<E, N> {
    /// Opens an index. If `base_offset` is `None`, it is parsed from the file's name.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if neither provides the base offset; I/O
    /// errors.
    pub fn open(path: impl Into<Location>, base_offset: Option<i64>) -> Result<Self> {
        let path: &Location = &path.into();
        let file = EntryFile::open(path)?;
        let base_offset = base_offset_for(path, base_offset)?;
        let entry_count = file.count_before_zeros(|entry| E::parse(entry, 0).offset() == 0)?;
        Ok(Self { file, base_offset, entry_count, entry: PhantomData })
    }

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
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
        self.file.slot_count()
    }

    /// Reads one entry, counted from 0. Returns `None` past the last.
    ///
    /// # Errors
    /// I/O errors.
    pub fn entry(&self, slot: u64) -> Result<Option<E>> {
        if slot >= self.entry_count {
            return Ok(None);
        }
        self.slot(slot)
    }

    /// Reads all entries, up to the first that marks the end for `kafka-dump-log`.
    ///
    /// # Errors
    /// I/O errors.
    pub fn entries(&self) -> Result<Vec<E>> {
        let mut entries = Vec::new();
        self.file.visit(self.entry_count, |slot, entry| {
            let entry = self.parse(entry);
            let is_entry = slot == 0 || entry.offset() != self.base_offset;
            entries.extend(is_entry.then_some(entry));
            Ok(is_entry)
        })?;
        Ok(entries)
    }

    /// Reads the last entry. Returns `None` if the index is empty.
    pub(super) fn last(&self) -> Result<Option<E>> {
        self.entry_count.checked_sub(1).map_or(Ok(None), |last| self.entry(last))
    }

    /// Reads one entry, which may be in the zeros at the end. Returns `None` past the end of the file.
    pub(super) fn slot(&self, slot: u64) -> Result<Option<E>> {
        Ok(self.file.entry(slot)?.map(|entry| self.parse(entry)))
    }

    /// Returns the entry with the largest key that is at most `key`.
    pub(super) fn floor(&self, key: i64) -> Result<Option<E>> {
        let found = self.file.floor_slot(self.entry_count, |entry| self.parse(entry).key().cmp(&key))?;
        Ok(found.map(|(_, entry)| self.parse(entry)))
    }

    pub(super) fn parse(&self, entry: [u8; N]) -> E {
        E::parse(entry, self.base_offset)
    }
}
