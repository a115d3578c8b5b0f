//! [`CompressedSets`]: what may be a message inside a damaged set (R14).

use std::ops::Range;

use super::candidate::{CandidateBounds, HEAD_LEN, compressed_set};
use super::{HOPS, extent};
use crate::error::Result;
use crate::format::header::BatchHeader;
use crate::io::{ChunkCache, ReadAt};

/// The compressed sets of magic 0 or 1 that begin with the damaged batch.
#[derive(Default)]
pub(super) struct CompressedSets(Vec<BatchHeader>);

impl CompressedSets {
    /// Follows sizes from the start of a range, where the damaged batch is.
    ///
    /// # Errors
    /// I/O errors.
    pub(super) fn find(
        source: &dyn ReadAt,
        hops: &mut ChunkCache,
        range: Range<u64>,
        bounds: &CandidateBounds,
    ) -> Result<Self> {
        let (mut sets, mut at) = (Vec::new(), range.start);
        while sets.len() < HOPS && at < range.end {
            let Some(set) = compressed_set(hops.bytes_from(source, at, HEAD_LEN)?, at, bounds) else { break };
            at = extent(&set).1;
            sets.push(set);
        }
        Ok(Self(sets))
    }

    /// Whether a batch may be a message of a set: it is in its bytes, and not after its offsets.
    pub(super) fn may_have(&self, header: &BatchHeader) -> bool {
        header.magic < 2
            && self.0.iter().any(|set| {
                let (start, end) = extent(set);
                let is_inside = start < header.position && header.position < end;
                is_inside && header.stored_base_offset < set.next_offset()
            })
    }
}
