//! Bytes out of every Arrow type that has some.

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, BinaryArray, BinaryViewArray, FixedSizeBinaryArray, LargeBinaryArray, LargeStringArray, StringArray,
    StringViewArray,
};
use arrow_schema::DataType;

use crate::error::{Error, Result};

/// What is accepted where Kafka has bytes, for messages.
pub(super) const ACCEPTED: &str = "binary, large_binary, binary_view, fixed_size_binary, string, large_string or string_view, or a dictionary of one of them";

/// A column of bytes or text.
pub(super) enum Bytes<'a> {
    Null,
    Dictionary(Box<Dictionary<'a>>),
    Binary(&'a BinaryArray),
    LargeBinary(&'a LargeBinaryArray),
    BinaryView(&'a BinaryViewArray),
    FixedSizeBinary(&'a FixedSizeBinaryArray),
    String(&'a StringArray),
    LargeString(&'a LargeStringArray),
    StringView(&'a StringViewArray),
}

/// Rows that name one of some values: what pandas calls a category, polars and DuckDB an enum.
pub(super) struct Dictionary<'a> {
    array: &'a dyn Array,
    keys: Vec<usize>,
    values: Bytes<'a>,
}

impl<'a> Dictionary<'a> {
    /// `None` without values: then all rows are null.
    fn of(array: &'a dyn Array, column: &str) -> Result<Option<Self>> {
        let Some(dictionary) = array.as_any_dictionary_opt().filter(|dictionary| !dictionary.values().is_empty())
        else {
            return Ok(None);
        };
        let values = Bytes::of(dictionary.values().as_ref(), column)?;
        Ok(Some(Self { array, keys: dictionary.normalized_keys(), values }))
    }

    fn get(&self, row: usize) -> Option<&'a [u8]> {
        self.keys.get(row).filter(|_| !self.array.is_null(row)).and_then(|&key| self.values.get(key))
    }
}

impl<'a> Bytes<'a> {
    pub(super) fn of(array: &'a dyn Array, column: &str) -> Result<Self> {
        let bytes = match array.data_type() {
            DataType::Null => Some(Self::Null),
            DataType::Dictionary(_, values) if is_bytes(values) => {
                Some(Dictionary::of(array, column)?.map_or(Self::Null, |found| Self::Dictionary(Box::new(found))))
            }
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
    pub(super) fn get(&self, row: usize) -> Option<&'a [u8]> {
        match self {
            Self::Null => None,
            Self::Dictionary(dictionary) => dictionary.get(row),
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

fn is_bytes(data_type: &DataType) -> bool {
    use DataType::{Binary, BinaryView, FixedSizeBinary, LargeBinary, LargeUtf8, Utf8, Utf8View};
    matches!(data_type, Binary | LargeBinary | BinaryView | FixedSizeBinary(_) | Utf8 | LargeUtf8 | Utf8View)
}

#[cold]
pub(super) fn wrong_type(column: &str, found: &DataType, accepted: &str) -> Error {
    Error::argument(format!("column {column} has the type {found}: use {accepted}"))
}
