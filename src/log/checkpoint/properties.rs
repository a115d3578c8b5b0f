//! `meta.properties` at the top of a log directory: the broker and the cluster that it belongs to, in the text format
//! of `java.util.Properties`.
//!
//! ```text
//! #
//! #Sat Nov 21 09:33:27 UTC 2026
//! node.id=1
//! directory.id=8hix4X3hRE--tuZIu3b2Cg
//! version=1                             version 0 has broker.id instead of node.id
//! cluster.id=kbatCorpusSharedAAAAAQ
//! ```
//!
//! A line consists of a key, a separator (`=`, `:` or white space) and a value. `#` and `!` start a comment. A
//! backslash escapes a character, or continues the line on the next one.
//!
//! Source: `java.util.Properties.load`, `MetaProperties` of Kafka.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use super::{fault, lines, read_text};
use crate::error::Result;
use crate::io::Location;
use crate::io::atomic::write_atomically;

/// The content of `meta.properties`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetaProperties {
    /// 0 or 1. 0 if the file has no version.
    pub version: i32,
    /// `node.id`, or `broker.id` in version 0.
    pub node_id: Option<i32>,
    /// `cluster.id`.
    pub cluster_id: Option<String>,
    /// `directory.id`.
    pub directory_id: Option<String>,
}

impl MetaProperties {
    /// Reads the file.
    ///
    /// # Errors
    /// The errors of [`MetaProperties::parse`]; I/O errors.
    pub fn read(path: impl Into<Location>) -> Result<Self> {
        let path: &Location = &path.into();
        Self::parse(&read_text(path)?).map_err(|error| error.with_path(path))
    }

    /// Parses the text of the file.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidFile`](crate::ErrorKind::InvalidFile) for another version, a malformed number, or a
    /// malformed escape.
    pub fn parse(text: &str) -> Result<Self> {
        let mut properties = parse_properties(text)?;
        let version = number(&properties, "version")?.unwrap_or(0);
        if !(0..=1).contains(&version) {
            return Err(fault(format!("version {version} of meta.properties is not supported, only 0 and 1 are"))
                .in_field("version"));
        }
        let node_id = number(&properties, if version == 0 { "broker.id" } else { "node.id" })?;
        let (cluster_id, directory_id) = (properties.remove("cluster.id"), properties.remove("directory.id"));
        Ok(Self { version, node_id, cluster_id, directory_id })
    }

    /// Encodes the file as text.
    #[must_use]
    pub fn encode(&self) -> String {
        let node_id = if self.version == 0 { "broker.id" } else { "node.id" };
        let lines = [
            (node_id, self.node_id.map(|id| id.to_string())),
            ("directory.id", self.directory_id.clone()),
            ("version", Some(self.version.to_string())),
            ("cluster.id", self.cluster_id.clone()),
        ];
        let present = lines.into_iter().filter_map(|(key, value)| Some((key, value?)));
        present.fold(String::new(), |text, (key, value)| text + key + "=" + &escape(&value) + "\n")
    }

    /// Writes the file atomically.
    ///
    /// # Errors
    /// I/O errors.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        write_atomically(path, self.encode().as_bytes())
    }
}

fn number(properties: &BTreeMap<String, String>, key: &'static str) -> Result<Option<i32>> {
    let Some(value) = properties.get(key) else { return Ok(None) };
    let number = value.trim().parse().map_err(|_| fault(format!("{key} is not a number: {value:?}")).in_field(key))?;
    Ok(Some(number))
}

/// Parses as Java's `Properties.load` does: if several lines have the same key, the last one counts.
fn parse_properties(text: &str) -> Result<BTreeMap<String, String>> {
    let mut properties = BTreeMap::new();
    let mut lines = lines(text).map(|line| line.trim_start_matches(is_space));
    while let Some(line) = lines.next() {
        if line.is_empty() || line.starts_with(['#', '!']) {
            continue;
        }
        let mut logical = line.to_owned();
        while ends_in_backslash(&logical) {
            logical.pop();
            logical.push_str(lines.next().unwrap_or_default());
        }
        let (key, value) = split_key(&logical);
        properties.insert(unescape(key)?, unescape(value)?);
    }
    Ok(properties)
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\u{c}')
}

fn ends_in_backslash(line: &str) -> bool {
    let count = line.bytes().rev().take_while(|byte| *byte == b'\\').count();
    !count.is_multiple_of(2)
}

/// Splits a line at the first unescaped `=`, `:` or white space. Between key and value there is white space and at
/// most one `=` or `:`.
fn split_key(line: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = line.find(|c: char| {
        let ends = !escaped && (is_space(c) || c == '=' || c == ':');
        escaped = c == '\\' && !escaped;
        ends
    });
    let (key, rest) = line.split_at_checked(end.unwrap_or(line.len())).unwrap_or((line, ""));
    let rest = rest.trim_start_matches(is_space);
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (key, rest.trim_start_matches(is_space))
}

/// Resolves escapes. Goes through UTF-16 because a character may be written as two escaped surrogates.
fn unescape(text: &str) -> Result<String> {
    let mut units = Vec::new();
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        if c != '\\' {
            units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
            continue;
        }
        let Some(c) = characters.next() else { break };
        let plain = match c {
            'u' => {
                let digits: String = characters.by_ref().take(4).collect();
                units.push(hexadecimal(&digits).ok_or_else(|| fault(format!("\\u{digits} is not a valid escape")))?);
                continue;
            }
            't' => '\t',
            'r' => '\r',
            'n' => '\n',
            'f' => '\u{c}',
            other => other,
        };
        units.extend_from_slice(plain.encode_utf16(&mut [0; 2]));
    }
    Ok(String::from_utf16_lossy(&units))
}

fn hexadecimal(digits: &str) -> Option<u16> {
    let legal = digits.len() == 4 && digits.chars().all(|c| c.is_ascii_hexdigit());
    if legal { u16::from_str_radix(digits, 16).ok() } else { None }
}

fn escape(value: &str) -> String {
    let mut escaped = String::new();
    for c in value.chars() {
        match c {
            '\t' => escaped.push_str("\\t"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\u{c}' => escaped.push_str("\\f"),
            '\\' | '=' | ':' | '#' | '!' => escaped.extend(['\\', c]),
            ' ' if escaped.is_empty() => escaped.push_str("\\ "),
            ' '..='~' => escaped.push(c),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    // writing to a String cannot fail
                    let _ = write!(escaped, "\\u{unit:04X}");
                }
            }
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(text: &str) -> Vec<(String, String)> {
        parse_properties(text).unwrap().into_iter().collect()
    }

    #[test]
    fn properties_are_read_as_java_reads_them() {
        let one = |key: &str, value: &str| vec![(key.to_owned(), value.to_owned())];
        for text in [
            "a=b",
            "a:b",
            "a b",
            " a = b",
            "\ta\t:\tb",
            "a   b\r\n",
            "#c=d\n!e\n\na=b",
            "a=x\na=b",
            "a=\\\n   b",
            "\\a=\\b",
        ] {
            assert_eq!(pairs(text), one("a", "b"), "{text:?}");
        }
        assert_eq!(pairs("a"), one("a", ""));
        assert_eq!(pairs("a=b "), one("a", "b "));
        assert_eq!(pairs("a==b"), one("a", "=b"));
        assert_eq!(pairs("a\\=\\:\\ b=c"), one("a=: b", "c"));
        assert_eq!(pairs("a=\\u00e9\\ud83d\\ude00\\t\\\\"), one("a", "\u{e9}\u{1f600}\t\\"));
        assert_eq!(pairs("a=b\\"), one("a", "b"));
        assert!(parse_properties("a=\\u12").is_err());
        assert!(parse_properties("a=\\u+123").is_err());
    }

    #[test]
    fn properties_of_a_broker_are_told() {
        let text = "#\n#Sat Nov 21\nnode.id=1\ndirectory.id=8hix4X3hRE--tuZIu3b2Cg\nversion=1\ncluster.id=c\\:1\n";
        let parsed = MetaProperties::parse(text).unwrap();
        assert_eq!((parsed.version, parsed.node_id), (1, Some(1)));
        assert_eq!(parsed.cluster_id.as_deref(), Some("c:1"));
        assert_eq!(parsed.directory_id.as_deref(), Some("8hix4X3hRE--tuZIu3b2Cg"));
        assert_eq!(MetaProperties::parse("version=0\nbroker.id=7").unwrap().node_id, Some(7));
        for text in ["version=2", "version=x", "version=1\nnode.id=one"] {
            assert!(MetaProperties::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn properties_round_trip() {
        let id = " \\a=b:#\u{e9}\u{1f600}\n".to_owned();
        let properties =
            MetaProperties { version: 1, node_id: Some(3), cluster_id: Some(id), directory_id: Some("x y".to_owned()) };
        assert_eq!(MetaProperties::parse(&properties.encode()).unwrap(), properties);
    }
}
