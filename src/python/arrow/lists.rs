//! Columns of Arrow batches as lists, for programs that do without PyArrow.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType,
};
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::{DataType, TimeUnit};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

/// The columns of an Arrow batch by their names. Times are numbers, structs dictionaries, and nulls `None`.
pub(crate) fn columns<'py>(py: Python<'py>, batch: &arrow_array::RecordBatch) -> PyResult<Bound<'py, PyDict>> {
    let columns = PyDict::new(py);
    for (field, array) in batch.schema_ref().fields().iter().zip(batch.columns()) {
        columns.set_item(field.name(), values(py, array)?)?;
    }
    Ok(columns)
}

fn values<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    match array.data_type() {
        DataType::Utf8 => PyList::new(py, array.as_string::<i32>().iter()),
        DataType::Binary => {
            PyList::new(py, array.as_binary::<i32>().iter().map(|value| value.map(|value| PyBytes::new(py, value))))
        }
        DataType::Boolean => PyList::new(py, array.as_boolean().iter()),
        DataType::Int8 => numbers::<Int8Type>(py, array),
        DataType::Int16 => numbers::<Int16Type>(py, array),
        DataType::Int32 => numbers::<Int32Type>(py, array),
        DataType::Int64 => numbers::<Int64Type>(py, array),
        DataType::Float64 => numbers::<Float64Type>(py, array),
        DataType::Timestamp(TimeUnit::Millisecond, _) => numbers::<TimestampMillisecondType>(py, array),
        DataType::Timestamp(TimeUnit::Microsecond, _) => numbers::<TimestampMicrosecondType>(py, array),
        DataType::Struct(_) => structs(py, array.as_struct()),
        other => Err(PyTypeError::new_err(format!("a column of type {other} needs PyArrow"))),
    }
}

fn numbers<'py, T>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyList>>
where
    T: ArrowPrimitiveType,
    T::Native: IntoPyObject<'py>,
{
    PyList::new(py, array.as_primitive::<T>().iter())
}

fn structs<'py>(py: Python<'py>, array: &StructArray) -> PyResult<Bound<'py, PyList>> {
    let members = array.columns().iter().map(|member| values(py, member)).collect::<PyResult<Vec<_>>>()?;
    let found = PyList::empty(py);
    for row in 0..array.len() {
        if array.is_null(row) {
            found.append(py.None())?;
            continue;
        }
        let one = PyDict::new(py);
        for (field, member) in array.fields().iter().zip(&members) {
            one.set_item(field.name(), member.get_item(row)?)?;
        }
        found.append(one)?;
    }
    Ok(found)
}
