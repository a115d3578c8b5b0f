//! The transaction index `.txnindex`: the transactions whose abort marker is in the segment.
//!
//! ```text
//!  0  version             i16   0; readers only check its first byte, like Kafka's
//!  2  producer_id         i64
//! 10  first_offset        i64   possibly in an earlier segment
//! 18  last_offset         i64   offset of the marker
//! 26  last_stable_offset  i64   at the time when the marker was written
//! ```
//!
//! Entries are sorted by last offset. The file only exists if a transaction was aborted. Bytes after the last complete
//! entry are ignored.
//!
//! Source: `TransactionIndex` and `AbortedTxn` of Kafka.

use std::path::Path;

use super::{EntryFields, EntryFile, join};
use crate::error::{Error, ErrorKind, Result};
use crate::io::Location;
use crate::num::u64_of;

/// Size of an entry in bytes.
pub(crate) const ENTRY_LEN: usize = 34;
/// Largest number of markers in a segment: each takes 78 bytes of at most 2 GiB.
const MAX_ENTRIES: u64 = (1 << 31) / 78;
/// The only version.
const VERSION: i16 = 0;

/// An aborted transaction of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AbortedTransaction {
    /// Version of the entry as stored.
    pub version: i16,
    /// Id of the producer.
    pub producer_id: i64,
    /// First offset of the transaction.
    pub first_offset: i64,
    /// Offset of its abort marker.
    pub last_offset: i64,
    /// Smallest first offset of the transactions that were open when the marker was written. If none was, the offset
    /// after the marker.
    pub last_stable_offset: i64,
}

impl AbortedTransaction {
    /// Creates an entry of the version that Kafka writes.
    #[must_use]
    pub fn new(producer_id: i64, first_offset: i64, last_offset: i64, last_stable_offset: i64) -> Self {
        Self { version: VERSION, producer_id, first_offset, last_offset, last_stable_offset }
    }

    fn parse(entry: [u8; ENTRY_LEN]) -> Self {
        let mut fields = EntryFields(&entry);
        Self {
            version: fields.i16(),
            producer_id: fields.i64(),
            first_offset: fields.i64(),
            last_offset: fields.i64(),
            last_stable_offset: fields.i64(),
        }
    }

    /// Encodes the entry.
    #[must_use]
    pub fn encode(&self) -> [u8; ENTRY_LEN] {
        join(&[
            &self.version.to_be_bytes(),
            &self.producer_id.to_be_bytes(),
            &self.first_offset.to_be_bytes(),
            &self.last_offset.to_be_bytes(),
            &self.last_stable_offset.to_be_bytes(),
        ])
    }

    /// Drops the entries from the first one whose marker is at or after `offset`, like Kafka's `truncateTo`.
    pub fn truncate_to(entries: &mut Vec<Self>, offset: i64) {
        let kept = entries.iter().take_while(|entry| entry.last_offset < offset).count();
        entries.truncate(kept);
    }

    /// Returns the transactions that matter to a reader of offsets from `fetch_offset` up to but excluding
    /// `upper_bound`, and whether the result is complete, so that later segments cannot add to it.
    #[must_use]
    pub fn collect(entries: &[Self], fetch_offset: i64, upper_bound: i64) -> (Vec<Self>, bool) {
        let mut found = Vec::new();
        for entry in entries {
            if entry.last_offset >= fetch_offset && entry.first_offset < upper_bound {
                found.push(*entry);
            }
            if entry.last_stable_offset >= upper_bound {
                return (found, true);
            }
        }
        (found, false)
    }
}

/// Reads a transaction index.
#[derive(Debug)]
pub struct TransactionIndex {
    entries: EntryFile<ENTRY_LEN>,
}

impl TransactionIndex {
    /// Opens an index.
    ///
    /// # Errors
    /// I/O errors.
    pub fn open(path: impl Into<Location>) -> Result<Self> {
        let path: &Location = &path.into();
        Ok(Self { entries: EntryFile::open(path)? })
    }

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.entries.path()
    }

    /// Number of complete entries in the file.
    #[must_use]
    pub fn entry_count(&self) -> u64 {
        self.entries.slot_count()
    }

    /// Reads all entries.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidFile`] if an entry has a version that Kafka does not read, if an entry repeats the one
    /// before it (as in a file of zeros), or if there are more entries than a segment can have; I/O errors.
    pub fn entries(&self) -> Result<Vec<AbortedTransaction>> {
        if self.entry_count() > MAX_ENTRIES {
            let message = format!("the file has {} entries, more than a segment can have", self.entry_count());
            return Err(self.entries.fault(message));
        }
        let mut entries = Vec::new();
        self.entries.visit(self.entry_count(), |slot, entry| {
            let transaction = self.checked(slot, entry)?;
            if entries.last() == Some(&transaction) {
                let position = slot.saturating_mul(u64_of(ENTRY_LEN));
                return Err(self.entries.fault(format!("entry {slot} repeats the entry before it")).at(position));
            }
            entries.push(transaction);
            Ok(true)
        })?;
        Ok(entries)
    }

    fn checked(&self, slot: u64, entry: [u8; ENTRY_LEN]) -> Result<AbortedTransaction> {
        // Kafka reads only the first of the two bytes, so versions 1 to 255 count as 0
        let [version, ..] = entry;
        if version.cast_signed() > 0 {
            let message = format!("entry {slot} has version {version}, but only 0 is supported");
            let position = slot.saturating_mul(u64_of(ENTRY_LEN));
            let error = Error::new(ErrorKind::InvalidFile(message)).at(position).in_field("version");
            return Err(error.with_path(self.path()));
        }
        Ok(AbortedTransaction::parse(entry))
    }

    /// Returns the transactions that matter to a reader of offsets from `fetch_offset` up to but excluding
    /// `upper_bound`, and whether the result is complete: an entry's last stable offset reached the upper bound, so
    /// later segments cannot add to it.
    ///
    /// # Errors
    /// The errors of [`TransactionIndex::entries`].
    pub fn collect(&self, fetch_offset: i64, upper_bound: i64) -> Result<(Vec<AbortedTransaction>, bool)> {
        Ok(AbortedTransaction::collect(&self.entries()?, fetch_offset, upper_bound))
    }

    /// Performs Kafka's own check: no marker is below the segment's base offset.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidFile`] if the check fails; the errors of [`TransactionIndex::entries`].
    pub fn sanity_check(&self, base_offset: i64) -> Result<()> {
        match self.entries()?.iter().find(|entry| entry.last_offset < base_offset) {
            None => Ok(()),
            Some(entry) => {
                let message = format!("the last offset {} of an aborted transaction", entry.last_offset);
                Err(self.entries.fault(format!("{message} is below the base offset {base_offset}")))
            }
        }
    }
}
