//! `kbat.OffsetIndex`, `kbat.TimeIndex`, `kbat.TransactionIndex`.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::log::index::{AbortedTransaction, OffsetIndex, TimeIndex, TransactionIndex};
use crate::num::usize_from_u64;
use crate::python::arguments::location::StoreArguments;
use crate::python::runtime::errors::OrRaise;

/// The methods of a sorted index: those that both have, and those of one class.
macro_rules! sorted_index {
    ($class:ident($index:ty), $name:literal; $($methods:tt)*) => {
        #[pymethods]
        impl $class {
            #[new]
            #[pyo3(
                signature = (path, base_offset=None, **stores),
                text_signature = "(path, base_offset=None, *, storage_options=None, store=None, encryption_keys=None, remote=None, remote_log_metadata=None)"
            )]
            fn new(
                py: Python<'_>,
                path: PathBuf,
                base_offset: Option<i64>,
                stores: Option<&Bound<'_, PyDict>>,
            ) -> PyResult<Self> {
                let path = StoreArguments::new($name, stores)?.locate(py, path)?;
                py.detach(|| <$index>::open(&path, base_offset)).map(Self).or_raise(py)
            }

            /// Path of the file.
            #[getter]
            fn path(&self) -> OsString {
                self.0.path().as_os_str().to_owned()
            }

            /// Base offset of the segment.
            #[getter]
            fn base_offset(&self) -> i64 {
                self.0.base_offset()
            }

            fn __len__(&self) -> usize {
                usize_from_u64(self.0.entry_count())
            }

            fn __repr__(&self) -> String {
                let (path, base_offset) = (self.0.path().display(), self.0.base_offset());
                format!(concat!($name, "({}, base_offset={}, {} entries)"), path, base_offset, self.0.entry_count())
            }

            $($methods)*
        }
    };
}

/// The offset index of a segment: the positions of some of its batches.
///
/// Lookups read only a few entries; the file is never loaded whole. Trailing zeros, which a running or killed broker
/// leaves, are ignored.
///
/// Args:
///     path: The ``.index`` file, or its URL.
///     base_offset: Base offset of the segment. Default: the one in the file's name.
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
///     ValueError: ``base_offset`` is not set and the file's name does not contain one.
///
/// Example:
///     >>> kbat.OffsetIndex("orders-0/00000000000000000000.index").lookup(5000)
///     (4987, 81920)
#[pyclass(frozen, name = "OffsetIndex", module = "kbat")]
pub(crate) struct PyOffsetIndex(OffsetIndex);

sorted_index! {
    PyOffsetIndex(OffsetIndex), "OffsetIndex";

    /// All entries as ``(offset, position)``: last offset of a batch, byte at which it begins.
    #[getter]
    fn entries(&self, py: Python<'_>) -> PyResult<Vec<(i64, i32)>> {
        let entries = py.detach(|| self.0.entries()).or_raise(py)?;
        Ok(entries.into_iter().map(|entry| (entry.offset, entry.position)).collect())
    }

    /// Find the entry with the largest offset that is at most ``offset``.
    ///
    /// Returns:
    ///     Offset and position; base offset and 0 if there is no such entry.
    fn lookup(&self, py: Python<'_>, offset: i64) -> PyResult<(i64, i32)> {
        let entry = py.detach(|| self.0.lookup(offset)).or_raise(py)?;
        Ok((entry.offset, entry.position))
    }

    /// Check the file as Kafka does: whole entries only, the last one not below the base offset.
    ///
    /// Raises:
    ///     CorruptError: The check fails.
    fn sanity_check(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.sanity_check()).or_raise(py)
    }
}

/// The time index of a segment: the largest timestamp up to some of its offsets.
///
/// Lookups read only a few entries; the file is never loaded whole. Trailing zeros, which a running or killed broker
/// leaves, are ignored.
///
/// Args:
///     path: The ``.timeindex`` file, or its URL.
///     base_offset: Base offset of the segment. Default: the one in the file's name.
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
///     ValueError: ``base_offset`` is not set and the file's name does not contain one.
#[pyclass(frozen, name = "TimeIndex", module = "kbat")]
pub(crate) struct PyTimeIndex(TimeIndex);

sorted_index! {
    PyTimeIndex(TimeIndex), "TimeIndex";

    /// All entries as ``(timestamp, offset)``.
    ///
    /// The timestamp is the largest so far, in milliseconds since the epoch. The offset is the last one of the first
    /// batch that has this timestamp.
    #[getter]
    fn entries(&self, py: Python<'_>) -> PyResult<Vec<(i64, i64)>> {
        let entries = py.detach(|| self.0.entries()).or_raise(py)?;
        Ok(entries.into_iter().map(|entry| (entry.timestamp, entry.offset)).collect())
    }

    /// Find the entry with the largest timestamp that is at most ``timestamp``.
    ///
    /// Returns:
    ///     Timestamp and offset; -1 and the base offset if there is no such entry.
    fn lookup(&self, py: Python<'_>, timestamp: i64) -> PyResult<(i64, i64)> {
        let entry = py.detach(|| self.0.lookup(timestamp)).or_raise(py)?;
        Ok((entry.timestamp, entry.offset))
    }

    /// Check the file as Kafka does: whole entries, the last one neither older than the first nor below the base.
    ///
    /// Raises:
    ///     CorruptError: The check fails. This includes an index that ends in the zeros of a running broker.
    fn sanity_check(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.sanity_check()).or_raise(py)
    }
}

/// An aborted transaction of a producer.
#[pyclass(frozen, eq, hash, get_all, name = "AbortedTransaction", module = "kbat")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PyAbortedTransaction {
    /// Version of the entry, as stored.
    version: i16,
    /// Producer id.
    producer_id: i64,
    /// First offset of the transaction.
    first_offset: i64,
    /// Offset of its abort marker.
    last_offset: i64,
    /// The last stable offset when the marker was written.
    last_stable_offset: i64,
}

impl From<AbortedTransaction> for PyAbortedTransaction {
    fn from(entry: AbortedTransaction) -> Self {
        Self {
            version: entry.version,
            producer_id: entry.producer_id,
            first_offset: entry.first_offset,
            last_offset: entry.last_offset,
            last_stable_offset: entry.last_stable_offset,
        }
    }
}

#[pymethods]
impl PyAbortedTransaction {
    fn __repr__(&self) -> String {
        format!(
            "AbortedTransaction(producer_id={}, first_offset={}, last_offset={}, last_stable_offset={})",
            self.producer_id, self.first_offset, self.last_offset, self.last_stable_offset
        )
    }
}

/// The transaction index of a segment: the transactions whose abort markers are in the segment.
///
/// Args:
///     path: The ``.txnindex`` file, or its URL. Segments without aborted transactions do not have one.
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
#[pyclass(frozen, name = "TransactionIndex", module = "kbat")]
pub(crate) struct PyTransactionIndex(pub(crate) TransactionIndex);

#[pymethods]
impl PyTransactionIndex {
    #[new]
    #[pyo3(
        signature = (path, **stores),
        text_signature = "(path, *, storage_options=None, store=None, encryption_keys=None, remote=None, remote_log_metadata=None)"
    )]
    fn new(py: Python<'_>, path: PathBuf, stores: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let path = StoreArguments::new("TransactionIndex", stores)?.locate(py, path)?;
        py.detach(|| TransactionIndex::open(&path)).map(Self).or_raise(py)
    }

    /// Path of the file.
    #[getter]
    fn path(&self) -> OsString {
        self.0.path().as_os_str().to_owned()
    }

    /// All entries. Bytes after the last whole entry are ignored.
    ///
    /// Raises:
    ///     CorruptError: An entry has a version that Kafka does not read.
    #[getter]
    fn entries(&self, py: Python<'_>) -> PyResult<Vec<PyAbortedTransaction>> {
        let entries = py.detach(|| self.0.entries()).or_raise(py)?;
        Ok(entries.into_iter().map(Into::into).collect())
    }

    /// Collect the aborted transactions that a reader of a range needs, as a broker's fetch response lists them.
    ///
    /// Args:
    ///     fetch_offset: First offset of the range.
    ///     upper_bound: First offset after the range.
    ///
    /// Returns:
    ///     The transactions, and whether they are complete without the indexes of later segments.
    ///
    /// Raises:
    ///     CorruptError: An entry has a version that Kafka does not read.
    fn collect(
        &self,
        py: Python<'_>,
        fetch_offset: i64,
        upper_bound: i64,
    ) -> PyResult<(Vec<PyAbortedTransaction>, bool)> {
        let (entries, complete) = py.detach(|| self.0.collect(fetch_offset, upper_bound)).or_raise(py)?;
        Ok((entries.into_iter().map(Into::into).collect(), complete))
    }

    /// Check the file as Kafka does: no abort marker below the segment's base offset.
    ///
    /// Args:
    ///     base_offset: Base offset of the segment.
    ///
    /// Raises:
    ///     CorruptError: The check fails.
    fn sanity_check(&self, py: Python<'_>, base_offset: i64) -> PyResult<()> {
        py.detach(|| self.0.sanity_check(base_offset)).or_raise(py)
    }

    fn __len__(&self) -> usize {
        usize_from_u64(self.0.entry_count())
    }

    fn __repr__(&self) -> String {
        format!("TransactionIndex({}, {} entries)", self.0.path().display(), self.0.entry_count())
    }
}
