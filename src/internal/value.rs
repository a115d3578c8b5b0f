//! [`Value`]: a decoded field.

use std::borrow::Cow;

use crate::log::Uuid;

/// The value of a field, or all fields of a struct.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// Null.
    Null,
    /// A boolean.
    Bool(bool),
    /// An integer of any width.
    Int(i64),
    /// A floating-point number.
    Float(f64),
    /// Text, decoded as Java does: malformed UTF-8 becomes U+FFFD.
    Text(Cow<'a, str>),
    /// Bytes.
    Bytes(&'a [u8]),
    /// An id.
    Uuid(Uuid),
    /// An array.
    Array(Vec<Value<'a>>),
    /// The fields of a struct in the order of the schema. Fields that the version lacks are absent, and so are tagged
    /// fields with their default.
    Struct(Vec<(&'static str, Value<'a>)>),
}

impl<'a> Value<'a> {
    /// The value of a field of a struct.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        match self {
            Self::Struct(fields) => fields.iter().find(|(field, _)| *field == name).map(|(_, value)| value),
            _ => None,
        }
    }

    pub(crate) fn get_mut(&mut self, name: &str) -> Option<&mut Value<'a>> {
        match self {
            Self::Struct(fields) => fields.iter_mut().find(|(field, _)| *field == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// An integer.
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        if let Self::Int(value) = self { Some(*value) } else { None }
    }

    /// A boolean.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        if let Self::Bool(value) = self { Some(*value) } else { None }
    }

    /// Text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(value) = self { Some(value) } else { None }
    }

    /// Bytes.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        if let Self::Bytes(value) = self { Some(value) } else { None }
    }

    /// An id.
    #[must_use]
    pub fn as_uuid(&self) -> Option<Uuid> {
        if let Self::Uuid(value) = self { Some(*value) } else { None }
    }

    /// The elements of an array.
    #[must_use]
    pub fn as_array(&self) -> Option<&[Value<'a>]> {
        if let Self::Array(elements) = self { Some(elements) } else { None }
    }
}
