//! The reports of `recover`, `salvage` and `rebuild_indexes`.

use std::ffi::OsString;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::repair::{DroppedRange, RepairReport, RepairedSegment};

/// A segment in the result of a repair.
#[pyclass(frozen, name = "RepairedSegment", module = "kbat", eq)]
#[derive(PartialEq)]
pub(super) struct PyRepairedSegment(RepairedSegment);

#[pymethods]
impl PyRepairedSegment {
    /// Base offset from the file's name.
    #[getter]
    fn base_offset(&self) -> i64 {
        self.0.base_offset
    }

    /// Path of the file that was read.
    #[getter]
    fn path(&self) -> OsString {
        self.0.path.as_os_str().to_owned()
    }

    /// Bytes of the file that was read.
    #[getter]
    fn bytes_before(&self) -> u64 {
        self.0.bytes_before
    }

    /// Bytes of batches in the result.
    #[getter]
    fn bytes_after(&self) -> u64 {
        self.0.bytes_after
    }

    /// Number of batches in the result.
    #[getter]
    fn batch_count(&self) -> u64 {
        self.0.batch_count
    }

    /// Return the fields as a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("base_offset", self.base_offset())?;
        dict.set_item("path", self.path())?;
        dict.set_item("bytes_before", self.bytes_before())?;
        dict.set_item("bytes_after", self.bytes_after())?;
        dict.set_item("batch_count", self.batch_count())?;
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        let (base, before, after) = (self.0.base_offset, self.0.bytes_before, self.0.bytes_after);
        format!("RepairedSegment(base_offset={base}, bytes_before={before}, bytes_after={after})")
    }
}

/// Bytes of the input that are not in the result of a repair.
#[pyclass(frozen, name = "DroppedRange", module = "kbat", eq)]
#[derive(PartialEq)]
pub(super) struct PyDroppedRange(DroppedRange);

#[pymethods]
impl PyDroppedRange {
    /// Path of the file.
    #[getter]
    fn path(&self) -> OsString {
        self.0.path.as_os_str().to_owned()
    }

    /// Position of the first byte.
    #[getter]
    fn position(&self) -> u64 {
        self.0.position
    }

    /// Number of bytes.
    #[getter]
    fn length(&self) -> u64 {
        self.0.length
    }

    /// The first offset that may be lost; None if no offset is.
    #[getter]
    fn first_offset(&self) -> Option<i64> {
        self.0.first_offset
    }

    /// The last offset that may be lost; None if no offset is, or if it is unknown.
    #[getter]
    fn last_offset(&self) -> Option<i64> {
        self.0.last_offset
    }

    /// Why the bytes were dropped, a stable name in snake_case.
    #[getter]
    fn reason(&self) -> &'static str {
        self.0.reason
    }

    /// Why the bytes were dropped, in words.
    #[getter]
    fn message(&self) -> &str {
        &self.0.message
    }

    /// Return the fields as a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("path", self.path())?;
        dict.set_item("position", self.position())?;
        dict.set_item("length", self.length())?;
        dict.set_item("first_offset", self.first_offset())?;
        dict.set_item("last_offset", self.last_offset())?;
        dict.set_item("reason", self.reason())?;
        dict.set_item("message", self.message())?;
        Ok(dict)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<DroppedRange {}>", self.0)
    }
}

/// The result of :func:`recover`, :func:`salvage` or :func:`rebuild_indexes`.
///
/// ``str(report)`` is a text with one line per finding.
#[pyclass(frozen, name = "RepairReport", module = "kbat")]
pub(super) struct PyRepairReport(pub(super) RepairReport);

#[pymethods]
impl PyRepairReport {
    /// Path that was read.
    #[getter]
    fn path(&self) -> OsString {
        self.0.path.as_os_str().to_owned()
    }

    /// Path of the result; None if the directory was changed in place or nothing was written.
    #[getter]
    fn out(&self) -> Option<OsString> {
        self.0.out.as_ref().map(|out| out.as_os_str().to_owned())
    }

    /// Whether this is a dry run: nothing was written, and the report describes what would be done.
    #[getter]
    fn dry_run(&self) -> bool {
        self.0.dry_run
    }

    /// The segments of the result, sorted by base offset.
    #[getter]
    fn segments(&self) -> Vec<PyRepairedSegment> {
        self.0.segments.iter().cloned().map(PyRepairedSegment).collect()
    }

    /// Bytes of the input that are not in any segment of the result.
    ///
    /// For :func:`rebuild_indexes`, bytes that no index covers.
    #[getter]
    fn dropped(&self) -> Vec<PyDroppedRange> {
        self.0.dropped.iter().cloned().map(PyDroppedRange).collect()
    }

    /// Files as ``(name, action)``: ``"written"``, ``"deleted"``, ``"truncated"``, ``"renamed"``.
    ///
    /// ``.log`` files of a copy are omitted.
    #[getter]
    fn files(&self) -> Vec<(String, &'static str)> {
        self.0.files.iter().map(|change| (change.name.clone(), change.action.name())).collect()
    }

    /// Whether every byte of the input is in the result.
    #[getter]
    fn is_complete(&self) -> bool {
        self.0.is_complete()
    }

    /// Base offset of the first segment.
    #[getter]
    fn start_offset(&self) -> i64 {
        self.0.start_offset
    }

    /// The offset after the last batch.
    #[getter]
    fn end_offset(&self) -> i64 {
        self.0.end_offset
    }

    /// Return the fields as a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (segments, dropped) = (PyList::empty(py), PyList::empty(py));
        for segment in self.segments() {
            segments.append(segment.to_dict(py)?)?;
        }
        for range in self.dropped() {
            dropped.append(range.to_dict(py)?)?;
        }
        let dict = PyDict::new(py);
        dict.set_item("path", self.path())?;
        dict.set_item("out", self.out())?;
        dict.set_item("dry_run", self.dry_run())?;
        dict.set_item("segments", segments)?;
        dict.set_item("dropped", dropped)?;
        dict.set_item("files", self.files())?;
        dict.set_item("is_complete", self.is_complete())?;
        dict.set_item("start_offset", self.start_offset())?;
        dict.set_item("end_offset", self.end_offset())?;
        Ok(dict)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let (segments, dropped) = (self.0.segments.len(), self.0.dropped.len());
        format!("RepairReport(path='{}', segments={segments}, dropped={dropped})", self.0.path.display())
    }
}
