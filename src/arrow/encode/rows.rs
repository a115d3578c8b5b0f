//! Reads the columns of an Arrow batch as records.
//!
//! | column | type | |
//! |---|---|---|
//! | `key` | bytes or text | optional: all keys null |
//! | `value` | bytes or text | |
//! | `timestamp` | `timestamp` of any unit and zone, or `int64` milliseconds | optional if the options have one |
//! | `headers` | `list<struct<key, value>>` or `map`, keys and values bytes or text | optional |
//! | `offset` | `int64`, strictly increasing | optional: consecutive |
//!
//! Names are those of Spark's Kafka source and sink. Other columns are ignored.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Int64Type, TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, Int64Array, LargeListArray, ListArray, MapArray, RecordBatch, StructArray};
use arrow_schema::{DataType, Schema, TimeUnit};

use crate::arrow::encode::bytes::{BytesColumn, wrong_type};
use crate::arrow::encode::options::EncodeOptions;
use crate::error::{Error, Result};
use crate::format::header::NO_TIMESTAMP;
use crate::format::record::NewHeader;

/// Indexes of the columns in a schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct ColumnIndexes {
    key: Option<usize>,
    value: usize,
    timestamp: Option<usize>,
    headers: Option<usize>,
    offset: Option<usize>,
}

impl ColumnIndexes {
    pub(super) fn of(schema: &Schema, options: &EncodeOptions) -> Result<Self> {
        let layout = Self {
            key: find(schema, "key")?,
            value: find(schema, "value")?.ok_or_else(|| missing(schema, "value"))?,
            timestamp: find(schema, "timestamp")?,
            headers: find(schema, "headers")?,
            offset: find(schema, "offset")?,
        };
        if layout.timestamp.is_none() && options.timestamp.is_none() && options.magic > 0 {
            let message = format!("{}; add it or set a timestamp for all records", missing(schema, "timestamp").kind());
            return Err(Error::argument(message));
        }
        if layout.offset.is_some() && options.base_offset.is_some() {
            return Err(Error::argument(
                "base offset and column offset conflict: drop the column, or don't set the base offset",
            ));
        }
        // an empty batch has all column types, so wrong ones are detected before any data arrives
        RecordColumns::new(&RecordBatch::new_empty(schema.clone().into()), &layout, options).map(|_| layout)
    }
}

fn find(schema: &Schema, name: &str) -> Result<Option<usize>> {
    let mut found = schema.fields().iter().enumerate().filter(|(_, field)| field.name() == name);
    let first = found.next().map(|(index, _)| index);
    match found.next() {
        None => Ok(first),
        Some(_) => Err(Error::argument(format!("there are several columns {name}; keep one"))),
    }
}

#[cold]
fn missing(schema: &Schema, name: &str) -> Error {
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    Error::argument(format!("there is no column {name}; columns found: {}", names.join(", ")))
}

/// The columns of one Arrow batch.
pub(super) struct RecordColumns<'a> {
    key: BytesColumn<'a>,
    value: BytesColumn<'a>,
    timestamp: Timestamps<'a>,
    headers: Option<HeadersColumn<'a>>,
    offset: Option<&'a Int64Array>,
}

impl<'a> RecordColumns<'a> {
    pub(super) fn new(batch: &'a RecordBatch, layout: &ColumnIndexes, options: &EncodeOptions) -> Result<Self> {
        let column = |index: usize| -> &'a dyn Array { batch.column(index).as_ref() };
        let key = layout.key.map_or(Ok(BytesColumn::Null), |index| BytesColumn::of(column(index), "key"))?;
        let value = BytesColumn::of(column(layout.value), "value")?;
        let unknown = options.timestamp.unwrap_or(NO_TIMESTAMP);
        let timestamp = match layout.timestamp {
            Some(index) => Timestamps::of(column(index), unknown)?,
            None => Timestamps { array: TimestampArray::Missing, unknown },
        };
        let headers = layout.headers.map(|index| HeadersColumn::of(column(index))).transpose()?.flatten();
        let offset = layout.offset.map(|index| offsets(column(index))).transpose()?;
        Ok(Self { key, value, timestamp, headers, offset })
    }

    /// Checks what reading a row does not, for all rows.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument).
    pub(super) fn check(&self) -> Result<()> {
        self.key.check("key")?;
        self.value.check("value")?;
        self.headers.as_ref().map_or(Ok(()), HeadersColumn::check)
    }

    #[inline]
    pub(super) fn key(&self, row: usize) -> Option<&'a [u8]> {
        self.key.get(row)
    }

    #[inline]
    pub(super) fn value(&self, row: usize) -> Option<&'a [u8]> {
        self.value.get(row)
    }

    #[inline]
    pub(super) fn timestamp(&self, row: usize) -> Result<i64> {
        self.timestamp.get(row)
    }

    /// `None` if offsets are consecutive.
    #[inline]
    pub(super) fn offset(&self, row: usize) -> Result<Option<i64>> {
        match self.offset {
            None => Ok(None),
            Some(offsets) if offsets.is_null(row) => Err(Error::argument("the offset is null")),
            Some(offsets) => Ok(Some(offsets.value(row))),
        }
    }

    #[inline]
    pub(super) fn headers(&self, row: usize, out: &mut Vec<NewHeader<'a>>) -> Result<()> {
        out.clear();
        match &self.headers {
            None => Ok(()),
            Some(headers) => headers.get(row, out),
        }
    }
}

fn offsets(array: &dyn Array) -> Result<&Int64Array> {
    array.as_primitive_opt().ok_or_else(|| wrong_type("offset", array.data_type(), "int64"))
}

#[derive(Clone, Copy)]
struct Timestamps<'a> {
    array: TimestampArray<'a>,
    /// The timestamp of null values.
    unknown: i64,
}

#[derive(Clone, Copy)]
enum TimestampArray<'a> {
    Missing,
    /// The values, the array with their nulls, and the units per millisecond.
    Finer(&'a [i64], &'a dyn Array, i64),
    /// The values, the array with their nulls, and the milliseconds per unit.
    Coarser(&'a [i64], &'a dyn Array, i64),
}

impl<'a> Timestamps<'a> {
    fn of(array: &'a dyn Array, unknown: i64) -> Result<Self> {
        use TimestampArray::{Coarser, Finer, Missing};
        let typed = match array.data_type() {
            DataType::Null => Some(Missing),
            DataType::Int64 => array.as_primitive_opt::<Int64Type>().map(|values| Finer(values.values(), array, 1)),
            DataType::Timestamp(TimeUnit::Second, _) => {
                array.as_primitive_opt::<TimestampSecondType>().map(|values| Coarser(values.values(), array, 1000))
            }
            DataType::Timestamp(TimeUnit::Millisecond, _) => {
                array.as_primitive_opt::<TimestampMillisecondType>().map(|values| Finer(values.values(), array, 1))
            }
            DataType::Timestamp(TimeUnit::Microsecond, _) => {
                array.as_primitive_opt::<TimestampMicrosecondType>().map(|values| Finer(values.values(), array, 1000))
            }
            DataType::Timestamp(TimeUnit::Nanosecond, _) => array
                .as_primitive_opt::<TimestampNanosecondType>()
                .map(|values| Finer(values.values(), array, 1_000_000)),
            _ => None,
        };
        let accepted = "timestamp of any unit, or int64 milliseconds since the epoch";
        let array = typed.ok_or_else(|| wrong_type("timestamp", array.data_type(), accepted))?;
        Ok(Self { array, unknown })
    }

    /// Milliseconds, rounded down.
    #[inline]
    fn get(self, row: usize) -> Result<i64> {
        let (values, array) = match self.array {
            TimestampArray::Missing => return Ok(self.unknown),
            TimestampArray::Finer(values, array, _) | TimestampArray::Coarser(values, array, _) => (values, array),
        };
        let Some(&value) = values.get(row).filter(|_| !array.is_null(row)) else { return Ok(self.unknown) };
        match self.array {
            TimestampArray::Finer(_, _, 1) => Ok(value),
            TimestampArray::Finer(_, _, parts) => Ok(value.checked_div_euclid(parts).unwrap_or(value)),
            TimestampArray::Coarser(_, _, times) => value.checked_mul(times).ok_or_else(|| {
                Error::argument(format!("the timestamp {value} s does not fit 64 bits of milliseconds"))
            }),
            TimestampArray::Missing => Ok(self.unknown),
        }
    }
}

/// A column of headers.
struct HeadersColumn<'a> {
    lists: HeaderLists<'a>,
    pairs: &'a StructArray,
    keys: BytesColumn<'a>,
    values: BytesColumn<'a>,
}

enum HeaderLists<'a> {
    List(&'a ListArray),
    LargeList(&'a LargeListArray),
    Map(&'a MapArray),
}

impl<'a> HeadersColumn<'a> {
    /// Returns `None` for a column of nulls only.
    fn of(array: &'a dyn Array) -> Result<Option<Self>> {
        let wrong = || {
            let accepted = "list<struct<key, value>>, large_list or map, with keys and values of bytes or text";
            wrong_type("headers", array.data_type(), accepted)
        };
        let (lists, pairs) = match array.data_type() {
            DataType::Null => return Ok(None),
            DataType::List(_) if array.as_list_opt::<i32>().is_some_and(holds_nothing) => return Ok(None),
            DataType::List(_) => {
                let list = array.as_list_opt().ok_or_else(wrong)?;
                (HeaderLists::List(list), list.values().as_struct_opt())
            }
            DataType::LargeList(_) => {
                let list = array.as_list_opt().ok_or_else(wrong)?;
                (HeaderLists::LargeList(list), list.values().as_struct_opt())
            }
            DataType::Map(..) => {
                let map = array.as_map_opt().ok_or_else(wrong)?;
                (HeaderLists::Map(map), Some(map.entries()))
            }
            _ => return Err(wrong()),
        };
        let pairs = pairs.ok_or_else(wrong)?;
        // by name, or by position if neither has its name
        let named = (pairs.column_by_name("key"), pairs.column_by_name("value"));
        let (((Some(keys), Some(values)), _) | ((None, None), [keys, values])) = (named, pairs.columns()) else {
            return Err(wrong());
        };
        let keys = BytesColumn::of(keys.as_ref(), "headers.key")?;
        let values = BytesColumn::of(values.as_ref(), "headers.value")?;
        Ok(Some(Self { lists, pairs, keys, values }))
    }

    fn check(&self) -> Result<()> {
        self.keys.check("headers.key")?;
        self.values.check("headers.value")
    }

    fn get(&self, row: usize, out: &mut Vec<NewHeader<'a>>) -> Result<()> {
        for at in self.range(row) {
            let key = self.keys.get(at).filter(|_| !self.pairs.is_null(at));
            let Some(key) = key else { return Err(Error::argument("a header has no key")) };
            out.push((key, self.values.get(at)));
        }
        Ok(())
    }

    #[inline]
    fn range(&self, row: usize) -> std::ops::Range<usize> {
        let (is_null, range) = match self.lists {
            HeaderLists::List(list) => (list.is_null(row), range_of(list.value_offsets(), row)),
            HeaderLists::LargeList(list) => (list.is_null(row), range_of(list.value_offsets(), row)),
            HeaderLists::Map(map) => (map.is_null(row), range_of(map.value_offsets(), row)),
        };
        // the offsets of a null are arbitrary
        let range = if is_null { None } else { range };
        range.filter(|range| range.end <= self.pairs.len()).unwrap_or(0..0)
    }
}

/// Whether all lists are empty; some libraries give such a column the type list of null.
fn holds_nothing(list: &ListArray) -> bool {
    list.values().data_type() == &DataType::Null && list.values().is_empty()
}

#[inline]
fn range_of<T: Copy + TryInto<usize>>(offsets: &[T], row: usize) -> Option<std::ops::Range<usize>> {
    let start = (*offsets.get(row)?).try_into().ok()?;
    let end = (*offsets.get(row.checked_add(1)?)?).try_into().ok()?;
    Some(start..end)
}
