//! [`Total`]: the number of records and the extremes of their offsets, from batch headers.
//!
//! Only the headers are read, so a corrupt payload is not noticed. A header is exact unless compaction has removed
//! records: the number of records is always right in format v2, the first and last offset only if there are as many
//! records as offsets. Other batches, such as compressed sets of formats v0 and v1, are decoded.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use serde::{Deserialize, Serialize};

use crate::arrow::{ArrowScan, BatchColumn, BatchScan, Column, ScanOptions, ScanSource, ScanStats};
use crate::error::Result;
use crate::plan::arrow_error::arrow_error;

/// A value that a task computes of all its rows instead of returning them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Total {
    /// The number of rows.
    Count,
    /// The smallest offset.
    MinOffset,
    /// The largest offset.
    MaxOffset,
}

impl Total {
    /// The total with a name: `count`, `min_offset` or `max_offset`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "count" => Some(Self::Count),
            "min_offset" => Some(Self::MinOffset),
            "max_offset" => Some(Self::MaxOffset),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::MinOffset => "min_offset",
            Self::MaxOffset => "max_offset",
        }
    }
}

/// The schema of the row with some totals.
pub(crate) fn schema_of(totals: &[Total]) -> SchemaRef {
    Arc::new(Schema::new(
        totals.iter().map(|total| Field::new(total.name(), DataType::Int64, true)).collect::<Vec<_>>(),
    ))
}

/// The totals of what was read so far.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    rows: u64,
    offsets: Option<(i64, i64)>,
    pub(crate) stats: ScanStats,
}

impl Totals {
    /// Adds the records of some sources, of which `options` excludes none by offset, time or transaction.
    ///
    /// # Errors
    /// Corrupt headers; corrupt batches among those that are decoded; I/O errors.
    pub(crate) fn add_headers(
        &mut self,
        sources: &[ScanSource],
        totals: &[Total],
        options: &ScanOptions,
    ) -> Result<()> {
        let needs_offsets = totals.iter().any(|total| *total != Total::Count);
        let columns = [
            BatchColumn::Position,
            BatchColumn::Size,
            BatchColumn::BaseOffset,
            BatchColumn::LastOffset,
            BatchColumn::RecordCount,
            BatchColumn::IsControl,
        ];
        for source in sources {
            let mut scan = BatchScan::new(vec![source.clone()], columns.to_vec(), options.clone());
            for rows in scan.by_ref() {
                for header in headers_of(&rows?) {
                    if header.is_control && !options.include_control {
                        continue;
                    }
                    match header.exact(needs_offsets) {
                        Some((count, offsets)) => {
                            self.add(count, offsets);
                            self.stats.records = self.stats.records.saturating_add(count);
                        }
                        None => self.add_decoded(vec![source.clone().within(header.start, header.end)], options)?,
                    }
                }
            }
            // the rows of this scan are batches
            self.stats = self.stats.plus(&ScanStats { records: 0, ..scan.stats() });
        }
        Ok(())
    }

    /// Adds the records of some sources, which are decoded.
    ///
    /// # Errors
    /// Those of the scan.
    pub(crate) fn add_decoded(&mut self, sources: Vec<ScanSource>, options: &ScanOptions) -> Result<()> {
        let mut scan = ArrowScan::new(sources, ScanOptions { columns: vec![Column::Offset], ..options.clone() });
        for rows in scan.by_ref() {
            self.add_rows(&rows?);
        }
        self.stats = self.stats.plus(&scan.stats());
        Ok(())
    }

    fn add_rows(&mut self, rows: &RecordBatch) {
        let Some(offsets) = rows.columns().first().map(AsArray::as_primitive::<Int64Type>) else { return };
        let extremes = arrow_extremes(offsets);
        self.add(crate::num::u64_of(rows.num_rows()), extremes);
    }

    fn add(&mut self, count: u64, offsets: Option<(i64, i64)>) {
        self.rows = self.rows.saturating_add(count);
        self.offsets = match (self.offsets, offsets) {
            (Some((low, high)), Some((first, last))) => Some((low.min(first), high.max(last))),
            (one, other) => one.or(other),
        };
    }

    /// The row with some totals.
    pub(crate) fn row(&self, totals: &[Total]) -> Result<RecordBatch> {
        let value = |total: &Total| match total {
            Total::Count => i64::try_from(self.rows).ok(),
            Total::MinOffset => self.offsets.map(|(low, _)| low),
            Total::MaxOffset => self.offsets.map(|(_, high)| high),
        };
        let column = |total: &Total| -> ArrayRef { Arc::new(Int64Array::from(vec![value(total)])) };
        let one = RecordBatchOptions::new().with_row_count(Some(1));
        RecordBatch::try_new_with_options(schema_of(totals), totals.iter().map(column).collect(), &one)
            .map_err(|error| arrow_error(&error))
    }
}

fn arrow_extremes(offsets: &Int64Array) -> Option<(i64, i64)> {
    let values = offsets.values();
    values.iter().min().copied().zip(values.iter().max().copied())
}

/// What is needed of a batch's header.
struct Header {
    start: u64,
    end: u64,
    base_offset: Option<i64>,
    last_offset: i64,
    record_count: Option<i32>,
    is_control: bool,
}

impl Header {
    /// The number of records and their first and last offset, if the header has them.
    fn exact(&self, needs_offsets: bool) -> Option<(u64, Option<(i64, i64)>)> {
        let count = self.record_count.filter(|count| *count >= 0)?;
        if count == 0 || !needs_offsets {
            return Some((u64::from(count.unsigned_abs()), None));
        }
        let base = self.base_offset?;
        let is_full = self.last_offset.checked_sub(base)?.checked_add(1) == Some(i64::from(count));
        is_full.then(|| (u64::from(count.unsigned_abs()), Some((base, self.last_offset))))
    }
}

fn headers_of(rows: &RecordBatch) -> Vec<Header> {
    let [position, size, base_offset, last_offset, count, is_control] = rows.columns() else { return Vec::new() };
    let (positions, sizes) = (position.as_primitive::<Int64Type>(), size.as_primitive::<Int32Type>());
    let (bases, lasts) = (base_offset.as_primitive::<Int64Type>(), last_offset.as_primitive::<Int64Type>());
    let (counts, controls) = (count.as_primitive::<Int32Type>(), is_control.as_boolean());
    let header = |row: usize| {
        let start = positions.value(row).unsigned_abs();
        Header {
            start,
            end: start.saturating_add(u64::from(sizes.value(row).unsigned_abs())),
            base_offset: bases.is_valid(row).then(|| bases.value(row)),
            last_offset: lasts.value(row),
            record_count: counts.is_valid(row).then(|| counts.value(row)),
            is_control: controls.value(row),
        }
    };
    (0..rows.num_rows()).map(header).collect()
}
