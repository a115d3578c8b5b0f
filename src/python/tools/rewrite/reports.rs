//! The reports of `compact`, `filter` and `rewrite`.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::broker::convert::Loss;
use crate::rewrite::{CompactReport, Counts, FilterReport, RewriteReport};

/// Counts of what was read or written.
#[pyclass(frozen, name = "RewriteCounts", module = "kbat", eq)]
#[derive(PartialEq)]
pub(super) struct PyRewriteCounts(pub(super) Counts);

#[pymethods]
impl PyRewriteCounts {
    /// Number of segments.
    #[getter]
    fn segments(&self) -> u64 {
        self.0.segments
    }

    /// Number of batches. A message of magic 0 or 1 outside of a compressed set counts as one.
    #[getter]
    fn batches(&self) -> u64 {
        self.0.batches
    }

    /// Number of records, including control records.
    #[getter]
    fn records(&self) -> u64 {
        self.0.records
    }

    /// Bytes of batches.
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Return the counts as a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let Counts { segments, batches, records, bytes } = self.0;
        dict(py, &[("segments", segments), ("batches", batches), ("records", records), ("bytes", bytes)])
    }

    fn __repr__(&self) -> String {
        let Counts { segments, batches, records, bytes } = self.0;
        format!("RewriteCounts(segments={segments}, batches={batches}, records={records}, bytes={bytes})")
    }
}

fn dict<'py>(py: Python<'py>, entries: &[(&str, u64)]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    entries.iter().try_for_each(|(name, count)| dict.set_item(name, count))?;
    Ok(dict)
}

/// The result of :func:`compact`.
#[pyclass(frozen, name = "CompactReport", module = "kbat")]
pub(super) struct PyCompactReport(pub(super) CompactReport);

#[pymethods]
impl PyCompactReport {
    /// Counts of the input in the compacted part.
    #[getter]
    fn read(&self) -> PyRewriteCounts {
        PyRewriteCounts(self.0.read)
    }

    /// Counts of the output in the compacted part.
    #[getter]
    fn written(&self) -> PyRewriteCounts {
        PyRewriteCounts(self.0.written)
    }

    /// Number of segments after that part, which were copied.
    #[getter]
    fn untouched_segments(&self) -> u64 {
        self.0.untouched_segments
    }

    /// Records dropped, by reason: ``superseded``, ``tombstones``, ``null_keys``, ``aborted``, ``markers``.
    #[getter]
    fn dropped<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dropped = self.0.dropped;
        let entries = [
            ("superseded", dropped.superseded),
            ("tombstones", dropped.tombstones),
            ("null_keys", dropped.null_keys),
            ("aborted", dropped.aborted),
            ("markers", dropped.markers),
        ];
        dict(py, &entries)
    }

    /// Number of tombstones kept.
    #[getter]
    fn tombstones_retained(&self) -> u64 {
        self.0.tombstones_retained
    }

    /// Number of batches that got a delete horizon.
    #[getter]
    fn delete_horizons_set(&self) -> u64 {
        self.0.delete_horizons_set
    }

    /// Number of batches of which only the header was kept.
    #[getter]
    fn emptied_batches(&self) -> u64 {
        self.0.emptied_batches
    }

    /// First offset that was not compacted before.
    #[getter]
    fn first_dirty_offset(&self) -> i64 {
        self.0.first_dirty_offset
    }

    /// First offset after the compacted part: the next run's ``first_dirty_offset``.
    #[getter]
    fn first_uncleanable_offset(&self) -> i64 {
        self.0.first_uncleanable_offset
    }

    /// First offset of the earliest open transaction, or the end of the log.
    #[getter]
    fn last_stable_offset(&self) -> i64 {
        self.0.last_stable_offset
    }

    /// The offset after the last batch.
    #[getter]
    fn end_offset(&self) -> i64 {
        self.0.end_offset
    }

    /// Number of parts into which the keys were split; 1 if all keys fit ``max_map_bytes``.
    #[getter]
    fn key_parts(&self) -> u64 {
        self.0.key_parts
    }

    /// Bytes at the ends of segments that are not a batch, such as a truncated one; they are not copied.
    #[getter]
    fn tail_bytes(&self) -> u64 {
        self.0.tail_bytes
    }

    /// Return the fields as a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = dict(
            py,
            &[
                ("untouched_segments", self.0.untouched_segments),
                ("tombstones_retained", self.0.tombstones_retained),
                ("delete_horizons_set", self.0.delete_horizons_set),
                ("emptied_batches", self.0.emptied_batches),
                ("key_parts", self.0.key_parts),
                ("tail_bytes", self.0.tail_bytes),
            ],
        )?;
        report.set_item("read", self.read().to_dict(py)?)?;
        report.set_item("written", self.written().to_dict(py)?)?;
        report.set_item("dropped", self.dropped(py)?)?;
        report.set_item("first_dirty_offset", self.0.first_dirty_offset)?;
        report.set_item("first_uncleanable_offset", self.0.first_uncleanable_offset)?;
        report.set_item("last_stable_offset", self.0.last_stable_offset)?;
        report.set_item("end_offset", self.0.end_offset)?;
        Ok(report)
    }

    fn __repr__(&self) -> String {
        format!("CompactReport({} of {} records kept)", self.0.written.records, self.0.read.records)
    }
}

/// The result of :func:`filter`.
#[pyclass(frozen, name = "FilterReport", module = "kbat")]
pub(super) struct PyFilterReport(pub(super) FilterReport);

#[pymethods]
impl PyFilterReport {
    /// Counts of the input.
    #[getter]
    fn read(&self) -> PyRewriteCounts {
        PyRewriteCounts(self.0.read)
    }

    /// Counts of the output.
    #[getter]
    fn written(&self) -> PyRewriteCounts {
        PyRewriteCounts(self.0.written)
    }

    /// Number of records dropped.
    #[getter]
    fn dropped_records(&self) -> u64 {
        self.0.dropped_records
    }

    /// Number of batches dropped because they had no record left.
    #[getter]
    fn dropped_batches(&self) -> u64 {
        self.0.dropped_batches
    }

    /// Number of batches of which only the header was kept.
    #[getter]
    fn emptied_batches(&self) -> u64 {
        self.0.emptied_batches
    }

    /// Number of batches that lost some of their records.
    #[getter]
    fn rebuilt_batches(&self) -> u64 {
        self.0.rebuilt_batches
    }

    /// The offset after the last batch.
    #[getter]
    fn end_offset(&self) -> i64 {
        self.0.end_offset
    }

    /// Bytes at the ends of segments that are not a batch, such as a truncated one; they are not copied.
    #[getter]
    fn tail_bytes(&self) -> u64 {
        self.0.tail_bytes
    }

    /// Return the fields as a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = dict(
            py,
            &[
                ("dropped_records", self.0.dropped_records),
                ("dropped_batches", self.0.dropped_batches),
                ("emptied_batches", self.0.emptied_batches),
                ("rebuilt_batches", self.0.rebuilt_batches),
                ("tail_bytes", self.0.tail_bytes),
            ],
        )?;
        report.set_item("read", self.read().to_dict(py)?)?;
        report.set_item("written", self.written().to_dict(py)?)?;
        report.set_item("end_offset", self.0.end_offset)?;
        Ok(report)
    }

    fn __repr__(&self) -> String {
        format!("FilterReport({} of {} records dropped)", self.0.dropped_records, self.0.read.records)
    }
}

/// The result of :func:`rewrite`.
#[pyclass(frozen, name = "RewriteReport", module = "kbat")]
pub(super) struct PyRewriteReport(pub(super) RewriteReport);

#[pymethods]
impl PyRewriteReport {
    /// Counts of the input.
    #[getter]
    fn read(&self) -> PyRewriteCounts {
        PyRewriteCounts(self.0.read)
    }

    /// Counts of the output.
    #[getter]
    fn written(&self) -> PyRewriteCounts {
        PyRewriteCounts(self.0.written)
    }

    /// Records dropped because transactions can't be kept: ``aborted``, ``control``.
    #[getter]
    fn dropped<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        dict(py, &[("aborted", self.0.dropped.aborted), ("control", self.0.dropped.control)])
    }

    /// Features that the message format does not support, by the names of :func:`convert`.
    #[getter]
    fn losses(&self) -> Vec<&'static str> {
        self.0.losses.iter().map(Loss::name).collect()
    }

    /// The offset after the last batch of the source.
    #[getter]
    fn end_offset(&self) -> i64 {
        self.0.end_offset
    }

    /// Bytes at the ends of segments that are not a batch, such as a truncated one; they are not copied.
    #[getter]
    fn tail_bytes(&self) -> u64 {
        self.0.tail_bytes
    }

    /// Return the fields as a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let report = PyDict::new(py);
        report.set_item("read", self.read().to_dict(py)?)?;
        report.set_item("written", self.written().to_dict(py)?)?;
        report.set_item("dropped", self.dropped(py)?)?;
        report.set_item("losses", self.losses())?;
        report.set_item("end_offset", self.0.end_offset)?;
        report.set_item("tail_bytes", self.0.tail_bytes)?;
        Ok(report)
    }

    fn __repr__(&self) -> String {
        format!("RewriteReport({} to {} bytes)", self.0.read.bytes, self.0.written.bytes)
    }
}
