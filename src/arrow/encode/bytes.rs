//! Bytes from each Arrow type of bytes or text.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, BinaryArray, BinaryViewArray, FixedSizeBinaryArray, LargeBinaryArray, LargeStringArray, StringArray,
    StringViewArray,
};
use arrow_schema::DataType;

use crate::error::{Error, Result};

/// The accepted types of a column of bytes, for messages.
pub(super) const ACCEPTED: &str = "binary, large_binary, binary_view, fixed_size_binary, string, large_string or string_view, or a dictionary of one of them";

/// A column of bytes or text.
pub(crate) enum BytesColumn<'a> {
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

/// A dictionary array: a category in pandas, an enum in Polars and DuckDB.
pub(crate) struct Dictionary<'a> {
    /// The index of each row's value; `None` for null.
    keys: Vec<Option<usize>>,
    values: BytesColumn<'a>,
}

impl<'a> Dictionary<'a> {
    /// Returns `None` if the dictionary has no values, so that all rows are null.
    fn of(array: &'a dyn Array, column: &str) -> Result<Option<Self>> {
        let Some(dictionary) = array.as_any_dictionary_opt() else { return Ok(None) };
        let (count, keys) = (dictionary.values().len(), key_numbers(dictionary.keys()));
        if let Some(wrong) = keys.iter().flatten().find(|key| usize::try_from(**key).map_or(true, |key| key >= count)) {
            let message =
                format!("column {column} has dictionary index {wrong}, outside its dictionary of length {count}");
            return Err(Error::argument(message));
        }
        if count == 0 {
            return Ok(None);
        }
        let keys = keys.into_iter().map(|key| key.and_then(|key| usize::try_from(key).ok())).collect();
        Ok(Some(Self { keys, values: BytesColumn::of(dictionary.values().as_ref(), column)? }))
    }

    fn get(&self, row: usize) -> Option<&'a [u8]> {
        self.keys.get(row).copied().flatten().and_then(|key| self.values.get(key))
    }
}

/// The indexes of a dictionary array, of any integer type.
fn key_numbers(keys: &dyn Array) -> Vec<Option<i128>> {
    macro_rules! numbers {
        ($($variant:ident => $native:ty),*) => {
            match keys.data_type() {
                $(DataType::$variant => {
                    keys.as_primitive::<$native>().iter().map(|key| key.map(i128::from)).collect()
                })*
                _ => Vec::new(),
            }
        };
    }
    numbers! {
        Int8 => Int8Type, Int16 => Int16Type, Int32 => Int32Type, Int64 => Int64Type,
        UInt8 => UInt8Type, UInt16 => UInt16Type, UInt32 => UInt32Type, UInt64 => UInt64Type
    }
}

impl<'a> BytesColumn<'a> {
    pub(crate) fn of(array: &'a dyn Array, column: &str) -> Result<Self> {
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

    /// The bytes of a row, `None` for null. The row must exist.
    #[inline]
    pub(crate) fn get(&self, row: usize) -> Option<&'a [u8]> {
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
    Error::argument(format!("column {column} has the unsupported type {found}; use {accepted}"))
}
