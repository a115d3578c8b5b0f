//! `kbat.OffsetIndex`, `kbat.TimeIndex`, `kbat.TransactionIndex`.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;

use crate::log::index::{AbortedTransaction, OffsetIndex, TimeIndex, TransactionIndex};
use crate::num::usize_from_u64;
use crate::python::errors::OrRaise;

/// The offset index of a segment: which batch begins where.
///
/// The file is searched by small reads, never loaded. Zeros at the end, which a running or killed broker leaves, are no
/// entries.
///
/// Args:
///     path: The ``.index`` file.
///     base_offset: Base offset of the segment; default: that in the file's name.
///
/// Raises:
///     OSError: The file can't be read.
///     ValueError: No base offset is given and the name does not tell one.
///
/// Example:
///     >>> kbat.OffsetIndex("orders-0/00000000000000000000.index").lookup(5000)
///     (4987, 81920)
#[pyclass(frozen, name = "OffsetIndex", module = "kbat")]
pub(crate) struct PyOffsetIndex(OffsetIndex);

#[pymethods]
impl PyOffsetIndex {
    #[new]
    #[pyo3(signature = (path, base_offset=None))]
    fn new(py: Python<'_>, path: PathBuf, base_offset: Option<i64>) -> PyResult<Self> {
        py.detach(|| OffsetIndex::open(&path, base_offset)).map(Self).or_raise(py)
    }

    /// The file.
    #[getter]
    fn path(&self) -> OsString {
        self.0.path().as_os_str().to_owned()
    }

    /// Base offset of the segment.
    #[getter]
    fn base_offset(&self) -> i64 {
        self.0.base_offset()
    }

    /// All entries as ``(offset, position)``: last offset of a batch, byte at which it begins.
    #[getter]
    fn entries(&self, py: Python<'_>) -> PyResult<Vec<(i64, i32)>> {
        let entries = py.detach(|| self.0.entries()).or_raise(py)?;
        Ok(entries.into_iter().map(|entry| (entry.offset, entry.position)).collect())
    }

    /// Find the entry with the largest offset that is at most ``offset``.
    ///
    /// Returns:
    ///     Offset and position; base offset and 0 where there is none.
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

    fn __len__(&self) -> usize {
        usize_from_u64(self.0.entry_count())
    }

    fn __repr__(&self) -> String {
        let (path, base_offset) = (self.0.path().display(), self.0.base_offset());
        format!("OffsetIndex({path}, base_offset={base_offset}, {} entries)", self.0.entry_count())
    }
}

/// The time index of a segment: up to which offset no record is younger than a timestamp.
///
/// The file is searched by small reads, never loaded. Zeros at the end, which a running or killed broker leaves, are no
/// entries.
///
/// Args:
///     path: The ``.timeindex`` file.
///     base_offset: Base offset of the segment; default: that in the file's name.
///
/// Raises:
///     OSError: The file can't be read.
///     ValueError: No base offset is given and the name does not tell one.
#[pyclass(frozen, name = "TimeIndex", module = "kbat")]
pub(crate) struct PyTimeIndex(TimeIndex);

#[pymethods]
impl PyTimeIndex {
    #[new]
    #[pyo3(signature = (path, base_offset=None))]
    fn new(py: Python<'_>, path: PathBuf, base_offset: Option<i64>) -> PyResult<Self> {
        py.detach(|| TimeIndex::open(&path, base_offset)).map(Self).or_raise(py)
    }

    /// The file.
    #[getter]
    fn path(&self) -> OsString {
        self.0.path().as_os_str().to_owned()
    }

    /// Base offset of the segment.
    #[getter]
    fn base_offset(&self) -> i64 {
        self.0.base_offset()
    }

    /// All entries as ``(timestamp, offset)``.
    ///
    /// Largest timestamp so far in milliseconds since the epoch, last offset of the first batch that has it.
    #[getter]
    fn entries(&self, py: Python<'_>) -> PyResult<Vec<(i64, i64)>> {
        let entries = py.detach(|| self.0.entries()).or_raise(py)?;
        Ok(entries.into_iter().map(|entry| (entry.timestamp, entry.offset)).collect())
    }

    /// Find the entry with the largest timestamp that is at most ``timestamp``.
    ///
    /// Returns:
    ///     Timestamp and offset; -1 and the base offset where there is none.
    fn lookup(&self, py: Python<'_>, timestamp: i64) -> PyResult<(i64, i64)> {
        let entry = py.detach(|| self.0.lookup(timestamp)).or_raise(py)?;
        Ok((entry.timestamp, entry.offset))
    }

    /// Check the file as Kafka does: whole entries, the last one neither older than the first nor below the base.
    ///
    /// Raises:
    ///     CorruptError: The check fails. It does for an index that ends in the zeros of a running broker.
    fn sanity_check(&self, py: Python<'_>) -> PyResult<()> {
        py.detach(|| self.0.sanity_check()).or_raise(py)
    }

    fn __len__(&self) -> usize {
        usize_from_u64(self.0.entry_count())
    }

    fn __repr__(&self) -> String {
        let (path, base_offset) = (self.0.path().display(), self.0.base_offset());
        format!("TimeIndex({path}, base_offset={base_offset}, {} entries)", self.0.entry_count())
    }
}

/// An aborted transaction of a producer.
#[pyclass(frozen, eq, hash, get_all, name = "AbortedTransaction", module = "kbat")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PyAbortedTransaction {
    /// Version of the entry as stored.
    version: i16,
    /// The producer.
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

/// The transaction index of a segment: the transactions whose abort markers lie in it.
///
/// Args:
///     path: The ``.txnindex`` file. Segments without aborted transactions have none.
///
/// Raises:
///     OSError: The file can't be read.
#[pyclass(frozen, name = "TransactionIndex", module = "kbat")]
pub(crate) struct PyTransactionIndex(TransactionIndex);

#[pymethods]
impl PyTransactionIndex {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        py.detach(|| TransactionIndex::open(&path)).map(Self).or_raise(py)
    }

    /// The file.
    #[getter]
    fn path(&self) -> OsString {
        self.0.path().as_os_str().to_owned()
    }

    /// All entries. Bytes after the last whole one are passed over.
    ///
    /// Raises:
    ///     CorruptError: An entry of a version that Kafka does not read.
    #[getter]
    fn entries(&self, py: Python<'_>) -> PyResult<Vec<PyAbortedTransaction>> {
        let entries = py.detach(|| self.0.entries()).or_raise(py)?;
        Ok(entries.into_iter().map(Into::into).collect())
    }

    /// Tell the transactions that a reader must know, as a broker tells them in a fetch answer.
    ///
    /// Args:
    ///     fetch_offset: First offset that is read.
    ///     upper_bound: The offset after the last that is read.
    ///
    /// Returns:
    ///     The transactions, and whether the indexes of later segments can't add to them.
    ///
    /// Raises:
    ///     CorruptError: An entry of a version that Kafka does not read.
    fn collect(
        &self,
        py: Python<'_>,
        fetch_offset: i64,
        upper_bound: i64,
    ) -> PyResult<(Vec<PyAbortedTransaction>, bool)> {
        let (entries, complete) = py.detach(|| self.0.collect(fetch_offset, upper_bound)).or_raise(py)?;
        Ok((entries.into_iter().map(Into::into).collect(), complete))
    }

    /// Check the file as Kafka does: no marker below the segment's base offset.
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
