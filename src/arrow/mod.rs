//! Columns: batches decoded into Arrow batches (feature `arrow`).

mod columns;
mod scan;
mod schema;

pub use scan::{ArrowScan, ScanOptions, ScanSource};
pub use schema::{Column, TimestampUnit};
