//! JSON lines, with the blanks and escapes of Python's `json` module.

use crate::arrow::{Origin, SkippedBytes};
use crate::dump::sink::{push, push_field, push_int, push_uint};
use crate::error::Result;
use crate::format::batch::Batch;
use crate::format::header::NO_TIMESTAMP;
use crate::format::record::{Record, decode_as_java};
use crate::internal::write_base64;
use crate::text::hex::hex;
use crate::text::options::{Rendering, TextOptions};
use crate::text::printable::{is_printable, write};

/// Bytes that are searched at once for characters to escape.
const CHUNK: usize = 16;

/// The part of a line that the records of a file share.
pub(super) fn start(out: &mut Vec<u8>, origin: &Origin, is_terminal: bool) {
    push(out, "{\"topic\": ");
    optional_string(out, origin.topic.as_deref(), is_terminal);
    push(out, ", \"partition\": ");
    optional_int(out, origin.partition.map(i64::from));
}

/// The rest of the line of a batch up to its record count, which [`insert_record_count`] adds. The first offset may
/// require decompression.
pub(super) fn batch(out: &mut Vec<u8>, batch: &Batch<'_>, base_offset: i64) {
    let fields = [
        ("base_offset", base_offset),
        ("last_offset", batch.last_offset()),
        ("magic", batch.magic().into()),
        ("attributes", batch.attributes().bits().into()),
        ("partition_leader_epoch", batch.partition_leader_epoch().into()),
        ("base_timestamp", batch.base_timestamp()),
        ("max_timestamp", batch.max_timestamp()),
        ("producer_id", batch.producer_id()),
        ("producer_epoch", batch.producer_epoch().into()),
        ("base_sequence", batch.base_sequence().into()),
    ];
    push(out, ", \"batch\": {");
    for (index, (name, value)) in fields.into_iter().enumerate() {
        push(out, if index > 0 { ", \"" } else { "\"" });
        push(out, name);
        push_field(out, "\": ", value);
    }
    push(out, ", \"record_count\": ");
}

/// Ends the line of a batch at `position`, before the lines of its records.
pub(super) fn insert_record_count(out: &mut Vec<u8>, position: usize, record_count: u64) {
    let mut end = Vec::new();
    push_uint(&mut end, record_count);
    push(&mut end, "}}\n");
    drop(out.splice(position..position, end));
}

/// The rest of the line of a record. `create_time` is the timestamp that the batch stores below the time of an append.
#[inline]
pub(super) fn record(
    out: &mut Vec<u8>,
    record: &Record<'_>,
    create_time: Option<i64>,
    text: &TextOptions,
) -> Result<()> {
    push_field(out, ", \"offset\": ", record.offset());
    push(out, ", \"timestamp\": ");
    optional_int(out, Some(record.timestamp()).filter(|time| *time != NO_TIMESTAMP));
    push(out, ", \"timestamp_type\": ");
    match record.timestamp_type() {
        Some(kind) => {
            out.push(b'"');
            push(out, kind.name());
            out.push(b'"');
        }
        None => push(out, "null"),
    }
    if let Some(created) = create_time {
        push_field(out, ", \"create_time\": ", created);
    }
    push(out, ", \"key\": ");
    value(out, record.key(), text.key, text.is_terminal);
    push(out, ", \"value\": ");
    value(out, record.value(), text.value, text.is_terminal);
    push(out, ", \"headers\": ");
    write_headers(out, record, text.is_terminal, text.batches)?;
    push(out, "}\n");
    Ok(())
}

/// A list of pairs of key and value.
#[inline]
pub(super) fn headers(out: &mut Vec<u8>, record: &Record<'_>, is_terminal: bool) -> Result<()> {
    write_headers(out, record, is_terminal, false)
}

/// A list of pairs of key and value. If `is_exact`, keys that are not UTF-8 are base64.
#[inline]
fn write_headers(out: &mut Vec<u8>, record: &Record<'_>, is_terminal: bool, is_exact: bool) -> Result<()> {
    out.push(b'[');
    for (place, header) in record.headers().enumerate() {
        let header = header?;
        push(out, if place > 0 { ", [" } else { "[" });
        if is_exact {
            value(out, Some(header.key()), Rendering::Auto, is_terminal);
        } else {
            string(out, &header.key_lossy(), is_terminal);
        }
        push(out, ", ");
        value(out, header.value(), Rendering::Auto, is_terminal);
        out.push(b']');
    }
    out.push(b']');
    Ok(())
}

/// The line of a corruption.
pub(super) fn skipped(out: &mut Vec<u8>, skipped: &SkippedBytes, is_terminal: bool) {
    push(out, "{\"error\": {\"kind\": ");
    string(out, skipped.kind, is_terminal);
    push(out, ", \"message\": ");
    string(out, &skipped.message, is_terminal);
    push(out, ", \"path\": ");
    optional_string(out, skipped.origin.segment.as_deref(), is_terminal);
    push(out, ", \"position\": ");
    push_uint(out, skipped.position);
    push(out, ", \"length\": ");
    push_uint(out, skipped.length);
    push(out, ", \"first_offset\": ");
    optional_int(out, skipped.first_offset());
    push(out, ", \"last_offset\": ");
    optional_int(out, skipped.last_offset());
    push(out, "}}\n");
}

/// A key or value.
#[inline]
pub(super) fn value(out: &mut Vec<u8>, bytes: Option<&[u8]>, rendering: Rendering, is_terminal: bool) {
    let Some(bytes) = bytes else { return push(out, "null") };
    match (rendering, std::str::from_utf8(bytes)) {
        (Rendering::Json, Ok(text)) if is_document(text) => document(out, text, is_terminal),
        (Rendering::Auto | Rendering::Json, Ok(text)) => string(out, text, is_terminal),
        (Rendering::Auto | Rendering::Json, Err(_)) => {
            push(out, "{\"base64\": \"");
            write_base64(out, bytes);
            push(out, "\"}");
        }
        (Rendering::Text, _) => string(out, &decode_as_java(bytes), is_terminal),
        (Rendering::Hex, _) => {
            out.push(b'"');
            hex(out, bytes);
            out.push(b'"');
        }
        (Rendering::Base64, _) => {
            out.push(b'"');
            write_base64(out, bytes);
            out.push(b'"');
        }
    }
}

fn optional_string(out: &mut Vec<u8>, text: Option<&str>, is_terminal: bool) {
    match text {
        Some(text) => string(out, text, is_terminal),
        None => push(out, "null"),
    }
}

#[inline]
fn optional_int(out: &mut Vec<u8>, value: Option<i64>) {
    match value {
        Some(value) => push_int(out, value),
        None => push(out, "null"),
    }
}

/// A string. For a terminal, characters that it does not show are escaped too.
#[inline]
fn string(out: &mut Vec<u8>, text: &str, is_terminal: bool) {
    out.push(b'"');
    if is_terminal {
        for char in text.chars() {
            match char {
                '"' | '\\' | '\0'..' ' => escape(out, char.encode_utf8(&mut [0; 4]).as_bytes()),
                _ => visible(out, char),
            }
        }
    } else {
        let (chunks, rest) = text.as_bytes().as_chunks::<CHUNK>();
        for chunk in chunks {
            if has_special(chunk) { escape(out, chunk) } else { out.extend_from_slice(chunk) }
        }
        escape(out, rest);
    }
    out.push(b'"');
}

/// Without a branch per byte, so that the compiler compares all bytes at once.
#[inline]
fn has_special(chunk: &[u8; CHUNK]) -> bool {
    let is_special = |byte: u8| u8::from(byte < b' ') | u8::from(byte == b'"') | u8::from(byte == b'\\');
    chunk.iter().fold(0, |found, byte| found | is_special(*byte)) != 0
}

#[inline]
fn escape(out: &mut Vec<u8>, bytes: &[u8]) {
    for byte in bytes {
        match *byte {
            b'"' => push(out, "\\\""),
            b'\\' => push(out, "\\\\"),
            0x08 => push(out, "\\b"),
            b'\t' => push(out, "\\t"),
            b'\n' => push(out, "\\n"),
            0x0c => push(out, "\\f"),
            b'\r' => push(out, "\\r"),
            control @ ..0x20 => write(out, format_args!("\\u{control:04x}")),
            plain => out.push(plain),
        }
    }
}

/// A character of a JSON string that a terminal shows.
fn visible(out: &mut Vec<u8>, char: char) {
    if is_printable(char) {
        push(out, char.encode_utf8(&mut [0; 4]));
        return;
    }
    for unit in char.encode_utf16(&mut [0; 2]).iter() {
        write(out, format_args!("\\u{unit:04x}"));
    }
}

/// Whether text is one JSON document.
fn is_document(text: &str) -> bool {
    serde_json::from_str::<serde_json::Value>(text).is_ok()
}

/// A JSON document on one line. Strings contain no line ends and tabs, only escapes of them.
fn document(out: &mut Vec<u8>, text: &str, is_terminal: bool) {
    for piece in text.trim().split(['\n', '\r', '\t']) {
        if is_terminal {
            piece.chars().for_each(|char| visible(out, char));
        } else {
            push(out, piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &[u8], rendering: Rendering, is_terminal: bool) -> String {
        let mut out = Vec::new();
        value(&mut out, Some(bytes), rendering, is_terminal);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn strings_have_pythons_escapes() {
        let long = "0123456789abcde\"0123456789abcdef0123456789\\\u{1f}é\u{7f}\u{9b}";
        let pairs = [
            ("", "\"\""),
            ("a\"b\\c\u{8}\t\n\u{c}\r\0", "\"a\\\"b\\\\c\\b\\t\\n\\f\\r\\u0000\""),
            (long, "\"0123456789abcde\\\"0123456789abcdef0123456789\\\\\\u001fé\u{7f}\u{9b}\""),
        ];
        for (text, expected) in pairs {
            assert_eq!(shown(text.as_bytes(), Rendering::Auto, false), expected);
        }
    }

    #[test]
    fn a_terminal_gets_what_it_can_show() {
        let text = "a\"\u{1b}[2J\u{7f}é\u{9b}\u{202e}\u{1f600}\u{e0001}";
        let expected = "\"a\\\"\\u001b[2J\\u007fé\\u009b\\u202e\u{1f600}\\udb40\\udc01\"";
        assert_eq!(shown(text.as_bytes(), Rendering::Auto, true), expected);
    }

    #[test]
    fn bytes_have_many_forms() {
        let pairs: [(&[u8], Rendering, &str); 9] = [
            (b"\xff\x00", Rendering::Auto, "{\"base64\": \"/wA=\"}"),
            (b"\xff\x00", Rendering::Json, "{\"base64\": \"/wA=\"}"),
            (b"\xffa", Rendering::Text, "\"\u{fffd}a\""),
            (b"\xff\x00", Rendering::Hex, "\"ff00\""),
            (b"\xff\x00", Rendering::Base64, "\"/wA=\""),
            (b" {\"a\":\n\t[1.50, \"\\n\"]}\r\n", Rendering::Json, "{\"a\":[1.50, \"\\n\"]}"),
            (b"17", Rendering::Json, "17"),
            (b"{\"a\": 1} {}", Rendering::Json, "\"{\\\"a\\\": 1} {}\""),
            (b"17", Rendering::Auto, "\"17\""),
        ];
        for (bytes, rendering, expected) in pairs {
            assert_eq!(shown(bytes, rendering, false), expected);
        }
        assert_eq!(shown("[\"\u{9b}\"]".as_bytes(), Rendering::Json, true), "[\"\\u009b\"]");
    }
}
