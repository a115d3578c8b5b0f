//! `kbat._core.locations.StoredFile` and `stored_files`: files of any kind, in the file system or in a store.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error::{Error, Result};
use crate::io::{Location, PositionedFile};
use crate::num::usize_from_u64;
use crate::python::arguments::location::StoreArguments;
use crate::python::runtime::errors::OrRaise;

/// Directories within each other that are listed. A loop of links has no end.
const MAX_DEPTH: u32 = 64;

/// A file of any kind, which is read by position.
///
/// Args:
///     path: The path of the file, or its URL.
///     storage_options: How to open the store of a URL, with the names of object_store.
///     store: Has no effect.
///     encryption_keys: Has no effect.
///
/// Raises:
///     OSError: The file can't be read.
///     ValueError: An unknown scheme or option.
#[pyclass(frozen, name = "StoredFile", module = "kbat._core.locations")]
pub(crate) struct PyStoredFile(PositionedFile);

#[pymethods]
impl PyStoredFile {
    #[new]
    #[pyo3(
        signature = (path, **stores),
        text_signature = "(path, *, storage_options=None, store=None, encryption_keys=None)"
    )]
    fn new(py: Python<'_>, path: PathBuf, stores: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let location = StoreArguments::new("StoredFile", stores)?.locate_beside(py, path)?;
        py.detach(|| location.open()).map(Self).or_raise(py)
    }

    /// Length of the file in bytes.
    ///
    /// Raises:
    ///     OSError: The file can't be read.
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.0.len()).or_raise(py)
    }

    /// Read bytes at a position.
    ///
    /// Args:
    ///     position: The first byte.
    ///     length: The number of bytes; fewer are returned at the end of the file.
    ///
    /// Raises:
    ///     OSError: The file can't be read.
    fn read_at<'py>(&self, py: Python<'py>, position: u64, length: usize) -> PyResult<Bound<'py, PyBytes>> {
        let read = || -> Result<Vec<u8>> {
            let left = self.0.len()?.saturating_sub(position);
            let mut bytes = vec![0; length.min(usize_from_u64(left))];
            let count = self.0.read_at(&mut bytes, position)?;
            bytes.truncate(count);
            Ok(bytes)
        };
        let bytes = py.detach(read).or_raise(py)?;
        Ok(PyBytes::new(py, &bytes))
    }
}

/// List all files below a directory, sorted by the names in each directory.
///
/// Args:
///     path: The path of the directory, or its URL.
///     storage_options: How to open the store of a URL, with the names of object_store.
///     store: Has no effect.
///     encryption_keys: Has no effect.
///
/// Raises:
///     OSError: A directory can't be read, or there is none.
///     ValueError: An unknown scheme or option, or too many directories within each other.
#[pyfunction]
#[pyo3(
    signature = (path, **stores),
    text_signature = "(path, *, storage_options=None, store=None, encryption_keys=None)"
)]
pub(crate) fn stored_files(
    py: Python<'_>,
    path: PathBuf,
    stores: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<OsString>> {
    let directory = StoreArguments::new("stored_files", stores)?.locate_beside(py, path)?;
    let mut found = Vec::new();
    py.detach(|| list(&directory, MAX_DEPTH, &mut found)).or_raise(py)?;
    Ok(found)
}

fn list(directory: &Location, depth: u32, found: &mut Vec<OsString>) -> Result<()> {
    let Some(depth) = depth.checked_sub(1) else {
        let message = format!("there are more than {MAX_DEPTH} directories within each other");
        return Err(Error::argument(message).with_path(directory.path()));
    };
    for entry in directory.entries()? {
        if entry.is_dir() {
            list(&entry, depth, found)?;
        } else {
            found.push(entry.path().as_os_str().to_owned());
        }
    }
    Ok(())
}
