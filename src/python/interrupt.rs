//! Ctrl-C while the core waits for a request to a store.

use std::sync::OnceLock;
use std::thread::ThreadId;

use pyo3::prelude::*;

use crate::error::{Error, ErrorKind};

/// The thread that imported the module: only the main thread receives signals. Other threads must not wait for the
/// GIL here, since its owner may be waiting for them.
static MAIN: OnceLock<ThreadId> = OnceLock::new();

/// Lets signal handlers run while the core waits.
pub(crate) fn install() {
    let _ = MAIN.set(std::thread::current().id());
    crate::objects::set_interrupt_check(raised);
}

/// The exception that a signal handler raised.
fn raised() -> Option<Error> {
    if MAIN.get() != Some(&std::thread::current().id()) {
        return None;
    }
    let raised = Python::attach(|py| py.check_signals().err())?;
    Some(Error::new(ErrorKind::Other(Box::new(raised))))
}
