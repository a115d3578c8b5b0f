//! Keys and values outside JSON.

use crate::dump::sink::push;
use crate::format::record::decode_as_java;
use crate::internal::write_base64;
use crate::text::hex::hex;
use crate::text::options::{Rendering, TextOptions};
use crate::text::{json, printable};

/// Appends bytes unchanged, or escaped for a terminal.
pub(super) fn raw(out: &mut Vec<u8>, bytes: &[u8], text: &TextOptions) {
    if text.is_terminal { printable::bytes(out, bytes) } else { out.extend_from_slice(bytes) }
}

/// Appends a key or value, by default its bytes. Null is nothing, unless it is JSON.
pub(super) fn as_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>, rendering: Rendering, text: &TextOptions) {
    match (bytes, rendering) {
        (_, Rendering::Json) => json::value(out, bytes, rendering, text.is_terminal),
        (None, _) => {}
        (Some(bytes), Rendering::Auto) => raw(out, bytes, text),
        (Some(bytes), Rendering::Text) => raw(out, decode_as_java(bytes).as_bytes(), text),
        (Some(bytes), Rendering::Hex) => hex(out, bytes),
        (Some(bytes), Rendering::Base64) => write_base64(out, bytes),
    }
}

/// Appends a key or value, by default as text if it is UTF-8, otherwise as `0x` and hexadecimal digits.
pub(super) fn as_text(out: &mut Vec<u8>, bytes: Option<&[u8]>, rendering: Rendering, text: &TextOptions) {
    match bytes {
        Some(bytes) if rendering == Rendering::Auto && std::str::from_utf8(bytes).is_err() => {
            push(out, "0x");
            hex(out, bytes);
        }
        _ => as_bytes(out, bytes, rendering, text),
    }
}
