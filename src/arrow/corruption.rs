//! Corruption as rows: the `error` column of `on_corrupt = Report`. [`ERROR_FIELDS`] describes its fields.
//!
//! [`ERROR_FIELDS`]: crate::arrow::column_table::ERROR_FIELDS

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatchOptions, StringArray, StructArray, new_null_array};
use arrow_schema::{ArrowError, SchemaRef};

use crate::arrow::column_table::ERROR_COLUMN;
use crate::arrow::origin::Origin;
use crate::arrow::schema::error_fields;
use crate::arrow::source::ScanSource;
use crate::error::{Error, Result};

/// Corrupt bytes that a scan skipped.
#[derive(Debug)]
pub(crate) struct SkippedBytes {
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    pub(crate) origin: Origin,
    pub(crate) position: u64,
    pub(crate) length: u64,
    /// The offset after the last good batch, and the base offset of the next good batch.
    pub(crate) offsets: (Option<i64>, Option<i64>),
    /// Whether these bytes are a truncated batch or zeros at the end of the input.
    pub(crate) is_cut: bool,
}

impl SkippedBytes {
    /// An error in a file of which no bytes were skipped.
    pub(crate) fn whole(source: &ScanSource, error: Error) -> Self {
        let (kind, position) = (error.kind().name(), error.position().byte.unwrap_or(0));
        let message = source.locate(error).to_string();
        let origin = source.origin.clone();
        Self { kind, message, origin, position, length: 0, offsets: (None, None), is_cut: false }
    }

    /// First and last offset lost; `None` if none were lost or one of the two is unknown.
    fn lost(&self) -> Option<(i64, i64)> {
        let (Some(first), Some(next)) = self.offsets else { return None };
        (next > first).then(|| (first, next.saturating_sub(1)))
    }

    pub(crate) fn offsets_lost(&self) -> u64 {
        self.lost().map_or(0, |(first, last)| last.abs_diff(first).saturating_add(1))
    }

    pub(crate) fn first_offset(&self) -> Option<i64> {
        if self.offsets.1.is_none() { self.offsets.0 } else { self.lost().map(|(first, _)| first) }
    }

    pub(crate) fn last_offset(&self) -> Option<i64> {
        self.lost().map(|(_, last)| last)
    }

    /// An Arrow batch of one row.
    pub(crate) fn row(&self, schema: &SchemaRef) -> Result<arrow_array::RecordBatch> {
        let columns = schema.fields().iter().map(|field| match field.name().as_str() {
            name if name == ERROR_COLUMN.name => self.column(),
            "topic" => Ok(text(self.origin.topic.as_deref())),
            "segment" => Ok(text(self.origin.segment.as_deref())),
            "partition" => {
                let partition: ArrayRef = Arc::new(Int32Array::from(vec![self.origin.partition]));
                Ok(partition)
            }
            "position" => Ok(number(i64::try_from(self.position).ok())),
            _ => Ok(new_null_array(field.data_type(), 1)),
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(1));
        arrow_array::RecordBatch::try_new_with_options(Arc::clone(schema), columns, &options).map_err(|e| invalid(&e))
    }

    /// The `error` column of one row.
    pub(crate) fn column(&self) -> Result<ArrayRef> {
        let columns = vec![
            text(Some(self.kind)),
            text(Some(&self.message)),
            text(self.origin.segment.as_deref()),
            number(i64::try_from(self.position).ok()),
            number(i64::try_from(self.length).ok()),
            number(self.first_offset()),
            number(self.last_offset()),
        ];
        let column = StructArray::try_new(error_fields(), columns, None).map_err(|error| invalid(&error))?;
        Ok(Arc::new(column))
    }
}

/// The `error` column of valid rows: all null.
pub(crate) fn no_errors(rows: usize) -> ArrayRef {
    Arc::new(StructArray::new_null(error_fields(), rows))
}

fn text(text: Option<&str>) -> ArrayRef {
    Arc::new(StringArray::from(vec![text]))
}

fn number(number: Option<i64>) -> ArrayRef {
    Arc::new(Int64Array::from(vec![number]))
}

fn invalid(error: &ArrowError) -> Error {
    Error::argument(error.to_string())
}
