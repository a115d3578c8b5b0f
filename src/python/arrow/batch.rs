//! Arrow data in Python capsules: schemas and finished batches.
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>. arrow-rs implements the
//! structures and their release; dropping a capsule that was not consumed drops its structure.

use arrow_array::ffi::{FFI_ArrowSchema, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, RecordBatchIterator, StructArray};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err requires")]
fn arrow_error(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// A capsule with a schema.
pub(crate) fn schema<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema.as_ref()).map_err(arrow_error)?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// Arrow batches for a consumer, which takes them by `__arrow_c_stream__`.
#[pyclass(frozen, name = "_ArrowBatches", module = "kbat")]
pub(crate) struct PyArrowBatches {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<arrow_array::RecordBatch>,
}

#[pymethods]
impl PyArrowBatches {
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema(py, &self.schema)
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        let batches: Vec<_> = self.batches.iter().cloned().map(Ok).collect();
        let reader = RecordBatchIterator::new(batches, SchemaRef::clone(&self.schema));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }
}

/// One Arrow batch for pyarrow, which takes it by `__arrow_c_array__`.
#[pyclass(frozen, name = "_ArrowBatch", module = "kbat")]
pub(crate) struct PyArrowBatch(pub(crate) arrow_array::RecordBatch);

#[pymethods]
impl PyArrowBatch {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        drop(requested_schema);
        let structs = StructArray::from(self.0.clone());
        let (array, _) = to_ffi(&structs.to_data()).map_err(arrow_error)?;
        Ok((schema(py, &self.0.schema())?, PyCapsule::new_with_value(py, array, c"arrow_array")?))
    }
}
