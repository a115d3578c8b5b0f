//! The transaction index `.txnindex`: the transactions whose abort marker lies in the segment.
//!
//! ```text
//!  0  version             i16   0; readers look at its first byte only, as Kafka's
//!  2  producer_id         i64
//! 10  first_offset        i64   may lie in an earlier segment
//! 18  last_offset         i64   offset of the marker
//! 26  last_stable_offset  i64   as it was when the marker was written
//! ```
//!
//! Entries are in the order of their last offsets. The file exists only where something was aborted. Bytes after the last
//! whole entry are not looked at.
//!
//! Source: `TransactionIndex` and `AbortedTxn` of Kafka.

use std::path::Path;

use super::{EntryFile, Fields, join};
use crate::error::{Error, ErrorKind, Result};
use crate::num::u64_of;

/// Bytes of an entry.
pub(crate) const ENTRY_LEN: usize = 34;
/// Markers that a segment has room for: each takes 78 bytes of at most 2 GiB.
const MAX_ENTRIES: u64 = (1 << 31) / 78;
/// The one version there is.
const VERSION: i16 = 0;

/// An aborted transaction of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AbortedTransaction {
    /// Version of the entry as stored.
    pub version: i16,
    /// The producer.
    pub producer_id: i64,
    /// First offset of the transaction.
    pub first_offset: i64,
    /// Offset of its abort marker.
    pub last_offset: i64,
    /// Smallest first offset of the transactions that were open when the marker was written; without any, the offset after
    /// the marker.
    pub last_stable_offset: i64,
}

impl AbortedTransaction {
    /// An entry of the version that Kafka writes.
    #[must_use]
    pub fn new(producer_id: i64, first_offset: i64, last_offset: i64, last_stable_offset: i64) -> Self {
        Self { version: VERSION, producer_id, first_offset, last_offset, last_stable_offset }
    }

    fn parse(entry: [u8; ENTRY_LEN]) -> Self {
        let mut fields = Fields(&entry);
        Self {
            version: fields.i16(),
            producer_id: fields.i64(),
            first_offset: fields.i64(),
            last_offset: fields.i64(),
            last_stable_offset: fields.i64(),
        }
    }

    /// The bytes of the entry.
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

    /// Drops the entries from the first on whose marker is at `offset` or after it, as Kafka's `truncateTo`.
    pub fn truncate_to(entries: &mut Vec<Self>, offset: i64) {
        let kept = entries.iter().take_while(|entry| entry.last_offset < offset).count();
        entries.truncate(kept);
    }

    /// What a reader of offsets from `fetch_offset` up to but excluding `upper_bound` must know, and whether later segments
    /// can't add to it.
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
    /// Those of reading.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Ok(Self { entries: EntryFile::open(path)? })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.entries.path()
    }

    /// Whole entries in the file.
    #[must_use]
    pub fn entry_count(&self) -> u64 {
        self.entries.slot_count()
    }

    /// All entries.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidFile`] at an entry of a version that Kafka does not read, at one that comes twice in a row, as in a
    /// file of zeros, and for more than a segment can have; those of reading.
    pub fn entries(&self) -> Result<Vec<AbortedTransaction>> {
        if self.entry_count() > MAX_ENTRIES {
            let message = format!("{} entries, more than a segment has room for", self.entry_count());
            return Err(self.entries.fault(message));
        }
        let mut entries = Vec::new();
        self.entries.visit(self.entry_count(), |slot, entry| {
            let transaction = self.checked(slot, entry)?;
            if entries.last() == Some(&transaction) {
                let position = slot.saturating_mul(u64_of(ENTRY_LEN));
                return Err(self.entries.fault(format!("entry {slot} is the one before it again")).at(position));
            }
            entries.push(transaction);
            Ok(true)
        })?;
        Ok(entries)
    }

    fn checked(&self, slot: u64, entry: [u8; ENTRY_LEN]) -> Result<AbortedTransaction> {
        // Kafka takes the first of the two bytes for the version, so 1 to 255 pass for 0
        let [version, ..] = entry;
        if version.cast_signed() > 0 {
            let message = format!("entry {slot} has version {version}, 0 is known");
            let position = slot.saturating_mul(u64_of(ENTRY_LEN));
            let error = Error::new(ErrorKind::InvalidFile(message)).at(position).in_field("version");
            return Err(error.with_path(self.path()));
        }
        Ok(AbortedTransaction::parse(entry))
    }

    /// The transactions that a reader of offsets from `fetch_offset` up to but excluding `upper_bound` must know, and
    /// whether later segments can't add to them: an entry's last stable offset reached the upper bound.
    ///
    /// # Errors
    /// Those of [`TransactionIndex::entries`].
    pub fn collect(&self, fetch_offset: i64, upper_bound: i64) -> Result<(Vec<AbortedTransaction>, bool)> {
        Ok(AbortedTransaction::collect(&self.entries()?, fetch_offset, upper_bound))
    }

    /// Kafka's own check: no marker below the segment's base offset.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidFile`] where it fails; those of [`TransactionIndex::entries`].
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
