//! Bytes out of every Arrow type that has some.

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, BinaryArray, BinaryViewArray, FixedSizeBinaryArray, LargeBinaryArray, LargeStringArray, StringArray,
    StringViewArray,
};
use arrow_schema::DataType;

use crate::error::{Error, Result};

/// What is accepted where Kafka has bytes, for messages.
pub(super) const ACCEPTED: &str =
    "binary, large_binary, binary_view, fixed_size_binary, string, large_string or string_view";

/// A column of bytes or text.
#[derive(Clone, Copy)]
pub(super) enum Bytes<'a> {
    Null,
    Binary(&'a BinaryArray),
    LargeBinary(&'a LargeBinaryArray),
    BinaryView(&'a BinaryViewArray),
    FixedSizeBinary(&'a FixedSizeBinaryArray),
    String(&'a StringArray),
    LargeString(&'a LargeStringArray),
    StringView(&'a StringViewArray),
}

impl<'a> Bytes<'a> {
    pub(super) fn of(array: &'a dyn Array, column: &str) -> Result<Self> {
        let bytes = match array.data_type() {
            DataType::Null => Some(Self::Null),
            DataType::Binary => array.as_binary_opt().map(Self::Binary),
            DataType::LargeBinary => array.as_binary_opt().map(Self::LargeBinary),
            DataType::BinaryView => array.as_binary_view_opt().map(Self::BinaryView),
            DataType::FixedSizeBinary(_) => array.as_fixed_size_binary_opt().map(Self::FixedSizeBinary),
            DataType::Utf8 => array.as_string_opt().map(Self::String),
            DataType::LargeUtf8 => array.as_string_opt().map(Self::LargeString),
            DataType::Utf8View => array.as_string_view_opt().map(Self::StringView),
            _ => None,
        };
        bytes.ok_or_else(|| wrong_type(column, array.data_type(), ACCEPTED))
    }

    /// The bytes of a row that is there.
    #[inline]
    pub(super) fn get(self, row: usize) -> Option<&'a [u8]> {
        match self {
            Self::Null => None,
            Self::Binary(array) => (!array.is_null(row)).then(|| array.value(row)),
            Self::LargeBinary(array) => (!array.is_null(row)).then(|| array.value(row)),
            Self::BinaryView(array) => (!array.is_null(row)).then(|| array.value(row)),
            Self::FixedSizeBinary(array) => (!array.is_null(row)).then(|| array.value(row)),
            Self::String(array) => (!array.is_null(row)).then(|| array.value(row).as_bytes()),
            Self::LargeString(array) => (!array.is_null(row)).then(|| array.value(row).as_bytes()),
            Self::StringView(array) => (!array.is_null(row)).then(|| array.value(row).as_bytes()),
        }
    }
}

#[cold]
pub(super) fn wrong_type(column: &str, found: &DataType, accepted: &str) -> Error {
    Error::argument(format!("column {column} has the type {found}: use {accepted}"))
}
