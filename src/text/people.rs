//! Lines for people.

use arrow_array::temporal_conversions::timestamp_s_to_datetime;

use crate::arrow::{Origin, SkippedBytes};
use crate::dump::sink::{push, push_int};
use crate::error::Result;
use crate::format::header::NO_TIMESTAMP;
use crate::format::record::{Record, decode_as_java};
use crate::internal::write_base64;
use crate::text::hex::hex;
use crate::text::json;
use crate::text::options::{Rendering, TextOptions};
use crate::text::printable::{one_line, write};

/// The last second of the year 9999: later times are numbers.
const LAST_SECOND: i64 = 253_402_300_799;

/// The part of a line that the records of a file share.
pub(super) fn start(out: &mut Vec<u8>, origin: &Origin) {
    one_line(out, origin.topic.as_deref().unwrap_or("-"));
    out.push(b'-');
    match origin.partition {
        Some(partition) => push_int(out, partition.into()),
        None => out.push(b'?'),
    }
    out.push(b'@');
}

/// The rest of the line of a record.
pub(super) fn record(out: &mut Vec<u8>, clock: &mut Clock, record: &Record<'_>, text: &TextOptions) -> Result<()> {
    push_int(out, record.offset());
    push(out, "  ");
    clock.time(out, record.timestamp());
    for (bytes, rendering) in [(record.key(), text.key), (record.value(), text.value)] {
        push(out, "  ");
        value(out, bytes, rendering);
    }
    for header in record.headers() {
        let header = header?;
        push(out, "  ");
        one_line(out, &header.key_lossy());
        out.push(b'=');
        value(out, header.value(), Rendering::Auto);
    }
    out.push(b'\n');
    Ok(())
}

/// The line of a corruption.
pub(super) fn skipped(out: &mut Vec<u8>, skipped: &SkippedBytes) {
    push(out, "-- corruption: ");
    one_line(out, &skipped.message);
    out.push(b'\n');
}

/// A key or value, so that null, an empty text and a dash differ.
fn value(out: &mut Vec<u8>, bytes: Option<&[u8]>, rendering: Rendering) {
    let Some(bytes) = bytes else { return push(out, "null") };
    let text = match rendering {
        Rendering::Json => return json::value(out, Some(bytes), rendering, true),
        Rendering::Base64 => return write_base64(out, bytes),
        Rendering::Hex => None,
        Rendering::Text => Some(decode_as_java(bytes)),
        Rendering::Auto => std::str::from_utf8(bytes).ok().map(Into::into),
    };
    if let Some(text) = text {
        out.push(b'"');
        one_line(out, &text);
        out.push(b'"');
    } else {
        push(out, "0x");
        hex(out, bytes);
    }
}

/// Times in UTC. Records that follow each other often have the same second.
#[derive(Default)]
pub(super) struct Clock {
    second: i64,
    shown: String,
}

impl Clock {
    fn time(&mut self, out: &mut Vec<u8>, timestamp: i64) {
        let (second, millisecond) = (timestamp.div_euclid(1000), timestamp.rem_euclid(1000));
        match timestamp {
            NO_TIMESTAMP => out.push(b'-'),
            0.. if second <= LAST_SECOND => {
                if self.shown.is_empty() || self.second != second {
                    let time = timestamp_s_to_datetime(second);
                    (self.second, self.shown) = (second, time.map(|time| time.to_string()).unwrap_or_default());
                }
                push(out, &self.shown);
                write(out, format_args!(".{millisecond:03}Z"));
            }
            _ => push_int(out, timestamp),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        let pairs = [
            (0, "1970-01-01 00:00:00.000Z"),
            (951_782_400_007, "2000-02-29 00:00:00.007Z"),
            (1_709_251_199_999, "2024-02-29 23:59:59.999Z"),
            (1_709_251_200_000, "2024-03-01 00:00:00.000Z"),
            (4_107_542_399_000, "2100-02-28 23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01 00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31 23:59:59.999Z"),
            (253_402_300_800_000, "253402300800000"),
            (i64::MAX, "9223372036854775807"),
            (-1, "-"),
            (-2, "-2"),
            (i64::MIN, "-9223372036854775808"),
        ];
        let mut clock = Clock::default();
        for (timestamp, expected) in pairs {
            let mut out = Vec::new();
            clock.time(&mut out, timestamp);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }

    #[test]
    fn null_empty_and_bytes_differ() {
        let pairs: [(Option<&[u8]>, Rendering, &str); 8] = [
            (None, Rendering::Auto, "null"),
            (Some(b""), Rendering::Auto, "\"\""),
            (Some(b"a\x1b"), Rendering::Auto, "\"a\\x1b\""),
            (Some(b"\xff"), Rendering::Auto, "0xff"),
            (Some(b"\xff"), Rendering::Text, "\"\u{fffd}\""),
            (Some(b"a"), Rendering::Hex, "0x61"),
            (Some(b"a"), Rendering::Base64, "YQ=="),
            (Some(b"[1]"), Rendering::Json, "[1]"),
        ];
        for (bytes, rendering, expected) in pairs {
            let mut out = Vec::new();
            value(&mut out, bytes, rendering);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}
