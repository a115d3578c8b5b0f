//! `kbat.PartitionLog`.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::io::Location;
use crate::log::{IndexUse, PartitionLog, TimestampPlace};
use crate::python::arguments::limits::{PyLimits, limits_argument, or_default};
use crate::python::arguments::location::{StoreArguments, refuse_stored};
use crate::python::arguments::time::milliseconds;
use crate::python::files::checkpoints::{PyProducerEntry, PyProducerSnapshot};
use crate::python::files::indexes::PyAbortedTransaction;
use crate::python::html::{self, Table};
use crate::python::log::places::{PyOffsetPlace, PyTimestampPlace};
use crate::python::log::segment::{PySegment, scan_of};
use crate::python::runtime::errors::OrRaise;
use crate::store::SnapshotFile;

/// Timestamp of a `ListOffsets` request for the end of the log.
pub(crate) const LATEST: i64 = -1;
/// Timestamp of a `ListOffsets` request for the start of the log.
pub(crate) const EARLIEST: i64 = -2;
/// Timestamp of a `ListOffsets` request for the record with the largest timestamp.
pub(crate) const MAX_TIMESTAMP: i64 = -3;

/// A partition directory: its segments as one log.
///
/// The constructor lists the directory once. Reading a segment that was deleted afterwards raises an error.
///
/// Args:
///     directory: The partition directory, or its URL. Topic and partition come from its name.
///     limits: Bounds on untrusted input, for everything read from the directory.
///     storage_options: How to open the store of a URL, with the names of object_store, such as
///         ``{"access_key_id": ..., "region": ..., "endpoint": ...}``. Default: the environment, such as
///         ``AWS_ACCESS_KEY_ID``, or the role of the machine.
///     store: A store of obstore; paths are relative to it.
///     encryption_keys: PEM files of private keys by their ids, for segments that Aiven's plugin has encrypted; or a
///         function that returns the PEM text of an id.
///     remote: Where the earlier segments of these logs are, in tiered storage or in a backup: a path or a URL. Each
///         offset is read once, from ``directory`` if it is there. ``storage_options`` are those of the URLs,
///         and ``store`` is that of ``remote``.
///     remote_log_metadata: The log directory with the topic ``__remote_log_metadata``, or a partition directory or
///         ``.log`` file of it: only segments that it has as finished are read. Default with ``remote``: the
///         partitions in the log directory, if any.
///
/// Raises:
///     OSError: The directory can't be read.
///
/// Example:
///     >>> log = kbat.PartitionLog("/var/lib/kafka/data/orders-0")
///     >>> log.start_offset, log.end_offset
///     (0, 1250)
///     >>> log.find_timestamp(1_700_000_000_000).offset
///     318
#[pyclass(frozen, name = "PartitionLog", module = "kbat")]
pub(crate) struct PyPartitionLog(pub(crate) PartitionLog);

#[pymethods]
impl PyPartitionLog {
    #[new]
    #[pyo3(
        signature = (directory, *, limits=None, **stores),
        text_signature = "(directory, *, limits=None, storage_options=None, store=None, encryption_keys=None, remote=None, remote_log_metadata=None)"
    )]
    fn new(
        py: Python<'_>,
        directory: PathBuf,
        limits: Option<PyLimits>,
        stores: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let (directory, limits) =
            (StoreArguments::new("PartitionLog", stores)?.locate_all(py, directory)?, or_default(limits));
        py.detach(|| PartitionLog::open_with(&directory, &limits)).map(Self).or_raise(py)
    }

    /// Path of the directory.
    #[getter]
    fn directory(&self) -> OsString {
        self.0.directory().as_os_str().to_owned()
    }

    /// Topic, if the directory's name contains one.
    #[getter]
    fn topic(&self) -> Option<&str> {
        self.0.topic_partition().map(|partition| partition.topic.as_str())
    }

    /// Partition, if the directory's name contains one.
    #[getter]
    fn partition(&self) -> Option<i32> {
        self.0.topic_partition().map(|partition| partition.partition)
    }

    /// Topic id from ``partition.metadata``, 22 characters of base64url; None in logs of old brokers.
    #[getter]
    fn topic_id(&self, py: Python<'_>) -> PyResult<Option<String>> {
        Ok(self.0.metadata().or_raise(py)?.map(|metadata| metadata.topic_id.to_string()))
    }

    /// The segments, sorted by base offset.
    #[getter]
    fn segments(&self) -> Vec<PySegment> {
        self.0.segments().iter().cloned().map(PySegment).collect()
    }

    /// Producer snapshots as ``(offset, path)``: each holds the state before its offset.
    #[getter]
    fn snapshots(&self) -> Vec<(i64, OsString)> {
        self.0.snapshots().iter().map(|(offset, path)| (*offset, path.as_os_str().to_owned())).collect()
    }

    /// Read a producer snapshot of this directory.
    ///
    /// Args:
    ///     offset: The offset of one of ``snapshots``.
    ///
    /// Raises:
    ///     ValueError: There is no snapshot of this offset.
    ///     CorruptError: The snapshot is damaged.
    ///     OSError: The file can't be read.
    fn producer_snapshot(&self, py: Python<'_>, offset: i64) -> PyResult<PyProducerSnapshot> {
        let found = self.0.snapshots().iter().find(|(known, _)| *known == offset);
        let Some((_, path)) = found else {
            return Err(PyValueError::new_err(format!("there is no producer snapshot of offset {offset}")));
        };
        PyProducerSnapshot::read(py, path)
    }

    /// Return the producers at the end of the log: of the newest readable snapshot, and of the batches after it.
    fn _producers(&self, py: Python<'_>) -> PyResult<Vec<PyProducerEntry>> {
        let states = py.detach(|| self.0.producers()).or_raise(py)?;
        Ok(states.to_snapshot().entries.into_iter().map(PyProducerEntry::from).collect())
    }

    /// KRaft snapshots of ``__cluster_metadata`` as ``(end_offset, epoch, path)``, the newest last.
    #[getter]
    fn metadata_snapshots(&self) -> Vec<(i64, i32, OsString)> {
        let named =
            |(file, path): &(SnapshotFile, Location)| (file.end_offset, file.epoch, path.as_os_str().to_owned());
        self.0.metadata_snapshots().iter().map(named).collect()
    }

    /// Files of an interrupted deletion or compaction: ``.deleted``, ``.cleaned`` and ``.swap`` files.
    #[getter]
    fn leftovers(&self) -> Vec<OsString> {
        self.0.leftovers().iter().map(|path| path.as_os_str().to_owned()).collect()
    }

    /// First offset that consumers may read.
    ///
    /// The offset in the log directory's ``log-start-offset-checkpoint`` if it is past the first segment's base
    /// offset, which is the default.
    #[getter]
    fn start_offset(&self) -> i64 {
        self.0.start_offset()
    }

    /// The offset that the next record will get.
    #[getter]
    fn end_offset(&self, py: Python<'_>) -> PyResult<i64> {
        py.detach(|| self.0.end_offset()).or_raise(py)
    }

    /// Leader epochs as ``(epoch, start_offset)``, from ``leader-epoch-checkpoint``.
    #[getter]
    fn leader_epochs(&self, py: Python<'_>) -> PyResult<Vec<(i32, i64)>> {
        let epochs = self.0.leader_epochs().or_raise(py)?;
        Ok(epochs.entries().iter().map(|entry| (entry.epoch, entry.start_offset)).collect())
    }

    /// The offset up to which a ``read_committed`` consumer may read.
    ///
    /// The first offset of the earliest transaction that is still open at the end of the log, or ``end_offset`` if
    /// none is. Corrupt batches are skipped, and so are transactions that begin in them: a scan with
    /// ``isolation="read_committed"`` raises an error for these.
    #[getter]
    fn last_stable_offset(&self, py: Python<'_>) -> PyResult<i64> {
        py.detach(|| self.0.last_stable_offset()).or_raise(py)
    }

    /// List the aborted transactions that a reader of a range of offsets needs.
    ///
    /// Uses the transaction indexes; scans the headers and markers of segments without one.
    ///
    /// Args:
    ///     start_offset: First offset of the range.
    ///     end_offset: First offset after the range.
    ///
    /// Returns:
    ///     The transactions in the order of their markers.
    ///
    /// Raises:
    ///     OSError: A file can't be read.
    fn aborted_transactions(
        &self,
        py: Python<'_>,
        start_offset: i64,
        end_offset: i64,
    ) -> PyResult<Vec<PyAbortedTransaction>> {
        let aborted = py.detach(|| self.0.aborted_transactions(start_offset, end_offset)).or_raise(py)?;
        Ok(aborted.into_iter().map(PyAbortedTransaction::from).collect())
    }

    /// Find the batch that contains an offset, or the next batch if the offset is in a gap.
    ///
    /// Args:
    ///     offset: The offset.
    ///
    /// Returns:
    ///     The batch; None below ``start_offset`` and from ``end_offset`` on.
    ///
    /// Raises:
    ///     CorruptError: The log can't be read up to the batch.
    ///     OSError: A file can't be read.
    fn find_offset(&self, py: Python<'_>, offset: i64) -> PyResult<Option<PyOffsetPlace>> {
        let found = py.detach(|| self.0.find_offset(offset)).or_raise(py)?;
        Ok(found.map(|(segment, place)| PyOffsetPlace::new(segment.path().as_os_str().to_owned(), place)))
    }

    /// Look up a timestamp as a broker does for a ``ListOffsets`` request.
    ///
    /// Args:
    ///     timestamp: Milliseconds since the epoch, a ``datetime`` or ISO 8601 text with a time zone, or
    ///         ``kbat.EARLIEST``, ``kbat.LATEST``, ``kbat.MAX_TIMESTAMP``.
    ///
    /// Returns:
    ///     The first record with this timestamp or a later one, in the first segment whose largest timestamp is not
    ///     earlier; None if there is none. For a segment without timestamps (v0, or empty), the modification time of
    ///     its file is used instead, as in a broker.
    ///
    /// Raises:
    ///     CorruptError: The log or its records can't be read up to the record.
    ///     OSError: A file can't be read.
    fn find_timestamp(&self, py: Python<'_>, timestamp: &Bound<'_, PyAny>) -> PyResult<Option<PyTimestampPlace>> {
        let timestamp = milliseconds(timestamp)?;
        let place = py.detach(|| match timestamp {
            EARLIEST => self.bound(self.0.start_offset()).map(Some),
            LATEST => self.0.end_offset().and_then(|end| self.bound(end)).map(Some),
            MAX_TIMESTAMP => self.0.find_max_timestamp(),
            _ => self.0.find_timestamp(timestamp),
        });
        Ok(place.or_raise(py)?.map(PyTimestampPlace))
    }

    /// Scan the partition's records as Arrow columns: :func:`kbat.scan` with this directory as its source.
    #[pyo3(signature = (**options))]
    fn scan<'py>(slf: &Bound<'py, Self>, options: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
        scan_of(slf.as_any(), options)
    }

    fn __len__(&self) -> usize {
        self.0.segments().len()
    }

    fn __repr__(&self) -> String {
        let size: u64 = self.0.segments().iter().map(crate::log::Segment::size).sum();
        format!("PartitionLog({}, {} segments, {size} bytes)", self.0.directory().display(), self.0.segments().len())
    }

    fn _repr_html_(&self) -> String {
        let segments = self.0.segments();
        let size: u64 = segments.iter().map(crate::log::Segment::size).sum();
        let caption = format!(
            "PartitionLog {}: {} in {} segments",
            self.0.directory().display(),
            html::size(size),
            segments.len()
        );
        let row = |segment: &crate::log::Segment| [segment.base_offset().to_string(), html::size(segment.size())];
        Table::new(&caption).list(["base offset", "size"], segments.iter().map(row)).finish()
    }

    /// Supports pickling.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<((OsString,), Bound<'py, PyDict>)> {
        refuse_stored(self.0.location())?;
        Ok(((self.directory(),), limits_argument(py, self.0.limits())?))
    }
}

impl PyPartitionLog {
    /// The result for the start or end of the log, with the leader epoch at that offset.
    fn bound(&self, offset: i64) -> crate::error::Result<TimestampPlace> {
        let leader_epoch = self.0.leader_epochs()?.epoch_for_offset(offset);
        Ok(TimestampPlace { timestamp: -1, offset, leader_epoch, index: IndexUse::Used })
    }
}
