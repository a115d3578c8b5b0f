//! `kbat.read_batches` and its iterator.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::io::Location;
use crate::limits::Limits;
use crate::log::SegmentReader;
use crate::python::arguments::limits::{PyLimits, or_default};
use crate::python::arguments::location::StoreArguments;
use crate::python::arguments::source::{SourceArgument, source};
use crate::python::batch::{PyBatch, ReadSettings};
use crate::python::runtime::errors::OrRaise;

/// Iterate over the batches of a buffer or a file, of any message format and in any order.
///
/// Only headers are parsed, although payloads are read too; ``scan(view="batches")`` reads only the
/// headers of a file. Iterating a batch decompresses its records; accessing a field of a record copies its bytes.
/// Invalid records or checksums do not end this iteration: the error is raised when the batch is iterated.
///
/// Args:
///     source: A bytes-like object (``bytes`` are used in place, others copied) or the path or URL of a ``.log`` file.
///     check_crc: Whether iterating a batch checks its checksum and those of the v0 and v1 messages in it.
///     limits: Bounds on untrusted input.
///     storage_options: How to open the store of a URL, with the names of object_store, such as
///         ``{"access_key_id": ..., "region": ..., "endpoint": ...}``. Default: the environment, such as
///         ``AWS_ACCESS_KEY_ID``, or the role of the machine.
///     store: A store of obstore; paths are relative to it.
///     encryption_keys: PEM files of private keys by their ids, for segments that Aiven's plugin has encrypted; or a
///         function that returns the PEM text of an id.
///     remote: Where the earlier segments of these logs are, in tiered storage or in a backup: a path or a URL. Each
///         offset is read once, from ``source`` if it is there. ``storage_options`` are those of the URLs,
///         and ``store`` is that of ``remote``.
///     remote_log_metadata: The log directory with the topic ``__remote_log_metadata``, or a partition directory or
///         ``.log`` file of it: only segments that it has as finished are read. Default with ``remote``: the
///         partitions in the log directory, if any.
///
/// Raises:
///     CorruptError: While iterating, if the bytes at the current position are not a valid batch. ``skip_batch()``
///         resumes after it if possible.
///     UnsupportedError: While iterating, if the magic is not 0, 1 or 2.
///     OSError: The file can't be read.
///
/// Example:
///     >>> for batch in kbat.read_batches("topic-0/00000000000000000000.log"):
///     ...     for record in batch:
///     ...         print(record.offset, record.key, record.value)
#[pyfunction]
#[pyo3(
    signature = (source, *, check_crc=true, limits=None, **stores),
    text_signature = "(source, *, check_crc=True, limits=None, storage_options=None, store=None, encryption_keys=None, remote=None, remote_log_metadata=None)"
)]
pub(crate) fn read_batches(
    source: &Bound<'_, PyAny>,
    check_crc: bool,
    limits: Option<PyLimits>,
    stores: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyBatchIterator> {
    let limits = or_default(limits);
    let reader = match self::source(source)? {
        SourceArgument::Bytes(bytes) => SegmentReader::from_bytes(bytes, &limits),
        SourceArgument::Path(path) => {
            let path = StoreArguments::new("read_batches", stores)?.locate_one(source.py(), path)?;
            source.py().detach(|| SegmentReader::open_with(&path, &limits)).or_raise(source.py())?
        }
    };
    let settings = Arc::new(ReadSettings { check_crc, limits });
    Ok(PyBatchIterator { settings, reader: Mutex::new(reader) })
}

/// The iterator returned by :func:`read_batches`.
#[pyclass(frozen, name = "BatchIterator", module = "kbat")]
pub(crate) struct PyBatchIterator {
    settings: Arc<ReadSettings>,
    reader: Mutex<SegmentReader>,
}

impl PyBatchIterator {
    /// Iterates over a file, starting at a byte.
    pub(crate) fn open_at(
        py: Python<'_>,
        path: &Location,
        position: u64,
        check_crc: bool,
        limits: &Limits,
    ) -> PyResult<Self> {
        let reader = py.detach(|| SegmentReader::open_with(path, limits)).or_raise(py)?;
        let settings = Arc::new(ReadSettings { check_crc, limits: limits.clone() });
        Ok(Self { settings, reader: Mutex::new(reader.starting_at(position)) })
    }

    fn with_reader<T: Send>(&self, py: Python<'_>, work: impl FnOnce(&mut SegmentReader) -> T + Send) -> T {
        // reading a file or waiting for another thread may block: neither may hold the GIL
        if let Ok(mut reader) = self.reader.try_lock()
            && reader.is_memory()
        {
            return work(&mut reader);
        }
        py.detach(|| work(&mut self.reader.lock().unwrap_or_else(PoisonError::into_inner)))
    }
}

#[pymethods]
impl PyBatchIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyBatch>> {
        let next = self.with_reader(py, |reader| {
            let path = reader.path().map(Path::to_path_buf);
            Some(reader.next_shared()?.map(|batch| PyBatch::new(batch, &self.settings, path)))
        });
        next.transpose().or_raise(py)
    }

    /// After an error, skip the batch that caused it.
    ///
    /// Returns:
    ///     Whether the iteration can continue: False if the size of the batch can't be trusted, or if no batch
    ///     failed.
    fn skip_batch(&self, py: Python<'_>) -> PyResult<bool> {
        self.with_reader(py, SegmentReader::skip_batch).or_raise(py)
    }

    /// Position of the next batch in bytes from the start.
    #[getter]
    fn position(&self, py: Python<'_>) -> u64 {
        self.with_reader(py, |reader| reader.position())
    }

    /// The bytes after the last batch: after the iteration a partial batch, zeros, or nothing.
    #[getter]
    fn remainder<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let rest = self.with_reader(py, |reader| reader.remainder()).or_raise(py)?;
        Ok(PyBytes::new(py, &rest))
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        format!("BatchIterator(position={})", self.position(py))
    }
}
