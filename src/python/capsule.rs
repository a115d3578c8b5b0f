//! Arrow data in Python capsules: the Arrow PyCapsule interface.
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>. arrow-rs implements the
//! structures and their release; dropping a capsule that was not consumed drops its structure.

use std::sync::OnceLock;
use std::thread::{self, ThreadId};

use arrow_array::ffi::{FFI_ArrowSchema, to_ffi};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, RecordBatchIterator, RecordBatchReader, StructArray};
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::Error;
use crate::python::scan_pass::Pass;

#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err requires")]
fn arrow_error(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}

/// A capsule with a schema.
pub(crate) fn schema<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema.as_ref()).map_err(arrow_error)?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// A capsule with a stream of Arrow batches.
pub(crate) fn stream(py: Python<'_>, pass: Pass) -> PyResult<Bound<'_, PyCapsule>> {
    let stream = FFI_ArrowArrayStream::new(Box::new(Reader::new(py, pass)?));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// A pass as arrow-rs's reader. The C interface carries only the text of an error.
pub(crate) struct Reader(Pass);

impl Reader {
    /// Creates a reader of a pass. Called by the thread that requests the stream.
    pub(crate) fn new(py: Python<'_>, pass: Pass) -> PyResult<Self> {
        note_main_thread(py)?;
        Ok(Self(pass))
    }
}

impl Iterator for Reader {
    type Item = Result<arrow_array::RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(raised) = raised_by_signals() {
            return Some(Err(ArrowError::ExternalError(Box::new(Error::other(raised)))));
        }
        self.0.next().map(|next| next.map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

/// Returns the exception that Ctrl-C or another signal raised. Only Python's main thread checks for signals: other
/// threads must not wait for the GIL, because the thread that waits for them may hold it.
#[expect(clippy::redundant_closure_for_method_calls, reason = "the method itself has only one lifetime")]
fn raised_by_signals() -> Option<PyErr> {
    if MAIN_THREAD.get() != Some(&thread::current().id()) {
        return None;
    }
    Python::attach(|py| py.check_signals()).err()
}

/// Python's main thread, if it has requested a stream.
static MAIN_THREAD: OnceLock<ThreadId> = OnceLock::new();

/// Records the current thread if it is Python's main thread. This does not happen on import, because importing
/// `threading` takes a fifth of the import time of kbat.
fn note_main_thread(py: Python<'_>) -> PyResult<()> {
    if MAIN_THREAD.get().is_none() {
        let threading = py.import("threading")?;
        if threading.call_method0("current_thread")?.is(&threading.call_method0("main_thread")?) {
            let _ = MAIN_THREAD.set(thread::current().id()); // another call may have set it, to the same id
        }
    }
    Ok(())
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }
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
