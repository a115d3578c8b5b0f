//! [`Exclusive`]: state that one thread at a time uses and that may call Python.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

/// A value with a lock. Waiting for it releases the GIL. Work on the value may call Python (a progress callback, a
/// signal handler, an Arrow producer). If that code uses the same value again, it would wait forever, so it gets an
/// error.
pub(crate) struct Exclusive<T> {
    value: Mutex<T>,
    worker: Mutex<Option<ThreadId>>,
}

impl<T: Send> Exclusive<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), worker: Mutex::default() }
    }

    /// Runs `work` on the value, without the GIL.
    ///
    /// # Errors
    /// `RuntimeError` if the current thread is already using the value.
    pub(crate) fn with<R: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut T) -> R + Send) -> PyResult<R> {
        let own = thread::current().id();
        if *lock(&self.worker) == Some(own) {
            return Err(PyRuntimeError::new_err("the iterator is already running: one of its own callbacks called it"));
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
