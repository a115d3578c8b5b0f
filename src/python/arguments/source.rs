//! The `source` argument: bytes-like objects and paths.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyString};

use crate::io::SharedBytes;

/// The value of a `source` argument.
pub(crate) enum SourceArgument {
    Bytes(SharedBytes),
    Path(PathBuf),
}

/// Bytes of a Python object that other code can't change: `bytes` are used in place, everything else is copied.
pub(crate) fn shared_bytes(object: &Bound<'_, PyAny>) -> PyResult<Option<SharedBytes>> {
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Some(Arc::new(PyBackedBytes::from(bytes.clone()))));
    }
    match PyBuffer::<u8>::get(object) {
        Ok(buffer) => Ok(Some(Arc::new(buffer.to_vec(object.py())?))),
        Err(error) if error.is_instance_of::<PyBufferError>(object.py()) => raw_bytes(object).map(Some),
        Err(_) => Ok(None),
    }
}

/// A buffer of items that are not bytes, such as an `array` of `int`: its memory, as `bytes(memoryview)` returns it.
///
/// # Errors
/// `TypeError` for an array of objects, whose memory has their addresses.
fn raw_bytes(object: &Bound<'_, PyAny>) -> PyResult<SharedBytes> {
    let view = object.py().import("builtins")?.getattr("memoryview")?.call1((object,))?;
    if view.getattr("format")?.extract::<String>()?.contains('O') {
        return Err(PyTypeError::new_err("an array of Python objects is not bytes"));
    }
    let bytes = view.call_method0("tobytes")?.cast_into::<PyBytes>()?;
    Ok(Arc::new(PyBackedBytes::from(bytes)))
}

/// Parses a `source` argument.
pub(crate) fn source(object: &Bound<'_, PyAny>) -> PyResult<SourceArgument> {
    if !object.is_instance_of::<PyString>()
        && let Some(bytes) = shared_bytes(object)?
    {
        if is_path((*bytes).as_ref()) {
            let message = "these bytes are a path, but bytes are read as record batches: pass os.fsdecode(path)";
            return Err(PyValueError::new_err(message));
        }
        return Ok(SourceArgument::Bytes(bytes));
    }
    match object.extract::<PathBuf>() {
        Ok(path) => Ok(SourceArgument::Path(path)),
        Err(_) => Err(PyTypeError::new_err(format!(
            "source must be a bytes-like object or a path, not {}",
            object.get_type().name()?
        ))),
    }
}

/// Whether bytes are the path of something that exists. Record batches contain zeros.
fn is_path(bytes: &[u8]) -> bool {
    const MAX_PATH_LEN: usize = 4096;
    let may_be = !bytes.is_empty() && bytes.len() <= MAX_PATH_LEN && !bytes.contains(&0);
    may_be && std::str::from_utf8(bytes).is_ok_and(|path| Path::new(path).exists())
}

/// The bytes of a `data` argument.
pub(crate) fn required_bytes(data: &Bound<'_, PyAny>) -> PyResult<SharedBytes> {
    match shared_bytes(data)? {
        Some(bytes) => Ok(bytes),
        None => Err(PyTypeError::new_err(format!("data must be a bytes-like object, not {}", data.get_type().name()?))),
    }
}
