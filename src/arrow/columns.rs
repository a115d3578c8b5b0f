//! Column builders: records in, Arrow arrays out.
//!
//! Plain vectors with capacity kept from batch to batch; a builder that grows from nothing costs five times as much.

use std::sync::Arc;

use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, Int8Array, Int16Array, Int32Array, Int64Array, ListArray, StringArray,
    StructArray, TimestampMicrosecondArray, TimestampMillisecondArray,
};
use arrow_buffer::{BooleanBufferBuilder, Buffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};

use crate::arrow::binary_views::{Blocks, Memory, Views};
use crate::arrow::options::ScanOptions;
use crate::arrow::schema::{Column, TimestampUnit, header_field, header_fields};
use crate::compression::Compression;
use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Batch;
use crate::format::record::Record;

/// What all records of one file or buffer share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    pub(crate) topic: Option<Arc<str>>,
    pub(crate) partition: Option<i32>,
    pub(crate) segment: Option<Arc<str>>,
}

/// A `binary` or `string` column under construction.
struct Bytes {
    offsets: Vec<i32>,
    data: Vec<u8>,
    nulls: NullBufferBuilder,
    /// Rows and bytes to make room for in the next batch.
    expected: (usize, usize),
}

impl Bytes {
    fn new() -> Self {
        Self { offsets: vec![0], data: Vec::new(), nulls: NullBufferBuilder::new(0), expected: (0, 0) }
    }

    fn push(&mut self, bytes: Option<&[u8]>) {
        self.data.extend_from_slice(bytes.unwrap_or_default());
        if bytes.is_some() {
            self.nulls.append_non_null();
        } else {
            self.nulls.append_null();
        }
        self.end_row();
    }

    /// Adds the same part of several records.
    fn push_all<'s>(&mut self, records: &[Record<'s>], part: impl Fn(&Record<'s>) -> Option<&'s [u8]>) {
        self.offsets.reserve(records.len());
        let (mut len, mut count) = (0_usize, 0_usize);
        for bytes in records.iter().filter_map(&part) {
            len = len.wrapping_add(bytes.len());
            count = count.wrapping_add(1);
        }
        self.data.reserve(len);
        if count == records.len() {
            self.nulls.append_n_non_nulls(count);
        } else {
            for record in records {
                self.nulls.append(part(record).is_some());
            }
        }
        for record in records {
            self.data.extend_from_slice(part(record).unwrap_or_default());
            self.end_row();
        }
    }

    #[inline]
    fn end_row(&mut self) {
        // the scan asks for `longest` after each batch, so that a saturated offset is never given out
        self.offsets.push(i32::try_from(self.data.len()).unwrap_or(i32::MAX));
    }

    fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    fn truncate(&mut self, rows: usize) {
        self.offsets.truncate(rows.saturating_add(1));
        let end = self.offsets.last().copied().unwrap_or_default();
        self.data.truncate(usize::try_from(end).unwrap_or_default());
        self.nulls.truncate(rows);
    }

    fn take(&mut self) -> (OffsetBuffer<i32>, Buffer, Option<arrow_buffer::NullBuffer>) {
        let (rows, bytes) = self.expected;
        self.expected = (rows.max(self.len()), bytes.max(self.data.len()));
        let (rows, bytes) = self.expected;
        let mut offsets = Vec::with_capacity(rows.saturating_add(1));
        offsets.push(0);
        let offsets = std::mem::replace(&mut self.offsets, offsets);
        let data = std::mem::replace(&mut self.data, Vec::with_capacity(bytes));
        (OffsetBuffer::new(ScalarBuffer::from(offsets)), Buffer::from_vec(data), self.nulls.finish())
    }

    fn finish_binary(&mut self) -> Result<BinaryArray> {
        let (offsets, data, nulls) = self.take();
        BinaryArray::try_new(offsets, data, nulls).map_err(|error| Error::argument(error.to_string()))
    }

    fn finish_string(&mut self) -> Result<StringArray> {
        let (offsets, data, nulls) = self.take();
        StringArray::try_new(offsets, data, nulls).map_err(|error| Error::argument(error.to_string()))
    }
}

/// A `binary` or `binary_view` column under construction.
enum Values {
    Copied(Bytes),
    Viewed(Views),
}

impl Values {
    fn new(binary_view: bool) -> Self {
        if binary_view { Self::Viewed(Views::new()) } else { Self::Copied(Bytes::new()) }
    }

    fn push_all<'s>(
        &mut self,
        records: &[Record<'s>],
        part: impl Fn(&Record<'s>) -> Option<&'s [u8]>,
        blocks: &mut Blocks,
        memory: Memory<'_>,
    ) {
        match self {
            Self::Copied(bytes) => bytes.push_all(records, part),
            Self::Viewed(views) => views.push_all(records, part, blocks, memory),
        }
    }

    fn push(&mut self, bytes: Option<&[u8]>, blocks: &mut Blocks, memory: Memory<'_>) {
        match self {
            Self::Copied(copied) => copied.push(bytes),
            Self::Viewed(views) => views.push(bytes, blocks, memory),
        }
    }

    fn truncate(&mut self, rows: usize) {
        match self {
            Self::Copied(bytes) => bytes.truncate(rows),
            Self::Viewed(views) => views.truncate(rows),
        }
    }

    /// Bytes copied.
    fn data_len(&self) -> usize {
        match self {
            Self::Copied(bytes) => bytes.data.len(),
            Self::Viewed(_) => 0,
        }
    }

    fn finish(&mut self, blocks: &[Buffer]) -> Result<ArrayRef> {
        Ok(match self {
            Self::Copied(bytes) => Arc::new(bytes.finish_binary()?),
            Self::Viewed(views) => Arc::new(views.finish(blocks)?),
        })
    }
}

/// Takes a vector, leaving one of the same capacity.
fn take<T>(values: &mut Vec<T>) -> Vec<T> {
    let capacity = values.capacity();
    std::mem::replace(values, Vec::with_capacity(capacity))
}

/// One column under construction.
enum Builder {
    Key(Values),
    Value(Values),
    Offset(Vec<i64>),
    Timestamp(Vec<i64>, TimestampUnit),
    Sequence(Vec<i32>),
    Headers {
        lists: Vec<i32>,
        keys: Bytes,
        values: Values,
    },
    /// Columns that hold one value for each batch or file; written a batch at a time.
    BatchInt64(Column, Vec<i64>),
    BatchInt32(Column, Vec<i32>),
    BatchInt16(Vec<i16>),
    BatchInt8(Vec<i8>),
    IsTransactional(BooleanBufferBuilder),
    Text(Column, Bytes),
    Partition {
        values: Vec<i32>,
        nulls: NullBufferBuilder,
    },
}

impl Builder {
    fn new(column: Column, options: &ScanOptions) -> Self {
        let ScanOptions { timestamp_unit: unit, binary_view, .. } = *options;
        match column {
            Column::Key => Self::Key(Values::new(binary_view)),
            Column::Value => Self::Value(Values::new(binary_view)),
            Column::Offset => Self::Offset(Vec::new()),
            Column::Timestamp => Self::Timestamp(Vec::new(), unit),
            Column::Sequence => Self::Sequence(Vec::new()),
            Column::Headers => Self::Headers { lists: vec![0], keys: Bytes::new(), values: Values::new(binary_view) },
            Column::BaseOffset | Column::Position | Column::ProducerId => Self::BatchInt64(column, Vec::new()),
            Column::TimestampType | Column::PartitionLeaderEpoch | Column::BatchSize => {
                Self::BatchInt32(column, Vec::new())
            }
            Column::ProducerEpoch => Self::BatchInt16(Vec::new()),
            Column::Magic => Self::BatchInt8(Vec::new()),
            Column::IsTransactional => Self::IsTransactional(BooleanBufferBuilder::new(0)),
            Column::Topic | Column::Compression | Column::Segment => Self::Text(column, Bytes::new()),
            Column::Partition => Self::Partition { values: Vec::new(), nulls: NullBufferBuilder::new(0) },
        }
    }

    /// Adds what records have of their own.
    fn push_all(&mut self, records: &[Record<'_>], blocks: &mut Blocks, memory: Memory<'_>) -> Result<()> {
        match self {
            Self::Key(bytes) => bytes.push_all(records, Record::key, blocks, memory),
            Self::Value(bytes) => bytes.push_all(records, Record::value, blocks, memory),
            Self::Offset(values) => values.extend(records.iter().map(Record::offset)),
            Self::Timestamp(values, TimestampUnit::Millisecond) => values.extend(records.iter().map(Record::timestamp)),
            Self::Timestamp(values, TimestampUnit::Microsecond) => {
                for record in records {
                    values.push(record.timestamp().checked_mul(1000).ok_or_else(|| timestamp_error(record))?);
                }
            }
            Self::Sequence(values) => values.extend(records.iter().map(Record::sequence)),
            Self::Headers { lists, keys, values } => {
                for record in records {
                    for header in record.headers() {
                        let header = header?;
                        keys.push(Some(header.key_lossy().as_bytes()));
                        values.push(header.value(), blocks, memory);
                    }
                    lists.push(i32::try_from(keys.len()).unwrap_or(i32::MAX));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds what `rows` records of a batch share.
    fn extend(&mut self, batch: &Batch<'_>, base_offset: i64, origin: &Origin, rows: usize) -> Result<()> {
        match self {
            Self::BatchInt64(column, values) => {
                let value = match column {
                    Column::BaseOffset => base_offset,
                    Column::Position => i64::try_from(batch.position()).unwrap_or(i64::MAX),
                    _ => batch.producer_id(),
                };
                values.resize(values.len().saturating_add(rows), value);
            }
            Self::BatchInt32(column, values) => {
                let value = match column {
                    Column::TimestampType => batch.timestamp_type().map_or(-1, crate::TimestampType::id),
                    Column::PartitionLeaderEpoch => batch.partition_leader_epoch(),
                    _ => i32::try_from(batch.size()).unwrap_or(i32::MAX),
                };
                values.resize(values.len().saturating_add(rows), value);
            }
            Self::BatchInt16(values) => values.resize(values.len().saturating_add(rows), batch.producer_epoch()),
            Self::BatchInt8(values) => values.resize(values.len().saturating_add(rows), batch.magic().cast_signed()),
            Self::IsTransactional(values) => values.append_n(rows, batch.is_transactional()),
            Self::Text(column, bytes) => {
                let text = match column {
                    Column::Topic => origin.topic.as_deref(),
                    Column::Segment => origin.segment.as_deref(),
                    _ => Some(batch.compression().map(Compression::name)?),
                };
                bytes.data.reserve(text.map_or(0, str::len).saturating_mul(rows));
                for _ in 0..rows {
                    bytes.push(text.map(str::as_bytes));
                }
            }
            Self::Partition { values, nulls } => {
                values.resize(values.len().saturating_add(rows), origin.partition.unwrap_or_default());
                if origin.partition.is_some() { nulls.append_n_non_nulls(rows) } else { nulls.append_n_nulls(rows) }
            }
            _ => {}
        }
        Ok(())
    }

    /// Drops all but the first rows.
    fn truncate(&mut self, rows: usize) {
        match self {
            Self::Key(bytes) | Self::Value(bytes) => bytes.truncate(rows),
            Self::Text(_, bytes) => bytes.truncate(rows),
            Self::Offset(values) | Self::Timestamp(values, _) | Self::BatchInt64(_, values) => values.truncate(rows),
            Self::Sequence(values) | Self::BatchInt32(_, values) => values.truncate(rows),
            Self::BatchInt16(values) => values.truncate(rows),
            Self::BatchInt8(values) => values.truncate(rows),
            Self::IsTransactional(values) => values.truncate(rows),
            Self::Partition { values, nulls } => {
                values.truncate(rows);
                nulls.truncate(rows);
            }
            Self::Headers { lists, keys, values } => {
                lists.truncate(rows.saturating_add(1));
                let count = usize::try_from(lists.last().copied().unwrap_or_default()).unwrap_or_default();
                keys.truncate(count);
                values.truncate(count);
            }
        }
    }

    /// The longest buffer of variable length.
    fn longest(&self) -> usize {
        match self {
            Self::Headers { keys, values, .. } => keys.data.len().max(values.data_len()),
            _ => self.data_len(),
        }
    }

    /// Bytes of variable length held.
    fn data_len(&self) -> usize {
        match self {
            Self::Key(bytes) | Self::Value(bytes) => bytes.data_len(),
            Self::Text(_, bytes) => bytes.data.len(),
            Self::Headers { keys, values, .. } => keys.data.len().saturating_add(values.data_len()),
            _ => 0,
        }
    }

    fn finish(&mut self, blocks: &[Buffer]) -> Result<ArrayRef> {
        Ok(match self {
            Self::Key(bytes) | Self::Value(bytes) => bytes.finish(blocks)?,
            Self::Text(_, bytes) => Arc::new(bytes.finish_string()?),
            Self::Offset(values) | Self::BatchInt64(_, values) => Arc::new(Int64Array::from(take(values))),
            Self::Timestamp(values, TimestampUnit::Millisecond) => {
                Arc::new(TimestampMillisecondArray::from(take(values)).with_timezone("UTC"))
            }
            Self::Timestamp(values, TimestampUnit::Microsecond) => {
                Arc::new(TimestampMicrosecondArray::from(take(values)).with_timezone("UTC"))
            }
            Self::Sequence(values) | Self::BatchInt32(_, values) => Arc::new(Int32Array::from(take(values))),
            Self::BatchInt16(values) => Arc::new(Int16Array::from(take(values))),
            Self::BatchInt8(values) => Arc::new(Int8Array::from(take(values))),
            Self::IsTransactional(values) => Arc::new(BooleanArray::new(values.finish(), None)),
            Self::Partition { values, nulls } => {
                Arc::new(Int32Array::new(ScalarBuffer::from(take(values)), nulls.finish()))
            }
            Self::Headers { lists, keys, values } => {
                let columns: Vec<ArrayRef> = vec![Arc::new(keys.finish_string()?), values.finish(blocks)?];
                let invalid = |error: arrow_schema::ArrowError| Error::argument(error.to_string());
                let binary_view = matches!(values, Values::Viewed(_));
                let structs = StructArray::try_new(header_fields(binary_view), columns, None).map_err(invalid)?;
                let offsets = OffsetBuffer::new(ScalarBuffer::from(std::mem::replace(lists, vec![0])));
                let list = ListArray::try_new(Arc::new(header_field(binary_view)), offsets, Arc::new(structs), None);
                Arc::new(list.map_err(invalid)?)
            }
        })
    }
}

#[cold]
fn timestamp_error(record: &Record<'_>) -> Error {
    let kind = ErrorKind::InvalidValue {
        value: record.timestamp(),
        expected: "a timestamp that fits microseconds; leave the timestamp column out, or read it in milliseconds",
    };
    record.place.error(kind, "timestamp")
}

/// All columns of the Arrow batch under construction.
pub(crate) struct Columns {
    builders: Vec<Builder>,
    /// What views point to.
    blocks: Blocks,
    rows: usize,
}

impl Columns {
    pub(crate) fn new(options: &ScanOptions) -> Self {
        let builders = options.columns.iter().map(|&column| Builder::new(column, options)).collect();
        Self { builders, blocks: Blocks::default(), rows: 0 }
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The longest variable-length buffer, in bytes.
    pub(crate) fn longest(&self) -> usize {
        self.builders.iter().map(Builder::longest).max().unwrap_or(0)
    }

    /// Bytes of variable length in all columns, and those kept from being freed.
    pub(crate) fn data_len(&self) -> usize {
        self.builders.iter().map(Builder::data_len).fold(self.blocks.retained(), usize::saturating_add)
    }

    /// Drops what was added since the last [`Columns::extend`]: the records of a batch that failed.
    pub(crate) fn roll_back(&mut self) {
        for builder in &mut self.builders {
            builder.truncate(self.rows);
        }
    }

    /// Begins a batch, whose records lie elsewhere than the last one's.
    pub(crate) fn begin_batch(&mut self) {
        self.blocks.begin();
    }

    /// Adds records column by column: one decision a column and chunk, not one a value.
    pub(crate) fn push_all(&mut self, records: &[Record<'_>], memory: Memory<'_>) -> Result<()> {
        let Self { builders, blocks, .. } = self;
        builders.iter_mut().try_for_each(|builder| builder.push_all(records, blocks, memory))
    }

    /// Adds what `rows` records of a batch share.
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
