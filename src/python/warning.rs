//! Python warnings.

use std::ffi::CString;

use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;

/// Emits texts as Python warnings.
pub(crate) fn warn(py: Python<'_>, texts: &[String]) -> PyResult<()> {
    for text in texts {
        let text = CString::new(format!("kbat: {text}"))?;
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
    }
    Ok(())
}
