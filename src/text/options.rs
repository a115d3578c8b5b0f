//! [`TextOptions`]: which records are written, and how.

use std::str::FromStr;

use crate::arrow::{Isolation, OnCorrupt, ScanOptions};
use crate::error::{Error, Result};
use crate::format::record::Record;
use crate::text::pattern::Pattern;
use crate::text::template::Template;

/// The form of the output.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Format {
    /// One JSON object per line: topic, partition, offset, timestamp, timestamp type, key, value and headers.
    #[default]
    Jsonl,
    /// The same fields as columns. Null is an empty field, an empty key or value is `""`.
    Csv,
    /// One line per record for people.
    Text,
    /// The bytes of the values, with nothing between them.
    Raw,
    /// A format string.
    Template(Template),
}

impl FromStr for Format {
    type Err = Error;

    /// Parses `jsonl`, `csv`, `text`, `raw`, or a format string, which contains `%` or a backslash.
    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "jsonl" => Self::Jsonl,
            "csv" => Self::Csv,
            "text" => Self::Text,
            "raw" => Self::Raw,
            _ if text.contains(['%', '\\']) => Self::Template(text.parse()?),
            _ => {
                let known = "jsonl, csv, text, raw, or a format string such as '%t %p %o %k %s\\n'";
                return Err(Error::argument(format!("{text:?} is not a format: use {known}")));
            }
        })
    }
}

/// The form of keys and values.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rendering {
    /// What suits the format. JSON: a string if the bytes are UTF-8, otherwise `{"base64": "…"}`. CSV and
    /// text: text if the bytes are UTF-8, otherwise `0x` and hexadecimal digits, which look like a text that begins with `0x`
    /// in CSV. Format string and raw: the bytes.
    #[default]
    Auto,
    /// JSON: the bytes themselves if they are JSON, on one line; otherwise as `Auto` in JSON lines.
    Json,
    /// Text; malformed UTF-8 becomes U+FFFD.
    Text,
    /// Hexadecimal digits.
    Hex,
    /// Base64 with padding.
    Base64,
}

impl FromStr for Rendering {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "auto" => Self::Auto,
            "json" => Self::Json,
            "text" => Self::Text,
            "hex" => Self::Hex,
            "base64" => Self::Base64,
            _ => {
                let message = format!("{text:?} is not a form of values: use auto, json, text, hex or base64");
                return Err(Error::argument(message));
            }
        })
    }
}

/// Which records are written, and how.
#[derive(Debug, Clone)]
pub struct TextOptions {
    /// The form of the output.
    pub format: Format,
    /// The form of keys.
    pub key: Rendering,
    /// The form of values.
    pub value: Rendering,
    /// Only records whose key matches. A null key matches nothing.
    pub key_pattern: Option<Pattern>,
    /// Only records whose value matches. A null value matches nothing.
    pub value_pattern: Option<Pattern>,
    /// Only records that have all of these headers: a name, and its value if that is set.
    pub headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    /// Largest number of records to write. Default all.
    pub limit: Option<u64>,
    /// Whether the output is a terminal: characters that would change it are escaped, and each batch is written at
    /// once. Default no.
    pub is_terminal: bool,
    /// Whether CSV begins with the names of the columns. Default yes.
    pub csv_header: bool,
    /// Whether JSON lines have a line for each batch before those of its records. Default no.
    pub batches: bool,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self {
            format: Format::default(),
            key: Rendering::default(),
            value: Rendering::default(),
            key_pattern: None,
            value_pattern: None,
            headers: Vec::new(),
            limit: None,
            is_terminal: false,
            csv_header: true,
            batches: false,
        }
    }
}

impl TextOptions {
    /// Refuses lines for corruption and batches in a format that has none, and batches without those of aborted
    /// transactions or with another form of keys and values.
    pub(super) fn check(&self, scan: &ScanOptions) -> Result<()> {
        if self.batches && !matches!(self.format, Format::Jsonl) {
            return Err(Error::argument("only the format jsonl has lines of batches"));
        }
        if self.batches && (self.key, self.value) != (Rendering::Auto, Rendering::Auto) {
            let message =
                "lines of batches have exact keys and values, which can be imported: omit the form of keys and values";
            return Err(Error::argument(message));
        }
        if self.batches && scan.isolation != Isolation::ReadUncommitted {
            let message = "lines of batches need isolation=\"read_uncommitted\": a log has all its transactions";
            return Err(Error::argument(message));
        }
        let has_lines = matches!(self.format, Format::Jsonl | Format::Text);
        if has_lines || scan.on_corrupt != OnCorrupt::Report {
            return Ok(());
        }
        Err(Error::argument("corruption can be reported only in the formats jsonl and text; use on_corrupt=\"skip\""))
    }

    /// Whether a record matches the patterns and has the headers.
    #[inline]
    pub(crate) fn want(&self, record: &Record<'_>) -> Result<bool> {
        Ok(self.key_pattern.as_ref().is_none_or(|pattern| pattern.matches(record.key()))
            && self.value_pattern.as_ref().is_none_or(|pattern| pattern.matches(record.value()))
            && (self.headers.is_empty() || self.has_headers(record)?))
    }

    fn has_headers(&self, record: &Record<'_>) -> Result<bool> {
        for (name, wanted) in &self.headers {
            let mut is_found = false;
            for header in record.headers() {
                let header = header?;
                let has_value = wanted.as_deref().is_none_or(|wanted| header.value() == Some(wanted));
                is_found |= has_value && header.key() == name.as_slice();
            }
            if !is_found {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
