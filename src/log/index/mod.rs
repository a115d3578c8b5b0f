//! The indexes beside a segment: files of entries of one size, in the order of the log.
//!
//! | file | entry | module |
//! |---|---|---|
//! | `.index` | last offset of a batch → its position | `offset` |
//! | `.timeindex` | largest timestamp so far → offset | `time` |
//! | `.txnindex` | an aborted transaction | `transaction` |
//!
//! Offset and time index are sparse: a batch gets an entry when more than `index.interval.bytes` lie between it and the batch
//! that got the last one (`sparse`). A broker allocates both at full size, filled with zeros, and trims them on roll and
//! clean shutdown; those of a running or killed broker end in zeros. An entry whose relative offset is 0, but the first, can't
//! be: entries end there, as for `kafka-dump-log`. Where all of several entries are zero the index is empty (`kafka-dump-log`
//! lists one).
//!
//! Files are read by small positioned reads, a lookup is a binary search. The length is that of the file when it was opened;
//! where a file got shorter since, entries end there.
//!
//! Source: `AbstractIndex`, `OffsetIndex`, `TimeIndex`, `TransactionIndex` of Kafka.

mod offset;
mod sparse;
mod time;
mod transaction;

pub use offset::{OffsetEntry, OffsetIndex};
pub use sparse::{DEFAULT_INDEX_INTERVAL_BYTES, DEFAULT_MAX_INDEX_BYTES, IndexEntries, SegmentIndexer};
pub use time::{TimeEntry, TimeIndex};
pub use transaction::{AbortedTransaction, TransactionIndex};

use std::cmp::Ordering;
use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::io::PositionedFile;
use crate::num::{u64_of, usize_from_u64};
use crate::store::names::base_offset_of_name;

/// Entries read at a time where all are read.
const CHUNK_COUNT: usize = 4096;
/// Bytes at the end of an index that Kafka's binary search looks at first.
const WARM_LEN: u64 = 8192;

/// A file of entries of `N` bytes each.
#[derive(Debug)]
struct EntryFile<const N: usize> {
    file: PositionedFile,
    /// Bytes of the file when it was opened.
    len: u64,
}

impl<const N: usize> EntryFile<N> {
    const ENTRY_LEN: u64 = u64_of(N);

    fn open(path: &Path) -> Result<Self> {
        let file = PositionedFile::open(path)?;
        let len = file.len()?;
        Ok(Self { file, len })
    }

    /// Whole entries that the file has room for.
    fn slot_count(&self) -> u64 {
        self.len.checked_div(Self::ENTRY_LEN).unwrap_or(0)
    }

    /// Bytes after the last whole entry.
    fn odd_len(&self) -> u64 {
        self.len.checked_rem(Self::ENTRY_LEN).unwrap_or(0)
    }

    /// The bytes of one entry; `None` past the end.
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

    /// Hands the first `count` entries over in order, until the visitor says that it has enough or the file ends.
    fn visit(&self, count: u64, mut visit: impl FnMut(u64, [u8; N]) -> Result<bool>) -> Result<()> {
        let mut chunk = vec![0_u8; N.saturating_mul(CHUNK_COUNT.min(usize_from_u64(count)))];
        let mut slot = 0_u64;
        while slot < count {
            let wanted = N.saturating_mul(usize_from_u64(count.saturating_sub(slot)));
            let room = wanted.min(chunk.len());
            let found = self.read(chunk.get_mut(..room).unwrap_or_default(), slot)?;
            let (entries, _) = chunk.get(..found).unwrap_or_default().as_chunks::<N>();
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

    /// Entries before the zeros at the end. The first entry may be zero: a batch of one record at the base offset.
    ///
    /// Searched by halves: where entries are out of order, zeros in their middle may or may not be taken for the end.
    fn count_before_zeros(&self, is_zero: impl Fn([u8; N]) -> bool) -> Result<u64> {
        let slot_count = self.slot_count();
        let zero_at = |slot: u64| -> Result<bool> { Ok(slot > 0 && self.entry(slot)?.is_none_or(&is_zero)) };
        let Some(last) = slot_count.checked_sub(1) else { return Ok(0) };
        if !zero_at(last)? {
            return Ok(slot_count);
        }
        let (mut low, mut high) = (0, last); // low is not in the tail, high is
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

    /// The largest slot below `count` whose key is at most the target, searched in Kafka's order: first whether it is among
    /// the last 8192 bytes, then by halves.
    fn floor_slot(&self, count: u64, key_to_target: impl Fn([u8; N]) -> Ordering) -> Result<Option<(u64, [u8; N])>> {
        let Some(last) = count.checked_sub(1) else { return Ok(None) };
        // an entry that is gone since the file was opened is past any target
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

    /// The error for bytes after the last whole entry.
    fn check_len(&self) -> Result<()> {
        if self.odd_len() == 0 {
            return Ok(());
        }
        Err(self.fault(format!("{} bytes are not a multiple of the {N} bytes of an entry", self.len)))
    }

    /// Kafka's check of the last entry, zeros included.
    fn check_last_offset(&self, last_offset: i64, base_offset: i64) -> Result<()> {
        if last_offset >= base_offset {
            return Ok(());
        }
        Err(self.fault(format!("the last offset {last_offset} is below the base offset {base_offset}")))
    }
}

/// The base offset that was given, or that the file's name tells.
fn base_offset_for(path: &Path, given: Option<i64>) -> Result<i64> {
    let from_name = || path.file_name().and_then(|name| name.to_str()).and_then(base_offset_of_name);
    given.or_else(from_name).ok_or_else(|| {
        let message = "the file's name does not tell the segment's base offset: give base_offset";
        Error::argument(message).with_path(path)
    })
}

/// `offset − base_offset` as an index stores it.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] where it is not in 0 to 2³¹ − 1 (Kafka's `IndexOffsetOverflowException`).
fn relative_offset(offset: i64, base_offset: i64) -> Result<i32> {
    let fault =
        || Error::argument(format!("offset {offset} is out of the range of an index with base offset {base_offset}"));
    let relative = offset.checked_sub(base_offset).filter(|relative| *relative >= 0).ok_or_else(fault)?;
    i32::try_from(relative).map_err(|_| fault())
}

/// The big-endian numbers of an entry, in order.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
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

/// Puts big-endian numbers one after the other into an entry.
fn join<const N: usize>(parts: &[&[u8]]) -> [u8; N] {
    let mut entry = [0; N];
    for (place, byte) in entry.iter_mut().zip(parts.iter().flat_map(|part| part.iter())) {
        *place = *byte;
    }
    entry
}
