//! Rewrites a partition directory into a new one: compaction, filtering, recompression.
//!
//! ```text
//! source/                          OUT.tmp-<n>/                     OUT/
//!   segments, indexes      ─►        segments, indexes      ─►        all of it, by one rename
//!   snapshots, epochs                snapshots, epochs
//! ```
//!
//! The source is never written. Segments are read batch by batch, so memory holds one batch and its records, and for
//! compaction also the keys. Retained records keep their offsets, timestamps, producers and leader epochs. Indexes are
//! rebuilt by [`SegmentIndexer`](crate::log::index::SegmentIndexer). Segments keep their modification time, which
//! replaces the timestamp if records have none.
//!
//! The new directory is built next to the target and renamed when it is complete. An error or a crash before that
//! leaves no target.

mod compact;
mod filter;
mod keys;
mod latest;
mod output;
mod recode;
pub(crate) mod source;
mod spill;
mod survey;
mod transactions;

pub use compact::{CompactDropped, CompactOptions, CompactReport, compact};
pub use filter::{FilterOptions, FilterReport, filter};
pub use recode::{RewriteDropped, RewriteOptions, RewriteReport, rewrite};

use crate::error::Result;
use crate::format::attributes::TimestampType;
use crate::format::batch::Batch;
use crate::format::builder::BatchBuilder;
use crate::format::frame::batches;
use crate::log::index::{DEFAULT_INDEX_INTERVAL_BYTES, DEFAULT_MAX_INDEX_BYTES};

/// Settings for the indexes of new segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IndexOptions {
    /// Bytes between two entries, Kafka's `index.interval.bytes`. Default 4096.
    pub index_interval_bytes: u64,
    /// Maximum bytes of an index, Kafka's `segment.index.bytes`. Default 10 MiB.
    pub max_index_bytes: u64,
}

impl Default for IndexOptions {
    fn default() -> Self {
        Self { index_interval_bytes: DEFAULT_INDEX_INTERVAL_BYTES, max_index_bytes: DEFAULT_MAX_INDEX_BYTES }
    }
}

/// Numbers of segments, batches, records and bytes that were read or written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Number of segments.
    pub segments: u64,
    /// Number of batches. Counts a message of magic 0 or 1 outside a compressed message set as one.
    pub batches: u64,
    /// Number of records, including control records. For a batch dropped without decoding, the record count of its
    /// header.
    pub records: u64,
    /// Number of bytes of the batches.
    pub bytes: u64,
}

impl Counts {
    fn add_batch(&mut self, records: u64, bytes: usize) {
        self.batches = self.batches.saturating_add(1);
        self.records = self.records.saturating_add(records);
        self.bytes = self.bytes.saturating_add(crate::num::u64_of(bytes));
    }
}

/// Appends an empty batch without a producer for the offsets at the end of `batch` that the batches in `kept` do not
/// cover, so that the log keeps its end offset.
fn keep_end(batch: &Batch<'_>, kept: &mut Vec<u8>) -> Result<()> {
    let end = batches(kept).last().transpose()?.map(|last| last.next_offset());
    if end.is_some_and(|end| end >= batch.next_offset()) {
        return Ok(());
    }
    BatchBuilder::new()
        .base_offset(end.unwrap_or_else(|| batch.last_offset()))
        .timestamp_type(batch.timestamp_type().unwrap_or(TimestampType::CreateTime))
        .partition_leader_epoch(batch.partition_leader_epoch())
        .finish_empty_into(batch.last_offset(), batch.max_timestamp(), kept)
}
