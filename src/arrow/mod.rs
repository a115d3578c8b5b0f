//! Kafka batches to Arrow batches and back (feature `arrow`).

mod ahead;
mod binary_views;
mod byte_columns;
pub(crate) mod column_table;
mod columns;
mod corruption;
mod decoded;
mod deleted;
mod encode;
mod ending;
mod header_column;
mod interrupt;
mod options;
mod origin;
mod parallel;
mod records;
mod runs;
mod scan;
mod schema;
mod source;
mod stats;
mod transactions;
mod units;
mod views;
mod walk;
mod workers;

pub use column_table::{BatchColumn, Column, ColumnDefinition, ColumnType, SegmentColumn, View};
#[cfg(feature = "plan")]
pub(crate) use encode::BytesColumn;
#[cfg(feature = "jvm")]
pub(crate) use encode::RowPacker;
pub use encode::{EncodeOptions, EncodedBatch, EncodedBatches};
pub use options::{Decoder, Isolation, OnCorrupt, ScanOptions};
#[cfg(any(feature = "plan", feature = "text"))]
pub(crate) use origin::Origin;
pub use parallel::{ParallelScan, Parallelism};
pub use scan::ArrowScan;
pub use schema::TimestampUnit;
pub use source::ScanSource;
pub use stats::ScanStats;
pub use views::{BatchGroup, BatchKey, BatchScan, BatchSums, RecordSums, SegmentScan, sum_batches, sum_records};
#[cfg(feature = "python")]
pub(crate) use views::{sum_records_watched, sum_watched};
#[cfg(feature = "plan")]
pub(crate) use {
    columns::microseconds_of,
    views::{Visited, visit_records},
};
#[cfg(feature = "text")]
pub(crate) use {
    corruption::SkippedBytes,
    interrupt::ProgressCallback,
    walk::{BatchContext, SourceWalk, Step},
};
