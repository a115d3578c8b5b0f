//! The types of the fields of records, from Spark's JSON of a struct.

use serde_json::Value;

use crate::error::{Error, Result};

/// The type of a value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum SparkType {
    /// A field that is not read, whatever its type.
    Skipped,
    /// The values are all null.
    Null,
    Boolean,
    Byte,
    Short,
    Int,
    Long,
    Float,
    Double,
    Timestamp,
    /// A string that is only used as bytes, or bytes.
    Bytes,
    Text,
    List(Box<SparkType>),
    Struct(Vec<(String, SparkType)>),
    Map(Box<SparkType>, Box<SparkType>),
}

impl SparkType {
    /// Bytes of an element in an array.
    pub(super) fn width(&self) -> usize {
        match self {
            Self::Skipped | Self::Boolean | Self::Byte => 1,
            Self::Short => 2,
            Self::Int | Self::Float => 4,
            _ => super::WORD,
        }
    }

    /// The type with Spark's JSON. Text is needed as such only in columns that are not bytes in a record.
    pub(super) fn of_json(json: &Value, is_bytes: bool) -> Option<Self> {
        if let Some(name) = json.as_str() {
            return Some(match name {
                "void" | "null" => Self::Null,
                "binary" => Self::Bytes,
                "boolean" => Self::Boolean,
                "byte" => Self::Byte,
                "short" => Self::Short,
                "integer" => Self::Int,
                "long" => Self::Long,
                "float" => Self::Float,
                "double" => Self::Double,
                "timestamp" | "timestamp_ntz" => Self::Timestamp,
                "string" if is_bytes => Self::Bytes,
                "string" => Self::Text,
                _ => return None,
            });
        }
        let inner = |name: &str| json.get(name).and_then(|json| Self::of_json(json, is_bytes)).map(Box::new);
        match json.get("type")?.as_str()? {
            "array" => inner("elementType").map(Self::List),
            "map" => Some(Self::Map(inner("keyType")?, inner("valueType")?)),
            "struct" => {
                let fields = json.get("fields")?.as_array()?.iter();
                let fields = fields.map(|field| Some((name_of(field)?, Self::of_json(field.get("type")?, is_bytes)?)));
                fields.collect::<Option<_>>().map(Self::Struct)
            }
            _ => None,
        }
    }
}

/// The fields of Spark's JSON of a struct.
pub(super) fn fields_of(json: &str) -> Result<Vec<Value>> {
    let mut json: Value = serde_json::from_str(json).map_err(|_| not_a_struct())?;
    match json.get_mut("fields").map(Value::take) {
        Some(Value::Array(fields)) => Ok(fields),
        _ => Err(not_a_struct()),
    }
}

#[cold]
fn not_a_struct() -> Error {
    Error::other("these fields of a row are not a struct in Spark's JSON")
}

pub(super) fn name_of(field: &Value) -> Option<String> {
    field.get("name")?.as_str().map(str::to_owned)
}

/// The fields of rows, of which those with the names of a record's columns are read.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::jvm) struct RecordType {
    pub(super) fields: Vec<(String, SparkType)>,
}

impl RecordType {
    /// The fields of Spark's JSON of a struct. Only the `known` ones are read.
    ///
    /// # Errors
    /// A field whose name differs from a known one in its case only, and would be ignored; a known one of a type that no
    /// column of a record has.
    pub(in crate::jvm) fn of_json(json: &str, known: &[&str]) -> Result<Self> {
        let mut read = Vec::new();
        for field in &fields_of(json)? {
            let name = name_of(field).ok_or_else(not_a_struct)?;
            let right = known.iter().find(|known| known.eq_ignore_ascii_case(&name));
            let kind = match right {
                Some(right) if *right != name => {
                    return Err(Error::argument(format!("kbat: column {name}: rename it to {right}")));
                }
                Some(_) => kind_of(field, &name)?,
                None => SparkType::Skipped,
            };
            read.push((name, kind));
        }
        Ok(Self { fields: read })
    }
}

fn kind_of(field: &Value, name: &str) -> Result<SparkType> {
    let is_bytes = matches!(name, "key" | "value" | "headers");
    let json = field.get("type").unwrap_or(&Value::Null);
    SparkType::of_json(json, is_bytes).ok_or_else(|| {
        let shown = json.as_str().map_or_else(|| json.to_string(), str::to_owned);
        Error::argument(format!("kbat: column {name} has the unsupported type {shown}; convert it with CAST"))
    })
}
