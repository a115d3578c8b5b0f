//! [`LatestKeys`]: which record is the last one with its key, exactly and within bounded memory.
//!
//! A broker keeps the MD5 of each key and takes two keys with the same hash for one; here keys are compared. They are
//! held in one map where they fit. Where they don't, keys are spread by hash over files, each of which fits
//! ([`spill`](super::spill)).

use std::collections::HashMap;
use std::path::Path;

use super::spill::Spill;
use crate::error::{Error, Result};

/// What an entry of the map takes beside the key's bytes: two words of the key, the offset, the map's own, and the room
/// that a map keeps free.
const ENTRY_LEN: usize = 64;
/// Most files that keys are spread over.
const MAX_PARTS: usize = 256;

/// A record with a key, as the cleaner meets it.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyedRecord<'a> {
    pub(super) key: &'a [u8],
    pub(super) offset: i64,
    /// Whether the record may supersede others; one that was cleaned before can only be superseded.
    pub(super) is_dirty: bool,
}

/// Takes the records in their order and says whether it wants more.
pub(super) type Sink<'a> = &'a mut dyn FnMut(KeyedRecord<'_>) -> Result<bool>;

/// Hands all keyed records to a sink, the same ones in the same order at each call. Returns the share of the log that
/// was walked when the sink had enough, in thousandths.
pub(super) type Walk<'a> = &'a mut dyn FnMut(Sink<'_>) -> Result<u64>;

/// Knows the last offset of each key.
#[derive(Debug)]
pub(super) enum LatestKeys {
    Memory(KeyMap),
    Spilled(Spill),
}

impl LatestKeys {
    /// Walks the log, once where all keys fit `max_bytes`. `work` is a directory for temporary files.
    ///
    /// # Errors
    /// Those of the walk and of writing; [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where the
    /// keys are more than 256 times what fits.
    pub(super) fn build(walk: Walk<'_>, max_bytes: usize, work: &Path) -> Result<Self> {
        let mut map = KeyMap::new(max_bytes);
        let mut is_full = false;
        let walked = walk(&mut |record| {
            is_full = !map.take(record);
            Ok(!is_full)
        })?;
        if !is_full {
            return Ok(Self::Memory(map));
        }
        drop(map);
        // as many bytes of keys again in the rest of the log, and room for parts that get more than others
        let expected = 1000_u64.checked_div(walked.max(1)).unwrap_or(1).saturating_mul(2);
        let mut parts = usize::try_from(expected.next_power_of_two()).unwrap_or(MAX_PARTS).clamp(2, MAX_PARTS);
        loop {
            if let Some(spill) = Spill::build(walk, parts, max_bytes, work)? {
                return Ok(Self::Spilled(spill));
            }
            if parts == MAX_PARTS {
                let what = format!("the keys do not fit {MAX_PARTS} times max_map_bytes = {max_bytes}: raise it");
                return Err(Error::argument(what));
            }
            parts = parts.saturating_mul(4).min(MAX_PARTS);
        }
    }

    /// Whether no later record has the key of this one. To be asked for each record of the walk, in its order.
    pub(super) fn is_latest(&mut self, key: &[u8], offset: i64) -> Result<bool> {
        match self {
            Self::Memory(map) => Ok(map.is_latest(key, offset)),
            Self::Spilled(spill) => spill.is_latest(key),
        }
    }

    /// How many parts the keys were spread over; 1 in memory.
    pub(super) fn part_count(&self) -> usize {
        match self {
            Self::Memory(_) => 1,
            Self::Spilled(spill) => spill.part_count(),
        }
    }
}

/// Keys and their last offsets.
#[derive(Debug)]
pub(super) struct KeyMap {
    offsets: HashMap<Box<[u8]>, i64>,
    used_bytes: usize,
    max_bytes: usize,
}

impl KeyMap {
    pub(super) fn new(max_bytes: usize) -> Self {
        Self { offsets: HashMap::new(), used_bytes: 0, max_bytes }
    }

    /// Notes a record; `false` where there is no room for its key.
    pub(super) fn take(&mut self, record: KeyedRecord<'_>) -> bool {
        if !record.is_dirty {
            return true;
        }
        if let Some(offset) = self.offsets.get_mut(record.key) {
            *offset = record.offset;
            return true;
        }
        let used = self.used_bytes.saturating_add(record.key.len()).saturating_add(ENTRY_LEN);
        // one key always has room: a bound below it would stop everything
        if used > self.max_bytes && !self.offsets.is_empty() {
            return false;
        }
        self.used_bytes = used;
        self.offsets.insert(record.key.into(), record.offset);
        true
    }

    pub(super) fn is_latest(&self, key: &[u8], offset: i64) -> bool {
        self.offsets.get(key).is_none_or(|&latest| offset >= latest)
    }
}
