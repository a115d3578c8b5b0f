//! `kbat._core.locations.StoreTarget`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::io::Target;
use crate::python::arguments::location::StoreArguments;
use crate::python::runtime::errors::OrRaise;

/// A file or directory of a store, which is written to a temporary directory first and uploaded when it is complete.
///
/// As a context manager, it returns the local path to write to. The path has the name of the target, and does not
/// exist yet. At the end of the ``with`` block, everything at that path is uploaded, segments last. After an exception
/// nothing is uploaded. In both cases the temporary directory is removed.
///
/// Args:
///     target: The URL to write. Nothing may exist there.
///     storage_options: How to open the store of a URL, with the names of object_store, such as
///         ``{"access_key_id": ..., "region": ..., "endpoint": ...}``. Default: the environment, such as
///         ``AWS_ACCESS_KEY_ID``, or the role of the machine.
///
/// Raises:
///     ValueError: Something exists at the target.
///     OSError: The store or the temporary directory can't be used. What was uploaded before an error stays.
#[pyclass(frozen, name = "StoreTarget", module = "kbat._core.locations")]
pub(crate) struct PyStoreTarget(Mutex<Option<Target>>);

#[pymethods]
impl PyStoreTarget {
    #[new]
    #[pyo3(signature = (target, **stores), text_signature = "(target, *, storage_options=None)")]
    fn new(py: Python<'_>, target: PathBuf, stores: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let target = StoreArguments::new("StoreTarget", stores)?.locate_empty(py, target)?;
        Ok(Self(Mutex::new(Some(target))))
    }

    fn __enter__(&self) -> PyResult<OsString> {
        let target = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match target.as_ref() {
            Some(target) => Ok(target.path().as_os_str().to_owned()),
            None => Err(PyValueError::new_err("the target was already written: make another StoreTarget")),
        }
    }

    /// Uploads the result, unless an exception ends the `with` block.
    #[pyo3(signature = (*args))]
    fn __exit__(&self, py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<()> {
        let is_raising = args.get_item(0).is_ok_and(|kind| !kind.is_none());
        let target = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let finish = move || match target {
            Some(target) if !is_raising => target.publish(),
            _ => Ok(()), // dropping the target removes the temporary directory
        };
        py.detach(finish).or_raise(py)
    }
}
