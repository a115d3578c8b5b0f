//! [`LatestKeys`]: determines which record is the last one with its key, exactly and in bounded memory.
//!
//! A broker stores the MD5 of each key and treats keys with the same hash as equal; here, keys are compared. If they
//! fit in memory, they are in one map. Otherwise, they are distributed by hash over files whose keys each fit
//! ([`spill`](super::spill)).

use std::path::Path;

use super::keys::{KeyMap, KeyWalk};
use super::spill::Spill;
use crate::error::{Error, Result};

/// Maximum number of files that keys are distributed over.
const MAX_PARTS: usize = 256;

/// The last offset of each key.
#[derive(Debug)]
pub(super) enum LatestKeys {
    Memory(KeyMap),
    Spilled(Spill),
}

impl LatestKeys {
    /// Reads the log, only once if all keys fit in `max_bytes`. `work` is a directory for temporary files.
    ///
    /// # Errors
    /// If the walk or writing fails; [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if the keys
    /// exceed 256 times `max_bytes`.
    pub(super) fn build(walk: KeyWalk<'_>, max_bytes: usize, work: &Path) -> Result<Self> {
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
        // assumes that the rest of the log has keys at the same rate; the factor 2 allows for uneven parts
        let expected = 1000_u64.checked_div(walked.max(1)).unwrap_or(1).saturating_mul(2);
        let mut parts = usize::try_from(expected.next_power_of_two()).unwrap_or(MAX_PARTS).clamp(2, MAX_PARTS);
        loop {
            if let Some(spill) = Spill::build(walk, parts, max_bytes, work)? {
                return Ok(Self::Spilled(spill));
            }
            if parts == MAX_PARTS {
                let what =
                    format!("the keys exceed {MAX_PARTS} times max_map_bytes = {max_bytes}; raise max_map_bytes");
                return Err(Error::argument(what));
            }
            parts = parts.saturating_mul(4).min(MAX_PARTS);
        }
    }

    /// Whether no later record has the key of this one. Must be called for each record of the walk, in order.
    pub(super) fn is_latest(&mut self, key: &[u8], offset: i64) -> Result<bool> {
        match self {
            Self::Memory(map) => Ok(map.is_latest(key, offset)),
            Self::Spilled(spill) => spill.is_latest(key),
        }
    }

    /// Number of parts that the keys were split into; 1 if they fit in memory.
    pub(super) fn part_count(&self) -> usize {
        match self {
            Self::Memory(_) => 1,
            Self::Spilled(spill) => spill.part_count(),
        }
    }
}
