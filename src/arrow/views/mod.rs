//! Scans with one row per batch ([`BatchScan`]) or segment ([`SegmentScan`]), and sums over batches ([`sum_batches`])
//! and records ([`sum_records`]).

mod batches;
mod record_sums;
mod segments;
mod sums;
#[cfg(feature = "plan")]
mod visit;

pub use batches::BatchScan;
#[cfg(feature = "python")]
pub(crate) use record_sums::sum_records_watched;
pub use record_sums::{RecordSums, sum_records};
pub use segments::SegmentScan;
#[cfg(feature = "python")]
pub(crate) use sums::sum_watched;
pub use sums::{BatchGroup, BatchKey, BatchSums, sum_batches};
#[cfg(feature = "plan")]
pub(crate) use visit::{Visited, visit_records};

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int8Array, Int16Array, Int32Array, Int64Array, RecordBatchOptions,
    StringArray, TimestampMicrosecondArray, TimestampMillisecondArray,
};
use arrow_schema::SchemaRef;

use crate::arrow::schema::TimestampUnit;
use crate::error::{Error, Result};
use crate::format::header::NO_TIMESTAMP;

/// Arrow batches that are ready, and the error after them.
#[derive(Default)]
struct Outbox {
    ready: VecDeque<arrow_array::RecordBatch>,
    failed: Option<Error>,
}

impl Outbox {
    fn next(&mut self) -> Option<Result<arrow_array::RecordBatch>> {
        self.ready.pop_front().map(Ok).or_else(|| self.failed.take().map(Err))
    }
}

/// The values of a column, one per row.
enum ColumnValues {
    Text(Vec<Option<Arc<str>>>),
    Bool(Vec<Option<bool>>),
    Int8(Vec<Option<i8>>),
    Int16(Vec<Option<i16>>),
    Int32(Vec<Option<i32>>),
    Int64(Vec<Option<i64>>),
    Float(Vec<Option<f64>>),
    /// Milliseconds since the epoch; −1 for none.
    Time(Vec<Option<i64>>),
}

impl ColumnValues {
    /// Adds the values of another part of the same column.
    fn append(&mut self, other: Self) {
        match (self, other) {
            (Self::Text(values), Self::Text(more)) => values.extend(more),
            (Self::Bool(values), Self::Bool(more)) => values.extend(more),
            (Self::Int8(values), Self::Int8(more)) => values.extend(more),
            (Self::Int16(values), Self::Int16(more)) => values.extend(more),
            (Self::Int32(values), Self::Int32(more)) => values.extend(more),
            (Self::Float(values), Self::Float(more)) => values.extend(more),
            (Self::Int64(values), Self::Int64(more)) | (Self::Time(values), Self::Time(more)) => values.extend(more),
            _ => {} // a column has one type
        }
    }

    fn into_array(self, unit: TimestampUnit) -> ArrayRef {
        match self {
            Self::Text(values) => Arc::new(StringArray::from_iter(values)),
            Self::Bool(values) => Arc::new(BooleanArray::from(values)),
            Self::Int8(values) => Arc::new(Int8Array::from(values)),
            Self::Int16(values) => Arc::new(Int16Array::from(values)),
            Self::Int32(values) => Arc::new(Int32Array::from(values)),
            Self::Int64(values) => Arc::new(Int64Array::from(values)),
            Self::Float(values) => Arc::new(Float64Array::from(values)),
            Self::Time(values) => time_array(values, unit),
        }
    }
}

/// Timestamps; null for none, and for those that do not fit microseconds if `unit` is microseconds.
fn time_array(values: Vec<Option<i64>>, unit: TimestampUnit) -> ArrayRef {
    let values = values.into_iter().map(|value| value.filter(|value| *value != NO_TIMESTAMP));
    match unit {
        TimestampUnit::Millisecond => Arc::new(values.collect::<TimestampMillisecondArray>().with_timezone("UTC")),
        TimestampUnit::Microsecond => {
            let micros = values.map(|value| value.and_then(|value| value.checked_mul(1000)));
            Arc::new(micros.collect::<TimestampMicrosecondArray>().with_timezone("UTC"))
        }
    }
}

fn arrow_batch(schema: &SchemaRef, columns: Vec<ArrayRef>, rows: usize) -> Result<arrow_array::RecordBatch> {
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    arrow_array::RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options)
        .map_err(|error| Error::argument(error.to_string()))
}
