//! [`Exclusive`]: state that one thread at a time works on, and may call Python from.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// A value behind a lock that is waited for without the GIL. Work on it may call Python (a progress callback, a signal
/// handler, an Arrow producer); if that comes back for the same value, waiting would never end, so it is an error.
pub(crate) struct Exclusive<T> {
    value: Mutex<T>,
    worker: Mutex<Option<ThreadId>>,
}

impl<T: Send> Exclusive<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), worker: Mutex::default() }
    }

    /// Works on the value, without the GIL.
    ///
    /// # Errors
    /// `RuntimeError` where this very thread is at work on it already.
    pub(crate) fn with<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut T) -> R + Send) -> PyResult<R> {
        let own = thread::current().id();
        if *lock(&self.worker) == Some(own) {
            return Err(PyRuntimeError::new_err(
                "the iterator is at work already: it was called from within its own step",
            ));
        }
        Ok(py.detach(|| {
            let mut value = lock(&self.value);
            *lock(&self.worker) = Some(own);
            let result = work(&mut value);
            *lock(&self.worker) = None;
            result
        }))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
