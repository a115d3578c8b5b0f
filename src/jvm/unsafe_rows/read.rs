//! Spark's rows as an Arrow batch.

use std::sync::Arc;

use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Float32Builder, Float64Builder, Int8Builder, Int16Builder, Int32Builder,
    Int64Builder, NullBufferBuilder, StringBuilder, TimestampMicrosecondBuilder,
};
use arrow_array::{ArrayRef, ListArray, NullArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, Field, Fields, Schema};

use crate::error::{Error, Result};
use crate::jvm::unsafe_rows::cells::{count_at, is_null_at, malformed, number_at, value_at};
use crate::jvm::unsafe_rows::types::{RecordType, SparkType};
use crate::jvm::unsafe_rows::{WORD, bits_len};
use crate::slices::Slices;

/// The structs in an array, as an Arrow batch of the fields that are read. A map becomes a list of structs.
///
/// # Errors
/// An element that is null, with its number; a column of more than 2 GiB; bytes that are not such an array.
pub(in crate::jvm) fn batch_of_array(bytes: &[u8], rows: &RecordType) -> Result<RecordBatch> {
    let mut reader = RowReader::new(rows);
    let elements = Elements::of(bytes, WORD)?;
    for number in 0..elements.count {
        if elements.is_null(number)? {
            return Err(Error::argument(format!(
                "kbat_encode: element {number} of an array of records is null; remove it, or use a struct of nulls"
            )));
        }
        reader.push(value_at(bytes, elements.at(number))?)?;
    }
    reader.finish()
}

/// Rows, each after the number of its bytes in 8 bytes, as an Arrow batch of the fields that are read.
///
/// # Errors
/// A column of more than 2 GiB; bytes that are not such rows.
pub(in crate::jvm) fn batch_of_rows(bytes: &[u8], rows: &RecordType) -> Result<RecordBatch> {
    let mut reader = RowReader::new(rows);
    for row in rows_in(bytes)? {
        reader.push(row)?;
    }
    reader.finish()
}

/// Rows in the same form, as an Arrow batch for each run of rows whose first field, of variable length, has the same
/// bytes; and these bytes.
///
/// # Errors
/// Those of [`batch_of_rows`].
pub(in crate::jvm) fn batches_of_runs<'a>(bytes: &'a [u8], rows: &RecordType) -> Result<Vec<(&'a [u8], RecordBatch)>> {
    let first = bits_len(rows.fields.len());
    let keyed = rows_in(bytes)?.into_iter().map(|row| Ok((value_at(row, first)?, row)));
    let keyed = keyed.collect::<Result<Vec<_>>>()?;
    let mut runs = Vec::new();
    for run in keyed.chunk_by(|(one, _), (other, _)| one == other) {
        let mut reader = RowReader::new(rows);
        for (_, row) in run {
            reader.push(row)?;
        }
        if let Some((key, _)) = run.first() {
            runs.push((*key, reader.finish()?));
        }
    }
    Ok(runs)
}

fn rows_in(bytes: &[u8]) -> Result<Vec<&[u8]>> {
    let mut rows = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let len = count_at(rest, 0)?;
        let (row, after) = rest.get(WORD..).and_then(|rest| rest.split_at_checked(len)).ok_or_else(malformed)?;
        rows.push(row);
        rest = after;
    }
    Ok(rows)
}

/// Collects rows.
struct RowReader {
    columns: Vec<(String, Column)>,
    count: usize,
}

impl RowReader {
    fn new(rows: &RecordType) -> Self {
        Self { columns: columns_of(&rows.fields), count: 0 }
    }

    /// Appends a row.
    fn push(&mut self, row: &[u8]) -> Result<()> {
        self.count = self.count.saturating_add(1);
        push_fields(&mut self.columns, row)
    }

    fn finish(self) -> Result<RecordBatch> {
        let (fields, arrays) = finished(self.columns)?;
        let options = RecordBatchOptions::new().with_row_count(Some(self.count));
        let schema = Arc::new(Schema::new(fields));
        RecordBatch::try_new_with_options(schema, arrays, &options).map_err(|error| arrow_error(&error))
    }
}

fn arrow_error(error: &ArrowError) -> Error {
    Error::other(error.to_string())
}

/// The elements of an array.
struct Elements<'a> {
    bytes: &'a [u8],
    count: usize,
    first: usize,
    width: usize,
}

impl<'a> Elements<'a> {
    fn of(bytes: &'a [u8], width: usize) -> Result<Self> {
        let count = count_at(bytes, 0)?;
        let first = bits_len(count).saturating_add(WORD);
        let end = count.saturating_mul(width).saturating_add(first);
        if end > bytes.len() {
            return Err(malformed());
        }
        Ok(Self { bytes, count, first, width })
    }

    fn is_null(&self, number: usize) -> Result<bool> {
        is_null_at(self.bytes, WORD, number)
    }

    fn at(&self, number: usize) -> usize {
        number.saturating_mul(self.width).saturating_add(self.first)
    }
}

fn columns_of(fields: &[(String, SparkType)]) -> Vec<(String, Column)> {
    fields.iter().map(|(name, kind)| (name.clone(), Column::of(kind))).collect()
}

/// Appends the fields of a row.
fn push_fields(columns: &mut [(String, Column)], row: &[u8]) -> Result<()> {
    let mut at = bits_len(columns.len());
    for (number, (name, column)) in columns.iter_mut().enumerate() {
        if is_null_at(row, 0, number)? {
            column.push_null();
        } else {
            column.push(row, at).map_err(|error| in_column(name, error))?;
        }
        at = at.saturating_add(WORD);
    }
    Ok(())
}

/// Names the column of an error that has no name yet.
fn in_column(name: &str, error: Error) -> Error {
    let text = error.to_string();
    if text.starts_with("column ") { error } else { Error::argument(format!("column {name}: {text}")) }
}

fn finished(columns: Vec<(String, Column)>) -> Result<(Fields, Vec<ArrayRef>)> {
    let mut fields = Vec::new();
    let mut arrays = Vec::new();
    for (name, column) in columns {
        if let Some(array) = column.finish()? {
            fields.push(Field::new(name, array.data_type().clone(), true));
            arrays.push(array);
        }
    }
    Ok((fields.into(), arrays))
}

/// A column under construction.
enum Column {
    Skipped,
    /// The number of nulls.
    Null(usize),
    Boolean(BooleanBuilder),
    Byte(Int8Builder),
    Short(Int16Builder),
    Int(Int32Builder),
    Long(Int64Builder),
    Float(Float32Builder),
    Double(Float64Builder),
    Timestamp(TimestampMicrosecondBuilder),
    Bytes(BinaryBuilder),
    Text(StringBuilder),
    List(Box<Self>, usize, Lists),
    /// The keys, the values, and the widths of both.
    Map(Box<Self>, Box<Self>, (usize, usize), Lists),
    Struct(Vec<(String, Self)>, NullBufferBuilder),
}

/// Where the lists of a column begin and end.
struct Lists {
    ends: Vec<i32>,
    valid: NullBufferBuilder,
}

impl Lists {
    fn new() -> Self {
        Self { ends: vec![0], valid: NullBufferBuilder::new(0) }
    }

    fn push(&mut self, count: usize) -> Result<()> {
        let last = self.ends.last().copied().unwrap_or(0);
        let end = i32::try_from(count).ok().and_then(|count| last.checked_add(count));
        self.ends.push(end.ok_or_else(too_large)?);
        self.valid.append_non_null();
        Ok(())
    }

    fn push_null(&mut self) {
        self.valid.append_null();
        let last = self.ends.last().copied().unwrap_or(0);
        self.ends.push(last);
    }

    fn finish(mut self, elements: ArrayRef) -> Result<ArrayRef> {
        let field = Arc::new(Field::new("element", elements.data_type().clone(), true));
        let ends = OffsetBuffer::new(ScalarBuffer::from(self.ends));
        let lists = ListArray::try_new(field, ends, elements, self.valid.finish());
        lists.map(|lists| -> ArrayRef { Arc::new(lists) }).map_err(|error| arrow_error(&error))
    }
}

#[cold]
fn too_large() -> Error {
    Error::argument("the values of some rows exceed 2 GiB")
}

/// The bytes of a value that fits a column of 32-bit offsets.
fn fitting<'a>(so_far: &[u8], value: &'a [u8]) -> Result<&'a [u8]> {
    let len = so_far.len().saturating_add(value.len());
    if i32::try_from(len).is_ok() { Ok(value) } else { Err(too_large()) }
}

impl Column {
    fn of(kind: &SparkType) -> Self {
        match kind {
            SparkType::Skipped => Self::Skipped,
            SparkType::Null => Self::Null(0),
            SparkType::Boolean => Self::Boolean(BooleanBuilder::new()),
            SparkType::Byte => Self::Byte(Int8Builder::new()),
            SparkType::Short => Self::Short(Int16Builder::new()),
            SparkType::Int => Self::Int(Int32Builder::new()),
            SparkType::Long => Self::Long(Int64Builder::new()),
            SparkType::Float => Self::Float(Float32Builder::new()),
            SparkType::Double => Self::Double(Float64Builder::new()),
            SparkType::Timestamp => Self::Timestamp(TimestampMicrosecondBuilder::new().with_timezone("UTC")),
            SparkType::Bytes => Self::Bytes(BinaryBuilder::new()),
            SparkType::Text => Self::Text(StringBuilder::new()),
            SparkType::List(element) => Self::List(Box::new(Self::of(element)), element.width(), Lists::new()),
            SparkType::Map(key, value) => {
                let widths = (key.width(), value.width());
                Self::Map(Box::new(Self::of(key)), Box::new(Self::of(value)), widths, Lists::new())
            }
            SparkType::Struct(fields) => Self::Struct(columns_of(fields), NullBufferBuilder::new(0)),
        }
    }

    /// Appends the value at a position of a row or array.
    fn push(&mut self, bytes: &[u8], at: usize) -> Result<()> {
        match self {
            Self::Skipped => {}
            Self::Null(_) => return Err(malformed()),
            Self::Boolean(column) => column.append_value(number_at::<1>(bytes, at)? != [0]),
            Self::Byte(column) => column.append_value(i8::from_ne_bytes(number_at(bytes, at)?)),
            Self::Short(column) => column.append_value(i16::from_ne_bytes(number_at(bytes, at)?)),
            Self::Int(column) => column.append_value(i32::from_ne_bytes(number_at(bytes, at)?)),
            Self::Long(column) => column.append_value(i64::from_ne_bytes(number_at(bytes, at)?)),
            Self::Float(column) => column.append_value(f32::from_ne_bytes(number_at(bytes, at)?)),
            Self::Double(column) => column.append_value(f64::from_ne_bytes(number_at(bytes, at)?)),
            Self::Timestamp(column) => column.append_value(i64::from_ne_bytes(number_at(bytes, at)?)),
            Self::Bytes(column) => column.append_value(fitting(column.values_slice(), value_at(bytes, at)?)?),
            Self::Text(column) => {
                let value = fitting(column.values_slice(), value_at(bytes, at)?)?;
                let text = std::str::from_utf8(value).map_err(|_| Error::argument("a value is not UTF-8"))?;
                column.append_value(text);
            }
            Self::List(column, width, lists) => {
                let count = push_elements(column, value_at(bytes, at)?, *width)?;
                lists.push(count)?;
            }
            Self::Map(keys, values, (key_width, value_width), lists) => {
                let map = value_at(bytes, at)?;
                let split = count_at(map, 0)?.saturating_add(WORD);
                let (of_keys, of_values) = map.split_at_checked(split).ok_or_else(malformed)?;
                let count = push_elements(keys, of_keys.part(WORD..), *key_width)?;
                if push_elements(values, of_values, *value_width)? != count {
                    return Err(malformed());
                }
                lists.push(count)?;
            }
            Self::Struct(columns, valid) => {
                push_fields(columns, value_at(bytes, at)?)?;
                valid.append_non_null();
            }
        }
        Ok(())
    }

    fn push_null(&mut self) {
        match self {
            Self::Skipped => {}
            Self::Null(count) => *count = count.saturating_add(1),
            Self::Boolean(column) => column.append_null(),
            Self::Byte(column) => column.append_null(),
            Self::Short(column) => column.append_null(),
            Self::Int(column) => column.append_null(),
            Self::Long(column) => column.append_null(),
            Self::Float(column) => column.append_null(),
            Self::Double(column) => column.append_null(),
            Self::Timestamp(column) => column.append_null(),
            Self::Bytes(column) => column.append_null(),
            Self::Text(column) => column.append_null(),
            Self::List(_, _, lists) | Self::Map(_, _, _, lists) => lists.push_null(),
            Self::Struct(columns, valid) => {
                for (_, column) in columns.iter_mut() {
                    column.push_null();
                }
                valid.append_null();
            }
        }
    }

    /// The array; `None` if the column is not read.
    fn finish(self) -> Result<Option<ArrayRef>> {
        let array: ArrayRef = match self {
            Self::Skipped => return Ok(None),
            Self::Null(count) => Arc::new(NullArray::new(count)),
            Self::Boolean(mut column) => Arc::new(column.finish()),
            Self::Byte(mut column) => Arc::new(column.finish()),
            Self::Short(mut column) => Arc::new(column.finish()),
            Self::Int(mut column) => Arc::new(column.finish()),
            Self::Long(mut column) => Arc::new(column.finish()),
            Self::Float(mut column) => Arc::new(column.finish()),
            Self::Double(mut column) => Arc::new(column.finish()),
            Self::Timestamp(mut column) => Arc::new(column.finish()),
            Self::Bytes(mut column) => Arc::new(column.finish()),
            Self::Text(mut column) => Arc::new(column.finish()),
            Self::List(column, _, lists) => match column.finish()? {
                Some(elements) => lists.finish(elements)?,
                None => return Ok(None),
            },
            Self::Map(keys, values, _, lists) => {
                let columns = vec![("key".to_owned(), *keys), ("value".to_owned(), *values)];
                lists.finish(Arc::new(struct_of(columns, None)?))?
            }
            Self::Struct(columns, mut valid) => Arc::new(struct_of(columns, valid.finish())?),
        };
        Ok(Some(array))
    }
}

fn struct_of(columns: Vec<(String, Column)>, nulls: Option<arrow_buffer::NullBuffer>) -> Result<StructArray> {
    let (fields, arrays) = finished(columns)?;
    StructArray::try_new(fields, arrays, nulls).map_err(|error| arrow_error(&error))
}

/// Appends the elements of an array, and returns their number.
fn push_elements(column: &mut Column, array: &[u8], width: usize) -> Result<usize> {
    let elements = Elements::of(array, width)?;
    for number in 0..elements.count {
        if elements.is_null(number)? {
            column.push_null();
        } else {
            column.push(array, elements.at(number))?;
        }
    }
    Ok(elements.count)
}
