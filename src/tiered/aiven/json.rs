//! [`JsonObject`]: a JSON object whose members are read with their types checked, and named in errors.

use serde_json::{Map, Value};

use crate::error::{Error, ErrorKind, Result};

/// Largest `int` of Java, which sizes and positions in a manifest are.
const MAX_INT: u64 = 0x7fff_ffff;

pub(super) fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidFile(message.into()))
}

/// A JSON object and its path in the manifest.
pub(super) struct JsonObject<'v> {
    members: &'v Map<String, Value>,
    path: &'static str,
}

impl<'v> JsonObject<'v> {
    /// `path` is empty, or ends in a dot.
    pub(super) fn new(value: &'v Value, path: &'static str) -> Result<Self> {
        match value {
            Value::Object(members) => Ok(Self { members, path }),
            other => {
                let name = path.strip_suffix('.').unwrap_or("the manifest");
                Err(invalid(format!("{name} is {}: expected a JSON object", shown(other))))
            }
        }
    }

    /// Returns a member; `None` if it is missing or null.
    pub(super) fn optional(&self, name: &str) -> Option<&'v Value> {
        self.members.get(name).filter(|value| !value.is_null())
    }

    /// Returns a member that is an object; `None` if it is missing or null.
    pub(super) fn optional_object(&self, name: &str, path: &'static str) -> Result<Option<JsonObject<'v>>> {
        self.optional(name).map(|value| JsonObject::new(value, path)).transpose()
    }

    /// Returns a member that is an object.
    pub(super) fn object(&self, name: &str, path: &'static str) -> Result<JsonObject<'v>> {
        JsonObject::new(self.required(name)?, path)
    }

    pub(super) fn text(&self, name: &str) -> Result<&'v str> {
        let value = self.required(name)?;
        value.as_str().ok_or_else(|| self.unexpected(name, value, "a string"))
    }

    pub(super) fn flag(&self, name: &str) -> Result<bool> {
        let value = self.required(name)?;
        value.as_bool().ok_or_else(|| self.unexpected(name, value, "true or false"))
    }

    /// Returns a size or position: a Java `int` that is not negative.
    pub(super) fn size(&self, name: &str) -> Result<u32> {
        let value = self.required(name)?;
        let size = value.as_u64().filter(|size| *size <= MAX_INT).and_then(|size| u32::try_from(size).ok());
        size.ok_or_else(|| self.unexpected(name, value, "a number from 0 to 2147483647"))
    }

    /// Returns a Java `int`.
    pub(super) fn int(&self, name: &str) -> Result<i32> {
        let value = self.required(name)?;
        let number = value.as_i64().and_then(|number| i32::try_from(number).ok());
        number.ok_or_else(|| self.unexpected(name, value, "a 32-bit number"))
    }

    /// Returns a Java `long`.
    pub(super) fn long(&self, name: &str) -> Result<i64> {
        let value = self.required(name)?;
        value.as_i64().ok_or_else(|| self.unexpected(name, value, "a 64-bit number"))
    }

    /// Every member.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&'v String, &'v Value)> {
        self.members.iter()
    }

    /// The error for a member that has an unexpected value.
    pub(super) fn unexpected(&self, name: &str, value: &Value, expected: &str) -> Error {
        invalid(format!("{}{name} is {}: expected {expected}", self.path, shown(value)))
    }

    fn required(&self, name: &str) -> Result<&'v Value> {
        self.optional(name).ok_or_else(|| invalid(format!("{}{name} is missing", self.path)))
    }
}

/// A value for a message. Long values are shortened.
fn shown(value: &Value) -> String {
    const MOST: usize = 40;
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        Value::String(text) if text.chars().count() > MOST => {
            format!("{:?}…", text.chars().take(MOST).collect::<String>())
        }
        other => other.to_string(),
    }
}
