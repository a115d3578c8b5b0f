//! Kafka batches to Arrow batches and back (feature `arrow`).

mod binary_views;
mod columns;
mod decoded;
mod encode;
mod fault;
mod options;
mod parallel;
mod runs;
mod scan;
mod schema;
mod source;
mod stats;
mod transactions;
mod values;
mod views;
mod walk;
mod watch;
mod workers;

pub use encode::{EncodeOptions, EncodedBatch, EncodedBatches};
pub use options::{Decoder, Isolation, OnCorrupt, ScanOptions};
pub use parallel::{ParallelScan, Parallelism};
pub use scan::ArrowScan;
pub use schema::{Column, TimestampUnit};
pub use source::ScanSource;
pub use stats::ScanStats;
#[cfg(feature = "python")]
pub(crate) use views::sum_watched;
pub use views::{BatchColumn, BatchGroup, BatchKey, BatchScan, BatchSums, SegmentColumn, SegmentScan, sum_batches};
#[cfg(feature = "text")]
pub(crate) use {
    columns::Origin,
    fault::Fault,
    walk::{Given, Step, Walk},
    watch::Look,
};
