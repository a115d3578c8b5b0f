//! A pass of a scan: its Arrow batches in order, and its counters.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_schema::SchemaRef;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrow::{ArrowScan, BatchScan, ParallelScan, ScanStats, SegmentScan};
use crate::plural::count_of;
use crate::python::arrow::batch::PyArrowBatch;
use crate::python::arrow::lists;
use crate::python::arrow::scan::progress::Waiting;
use crate::python::runtime::errors::OrRaise;
use crate::python::runtime::exclusive::Exclusive;
use crate::python::runtime::fields::fields;
use crate::python::runtime::warning::warn;

/// The view that a pass reads.
pub(crate) enum ViewScan {
    Records(Box<ArrowScan>),
    Parallel(Box<ParallelScan>),
    Batches(Box<BatchScan>),
    Segments(Box<SegmentScan>),
}

/// Counters that a scan shares with its passes.
pub(crate) type SharedStats = Arc<Mutex<Option<ScanStats>>>;

/// A pass. It updates its own counters and those of its scan.
pub(crate) struct Pass {
    view: ViewScan,
    /// Its own counters, which other threads can read while it runs.
    own: SharedStats,
    shared: SharedStats,
    waiting: Waiting,
}

impl Pass {
    pub(crate) fn new(view: ViewScan, shared: SharedStats, waiting: Waiting) -> Self {
        let pass = Self { view, own: SharedStats::default(), shared, waiting };
        pass.share();
        pass
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        match &self.view {
            ViewScan::Records(scan) => scan.schema(),
            ViewScan::Parallel(scan) => scan.schema(),
            ViewScan::Batches(scan) => scan.schema(),
            ViewScan::Segments(scan) => scan.schema(),
        }
    }

    pub(crate) fn stats(&self) -> ScanStats {
        match &self.view {
            ViewScan::Records(scan) => scan.stats(),
            ViewScan::Parallel(scan) => scan.stats(),
            ViewScan::Batches(scan) => scan.stats(),
            ViewScan::Segments(scan) => scan.stats(),
        }
    }

    /// Bytes processed so far; 0 for segments, whose bytes are not read.
    fn walked(&self) -> u64 {
        match &self.view {
            ViewScan::Records(scan) => scan.walked(),
            ViewScan::Parallel(scan) => scan.walked(),
            ViewScan::Batches(scan) => scan.walked(),
            ViewScan::Segments(_) => 0,
        }
    }

    /// The next Arrow batch for a Python caller. Releases the GIL, checks for signals and reports progress.
    pub(crate) fn advance(&mut self, py: Python<'_>) -> PyResult<Option<arrow_array::RecordBatch>> {
        let next = py.detach(|| self.next());
        if let Some(raised) = self.waiting.raised() {
            return Err(raised);
        }
        let next = next.transpose().or_raise(py)?;
        if next.is_some() {
            self.waiting.report(py, self.walked())?;
        } else {
            self.waiting.end(py)?;
            warn_of_missing(py, &self.stats())?;
        }
        Ok(next)
    }

    fn share(&self) {
        let stats = Some(self.stats());
        for cell in [&self.own, &self.shared] {
            *cell.lock().unwrap_or_else(PoisonError::into_inner) = stats;
        }
    }
}

impl Iterator for Pass {
    type Item = crate::error::Result<arrow_array::RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        let next = match &mut self.view {
            ViewScan::Records(scan) => scan.next(),
            ViewScan::Parallel(scan) => scan.next(),
            ViewScan::Batches(scan) => scan.next(),
            ViewScan::Segments(scan) => scan.next(),
        };
        self.share();
        next
    }
}

/// What to say about records that are missing, if there are any.
pub(crate) fn warning_of_missing(stats: &ScanStats) -> Option<String> {
    (stats.segments_deleted > 0).then(|| {
        let segments = count_of(stats.segments_deleted, "segment");
        format!("records are missing: retention deleted {segments} before the scan reached them")
    })
}

/// Warns of records that are missing, if there are any.
pub(crate) fn warn_of_missing(py: Python<'_>, stats: &ScanStats) -> PyResult<()> {
    warn(py, warning_of_missing(stats).as_slice())
}

/// What a pass of a :class:`Scan` has read and lost.
#[pyclass(frozen, name = "ScanStats", module = "kbat")]
pub(crate) struct PyScanStats(pub(crate) ScanStats);

fields! {
    PyScanStats {
        /// Number of batches whose records were returned.
        batches: u64 = |stats| stats.batches;

        /// Number of rows returned, without rows that describe an error.
        records: u64 = |stats| stats.records;

        /// Bytes read from files; for buffers, bytes of the batches processed.
        bytes_read: u64 = |stats| stats.bytes_read;

        /// Number of corruptions skipped: damaged batches, or ranges of bytes without a valid batch.
        batches_skipped: u64 = |stats| stats.batches_skipped;

        /// Bytes skipped, and of an incomplete batch at the end, which `fail` accepts too.
        bytes_lost: u64 = |stats| stats.bytes_lost;

        /// Number of offsets between the last good batch before and the next one after each corruption.
        ///
        /// Includes offsets that compaction had removed.
        offsets_lost: u64 = |stats| stats.offsets_lost;

        /// Number of segments that retention deleted after the log was listed, so that their records were not read.
        segments_deleted: u64 = |stats| stats.segments_deleted;

        /// Number of segments (or parts) with offsets of the next one, so that records may have been returned twice.
        segments_overlapping: u64 = |stats| stats.segments_overlapping;
    }

    fn __repr__(&self) -> String {
        let ScanStats {
            batches,
            records,
            bytes_read,
            batches_skipped,
            bytes_lost,
            offsets_lost,
            segments_deleted,
            segments_overlapping,
        } = self.0;
        format!(
            "ScanStats(batches={batches}, records={records}, bytes_read={bytes_read}, \
             batches_skipped={batches_skipped}, bytes_lost={bytes_lost}, offsets_lost={offsets_lost}, \
             segments_deleted={segments_deleted}, segments_overlapping={segments_overlapping})"
        )
    }
}

/// Iterates over Arrow batches as ``pyarrow.RecordBatch``; see :meth:`Scan.to_batches`.
#[pyclass(frozen, name = "ArrowBatchIterator", module = "kbat")]
pub(crate) struct PyArrowBatchIterator {
    pass: Exclusive<Pass>,
    stats: SharedStats,
}

impl PyArrowBatchIterator {
    pub(crate) fn new(pass: Pass) -> Self {
        let stats = Arc::clone(&pass.own);
        Self { pass: Exclusive::new(pass), stats }
    }
}

#[pymethods]
impl PyArrowBatchIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self.next_for_anyone(py)? {
            Some(batch) => py.import("pyarrow")?.call_method1("record_batch", (batch,)).map(Some),
            None => Ok(None),
        }
    }

    /// The next Arrow batch as an object with `__arrow_c_array__`, for consumers that do not use pyarrow; None at
    /// the end.
    #[pyo3(name = "_next")]
    fn next_for_anyone(&self, py: Python<'_>) -> PyResult<Option<PyArrowBatch>> {
        // attached inside the closure: `advance` releases the GIL except while it calls Python
        let next = self.pass.with(py, |pass| Python::attach(|py| pass.advance(py)))?;
        Ok(next?.map(PyArrowBatch))
    }

    /// The columns of the next Arrow batch by their names, as lists, for programs without pyarrow; None at the end.
    /// Times are whole numbers.
    #[pyo3(name = "_next_columns")]
    fn next_columns<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let next = self.pass.with(py, |pass| Python::attach(|py| pass.advance(py)))?;
        next?.map(|batch| lists::columns(py, &batch)).transpose()
    }

    /// What this pass has read and lost so far.
    ///
    /// With several threads, rows that were decoded and not taken are counted, too.
    #[getter]
    fn stats(&self) -> PyScanStats {
        PyScanStats(self.stats.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or_default())
    }
}
