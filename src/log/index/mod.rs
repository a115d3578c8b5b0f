//! The index files of a segment. The entries of a file have one size and are in the order of the log.
//!
//! | file | entry | module |
//! |---|---|---|
//! | `.index` | last offset of a batch → its position | `offset` |
//! | `.timeindex` | largest timestamp so far → offset | `time` |
//! | `.txnindex` | an aborted transaction | `transaction` |
//!
//! The offset and time indexes are sparse: a batch gets an entry if more than `index.interval.bytes` of batches were
//! written since the batch of the previous entry (`sparse`). A broker allocates both at full size, filled with zeros,
//! and trims them when the segment is rolled and on a clean shutdown. So the indexes of a running or killed broker end
//! in zeros. After the first entry, a relative offset of 0 is invalid and marks the end of the entries, as in
//! `kafka-dump-log`. An index whose entries are all zero is empty (`kafka-dump-log` lists one entry).
//!
//! Files are read with small positioned reads, and a lookup is a binary search. The length of a file is read when it
//! is opened. If the file becomes shorter later, its entries end there.
//!
//! Source: `AbstractIndex`, `OffsetIndex`, `TimeIndex`, `TransactionIndex` of Kafka.

mod offset;
mod sorted;
mod sparse;
mod time;
mod transaction;

pub use offset::{OffsetEntry, OffsetIndex};
pub use sorted::{SortedEntry, SortedIndex};
pub use sparse::{DEFAULT_INDEX_INTERVAL_BYTES, DEFAULT_MAX_INDEX_BYTES, IndexEntries, SegmentIndexer};
pub use time::{TimeEntry, TimeIndex};
pub use transaction::{AbortedTransaction, TransactionIndex};

use std::cmp::Ordering;
use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::io::{Location, PositionedFile};
use crate::num::{u64_of, usize_from_u64};
use crate::slices::Slices;
use crate::store::names::base_offset_of_name;

/// Number of entries to read at a time when reading all of them.
const CHUNK_COUNT: usize = 4096;
/// Number of bytes at the end of an index that Kafka's binary search checks first.
const WARM_LEN: u64 = 8192;

/// A file with entries of `N` bytes each.
#[derive(Debug)]
struct EntryFile<const N: usize> {
    file: PositionedFile,
    /// Length of the file in bytes when it was opened.
    len: u64,
}

impl<const N: usize> EntryFile<N> {
    const ENTRY_LEN: u64 = u64_of(N);

    fn open(path: &Location) -> Result<Self> {
        let file = path.open()?;
        let len = file.len()?;
        Ok(Self { file, len })
    }

    /// Number of complete entries that fit into the file.
    fn slot_count(&self) -> u64 {
        self.len.checked_div(Self::ENTRY_LEN).unwrap_or(0)
    }

    /// Number of bytes after the last complete entry.
    fn odd_len(&self) -> u64 {
        self.len.checked_rem(Self::ENTRY_LEN).unwrap_or(0)
    }

    /// Reads one entry. Returns `None` past the end.
    fn entry(&self, slot: u64) -> Result<Option<[u8; N]>> {
        let mut entry = [0; N];
        let count = self.read(&mut entry, slot)?;
        Ok((count == N).then_some(entry))
    }

    fn read(&self, buffer: &mut [u8], slot: u64) -> Result<usize> {
        self.file.read_at(buffer, slot.saturating_mul(Self::ENTRY_LEN))
    }

    fn path(&self) -> &Path {
        self.file.path()
    }

    /// Calls `visit` with the first `count` entries in order, until it returns `false` or the file ends.
    fn visit(&self, count: u64, mut visit: impl FnMut(u64, [u8; N]) -> Result<bool>) -> Result<()> {
        let mut chunk = vec![0_u8; N.saturating_mul(CHUNK_COUNT.min(usize_from_u64(count)))];
        let mut slot = 0_u64;
        while slot < count {
            let wanted = N.saturating_mul(usize_from_u64(count.saturating_sub(slot)));
            let room = wanted.min(chunk.len());
            let found = self.read(chunk.part_mut(..room), slot)?;
            let (entries, _) = chunk.part(..found).as_chunks::<N>();
            for entry in entries {
                if !visit(slot, *entry)? {
                    return Ok(());
                }
                slot = slot.saturating_add(1);
            }
            if found < room {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Number of entries before the zeros at the end. The first entry may be zero: a batch of one record at the base
    /// offset.
    ///
    /// A binary search: if entries are out of order, zeros in the middle may count as the end.
    fn count_before_zeros(&self, is_zero: impl Fn([u8; N]) -> bool) -> Result<u64> {
        let slot_count = self.slot_count();
        let zero_at = |slot: u64| -> Result<bool> { Ok(slot > 0 && self.entry(slot)?.is_none_or(&is_zero)) };
        let Some(last) = slot_count.checked_sub(1) else { return Ok(0) };
        if !zero_at(last)? {
            return Ok(slot_count);
        }
        let (mut low, mut high) = (0, last); // low is not in the zero tail, high is
        while high.saturating_sub(low) > 1 {
            let middle = low.midpoint(high);
            if zero_at(middle)? {
                high = middle;
            } else {
                low = middle;
            }
        }
        let empty = high == 1 && self.entry(0)?.is_none_or(|entry| entry == [0; N]);
        Ok(if empty { 0 } else { high })
    }

    /// Finds the last slot below `count` whose key is at most the target, in Kafka's search order: first within the
    /// last 8192 bytes, then in the rest.
    fn floor_slot(&self, count: u64, key_to_target: impl Fn([u8; N]) -> Ordering) -> Result<Option<(u64, [u8; N])>> {
        let Some(last) = count.checked_sub(1) else { return Ok(None) };
        // an entry that was truncated since the file was opened is greater than any target
        let probe = |slot: u64| -> Result<Option<(Ordering, [u8; N])>> {
            Ok(self.entry(slot)?.map(|entry| (key_to_target(entry), entry)))
        };
        let warm_count = WARM_LEN.checked_div(Self::ENTRY_LEN).unwrap_or(0);
        let first_warm = last.saturating_sub(warm_count);
        let (mut low, mut high) = match probe(first_warm)? {
            Some((Ordering::Less, _)) => (first_warm, last),
            _ => (0, first_warm),
        };
        match probe(low)? {
            Some((Ordering::Less | Ordering::Equal, _)) => {}
            _ => return Ok(None),
        }
        while low < high {
            let middle = low.midpoint(high.saturating_add(1));
            match probe(middle)? {
                Some((Ordering::Equal, entry)) => return Ok(Some((middle, entry))),
                Some((Ordering::Less, _)) => low = middle,
                _ => high = middle.saturating_sub(1),
            }
        }
        Ok(self.entry(low)?.map(|entry| (low, entry)))
    }

    fn fault(&self, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::InvalidFile(message.into())).with_path(self.path())
    }

    /// Fails if there are bytes after the last complete entry.
    fn check_len(&self) -> Result<()> {
        if self.odd_len() == 0 {
            return Ok(());
        }
        Err(self.fault(format!("the length of {} bytes is not a multiple of the entry size of {N} bytes", self.len)))
    }

    /// Kafka's check of the last entry. That entry may be in the zero tail.
    fn check_last_offset(&self, last_offset: i64, base_offset: i64) -> Result<()> {
        if last_offset >= base_offset {
            return Ok(());
        }
        Err(self.fault(format!("the last offset {last_offset} is below the base offset {base_offset}")))
    }
}

/// Returns the base offset passed by the caller, or the one in the file's name.
fn base_offset_for(path: &Path, given: Option<i64>) -> Result<i64> {
    let from_name = || path.file_name().and_then(|name| name.to_str()).and_then(base_offset_of_name);
    given.or_else(from_name).ok_or_else(|| {
        let message = "the file is not named after the segment's base offset: pass base_offset";
        Error::argument(message).with_path(path)
    })
}

/// Returns `offset − base_offset` as stored in an index.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] if it is not in 0 to 2³¹ − 1 (Kafka's `IndexOffsetOverflowException`).
fn relative_offset(offset: i64, base_offset: i64) -> Result<i32> {
    let fault =
        || Error::argument(format!("offset {offset} is out of the range of an index with base offset {base_offset}"));
    let relative = offset.checked_sub(base_offset).filter(|relative| *relative >= 0).ok_or_else(fault)?;
    i32::try_from(relative).map_err(|_| fault())
}

/// Reads the big-endian numbers of an entry in order.
struct EntryFields<'a>(&'a [u8]);

impl EntryFields<'_> {
    fn array<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk::<N>() {
            Some((head, rest)) => {
                self.0 = rest;
                *head
            }
            None => [0; N],
        }
    }

    fn i16(&mut self) -> i16 {
        i16::from_be_bytes(self.array())
    }

    fn i32(&mut self) -> i32 {
        i32::from_be_bytes(self.array())
    }

    fn i64(&mut self) -> i64 {
        i64::from_be_bytes(self.array())
    }
}

/// Concatenates big-endian numbers to an entry.
fn join<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut entry = [0; N];
    for (place, byte) in entry.iter_mut().zip(parts.iter().flat_map(|part| part.iter())) {
        *place = *byte;
    }
    entry
}
