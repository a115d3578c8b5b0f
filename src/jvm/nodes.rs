//! Where the values of an Arrow batch are in memory, for the column vectors of the JVM.

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::DataType;

use crate::error::{Error, Result};

/// The nodes of all columns, depth first: five numbers each. A node has the address of its validity bitmap (0 if nothing is null) and the
/// bit of its first row there, the number of nulls, and two addresses that depend on its type:
///
/// | type | first | second |
/// |---|---|---|
/// | whole numbers, doubles, timestamps | values | 0 |
/// | boolean | bitmap | bit of the first row |
/// | binary, string | offsets, of 32 bits | bytes |
/// | list | offsets, of 32 bits; its elements are the next node | 0 |
/// | struct | 0; its fields are the next nodes | 0 |
pub(super) fn nodes_of(batch: &RecordBatch) -> Result<Vec<i64>> {
    let mut nodes = Vec::new();
    for column in batch.columns() {
        push(column, &mut nodes)?;
    }
    Ok(nodes)
}

fn push(array: &ArrayRef, nodes: &mut Vec<i64>) -> Result<()> {
    let (validity, bit, count) = match array.nulls().filter(|nulls| nulls.null_count() > 0) {
        Some(nulls) => (address(nulls.validity().as_ptr()), number(nulls.offset()), number(nulls.null_count())),
        None => (0, 0, 0),
    };
    nodes.extend([validity, bit, count]);
    match array.data_type() {
        DataType::Boolean => {
            let bits = array.as_boolean().values();
            nodes.extend([address(bits.values().as_ptr()), number(bits.offset())]);
        }
        DataType::Binary => {
            let bytes = array.as_binary::<i32>();
            nodes.extend([address(bytes.value_offsets().as_ptr()), address(bytes.value_data().as_ptr())]);
        }
        DataType::Utf8 => {
            let texts = array.as_string::<i32>();
            nodes.extend([address(texts.value_offsets().as_ptr()), address(texts.value_data().as_ptr())]);
        }
        DataType::List(_) => {
            let lists = array.as_list::<i32>();
            nodes.extend([address(lists.value_offsets().as_ptr()), 0]);
            push(lists.values(), nodes)?;
        }
        DataType::Struct(_) => {
            nodes.extend([0, 0]);
            for column in array.as_struct().columns() {
                push(column, nodes)?;
            }
        }
        kind if kind.primitive_width().is_some() => {
            let data = array.to_data();
            let width = kind.primitive_width().unwrap_or(1);
            let values = data.buffers().first().map_or(0, |buffer| address(buffer.as_ptr()));
            nodes.extend([values.wrapping_add(number(data.offset().saturating_mul(width))), 0]);
        }
        kind => return Err(Error::other(format!("the JVM has no column vector for {kind}"))),
    }
    Ok(())
}

fn address<T>(pointer: *const T) -> i64 {
    number(pointer.addr())
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
