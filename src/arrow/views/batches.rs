//! [`BatchScan`]: one row per batch, from its header.

use std::sync::Arc;

use arrow_schema::SchemaRef;

use crate::arrow::column_table::BatchColumn;
use crate::arrow::corruption::no_errors;
use crate::arrow::ending::ends_after_error;
use crate::arrow::interrupt::ProgressCallback;
use crate::arrow::options::{OnCorrupt, ScanOptions};
use crate::arrow::origin::Origin;
use crate::arrow::source::ScanSource;
use crate::arrow::stats::ScanStats;
use crate::arrow::views::{ColumnValues, Outbox, arrow_batch};
use crate::arrow::walk::{SourceWalk, Step};
use crate::compression::{Compression, Scratch};
use crate::error::Result;
use crate::format::attributes::TimestampType;
use crate::format::batch::Batch;
use crate::format::header::{BATCH_HEADER_LEN, BatchHeader};
use crate::limits::Limits;

impl BatchColumn {
    fn reads_payload(self) -> bool {
        matches!(self, Self::CrcOk) || self.decompresses()
    }

    fn decompresses(self) -> bool {
        matches!(self, Self::UncompressedSize | Self::Ratio)
    }
}

/// The fields of a batch that columns are built from.
struct BatchRow {
    origin: Origin,
    header: BatchHeader,
    crc_ok: Option<bool>,
    uncompressed_size: Option<i64>,
}

impl BatchRow {
    fn stored_size(&self) -> i32 {
        i32::try_from(stored_len(&self.header)).unwrap_or(i32::MAX)
    }

    fn ratio(&self) -> Option<f64> {
        let size = u32::try_from(self.uncompressed_size?).ok()?;
        let stored = self.stored_size();
        (stored > 0).then(|| f64::from(size) / f64::from(stored))
    }
}

/// Bytes of a batch after its header.
pub(super) fn stored_len(header: &BatchHeader) -> usize {
    let overhead = match header.magic() {
        0 => 26,
        1 => 34,
        _ => BATCH_HEADER_LEN,
    };
    header.size().saturating_sub(overhead)
}

/// Iterates over Arrow batches with one row per Kafka batch, including control batches. Reads only headers unless a
/// column needs more.
///
/// Bounds by offset and timestamp select complete batches by their headers. The isolation level is ignored. Checksums
/// are only verified for the column [`BatchColumn::CrcOk`], and where a corrupt length may hide batches: before missing
/// offsets, unless [`ScanOptions::check_crc`] is off, and at the end of a source. Ends after its first error.
pub struct BatchScan {
    options: ScanOptions,
    columns: Vec<BatchColumn>,
    schema: SchemaRef,
    walk: SourceWalk,
    rows: Vec<BatchRow>,
    scratch: Scratch,
    records: u64,
    outbox: Outbox,
    ended: bool,
}

impl BatchScan {
    /// Creates a scan. Files are opened as iteration reaches them.
    #[must_use]
    pub fn new(sources: Vec<ScanSource>, columns: Vec<BatchColumn>, options: ScanOptions) -> Self {
        Self::watched(sources, columns, options, None)
    }

    /// Like `new`, with a callback for progress and cancellation.
    pub(crate) fn watched(
        sources: Vec<ScanSource>,
        columns: Vec<BatchColumn>,
        options: ScanOptions,
        callback: Option<ProgressCallback>,
    ) -> Self {
        let walk = SourceWalk::new(sources, callback).with_bad_payloads(&options);
        let options = ScanOptions {
            include_control: true,
            check_crc: false,
            isolation: crate::arrow::Isolation::ReadUncommitted,
            ..options
        };
        Self {
            schema: Self::schema_of(&columns, &options),
            walk,
            rows: Vec::new(),
            scratch: Scratch::new(),
            records: 0,
            outbox: Outbox::default(),
            ended: false,
            columns,
            options,
        }
    }

    /// Schema of the Arrow batches.
    #[must_use]
    pub fn schema_of(columns: &[BatchColumn], options: &ScanOptions) -> SchemaRef {
        options.schema_of(columns.iter().map(|column| column.definition()))
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

    fn advance(&mut self) -> Result<Option<arrow_array::RecordBatch>> {
        loop {
            if let Some(next) = self.outbox.next() {
                return next.map(Some);
            }
            if self.rows.len() >= self.options.max_rows.max(1) {
                self.emit()?;
            } else if !self.read()? {
                self.emit()?;
                return self.outbox.next().transpose();
            }
        }
    }

    /// Adds the row of the next batch. Returns `false` at the end.
    fn read(&mut self) -> Result<bool> {
        let Self { walk, options, columns, rows, scratch, .. } = self;
        let step = if columns.iter().any(|column| column.reads_payload()) {
            let decompresses = columns.iter().any(|column| column.decompresses());
            walk.step(options, |batch, context| {
                let (crc_ok, header, origin) = (Some(batch.verify_crc().is_ok()), **batch, context.origin.clone());
                let uncompressed_size =
                    if decompresses { uncompressed_size(batch, scratch, &options.limits) } else { None };
                rows.push(BatchRow { origin, header, crc_ok, uncompressed_size });
                Ok(())
            })
        } else {
            walk.step_header(options, |header, origin| {
                let (header, origin) = (*header, origin.clone());
                rows.push(BatchRow { origin, header, crc_ok: None, uncompressed_size: None });
            })
        };
        match step {
            Ok(Step::Batch) => {}
            Ok(Step::End) => return Ok(false),
            Ok(Step::SkippedBytes(skipped)) => {
                if self.options.on_corrupt == OnCorrupt::Report {
                    self.emit()?;
                    self.outbox.ready.push_back(skipped.row(&self.schema)?);
                }
            }
            Err(error) => {
                self.emit()?;
                self.outbox.failed = Some(error);
            }
        }
        Ok(true)
    }

    /// Moves the rows so far to the outbox.
    fn emit(&mut self) -> Result<()> {
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return Ok(());
        }
        self.records = self.records.saturating_add(crate::num::u64_of(rows.len()));
        let unit = self.options.timestamp_unit;
        let mut arrays: Vec<_> = self.columns.iter().map(|column| values(*column, &rows).into_array(unit)).collect();
        if self.options.on_corrupt == OnCorrupt::Report {
            arrays.push(no_errors(rows.len()));
        }
        self.outbox.ready.push_back(arrow_batch(&self.schema, arrays, rows.len())?);
        Ok(())
    }
}

ends_after_error!(BatchScan);

/// Bytes of the records after decompression; `None` if it fails.
fn uncompressed_size(batch: &Batch<'_>, scratch: &mut Scratch, limits: &Limits) -> Option<i64> {
    let payload = batch.payload(scratch, limits).ok().filter(|payload| payload.fault.is_none())?;
    let overhead = if batch.magic() < 2 && !batch.is_legacy_wrapper() { 14 } else { 0 };
    let v1 = if batch.magic() == 1 && overhead > 0 { 8 } else { 0 };
    i64::try_from(payload.bytes.len().saturating_sub(overhead).saturating_sub(v1)).ok()
}

/// The values of a column.
fn values(column: BatchColumn, rows: &[BatchRow]) -> ColumnValues {
    fn each<T>(rows: &[BatchRow], value: impl Fn(&BatchRow) -> Option<T>) -> Vec<Option<T>> {
        rows.iter().map(value).collect()
    }
    fn of<T>(rows: &[BatchRow], value: impl Fn(&BatchHeader) -> T) -> Vec<Option<T>> {
        rows.iter().map(|row| Some(value(&row.header))).collect()
    }
    let number = |len: usize| i32::try_from(len).unwrap_or(i32::MAX);
    match column {
        BatchColumn::Topic => ColumnValues::Text(each(rows, |row| row.origin.topic.clone())),
        BatchColumn::Partition => ColumnValues::Int32(each(rows, |row| row.origin.partition)),
        BatchColumn::Segment => ColumnValues::Text(each(rows, |row| row.origin.segment.clone())),
        BatchColumn::Position => ColumnValues::Int64(each(rows, |row| i64::try_from(row.header.position()).ok())),
        BatchColumn::Size => ColumnValues::Int32(of(rows, |header| number(header.size()))),
        BatchColumn::BaseOffset => ColumnValues::Int64(each(rows, |row| row.header.base_offset())),
        BatchColumn::LastOffset => ColumnValues::Int64(of(rows, BatchHeader::last_offset)),
        BatchColumn::RecordCount => ColumnValues::Int32(each(rows, |row| row.header.record_count())),
        BatchColumn::Magic => ColumnValues::Int8(of(rows, |header| header.magic().cast_signed())),
        BatchColumn::Compression => {
            ColumnValues::Text(of(rows, |header| header.compression().map_or("unknown", Compression::name).into()))
        }
        BatchColumn::StoredSize => ColumnValues::Int32(each(rows, |row| Some(row.stored_size()))),
        BatchColumn::TimestampType => ColumnValues::Text(each(rows, |row| {
            row.header.timestamp_type().map(|kind| TimestampType::name(kind).into())
        })),
        BatchColumn::BaseTimestamp => ColumnValues::Time(each(rows, |row| {
            row.header.delete_horizon_ms().is_none().then(|| row.header.base_timestamp())
        })),
        BatchColumn::MaxTimestamp => ColumnValues::Time(of(rows, BatchHeader::max_timestamp)),
        BatchColumn::DeleteHorizon => ColumnValues::Time(each(rows, |row| row.header.delete_horizon_ms())),
        BatchColumn::PartitionLeaderEpoch => ColumnValues::Int32(of(rows, BatchHeader::partition_leader_epoch)),
        BatchColumn::ProducerId => ColumnValues::Int64(of(rows, BatchHeader::producer_id)),
        BatchColumn::ProducerEpoch => ColumnValues::Int16(of(rows, BatchHeader::producer_epoch)),
        BatchColumn::BaseSequence => ColumnValues::Int32(of(rows, BatchHeader::base_sequence)),
        BatchColumn::LastSequence => ColumnValues::Int32(of(rows, BatchHeader::last_sequence)),
        BatchColumn::IsTransactional => ColumnValues::Bool(of(rows, BatchHeader::is_transactional)),
        BatchColumn::IsControl => ColumnValues::Bool(of(rows, BatchHeader::is_control)),
        BatchColumn::Crc => ColumnValues::Int64(of(rows, |header| i64::from(header.crc()))),
        BatchColumn::CrcOk => ColumnValues::Bool(each(rows, |row| row.crc_ok)),
        BatchColumn::UncompressedSize => ColumnValues::Int64(each(rows, |row| row.uncompressed_size)),
        BatchColumn::Ratio => ColumnValues::Float(each(rows, BatchRow::ratio)),
    }
}
