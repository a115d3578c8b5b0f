//! The reports of `recover`, `salvage` and `rebuild_indexes`.

use std::ffi::OsString;

use pyo3::prelude::*;

use crate::python::runtime::fields::fields;
use crate::repair::{DroppedRange, RepairReport, RepairedSegment};

/// A segment in the result of a repair.
#[pyclass(frozen, name = "RepairedSegment", module = "kbat", eq)]
#[derive(PartialEq)]
pub(super) struct PyRepairedSegment(RepairedSegment);

fields! {
    PyRepairedSegment {
        /// Base offset from the file's name.
        base_offset: i64 = |segment| segment.base_offset;

        /// Path of the file that was read.
        path: OsString = |segment| segment.path.as_os_str().to_owned();

        /// Bytes of the file that was read.
        bytes_before: u64 = |segment| segment.bytes_before;

        /// Bytes of batches in the result.
        bytes_after: u64 = |segment| segment.bytes_after;

        /// Number of batches in the result.
        batch_count: u64 = |segment| segment.batch_count;
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

fields! {
    PyDroppedRange {
        /// Path of the file.
        path: OsString = |range| range.path.as_os_str().to_owned();

        /// Position of the first byte.
        position: u64 = |range| range.position;

        /// Number of bytes.
        length: u64 = |range| range.length;

        /// The first offset that may be lost; None if no offset is.
        first_offset: Option<i64> = |range| range.first_offset;

        /// The last offset that may be lost; None if no offset is, or if it is unknown.
        last_offset: Option<i64> = |range| range.last_offset;

        /// Why the bytes were dropped, a stable name in snake_case.
        reason: &'static str = |range| range.reason;

        /// Why the bytes were dropped, in words.
        message: &str = |range| &range.message;

        /// Transactions that were open before the range, as ``(producer_id, first_offset)``: their ends may be in it.
        ///
        /// Only :func:`salvage` lists them, at most 100, for the first of several ranges without a batch between them.
        open_transactions: Vec<(i64, i64)> =
            |range| range.open_transactions.iter().map(|open| (open.producer_id, open.first_offset)).collect();
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

fields! {
    PyRepairReport {
        /// Path that was read.
        path: OsString = |report| report.path.as_os_str().to_owned();

        /// Path of the result; None if the directory was changed in place or nothing was written.
        out: Option<OsString> = |report| report.out.as_ref().map(|out| out.as_os_str().to_owned());

        /// Whether this is a dry run: nothing was written, and the report describes what would be done.
        dry_run: bool = |report| report.dry_run;

        /// The segments of the result, sorted by base offset.
        segments: Vec<PyRepairedSegment> = |report| report.segments.iter().cloned().map(PyRepairedSegment).collect();

        /// Bytes of the input that are not in any segment of the result.
        ///
        /// For :func:`rebuild_indexes`, bytes that no index covers.
        dropped: Vec<PyDroppedRange> = |report| report.dropped.iter().cloned().map(PyDroppedRange).collect();

        /// Files as ``(name, action)``: ``"written"``, ``"deleted"``, ``"truncated"``, ``"renamed"``.
        ///
        /// ``.log`` files of a copy are omitted.
        files: Vec<(String, &'static str)> =
            |report| report.files.iter().map(|change| (change.name.clone(), change.action.name())).collect();

        /// Whether every byte of the input is in the result.
        is_complete: bool = |report| report.is_complete();

        /// Base offset of the first segment.
        start_offset: i64 = |report| report.start_offset;

        /// The offset after the last batch.
        end_offset: i64 = |report| report.end_offset;
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let (segments, dropped) = (self.0.segments.len(), self.0.dropped.len());
        format!("RepairReport(path='{}', segments={segments}, dropped={dropped})", self.0.path.display())
    }
}
