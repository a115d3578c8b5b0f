//! [`Template`]: a format string like that of `kcat`.
//!
//! | token | |
//! |---|---|
//! | `%t`, `%p`, `%o` | topic, partition (−1 if unknown), offset |
//! | `%T` | timestamp in milliseconds since the epoch, −1 for none |
//! | `%k`, `%K` | key, its length in bytes (−1 for null) |
//! | `%s`, `%S`, `%R` | value, its length in bytes (−1 for null), the same as a big-endian `i32` |
//! | `%h` | headers: `name=value,name=value`, with `NULL` for null |
//! | `%%` | a percent sign |
//! | `\n`, `\r`, `\t`, `\\`, `\xNN` | characters, and a byte by its hexadecimal digits |

use std::str::{Chars, FromStr};

use crate::error::{Error, Result};
use crate::num::low_u8;

/// A format string that was parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(Vec<TemplatePart>);

/// A part of a format string.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TemplatePart {
    Literal(Vec<u8>),
    Topic,
    Partition,
    Offset,
    Timestamp,
    Key,
    KeyLen,
    Value,
    ValueLen,
    ValueLenBytes,
    Headers,
}

impl FromStr for Template {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut parts = Vec::new();
        let mut literal = Vec::new();
        let mut chars = text.chars();
        while let Some(char) = chars.next() {
            match char {
                '%' => {
                    if let Some(part) = part(&mut chars, text)? {
                        if !literal.is_empty() {
                            parts.push(TemplatePart::Literal(std::mem::take(&mut literal)));
                        }
                        parts.push(part);
                    } else {
                        literal.push(b'%');
                    }
                }
                '\\' => literal.push(escape(&mut chars, text)?),
                _ => literal.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        if !literal.is_empty() {
            parts.push(TemplatePart::Literal(literal));
        }
        Ok(Self(parts))
    }
}

impl Template {
    pub(super) fn parts(&self) -> &[TemplatePart] {
        &self.0
    }
}

/// The part after a percent sign; `None` for a percent sign.
fn part(chars: &mut Chars<'_>, text: &str) -> Result<Option<TemplatePart>> {
    Ok(Some(match chars.next() {
        Some('%') => return Ok(None),
        Some('t') => TemplatePart::Topic,
        Some('p') => TemplatePart::Partition,
        Some('o') => TemplatePart::Offset,
        Some('T') => TemplatePart::Timestamp,
        Some('k') => TemplatePart::Key,
        Some('K') => TemplatePart::KeyLen,
        Some('s') => TemplatePart::Value,
        Some('S') => TemplatePart::ValueLen,
        Some('R') => TemplatePart::ValueLenBytes,
        Some('h') => TemplatePart::Headers,
        other => {
            let found = other.map_or_else(|| "% at its end".to_owned(), |other| format!("%{other}"));
            let message = format!(
                "the format {text:?} has {found}: use %t topic, %p partition, %o offset, %T timestamp, %k key, \
                 %K its length, %s value, %S its length, %h headers, or %% for a percent sign"
            );
            return Err(Error::argument(message));
        }
    }))
}

/// The byte after a backslash.
fn escape(chars: &mut Chars<'_>, text: &str) -> Result<u8> {
    let found = chars.next();
    let byte = match found {
        Some('n') => Some(b'\n'),
        Some('r') => Some(b'\r'),
        Some('t') => Some(b'\t'),
        Some('\\') => Some(b'\\'),
        Some('x') => {
            let mut digit = || chars.next().and_then(|char| char.to_digit(16));
            let (high, low) = (digit(), digit());
            high.zip(low).map(|(high, low)| low_u8(u64::from(high.wrapping_shl(4) | low)))
        }
        _ => None,
    };
    byte.ok_or_else(|| {
        let found = found.map(String::from).unwrap_or_default();
        let message = format!("the format {text:?} has \\{found}: use \\n, \\r, \\t, \\\\ or \\xNN with two digits");
        Error::argument(message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_bytes() {
        let parsed: Template = "\\x00\\xfF%%\\n\\\\é".parse().unwrap();
        assert_eq!(parsed, Template(vec![TemplatePart::Literal(b"\x00\xff%\n\\\xc3\xa9".to_vec())]));
        let parsed: Template = "%k\\t%s".parse().unwrap();
        assert_eq!(parsed, Template(vec![TemplatePart::Key, TemplatePart::Literal(vec![b'\t']), TemplatePart::Value]));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let pairs = [
            ("%t %q", "has %q: use"),
            ("100%", "has % at its end"),
            ("a\\", "has \\: use"),
            ("\\d", "has \\d: use"),
            ("\\x1", "has \\x: use"),
            ("\\x+1", "has \\x: use"),
        ];
        for (wrong, expected) in pairs {
            let message = wrong.parse::<Template>().unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
