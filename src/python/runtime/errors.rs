//! kbat's errors as Python exceptions. The classes are written in Python (`kbat.errors`), so that they can have two
//! bases and typed attributes.

use pyo3::exceptions::{
    PyFileExistsError, PyFileNotFoundError, PyOSError, PyPermissionError, PyRuntimeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyType};

use crate::error::{Error, ErrorKind};
use crate::python::runtime::interrupt;

/// The error of reading a directory on Linux, macOS and Windows.
pub(crate) const EISDIR: i32 = 21;

/// The exception for an error.
pub(crate) fn raise(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error.kind() {
        ErrorKind::InvalidArgument(_) => return PyValueError::new_err(error.to_string()),
        ErrorKind::Io(io) => return os_error(error, io),
        ErrorKind::Other(other) => {
            // a Python exception that passed through the core
            let raised = other.downcast_ref::<PyErr>().map(|raised| raised.clone_ref(py));
            return raised.unwrap_or_else(|| PyRuntimeError::new_err(error.to_string()));
        }
        ErrorKind::Crc { .. } => "CrcError",
        ErrorKind::Truncated | ErrorKind::CutBatch | ErrorKind::ZeroTail | ErrorKind::MissingRecords { .. } => {
            "TruncatedError"
        }
        ErrorKind::UnsupportedMagic(_)
        | ErrorKind::UnsupportedCodec { .. }
        | ErrorKind::CompressionBelowMagic { .. } => "UnsupportedError",
        ErrorKind::Decompression { .. } => "DecompressionError",
        ErrorKind::Limit { .. } => "LimitError",
        _ => "CorruptError",
    };
    build(py, class, error).unwrap_or_else(|failure| failure)
}

fn os_error(error: &Error, io: &std::io::Error) -> PyErr {
    if io.kind() == std::io::ErrorKind::Interrupted
        && let Some(raised) = interrupt::take()
    {
        return raised;
    }
    let errno = io.raw_os_error().or_else(|| (io.kind() == std::io::ErrorKind::IsADirectory).then_some(EISDIR));
    match (errno, error.path()) {
        // with errno and file name, Python picks FileNotFoundError, PermissionError and so on
        (Some(errno), Some(path)) => {
            let mut message = io_message(io);
            if io.kind() == std::io::ErrorKind::IsADirectory {
                message.push_str("; kbat.scan reads directories");
            }
            if let Some(note) = error.note() {
                message.push_str("; ");
                message.push_str(note);
            }
            PyOSError::new_err((errno, message, path.as_os_str().to_owned()))
        }
        _ if io.kind() == std::io::ErrorKind::PermissionDenied => PyPermissionError::new_err(error.to_string()),
        _ if io.kind() == std::io::ErrorKind::AlreadyExists => PyFileExistsError::new_err(error.to_string()),
        _ if io.kind() == std::io::ErrorKind::NotFound => PyFileNotFoundError::new_err(error.to_string()),
        _ => PyOSError::new_err(error.to_string()),
    }
}

/// The system's message without Rust's "(os error 2)".
fn io_message(io: &std::io::Error) -> String {
    let message = io.to_string();
    message.split(" (os error").next().unwrap_or(&message).to_owned()
}

fn build(py: Python<'_>, class: &str, error: &Error) -> PyResult<PyErr> {
    static MODULE: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    let module = MODULE.get_or_try_init(py, || py.import("kbat.errors").map(Bound::unbind))?.bind(py);
    let class = module.getattr(class)?.cast_into::<PyType>()?;
    let position = error.position();
    let arguments = PyDict::new(py);
    arguments.set_item("kind", error.kind().name())?;
    arguments.set_item("position", position.byte)?;
    arguments.set_item("base_offset", position.base_offset)?;
    arguments.set_item("record", position.record)?;
    arguments.set_item("field", position.field)?;
    arguments.set_item("path", error.path().map(|path| path.as_os_str().to_owned()))?;
    Ok(PyErr::from_value(class.call((error.to_string(),), Some(&arguments))?))
}

/// Converts results of the core while the GIL is held.
pub(crate) trait OrRaise<T> {
    /// The value, or the exception for the error.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> OrRaise<T> for crate::error::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        match self {
            Ok(value) => interrupt::unhandled().map(|()| value),
            Err(error) => Err(interrupt::unhandled().err().unwrap_or_else(|| raise(py, &error))),
        }
    }
}
