//! [`Total`]: the number of records, the extremes of their offsets and the largest timestamp, from batch headers.
//!
//! Only the headers are read, so a corrupt payload is not noticed. A header of format v2 has these totals:
//!
//! | total | exact |
//! |---|---|
//! | number of records | always; compaction writes the number of those that remain |
//! | first and last offset | if there are as many records as offsets; compaction keeps the old ones |
//! | largest timestamp | always; brokers and compaction compute it of the records, or set it for all of them |
//!
//! The smallest timestamp is not in a header: the base timestamp is that of the first record, or a delete horizon. In
//! formats v0 and v1, a header has at most one record, or describes a compressed set, and its largest timestamp may be
//! wrong. Batches whose header is not exact are decoded: one after the other, except those that other headers show to
//! be within the extremes.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, ArrayRef, Int64Array, RecordBatch, RecordBatchOptions, TimestampMicrosecondArray};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use serde::{Deserialize, Serialize};

use crate::arrow::{ArrowScan, BatchColumn, BatchScan, Column, ScanOptions, ScanSource, ScanStats};
use crate::error::Result;
use crate::plan::arrow_error::arrow_error;

const UTC: &str = "UTC";

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
    /// The largest timestamp, in microseconds since the epoch; −1000 if no record has one.
    MaxTimestamp,
}

impl Total {
    /// The total with a name: `count`, `min_offset`, `max_offset` or `max_timestamp`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "count" => Some(Self::Count),
            "min_offset" => Some(Self::MinOffset),
            "max_offset" => Some(Self::MaxOffset),
            "max_timestamp" => Some(Self::MaxTimestamp),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Count => "count",
            Self::MinOffset => "min_offset",
            Self::MaxOffset => "max_offset",
            Self::MaxTimestamp => "max_timestamp",
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Self::Count | Self::MinOffset | Self::MaxOffset => DataType::Int64,
            Self::MaxTimestamp => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        }
    }
}

/// The schema of the row with some totals.
pub(crate) fn schema_of(totals: &[Total]) -> SchemaRef {
    Arc::new(Schema::new(
        totals.iter().map(|total| Field::new(total.name(), total.data_type(), true)).collect::<Vec<_>>(),
    ))
}

/// What some totals need of a header.
#[derive(Debug, Clone, Copy)]
struct Needs {
    offsets: bool,
    timestamps: bool,
}

impl Needs {
    fn of(totals: &[Total]) -> Self {
        Self {
            offsets: totals.iter().any(|total| matches!(total, Total::MinOffset | Total::MaxOffset)),
            timestamps: totals.contains(&Total::MaxTimestamp),
        }
    }

    fn columns(self) -> Vec<Column> {
        let timestamp = self.timestamps.then_some(Column::Timestamp);
        [Column::Offset].into_iter().chain(timestamp).collect()
    }
}

/// The totals of what was read so far.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    rows: u64,
    offsets: Option<(i64, i64)>,
    /// In microseconds since the epoch.
    max_timestamp: Option<i64>,
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
        let needs = Needs::of(totals);
        for source in sources {
            let mut scan = BatchScan::new(vec![source.clone()], HeaderFields::COLUMNS.to_vec(), options.clone());
            let mut unclear = Unclear { source, options, needs, window: None, last: None };
            for rows in scan.by_ref() {
                for header in headers_of(&rows?) {
                    if options.include_control || !header.is_control {
                        unclear.add(header, self)?;
                    }
                }
            }
            unclear.finish(self)?;
            // the rows of this scan are batches
            self.stats = self.stats.plus(&ScanStats { records: 0, ..scan.stats() });
        }
        Ok(())
    }

    /// Adds the records of some sources, which are decoded.
    ///
    /// # Errors
    /// Those of the scan.
    pub(crate) fn add_decoded(
        &mut self,
        sources: Vec<ScanSource>,
        totals: &[Total],
        options: &ScanOptions,
    ) -> Result<()> {
        self.decode(sources, Needs::of(totals), options)
    }

    fn decode(&mut self, sources: Vec<ScanSource>, needs: Needs, options: &ScanOptions) -> Result<()> {
        let mut scan = ArrowScan::new(sources, ScanOptions { columns: needs.columns(), ..options.clone() });
        for rows in scan.by_ref() {
            self.add_rows(&rows?);
        }
        self.stats = self.stats.plus(&scan.stats());
        Ok(())
    }

    fn add_rows(&mut self, rows: &RecordBatch) {
        let offsets = rows.column_by_name("offset").and_then(|column| column.as_primitive_opt::<Int64Type>());
        let timestamps =
            rows.column_by_name("timestamp").and_then(|column| column.as_primitive_opt::<TimestampMicrosecondType>());
        let extremes = offsets.and_then(|offsets| {
            let values = offsets.values();
            values.iter().min().copied().zip(values.iter().max().copied())
        });
        let latest = timestamps.and_then(|timestamps| timestamps.iter().flatten().max());
        self.add(crate::num::u64_of(rows.num_rows()), extremes, latest);
    }

    fn add(&mut self, count: u64, offsets: Option<(i64, i64)>, timestamp: Option<i64>) {
        self.rows = self.rows.saturating_add(count);
        self.offsets = match (self.offsets, offsets) {
            (Some((low, high)), Some((first, last))) => Some((low.min(first), high.max(last))),
            (one, other) => one.or(other),
        };
        self.max_timestamp = self.max_timestamp.max(timestamp);
    }

    /// The row with some totals.
    pub(crate) fn row(&self, totals: &[Total]) -> Result<RecordBatch> {
        let whole = |value: Option<i64>| -> ArrayRef { Arc::new(Int64Array::from(vec![value])) };
        let column = |total: &Total| -> ArrayRef {
            match total {
                Total::Count => whole(i64::try_from(self.rows).ok()),
                Total::MinOffset => whole(self.offsets.map(|(low, _)| low)),
                Total::MaxOffset => whole(self.offsets.map(|(_, high)| high)),
                Total::MaxTimestamp => {
                    Arc::new(TimestampMicrosecondArray::from(vec![self.max_timestamp]).with_timezone(UTC))
                }
            }
        };
        let one = RecordBatchOptions::new().with_row_count(Some(1));
        RecordBatch::try_new_with_options(schema_of(totals), totals.iter().map(column).collect(), &one)
            .map_err(|error| arrow_error(&error))
    }
}

/// The batches of a source whose headers are not enough.
struct Unclear<'s> {
    source: &'s ScanSource,
    options: &'s ScanOptions,
    needs: Needs,
    /// Adjacent batches that one scan decodes.
    window: Option<Range<u64>>,
    /// A batch of which only the offsets are unknown, and that may have the largest one.
    last: Option<HeaderFields>,
}

impl Unclear<'_> {
    /// Adds a batch to the totals, or keeps it to be decoded.
    fn add(&mut self, header: HeaderFields, totals: &mut Totals) -> Result<()> {
        let Some(count) = header.count() else { return self.extend(&header, totals) };
        if count == 0 {
            return Ok(());
        }
        let timestamp = header.max_timestamp.filter(|_| header.magic == 2);
        let Some(base) = header.base_offset else { return self.extend(&header, totals) };
        if self.needs.timestamps && timestamp.is_none() {
            return self.extend(&header, totals);
        }
        totals.stats.records = totals.stats.records.saturating_add(count);
        if !self.needs.offsets || header.is_full(base, count) {
            totals.add(count, Some((base, header.last_offset)), timestamp);
            return Ok(());
        }
        totals.add(count, None, timestamp);
        // the offsets of the batch are within base and last_offset
        let is_first = totals.offsets.is_none_or(|(low, _)| base < low);
        if is_first || self.last.as_ref().is_some_and(|last| base <= last.last_offset) {
            return self.decode_offsets(header.start..header.end, totals);
        }
        self.last = Some(header);
        Ok(())
    }

    /// Decodes the batches that remain.
    fn finish(mut self, totals: &mut Totals) -> Result<()> {
        if let Some(window) = self.window.take() {
            let sources = vec![self.source.clone().within(window.start, window.end)];
            totals.decode(sources, self.needs, self.options)?;
        }
        let Some(last) = self.last.take() else { return Ok(()) };
        if totals.offsets.is_some_and(|(_, high)| high >= last.last_offset) {
            return Ok(());
        }
        self.decode_offsets(last.start..last.end, totals)
    }

    /// Keeps a batch of which nothing is known.
    fn extend(&mut self, header: &HeaderFields, totals: &mut Totals) -> Result<()> {
        match &mut self.window {
            Some(window) if window.end == header.start => window.end = header.end,
            window => {
                if let Some(before) = window.replace(header.start..header.end) {
                    let sources = vec![self.source.clone().within(before.start, before.end)];
                    totals.decode(sources, self.needs, self.options)?;
                }
            }
        }
        Ok(())
    }

    /// Adds the offsets of a batch whose records are counted.
    fn decode_offsets(&self, window: Range<u64>, totals: &mut Totals) -> Result<()> {
        let mut decoded = Totals::default();
        let needs = Needs { offsets: true, timestamps: false };
        decoded.decode(vec![self.source.clone().within(window.start, window.end)], needs, self.options)?;
        totals.add(0, decoded.offsets, None);
        totals.stats = totals.stats.plus(&ScanStats { batches: 0, records: 0, ..decoded.stats });
        Ok(())
    }
}

/// What is needed of a batch's header.
struct HeaderFields {
    start: u64,
    end: u64,
    base_offset: Option<i64>,
    last_offset: i64,
    record_count: Option<i32>,
    is_control: bool,
    magic: i8,
    /// In microseconds since the epoch; `None` if no record has a timestamp, or it does not fit.
    max_timestamp: Option<i64>,
}

impl HeaderFields {
    const COLUMNS: [BatchColumn; 8] = [
        BatchColumn::Position,
        BatchColumn::Size,
        BatchColumn::BaseOffset,
        BatchColumn::LastOffset,
        BatchColumn::RecordCount,
        BatchColumn::IsControl,
        BatchColumn::Magic,
        BatchColumn::MaxTimestamp,
    ];

    /// The number of records, if the header has it.
    fn count(&self) -> Option<u64> {
        self.record_count.and_then(|count| u64::try_from(count).ok())
    }

    /// Whether there are as many records as offsets.
    fn is_full(&self, base: i64, count: u64) -> bool {
        let offset_count = self.last_offset.checked_sub(base).and_then(|difference| difference.checked_add(1));
        offset_count.and_then(|offset_count| u64::try_from(offset_count).ok()) == Some(count)
    }
}

fn headers_of(rows: &RecordBatch) -> Vec<HeaderFields> {
    let [position, size, base_offset, last_offset, count, is_control, magic, max_timestamp] = rows.columns() else {
        return Vec::new();
    };
    let (positions, sizes) = (position.as_primitive::<Int64Type>(), size.as_primitive::<Int32Type>());
    let (bases, lasts) = (base_offset.as_primitive::<Int64Type>(), last_offset.as_primitive::<Int64Type>());
    let (counts, controls) = (count.as_primitive::<Int32Type>(), is_control.as_boolean());
    let (magics, times) = (magic.as_primitive::<Int8Type>(), max_timestamp.as_primitive::<TimestampMicrosecondType>());
    let header = |row: usize| {
        let start = positions.value(row).unsigned_abs();
        HeaderFields {
            start,
            end: start.saturating_add(u64::from(sizes.value(row).unsigned_abs())),
            base_offset: bases.is_valid(row).then(|| bases.value(row)),
            last_offset: lasts.value(row),
            record_count: counts.is_valid(row).then(|| counts.value(row)),
            is_control: controls.value(row),
            magic: magics.value(row),
            max_timestamp: times.is_valid(row).then(|| times.value(row)),
        }
    };
    (0..rows.num_rows()).map(header).collect()
}
