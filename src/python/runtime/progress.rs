//! Long calls from Python: release the GIL, check for signals, call a progress callback.

use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;

use crate::error::{Error, Result};
use crate::io::Progress;
use crate::python::runtime::errors::OrRaise;
use crate::python::runtime::interrupt;

/// A Python exception, stored while an error of the core returns to Python.
#[derive(Default)]
pub(crate) struct Caught(Mutex<Option<PyErr>>);

impl Caught {
    /// Calls into Python. If that raises, stores the exception and returns an error that ends the running work.
    pub(crate) fn catch<T>(&self, call: impl FnOnce(Python<'_>) -> PyResult<T>) -> Result<T> {
        Python::attach(call).map_err(|exception| {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(exception);
            Error::from(std::io::Error::from(std::io::ErrorKind::Interrupted))
        })
    }

    fn raise<T>(self, py: Python<'_>, result: Result<T>) -> PyResult<T> {
        match self.0.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(exception) => Err(exception),
            None => result.or_raise(py),
        }
    }
}

/// Runs `work` with the GIL released. Checks for signals and calls `callback` every few megabytes.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    callback: Option<Py<PyAny>>,
    work: impl FnOnce(&Caught, &mut Progress<'_>) -> Result<T> + Send,
) -> PyResult<T> {
    let caught = Caught::default();
    let result = py.detach(|| {
        let mut report = |done: u64, total: u64| {
            let told = caught.catch(|py| {
                interrupt::check(py)?;
                callback.as_ref().map_or(Ok(()), |callback| callback.call1(py, (done, total)).map(drop))
            });
            told.is_ok()
        };
        work(&caught, &mut Progress::new(&mut report))
    });
    caught.raise(py, result)
}
