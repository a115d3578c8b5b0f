//! [`RowDecoder`]: decodes the record batches in a value.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow_schema::Schema;

use crate::arrow::{ArrowScan, Column, ScanOptions, ScanSource, TimestampUnit};
use crate::error::{Error, ErrorKind, Result};
use crate::format::frame::batches;
use crate::jvm::unsafe_rows::array_of_rows;
use crate::plan::{Pairs, ReadOptions, is_of_format};

/// The columns of `kbat_decode`.
const COLUMNS: &str = "offset,timestamp,timestampType,key,value,headers";
const ERROR: &str = "error";
const POSITION: &str = "position";
/// The arguments of `kbat.spark.decode` that raise limits.
const LIMITS: &str = "batch_len, decompressed_len, ratio, ratio_free_len, record_count, header_count";

/// Decodes the record batches in a value to an array of Spark's rows.
pub(super) struct RowDecoder {
    /// Name in Spark, name in a scan, and type in SQL of each column.
    columns: Vec<(String, &'static str, &'static str)>,
    scan: ScanOptions,
    /// Whether errors name arguments of `kbat.spark.decode`.
    has_advice: bool,
}

impl RowDecoder {
    /// A decoder with options of the data source, as a JSON object; empty for those of `kbat_decode`.
    ///
    /// # Errors
    /// An unknown option or column, or a wrong value.
    pub(super) fn parse(settings: &str) -> Result<Self> {
        let given: Pairs = if settings.is_empty() {
            vec![("columns".to_owned(), COLUMNS.to_owned())]
        } else {
            let given: BTreeMap<String, String> = serde_json::from_str(settings).map_err(Error::other)?;
            given.into_iter().collect()
        };
        let options = ReadOptions::parse(&given, &[])?;
        let columns: Vec<_> =
            options.schema()?.into_iter().map(|(name, column)| (name, column.field, column.data_type)).collect();
        let scanned = columns.iter().filter(|(_, field, _)| *field != ERROR);
        let scan = ScanOptions {
            columns: scanned.map(|(_, field, _)| field.parse::<Column>()).collect::<Result<_>>()?,
            timestamp_unit: TimestampUnit::Microsecond,
            include_control: options.include_control(),
            check_crc: options.check_crc(),
            on_corrupt: options.on_corrupt(),
            limits: options.limits().clone(),
            ..ScanOptions::default()
        };
        Ok(Self { columns, scan, has_advice: !settings.is_empty() })
    }

    /// Name and type of each column, one after the other.
    pub(super) fn schema(&self) -> Vec<String> {
        self.columns.iter().flat_map(|(name, _, data_type)| [name.clone(), (*data_type).to_owned()]).collect()
    }

    /// Decodes bytes that begin at a position of a value.
    ///
    /// # Errors
    /// Those of a scan; more than 2 GiB of records.
    pub(super) fn decode(&self, bytes: Vec<u8>, position: i64) -> Result<Vec<u8>> {
        let source = ScanSource::memory(Arc::new(bytes));
        let scan = ArrowScan::new(vec![source], self.scan.clone());
        let batches = scan.map(|batch| {
            let batch = batch.map_err(|error| self.advised(moved(error, position)))?;
            self.in_order(&batch, position)
        });
        array_of_rows(&batches.collect::<Result<Vec<_>>>()?)
    }

    fn in_order(&self, batch: &RecordBatch, position: i64) -> Result<RecordBatch> {
        let mut fields = Vec::new();
        let mut arrays: Vec<ArrayRef> = Vec::new();
        for (_, name, _) in &self.columns {
            let (place, field) =
                batch.schema_ref().column_with_name(name).ok_or_else(|| Error::other("a column is missing"))?;
            let array = batch.column(place);
            fields.push(field.clone());
            arrays.push(match array.as_primitive_opt::<Int64Type>() {
                Some(positions) if *name == POSITION => {
                    Arc::new(positions.unary::<_, Int64Type>(|at| at.wrapping_add(position)))
                }
                _ => Arc::clone(array),
            });
        }
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        RecordBatch::try_new_with_options(Arc::new(Schema::new(fields)), arrays, &options)
            .map_err(|error| Error::other(error.to_string()))
    }

    /// Adds the arguments that let a job continue after an error.
    fn advised(&self, error: Error) -> Error {
        if !self.has_advice {
            return error;
        }
        let skip = "on_corrupt=\"skip\" omits the batch, \"report\" adds a row that describes it";
        match error.kind() {
            ErrorKind::Limit { .. } => {
                error.with_note(format!("for bytes you trust, raise the limit with one of the arguments {LIMITS}"))
            }
            ErrorKind::Crc { .. } => error.with_note(format!("{skip}, check_crc=False reads its records all the same")),
            _ if is_of_format(&error) => error.with_note(skip),
            _ => error,
        }
    }
}

/// Adds the position of the bytes to that of an error in them.
fn moved(error: Error, position: i64) -> Error {
    match (error.position().byte, u64::try_from(position)) {
        (Some(byte), Ok(position)) if position > 0 => error.at_byte(byte.saturating_add(position)),
        _ => error,
    }
}

/// The positions at which to divide bytes into parts of about `max_len`, the first of which is 0. Only bytes whose batches
/// are all valid are divided: the search for the next batch after corruption needs all of them.
pub(super) fn points_of(bytes: &[u8], max_len: u64) -> Vec<u64> {
    let mut points = vec![0];
    let mut start = 0;
    for batch in batches(bytes) {
        let Ok(batch) = batch.and_then(|batch| batch.verify_crc().map(|()| batch)) else { return vec![0] };
        if batch.position().saturating_sub(start) >= max_len.max(1) {
            start = batch.position();
            points.push(start);
        }
    }
    points
}
