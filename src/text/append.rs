//! [`append_json_lines`]: JSON lines, as [`write_records`](crate::text::write_records) writes them, back into a
//! partition.
//!
//! Only lines of the usual form are parsed here: an object on one line, with the fields of a record. The caller handles
//! the line at which it stops, and reports what is wrong with it.

use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Deserialize, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use crate::error::{ErrorKind, Result};
use crate::format::attributes::TimestampType;
use crate::format::builder::BatchFields;
use crate::format::header::NO_TIMESTAMP;
use crate::format::record::NewHeader;
use crate::log::{PlacedRecord, RecordWriter};

/// What [`append_json_lines`] has appended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JsonLines {
    /// Bytes of the lines, with their ends.
    pub bytes: usize,
    /// Number of records. Lines of batches are not counted.
    pub records: u64,
}

/// Appends the records of JSON lines of one topic and partition. Those after a line of a batch are in this batch again.
///
/// Stops before the first line that is not a record of this topic and partition in the form of
/// [`write_records`](crate::text::write_records), or that the writer refuses: the rest begins with this line. Fields
/// may be in any order, and all except `value` may be missing. A timestamp without a type is that of the producer.
///
/// # Errors
/// I/O errors of the writer.
pub fn append_json_lines(
    writer: &mut RecordWriter,
    data: &[u8],
    topic: Option<&str>,
    partition: Option<i32>,
) -> Result<JsonLines> {
    let mut appended = JsonLines::default();
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        let Some(fields) = parse(line).filter(|fields| fields.topic == topic && fields.partition == partition) else {
            break;
        };
        let written = match &fields.batch {
            Some(batch) => begin_batch(writer, batch, &fields),
            None => append(writer, &fields),
        };
        match written {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) if matches!(error.kind(), ErrorKind::InvalidArgument(_)) => break,
            Err(error) => return Err(error),
        }
        appended.bytes = appended.bytes.saturating_add(line.len());
        appended.records = appended.records.saturating_add(u64::from(fields.batch.is_none()));
    }
    Ok(appended)
}

/// Begins a batch; `false` if the line is also a record.
fn begin_batch(writer: &mut RecordWriter, batch: &BatchFields, fields: &RecordFields<'_>) -> Result<bool> {
    if !matches!((&fields.key, &fields.value), (FieldContent::Missing, FieldContent::Missing)) {
        return Ok(false);
    }
    writer.begin_batch(batch).map(|()| true)
}

/// Appends a record; `false` if its fields are not those of a record.
fn append(writer: &mut RecordWriter, fields: &RecordFields<'_>) -> Result<bool> {
    let timestamp = fields.timestamp.unwrap_or(NO_TIMESTAMP);
    let timestamp_type = match &fields.timestamp_type {
        // a record of message format 0 has neither a timestamp nor a type
        FieldContent::Null if timestamp == NO_TIMESTAMP => None,
        FieldContent::Missing | FieldContent::Null => Some(TimestampType::CreateTime),
        FieldContent::Text(name) if name == TimestampType::CreateTime.name() => Some(TimestampType::CreateTime),
        FieldContent::Text(name) if name == TimestampType::LogAppendTime.name() => Some(TimestampType::LogAppendTime),
        FieldContent::Text(_) | FieldContent::Base64(_) => return Ok(false),
    };
    let is_offset = fields.offset.is_none_or(|offset| (0..i64::MAX).contains(&offset));
    if fields.value == FieldContent::Missing || !is_offset || timestamp < NO_TIMESTAMP {
        return Ok(false);
    }
    let mut headers: Vec<NewHeader<'_>> = Vec::new();
    for (name, value) in fields.headers.iter().flatten() {
        let Some(name) = name.bytes() else { return Ok(false) };
        headers.push((name, value.bytes()));
    }
    let record = PlacedRecord {
        offset: fields.offset,
        timestamp,
        timestamp_type,
        create_time: fields.create_time,
        key: fields.key.bytes(),
        value: fields.value.bytes(),
        headers: &headers,
    };
    writer.append(&record).map(|_| true)
}

/// The fields of a record.
#[derive(serde::Deserialize)]
struct RecordFields<'a> {
    #[serde(borrow, default)]
    topic: Option<&'a str>,
    #[serde(default)]
    partition: Option<i32>,
    #[serde(default)]
    offset: Option<i64>,
    #[serde(default)]
    timestamp: Option<i64>,
    #[serde(borrow, default)]
    timestamp_type: FieldContent<'a>,
    #[serde(default)]
    create_time: Option<i64>,
    #[serde(borrow, default)]
    key: FieldContent<'a>,
    #[serde(borrow, default)]
    value: FieldContent<'a>,
    #[serde(borrow, default)]
    headers: Option<Vec<(FieldContent<'a>, FieldContent<'a>)>>,
    #[serde(default)]
    batch: Option<BatchFields>,
}

/// A line as a record; `None` if it has another form.
fn parse(line: &[u8]) -> Option<RecordFields<'_>> {
    let text = std::str::from_utf8(line).ok()?;
    // an array would be the fields in their order
    if !text.starts_with('{') {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// Text, other bytes, or neither.
#[derive(Debug, Default, PartialEq, Eq)]
enum FieldContent<'a> {
    #[default]
    Missing,
    Null,
    Text(Cow<'a, str>),
    Base64(Vec<u8>),
}

impl FieldContent<'_> {
    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Missing | Self::Null => None,
            Self::Text(text) => Some(text.as_bytes()),
            Self::Base64(bytes) => Some(bytes),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for FieldContent<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = FieldContent<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, null or {\"base64\": \"…\"}")
    }

    fn visit_unit<E>(self) -> std::result::Result<FieldContent<'de>, E> {
        Ok(FieldContent::Null)
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> std::result::Result<FieldContent<'de>, E> {
        Ok(FieldContent::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> std::result::Result<FieldContent<'de>, E> {
        Ok(FieldContent::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<FieldContent<'de>, A::Error> {
        let pair = map.next_entry::<&'de str, &'de str>()?;
        let encoded = pair.filter(|(name, _)| *name == "base64").map(|(_, encoded)| encoded);
        if map.next_key::<IgnoredAny>()?.is_some() {
            return Err(A::Error::custom("more than base64"));
        }
        let bytes = encoded.and_then(|encoded| STANDARD.decode(encoded).ok());
        bytes.map(FieldContent::Base64).ok_or_else(|| A::Error::custom("not base64"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_usual_form_are_parsed() {
        let line = br#"{"topic": "t", "partition": 3, "offset": 5, "timestamp": null, "timestamp_type": null,
            "key": {"base64": "/wA="}, "value": "a\"b\u00e9", "headers": [["h", null], ["i", "1"]], "more": [1.5]}"#;
        let fields = parse(line).unwrap();
        assert_eq!(
            (fields.topic, fields.partition, fields.offset, fields.timestamp),
            (Some("t"), Some(3), Some(5), None)
        );
        assert_eq!(fields.timestamp_type, FieldContent::Null);
        assert_eq!(fields.key.bytes(), Some([0xff, 0].as_slice()));
        assert_eq!(fields.value.bytes(), Some("a\"bé".as_bytes()));
        let headers = fields.headers.unwrap();
        assert_eq!(headers.iter().map(|(_, value)| value.bytes()).collect::<Vec<_>>(), [None, Some(b"1".as_slice())]);
        let fields = parse(b"{\"value\": \"\"}\n").unwrap();
        assert_eq!((fields.key, fields.timestamp_type), (FieldContent::Missing, FieldContent::Missing));
    }

    #[test]
    fn other_lines_are_left_to_the_caller() {
        let lines: [&[u8]; 12] = [
            b"",
            b"\n",
            b"null",
            b"[null, 0]",
            b" {\"key\": null}",
            b"{\"key\": 1}",
            b"{\"key\": \"\\ud800\"}",
            b"{\"key\": \"\xff\"}",
            b"{\"key\": {\"base64\": \"?\"}}",
            b"{\"key\": {\"base64\": \"\", \"a\": 1}}",
            b"{\"offset\": 1.0, \"key\": null}",
            b"{\"headers\": [[\"a\"]], \"key\": null}",
        ];
        for line in lines {
            assert!(parse(line).is_none(), "{}", line.escape_ascii());
        }
    }
}
