//! Arrow batches as an array of Spark's rows.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryArray, BooleanArray, RecordBatch, StringArray};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::DataType;

use crate::error::{Error, Result};
use crate::jvm::unsafe_rows::cells::{RowBytes, field_of};
use crate::jvm::unsafe_rows::{WORD, bits_len};
use crate::slices::Slices;

/// The most bytes that an array of the JVM can have.
const MAX_LEN: usize = 0x7fff_fff0;

/// The rows of some batches with the same schema, as one array of structs. An empty list becomes null, as the headers of
/// Spark's Kafka source.
///
/// # Errors
/// A type that no column of a scan has; more than 2 GiB.
pub(in crate::jvm) fn array_of_rows(batches: &[RecordBatch]) -> Result<Vec<u8>> {
    let mut output = RowBytes::default();
    let count = batches.iter().fold(0_usize, |sum, batch| sum.saturating_add(batch.num_rows()));
    output.push_count(count);
    output.push_zeros(bits_len(count));
    let mut field = output.len();
    output.push_zeros(count.saturating_mul(WORD));
    for batch in batches {
        let columns = batch.columns().iter().map(Cells::of).collect::<Result<Vec<_>>>()?;
        for row in 0..batch.num_rows() {
            let (start, len) = push_row(&mut output, &columns, row);
            output.set(field, &field_of(start, len, 0).to_ne_bytes());
            field = field.saturating_add(WORD);
            if output.len() > MAX_LEN {
                return Err(Error::argument(
                    "the records of one value exceed 2 GiB, the maximum of an array: decode fewer batches in one value",
                ));
            }
        }
    }
    Ok(output.bytes)
}

/// A value of a row.
pub(in crate::jvm) enum Cell<'a> {
    Int(i32),
    Long(i64),
    /// Bytes, text, or a row in a row.
    Bytes(&'a [u8]),
}

/// A row of some values.
pub(in crate::jvm) fn row_of(cells: &[Cell<'_>]) -> Vec<u8> {
    let mut output = RowBytes::default();
    let mut at = bits_len(cells.len());
    output.push_zeros(cells.len().saturating_mul(WORD).saturating_add(at));
    for cell in cells {
        match cell {
            Cell::Int(number) => output.set(at, &number.to_ne_bytes()),
            Cell::Long(number) => output.set(at, &number.to_ne_bytes()),
            Cell::Bytes(bytes) => {
                let field = output.push_value(bytes, 0);
                output.set(at, &field.to_ne_bytes());
            }
        }
        at = at.saturating_add(WORD);
    }
    output.bytes
}

/// The values of a column.
struct Cells<'a> {
    nulls: Option<&'a NullBuffer>,
    values: CellValues<'a>,
}

enum CellValues<'a> {
    /// Numbers of some bytes.
    Fixed(Buffer, usize),
    Bits(&'a BooleanArray),
    Bytes(&'a BinaryArray),
    Text(&'a StringArray),
    List(&'a [i32], Box<Cells<'a>>),
    Struct(Vec<Cells<'a>>),
}

impl<'a> Cells<'a> {
    fn of(array: &'a ArrayRef) -> Result<Self> {
        let values = match array.data_type() {
            DataType::Boolean => CellValues::Bits(array.as_boolean()),
            DataType::Binary => CellValues::Bytes(array.as_binary()),
            DataType::Utf8 => CellValues::Text(array.as_string()),
            DataType::List(_) => {
                let lists = array.as_list::<i32>();
                CellValues::List(lists.value_offsets(), Box::new(Self::of(lists.values())?))
            }
            DataType::Struct(_) => {
                let columns = array.as_struct().columns().iter();
                CellValues::Struct(columns.map(Self::of).collect::<Result<_>>()?)
            }
            kind => {
                let unknown = || Error::other(format!("Spark's rows have no field of {kind}"));
                let width = kind.primitive_width().filter(|width| *width <= WORD).ok_or_else(unknown)?;
                let data = array.to_data();
                let start = data.offset().saturating_mul(width);
                let buffer = data.buffers().first().ok_or_else(unknown)?;
                CellValues::Fixed(buffer.slice(start), width)
            }
        };
        Ok(Self { nulls: array.nulls(), values })
    }

    /// Bytes of an element in an array.
    fn width(&self) -> usize {
        match self.values {
            CellValues::Fixed(_, width) => width,
            CellValues::Bits(_) => 1,
            _ => WORD,
        }
    }

    fn is_null(&self, row: usize) -> bool {
        let is_empty = match self.values {
            CellValues::List(offsets, _) => range_of(offsets, row).is_empty(),
            _ => false,
        };
        is_empty || self.nulls.is_some_and(|nulls| nulls.is_null(row))
    }
}

fn range_of(offsets: &[i32], row: usize) -> std::ops::Range<usize> {
    let at = |place: usize| offsets.get(place).and_then(|offset| usize::try_from(*offset).ok()).unwrap_or(0);
    at(row)..at(row.saturating_add(1))
}

/// Where a field or element is.
#[derive(Clone, Copy)]
struct FieldPosition {
    /// The start of the row or array.
    base: usize,
    /// The null bits.
    bits: usize,
    number: usize,
    at: usize,
}

fn push_row(output: &mut RowBytes, columns: &[Cells<'_>], row: usize) -> (usize, usize) {
    let base = output.len();
    let fields = bits_len(columns.len());
    output.push_zeros(fields.saturating_add(columns.len().saturating_mul(WORD)));
    let mut at = base.saturating_add(fields);
    for (number, column) in columns.iter().enumerate() {
        push_cell(output, column, row, FieldPosition { base, bits: base, number, at });
        at = at.saturating_add(WORD);
    }
    (base, output.len().saturating_sub(base))
}

fn push_array(output: &mut RowBytes, elements: &Cells<'_>, rows: std::ops::Range<usize>) -> (usize, usize) {
    let base = output.len();
    output.push_count(rows.len());
    let bits = output.len();
    output.push_zeros(bits_len(rows.len()));
    let mut at = output.len();
    output.push_zeros(rows.len().saturating_mul(elements.width()));
    for (number, row) in rows.enumerate() {
        push_cell(output, elements, row, FieldPosition { base, bits, number, at });
        at = at.saturating_add(elements.width());
    }
    (base, output.len().saturating_sub(base))
}

fn push_cell(output: &mut RowBytes, cells: &Cells<'_>, row: usize, place: FieldPosition) {
    if cells.is_null(row) {
        output.set_null(place.bits, place.number);
        return;
    }
    let field = match &cells.values {
        CellValues::Fixed(values, width) => {
            let start = row.saturating_mul(*width);
            output.set(place.at, values.part(start..start.saturating_add(*width)));
            return;
        }
        CellValues::Bits(bits) => {
            output.set(place.at, &[u8::from(bits.value(row))]);
            return;
        }
        CellValues::Bytes(bytes) => output.push_value(bytes.value(row), place.base),
        CellValues::Text(texts) => output.push_value(texts.value(row).as_bytes(), place.base),
        CellValues::List(offsets, elements) => {
            let (start, len) = push_array(output, elements, range_of(offsets, row));
            field_of(start, len, place.base)
        }
        CellValues::Struct(columns) => {
            let (start, len) = push_row(output, columns, row);
            field_of(start, len, place.base)
        }
    };
    output.set(place.at, &field.to_ne_bytes());
}
