//! The table of all columns: name, type, views and description of each.
//!
//! The enums of columns with their documentation, the schemas of scans, the types of columns in SQL
//! (`plan::columns`) and the columns in `docs/spark-options.md` are generated from it. A column is added with a row of
//! this table and the code that computes its values: in `columns.rs` for records, in `decoded.rs` for internal topics,
//! in `views/` for batches and segments.

use std::fmt;

/// What a row of a scan describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum View {
    /// A record.
    Records,
    /// A record of an internal topic, with key and value as JSON.
    Internal,
    /// A batch.
    Batches,
    /// A segment file.
    Segments,
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ColumnType {
    /// Bytes: `binary`, or `binary_view` if requested.
    Binary,
    /// `string`.
    Text,
    /// `bool`.
    Boolean,
    /// `int8`.
    Int8,
    /// `int16`.
    Int16,
    /// `int32`.
    Int32,
    /// `int64`.
    Int64,
    /// `double`.
    Float64,
    /// `timestamp` in milliseconds or microseconds, UTC.
    Timestamp,
    /// `list<struct<key: string, value: binary>>`.
    Headers,
    /// A struct that describes corruption.
    Error,
}

impl ColumnType {
    /// Name of the type in SQL.
    #[must_use]
    pub const fn sql(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::Text => "string",
            Self::Boolean => "boolean",
            Self::Int8 => "tinyint",
            Self::Int16 => "smallint",
            Self::Int32 => "int",
            Self::Int64 => "bigint",
            Self::Float64 => "double",
            Self::Timestamp => "timestamp",
            Self::Headers => "array<struct<key:string,value:binary>>",
            Self::Error => {
                "struct<kind:string,message:string,path:string,position:bigint,length:bigint,first_offset:bigint,\
                 last_offset:bigint>"
            }
        }
    }
}

/// A row of the table. Every column may be null.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColumnDefinition {
    /// Name in a scan.
    pub name: &'static str,
    /// Type of the values.
    pub data_type: ColumnType,
    /// The views that have the column.
    pub views: &'static [View],
    /// The views that return the column by default.
    pub default_in: &'static [View],
    /// What the column contains.
    pub text: &'static str,
}

/// Declares an enum of columns. Each row has variant, name, type, views, views with the column by default, and text.
macro_rules! columns {
    (
        $(#[$about:meta])*
        $columns:ident
        $($column:ident $name:literal $data_type:ident [$($view:ident)*] [$($default_in:ident)*] $text:literal)*
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $columns {
            $(
                #[doc = concat!(
                    "[`", stringify!($data_type), "`](ColumnType::", stringify!($data_type), "): ", $text, "."
                )]
                $column,
            )*
        }

        impl $columns {
            /// Every column, in the order of the table.
            const EVERY: &'static [Self] = &[$(Self::$column),*];

            /// The row of the table.
            #[must_use]
            pub const fn definition(self) -> &'static ColumnDefinition {
                match self {
                    $(
                        Self::$column => const {
                            &ColumnDefinition {
                                name: $name,
                                data_type: ColumnType::$data_type,
                                views: &[$(View::$view),*],
                                default_in: &[$(View::$default_in),*],
                                text: $text,
                            }
                        },
                    )*
                }
            }

            /// Name in the schema.
            #[must_use]
            pub const fn name(self) -> &'static str {
                self.definition().name
            }

            /// The columns of a view.
            pub(crate) fn of_view(view: View) -> Vec<Self> {
                Self::EVERY.iter().copied().filter(|column| column.definition().views.contains(&view)).collect()
            }

            /// The columns that a view returns by default.
            pub(crate) fn defaults_of(view: View) -> Vec<Self> {
                Self::EVERY.iter().copied().filter(|column| column.definition().default_in.contains(&view)).collect()
            }
        }

        impl fmt::Display for $columns {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.name())
            }
        }
    };
}

columns! {
    /// A column of a scan of records.
    Column

    Key "key" Binary [Records] [Records]
        "key of the record"
    Value "value" Binary [Records] [Records]
        "value of the record"
    Topic "topic" Text [Records Internal] [Records Internal]
        "topic, from the directory's name or the option `topic`; else null"
    Partition "partition" Int32 [Records Internal] [Records Internal]
        "partition, from the directory's name or the option `partition`; else null"
    Offset "offset" Int64 [Records Internal] [Records Internal]
        "offset of the record"
    Timestamp "timestamp" Timestamp [Records Internal] [Records Internal]
        "timestamp of the record; null for records without one (format v0), but in Spark -1 ms, as in its Kafka source"
    RecordType "record_type" Text [Internal] [Internal]
        "name of the record type in an internal topic; null if it is unknown"
    TypeId "type_id" Int16 [Internal] [Internal]
        "number of the record type"
    Version "version" Int16 [Internal] [Internal]
        "version of the value; null for a tombstone"
    KeyJson "key" Text [Internal] [Internal]
        "the key as JSON; null if there is none, and if it cannot be decoded"
    ValueJson "value" Text [Internal] [Internal]
        "the value as JSON; null for a tombstone, and if it cannot be decoded"
    IsTombstone "is_tombstone" Boolean [Internal] [Internal]
        "whether the value is null, so that the record deletes its key"
    Reason "reason" Text [Internal] [Internal]
        "why the key or the value could not be decoded; null if both were"
    IsControl "is_control" Boolean [Internal] []
        "whether it is a control record"
    SchemaId "schema_id" Int32 [Internal] []
        "id of the value's schema, if the value is in Confluent's wire format"
    TimestampType "timestamp_type" Int32 [Records Internal] [Records]
        "0 CreateTime, 1 LogAppendTime, -1 none (format v0)"
    Headers "headers" Headers [Records Internal] [Records]
        "record headers, in their order; in Spark null for a record without headers, as in its Kafka source"
    BaseOffset "base_offset" Int64 [Records Internal] []
        "base offset of the record's batch; for compressed sets of format v0 and v1, offset of the first message"
    Position "position" Int64 [Records Internal] []
        "byte position of the record's batch in its file or buffer"
    PartitionLeaderEpoch "partition_leader_epoch" Int32 [Records Internal] []
        "leader epoch of the batch; -1 for none"
    ProducerId "producer_id" Int64 [Records Internal] []
        "producer id of the batch; -1 for none"
    ProducerEpoch "producer_epoch" Int16 [Records Internal] []
        "producer epoch of the batch; -1 for none"
    Sequence "sequence" Int32 [Records Internal] []
        "sequence of the record; -1 for none"
    IsTransactional "is_transactional" Boolean [Records Internal] []
        "whether the batch belongs to a transaction"
    Compression "compression" Text [Records Internal] []
        "codec of the batch, such as zstd; none if it is not compressed"
    Magic "magic" Int8 [Records Internal] []
        "message format of the batch: 0, 1 or 2"
    BatchSize "batch_size" Int32 [Records Internal] []
        "bytes of the record's batch as stored, its 12 bytes of log overhead included"
    Segment "segment" Text [Records Internal] []
        "path of the file; null for a buffer"
}

impl Column {
    /// Whether a batch header shows the column's values for all records, if there are as many records as offsets.
    pub(crate) fn is_in_header(self) -> bool {
        matches!(
            self,
            Self::Offset
                | Self::Topic
                | Self::Partition
                | Self::Segment
                | Self::TimestampType
                | Self::BaseOffset
                | Self::Position
                | Self::BatchSize
                | Self::PartitionLeaderEpoch
                | Self::ProducerId
                | Self::ProducerEpoch
                | Self::IsTransactional
                | Self::Compression
                | Self::Magic
        )
    }
}

columns! {
    /// A column of a scan with one row per batch.
    BatchColumn

    Topic "topic" Text [Batches] [Batches]
        "topic, from the directory's name or the option `topic`; else null"
    Partition "partition" Int32 [Batches] [Batches]
        "partition, from the directory's name or the option `partition`; else null"
    Segment "segment" Text [Batches] [Batches]
        "path of the file; null for a buffer"
    Position "position" Int64 [Batches] [Batches]
        "byte position in the file or buffer"
    Size "size" Int32 [Batches] [Batches]
        "bytes as stored, the 12 bytes of log overhead included"
    BaseOffset "base_offset" Int64 [Batches] [Batches]
        "base offset; null for compressed sets of format v0 and v1, which must be decompressed to compute it"
    LastOffset "last_offset" Int64 [Batches] [Batches]
        "last offset"
    RecordCount "record_count" Int32 [Batches] [Batches]
        "number of records in the header; null for compressed v0 and v1 sets"
    Magic "magic" Int8 [Batches] [Batches]
        "message format: 0, 1 or 2"
    Compression "compression" Text [Batches] [Batches]
        "codec, such as zstd; none if it is not compressed, unknown for the codec bits 5 to 7"
    StoredSize "stored_size" Int32 [Batches] [Batches]
        "bytes after the header: the records as stored, or key and value of a v0 or v1 message"
    TimestampType "timestamp_type" Text [Batches] [Batches]
        "CreateTime or LogAppendTime; null in format v0"
    BaseTimestamp "base_timestamp" Timestamp [Batches] [Batches]
        "base timestamp; null for none, and if the field contains a delete horizon"
    MaxTimestamp "max_timestamp" Timestamp [Batches] [Batches]
        "largest timestamp of the records; null for none"
    DeleteHorizon "delete_horizon" Timestamp [Batches] [Batches]
        "when compaction may drop its tombstones or markers; null if not set"
    PartitionLeaderEpoch "partition_leader_epoch" Int32 [Batches] [Batches]
        "leader epoch; -1 for none"
    ProducerId "producer_id" Int64 [Batches] [Batches]
        "producer id; -1 for none"
    ProducerEpoch "producer_epoch" Int16 [Batches] [Batches]
        "producer epoch; -1 for none"
    BaseSequence "base_sequence" Int32 [Batches] [Batches]
        "sequence of the first record; -1 for none"
    LastSequence "last_sequence" Int32 [Batches] [Batches]
        "sequence of the last record; -1 for none"
    IsTransactional "is_transactional" Boolean [Batches] [Batches]
        "whether it belongs to a transaction"
    IsControl "is_control" Boolean [Batches] [Batches]
        "whether it holds control records"
    Crc "crc" Int64 [Batches] [Batches]
        "the stored checksum, unsigned"
    CrcOk "crc_ok" Boolean [Batches] []
        "whether the checksum is correct; reads the complete batch"
    UncompressedSize "uncompressed_size" Int64 [Batches] []
        "bytes of the records after decompression, null if that fails; decompresses the batch"
    Ratio "ratio" Float64 [Batches] []
        "uncompressed size divided by stored size; decompresses the batch"
}

columns! {
    /// A column of a scan with one row per segment.
    SegmentColumn

    Topic "topic" Text [Segments] [Segments]
        "topic, from the directory's name or the option `topic`; else null"
    Partition "partition" Int32 [Segments] [Segments]
        "partition, from the directory's name or the option `partition`; else null"
    Segment "segment" Text [Segments] [Segments]
        "path of the file"
    State "state" Text [Segments] [Segments]
        "live, deleted, cleaned or swap; null for a file not named like a segment"
    BaseOffset "base_offset" Int64 [Segments] [Segments]
        "base offset, from the name"
    EndOffset "end_offset" Int64 [Segments] [Segments]
        "the offset after the last batch"
    Size "size" Int64 [Segments] [Segments]
        "bytes of the `.log` file"
    FirstTimestamp "first_timestamp" Timestamp [Segments] [Segments]
        "base timestamp of the first batch; null for none"
    LargestTimestamp "largest_timestamp" Timestamp [Segments] [Segments]
        "largest timestamp; null for none"
    IndexSize "index_size" Int64 [Segments] [Segments]
        "bytes of the `.index` file; null if there is none"
    TimeIndexSize "time_index_size" Int64 [Segments] [Segments]
        "bytes of the `.timeindex` file; null if there is none"
    TxnIndexSize "txn_index_size" Int64 [Segments] [Segments]
        "bytes of the `.txnindex` file; null if there is none"
    HasSnapshot "has_snapshot" Boolean [Segments] [Segments]
        "whether there is a producer snapshot for the base offset"
    BatchCount "batch_count" Int64 [Segments] []
        "number of batches; reads every header"
}

/// The column that [`OnCorrupt::Report`](crate::arrow::OnCorrupt::Report) adds to every view.
pub(crate) static ERROR_COLUMN: ColumnDefinition = ColumnDefinition {
    name: "error",
    data_type: ColumnType::Error,
    views: &[View::Records, View::Internal, View::Batches, View::Segments],
    default_in: &[],
    text: "if corruption is reported as rows: the corruption, and the bytes and offsets that it affects; null in other \
           rows",
};

/// Name and type of the fields of [`ColumnType::Error`].
///
/// | field | content |
/// |---|---|
/// | `kind` | [`ErrorKind::name`](crate::ErrorKind::name); `truncated` for an incomplete batch |
/// | `message` | the error message, with the position |
/// | `path` | the file, null for a buffer |
/// | `position` | first corrupt byte |
/// | `length` | bytes from there to where reading resumed |
/// | `first_offset` | first offset lost, null if none or unknown |
/// | `last_offset` | last offset lost, null if none or unknown |
pub(crate) const ERROR_FIELDS: [(&str, ColumnType); 7] = [
    ("kind", ColumnType::Text),
    ("message", ColumnType::Text),
    ("path", ColumnType::Text),
    ("position", ColumnType::Int64),
    ("length", ColumnType::Int64),
    ("first_offset", ColumnType::Int64),
    ("last_offset", ColumnType::Int64),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sql_type_of_errors_lists_their_fields() {
        let fields = ERROR_FIELDS.map(|(name, data_type)| format!("{name}:{}", data_type.sql())).join(",");
        assert_eq!(ColumnType::Error.sql(), format!("struct<{fields}>"));
    }

    #[test]
    fn names_are_unique_in_each_view() {
        let internal = Column::of_view(View::Internal).into_iter().map(Column::name);
        let views = [
            Column::of_view(View::Records).into_iter().map(Column::name).collect::<Vec<_>>(),
            internal.collect(),
            BatchColumn::of_view(View::Batches).into_iter().map(BatchColumn::name).collect(),
            SegmentColumn::of_view(View::Segments).into_iter().map(SegmentColumn::name).collect(),
        ];
        for names in views {
            let distinct: std::collections::HashSet<_> = names.iter().collect();
            assert_eq!(distinct.len(), names.len(), "{names:?}");
        }
    }

    #[test]
    fn default_columns_belong_to_their_view() {
        let columns = Column::EVERY.iter().map(|column| column.definition());
        let batches = BatchColumn::EVERY.iter().map(|column| column.definition());
        let segments = SegmentColumn::EVERY.iter().map(|column| column.definition());
        for definition in columns.chain(batches).chain(segments) {
            assert!(definition.default_in.iter().all(|view| definition.views.contains(view)), "{definition:?}");
        }
    }
}
