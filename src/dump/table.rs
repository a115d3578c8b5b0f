//! Tables for people: one line per batch or record, with columns of one width, at most 80 characters wide unless a
//! number needs more. Keys and values are shortened, and unprintable characters escaped.

use crate::compression::Compression;
use crate::dump::Options;
use crate::dump::log_file::ParsedBatch;
use crate::dump::sink::push;
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

/// Offset, timestamp, and with `--print-data-log` key and value; otherwise their sizes.
pub(super) fn record(out: &mut Vec<u8>, options: &Options, record: &Record<'_>) {
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
}

/// Text on one line with at most `width` characters.
fn printable(bytes: &[u8], width: usize) -> String {
    // a character has at most four bytes, and one more shows whether the text is longer
    let head = bytes.get(..width.saturating_add(1).saturating_mul(4)).unwrap_or(bytes);
    let mut shown = String::new();
    for (count, letter) in String::from_utf8_lossy(head).chars().enumerate() {
        if count >= width.saturating_sub(1) && bytes.len() > shown.len() {
            shown.push('…');
            break;
        }
        shown.push(if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter });
    }
    shown
}
