//! Column builders: records to Arrow arrays.
//!
//! They are plain vectors that keep their capacity from batch to batch; a builder that starts empty takes five times as
//! long.
//!
//! If a scan has only common columns, each record is added to all of them before the next one is parsed
//! ([`CommonColumns`]). Otherwise, each column is filled from a chunk of records ([`Columns::push_all`]).

use std::ops::RangeInclusive;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, TimestampMicrosecondArray, TimestampMillisecondArray};
use arrow_buffer::{Buffer, NullBuffer, ScalarBuffer};

use crate::arrow::binary_views::{Blocks, RecordMemory};
use crate::arrow::byte_columns::{BinaryColumnBuilder, BytesBuilder, take};
use crate::arrow::column_table::Column;
use crate::arrow::decoded::{Contents, DecodedColumn};
use crate::arrow::header_column::HeadersBuilder;
use crate::arrow::options::ScanOptions;
use crate::arrow::origin::Origin;
use crate::arrow::runs::Runs;
use crate::arrow::schema::TimestampUnit;
use crate::compression::Compression;
use crate::error::{Error, ErrorKind, Result};
use crate::format::attributes::TimestampType;
use crate::format::batch::Batch;
use crate::format::header::NO_TIMESTAMP;
use crate::format::record::{Record, RecordPosition};
use crate::format::records::RecordSink;

/// One column under construction.
enum Builder {
    Key(BinaryColumnBuilder),
    Value(BinaryColumnBuilder),
    Offset(Vec<i64>),
    /// Values, unit, and the value that replaces missing timestamps, in this unit; `None` for null.
    Timestamp(Vec<i64>, TimestampUnit, Option<i64>),
    Sequence(Vec<i32>),
    Headers(HeadersBuilder),
    /// Columns with one value per batch or file; filled one batch at a time.
    BatchInt64(Column, Runs<i64>),
    BatchInt32(Column, Runs<i32>),
    ProducerEpoch(Runs<i16>),
    Magic(Runs<i8>),
    IsTransactional(Runs<bool>),
    Compression(Runs<Compression>),
    Text(Column, Runs<Option<Arc<str>>>),
    Partition(Runs<Option<i32>>),
    Decoded(DecodedColumn),
}

impl Builder {
    fn new(column: Column, options: &ScanOptions) -> Self {
        let ScanOptions { timestamp_unit: unit, binary_view, .. } = *options;
        match column {
            Column::Key => Self::Key(BinaryColumnBuilder::new(binary_view)),
            Column::Value => Self::Value(BinaryColumnBuilder::new(binary_view)),
            Column::Offset => Self::Offset(Vec::new()),
            Column::Timestamp => {
                Self::Timestamp(Vec::new(), unit, options.missing_timestamp.map(|value| unit.of_milliseconds(value)))
            }
            Column::Sequence => Self::Sequence(Vec::new()),
            Column::Headers => Self::Headers(HeadersBuilder::new(binary_view)),
            Column::BaseOffset | Column::Position | Column::ProducerId => Self::BatchInt64(column, Runs::new()),
            Column::TimestampType | Column::PartitionLeaderEpoch | Column::BatchSize => {
                Self::BatchInt32(column, Runs::new())
            }
            Column::ProducerEpoch => Self::ProducerEpoch(Runs::new()),
            Column::Magic => Self::Magic(Runs::new()),
            Column::IsTransactional => Self::IsTransactional(Runs::new()),
            Column::Compression => Self::Compression(Runs::new()),
            Column::Topic | Column::Segment => Self::Text(column, Runs::new()),
            Column::Partition => Self::Partition(Runs::new()),
            decoded => Self::Decoded(DecodedColumn::new(decoded)),
        }
    }

    /// Adds the fields that each record has.
    fn push_all(&mut self, records: &[Record<'_>], blocks: &mut Blocks, memory: RecordMemory<'_>) -> Result<()> {
        match self {
            Self::Key(bytes) => bytes.push_all(records, Record::key, blocks, memory),
            Self::Value(bytes) => bytes.push_all(records, Record::value, blocks, memory),
            Self::Offset(values) => values.extend(records.iter().map(Record::offset)),
            Self::Timestamp(values, TimestampUnit::Millisecond, _) => {
                values.extend(records.iter().map(Record::timestamp));
            }
            Self::Timestamp(values, TimestampUnit::Microsecond, _) => {
                for record in records {
                    values.push(microseconds_of(record)?);
                }
            }
            Self::Sequence(values) => values.extend(records.iter().map(Record::sequence)),
            Self::Headers(headers) => {
                for record in records {
                    headers.push(record.headers(), blocks, memory)?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds the fields that `rows` records of a batch share.
    fn extend(&mut self, batch: &Batch<'_>, base_offset: i64, origin: &Origin, rows: usize) -> Result<()> {
        match self {
            Self::BatchInt64(column, values) => {
                let value = match column {
                    Column::BaseOffset => base_offset,
                    Column::Position => i64::try_from(batch.position()).unwrap_or(i64::MAX),
                    _ => batch.producer_id(),
                };
                values.push(value, rows);
            }
            Self::BatchInt32(column, values) => {
                let value = match column {
                    Column::TimestampType => batch.timestamp_type().map_or(-1, TimestampType::id),
                    Column::PartitionLeaderEpoch => batch.partition_leader_epoch(),
                    _ => i32::try_from(batch.size()).unwrap_or(i32::MAX),
                };
                values.push(value, rows);
            }
            Self::ProducerEpoch(values) => values.push(batch.producer_epoch(), rows),
            Self::Magic(values) => values.push(batch.magic().cast_signed(), rows),
            Self::IsTransactional(values) => values.push(batch.is_transactional(), rows),
            Self::Compression(values) => values.push(batch.compression()?, rows),
            Self::Text(Column::Topic, texts) => texts.push(origin.topic.clone(), rows),
            Self::Text(_, texts) => texts.push(origin.segment.clone(), rows),
            Self::Partition(values) => values.push(origin.partition, rows),
            _ => {}
        }
        Ok(())
    }

    /// Drops all but the first rows.
    fn truncate(&mut self, rows: usize) {
        match self {
            Self::Key(bytes) | Self::Value(bytes) => bytes.truncate(rows),
            Self::Offset(values) | Self::Timestamp(values, _, _) => values.truncate(rows),
            Self::Sequence(values) => values.truncate(rows),
            Self::BatchInt64(_, values) => values.truncate(rows),
            Self::BatchInt32(_, values) => values.truncate(rows),
            Self::ProducerEpoch(values) => values.truncate(rows),
            Self::Magic(values) => values.truncate(rows),
            Self::IsTransactional(values) => values.truncate(rows),
            Self::Compression(values) => values.truncate(rows),
            Self::Text(_, texts) => texts.truncate(rows),
            Self::Partition(values) => values.truncate(rows),
            Self::Decoded(values) => values.truncate(rows),
            Self::Headers(headers) => headers.truncate(rows),
        }
    }

    /// Length of the longest variable-length buffer in bytes, or of the longest list.
    fn longest(&self) -> usize {
        match self {
            Self::Headers(headers) => headers.longest(),
            _ => self.data_len(),
        }
    }

    /// Bytes in variable-length buffers.
    fn data_len(&self) -> usize {
        match self {
            Self::Key(bytes) | Self::Value(bytes) => bytes.data_len(),
            Self::Decoded(values) => values.data_len(),
            Self::Headers(headers) => headers.data_len(),
            _ => 0,
        }
    }

    fn finish(&mut self, blocks: &[Buffer]) -> Result<ArrayRef> {
        Ok(match self {
            Self::Key(bytes) | Self::Value(bytes) => bytes.finish(blocks)?,
            Self::Offset(values) => Arc::new(Int64Array::from(take(values))),
            Self::Timestamp(values, unit, missing) => timestamps(take(values), *unit, *missing),
            Self::Sequence(values) => Arc::new(Int32Array::from(take(values))),
            Self::BatchInt64(_, values) => values.finish()?,
            Self::BatchInt32(_, values) => values.finish()?,
            Self::ProducerEpoch(values) => values.finish()?,
            Self::Magic(values) => values.finish()?,
            Self::IsTransactional(values) => values.finish()?,
            Self::Compression(values) => values.finish()?,
            Self::Text(_, texts) => texts.finish()?,
            Self::Partition(values) => values.finish()?,
            Self::Decoded(values) => values.finish()?,
            Self::Headers(headers) => headers.finish(blocks)?,
        })
    }
}

/// A column of timestamps. Missing ones are null, or `missing` if it is set.
fn timestamps(mut values: Vec<i64>, unit: TimestampUnit, missing: Option<i64>) -> ArrayRef {
    let none = unit.of_milliseconds(NO_TIMESTAMP);
    let mut nulls = None;
    if values.contains(&none) {
        match missing {
            Some(missing) => values.iter_mut().filter(|value| **value == none).for_each(|value| *value = missing),
            None => nulls = Some(values.iter().map(|value| *value != none).collect::<NullBuffer>()),
        }
    }
    let values = ScalarBuffer::from(values);
    match unit {
        TimestampUnit::Millisecond => Arc::new(TimestampMillisecondArray::new(values, nulls).with_timezone("UTC")),
        TimestampUnit::Microsecond => Arc::new(TimestampMicrosecondArray::new(values, nulls).with_timezone("UTC")),
    }
}

/// The timestamp of a record in microseconds since the epoch; −1000 for none.
#[inline]
pub(crate) fn microseconds_of(record: &Record<'_>) -> Result<i64> {
    let milliseconds = record.timestamp();
    milliseconds.checked_mul(1000).ok_or_else(|| timestamp_error(milliseconds, record.place))
}

#[cold]
fn timestamp_error(value: i64, place: RecordPosition) -> Error {
    let kind = ErrorKind::InvalidValue {
        value,
        expected: "a timestamp that fits microseconds: read it in milliseconds, or omit the timestamp column (this does \
            not help with skip and report)",
    };
    place.error(kind, "timestamp")
}

/// All columns of the Arrow batch under construction.
pub(crate) struct Columns {
    builders: Vec<Builder>,
    /// Decodes keys and values, if a column needs it.
    contents: Option<Contents>,
    /// The blocks that views refer to.
    blocks: Blocks,
    rows: usize,
}

impl Columns {
    pub(crate) fn new(options: &ScanOptions) -> Self {
        let builders = options.columns.iter().map(|&column| Builder::new(column, options)).collect();
        Self { builders, contents: Contents::of(options), blocks: Blocks::default(), rows: 0 }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The longest variable-length buffer, in bytes.
    pub(crate) fn longest(&self) -> usize {
        self.builders.iter().map(Builder::longest).max().unwrap_or(0)
    }

    /// Bytes in the variable-length buffers of all columns, and bytes that views keep alive.
    pub(crate) fn data_len(&self) -> usize {
        self.builders.iter().map(Builder::data_len).fold(self.blocks.retained(), usize::saturating_add)
    }

    /// Drops the records added since the last [`Columns::extend`], after a batch failed.
    pub(crate) fn roll_back(&mut self) {
        for builder in &mut self.builders {
            builder.truncate(self.rows);
        }
    }

    /// Begins a batch, whose records are in other memory than those of the batch before it.
    pub(crate) fn begin_batch(&mut self, batch: &Batch<'_>, origin: &Origin) {
        self.blocks.begin();
        if let Some(contents) = &mut self.contents {
            contents.begin(batch, origin);
        }
    }

    /// Adds records column by column, so that the column's type is matched once per chunk instead of once per value.
    pub(crate) fn push_all(&mut self, records: &[Record<'_>], memory: RecordMemory<'_>) -> Result<()> {
        let Self { builders, contents, blocks, .. } = self;
        builders.iter_mut().try_for_each(|builder| builder.push_all(records, blocks, memory))?;
        if let Some(contents) = contents {
            for record in records {
                let row = contents.row(record);
                for builder in &mut *builders {
                    if let Builder::Decoded(column) = builder {
                        column.push(&row);
                    }
                }
            }
        }
        Ok(())
    }

    /// The columns, if each record has a field of its own only in those that most scans have.
    pub(crate) fn common(&mut self) -> Option<CommonColumns<'_>> {
        let mut columns = CommonColumns::default();
        for builder in &mut self.builders {
            let is_second = match builder {
                Builder::Key(BinaryColumnBuilder::Copied(bytes)) => columns.key.replace(bytes).is_some(),
                Builder::Value(BinaryColumnBuilder::Copied(bytes)) => columns.value.replace(bytes).is_some(),
                Builder::Offset(values) => columns.offset.replace(values).is_some(),
                Builder::Timestamp(values, unit, _) => columns.timestamp.replace((values, *unit)).is_some(),
                Builder::Headers(headers) if headers.is_copied() => columns.headers.replace(headers).is_some(),
                Builder::Key(_)
                | Builder::Value(_)
                | Builder::Headers(_)
                | Builder::Sequence(_)
                | Builder::Decoded(_) => return None,
                _ => false,
            };
            if is_second {
                return None;
            }
        }
        Some(columns)
    }

    /// Adds records of which only the offsets are needed.
    pub(crate) fn push_offsets(&mut self, offsets: RangeInclusive<i64>) {
        for builder in &mut self.builders {
            if let Builder::Offset(values) = builder {
                values.extend(offsets.clone());
            }
        }
    }

    /// Adds the fields that `rows` records of a batch share.
    pub(crate) fn extend(&mut self, batch: &Batch<'_>, base_offset: i64, origin: &Origin, rows: usize) -> Result<()> {
        for builder in &mut self.builders {
            builder.extend(batch, base_offset, origin, rows)?;
        }
        self.rows = self.rows.saturating_add(rows);
        Ok(())
    }

    pub(crate) fn finish(&mut self) -> Result<Vec<ArrayRef>> {
        self.rows = 0;
        let blocks = self.blocks.finish();
        self.builders.iter_mut().map(|builder| builder.finish(&blocks)).collect()
    }
}

/// Columns that most scans have. A record is added to all of them at once, while its fields are in registers.
#[derive(Default)]
pub(crate) struct CommonColumns<'c> {
    key: Option<&'c mut BytesBuilder>,
    value: Option<&'c mut BytesBuilder>,
    offset: Option<&'c mut Vec<i64>>,
    timestamp: Option<(&'c mut Vec<i64>, TimestampUnit)>,
    headers: Option<&'c mut HeadersBuilder>,
    /// Number of records added.
    pub(crate) rows: usize,
}

impl RecordSink for CommonColumns<'_> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of the loop of `Records::push_to`")]
    fn push(&mut self, record: Record<'_>) -> Result<()> {
        if let Some(bytes) = &mut self.key {
            bytes.push(record.key());
        }
        if let Some(bytes) = &mut self.value {
            bytes.push(record.value());
        }
        if let Some(values) = &mut self.offset {
            values.push(record.offset());
        }
        if let Some((values, unit)) = &mut self.timestamp {
            values.push(match unit {
                TimestampUnit::Millisecond => record.timestamp(),
                TimestampUnit::Microsecond => microseconds_of(&record)?,
            });
        }
        if let Some(headers) = &mut self.headers {
            headers.push_copied(record.headers())?;
        }
        self.rows = self.rows.wrapping_add(1);
        Ok(())
    }
}
