//! Writes records by a [`Template`].

use crate::arrow::Origin;
use crate::dump::sink::{push, push_int};
use crate::error::Result;
use crate::format::record::Record;
use crate::text::fields;
use crate::text::options::TextOptions;
use crate::text::template::{Template, TemplatePart};

impl Template {
    /// Appends a record.
    pub(super) fn record(
        &self,
        out: &mut Vec<u8>,
        origin: &Origin,
        record: &Record<'_>,
        text: &TextOptions,
    ) -> Result<()> {
        for part in self.parts() {
            match part {
                TemplatePart::Literal(bytes) => out.extend_from_slice(bytes),
                TemplatePart::Topic => fields::raw(out, origin.topic.as_deref().unwrap_or_default().as_bytes(), text),
                TemplatePart::Partition => push_int(out, origin.partition.unwrap_or(-1).into()),
                TemplatePart::Offset => push_int(out, record.offset()),
                TemplatePart::Timestamp => push_int(out, record.timestamp()),
                TemplatePart::Key => fields::as_bytes(out, record.key(), text.key, text),
                TemplatePart::Value => fields::as_bytes(out, record.value(), text.value, text),
                TemplatePart::KeyLen => push_int(out, len(record.key()).into()),
                TemplatePart::ValueLen => push_int(out, len(record.value()).into()),
                TemplatePart::ValueLenBytes => out.extend_from_slice(&len(record.value()).to_be_bytes()),
                TemplatePart::Headers => headers(out, record, text)?,
            }
        }
        Ok(())
    }
}

/// A length; −1 for null, as Kafka stores it.
fn len(bytes: Option<&[u8]>) -> i32 {
    bytes.map_or(-1, |bytes| i32::try_from(bytes.len()).unwrap_or(i32::MAX))
}

fn headers(out: &mut Vec<u8>, record: &Record<'_>, text: &TextOptions) -> Result<()> {
    for (place, header) in record.headers().enumerate() {
        let header = header?;
        if place > 0 {
            out.push(b',');
        }
        fields::raw(out, header.key(), text);
        out.push(b'=');
        match header.value() {
            Some(value) => fields::raw(out, value, text),
            None => push(out, "NULL"),
        }
    }
    Ok(())
}
