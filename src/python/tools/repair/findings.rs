//! The report of `verify`.

use std::ffi::OsString;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::repair::{Finding, Report};

/// One finding of :func:`verify`.
#[pyclass(frozen, name = "Finding", module = "kbat", eq)]
#[derive(PartialEq)]
pub(super) struct PyFinding(Finding);

#[pymethods]
impl PyFinding {
    /// Severity of the finding.
    ///
    /// ``"info"``: normal in some logs. ``"warning"``: a broker works despite it. ``"error"``: data is lost, a
    /// broker would truncate the log or fail to start, or it would return wrong results.
    #[getter]
    fn severity(&self) -> &'static str {
        self.0.severity.name()
    }

    /// Kind of the finding, a stable name in snake_case.
    #[getter]
    fn kind(&self) -> &'static str {
        self.0.kind
    }

    /// Path of the file or directory.
    #[getter]
    fn path(&self) -> OsString {
        self.0.path.as_os_str().to_owned()
    }

    /// Position in the file, in bytes.
    #[getter]
    fn position(&self) -> Option<u64> {
        self.0.position
    }

    /// The Kafka offset that the finding concerns.
    #[getter]
    fn offset(&self) -> Option<i64> {
        self.0.offset
    }

    /// Meaning of the finding, and what to do.
    #[getter]
    fn message(&self) -> &str {
        &self.0.message
    }

    /// Return the fields as a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("severity", self.severity())?;
        dict.set_item("kind", self.kind())?;
        dict.set_item("path", self.path())?;
        dict.set_item("position", self.position())?;
        dict.set_item("offset", self.offset())?;
        dict.set_item("message", self.message())?;
        Ok(dict)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<Finding {}>", self.0)
    }
}

/// The result of :func:`verify`. ``str(report)`` is a text with one line per finding.
#[pyclass(frozen, name = "Report", module = "kbat")]
pub(super) struct PyReport(pub(super) Report);

#[pymethods]
impl PyReport {
    /// Path that was verified.
    #[getter]
    fn path(&self) -> OsString {
        self.0.path.as_os_str().to_owned()
    }

    /// Whether there is no error.
    #[getter]
    fn ok(&self) -> bool {
        self.0.is_ok()
    }

    /// Exit code for a command: 0 if nothing is wrong, 1 for warnings, 2 for errors.
    #[getter]
    fn exit_code(&self) -> i32 {
        self.0.exit_code()
    }

    /// Findings in the order of the files; of each kind, only the first twenty per file.
    #[getter]
    fn findings(&self) -> Vec<PyFinding> {
        self.0.findings.iter().cloned().map(PyFinding).collect()
    }

    /// Number of findings that are not listed.
    #[getter]
    fn omitted_count(&self) -> u64 {
        self.0.omitted_count
    }

    /// Number of segments read.
    #[getter]
    fn segment_count(&self) -> u64 {
        self.0.segment_count
    }

    /// Number of whole batches.
    #[getter]
    fn batch_count(&self) -> u64 {
        self.0.batch_count
    }

    /// Number of records in them.
    #[getter]
    fn record_count(&self) -> u64 {
        self.0.record_count
    }

    /// Bytes of the ``.log`` files.
    #[getter]
    fn byte_count(&self) -> u64 {
        self.0.byte_count
    }

    /// Return the fields as a dictionary; paths are text.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let findings = PyList::empty(py);
        for finding in self.findings() {
            findings.append(finding.to_dict(py)?)?;
        }
        let dict = PyDict::new(py);
        dict.set_item("path", self.path())?;
        dict.set_item("ok", self.ok())?;
        dict.set_item("exit_code", self.exit_code())?;
        dict.set_item("findings", findings)?;
        dict.set_item("omitted_count", self.omitted_count())?;
        dict.set_item("segment_count", self.segment_count())?;
        dict.set_item("batch_count", self.batch_count())?;
        dict.set_item("record_count", self.record_count())?;
        dict.set_item("byte_count", self.byte_count())?;
        Ok(dict)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let (ok, count) = (if self.0.is_ok() { "True" } else { "False" }, self.0.findings.len());
        format!("Report(path='{}', ok={ok}, findings={count})", self.0.path.display())
    }
}
