//! Signals and progress callbacks during a pass.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::arrow::ProgressCallback;
use crate::python::runtime::interrupt;

/// A progress callback and the total number of bytes.
pub(crate) struct PassProgress {
    callback: Py<PyAny>,
    total: u64,
}

impl PassProgress {
    /// Parses a `progress` argument: a callable, True for a progress bar, or None.
    pub(crate) fn of(
        py: Python<'_>,
        argument: Option<&Bound<'_, PyAny>>,
        total: impl FnOnce() -> u64 + Send,
    ) -> PyResult<Option<Self>> {
        let Some(argument) = argument.filter(|argument| !argument.is_none()) else { return Ok(None) };
        let callback = match argument.cast::<PyBool>() {
            Ok(wanted) if !wanted.is_true() => return Ok(None),
            Ok(_) => py.import("kbat.progress")?.call_method0("bar")?,
            Err(_) => argument.clone(),
        };
        Ok(if callback.is_none() { None } else { Some(Self { callback: callback.unbind(), total: total() }) })
    }

    fn call(&self, py: Python<'_>, done: u64) -> PyResult<()> {
        self.callback.call1(py, (done.min(self.total), self.total)).map(drop)
    }
}

/// The caller of a pass, and the exception that its callbacks or signal handlers raised during the pass.
#[derive(Clone)]
pub(crate) struct Waiting(Option<Arc<Waiter>>);

struct Waiter {
    progress: Option<PassProgress>,
    raised: Mutex<Option<PyErr>>,
}

impl Waiting {
    /// No caller to notify, for consumers that may hold the GIL while they wait for a pass.
    pub(crate) fn nobody() -> Self {
        Self(None)
    }

    /// A caller in Python.
    pub(crate) fn with(progress: Option<PassProgress>) -> Self {
        Self(Some(Arc::new(Waiter { progress, raised: Mutex::new(None) })))
    }

    /// The callback that a running pass calls periodically, without the GIL.
    pub(crate) fn callback(&self) -> Option<ProgressCallback> {
        let waiter = Arc::clone(self.0.as_ref()?);
        Some(Box::new(move |walked| {
            let reported = Python::attach(|py| waiter.report(py, walked));
            let should_continue = reported.is_ok();
            if let Err(raised) = reported {
                *waiter.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
            }
            should_continue
        }))
    }

    /// The exception that a signal handler or the progress callback raised during the pass.
    pub(crate) fn raised(&self) -> Option<PyErr> {
        self.0.as_ref()?.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Checks for signals and reports progress.
    pub(crate) fn report(&self, py: Python<'_>, walked: u64) -> PyResult<()> {
        self.0.as_ref().map_or(Ok(()), |waiter| waiter.report(py, walked))
    }

    /// Reports that the pass has ended.
    pub(crate) fn end(&self, py: Python<'_>) -> PyResult<()> {
        self.report(py, u64::MAX)
    }
}

impl Waiter {
    fn report(&self, py: Python<'_>, walked: u64) -> PyResult<()> {
        interrupt::check(py)?;
        self.progress.as_ref().map_or(Ok(()), |progress| progress.call(py, walked))
    }
}
