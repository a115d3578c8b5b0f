//! `kbat.Segment`.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::log::Segment;
use crate::python::batch::PyBatchIterator;
use crate::python::errors::OrRaise;
use crate::python::html::{self, Table};
use crate::python::limits::{PyLimits, limits_argument, or_default};
use crate::python::places::{PyOffsetPlace, PyTimestampPlace};
use crate::python::time::{instant, milliseconds};
use crate::store::LogFileKind;

/// A segment: a ``.log`` file with the indexes beside it.
///
/// The log decides every answer; an index only says where to begin looking, and a missing or broken one costs time,
/// not truth. No file is held open: every call sees the files as they are then.
///
/// Args:
///     path: The ``.log`` file, named after its base offset.
///     limits: Bounds on untrusted input.
///
/// Raises:
///     OSError: The file can't be read.
///     ValueError: A name that tells no base offset.
///
/// Example:
///     >>> segment = kbat.Segment("orders-0/00000000000000000000.log")
///     >>> place = segment.find_offset(5000)
///     >>> next(iter(segment.batches(place.position)))
#[pyclass(frozen, name = "Segment", module = "kbat")]
#[derive(Clone)]
pub(crate) struct PySegment(pub(crate) Segment);

#[pymethods]
impl PySegment {
    #[new]
    #[pyo3(signature = (path, *, limits=None))]
    fn new(py: Python<'_>, path: PathBuf, limits: Option<PyLimits>) -> PyResult<Self> {
        Segment::open_with(&path, &or_default(limits)).map(Self).or_raise(py)
    }

    /// The ``.log`` file.
    #[getter]
    fn path(&self) -> OsString {
        self.0.path().as_os_str().to_owned()
    }

    /// Base offset, from the name.
    #[getter]
    fn base_offset(&self) -> i64 {
        self.0.base_offset()
    }

    /// Bytes of the ``.log`` file when the segment was opened.
    #[getter]
    fn size(&self) -> u64 {
        self.0.size()
    }

    /// ``"live"``, ``"deleted"``, ``"cleaned"`` or ``"swap"``, from the name.
    #[getter]
    fn state(&self) -> &'static str {
        self.0.state().name()
    }

    /// The offset after the last batch; the base offset of a segment without batches.
    #[getter]
    fn end_offset(&self, py: Python<'_>) -> PyResult<i64> {
        py.detach(|| self.0.end_offset()).or_raise(py)
    }

    /// Largest timestamp in milliseconds since the epoch, -1 where no record has one.
    #[getter]
    fn largest_timestamp(&self, py: Python<'_>) -> PyResult<i64> {
        py.detach(|| self.0.largest_timestamp()).or_raise(py).map(|largest| largest.timestamp)
    }

    /// Paths of the files that are there: ``log``, ``index``, ``timeindex``, ``txnindex``, ``snapshot``.
    #[getter]
    fn files<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let files = PyDict::new(py);
        for kind in LogFileKind::ALL {
            let path = self.0.file(kind);
            if path.exists() {
                files.set_item(kind.suffix().trim_start_matches('.'), path.into_os_string())?;
            }
        }
        Ok(files)
    }

    /// Find the batch that holds an offset, or the next one where the offset lies in a gap or before the segment.
    ///
    /// Args:
    ///     offset: The offset.
    ///
    /// Returns:
    ///     The place; None where the segment ends before the offset.
    ///
    /// Raises:
    ///     CorruptError: A log that can't be walked up to the batch.
    ///     OSError: A file that can't be read.
    fn find_offset(&self, py: Python<'_>, offset: i64) -> PyResult<Option<PyOffsetPlace>> {
        let place = py.detach(|| self.0.find_offset(offset)).or_raise(py)?;
        Ok(place.map(|place| PyOffsetPlace::new(self.0.path().as_os_str().to_owned(), place)))
    }

    /// Find the first record, in the order of the log, that is not older than a time.
    ///
    /// Args:
    ///     timestamp: Milliseconds since the epoch.
    ///     starting_offset: The record's offset is at least this; default the base offset.
    ///
    /// Returns:
    ///     Timestamp, offset and leader epoch of the record, or None.
    ///
    /// Raises:
    ///     CorruptError: A log or records that can't be read up to the record.
    ///     OSError: A file that can't be read.
    #[pyo3(signature = (timestamp, starting_offset=None))]
    fn find_timestamp(
        &self,
        py: Python<'_>,
        timestamp: &Bound<'_, PyAny>,
        starting_offset: Option<i64>,
    ) -> PyResult<Option<PyTimestampPlace>> {
        let timestamp = milliseconds(timestamp)?;
        let place = py.detach(|| self.0.find_timestamp(timestamp, starting_offset)).or_raise(py)?;
        Ok(place.map(PyTimestampPlace))
    }

    /// Tell whether all records are known to be older than a time, by the time index and headers.
    ///
    /// Args:
    ///     timestamp: Milliseconds since the epoch.
    ///
    /// Returns:
    ///     False also where that can't be told: with sets of v0 and v1, whose wrappers have what their client wrote,
    ///     and with bytes at the end that are no batch.
    ///
    /// Raises:
    ///     CorruptError: A log that can't be walked to its end.
    ///     OSError: A file that can't be read.
    fn is_older(&self, py: Python<'_>, timestamp: &Bound<'_, PyAny>) -> PyResult<bool> {
        let timestamp = instant(timestamp)?;
        py.detach(|| self.0.is_older(timestamp)).or_raise(py)
    }

    /// Iterate the batches from a byte on, where a batch must begin: 0, or the position of a place that was found.
    ///
    /// Args:
    ///     start_position: Byte in the ``.log`` file.
    ///     check_crc: Whether the checksum of a batch is checked before its records are read.
    ///
    /// Raises:
    ///     OSError: The file can't be read.
    #[pyo3(signature = (start_position=0, *, check_crc=true))]
    fn batches(&self, py: Python<'_>, start_position: u64, check_crc: bool) -> PyResult<PyBatchIterator> {
        PyBatchIterator::open_at(py, self.0.path(), start_position, check_crc, self.0.limits())
    }

    /// Scan the segment's records as Arrow columns: :func:`kbat.scan` with this segment as its source.
    #[pyo3(signature = (**options))]
    fn scan<'py>(&self, py: Python<'py>, options: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
        scan_of(py, self.path(), options)
    }

    fn __repr__(&self) -> String {
        format!("Segment({}, {} bytes)", self.0.path().display(), self.0.size())
    }

    fn _repr_html_(&self) -> String {
        let files = LogFileKind::ALL.into_iter().filter(|&kind| self.0.file(kind).exists());
        Table::new("Segment")
            .row("file", self.0.path().display())
            .row("base offset", self.0.base_offset())
            .row("size", html::size(self.0.size()))
            .row("state", self.0.state().name())
            .row("files", files.map(LogFileKind::suffix).collect::<Vec<_>>().join(" "))
            .finish()
    }

    /// For pickling.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((OsString,), Bound<'py, PyDict>)> {
        Ok(((self.path(),), limits_argument(py, self.0.limits())?))
    }
}

/// `kbat.scan` of a path.
pub(crate) fn scan_of<'py>(
    py: Python<'py>,
    path: OsString,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    py.import("kbat")?.getattr("scan")?.call((path,), options)
}
