//! Ctrl-C while the core waits for a request to a store, or searches a file.

use std::io::{Error as IoError, ErrorKind as IoErrorKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::ThreadId;

use pyo3::prelude::*;

use crate::error::Error;

/// The thread that imported the module: only the main thread receives signals. Other threads must not wait for the
/// GIL here, since its owner may be waiting for them.
static MAIN: OnceLock<ThreadId> = OnceLock::new();
/// The exception that a signal handler raised, until it is raised again in Python.
static RAISED: Mutex<Option<PyErr>> = Mutex::new(None);
/// Whether there is one.
static IS_RAISED: AtomicBool = AtomicBool::new(false);

/// Lets signal handlers run while the core waits.
pub(crate) fn install() {
    let _ = MAIN.set(std::thread::current().id());
    crate::io::waiting::set_interrupt_check(interrupted);
}

/// The exception that ended a wait.
pub(crate) fn take() -> Option<PyErr> {
    let mut raised = RAISED.lock().unwrap_or_else(PoisonError::into_inner);
    IS_RAISED.store(false, Ordering::Relaxed);
    raised.take()
}

/// Lets signal handlers run. Also raises what one of them raised before, if the core ignored the error.
pub(crate) fn check(py: Python<'_>) -> PyResult<()> {
    unhandled()?;
    py.check_signals()
}

/// Raises what a signal handler raised before, if the core ignored the error.
pub(crate) fn unhandled() -> PyResult<()> {
    if IS_RAISED.load(Ordering::Relaxed) && MAIN.get() == Some(&std::thread::current().id()) {
        return take().map_or(Ok(()), Err);
    }
    Ok(())
}

/// Returns an error if a signal handler has raised an exception. It counts until it is raised in Python, since a caller
/// in the core may ignore the first error.
fn interrupted() -> Option<Error> {
    if MAIN.get() != Some(&std::thread::current().id()) {
        return None;
    }
    // not while the lock is held: another thread may wait for it and have the GIL
    let found = if IS_RAISED.load(Ordering::Relaxed) { None } else { Python::attach(|py| py.check_signals().err()) };
    let mut raised = RAISED.lock().unwrap_or_else(PoisonError::into_inner);
    if found.is_some() {
        *raised = found;
        IS_RAISED.store(true, Ordering::Relaxed);
    }
    raised.as_ref().map(|_| IoError::from(IoErrorKind::Interrupted).into())
}
