//! Tables for people: one line per batch or record, with columns of one width, at most 80 characters wide unless a
//! number needs more or a decoder is used. Keys and values are shortened, and unprintable characters replaced.

use crate::compression::Compression;
use crate::dump::log_file::ParsedBatch;
use crate::dump::sink::push;
use crate::dump::{Decoder, Options, contents, control};
use crate::error::Result;
use crate::format::record::Record;

/// Characters of a key and of a value that are shown.
const KEY_WIDTH: usize = 14;
const VALUE_WIDTH: usize = 24;

pub(super) fn heading(out: &mut Vec<u8>, shown: &str) {
    push(out, shown);
    push(out, "\n");
}

/// The names of the columns of [`batch`], or of [`record`] if records are printed.
pub(super) fn column_names(out: &mut Vec<u8>, options: &Options) {
    let names = if options.is_deep() {
        format!("{:>11} {:>13} {:<KEY_WIDTH$} value\n", "offset", "timestamp", "key")
    } else {
        format!(
            "{:>10} {:>11} {:>11} {:>6} {:>9} {:<6} {:>13} crc\n",
            "position", "base offset", "last offset", "count", "size", "codec", "max timestamp",
        )
    };
    push(out, &names);
}

/// Position, offsets, records, size, codec, largest timestamp, checksum.
pub(super) fn batch(out: &mut Vec<u8>, found: &ParsedBatch<'_>) {
    let header = &found.header;
    let count = if found.magic < 2 { "-".to_owned() } else { header.stored_record_count.to_string() };
    let codec = header.attributes.compression().map_or("unknown", Compression::name);
    let first = header.base_offset().map_or_else(|| "?".to_owned(), |offset| offset.to_string());
    let crc = if found.is_valid { "ok" } else { "BAD" };
    push(
        out,
        &format!(
            "{:>10} {first:>11} {:>11} {count:>6} {:>9} {codec:<6} {:>13} {crc}\n",
            header.position,
            header.last_offset(),
            header.size,
            header.max_timestamp,
        ),
    );
}

/// Offset, timestamp, and with `--print-data-log` key and value; otherwise their sizes. What a decoder returns, and a
/// control record, is shown completely instead of key and value.
///
/// # Errors
/// Those of [`contents::write`] and [`control::write`].
pub(super) fn record(out: &mut Vec<u8>, options: &Options, is_control: bool, record: &Record<'_>) -> Result<()> {
    let mut decoded = Vec::new();
    if is_control {
        control::write(&mut decoded, record)?;
    } else if options.contents && options.decoder != Decoder::Text {
        contents::write(&mut decoded, options.decoder, record, "")?;
    }
    if !decoded.is_empty() {
        push(out, &format!("{:>11} {:>13} ", record.offset, record.timestamp));
        push(out, String::from_utf8_lossy(&decoded).trim_start());
        out.push(b'\n');
        return Ok(());
    }
    let shown = |bytes: Option<&[u8]>, width: usize| match bytes {
        None => "null".to_owned(),
        Some(bytes) if options.contents => printable(bytes, width),
        Some(bytes) => format!("{} B", bytes.len()),
    };
    push(
        out,
        &format!(
            "{:>11} {:>13} {:<KEY_WIDTH$} {}\n",
            record.offset,
            record.timestamp,
            shown(record.key, KEY_WIDTH),
            shown(record.value, VALUE_WIDTH),
        ),
    );
    Ok(())
}

/// Text on one line with at most `width` characters.
fn printable(bytes: &[u8], width: usize) -> String {
    // a character has at most four bytes, and one more shows whether the text is longer
    let head = bytes.get(..width.saturating_add(1).saturating_mul(4)).unwrap_or(bytes);
    let text = String::from_utf8_lossy(head);
    let count = if text.chars().nth(width).is_some() { width.saturating_sub(1) } else { width };
    let plain = |letter: char| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter };
    let mut shown: String = text.chars().take(count).map(plain).collect();
    if count < width {
        shown.push('…');
    }
    shown
}
