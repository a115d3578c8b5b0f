//! `kbat.LogWriter`.

pub(crate) mod records;

use std::ffi::{CString, OsString};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyResourceWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::compression::Compression;
use crate::format::record::NewHeader;
use crate::log::{LogWriter, LogWriterOptions, OffsetPolicy, SyncPolicy, of_parent};
use crate::plural::count_of;
use crate::python::arguments::limits::{PyLimits, or_default};
use crate::python::arguments::names::uuid;
use crate::python::arguments::record::{OwnedHeader, borrowed, own_headers};
use crate::python::arguments::time::record_timestamp;
use crate::python::log::writer::records::PyRecordWriter;
use crate::python::runtime::errors::OrRaise;
use crate::python::runtime::submodule::add_submodule;

/// Creates the submodule `kbat._core.writer`.
pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let module = add_submodule(parent, "writer", "Write partitions.")?;
    module.add_class::<PyLogWriter>()?;
    module.add_class::<PyRecordWriter>()?;
    module.add_function(wrap_pyfunction!(max_open_logs, &module)?)
}

/// Return how many logs this process can keep open: they use at most half of the files that it may open.
#[pyfunction]
fn max_open_logs() -> usize {
    crate::log::max_open_logs()
}

/// Writes records and batches into a partition directory.
///
/// Also writes the files that a broker keeps with them: indexes, producer snapshots, leader epochs.
///
/// A missing directory is created. An existing log is continued: the writer checks each batch of the last segment,
/// truncates an incomplete batch at its end, as a broker does after an unclean shutdown, and rebuilds its indexes.
/// Corruption before whole batches raises an error. Records are durable once ``flush`` or ``close`` has returned. If
/// the process ends before that, or the writer is dropped without being closed, the last records are lost (a
/// ``ResourceWarning`` counts them). A directory can have only one writer; threads may share it.
///
/// Args:
///     directory: The partition directory, such as ``orders-0``.
///     segment_bytes: Maximum bytes of a segment.
///     segment_ms: Maximum distance of timestamps from those of a segment's first batch; None for no limit. A
///         broker's default is 604800000.
///     index_interval_bytes: Bytes between batches with an index entry.
///     segment_index_bytes: Maximum bytes of an index.
///     compression: Codec of batches made from records.
///     level: Compression level, numbered as in Kafka.
///     batch_size: Bytes of records, before compression, at which a batch is full.
///     leader_epoch: Leader epoch of the batches; None for the partition's latest, or 0 if it has none.
///     topic_id: 22 characters of base64url for ``partition.metadata``; None to omit the file.
///     start_offset: First offset of a new partition.
///     sync: When data is flushed to disk. ``"flush"``: by ``flush``, by ``close`` and at the end of a segment;
///         ``"always"``: also after each batch.
///     limits: Bounds on existing data and on the batches that are written: none is larger than ``batch_len``.
///
/// Raises:
///     ValueError: An argument is invalid or breaks Kafka's rules, the directory has another writer or a running
///         broker, or its topic id differs.
///     CorruptError: The last segment has corruption before whole batches.
///     OSError: Reading or writing failed.
///
/// Example:
///     >>> with kbat.LogWriter("out/orders-0", compression="zstd") as writer:
///     ...     writer.append(b"key", b"value", timestamp=1_700_000_000_000)
///     0
#[pyclass(frozen, name = "LogWriter", module = "kbat")]
pub(crate) struct PyLogWriter {
    /// `None` once it is closed.
    writer: Mutex<Option<LogWriter>>,
    /// The process that opened it.
    process: u32,
    directory: PathBuf,
    start_offset: i64,
    truncated_bytes: u64,
}

#[pymethods]
impl PyLogWriter {
    #[new]
    #[pyo3(signature = (directory, *, segment_bytes=1_073_741_824, segment_ms=None, index_interval_bytes=4096, segment_index_bytes=10_485_760, compression="none", level=None, batch_size=16384, leader_epoch=None, topic_id=None, start_offset=0, sync="flush", limits=None), text_signature = "(directory, *, segment_bytes=1073741824, segment_ms=None, index_interval_bytes=4096, segment_index_bytes=10485760, compression='none', level=None, batch_size=16384, leader_epoch=None, topic_id=None, start_offset=0, sync='flush', limits=None)")]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments of the Python signature")]
    fn new(
        py: Python<'_>,
        directory: PathBuf,
        segment_bytes: u64,
        segment_ms: Option<u64>,
        index_interval_bytes: u64,
        segment_index_bytes: u64,
        compression: &str,
        level: Option<i32>,
        batch_size: usize,
        leader_epoch: Option<i32>,
        topic_id: Option<&str>,
        start_offset: i64,
        sync: &str,
        limits: Option<PyLimits>,
    ) -> PyResult<Self> {
        let options = LogWriterOptions {
            segment_bytes,
            segment_ms,
            index_interval_bytes,
            segment_index_bytes,
            compression: compression.parse::<Compression>().or_raise(py)?,
            level,
            batch_size,
            leader_epoch,
            topic_id: topic_id.map(uuid).transpose()?,
            start_offset,
            sync: sync_policy(sync)?,
            limits: or_default(limits),
        };
        let writer = py.detach(|| LogWriter::open(&directory, options)).or_raise(py)?;
        let (start_offset, truncated_bytes) = (writer.start_offset(), writer.truncated_bytes());
        Ok(Self {
            writer: Mutex::new(Some(writer)),
            process: std::process::id(),
            directory,
            start_offset,
            truncated_bytes,
        })
    }

    /// Path of the directory.
    #[getter]
    fn directory(&self) -> OsString {
        self.directory.clone().into_os_string()
    }

    /// Base offset of the first segment.
    #[getter]
    fn start_offset(&self) -> i64 {
        self.start_offset
    }

    /// Bytes that were truncated from the last segment when it was opened.
    #[getter]
    fn truncated_bytes(&self) -> u64 {
        self.truncated_bytes
    }

    /// The offset of the next record.
    ///
    /// Raises:
    ///     ValueError: The writer is closed.
    #[getter]
    fn end_offset(&self, py: Python<'_>) -> PyResult<i64> {
        self.with(py, |writer| Ok(writer.end_offset()))
    }

    /// The offset up to which all transactions are completed.
    ///
    /// The first offset of the earliest open transaction, or the end of the written batches if none is open.
    ///
    /// Raises:
    ///     ValueError: The writer is closed.
    #[getter]
    fn last_stable_offset(&self, py: Python<'_>) -> PyResult<i64> {
        self.with(py, |writer| Ok(writer.last_stable_offset()))
    }

    /// Whether the writer is closed.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        py.detach(|| Ok(self.lock()?.is_none())).or_raise(py)
    }

    /// Append a record. The writer groups records into batches.
    ///
    /// Args:
    ///     key: Bytes-like, or None for null.
    ///     value: Bytes-like, or None for null.
    ///     timestamp: Milliseconds since the epoch, -1 for none; a ``datetime`` or ISO 8601 text with a time zone,
    ///         whose microseconds round down to milliseconds.
    ///     headers: A dictionary, or pairs of key and value as tuples, lists, or dictionaries with ``key`` and
    ///         ``value``. Keys are ``str`` or bytes-like, values bytes-like or None.
    ///
    /// Returns:
    ///     The record's offset. The record is durable once ``flush`` or ``close`` has returned.
    ///
    /// Raises:
    ///     ValueError: Kafka's rules forbid the record, which is then not appended; or the writer is closed or has
    ///         failed.
    ///     OSError: A full batch can't be written.
    #[pyo3(signature = (key, value, *, timestamp, headers=None))]
    fn append(
        &self,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        timestamp: &Bound<'_, PyAny>,
        headers: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<i64> {
        let (py, timestamp) = (key.py(), record_timestamp(timestamp)?);
        let owned = headers.map(own_headers).transpose()?.unwrap_or_default();
        let headers: Vec<NewHeader<'_>> = owned.iter().map(OwnedHeader::as_new).collect();
        borrowed(key, "key", |key| {
            borrowed(value, "value", |value| self.with(py, |writer| writer.append(timestamp, key, value, &headers)))
        })
    }

    /// Append whole batches: all of them, or none if one is rejected.
    ///
    /// Args:
    ///     data: Bytes-like: one batch or several, of any message format.
    ///     keep_offsets: False: assign the next offsets and the leader epoch, after a leader's checks (checksum,
    ///         every record readable, consecutive offsets). True: keep offsets and leader epochs, after a follower's
    ///         checks (checksum, rising offsets).
    ///
    /// Returns:
    ///     The first offset of the first batch.
    ///
    /// Raises:
    ///     CorruptError: A batch is damaged.
    ///     ValueError: The bytes are not whole batches, a batch exceeds ``segment_bytes``, offsets do not rise, or
    ///         the writer is closed or has failed.
    ///     OSError: Writing failed.
    #[pyo3(signature = (data, *, keep_offsets=false))]
    fn append_batch(&self, data: &Bound<'_, PyAny>, keep_offsets: bool) -> PyResult<i64> {
        let py = data.py();
        let offsets = if keep_offsets { OffsetPolicy::Keep } else { OffsetPolicy::Assign };
        borrowed(data, "data", |data| {
            let data =
                data.ok_or_else(|| pyo3::exceptions::PyTypeError::new_err("data must be a bytes-like object"))?;
            self.with(py, |writer| writer.append_batches(data, offsets))
        })
    }

    /// Write all appended records and flush them to disk. They are durable once this returns.
    ///
    /// Raises:
    ///     OSError: Writing failed. Nothing can be appended afterwards: open the directory again.
    ///     ValueError: The writer is closed or has failed.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, LogWriter::flush)
    }

    /// Flush, and leave the files as a broker does after a clean shutdown. A second call has no effect.
    ///
    /// Raises:
    ///     OSError: Writing failed.
    ///     ValueError: An earlier write failed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.lock()?.take().map_or(Ok(()), LogWriter::close)).or_raise(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Closes the writer. An exception from the `with` block propagates unchanged, even if closing fails too.
    #[pyo3(signature = (*args))]
    fn __exit__(&self, py: Python<'_>, args: &Bound<'_, PyTuple>) -> PyResult<()> {
        let closed = self.close(py);
        let is_raising = args.get_item(0).is_ok_and(|kind| !kind.is_none());
        if is_raising { Ok(()) } else { closed }
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let directory = self.directory.display();
        match self.end_offset(py) {
            Ok(end_offset) => format!("LogWriter({directory}, end_offset={end_offset})"),
            Err(_) => format!("LogWriter({directory}, closed)"),
        }
    }
}

impl Drop for PyLogWriter {
    /// Warns of records that are lost, as Python does for open files.
    fn drop(&mut self) {
        let is_own = self.process == std::process::id();
        let writer = self.writer.get_mut().unwrap_or_else(PoisonError::into_inner);
        let lost = writer.as_ref().map_or(0, LogWriter::pending_records);
        if is_own && lost > 0 {
            let directory = self.directory.display();
            let lost = count_of(lost.into(), "record");
            let message = format!("kbat: the LogWriter was not closed, and {lost} not written to {directory}");
            // nothing can be raised here, and the interpreter may be ending
            Python::try_attach(|py| {
                let category = py.get_type::<PyResourceWarning>();
                CString::new(message).map(|message| PyErr::warn(py, &category, &message, 1))
            });
        }
    }
}

impl PyLogWriter {
    /// Runs `work` on the open writer. Waits for the lock without the GIL, because the thread that holds the lock
    /// may need the GIL to release it.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut LogWriter) -> crate::error::Result<T> + Send,
    ) -> PyResult<T> {
        match py.detach(|| self.lock()?.as_mut().map(work).transpose()).or_raise(py)? {
            Some(done) => Ok(done),
            None => Err(PyValueError::new_err("the writer is closed")),
        }
    }

    /// Waits for the lock. In a forked process, no thread might ever release it.
    fn lock(&self) -> crate::error::Result<MutexGuard<'_, Option<LogWriter>>> {
        if self.process != std::process::id() {
            return Err(of_parent(&self.directory));
        }
        Ok(self.writer.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn sync_policy(name: &str) -> PyResult<SyncPolicy> {
    match name {
        "flush" => Ok(SyncPolicy::Flush),
        "always" => Ok(SyncPolicy::Always),
        _ => Err(PyValueError::new_err(format!("unknown sync {name:?}: use \"flush\" or \"always\""))),
    }
}
