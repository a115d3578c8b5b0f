//! The struct that identifies the log of a row, as text.

use serde_json::Value;

use crate::error::Result;
use crate::jvm::unsafe_rows::cells::{is_null_at, number_at, value_at};
use crate::jvm::unsafe_rows::types::{SparkType, fields_of, name_of};
use crate::jvm::unsafe_rows::{WORD, bits_len};

/// The fields of a struct that identifies a log.
pub(in crate::jvm) struct LogKey {
    fields: Vec<(String, SparkType)>,
}

impl LogKey {
    /// The struct that is the first field of Spark's JSON of a struct.
    ///
    /// # Errors
    /// If the text is not such JSON.
    pub(in crate::jvm) fn of_first(json: &str) -> Result<Self> {
        let fields = fields_of(json)?;
        let key = fields.first().and_then(|field| field.pointer("/type/fields")).and_then(Value::as_array);
        let named = |field: &Value| {
            let kind = SparkType::of_json(field.get("type")?, false).unwrap_or(SparkType::Skipped);
            Some((name_of(field)?, kind))
        };
        Ok(Self { fields: key.into_iter().flatten().filter_map(named).collect() })
    }

    /// The name of the log with these bytes of the struct: `topic=orders, partition=0`. Only text, whole numbers and
    /// booleans are shown.
    ///
    /// # Errors
    /// If the bytes are not such a struct.
    pub(in crate::jvm) fn name(&self, key: &[u8]) -> Result<String> {
        let mut parts = Vec::new();
        let mut at = bits_len(self.fields.len());
        for (number, (name, kind)) in self.fields.iter().enumerate() {
            if let Some(value) = shown(kind, key, at)? {
                let value = if is_null_at(key, 0, number)? { "null" } else { &value };
                parts.push(format!("{name}={value}"));
            }
            at = at.saturating_add(WORD);
        }
        Ok(parts.join(", "))
    }
}

/// The value of a field; `None` for a type that is not shown.
fn shown(kind: &SparkType, row: &[u8], at: usize) -> Result<Option<String>> {
    Ok(Some(match kind {
        SparkType::Boolean => (number_at::<1>(row, at)? != [0]).to_string(),
        SparkType::Byte => i8::from_ne_bytes(number_at(row, at)?).to_string(),
        SparkType::Short => i16::from_ne_bytes(number_at(row, at)?).to_string(),
        SparkType::Int => i32::from_ne_bytes(number_at(row, at)?).to_string(),
        SparkType::Long => i64::from_ne_bytes(number_at(row, at)?).to_string(),
        SparkType::Text => String::from_utf8_lossy(value_at(row, at)?).into_owned(),
        _ => return Ok(None),
    }))
}
