//! CSV as in RFC 4180, with line feeds. A null is an empty field, an empty text is `""`.

use crate::arrow::Origin;
use crate::dump::sink::{push, push_int};
use crate::error::Result;
use crate::format::attributes::TimestampType;
use crate::format::header::NO_TIMESTAMP;
use crate::format::record::Record;
use crate::text::options::TextOptions;
use crate::text::{fields, json};

pub(super) fn heading(out: &mut Vec<u8>) {
    push(out, "topic,partition,offset,timestamp,timestamp_type,key,value,headers\n");
}

/// The part of a line that the records of a file share.
pub(super) fn start(out: &mut Vec<u8>, origin: &Origin, text: &TextOptions) {
    if let Some(topic) = &origin.topic {
        let mut cell = Vec::new();
        fields::raw(&mut cell, topic.as_bytes(), text);
        quoted(out, &cell);
    }
    out.push(b',');
    if let Some(partition) = origin.partition {
        push_int(out, partition.into());
    }
    out.push(b',');
}

/// The rest of the line of a record. `cell` is memory for a field before it is quoted.
pub(super) fn record(out: &mut Vec<u8>, cell: &mut Vec<u8>, record: &Record<'_>, text: &TextOptions) -> Result<()> {
    push_int(out, record.offset());
    out.push(b',');
    if record.timestamp() != NO_TIMESTAMP {
        push_int(out, record.timestamp());
    }
    out.push(b',');
    push(out, record.timestamp_type().map_or("", TimestampType::name));
    for (bytes, rendering) in [(record.key(), text.key), (record.value(), text.value)] {
        out.push(b',');
        cell.clear();
        fields::as_text(cell, bytes, rendering, text);
        if bytes.is_some() || !cell.is_empty() {
            quoted(out, cell);
        }
    }
    out.push(b',');
    cell.clear();
    json::headers(cell, record, text.is_terminal)?;
    quoted(out, cell);
    out.push(b'\n');
    Ok(())
}

/// A field, in quotes if it needs them.
fn quoted(out: &mut Vec<u8>, cell: &[u8]) {
    if !cell.is_empty() && !cell.iter().any(|byte| matches!(byte, b',' | b'"' | b'\n' | b'\r')) {
        return out.extend_from_slice(cell);
    }
    out.push(b'"');
    for byte in cell {
        if *byte == b'"' {
            out.push(b'"');
        }
        out.push(*byte);
    }
    out.push(b'"');
}
