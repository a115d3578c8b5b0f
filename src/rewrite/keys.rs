//! [`KeyMap`]: keys and their last offsets, in memory.

use std::collections::HashMap;

use crate::error::Result;

/// Approximate bytes of a map entry besides the key's bytes: two words of the key, the offset, the map's overhead, and
/// its free capacity.
const ENTRY_LEN: usize = 64;

/// A record with a key, in log order.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyedRecord<'a> {
    pub(super) key: &'a [u8],
    pub(super) offset: i64,
    /// Whether the record may supersede others; one that was compacted before can only be superseded.
    pub(super) is_dirty: bool,
}

/// Receives the records in order and returns whether it wants more.
pub(super) type RecordReceiver<'a> = &'a mut dyn FnMut(KeyedRecord<'_>) -> Result<bool>;

/// Passes all records with keys to a sink, the same ones in the same order at each call. Returns the share of the log
/// that was read when the sink stopped, in thousandths.
pub(super) type KeyWalk<'a> = &'a mut dyn FnMut(RecordReceiver<'_>) -> Result<u64>;

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

    /// Adds a record. Returns `false` if its key does not fit.
    pub(super) fn take(&mut self, record: KeyedRecord<'_>) -> bool {
        if !record.is_dirty {
            return true;
        }
        if let Some(offset) = self.offsets.get_mut(record.key) {
            *offset = record.offset;
            return true;
        }
        let used = self.used_bytes.saturating_add(record.key.len()).saturating_add(ENTRY_LEN);
        // one key is always accepted: otherwise a limit below its size would make compaction impossible
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
