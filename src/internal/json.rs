//! Values as JSON, as Kafka's `JsonConverter` classes and Jackson write them: no blanks, fields in the order of the
//! schema, bytes in base64, ids in Kafka's base64 for URLs.

use crate::internal::Value;
use crate::num::usize_of;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

impl Value<'_> {
    /// Appends the value as JSON.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.extend_from_slice(b"null"),
            Self::Bool(value) => out.extend_from_slice(if *value { b"true" } else { b"false" }),
            Self::Int(value) => out.extend_from_slice(value.to_string().as_bytes()),
            Self::Float(value) => write_float(out, *value),
            Self::Text(value) => write_string(out, value),
            Self::Bytes(value) => {
                out.push(b'"');
                write_base64(out, value);
                out.push(b'"');
            }
            Self::Uuid(value) => write_string(out, &value.to_string()),
            Self::Array(elements) => write_list(out, [b'[', b']'], elements, |out, element| element.write_json(out)),
            Self::Struct(fields) => write_list(out, [b'{', b'}'], fields, |out, (name, value)| {
                write_string(out, name);
                out.push(b':');
                value.write_json(out);
            }),
        }
    }

    /// The value as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut out = Vec::new();
        self.write_json(&mut out);
        String::from_utf8_lossy(&out).into_owned()
    }
}

fn write_list<T>(out: &mut Vec<u8>, ends: [u8; 2], items: &[T], mut write: impl FnMut(&mut Vec<u8>, &T)) {
    let [open, close] = ends;
    out.push(open);
    for (place, item) in items.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write(out, item);
    }
    out.push(close);
}

/// Appends a JSON string, with Jackson's escapes.
pub(crate) fn write_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let mut rest = text.as_bytes();
    while let Some(place) = rest.iter().position(|byte| *byte < 0x20 || matches!(*byte, b'"' | b'\\')) {
        let Some((plain, [byte, after @ ..])) = rest.split_at_checked(place) else { break };
        out.extend_from_slice(plain);
        match *byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x08 => out.extend_from_slice(b"\\b"),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\n' => out.extend_from_slice(b"\\n"),
            0x0c => out.extend_from_slice(b"\\f"),
            b'\r' => out.extend_from_slice(b"\\r"),
            control => out.extend_from_slice(format!("\\u{control:04X}").as_bytes()),
        }
        rest = after;
    }
    out.extend_from_slice(rest);
    out.push(b'"');
}

/// Appends bytes: text if they are UTF-8, otherwise `{"base64": "…"}`; null is null.
pub(crate) fn write_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes.map(|bytes| (bytes, std::str::from_utf8(bytes))) {
        None => out.extend_from_slice(b"null"),
        Some((_, Ok(text))) => write_string(out, text),
        Some((bytes, Err(_))) => {
            out.extend_from_slice(b"{\"base64\":\"");
            write_base64(out, bytes);
            out.extend_from_slice(b"\"}");
        }
    }
}

/// Appends base64 with padding, without quotes.
pub(crate) fn write_base64(out: &mut Vec<u8>, bytes: &[u8]) {
    for chunk in bytes.chunks(3) {
        let (bits, used) = match *chunk {
            [first, second, third] => (u32::from_be_bytes([0, first, second, third]), 4),
            [first, second] => (u32::from_be_bytes([0, first, second, 0]), 3),
            [first] => (u32::from_be_bytes([0, first, 0, 0]), 2),
            _ => (0, 0),
        };
        for (place, shift) in [18_u32, 12, 6, 0].into_iter().enumerate() {
            let sextet = usize_of(bits.wrapping_shr(shift) & 63);
            out.push(if place < used { ALPHABET.get(sextet).copied().unwrap_or(b'A') } else { b'=' });
        }
    }
}

/// Appends a number as Java's `Double.toString` does: `1.0E7` and `9.0E-4`, but `1000000.0` and `0.001`. Jackson quotes
/// NaN and infinity.
fn write_float(out: &mut Vec<u8>, value: f64) {
    if !value.is_finite() {
        let name: &[u8] = match (value.is_nan(), value.is_sign_negative()) {
            (true, _) => b"\"NaN\"",
            (false, false) => b"\"Infinity\"",
            (false, true) => b"\"-Infinity\"",
        };
        out.extend_from_slice(name);
        return;
    }
    if value.is_sign_negative() {
        out.push(b'-');
    }
    let shortest = format!("{:e}", value.abs());
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let digits: String = mantissa.chars().filter(|digit| *digit != '.').collect();
    let exponent: i32 = exponent.parse().unwrap_or(0);
    out.extend_from_slice(java_digits(&digits, exponent).as_bytes());
}

fn java_digits(digits: &str, exponent: i32) -> String {
    let fraction = |digits: &str| if digits.is_empty() { "0".to_owned() } else { digits.to_owned() };
    match exponent {
        _ if digits == "0" => "0.0".to_owned(),
        -3..=-1 => {
            let zeros = usize::try_from(exponent.saturating_neg()).unwrap_or(1).saturating_sub(1);
            format!("0.{}{digits}", "0".repeat(zeros))
        }
        0..=6 => {
            let whole = usize::try_from(exponent).unwrap_or(0).saturating_add(1);
            match digits.split_at_checked(whole) {
                Some((whole, rest)) => format!("{whole}.{}", fraction(rest)),
                None => format!("{digits:0<whole$}.0"),
            }
        }
        _ => {
            let (first, rest) = digits.split_at_checked(1).unwrap_or((digits, ""));
            format!("{first}.{}E{exponent}", fraction(rest))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn float(value: f64) -> String {
        Value::Float(value).to_json()
    }

    #[test]
    fn floats_are_those_of_java() {
        let pairs = [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.001, "0.001"),
            (0.000_9, "9.0E-4"),
            (1_000_000.0, "1000000.0"),
            (9_999_999.5, "9999999.5"),
            (10_000_000.0, "1.0E7"),
            (1_048_576.0, "1048576.0"),
            (123.456, "123.456"),
            (1.5e300, "1.5E300"),
            (-2.5, "-2.5"),
            (f64::NAN, "\"NaN\""),
            (f64::NEG_INFINITY, "\"-Infinity\""),
        ];
        for (value, expected) in pairs {
            assert_eq!(float(value), expected);
        }
    }

    #[test]
    fn strings_have_the_escapes_of_jackson() {
        let value = Value::Text("a\"b\\c\n\t\u{1f}\u{7f}é".into());
        assert_eq!(value.to_json(), "\"a\\\"b\\\\c\\n\\t\\u001F\u{7f}é\"");
    }

    #[test]
    fn bytes_are_base64_with_padding() {
        let pairs: [(&[u8], &str); 4] =
            [(b"", "\"\""), (b"f", "\"Zg==\""), (b"fo", "\"Zm8=\""), (b"foob\xff\xfe", "\"Zm9vYv/+\"")];
        for (bytes, expected) in pairs {
            assert_eq!(Value::Bytes(bytes).to_json(), expected);
        }
    }
}
