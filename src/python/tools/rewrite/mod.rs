//! The submodule `kbat._core.rewrite`: `kbat.compact`, `kbat.filter`, `kbat.rewrite`, `kbat.retain_records`.

mod matcher;
mod reports;

use std::collections::HashSet;
use std::path::PathBuf;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::broker::retain::{BatchRetention, RetainOptions, retain_records as retain};
use crate::compression::{Compression, Scratch};
use crate::format::frame::batches;
use crate::format::record::Record;
use crate::python::arguments::limits::{PyLimits, or_default};
use crate::python::arguments::location::StoreArguments;
use crate::python::arguments::source::required_bytes;
use crate::python::arguments::source::shared_bytes;
use crate::python::batch::record::PyRecord;
use crate::python::runtime::errors::OrRaise;
use crate::python::runtime::progress::run;
use crate::python::runtime::submodule::add_submodule;
use crate::rewrite::{
    CompactOptions, FilterOptions, IndexOptions, RewriteOptions, compact as compact_partition,
    filter as filter_partition, rewrite as rewrite_partition,
};
use matcher::PyRecordMatcher;
use reports::{PyCompactReport, PyFilterReport, PyRewriteCounts, PyRewriteReport};

/// Creates the submodule and everything in it.
pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let doc = "Rewrite a partition directory into a new one: compaction, filtering, recompression.";
    let module = add_submodule(parent, "rewrite", doc)?;
    module.add_class::<PyRewriteCounts>()?;
    module.add_class::<PyCompactReport>()?;
    module.add_class::<PyFilterReport>()?;
    module.add_class::<PyRewriteReport>()?;
    module.add_class::<PyRecordMatcher>()?;
    module.add_function(wrap_pyfunction!(compact, &module)?)?;
    module.add_function(wrap_pyfunction!(filter, &module)?)?;
    module.add_function(wrap_pyfunction!(retain_records, &module)?)?;
    module.add_function(wrap_pyfunction!(rewrite, &module)?)?;
    Ok(())
}

/// Compact a partition into a new directory, as a broker's cleaner does.
///
/// Keeps the last record of each key. Keeps tombstones, and transaction markers without data, until the delete
/// horizon that their first compaction sets. Drops records without a key and those of aborted transactions. Drops
/// batches without records, unless they hold the last sequence of a producer or end the compacted part. Copies the
/// last segment and everything from the first open transaction on. Converts messages of magic 0 and 1 to batches of
/// magic 2.
///
/// Args:
///     path: The partition directory, or its URL. It is only read.
///     out: Directory to write, or its URL; it must be missing or empty. It is created when it is complete.
///     delete_retention_ms: How long tombstones are kept after their first compaction.
///     now_ms: The current time for all delays, milliseconds since the epoch. Default: the system clock.
///     first_dirty_offset: First offset that was not compacted before. Default: the log's start.
///     min_compaction_lag_ms: Segments with a younger record, and all later segments, are not compacted.
///     include_active: Whether the last segment is compacted too.
///     segment_bytes: Adjacent segments are merged up to this size.
///     index_interval_bytes: Bytes between two index entries.
///     max_index_bytes: Maximum bytes of an index.
///     producer_expiration_ms: Empty batches of producers that were idle for this long are dropped. Default: none are.
///     max_map_bytes: Approximate memory for keys; more keys use temporary files next to ``out``.
///     check_crc: Whether checksums are checked.
///     limits: Bounds on untrusted input.
///     progress: Called with the bytes done and the total bytes, every few megabytes.
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
///     ValueError: ``out`` is not empty, ``path`` contains no segment, or the keys need more than 256 times
///         ``max_map_bytes``.
///     CorruptError: A batch, record or checksum is wrong.
///     OSError: Reading or writing failed.
///
/// Example:
///     >>> kbat.compact("orders-0", "compacted/orders-0", include_active=True).dropped["superseded"]
#[pyfunction]
#[pyo3(
    signature = (path, out, *, delete_retention_ms=86_400_000, now_ms=None, first_dirty_offset=None, min_compaction_lag_ms=0, include_active=false, segment_bytes=1_073_741_824, index_interval_bytes=4096, max_index_bytes=10_485_760, producer_expiration_ms=None, max_map_bytes=134_217_728, check_crc=true, limits=None, progress=None, **stores),
    text_signature = "(path, out, *, delete_retention_ms=86400000, now_ms=None, first_dirty_offset=None, min_compaction_lag_ms=0, include_active=False, segment_bytes=1073741824, index_interval_bytes=4096, max_index_bytes=10485760, producer_expiration_ms=None, max_map_bytes=134217728, check_crc=True, limits=None, progress=None, storage_options=None, store=None, encryption_keys=None, remote=None, remote_log_metadata=None)"
)]
#[expect(clippy::too_many_arguments, reason = "the keyword arguments of the Python signature")]
fn compact(
    py: Python<'_>,
    path: PathBuf,
    out: PathBuf,
    delete_retention_ms: i64,
    now_ms: Option<i64>,
    first_dirty_offset: Option<i64>,
    min_compaction_lag_ms: i64,
    include_active: bool,
    segment_bytes: u64,
    index_interval_bytes: u64,
    max_index_bytes: u64,
    producer_expiration_ms: Option<i64>,
    max_map_bytes: usize,
    check_crc: bool,
    limits: Option<PyLimits>,
    progress: Option<Py<PyAny>>,
    stores: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyCompactReport> {
    let (path, target) = StoreArguments::new("compact", stores)?.locate_both(py, path, out)?;
    let options = CompactOptions {
        delete_retention_ms,
        now_ms,
        first_dirty_offset,
        min_compaction_lag_ms,
        include_active,
        segment_bytes,
        index: IndexOptions { index_interval_bytes, max_index_bytes },
        producer_expiration_ms,
        max_map_bytes,
        check_crc,
        limits: or_default(limits),
    };
    run(py, progress, |_, progress| target.published(|out| compact_partition(&path, out, &options, progress)))
        .map(PyCompactReport)
}

/// Write a partition without some of its records into a new directory, for example to delete one user's data.
///
/// The remaining records keep their offset, timestamp, headers, producer and sequence. Control records are kept and
/// not passed to the predicate. A batch without records is dropped, unless its header is needed: it holds the last
/// sequence of its producer, belongs to an open transaction, or ends the log.
///
/// Args:
///     path: The partition directory, or its URL. It is only read.
///     out: Directory to write, or its URL; it must be missing or empty. It is created when it is complete.
///     predicate: Called with each record; records for which it returns true are kept. An exception that it raises
///         ends the call, and ``out`` is not created.
///     drop_keys: Keys whose records are dropped without a call of the predicate.
///     index_interval_bytes: Bytes between two index entries.
///     max_index_bytes: Maximum bytes of an index.
///     check_crc: Whether checksums are checked.
///     limits: Bounds on untrusted input.
///     progress: Called with the bytes done and the total bytes, every few megabytes.
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
///     ValueError: ``predicate`` and ``drop_keys`` are both missing, ``out`` is not empty, or ``path`` contains no
///         segment.
///     CorruptError: A batch, record or checksum is wrong.
///     OSError: Reading or writing failed.
///
/// Example:
///     >>> kbat.filter("orders-0", "clean/orders-0", lambda record: b"alice" not in (record.value or b""))
#[pyfunction]
#[pyo3(
    signature = (path, out, predicate=None, *, drop_keys=None, index_interval_bytes=4096, max_index_bytes=10_485_760, check_crc=true, limits=None, progress=None, **stores),
    text_signature = "(path, out, predicate=None, *, drop_keys=None, index_interval_bytes=4096, max_index_bytes=10485760, check_crc=True, limits=None, progress=None, storage_options=None, store=None, encryption_keys=None, remote=None, remote_log_metadata=None)"
)]
#[expect(clippy::too_many_arguments, reason = "the keyword arguments of the Python signature")]
fn filter(
    py: Python<'_>,
    path: PathBuf,
    out: PathBuf,
    predicate: Option<Py<PyAny>>,
    drop_keys: Option<&Bound<'_, PyAny>>,
    index_interval_bytes: u64,
    max_index_bytes: u64,
    check_crc: bool,
    limits: Option<PyLimits>,
    progress: Option<Py<PyAny>>,
    stores: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyFilterReport> {
    let (path, target) = StoreArguments::new("filter", stores)?.locate_both(py, path, out)?;
    if predicate.is_none() && drop_keys.is_none() {
        return Err(PyValueError::new_err("pass predicate, drop_keys or both"));
    }
    let keys = drop_keys.map_or_else(|| Ok(HashSet::new()), keys_of)?;
    let index = IndexOptions { index_interval_bytes, max_index_bytes };
    let options = FilterOptions { index, check_crc, limits: or_default(limits) };
    let matcher = predicate.as_ref().and_then(|predicate| predicate.extract::<Py<PyRecordMatcher>>(py).ok());
    run(py, progress, |caught, progress| {
        let mut keep = |record: &Record<'_>| {
            if record.key().is_some_and(|key| keys.contains(key)) {
                return Ok(false);
            }
            if let Some(matcher) = &matcher {
                return matcher.get().keeps(record);
            }
            predicate.as_ref().map_or(Ok(true), |predicate| caught.catch(|py| ask(py, predicate, record)))
        };
        target.published(|out| filter_partition(&path, out, &options, &mut keep, progress))
    })
    .map(PyFilterReport)
}

/// Calls a predicate with a record.
fn ask(py: Python<'_>, predicate: &Py<PyAny>, record: &Record<'_>) -> PyResult<bool> {
    predicate.call1(py, (PyRecord::copied(record),))?.is_truthy(py)
}

fn keys_of(keys: &Bound<'_, PyAny>) -> PyResult<HashSet<Vec<u8>>> {
    let mut set = HashSet::new();
    for key in keys.try_iter()? {
        match shared_bytes(&key?)? {
            Some(bytes) => set.insert((*bytes).as_ref().to_vec()),
            None => return Err(PyTypeError::new_err("drop_keys must contain bytes-like objects")),
        };
    }
    Ok(set)
}

/// Rewrite a partition into a new directory with another codec, batch size or message format.
///
/// Offsets and timestamps are kept. A batch with a producer id keeps its boundaries unless producer state is
/// removed. If it is removed, or below magic 2, records of aborted transactions and all markers are dropped, and a
/// log with an open transaction is rejected.
///
/// Args:
///     path: The partition directory, or its URL. It is only read.
///     out: Directory to write, or its URL; it must be missing or empty. It is created when it is complete.
///     compression: Codec to write with. Default: each batch keeps its codec. Control batches are never compressed.
///     level: Compression level, numbered as in Kafka.
///     batch_bytes: Approximate bytes of a batch before compression: adjacent batches are joined up to this size,
///         and larger ones are split.
///     magic: Message format. Default: each batch keeps its format.
///     keep_producer_state: Whether producer ids, epochs, sequences, transactions and producer snapshots are kept.
///     index_interval_bytes: Bytes between two index entries.
///     max_index_bytes: Maximum bytes of an index.
///     check_crc: Whether checksums are checked.
///     limits: Bounds on untrusted input.
///     progress: Called with the bytes done and the total bytes, every few megabytes.
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
///     ValueError: Options contradict each other, ``out`` is not empty, ``path`` contains no segment, or a
///         transaction is open and transactions can't be kept.
///     CorruptError: A batch or checksum is wrong, or a record of a batch that changes. Records of other batches are
///         copied without parsing.
///     UnsupportedError: A batch uses zstd, the target is below magic 2, and ``compression`` is not set.
///     OSError: Reading or writing failed.
///
/// Example:
///     >>> kbat.rewrite("orders-0", "small/orders-0", compression="zstd", level=19, batch_bytes=1 << 20)
#[pyfunction]
#[pyo3(
    signature = (path, out, *, compression=None, level=None, batch_bytes=None, magic=None, keep_producer_state=true, index_interval_bytes=4096, max_index_bytes=10_485_760, check_crc=true, limits=None, progress=None, **stores),
    text_signature = "(path, out, *, compression=None, level=None, batch_bytes=None, magic=None, keep_producer_state=True, index_interval_bytes=4096, max_index_bytes=10485760, check_crc=True, limits=None, progress=None, storage_options=None, store=None, encryption_keys=None, remote=None, remote_log_metadata=None)"
)]
#[expect(clippy::too_many_arguments, reason = "the keyword arguments of the Python signature")]
fn rewrite(
    py: Python<'_>,
    path: PathBuf,
    out: PathBuf,
    compression: Option<&str>,
    level: Option<i32>,
    batch_bytes: Option<usize>,
    magic: Option<i64>,
    keep_producer_state: bool,
    index_interval_bytes: u64,
    max_index_bytes: u64,
    check_crc: bool,
    limits: Option<PyLimits>,
    progress: Option<Py<PyAny>>,
    stores: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyRewriteReport> {
    let (path, target) = StoreArguments::new("rewrite", stores)?.locate_both(py, path, out)?;
    let magic = magic
        .map(|magic| {
            u8::try_from(magic)
                .map_err(|_| PyValueError::new_err(format!("magic {magic} is not a message format: use 0, 1 or 2")))
        })
        .transpose()?;
    let options = RewriteOptions {
        compression: compression.map(str::parse::<Compression>).transpose().or_raise(py)?,
        level,
        batch_bytes,
        magic,
        keep_producer_state,
        index: IndexOptions { index_interval_bytes, max_index_bytes },
        check_crc,
        limits: or_default(limits),
    };
    run(py, progress, |_, progress| target.published(|out| rewrite_partition(&path, out, &options, progress)))
        .map(PyRewriteReport)
}

/// Remove some records from batches, as Kafka's ``MemoryRecords.filterTo`` does.
///
/// Checksums are not verified. A batch that loses records is rebuilt with its own codec, offsets, producer and
/// leader epoch; the others are copied.
///
/// Args:
///     data: Bytes-like: whole batches, of any format and in any order. An incomplete batch at the end is omitted.
///     predicate: Called with each record, including control records; records for which it returns true are kept.
///     retention: What to do with batches without records: ``"delete_empty"`` drops them, ``"retain_empty"`` keeps
///         their headers, ``"delete"`` drops every batch without reading it.
///     delete_horizon_ms: Delete horizon for batches that keep a tombstone and do not have a horizon.
///     is_marker_of_empty_transaction: Whether batches without a tombstone get that horizon too.
///     upgrade: Whether messages of magic 0 and 1 become batches of magic 2, as in the cleaner of current Kafka
///         versions.
///     limits: Bounds on untrusted input.
///
/// Raises:
///     CorruptError: A batch or record can't be read.
///     ValueError: ``retention`` is unknown, or records can't be rewritten.
#[pyfunction]
#[pyo3(signature = (data, predicate, *, retention="delete_empty", delete_horizon_ms=None, is_marker_of_empty_transaction=false, upgrade=false, limits=None))]
fn retain_records<'py>(
    data: &Bound<'py, PyAny>,
    predicate: Py<PyAny>,
    retention: &str,
    delete_horizon_ms: Option<i64>,
    is_marker_of_empty_transaction: bool,
    upgrade: bool,
    limits: Option<PyLimits>,
) -> PyResult<Bound<'py, PyBytes>> {
    let py = data.py();
    let retention = match retention {
        "delete" => BatchRetention::Delete,
        "delete_empty" => BatchRetention::DeleteEmpty,
        "retain_empty" => BatchRetention::RetainEmpty,
        other => {
            let what = format!("retention must be \"delete\", \"delete_empty\" or \"retain_empty\", not {other:?}");
            return Err(PyValueError::new_err(what));
        }
    };
    let options = RetainOptions { retention, delete_horizon_ms, is_marker_of_empty_transaction, upgrade };
    let (bytes, limits) = (required_bytes(data)?, or_default(limits));
    let out = run(py, None, |caught, _| {
        let (mut out, mut scratch) = (Vec::new(), Scratch::new());
        let mut keep = |record: &Record<'_>| caught.catch(|py| ask(py, &predicate, record));
        for batch in batches((*bytes).as_ref()).with_limits(&limits) {
            retain(&batch?, &options, &mut keep, &mut scratch, &limits, &mut out)?;
        }
        Ok(out)
    })?;
    Ok(PyBytes::new(py, &out))
}
