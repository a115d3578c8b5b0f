//! Output to a Python callable.

use std::io::{Error as IoError, Write};

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::python::runtime::interrupt;
use crate::python::runtime::progress::Caught;

/// Passes everything that is written to a Python callable. Its exception ends the work and is raised.
pub(crate) struct Callback<'c> {
    call: Py<PyAny>,
    caught: &'c Caught,
}

impl<'c> Callback<'c> {
    pub(crate) fn new(call: Py<PyAny>, caught: &'c Caught) -> Self {
        Self { call, caught }
    }
}

impl Write for Callback<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if bytes.is_empty() {
            return Ok(0);
        }
        let written = self.caught.catch(|py| {
            interrupt::check(py)?;
            self.call.call1(py, (PyBytes::new(py, bytes),)).map(drop)
        });
        // not Interrupted, which `write_all` would repeat
        written.map(|()| bytes.len()).map_err(|_| IoError::other("the output failed"))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
