//! The columns of internal topics: decoded keys and values, as JSON.
//!
//! A record is decoded once for all columns: [`Contents::row`] makes a [`DecodedRow`], from which each [`DecodedColumn`]
//! takes its cell.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int16Array, Int32Array};
use serde_json::Value as Json;

use crate::arrow::byte_columns::{BytesBuilder, take};
use crate::arrow::column_table::Column;
use crate::arrow::options::{Decoder, ScanOptions};
use crate::arrow::origin::Origin;
use crate::error::Result;
use crate::format::batch::Batch;
use crate::format::record::Record;
use crate::internal::{self, Decoded, Family, write_base64, write_bytes};

/// The topic of Confluent's schema registry. Its keys and values are JSON.
const SCHEMAS: &str = "_schemas";

/// Decodes keys and values.
pub(crate) struct Contents {
    decoder: Decoder,
    /// How the current batch is decoded.
    reading: Reading,
    /// Whether a column needs more than the record's flags.
    decodes: bool,
    /// JSON of the current record; empty for none.
    key: Vec<u8>,
    value: Vec<u8>,
}

/// How the records of a batch are decoded.
#[derive(Clone, Copy)]
enum Reading {
    Internal(Family),
    Control,
    /// JSON of a schema registry, whose keys name their type.
    Schemas,
    Json,
}

impl Reading {
    /// How the records of an internal topic are decoded. `None` for other topics.
    fn of_internal(origin: &Origin) -> Option<Self> {
        let topic = origin.topic.as_deref();
        if let Some(family) = topic.and_then(Family::of_topic) {
            return Some(Self::Internal(family));
        }
        if topic == Some(SCHEMAS) {
            return Some(Self::Schemas);
        }
        let extension = origin.segment.as_deref().and_then(|path| Path::new(path).extension());
        extension.is_some_and(|extension| extension == "checkpoint").then_some(Self::Internal(Family::Metadata))
    }
}

/// Whether a topic or file is internal.
pub(crate) fn is_internal(origin: &Origin) -> bool {
    Reading::of_internal(origin).is_some()
}

/// The decoded parts of a record.
pub(crate) struct DecodedRow<'r> {
    record_type: Option<Cow<'static, str>>,
    type_id: Option<i16>,
    version: Option<i16>,
    key: Option<&'r [u8]>,
    value: Option<&'r [u8]>,
    is_tombstone: bool,
    is_control: bool,
    schema_id: Option<i32>,
    reason: Option<String>,
}

impl Contents {
    /// `None` if no column needs decoded keys or values.
    pub(crate) fn of(options: &ScanOptions) -> Option<Self> {
        let is_flag = |column: &&Column| matches!(column, Column::IsTombstone | Column::IsControl);
        let decoded: Vec<&Column> = options.columns.iter().filter(|column| column.is_decoded()).collect();
        (!decoded.is_empty()).then(|| Self {
            decoder: options.decoder,
            reading: Reading::Json,
            decodes: !decoded.iter().all(is_flag),
            key: Vec::new(),
            value: Vec::new(),
        })
    }

    /// Begins a batch.
    pub(crate) fn begin(&mut self, batch: &Batch<'_>, origin: &Origin) {
        self.reading = match self.decoder {
            _ if batch.is_control() => Reading::Control,
            Decoder::Internal(family) => Reading::Internal(family),
            Decoder::Json => Reading::Json,
            Decoder::ByTopic => Reading::of_internal(origin).unwrap_or(Reading::Json),
        };
    }

    /// Decodes a record of the batch.
    pub(crate) fn row(&mut self, record: &Record<'_>) -> DecodedRow<'_> {
        self.key.clear();
        self.value.clear();
        let is_control = matches!(self.reading, Reading::Control);
        let (mut decoded, mut schema_id) = (Decoded::default(), None);
        if self.decodes {
            match self.reading {
                Reading::Internal(family) => decoded = internal::record(family, record.key(), record.value()),
                Reading::Control => decoded = internal::control(record),
                Reading::Schemas => {
                    let key = write_plain(&mut self.key, record.key()).json;
                    decoded.name = key.and_then(|key| Some(key.get("keytype")?.as_str()?.to_owned().into()));
                    write_plain(&mut self.value, record.value());
                }
                Reading::Json => {
                    write_plain(&mut self.key, record.key());
                    schema_id = write_plain(&mut self.value, record.value()).schema_id;
                }
            }
            if let Some(key) = &decoded.key {
                key.write_json(&mut self.key);
            }
            if let Some(value) = &decoded.value {
                value.write_json(&mut self.value);
            }
        }
        DecodedRow {
            record_type: decoded.name,
            type_id: decoded.type_id,
            version: decoded.version,
            key: Some(self.key.as_slice()).filter(|json| !json.is_empty()),
            value: Some(self.value.as_slice()).filter(|json| !json.is_empty()),
            is_tombstone: record.value().is_none() && !is_control,
            is_control,
            schema_id,
            reason: decoded.reason,
        }
    }
}

/// What [`write_plain`] found in a key or value.
#[derive(Default)]
struct Plain {
    /// A JSON object or array.
    json: Option<Json>,
    schema_id: Option<i32>,
}

/// Appends a key or value of an ordinary topic as JSON; nothing for null.
///
/// Confluent's wire format is a zero byte, the schema's id as `i32`, and the data. Without the schema,
/// data of Avro looks like data of Protobuf.
fn write_plain(out: &mut Vec<u8>, bytes: Option<&[u8]>) -> Plain {
    let Some(bytes) = bytes else { return Plain::default() };
    if let Some((0, rest)) = bytes.split_first()
        && let Some((id, data)) = rest.split_first_chunk::<4>()
        && let schema_id @ 0.. = i32::from_be_bytes(*id)
    {
        let is_json = json_of(data).is_some();
        let kind = if is_json { "json" } else { "binary" };
        out.extend_from_slice(format!("{{\"schemaId\":{schema_id},\"kind\":\"{kind}\",\"data\":").as_bytes());
        if is_json {
            out.extend_from_slice(data);
        } else {
            out.push(b'"');
            write_base64(out, data);
            out.push(b'"');
        }
        out.push(b'}');
        return Plain { json: None, schema_id: Some(schema_id) };
    }
    let json = json_of(bytes);
    if json.is_some() {
        out.extend_from_slice(bytes);
    } else {
        write_bytes(out, Some(bytes));
    }
    Plain { json, schema_id: None }
}

/// Parses bytes as a JSON object or array. Returns `None` for anything else.
fn json_of(bytes: &[u8]) -> Option<Json> {
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace())?;
    let may_be = matches!(first, b'{' | b'[');
    if may_be { serde_json::from_slice(bytes).ok() } else { None }
}

/// A column of decoded keys or values under construction.
pub(crate) struct DecodedColumn {
    column: Column,
    cells: DecodedCells,
}

enum DecodedCells {
    Text(BytesBuilder),
    Int16(Vec<Option<i16>>),
    Int32(Vec<Option<i32>>),
    Bool(Vec<bool>),
}

impl DecodedColumn {
    pub(crate) fn new(column: Column) -> Self {
        let cells = match column {
            Column::TypeId | Column::Version => DecodedCells::Int16(Vec::new()),
            Column::SchemaId => DecodedCells::Int32(Vec::new()),
            Column::IsTombstone | Column::IsControl => DecodedCells::Bool(Vec::new()),
            _ => DecodedCells::Text(BytesBuilder::new()),
        };
        Self { column, cells }
    }

    pub(crate) fn push(&mut self, row: &DecodedRow<'_>) {
        match &mut self.cells {
            DecodedCells::Text(texts) => texts.push(match self.column {
                Column::RecordType => row.record_type.as_deref().map(str::as_bytes),
                Column::KeyJson => row.key,
                Column::ValueJson => row.value,
                _ => row.reason.as_deref().map(str::as_bytes),
            }),
            DecodedCells::Int16(values) => {
                values.push(if self.column == Column::TypeId { row.type_id } else { row.version });
            }
            DecodedCells::Int32(values) => values.push(row.schema_id),
            DecodedCells::Bool(values) => {
                values.push(if self.column == Column::IsTombstone { row.is_tombstone } else { row.is_control });
            }
        }
    }

    pub(crate) fn truncate(&mut self, rows: usize) {
        match &mut self.cells {
            DecodedCells::Text(texts) => texts.truncate(rows),
            DecodedCells::Int16(values) => values.truncate(rows),
            DecodedCells::Int32(values) => values.truncate(rows),
            DecodedCells::Bool(values) => values.truncate(rows),
        }
    }

    /// Bytes of texts.
    pub(crate) fn data_len(&self) -> usize {
        if let DecodedCells::Text(texts) = &self.cells { texts.data_len() } else { 0 }
    }

    pub(crate) fn finish(&mut self) -> Result<ArrayRef> {
        Ok(match &mut self.cells {
            DecodedCells::Text(texts) => Arc::new(texts.finish_string()?),
            DecodedCells::Int16(values) => Arc::new(Int16Array::from(take(values))),
            DecodedCells::Int32(values) => Arc::new(Int32Array::from(take(values))),
            DecodedCells::Bool(values) => Arc::new(BooleanArray::from(take(values))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(bytes: &[u8]) -> (String, Option<i32>) {
        let mut out = Vec::new();
        let found = write_plain(&mut out, Some(bytes));
        (String::from_utf8(out).unwrap(), found.schema_id)
    }

    #[test]
    fn json_stays_and_all_else_is_quoted() {
        let pairs: [(&[u8], &str); 7] = [
            (b"{\"a\": 1}", "{\"a\": 1}"),
            (b" [1,2]", " [1,2]"),
            (b"{\"a\": 1", "\"{\\\"a\\\": 1\""),
            (b"7", "\"7\""),
            (b"", "\"\""),
            (b"\xff\x00", "{\"base64\":\"/wA=\"}"),
            (b"\0\0\0", "\"\\u0000\\u0000\\u0000\""),
        ];
        for (bytes, expected) in pairs {
            assert_eq!(plain(bytes), (expected.to_owned(), None));
        }
        let mut out = Vec::new();
        write_plain(&mut out, None);
        assert!(out.is_empty());
    }

    #[test]
    fn confluents_wire_format_shows_the_schema() {
        let json = "{\"schemaId\":258,\"kind\":\"json\",\"data\":{\"a\":1}}".to_owned();
        assert_eq!(plain(b"\0\0\0\x01\x02{\"a\":1}"), (json, Some(258)));
        let binary = "{\"schemaId\":7,\"kind\":\"binary\",\"data\":\"AmE=\"}".to_owned();
        assert_eq!(plain(b"\0\0\0\0\x07\x02a"), (binary, Some(7)));
        assert_eq!(plain(b"\0\xff\xff\xff\xff").1, None);
    }
}
