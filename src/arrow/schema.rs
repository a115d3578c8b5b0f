//! The columns a scan can have, and their Arrow types.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

use crate::error::{Error, Result};

/// A column of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Column {
    /// `binary`: the key.
    Key,
    /// `binary`: the value.
    Value,
    /// `string`: the topic, null if unknown.
    Topic,
    /// `int32`: the partition, null if unknown.
    Partition,
    /// `int64`: offset of the record.
    Offset,
    /// `timestamp[ms or us, UTC]`: timestamp of the record; null if it has none.
    Timestamp,
    /// `int32`: 0 `CreateTime`, 1 `LogAppendTime`, −1 none (v0), as in Spark's Kafka source.
    TimestampType,
    /// `list<struct<key: string, value: binary>>`: headers in their order; keys that are not UTF-8 show U+FFFD.
    Headers,
    /// `int64`: base offset of the record's batch; for compressed message sets of magic 0 and 1, offset of the first
    /// message.
    BaseOffset,
    /// `int64`: byte position of the record's batch in its file or buffer.
    Position,
    /// `int32`: leader epoch of the batch, −1 for none.
    PartitionLeaderEpoch,
    /// `int64`: producer id, −1 for none.
    ProducerId,
    /// `int16`: producer epoch, −1 for none.
    ProducerEpoch,
    /// `int32`: sequence of the record, −1 for none.
    Sequence,
    /// `bool`: whether the batch belongs to a transaction.
    IsTransactional,
    /// `string`: codec of the batch: none, gzip, snappy, lz4, zstd.
    Compression,
    /// `int8`: message format of the batch, 0 to 2.
    Magic,
    /// `int32`: bytes of the batch as stored, with its 12 bytes of log overhead.
    BatchSize,
    /// `string`: path of the file, null for a buffer.
    Segment,
    /// `string`: name of the record type in an internal topic, null if it is unknown.
    RecordType,
    /// `int16`: number of the record type.
    TypeId,
    /// `int16`: version of the value, null for a tombstone.
    Version,
    /// `string`, named `key`: the key as JSON; null if there is none, and if it cannot be decoded.
    KeyJson,
    /// `string`, named `value`: the value as JSON; null for a tombstone, and if it cannot be decoded.
    ValueJson,
    /// `bool`: whether the value is null, so that the record deletes its key.
    IsTombstone,
    /// `bool`: whether it is a control record.
    IsControl,
    /// `int32`: id of the value's schema, if the value is in Confluent's wire format.
    SchemaId,
    /// `string`: why the key or the value could not be decoded; null if both were.
    Reason,
}

impl Column {
    /// Every column of ordinary records.
    pub const ALL: [Self; 19] = [
        Self::Key,
        Self::Value,
        Self::Topic,
        Self::Partition,
        Self::Offset,
        Self::Timestamp,
        Self::TimestampType,
        Self::Headers,
        Self::BaseOffset,
        Self::Position,
        Self::PartitionLeaderEpoch,
        Self::ProducerId,
        Self::ProducerEpoch,
        Self::Sequence,
        Self::IsTransactional,
        Self::Compression,
        Self::Magic,
        Self::BatchSize,
        Self::Segment,
    ];

    /// The default columns of ordinary records: those of Spark's Kafka source, headers included.
    pub const DEFAULT: [Self; 8] = [
        Self::Key,
        Self::Value,
        Self::Topic,
        Self::Partition,
        Self::Offset,
        Self::Timestamp,
        Self::TimestampType,
        Self::Headers,
    ];

    /// Every column of the records of internal topics. They have `key` and `value` as JSON.
    /// [`ScanOptions::decoder`](crate::arrow::ScanOptions::decoder) selects how they are decoded. If that fails, the row
    /// has the reason.
    pub const INTERNAL: [Self; 26] = [
        Self::Topic,
        Self::Partition,
        Self::Offset,
        Self::Timestamp,
        Self::RecordType,
        Self::TypeId,
        Self::Version,
        Self::KeyJson,
        Self::ValueJson,
        Self::IsTombstone,
        Self::Reason,
        Self::IsControl,
        Self::SchemaId,
        Self::TimestampType,
        Self::Headers,
        Self::BaseOffset,
        Self::Position,
        Self::PartitionLeaderEpoch,
        Self::ProducerId,
        Self::ProducerEpoch,
        Self::Sequence,
        Self::IsTransactional,
        Self::Compression,
        Self::Magic,
        Self::BatchSize,
        Self::Segment,
    ];

    /// The default columns of the records of internal topics.
    pub const INTERNAL_DEFAULT: [Self; 11] = [
        Self::Topic,
        Self::Partition,
        Self::Offset,
        Self::Timestamp,
        Self::RecordType,
        Self::TypeId,
        Self::Version,
        Self::KeyJson,
        Self::ValueJson,
        Self::IsTombstone,
        Self::Reason,
    ];

    /// The column of internal topics with a name.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for an unknown name.
    pub fn of_internal(name: &str) -> Result<Self> {
        Self::INTERNAL.into_iter().find(|column| column.name() == name).ok_or_else(|| {
            let names = Self::INTERNAL.map(Self::name).join(", ");
            Error::argument(format!("there is no column {name:?} in the view internal; choose among {names}"))
        })
    }

    /// Whether the column is built from a decoded key or value.
    pub(crate) fn is_decoded(self) -> bool {
        matches!(
            self,
            Self::RecordType
                | Self::TypeId
                | Self::Version
                | Self::KeyJson
                | Self::ValueJson
                | Self::IsTombstone
                | Self::IsControl
                | Self::SchemaId
                | Self::Reason
        )
    }

    /// Name in the schema.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Key | Self::KeyJson => "key",
            Self::Value | Self::ValueJson => "value",
            Self::Topic => "topic",
            Self::Partition => "partition",
            Self::Offset => "offset",
            Self::Timestamp => "timestamp",
            Self::TimestampType => "timestamp_type",
            Self::Headers => "headers",
            Self::BaseOffset => "base_offset",
            Self::Position => "position",
            Self::PartitionLeaderEpoch => "partition_leader_epoch",
            Self::ProducerId => "producer_id",
            Self::ProducerEpoch => "producer_epoch",
            Self::Sequence => "sequence",
            Self::IsTransactional => "is_transactional",
            Self::Compression => "compression",
            Self::Magic => "magic",
            Self::BatchSize => "batch_size",
            Self::Segment => "segment",
            Self::RecordType => "record_type",
            Self::TypeId => "type_id",
            Self::Version => "version",
            Self::IsTombstone => "is_tombstone",
            Self::IsControl => "is_control",
            Self::SchemaId => "schema_id",
            Self::Reason => "reason",
        }
    }

    pub(crate) fn field(self, unit: TimestampUnit, binary_view: bool) -> Field {
        let data_type = match self {
            Self::Key | Self::Value => binary(binary_view),
            Self::Topic
            | Self::Compression
            | Self::Segment
            | Self::RecordType
            | Self::KeyJson
            | Self::ValueJson
            | Self::Reason => DataType::Utf8,
            Self::Partition
            | Self::TimestampType
            | Self::PartitionLeaderEpoch
            | Self::Sequence
            | Self::BatchSize
            | Self::SchemaId => DataType::Int32,
            Self::Offset | Self::BaseOffset | Self::Position | Self::ProducerId => DataType::Int64,
            Self::Timestamp => DataType::Timestamp(unit.into(), Some("UTC".into())),
            Self::Headers => DataType::List(Arc::new(header_field(binary_view))),
            Self::ProducerEpoch | Self::TypeId | Self::Version => DataType::Int16,
            Self::IsTransactional | Self::IsTombstone | Self::IsControl => DataType::Boolean,
            Self::Magic => DataType::Int8,
        };
        Field::new(self.name(), data_type, true)
    }
}

/// The element of the `headers` list.
pub(crate) fn header_field(binary_view: bool) -> Field {
    Field::new("element", DataType::Struct(header_fields(binary_view)), true)
}

pub(crate) fn header_fields(binary_view: bool) -> Fields {
    Fields::from(vec![Field::new("key", DataType::Utf8, true), Field::new("value", binary(binary_view), true)])
}

fn binary(view: bool) -> DataType {
    if view { DataType::BinaryView } else { DataType::Binary }
}

pub(crate) fn schema_of(columns: &[Column], unit: TimestampUnit, binary_view: bool) -> SchemaRef {
    Arc::new(Schema::new(columns.iter().map(|column| column.field(unit, binary_view)).collect::<Vec<_>>()))
}

/// Name of the column that [`OnCorrupt::Report`](crate::arrow::OnCorrupt::Report) adds.
pub(crate) const ERROR: &str = "error";

/// The fields of the `error` column.
pub(crate) fn error_fields() -> Fields {
    let text = |name: &str| Field::new(name, DataType::Utf8, true);
    let number = |name: &str| Field::new(name, DataType::Int64, true);
    Fields::from(vec![
        text("kind"),
        text("message"),
        text("path"),
        number("position"),
        number("length"),
        number("first_offset"),
        number("last_offset"),
    ])
}

/// A schema with the `error` column after its own.
pub(crate) fn with_error(schema: &Schema) -> SchemaRef {
    let error = Arc::new(Field::new(ERROR, DataType::Struct(error_fields()), true));
    Arc::new(Schema::new(schema.fields().iter().cloned().chain([error]).collect::<Vec<_>>()))
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Column {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|column| column.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::argument(if name == ERROR {
                format!(
                    "the column {ERROR:?} is added as the last column when corruption is reported; choose among {names}"
                )
            } else {
                format!("there is no column {name:?}; choose among {names}")
            })
        })
    }
}

/// Unit of the `timestamp` column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum TimestampUnit {
    /// Milliseconds, as in Kafka: every timestamp fits.
    #[default]
    Millisecond,
    /// Microseconds, as in Spark: a timestamp more than 292,000 years from 1970 does not fit and is an error.
    Microsecond,
}

impl TimestampUnit {
    /// A time in this unit; the largest or smallest one if it does not fit.
    pub(crate) fn of_milliseconds(self, milliseconds: i64) -> i64 {
        match self {
            Self::Millisecond => milliseconds,
            Self::Microsecond => milliseconds.saturating_mul(1000),
        }
    }
}

impl From<TimestampUnit> for TimeUnit {
    fn from(unit: TimestampUnit) -> Self {
        match unit {
            TimestampUnit::Millisecond => Self::Millisecond,
            TimestampUnit::Microsecond => Self::Microsecond,
        }
    }
}
