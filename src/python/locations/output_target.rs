//! `kbat._core.locations.OutputTarget`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::error::Result;
use crate::io::Target;
use crate::io::staged::{StagedPath, refuse_existing};
use crate::python::arguments::location::StoreArguments;
use crate::python::runtime::errors::OrRaise;

/// A file or directory that does not exist yet, and appears complete or not at all.
///
/// As a context manager, it returns the local path to write to, beside the target or in a temporary directory. The
/// path has the name of the target, and does not exist yet. At the end of the ``with`` block, what was written there is
/// renamed, or uploaded, segments last. After an exception it is removed.
///
/// Args:
///     target: The path or URL to write. Nothing may exist there, but a directory may be empty.
///     storage_options: How to open the store of a URL, with the names of object_store, such as
///         ``{"access_key_id": ..., "region": ..., "endpoint": ...}``. Default: the environment, such as
///         ``AWS_ACCESS_KEY_ID``, or the role of the machine.
///
/// Raises:
///     ValueError: Something exists at the target.
///     OSError: The store, or a directory, can't be used. What was uploaded before an error stays.
#[pyclass(frozen, name = "OutputTarget", module = "kbat._core.locations")]
pub(crate) struct PyOutputTarget(Mutex<State>);

enum State {
    /// A target that is not entered yet, or one in a store.
    Target(Target),
    Staged(StagedPath),
    Done,
}

impl State {
    fn begin(self) -> Result<Self> {
        Ok(match self {
            Self::Target(target) if target.location().is_local() => Self::Staged(StagedPath::create(target.path())?),
            other => other,
        })
    }

    fn path(&self) -> Option<&Path> {
        match self {
            Self::Target(target) => Some(target.path()),
            Self::Staged(staged) => Some(staged.path()),
            Self::Done => None,
        }
    }

    fn publish(self) -> Result<()> {
        match self {
            Self::Target(target) => target.publish(),
            Self::Staged(staged) => staged.commit(),
            Self::Done => Ok(()),
        }
    }
}

#[pymethods]
impl PyOutputTarget {
    #[new]
    #[pyo3(signature = (target, **stores), text_signature = "(target, *, storage_options=None)")]
    fn new(py: Python<'_>, target: PathBuf, stores: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let target = StoreArguments::new("OutputTarget", stores)?.locate_empty(py, target)?;
        if target.location().is_local() {
            refuse_existing(target.path()).or_raise(py)?;
        }
        Ok(Self(Mutex::new(State::Target(target))))
    }

    fn __enter__(&self, py: Python<'_>) -> PyResult<OsString> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *state = std::mem::replace(&mut *state, State::Done).begin().or_raise(py)?;
        match state.path() {
            Some(path) => Ok(path.as_os_str().to_owned()),
            None => Err(PyValueError::new_err("the target was already written: make another OutputTarget")),
        }
    }

    /// Puts the result in place, unless an exception ends the `with` block.
    #[pyo3(signature = (*args))]
    fn __exit__(&self, py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<()> {
        let is_raising = args.get_item(0).is_ok_and(|kind| !kind.is_none());
        let state = std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), State::Done);
        // dropping the state removes what was written
        py.detach(|| if is_raising { Ok(()) } else { state.publish() }).or_raise(py)
    }
}
