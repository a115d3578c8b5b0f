//! Columns: batches decoded into Arrow batches, and Arrow batches encoded into batches (feature `arrow`).

mod columns;
mod encode;
mod scan;
mod schema;

pub use encode::{EncodeOptions, EncodedBatch, EncodedBatches};
pub use scan::{ArrowScan, ScanOptions, ScanSource};
pub use schema::{Column, TimestampUnit};
