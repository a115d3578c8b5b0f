//! Whoever waits for a pass: signals are looked after, and progress is told.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::PyBool;

use crate::arrow::Look;

/// Who is told how far a pass is.
pub(crate) struct Progress {
    callback: Py<PyAny>,
    total: u64,
}

impl Progress {
    /// Of a `progress` argument: a callable, True for a bar, or nothing.
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

    fn tell(&self, py: Python<'_>, done: u64) -> PyResult<()> {
        self.callback.call1(py, (done.min(self.total), self.total)).map(drop)
    }
}

/// Somebody who waits for a pass, and what they raised while it went on.
#[derive(Clone)]
pub(crate) struct Waiting(Option<Arc<Waiter>>);

struct Waiter {
    progress: Option<Progress>,
    raised: Mutex<Option<PyErr>>,
}

impl Waiting {
    /// Nobody: for consumers who may wait for a pass while they hold the GIL.
    pub(crate) fn nobody() -> Self {
        Self(None)
    }

    /// A caller in Python.
    pub(crate) fn with(progress: Option<Progress>) -> Self {
        Self(Some(Arc::new(Waiter { progress, raised: Mutex::new(None) })))
    }

    /// What a walk calls now and then, without the GIL.
    pub(crate) fn look(&self) -> Option<Look> {
        let waiter = Arc::clone(self.0.as_ref()?);
        Some(Box::new(move |walked| {
            let looked = Python::attach(|py| waiter.look_up(py, walked));
            let goes_on = looked.is_ok();
            if let Err(raised) = looked {
                *waiter.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
            }
            goes_on
        }))
    }

    /// What the caller's signal handlers or their callback raised while a walk looked up.
    pub(crate) fn raised(&self) -> Option<PyErr> {
        self.0.as_ref()?.raised.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Looks after signals and tells how far the pass is.
    pub(crate) fn look_up(&self, py: Python<'_>, walked: u64) -> PyResult<()> {
        self.0.as_ref().map_or(Ok(()), |waiter| waiter.look_up(py, walked))
    }

    /// Tells that the pass is at its end.
    pub(crate) fn end(&self, py: Python<'_>) -> PyResult<()> {
        self.look_up(py, u64::MAX)
    }
}

impl Waiter {
    fn look_up(&self, py: Python<'_>, walked: u64) -> PyResult<()> {
        py.check_signals()?;
        self.progress.as_ref().map_or(Ok(()), |progress| progress.tell(py, walked))
    }
}
