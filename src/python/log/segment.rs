//! `kbat.Segment`.

use std::ffi::OsString;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::log::Segment;
use crate::log::index::TransactionIndex;
use crate::log::producer::{ProducerStates, replay_segment};
use crate::python::arguments::limits::{PyLimits, limits_argument, or_default};
use crate::python::arguments::location::{StoreArguments, refuse_stored};
use crate::python::arguments::time::{instant, milliseconds};
use crate::python::batch::PyBatchIterator;
use crate::python::files::checkpoints::PyProducerEntry;
use crate::python::files::indexes::PyTransactionIndex;
use crate::python::html::{self, Table};
use crate::python::locations::segments::PySegmentFile;
use crate::python::log::places::{PyOffsetPlace, PyTimestampPlace};
use crate::python::runtime::errors::OrRaise;
use crate::store::LogFileKind;

/// A segment: a ``.log`` file and its indexes.
///
/// Indexes only speed up lookups. A missing or broken index makes them slower, never wrong. No file is kept open:
/// every call reads the current files.
///
/// Args:
///     path: The ``.log`` file, named after its base offset, or its URL; or a :class:`SegmentFile`, which has its
///         store.
///     limits: Bounds on untrusted input.
///     storage_options: How to open the store of a URL, with the names of object_store, such as
///         ``{"access_key_id": ..., "region": ..., "endpoint": ...}``. Default: the environment, such as
///         ``AWS_ACCESS_KEY_ID``, or the role of the machine.
///     store: A store of obstore; paths are relative to it.
///     encryption_keys: PEM files of private keys by their ids, for segments that Aiven's plugin has encrypted; or a
///         function that returns the PEM text of an id.
///     remote: Where the earlier segments of these logs are, in tiered storage or in a backup: a path or a URL. Each
///         offset is read once, from ``path`` if it is there. ``storage_options`` are those of the URLs,
///         and ``store`` is that of ``remote``.
///     remote_log_metadata: The log directory with the topic ``__remote_log_metadata``, or a partition directory or
///         ``.log`` file of it: only segments that it has as finished are read. Default with ``remote``: the
///         partitions in the log directory, if any.
///
/// Raises:
///     OSError: The file can't be read.
///     ValueError: The file's name does not contain a base offset, or ``remote`` has no effect on a local file.
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
    #[pyo3(
        signature = (path, *, limits=None, **stores),
        text_signature = "(path, *, limits=None, storage_options=None, store=None, encryption_keys=None, remote=None, remote_log_metadata=None)"
    )]
    fn new(
        py: Python<'_>,
        path: &Bound<'_, PyAny>,
        limits: Option<PyLimits>,
        stores: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let stores = StoreArguments::new("Segment", stores)?;
        let path = match path.cast::<PySegmentFile>() {
            Ok(found) => found.get().0.path.clone(),
            Err(_) => stores.locate_one(py, path.extract()?)?,
        };
        let limits = or_default(limits);
        py.detach(|| Segment::open_with(&path, &limits)).map(Self).or_raise(py)
    }

    /// Path of the ``.log`` file.
    #[getter]
    fn path(&self) -> OsString {
        self.0.path().as_os_str().to_owned()
    }

    /// Base offset, from the file's name.
    #[getter]
    fn base_offset(&self) -> i64 {
        self.0.base_offset()
    }

    /// Bytes of the ``.log`` file when the segment was opened.
    #[getter]
    fn size(&self) -> u64 {
        self.0.size()
    }

    /// ``"live"``, ``"deleted"``, ``"cleaned"`` or ``"swap"``, from the file's name.
    #[getter]
    fn state(&self) -> &'static str {
        self.0.state().name()
    }

    /// The offset after the last batch; the base offset of a segment without batches.
    #[getter]
    fn end_offset(&self, py: Python<'_>) -> PyResult<i64> {
        py.detach(|| self.0.end_offset()).or_raise(py)
    }

    /// Bytes of an incomplete batch at the end of the file, which ``end_offset`` does not count.
    ///
    /// A broker that is writing leaves one, and so does a crash. 0 if a batch or zeros end the file.
    #[getter]
    fn incomplete_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| self.0.incomplete_bytes()).or_raise(py)
    }

    /// Largest timestamp in milliseconds since the epoch, -1 if no record has one.
    #[getter]
    fn largest_timestamp(&self, py: Python<'_>) -> PyResult<i64> {
        py.detach(|| self.0.largest_timestamp()).or_raise(py).map(|largest| largest.timestamp)
    }

    /// Paths of the existing files: ``log``, ``index``, ``timeindex``, ``txnindex``, ``snapshot``.
    #[getter]
    fn files<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let files = PyDict::new(py);
        for kind in LogFileKind::ALL {
            let path = self.0.file(kind);
            if path.exists() {
                files.set_item(kind.suffix().trim_start_matches('.'), path.as_os_str())?;
            }
        }
        Ok(files)
    }

    /// Open the transaction index.
    ///
    /// Returns:
    ///     None if the segment has no ``.txnindex`` file.
    ///
    /// Raises:
    ///     OSError: The file can't be read.
    fn transaction_index(&self, py: Python<'_>) -> PyResult<Option<PyTransactionIndex>> {
        let path = self.0.file(LogFileKind::TransactionIndex);
        let index = py.detach(|| path.exists().then(|| TransactionIndex::open(&path)).transpose()).or_raise(py)?;
        Ok(index.map(PyTransactionIndex))
    }

    /// Return the producers at the end of the segment, as if the log began with it.
    fn _producers(&self, py: Python<'_>) -> PyResult<Vec<PyProducerEntry>> {
        let mut states = ProducerStates::new();
        let replay = || replay_segment(&mut states, self.0.location(), i64::MIN, self.0.limits());
        py.detach(replay).or_raise(py)?;
        Ok(states.to_snapshot().entries.into_iter().map(PyProducerEntry::from).collect())
    }

    /// Find the batch that contains an offset, or the next batch if the offset is in a gap or before the segment.
    ///
    /// Args:
    ///     offset: The offset.
    ///
    /// Returns:
    ///     The batch; None if the segment ends before the offset.
    ///
    /// Raises:
    ///     CorruptError: The log can't be read up to the batch.
    ///     OSError: A file can't be read.
    fn find_offset(&self, py: Python<'_>, offset: i64) -> PyResult<Option<PyOffsetPlace>> {
        let place = py.detach(|| self.0.find_offset(offset)).or_raise(py)?;
        Ok(place.map(|place| PyOffsetPlace::new(self.0.path().as_os_str().to_owned(), place)))
    }

    /// Find the first record, in the order of the log, with this timestamp or a later one.
    ///
    /// Args:
    ///     timestamp: Milliseconds since the epoch.
    ///     starting_offset: Smallest offset of the record. Default: the base offset.
    ///
    /// Returns:
    ///     Timestamp, offset and leader epoch of the record, or None.
    ///
    /// Raises:
    ///     CorruptError: The log or its records can't be read up to the record.
    ///     OSError: A file can't be read.
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

    /// Check whether all records are older than a timestamp, using the time index and headers.
    ///
    /// Args:
    ///     timestamp: Milliseconds since the epoch.
    ///
    /// Returns:
    ///     False also if this is unknown: for compressed sets of v0 and v1, whose wrappers have the timestamp that
    ///     their client wrote, and if bytes at the end are not a batch or offsets are missing, as a corrupt length
    ///     may hide newer batches.
    ///
    /// Raises:
    ///     CorruptError: The log can't be read to its end.
    ///     OSError: A file can't be read.
    fn is_older(&self, py: Python<'_>, timestamp: &Bound<'_, PyAny>) -> PyResult<bool> {
        let timestamp = instant(timestamp)?;
        py.detach(|| self.0.is_older(timestamp)).or_raise(py)
    }

    /// Iterate over the batches, starting at a position at which a batch begins: 0 or that of a lookup's result.
    ///
    /// Args:
    ///     start_position: Byte in the ``.log`` file.
    ///     check_crc: Whether to verify the checksum of a batch before its records are read.
    ///
    /// Raises:
    ///     OSError: The file can't be read.
    #[pyo3(signature = (start_position=0, *, check_crc=true))]
    fn batches(&self, py: Python<'_>, start_position: u64, check_crc: bool) -> PyResult<PyBatchIterator> {
        PyBatchIterator::open_at(py, self.0.location(), start_position, check_crc, self.0.limits())
    }

    /// Scan the segment's records as Arrow columns: :func:`kbat.scan` with this segment as its source.
    #[pyo3(signature = (**options))]
    fn scan<'py>(slf: &Bound<'py, Self>, options: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
        scan_of(slf.as_any(), options)
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

    /// Supports pickling.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((OsString,), Bound<'py, PyDict>)> {
        refuse_stored(self.0.location())?;
        Ok(((self.path(),), limits_argument(py, self.0.limits())?))
    }
}

/// Calls `kbat.scan` with a segment or partition.
pub(crate) fn scan_of<'py>(
    source: &Bound<'py, PyAny>,
    options: Option<&Bound<'py, PyDict>>,
) -> PyResult<Bound<'py, PyAny>> {
    source.py().import("kbat")?.getattr("scan")?.call((source,), options)
}
