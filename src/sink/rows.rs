//! [`RowColumns`]: what decides where rows belong.

use std::str;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int16Type, Int32Type, Int64Type};
use arrow_array::{Array, Int16Array, Int32Array, Int64Array, RecordBatch};
use arrow_schema::DataType;

use crate::arrow::BytesColumn;
use crate::error::{Error, Result};

/// The columns of rows that decide where they belong.
pub(super) struct RowColumns<'a> {
    topics: Topics<'a>,
    partitions: Partitions<'a>,
    keys: BytesColumn<'a>,
    values: BytesColumn<'a>,
}

enum Topics<'a> {
    /// The same for all rows.
    One(&'a str),
    Column(BytesColumn<'a>),
}

enum Partitions<'a> {
    Missing,
    Short(&'a Int16Array),
    Int(&'a Int32Array),
    Long(&'a Int64Array),
}

impl<'a> RowColumns<'a> {
    /// The columns of an Arrow batch; `topic` is that of all rows, if the options have one.
    ///
    /// # Errors
    /// A column of another type.
    pub(super) fn of(rows: &'a RecordBatch, topic: Option<&'a str>) -> Result<Self> {
        let bytes = |name: &str| match rows.column_by_name(name) {
            Some(column) => {
                let bytes = BytesColumn::of(column.as_ref(), name)?;
                bytes.check(name).map(|()| bytes)
            }
            None => Ok(BytesColumn::Null),
        };
        let topics = match topic {
            Some(topic) => Topics::One(topic),
            None => Topics::Column(bytes("topic")?),
        };
        let partitions = match rows.column_by_name("partition") {
            Some(column) => Partitions::of(column.as_ref())?,
            None => Partitions::Missing,
        };
        Ok(Self { topics, partitions, keys: bytes("key")?, values: bytes("value")? })
    }

    /// The topic of a row, which may not be a valid name.
    ///
    /// # Errors
    /// No topic.
    pub(super) fn topic(&self, row: usize) -> Result<&'a str> {
        match &self.topics {
            Topics::One(topic) => Ok(topic),
            Topics::Column(topics) => topics.get(row).and_then(|topic| str::from_utf8(topic).ok()).ok_or_else(|| {
                Error::argument("kbat: a row has no topic: fill the column topic, or set the option topic")
            }),
        }
    }

    /// The partition of a row; `None` if its key decides.
    ///
    /// # Errors
    /// A number that is not a partition's.
    pub(super) fn partition(&self, row: usize) -> Result<Option<i32>> {
        let Some(number) = self.partitions.get(row) else { return Ok(None) };
        match i32::try_from(number) {
            Ok(partition) if partition >= 0 => Ok(Some(partition)),
            _ => {
                let topic = self.topic(row)?;
                let message =
                    format!("kbat: {number} is not a valid partition of topic {topic}: partitions are 0 to 2147483647");
                Err(Error::argument(message))
            }
        }
    }

    pub(super) fn key(&self, row: usize) -> Option<&'a [u8]> {
        self.keys.get(row)
    }

    /// Bytes of the value; 0 for null.
    pub(super) fn value_len(&self, row: usize) -> usize {
        self.values.get(row).map_or(0, <[u8]>::len)
    }
}

impl<'a> Partitions<'a> {
    fn of(column: &'a dyn Array) -> Result<Self> {
        let found = match column.data_type() {
            DataType::Null => Some(Self::Missing),
            DataType::Int16 => column.as_primitive_opt::<Int16Type>().map(Self::Short),
            DataType::Int32 => column.as_primitive_opt::<Int32Type>().map(Self::Int),
            DataType::Int64 => column.as_primitive_opt::<Int64Type>().map(Self::Long),
            _ => None,
        };
        found.ok_or_else(|| {
            Error::argument(format!("column partition has the unsupported type {}; use int32", column.data_type()))
        })
    }

    fn get(&self, row: usize) -> Option<i64> {
        match self {
            Self::Missing => None,
            Self::Short(numbers) => numbers.is_valid(row).then(|| i64::from(numbers.value(row))),
            Self::Int(numbers) => numbers.is_valid(row).then(|| i64::from(numbers.value(row))),
            Self::Long(numbers) => numbers.is_valid(row).then(|| numbers.value(row)),
        }
    }
}
