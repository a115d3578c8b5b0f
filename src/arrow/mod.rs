//! Columns: batches decoded into Arrow batches (feature `arrow`).

mod columns;
mod scan;
mod schema;

#[cfg(feature = "python")]
pub(crate) use scan::Reader;
pub use scan::{ArrowScan, ScanOptions, ScanSource};
pub use schema::{Column, TimestampUnit};
