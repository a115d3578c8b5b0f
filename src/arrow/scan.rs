//! [`ArrowScan`]: reads segments and buffers as Arrow batches.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow_array::RecordBatchOptions;
use arrow_schema::SchemaRef;

use crate::arrow::columns::{Columns, microseconds_of};
use crate::arrow::corruption::no_errors;
use crate::arrow::ending::ends_after_error;
use crate::arrow::interrupt::ProgressCallback;
use crate::arrow::options::{OnCorrupt, ScanOptions};
use crate::arrow::records::{offsets_in_header, push_records, read_records};
use crate::arrow::schema::TimestampUnit;
use crate::arrow::source::ScanSource;
use crate::arrow::stats::ScanStats;
use crate::arrow::walk::{BatchContext, SourceWalk, Step};
use crate::compression::Scratch;
use crate::error::{Error, Result};
use crate::format::batch::Batch;
use crate::format::record::Record;
use crate::format::records::RecordSink;
use crate::io::OpenedFile;

/// Iterates over the records of some sources as Arrow batches, in order. Reads lazily; holds one window of a file, one
/// [`Scratch`] and the Arrow batch under construction. Ends after its first error.
///
/// ```
/// # fn main() -> kbat::Result<()> {
/// use kbat::arrow::{ArrowScan, Column, ScanOptions, ScanSource};
/// # let mut builder = kbat::BatchBuilder::new();
/// # builder.append(1_700_000_000_000, Some(b"key"), Some(b"value"))?;
/// # let mut bytes = Vec::new();
/// # builder.finish_into(&mut bytes)?;
/// let options = ScanOptions { columns: vec![Column::Offset, Column::Value], ..ScanOptions::default() };
/// for arrow_batch in ArrowScan::new(vec![ScanSource::memory(std::sync::Arc::new(bytes))], options) {
///     assert_eq!(arrow_batch?.num_rows(), 1);
/// }
/// # Ok(()) }
/// ```
pub struct ArrowScan {
    options: ScanOptions,
    schema: SchemaRef,
    walk: SourceWalk,
    columns: Columns,
    scratch: Scratch,
    /// Whether batches whose headers show all offsets are not decoded.
    needs_only_headers: bool,
    records: u64,
    /// Complete Arrow batches: parts of one that exceeded `max_rows`, and rows that report corruption.
    ready: VecDeque<arrow_array::RecordBatch>,
    /// The error that ends the scan, after the batches in `ready`.
    failed: Option<Error>,
    ended: bool,
}

impl ArrowScan {
    /// Creates a scan. Files are opened as iteration reaches them.
    #[must_use]
    pub fn new(sources: Vec<ScanSource>, options: ScanOptions) -> Self {
        Self::watched(sources, options, None)
    }

    /// Like `new`, with a callback for progress and cancellation.
    pub(crate) fn watched(sources: Vec<ScanSource>, options: ScanOptions, callback: Option<ProgressCallback>) -> Self {
        Self {
            schema: options.schema(),
            columns: Columns::new(&options),
            walk: SourceWalk::new(sources, callback),
            scratch: Scratch::new(),
            needs_only_headers: options.needs_only_headers(),
            records: 0,
            ready: VecDeque::new(),
            failed: None,
            ended: false,
            options,
        }
    }

    /// Uses the file of the first source, which is open.
    pub(crate) fn with_opened(self, opened: Option<OpenedFile>) -> Self {
        Self { walk: self.walk.with_opened(opened), ..self }
    }

    /// Schema of the Arrow batches.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Counts of what was read and lost so far.
    #[must_use]
    pub fn stats(&self) -> ScanStats {
        ScanStats { records: self.records, ..self.walk.stats() }
    }

    /// Bytes read so far, if the scan has a callback; otherwise 0.
    #[cfg(feature = "python")]
    pub(crate) fn walked(&self) -> u64 {
        self.walk.walked()
    }

    /// Reads Kafka batches until an Arrow batch is full.
    fn advance(&mut self) -> Result<Option<arrow_array::RecordBatch>> {
        loop {
            if let Some(part) = self.ready.pop_front() {
                return Ok(Some(part));
            }
            if let Some(error) = self.failed.take() {
                return Err(error);
            }
            let rows = self.columns.rows();
            if rows >= self.options.max_rows.max(1) || (rows > 0 && self.columns.data_len() >= self.options.max_bytes) {
                self.emit()?;
            } else if !self.read()? {
                self.emit()?;
                return Ok(self.ready.pop_front());
            }
        }
    }

    /// Decodes the next Kafka batch. Returns `false` at the end.
    fn read(&mut self) -> Result<bool> {
        let Self { walk, options, columns, scratch, needs_only_headers, .. } = self;
        let rows = columns.rows();
        let step = walk.step(options, |batch, context| {
            if *needs_only_headers && let Some((offsets, rows)) = offsets_in_header(batch, context, options) {
                batch.compression()?;
                let base_offset = *offsets.start();
                columns.push_offsets(offsets);
                return columns.extend(batch, base_offset, context.origin, rows);
            }
            let decoded = decode(batch, context, options, scratch, columns);
            if decoded.is_err() {
                columns.roll_back();
            }
            decoded
        });
        self.records = self.records.saturating_add(crate::num::u64_of(self.columns.rows().saturating_sub(rows)));
        match step {
            Ok(Step::Batch) => {}
            Ok(Step::End) => return Ok(false),
            Ok(Step::SkippedBytes(skipped)) => {
                if self.options.on_corrupt == OnCorrupt::Report {
                    self.emit()?;
                    self.ready.push_back(skipped.row(&self.schema)?);
                }
            }
            Err(error) => {
                self.emit()?;
                self.failed = Some(error);
            }
        }
        Ok(true)
    }

    /// Moves the rows so far to `ready`.
    fn emit(&mut self) -> Result<()> {
        let rows = self.columns.rows();
        if rows == 0 {
            return Ok(());
        }
        let mut arrays = self.columns.finish()?;
        if self.options.on_corrupt == OnCorrupt::Report {
            arrays.push(no_errors(rows));
        }
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let whole = arrow_array::RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
            .map_err(|error| Error::argument(error.to_string()))?;
        let most = self.options.max_rows.max(1);
        for start in (0..rows).step_by(most) {
            self.ready.push_back(whole.slice(start, most.min(rows.saturating_sub(start))));
        }
        Ok(())
    }
}

/// Appends the records of one batch to the columns.
fn decode(
    batch: &Batch<'_>,
    context: &BatchContext<'_>,
    options: &ScanOptions,
    scratch: &mut Scratch,
    columns: &mut Columns,
) -> Result<()> {
    columns.begin_batch(batch, context.origin);
    let (rows, first_offset) = match columns.common().filter(|_| !batch.is_legacy_wrapper()) {
        Some(mut common) => {
            if options.on_corrupt == OnCorrupt::Fail {
                push_records(batch, context, options, scratch, &mut common)?;
            } else {
                let mut checked = Checked { unit: options.timestamp_unit, sink: &mut common };
                push_records(batch, context, options, scratch, &mut checked)?;
            }
            let rows = common.rows;
            check_longest(columns)?;
            (rows, None)
        }
        None => decode_in_chunks(batch, context, options, scratch, columns)?,
    };
    let base_offset = batch.base_offset().or(first_offset).unwrap_or_else(|| batch.last_offset());
    columns.extend(batch, base_offset, context.origin, rows)
}

/// Appends the records of one batch to any columns. Returns their number, and the offset of the batch's first record.
fn decode_in_chunks(
    batch: &Batch<'_>,
    context: &BatchContext<'_>,
    options: &ScanOptions,
    scratch: &mut Scratch,
    columns: &mut Columns,
) -> Result<(usize, Option<i64>)> {
    let mut rows = 0_usize;
    let first_offset = read_records(batch, context, options, scratch, |records, memory| {
        if options.on_corrupt != OnCorrupt::Fail {
            records.iter().try_for_each(|record| check_every_field(record, options.timestamp_unit))?;
        }
        rows = rows.wrapping_add(records.len());
        columns.push_all(records, memory)?;
        check_longest(columns)
    })?;
    Ok((rows, first_offset))
}

/// Fails if the 32-bit offsets of a column do not reach its last value. [`ScanOptions::max_bytes`] bounds the bytes
/// before a batch, the limits those that it adds.
fn check_longest(columns: &Columns) -> Result<()> {
    if columns.longest() > 0x7fff_ffff {
        return Err(Error::argument(
            "the values of an Arrow batch exceed 2 GiB, the maximum of a binary column: lower max_bytes, or the limit \
            decompressed_len if a single batch is that large, or use binary_view",
        ));
    }
    Ok(())
}

/// Fails for a field that its column cannot contain, whether or not the column is one of the scan's: the rows that remain
/// if corruption is skipped or reported must not depend on the columns.
#[inline]
fn check_every_field(record: &Record<'_>, unit: TimestampUnit) -> Result<()> {
    if unit == TimestampUnit::Microsecond {
        microseconds_of(record)?;
    }
    let headers = record.headers();
    if headers.is_empty() { Ok(()) } else { headers.verify() }
}

/// Checks every field of the records that it passes on.
struct Checked<'s, S> {
    unit: TimestampUnit,
    sink: &'s mut S,
}

impl<S: RecordSink> RecordSink for Checked<'_, S> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of the loop of `Records::push_to`")]
    fn push(&mut self, record: Record<'_>) -> Result<()> {
        check_every_field(&record, self.unit)?;
        self.sink.push(record)
    }
}

ends_after_error!(ArrowScan);
