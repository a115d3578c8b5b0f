//! A pass of a scan as a stream in a Python capsule.

use std::sync::OnceLock;
use std::thread::{self, ThreadId};

use arrow_array::RecordBatchReader;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_schema::{ArrowError, SchemaRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::Error;
use crate::python::arrow::scan::pass::{Pass, warn_of_missing, warning_of_missing};
use crate::python::runtime::interrupt;

/// A capsule with a stream of Arrow batches.
pub(crate) fn stream(py: Python<'_>, pass: Pass) -> PyResult<Bound<'_, PyCapsule>> {
    let stream = FFI_ArrowArrayStream::new(Box::new(PassReader::new(py, pass)?));
    PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
}

/// A pass as arrow-rs's reader. The C interface carries only the text of an error.
pub(crate) struct PassReader {
    pass: Pass,
    /// Whether the pass has ended.
    has_ended: bool,
}

impl PassReader {
    /// Creates a reader of a pass. Called by the thread that requests the stream.
    pub(crate) fn new(py: Python<'_>, pass: Pass) -> PyResult<Self> {
        note_main_thread(py)?;
        Ok(Self { pass, has_ended: false })
    }

    /// Warns of records that are missing. Fails in a thread that can't warn: see [`raised_by_signals`].
    fn end(&mut self) -> Result<(), Error> {
        self.has_ended = true;
        let stats = self.pass.stats();
        if is_main_thread() {
            return Python::attach(|py| warn_of_missing(py, &stats)).map_err(Error::other);
        }
        warning_of_missing(&stats).map_or(Ok(()), |message| Err(Error::other(message)))
    }
}

impl Iterator for PassReader {
    type Item = Result<arrow_array::RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(raised) = raised_by_signals() {
            return Some(Err(ArrowError::ExternalError(Box::new(Error::other(raised)))));
        }
        let next = match self.pass.next() {
            None if !self.has_ended => self.end().err().map(Err)?,
            next => next?,
        };
        Some(next.map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }
}

/// Returns the exception that Ctrl-C or another signal raised. Only Python's main thread checks for signals: other
/// threads must not wait for the GIL, because the thread that waits for them may hold it.
fn raised_by_signals() -> Option<PyErr> {
    if !is_main_thread() {
        return None;
    }
    Python::attach(interrupt::check).err()
}

fn is_main_thread() -> bool {
    MAIN_THREAD.get() == Some(&thread::current().id())
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

impl RecordBatchReader for PassReader {
    fn schema(&self) -> SchemaRef {
        self.pass.schema()
    }
}
