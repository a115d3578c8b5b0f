//! [`SegmentScan`]: one row per segment, from its name, its indexes and a few headers.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::SchemaRef;

use crate::arrow::column_table::SegmentColumn;
use crate::arrow::corruption::{SkippedBytes, no_errors};
use crate::arrow::ending::ends_after_error;
use crate::arrow::options::{OnCorrupt, ScanOptions};
use crate::arrow::source::ScanSource;
use crate::arrow::stats::ScanStats;
use crate::arrow::views::{ColumnValues, Outbox, arrow_batch};
use crate::error::{ErrorKind, Result};
use crate::io::Location;
use crate::log::{HeaderReader, Segment};
use crate::store::LogFileKind;

/// Maximum number of rows of an Arrow batch. Each row opens a file, so a larger Arrow batch would take long.
const ROWS: usize = 1024;

/// Iterates over Arrow batches with one row per segment. Buffers have no row.
///
/// Bounds by offset exclude segments by their names, bounds by timestamp by their largest timestamp. If a segment can't
/// be read to its end, [`OnCorrupt::Skip`] sets unknown values to null, and [`OnCorrupt::Report`] also reports the
/// reason in the `error` column.
pub struct SegmentScan {
    options: ScanOptions,
    columns: Vec<SegmentColumn>,
    schema: SchemaRef,
    sources: std::vec::IntoIter<ScanSource>,
    stats: ScanStats,
    /// Columns and number of the rows that are not in an Arrow batch yet.
    gathered: Vec<ColumnValues>,
    row_count: usize,
    outbox: Outbox,
    ended: bool,
}

impl SegmentScan {
    /// Creates a scan. Files are opened as iteration reaches them.
    #[must_use]
    pub fn new(sources: Vec<ScanSource>, columns: Vec<SegmentColumn>, options: ScanOptions) -> Self {
        let schema = Self::schema_of(&columns, &options);
        Self {
            schema,
            sources: sources.into_iter(),
            stats: ScanStats::default(),
            gathered: Vec::new(),
            row_count: 0,
            outbox: Outbox::default(),
            ended: false,
            columns,
            options,
        }
    }

    /// Schema of the Arrow batches.
    #[must_use]
    pub fn schema_of(columns: &[SegmentColumn], options: &ScanOptions) -> SchemaRef {
        options.schema_of(columns.iter().map(|column| column.definition()))
    }

    /// Schema of the Arrow batches.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Counts of what was read and lost so far; `bytes_read` is not counted.
    #[must_use]
    pub fn stats(&self) -> ScanStats {
        self.stats
    }

    fn advance(&mut self) -> Result<Option<arrow_array::RecordBatch>> {
        loop {
            if let Some(next) = self.outbox.next() {
                return next.map(Some);
            }
            match self.read() {
                Ok(true) if self.row_count < self.options.max_rows.clamp(1, ROWS) => {}
                Ok(true) => self.emit()?,
                Ok(false) => {
                    self.emit()?;
                    return self.outbox.next().transpose();
                }
                Err(error) => {
                    self.emit()?;
                    self.outbox.failed = Some(error);
                }
            }
        }
    }

    /// Adds the row of the next segment. Returns `false` at the end.
    fn read(&mut self) -> Result<bool> {
        let Some(source) = self.sources.next() else { return Ok(false) };
        if source.path().is_none() || self.options.bounds().pass_over_segment(source.base_offset, source.next_base) {
            return Ok(true);
        }
        let mut row = SegmentRow { source, segment: None, error: None };
        row.segment = match row.source.path().map(|path| self.options.open_segment(path)) {
            Some(Err(error)) if matches!(error.kind(), ErrorKind::Io(_)) => return Err(error),
            opened => opened.and_then(Result::ok), // a file with another name is not a segment
        };
        let mut known = Vec::new();
        if self.options.on_corrupt == OnCorrupt::Report {
            // the error must not depend on the columns
            for column in SegmentColumn::all() {
                known.push((column, row.value(column, &self.options)?));
            }
        }
        let mut value = |column: SegmentColumn| match known.iter().position(|(known, _)| *known == column) {
            Some(place) => Ok(known.swap_remove(place).1),
            None => row.value(column, &self.options),
        };
        let values = self.columns.iter().map(|column| value(*column)).collect::<Result<Vec<_>>>()?;
        if row.is_before(self.options.start_timestamp) {
            return Ok(true);
        }
        self.stats.records = self.stats.records.saturating_add(1);
        self.stats.batches_skipped = self.stats.batches_skipped.saturating_add(u64::from(row.error.is_some()));
        match row.error {
            Some(skipped) if self.options.on_corrupt == OnCorrupt::Report => {
                self.emit()?;
                self.make_ready(values, 1, skipped.column()?)?;
            }
            _ if self.row_count == 0 => (self.gathered, self.row_count) = (values, 1),
            _ => {
                self.gathered.iter_mut().zip(values).for_each(|(gathered, values)| gathered.append(values));
                self.row_count = self.row_count.saturating_add(1);
            }
        }
        Ok(true)
    }

    /// Moves the rows so far to the outbox.
    fn emit(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.row_count);
        if rows == 0 {
            return Ok(());
        }
        let values = std::mem::take(&mut self.gathered);
        self.make_ready(values, rows, no_errors(rows))
    }

    fn make_ready(&mut self, values: Vec<ColumnValues>, rows: usize, errors: ArrayRef) -> Result<()> {
        let unit = self.options.timestamp_unit;
        let mut arrays: Vec<_> = values.into_iter().map(|values| values.into_array(unit)).collect();
        if self.options.on_corrupt == OnCorrupt::Report {
            arrays.push(errors);
        }
        self.outbox.ready.push_back(arrow_batch(&self.schema, arrays, rows)?);
        Ok(())
    }
}

ends_after_error!(SegmentScan);

/// A segment and its first error.
struct SegmentRow {
    source: ScanSource,
    segment: Option<Segment>,
    error: Option<SkippedBytes>,
}

impl SegmentRow {
    fn is_before(&self, start_timestamp: Option<i64>) -> bool {
        let Some((start, segment)) = start_timestamp.zip(self.segment.as_ref()) else { return false };
        segment.largest_timestamp().is_ok_and(|largest| largest.timestamp < start)
    }

    fn value(&mut self, column: SegmentColumn, options: &ScanOptions) -> Result<ColumnValues> {
        let segment = self.segment.clone();
        let segment = segment.as_ref();
        let size_of = |kind| i64::try_from(segment?.file(kind).len().ok()?).ok();
        Ok(match column {
            SegmentColumn::Topic => ColumnValues::Text(vec![self.source.origin.topic.clone()]),
            SegmentColumn::Partition => ColumnValues::Int32(vec![self.source.origin.partition]),
            SegmentColumn::Segment => ColumnValues::Text(vec![self.source.origin.segment.clone()]),
            SegmentColumn::State => ColumnValues::Text(vec![segment.map(|segment| segment.state().name().into())]),
            SegmentColumn::BaseOffset => ColumnValues::Int64(vec![segment.map(Segment::base_offset)]),
            SegmentColumn::EndOffset => {
                ColumnValues::Int64(vec![self.or_null(segment.map(Segment::end_offset).transpose(), options)?])
            }
            SegmentColumn::Size => {
                let size = self.source.path().and_then(|path| path.len().ok());
                ColumnValues::Int64(vec![size.and_then(|size| i64::try_from(size).ok())])
            }
            SegmentColumn::FirstTimestamp => {
                let first = self.headers(options).and_then(|mut reader| reader.next_header().transpose());
                let first = self.or_null(first, options)?.filter(|header| header.delete_horizon_ms().is_none());
                ColumnValues::Time(vec![first.map(|header| header.base_timestamp())])
            }
            SegmentColumn::LargestTimestamp => {
                let largest = self.or_null(segment.map(Segment::largest_timestamp).transpose(), options)?;
                ColumnValues::Time(vec![largest.map(|largest| largest.timestamp)])
            }
            SegmentColumn::IndexSize => ColumnValues::Int64(vec![size_of(LogFileKind::OffsetIndex)]),
            SegmentColumn::TimeIndexSize => ColumnValues::Int64(vec![size_of(LogFileKind::TimeIndex)]),
            SegmentColumn::TxnIndexSize => ColumnValues::Int64(vec![size_of(LogFileKind::TransactionIndex)]),
            SegmentColumn::HasSnapshot => {
                ColumnValues::Bool(vec![segment.map(|_| size_of(LogFileKind::ProducerSnapshot).is_some())])
            }
            SegmentColumn::BatchCount => {
                let count = self.headers(options).and_then(count);
                ColumnValues::Int64(vec![self.or_null(count.map(Some), options)?])
            }
        })
    }

    fn headers(&self, options: &ScanOptions) -> Result<HeaderReader> {
        let path = self.source.path().cloned().unwrap_or_else(|| Location::local(""));
        let reader = HeaderReader::open(path, &options.limits)?;
        Ok(if options.leave_page_cache { reader.leaving_page_cache() } else { reader })
    }

    /// Returns a value; if it is an error that the scan tolerates, records the error and returns null.
    fn or_null<T>(&mut self, told: Result<Option<T>>, options: &ScanOptions) -> Result<Option<T>> {
        match told {
            Ok(told) => Ok(told),
            Err(error) if options.on_corrupt == OnCorrupt::Fail || matches!(error.kind(), ErrorKind::Io(_)) => {
                Err(self.source.locate(error))
            }
            Err(error) => {
                self.error.get_or_insert(SkippedBytes::whole(&self.source, error));
                Ok(None)
            }
        }
    }
}

fn count(mut reader: HeaderReader) -> Result<i64> {
    let mut count = 0_i64;
    while let Some(header) = reader.next_header() {
        header?;
        count = count.saturating_add(1);
    }
    Ok(count)
}
