//! The report of `verify`.

use std::ffi::OsString;

use pyo3::prelude::*;

use crate::python::runtime::fields::fields;
use crate::repair::{Finding, Report};

/// One finding of :func:`verify`.
#[pyclass(frozen, name = "Finding", module = "kbat", eq)]
#[derive(PartialEq)]
pub(super) struct PyFinding(Finding);

fields! {
    PyFinding {
        /// Severity of the finding.
        ///
        /// ``"info"``: normal in some logs. ``"warning"``: a broker works despite it. ``"error"``: data is lost, a
        /// broker would truncate the log or fail to start, or it would return wrong results.
        severity: &'static str = |finding| finding.severity.name();

        /// Kind of the finding, a stable name in snake_case.
        kind: &'static str = |finding| finding.kind;

        /// Path of the file or directory.
        path: OsString = |finding| finding.path.as_os_str().to_owned();

        /// Position in the file, in bytes.
        position: Option<u64> = |finding| finding.position;

        /// The Kafka offset that the finding concerns.
        offset: Option<i64> = |finding| finding.offset;

        /// Meaning of the finding, and what to do.
        message: &str = |finding| &finding.message;
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

fields! {
    PyReport {
        /// Path that was verified.
        path: OsString = |report| report.path.as_os_str().to_owned();

        /// Whether there is no error.
        ok: bool = |report| report.is_ok();

        /// Exit code for a command: 0 if nothing is wrong, 1 for warnings, 2 for errors.
        exit_code: i32 = |report| report.exit_code();

        /// Findings in the order of the files; of each kind, only the first twenty per file.
        findings: Vec<PyFinding> = |report| report.findings.iter().cloned().map(PyFinding).collect();

        /// Number of findings that are not listed.
        omitted_count: u64 = |report| report.omitted_count;

        /// Number of segments read.
        segment_count: u64 = |report| report.segment_count;

        /// Number of whole batches.
        batch_count: u64 = |report| report.batch_count;

        /// Number of records in them.
        record_count: u64 = |report| report.record_count;

        /// Bytes of the ``.log`` files.
        byte_count: u64 = |report| report.byte_count;
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let (ok, count) = (if self.0.is_ok() { "True" } else { "False" }, self.0.findings.len());
        format!("Report(path='{}', ok={ok}, findings={count})", self.0.path.display())
    }
}
