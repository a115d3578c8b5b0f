//! Arrow data from Python objects: the consumer's side of the Arrow PyCapsule interface.
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>. A consumer moves the
//! structure out of its capsule and marks the original as released, so that the capsule's destructor does nothing.

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{RecordBatch, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, DataType, SchemaRef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyDict};

use crate::python::arrow::requested_schema::{arrow_error, check_not_consumed};
use crate::python::arrow::scan::capsule::PassReader;
use crate::python::arrow::scan::class::PyScan;

/// Arrow batches from a Python object.
pub(crate) struct ArrowInput {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: InputBatches,
}

/// An iterator of Arrow batches.
pub(crate) enum InputBatches {
    Scan(Box<PassReader>),
    Stream(ArrowArrayStreamReader),
    One(Option<RecordBatch>),
}

impl Iterator for InputBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Scan(reader) => reader.next(),
            Self::Stream(reader) => reader.next(),
            Self::One(batch) => batch.take().map(Ok),
        }
    }
}

/// The Arrow data of an object with `__arrow_c_stream__` or `__arrow_c_array__`.
pub(crate) fn arrow_input(object: &Bound<'_, PyAny>) -> PyResult<ArrowInput> {
    // kbat's own scans bypass the C interface, which carries only the text of an error
    if let Ok(scan) = object.cast::<PyScan>() {
        let reader = PassReader::new(object.py(), scan.get().pass())?;
        return Ok(ArrowInput { schema: reader.schema(), batches: InputBatches::Scan(Box::new(reader)) });
    }
    if object.hasattr("__arrow_c_stream__")? {
        let object = with_typed_nulls(object)?;
        let capsule = object.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
        return stream(&capsule, &object.get_type().name()?.to_string());
    }
    if object.hasattr("__arrow_c_array__")? {
        let (schema, array) = object.call_method0("__arrow_c_array__")?.extract()?;
        return one(&schema, &array);
    }
    Err(PyTypeError::new_err(format!(
        "data must have the Arrow PyCapsule interface (a pyarrow, polars, DuckDB or pandas table, a Scan), not {}",
        object.get_type().name()?
    )))
}

/// A frame of Polars whose columns of the type Null have another type. Polars gives them a buffer, which arrays of this type
/// do not have in Arrow.
fn with_typed_nulls<'py>(object: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let class = object.get_type();
    if !class.module()?.to_str()?.starts_with("polars.") || class.name()? != "DataFrame" {
        return Ok(object.clone());
    }
    let polars = object.py().import("polars")?;
    let (null, types) = (polars.getattr("Null")?, PyDict::new(object.py()));
    for column in object.getattr("schema")?.call_method0("items")?.try_iter()? {
        let (name, of_column) = column?.extract::<(String, Bound<'py, PyAny>)>()?;
        if of_column.eq(&null)? {
            let is_number = matches!(name.as_str(), "offset" | "timestamp" | "partition");
            types.set_item(name, polars.getattr(if is_number { "Int64" } else { "Binary" })?)?;
        }
    }
    if types.is_empty() { Ok(object.clone()) } else { object.call_method1("cast", (types,)) }
}

#[expect(unsafe_code, reason = "takes ownership of a C structure")]
fn stream(capsule: &Bound<'_, PyCapsule>, type_name: &str) -> PyResult<ArrowInput> {
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name holds such a structure, which is valid as long as the capsule lives; it is
    // moved out and replaced by a released one
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr()) };
    let reader = ArrowArrayStreamReader::try_new(stream).map_err(|error| match error {
        // the stream of a series has no columns
        ArrowError::CDataInterface(_) => {
            let message = format!("cannot read the Arrow data of {type_name} ({error}): pass a table");
            PyValueError::new_err(message)
        }
        other => arrow_error(other),
    })?;
    Ok(ArrowInput { schema: reader.schema(), batches: InputBatches::Stream(reader) })
}

#[expect(unsafe_code, reason = "takes ownership of C structures")]
fn one(schema: &Bound<'_, PyCapsule>, array: &Bound<'_, PyCapsule>) -> PyResult<ArrowInput> {
    let schema = schema.pointer_checked(Some(c"arrow_schema"))?.cast::<FFI_ArrowSchema>();
    let array = array.pointer_checked(Some(c"arrow_array"))?.cast::<FFI_ArrowArray>();
    // SAFETY: capsules of these names hold such structures, which are valid as long as the capsules live; they are
    // moved out and replaced by released ones
    let (schema, array) =
        unsafe { (FFI_ArrowSchema::from_raw(schema.as_ptr()), FFI_ArrowArray::from_raw(array.as_ptr())) };
    check_not_consumed(&schema)?;
    if array.is_released() {
        return Err(PyValueError::new_err("the Arrow array was already consumed; pass a new one"));
    }
    // SAFETY: neither is released, and the interface requires that the schema describes the array
    let data = unsafe { from_ffi(array, &schema) }.map_err(arrow_error)?;
    if !matches!(data.data_type(), DataType::Struct(_)) || data.null_count() > 0 {
        return Err(PyValueError::new_err("the Arrow array must be a table: a struct array without nulls"));
    }
    let batch = RecordBatch::from(StructArray::from(data));
    Ok(ArrowInput { schema: batch.schema(), batches: InputBatches::One(Some(batch)) })
}
