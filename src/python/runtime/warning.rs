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

/// Emits warnings that begin with the name of the package.
pub(crate) fn warn_all(py: Python<'_>, warnings: Vec<String>) -> PyResult<()> {
    let texts = warnings.into_iter().map(|text| text.strip_prefix("kbat: ").unwrap_or(&text).to_owned());
    warn(py, &texts.collect::<Vec<_>>())
}
