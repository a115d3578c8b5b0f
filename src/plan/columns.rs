//! The columns of a read, and their selection by a schema.
//!
//! The first seven columns of records are those of Spark's own Kafka source, with its names and types; `includeHeaders`
//! adds `headers`, as in that source. The option `columns` or a schema can name any others. The option `view` selects
//! one row per batch, segment or record of an internal topic, with different columns. A name matches in any case and
//! with or without underscores: `baseOffset` and `base_offset` name the same column, and the result keeps the requested
//! spelling.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::arrow::OnCorrupt;
use crate::error::{Error, Result};
use crate::plan::options::ReadOptions;

/// What a row describes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanView {
    /// A record.
    #[default]
    Records,
    /// A batch.
    Batches,
    /// A segment file.
    Segments,
    /// A record of one of Kafka's internal topics, with key and value as JSON.
    Internal,
}

impl PlanView {
    /// The value of the option `view`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Records => "records",
            Self::Batches => "batches",
            Self::Segments => "segments",
            Self::Internal => "internal",
        }
    }

    /// Whether a row is a record, so that offsets, timestamps and transactions decide which rows there are.
    pub(crate) fn has_records(self) -> bool {
        matches!(self, Self::Records | Self::Internal)
    }
}

impl FromStr for PlanView {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let all = [Self::Records, Self::Batches, Self::Segments, Self::Internal];
        let found = all.into_iter().find(|view| view.name() == name);
        found.ok_or_else(|| Error::argument("must be records, batches, segments or internal"))
    }
}

/// A column of a read.
#[derive(Debug, PartialEq, Eq)]
pub struct PlanColumn {
    /// Its name in a scan, in snake case.
    pub field: &'static str,
    /// Its type in SQL.
    pub data_type: &'static str,
    /// What it is.
    pub text: &'static str,
}

impl PlanColumn {
    /// Its name in a schema: the name in a scan, in camel case.
    #[must_use]
    pub fn name(&self) -> String {
        let mut name = String::new();
        for (number, word) in self.field.split('_').enumerate() {
            match word.split_at_checked(1).filter(|_| number > 0) {
                Some((first, rest)) => name.extend([first.to_uppercase().as_str(), rest]),
                None => name.push_str(word),
            }
        }
        name
    }
}

const fn column(field: &'static str, data_type: &'static str, text: &'static str) -> PlanColumn {
    PlanColumn { field, data_type, text }
}

const HEADERS: &str = "array<struct<key:string,value:binary>>";

/// The columns of a view of records: its own, and those of the record's batch and file.
macro_rules! with_batch_columns {
    [$($own:expr,)*] => {
        &[
            $($own,)*
            column(
                "base_offset",
                "bigint",
                "base offset of the record's batch; for compressed v0 and v1 sets, offset of the first message",
            ),
            column("position", "bigint", "byte position of the record's batch in its file"),
            column("partition_leader_epoch", "int", "leader epoch of the batch; -1 for none"),
            column("producer_id", "bigint", "producer id of the batch; -1 for none"),
            column("producer_epoch", "smallint", "producer epoch of the batch; -1 for none"),
            column("sequence", "int", "sequence of the record; -1 for none"),
            column("is_transactional", "boolean", "whether the batch belongs to a transaction"),
            column("compression", "string", "codec of the batch: none, gzip, snappy, lz4 or zstd"),
            column("magic", "tinyint", "message format of the batch: 0, 1 or 2"),
            column("batch_size", "int", "bytes of the record's batch as stored, its 12 bytes of log overhead included"),
            column("segment", "string", "path of the file"),
        ]
    };
}

static RECORDS: &[PlanColumn] = with_batch_columns![
    column("key", "binary", "key of the record"),
    column("value", "binary", "value of the record"),
    column("topic", "string", "topic, from the directory's name or the option topic; else null"),
    column("partition", "int", "partition, from the directory's name or the option partition; else null"),
    column("offset", "bigint", "offset of the record"),
    column(
        "timestamp",
        "timestamp",
        "timestamp of the record; -1 ms, as in Spark's Kafka source, for records without one (format v0)",
    ),
    column("timestamp_type", "int", "0 CreateTime, 1 LogAppendTime, -1 none (format v0)"),
    column(
        "headers",
        HEADERS,
        "record headers, in their order; null for a record without headers, as in Spark's Kafka source",
    ),
];

static BATCHES: &[PlanColumn] = &[
    column("topic", "string", "topic, from the directory's name or the option topic; else null"),
    column("partition", "int", "partition, from the directory's name or the option partition; else null"),
    column("segment", "string", "path of the file"),
    column("position", "bigint", "byte position in the file"),
    column("size", "int", "bytes as stored, the 12 bytes of log overhead included"),
    column("base_offset", "bigint", "base offset; null for compressed sets of format v0 and v1"),
    column("last_offset", "bigint", "last offset"),
    column("record_count", "int", "number of records in the header; null for compressed v0 and v1 sets"),
    column("magic", "tinyint", "message format: 0, 1 or 2"),
    column("compression", "string", "codec: none, gzip, snappy, lz4 or zstd; unknown for the codec bits 5 to 7"),
    column("stored_size", "int", "bytes after the header: the records as stored"),
    column("timestamp_type", "string", "CreateTime or LogAppendTime; null in format v0"),
    column("base_timestamp", "timestamp", "base timestamp; null for none"),
    column("max_timestamp", "timestamp", "largest timestamp of the records; null for none"),
    column("delete_horizon", "timestamp", "when compaction may drop its tombstones or markers; null if not set"),
    column("partition_leader_epoch", "int", "leader epoch; -1 for none"),
    column("producer_id", "bigint", "producer id; -1 for none"),
    column("producer_epoch", "smallint", "producer epoch; -1 for none"),
    column("base_sequence", "int", "sequence of the first record; -1 for none"),
    column("last_sequence", "int", "sequence of the last record; -1 for none"),
    column("is_transactional", "boolean", "whether it belongs to a transaction"),
    column("is_control", "boolean", "whether it holds control records"),
    column("crc", "bigint", "the stored checksum"),
    column("crc_ok", "boolean", "whether the checksum is correct; reads the complete batch"),
    column("uncompressed_size", "bigint", "bytes of the records after decompression; decompresses the batch"),
    column("ratio", "double", "uncompressedSize divided by storedSize; decompresses the batch"),
];

static SEGMENTS: &[PlanColumn] = &[
    column("topic", "string", "topic, from the directory's name or the option topic; else null"),
    column("partition", "int", "partition, from the directory's name or the option partition; else null"),
    column("segment", "string", "path of the file"),
    column("state", "string", "live, deleted, cleaned or swap; null for a file not named like a segment"),
    column("base_offset", "bigint", "base offset, from the name"),
    column("end_offset", "bigint", "the offset after the last batch"),
    column("size", "bigint", "bytes of the .log file"),
    column("first_timestamp", "timestamp", "base timestamp of the first batch; null for none"),
    column("largest_timestamp", "timestamp", "largest timestamp; null for none"),
    column("index_size", "bigint", "bytes of the .index file; null if there is none"),
    column("time_index_size", "bigint", "bytes of the .timeindex file; null if there is none"),
    column("txn_index_size", "bigint", "bytes of the .txnindex file; null if there is none"),
    column("has_snapshot", "boolean", "whether there is a producer snapshot for the base offset"),
    column("batch_count", "bigint", "number of batches; reads every header"),
];

static INTERNAL: &[PlanColumn] = with_batch_columns![
    column("topic", "string", "topic; null for a .checkpoint file outside a directory named after its topic"),
    column("partition", "int", "partition, from the directory's name or the option partition; else null"),
    column("offset", "bigint", "offset of the record"),
    column("timestamp", "timestamp", "timestamp of the record; null for none"),
    column("record_type", "string", "name of the record type; null for one that is not known"),
    column("type_id", "smallint", "number of the record type"),
    column("version", "smallint", "version of the value; null for a tombstone"),
    column("key", "string", "key as JSON; null if there is none, or if it cannot be decoded"),
    column("value", "string", "value as JSON; null for a tombstone, or if it cannot be decoded"),
    column("is_tombstone", "boolean", "whether the value is null, so that the record deletes its key"),
    column("reason", "string", "why the key or the value cannot be decoded, such as a newer version; else null"),
    column("is_control", "boolean", "whether it is a control record, which includeControl=true adds"),
    column("schema_id", "int", "id of the value's schema, if the value is in Confluent's wire format; else null"),
    column("timestamp_type", "int", "0 CreateTime, 1 LogAppendTime, -1 none (format v0)"),
    column("headers", HEADERS, "record headers, in their order"),
];

static ERROR: PlanColumn = column(
    "error",
    "struct<kind:string,message:string,path:string,position:bigint,length:bigint,first_offset:bigint,last_offset:bigint>",
    "with onCorrupt=report: the corruption, and the bytes and offsets that it affects; null in other rows",
);

/// The column that describes corruption, with `onCorrupt=report`.
#[must_use]
pub fn error_column() -> &'static PlanColumn {
    &ERROR
}

/// The columns of a view, and how many of them are read by default: those that are cheap.
#[must_use]
pub fn view_columns(view: PlanView) -> (&'static [PlanColumn], usize) {
    match view {
        PlanView::Records => (RECORDS, 7),
        PlanView::Batches => (BATCHES, 23),
        PlanView::Segments => (SEGMENTS, 13),
        PlanView::Internal => (INTERNAL, 11),
    }
}

/// The default columns; for records, those of Spark's Kafka source.
pub(crate) fn default_columns(view: PlanView) -> &'static [PlanColumn] {
    let (columns, count) = view_columns(view);
    columns.get(..count).unwrap_or(columns)
}

fn plain(name: &str) -> String {
    name.replace('_', "").to_lowercase()
}

/// The column with a name.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument), which names every column, if there is none.
pub(crate) fn column_named(name: &str, view: PlanView) -> Result<&'static PlanColumn> {
    let (columns, _) = view_columns(view);
    let found = columns.iter().chain([&ERROR]).find(|column| plain(column.field) == plain(name));
    found.ok_or_else(|| {
        let names: Vec<String> = columns.iter().map(PlanColumn::name).collect();
        Error::argument(format!("kbat: there is no column '{name}'; choose among {}", names.join(", ")))
    })
}

/// A column of a schema that the caller wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedColumn {
    /// Its name, in any spelling.
    pub name: String,
    /// Its type in SQL.
    pub data_type: String,
    /// Whether it may be null.
    pub is_nullable: bool,
}

/// Returns the columns of a schema, which may be the user's.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a schema without columns, and for a column that
/// does not exist, is repeated, or has another type in the source.
pub fn columns_of_schema(schema: &[WantedColumn], options: &ReadOptions) -> Result<Vec<&'static PlanColumn>> {
    let mut columns = Vec::new();
    for wanted in schema {
        let found = column_of(wanted, options.view)?;
        if columns.contains(&found) {
            let message = format!("kbat: the schema names the column {} twice", found.name());
            return Err(Error::argument(message));
        }
        columns.push(found);
    }
    if columns.is_empty() {
        let message = "kbat: the schema has no column; the cheapest column for counting rows is offset";
        return Err(Error::argument(message));
    }
    let has_error = columns.contains(&&ERROR);
    if options.on_corrupt == OnCorrupt::Report && !has_error {
        return Err(Error::argument(format!(
            "kbat: the schema has no column error, which onCorrupt=report fills: add error {}",
            ERROR.data_type
        )));
    }
    if options.on_corrupt != OnCorrupt::Report && has_error {
        return Err(Error::argument("kbat: the column error requires onCorrupt=report"));
    }
    Ok(columns)
}

fn column_of(wanted: &WantedColumn, view: PlanView) -> Result<&'static PlanColumn> {
    let found = column_named(&wanted.name, view)?;
    let (name, right, given) = (&wanted.name, found.data_type, &wanted.data_type);
    if right != given {
        return Err(Error::argument(format!(
            "kbat: column {name} has type {right}, but the schema declares {given}; declare it as {right} and convert \
             afterwards: CAST({name} AS {})",
            given.to_uppercase()
        )));
    }
    if !wanted.is_nullable {
        return Err(Error::argument(format!(
            "kbat: the schema declares column {name} NOT NULL, but every column is nullable: remove NOT NULL"
        )));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrow::Column;

    #[test]
    fn the_columns_of_internal_topics_are_those_of_a_scan() {
        let (columns, default_count) = view_columns(PlanView::Internal);
        let names = |columns: &[Column]| columns.iter().map(|column| column.name()).collect::<Vec<_>>();
        assert_eq!(columns.iter().map(|column| column.field).collect::<Vec<_>>(), names(&Column::INTERNAL));
        assert_eq!(default_columns(PlanView::Internal).len(), default_count);
        assert_eq!(names(&Column::INTERNAL_DEFAULT), names(&Column::INTERNAL[..default_count]));
    }
}
