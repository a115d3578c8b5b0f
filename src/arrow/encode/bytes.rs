//! Bytes from each Arrow type of bytes or text.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, BinaryArray, BinaryViewArray, FixedSizeBinaryArray, LargeBinaryArray, LargeStringArray, PrimitiveArray,
    StringArray, StringViewArray,
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
    keys: Keys<'a>,
    values: BytesColumn<'a>,
    value_count: usize,
}

impl<'a> Dictionary<'a> {
    /// Returns `None` for another array.
    fn of(array: &'a dyn Array, column: &str) -> Result<Option<Self>> {
        let Some(dictionary) = array.as_any_dictionary_opt() else { return Ok(None) };
        let Some(keys) = Keys::of(dictionary.keys()) else { return Ok(None) };
        let values = BytesColumn::of(dictionary.values().as_ref(), column)?;
        Ok(Some(Self { keys, values, value_count: dictionary.values().len() }))
    }

    /// Checks the indexes of all rows.
    fn check(&self, column: &str) -> Result<()> {
        let mut keys = (0..self.keys.len()).filter_map(|row| self.keys.get(row));
        match keys.find(|key| self.index_of(*key).is_none()) {
            None => Ok(()),
            Some(wrong) => Err(Error::argument(format!(
                "column {column} has dictionary index {wrong}, outside its dictionary of length {}",
                self.value_count
            ))),
        }
    }

    /// The index of a key's value; `None` outside the dictionary.
    fn index_of(&self, key: i128) -> Option<usize> {
        usize::try_from(key).ok().filter(|index| *index < self.value_count)
    }

    fn get(&self, row: usize) -> Option<&'a [u8]> {
        self.values.get(self.index_of(self.keys.get(row)?)?)
    }
}

/// Declares the indexes of a dictionary array, of any integer type.
macro_rules! keys {
    ($($variant:ident $native:ty),*) => {
        enum Keys<'a> {
            $($variant(&'a PrimitiveArray<$native>)),*
        }

        impl<'a> Keys<'a> {
            /// Returns `None` for another type.
            fn of(array: &'a dyn Array) -> Option<Self> {
                match array.data_type() {
                    $(DataType::$variant => array.as_primitive_opt().map(Self::$variant),)*
                    _ => None,
                }
            }

            fn len(&self) -> usize {
                match self {
                    $(Self::$variant(keys) => keys.len()),*
                }
            }

            /// The index of a row's value; `None` for null.
            #[inline]
            fn get(&self, row: usize) -> Option<i128> {
                match self {
                    $(Self::$variant(keys) => (!keys.is_null(row)).then(|| i128::from(keys.value(row)))),*
                }
            }
        }
    };
}

keys! {
    Int8 Int8Type, Int16 Int16Type, Int32 Int32Type, Int64 Int64Type,
    UInt8 UInt8Type, UInt16 UInt16Type, UInt32 UInt32Type, UInt64 UInt64Type
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

    /// Checks what reading a row does not: the indexes of a dictionary.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument).
    pub(crate) fn check(&self, column: &str) -> Result<()> {
        match self {
            Self::Dictionary(dictionary) => dictionary.check(column),
            _ => Ok(()),
        }
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
