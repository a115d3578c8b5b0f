//! The submodule `kbat._core.restore`: `kbat.restore`.

mod reports;

use std::collections::BTreeMap;
use std::path::PathBuf;

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict};

use crate::log::Uuid;
use crate::python::arguments::limits::{PyLimits, or_default};
use crate::python::arguments::location::StoreArguments;
use crate::python::arguments::names::uuid;
use crate::python::arguments::time;
use crate::python::locations::segments::selection;
use crate::python::runtime::errors::OrRaise;
use crate::python::runtime::progress::run;
use crate::python::runtime::submodule::add_submodule;
use crate::restore::{RestoreOptions, restore as restore_partitions};
use crate::store::{TopicPartition, parse_partition_directory};
use reports::{PyOpenTransaction, PyRestoreReport, PyRestoredPartition, PyRestoredSegment};

/// Creates the submodule and everything in it.
pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let module = add_submodule(parent, "restore", "Restore backups and tiered storage to a new broker.")?;
    module.add_class::<PyOpenTransaction>()?;
    module.add_class::<PyRestoreReport>()?;
    module.add_class::<PyRestoredPartition>()?;
    module.add_class::<PyRestoredSegment>()?;
    module.add_function(wrap_pyfunction!(restore, &module)?)?;
    Ok(())
}

/// Restore partitions to a log directory that a new broker serves with unchanged offsets.
///
/// Batches are copied byte for byte; indexes, transaction indexes, producer snapshots and leader epochs are built
/// from them. ``out`` gets a directory for each partition, and the checkpoints of log start offsets and recovery
/// points. Gaps, repeated offsets and omitted objects are in the report, and the rest is restored. Any other
/// corruption is an error.
///
/// Args:
///     source: A log directory, a partition directory, or a directory that contains log directories at any depth, in
///         any layout that kbat reads, or its URL. It is only read.
///     out: Directory to write, or its URL; it must be missing or empty. It is created when it is complete.
///     until_timestamp: End each log before its first record with this time or a later one: milliseconds since the
///         epoch, a ``datetime`` with a time zone, or ISO 8601 text with one. A batch with this record is written
///         again, with the records before it.
///     until_offset: End each log at this offset; records from there on are not restored. A mapping of names such as
///         ``"orders-0"`` to offsets ends only these partitions.
///     topics: Only these topics: names, or patterns with ``*``, ``?`` and ``[...]``. Default: all except internal
///         topics such as ``__consumer_offsets``.
///     partitions: Only partitions with these numbers. Default: all.
///     replicas: What to do if a partition is in several directories: ``"error"`` raises an error, ``"longest"``
///         uses the directory with the largest range of offsets.
///     topic_ids: Ids of the topics in the new cluster by name, for ``partition.metadata``. A KRaft broker accepts no
///         partition without it.
///     log_directory: The log directory of the broker that will get the partitions. Ids that ``topic_ids`` does not
///         contain are read from it, and the checkpoints in ``out`` contain its other partitions too.
///     open_transactions: How to treat transactions that are open at the end of a log: ``"keep"`` or ``"abort"``, which
///         appends abort markers.
///     keep_producers: Whether the result contains the state of all producers of the source at the end of a log, not
///         only of those with an open transaction. In a new cluster, producers get the ids of old ones again: its
///         broker would take their first batches for duplicates, acknowledge them, and drop them. Use it for a broker
///         of the same cluster.
///     leader_epoch: Replace the leader epoch of every batch, usually by 0. This is necessary if batches have epochs
///         above that of their partition in the new cluster, which is a warning: consumers would wait for a leader
///         after their first commit. Default: keep them.
///     committed_offsets: Directory to write with one file per group, for ``kafka-consumer-groups --reset-offsets
///         --from-file``. Offsets are at least the start and at most the end of the restored log.
///     offsets_source: Path or URL of a log directory with ``__consumer_offsets``. Default: ``source``.
///     dry_run: Write nothing and report the plan. It comes from names, indexes and a few batches of each segment.
///     index_interval_bytes: Bytes between two index entries, the topic's ``index.interval.bytes``.
///     limits: Bounds on untrusted input.
///     progress: Called with the bytes done and the total bytes, every few megabytes.
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
///     ValueError: ``out`` is not empty, there is no partition, a partition is in several directories, or an argument
///         is wrong.
///     CorruptError: A batch, its checksum or its offset is wrong, or a segment ends inside a batch although the log
///         continues. Nothing is written.
///     LimitError: A batch exceeds the limits.
///     OSError: Reading or writing failed.
///
/// Warns:
///     UserWarning: Objects of tiered storage that are omitted.
///
/// Example:
///     >>> print(kbat.restore("s3://bucket/kafka", "restored", dry_run=True))
///     >>> kbat.restore("s3://bucket/kafka", "restored", log_directory="/var/lib/kafka/data")
#[pyfunction]
#[pyo3(
    signature = (source, out, *, until_timestamp=None, until_offset=None, topics=None, partitions=None, replicas="error", topic_ids=None, log_directory=None, open_transactions="keep", keep_producers=false, leader_epoch=None, committed_offsets=None, offsets_source=None, dry_run=false, index_interval_bytes=4096, limits=None, progress=None, **stores),
    text_signature = "(source, out, *, until_timestamp=None, until_offset=None, topics=None, partitions=None, replicas='error', topic_ids=None, log_directory=None, open_transactions='keep', keep_producers=False, leader_epoch=None, committed_offsets=None, offsets_source=None, dry_run=False, index_interval_bytes=4096, limits=None, progress=None, storage_options=None, store=None, encryption_keys=None, remote=None, remote_log_metadata=None)"
)]
#[expect(clippy::too_many_arguments, reason = "the keyword arguments of the Python signature")]
fn restore(
    py: Python<'_>,
    source: PathBuf,
    out: PathBuf,
    until_timestamp: Option<&Bound<'_, PyAny>>,
    until_offset: Option<&Bound<'_, PyAny>>,
    topics: Option<&Bound<'_, PyAny>>,
    partitions: Option<&Bound<'_, PyAny>>,
    replicas: &str,
    topic_ids: Option<&Bound<'_, PyAny>>,
    log_directory: Option<PathBuf>,
    open_transactions: &str,
    keep_producers: bool,
    leader_epoch: Option<i32>,
    committed_offsets: Option<PathBuf>,
    offsets_source: Option<PathBuf>,
    dry_run: bool,
    index_interval_bytes: u64,
    limits: Option<PyLimits>,
    progress: Option<Py<PyAny>>,
    stores: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyRestoreReport> {
    let stores = StoreArguments::new("restore", stores)?;
    let (until_offset, until_offsets) = offsets(until_offset)?;
    let options = RestoreOptions {
        selection: selection(py, topics, partitions, replicas)?,
        until_timestamp: until_timestamp.map(time::bound).transpose()?,
        until_offset,
        until_offsets,
        open_transactions: open_transactions.parse().or_raise(py)?,
        keep_producers,
        leader_epoch,
        topic_ids: ids(topic_ids)?,
        log_directory,
        committed_offsets,
        offsets_source: offsets_source.map(|path| stores.locate_beside(py, path)).transpose()?,
        dry_run,
        index_interval_bytes,
        limits: or_default(limits),
    };
    let (source, target) = stores.locate_both(py, source, out)?;
    let mut report = run(py, progress, |_, progress| {
        let report = restore_partitions(&source, target.path(), &options, progress)?;
        if dry_run { Ok(report) } else { target.publish().map(|()| report) }
    })?;
    report.out = target.final_path(target.path());
    Ok(PyRestoreReport(report))
}

/// The argument `until_offset`: a number, or a mapping of partitions to numbers.
fn offsets(until: Option<&Bound<'_, PyAny>>) -> PyResult<(Option<i64>, BTreeMap<TopicPartition, i64>)> {
    let expected = || PyTypeError::new_err("until_offset must be a number, or a mapping of names to numbers");
    let Some(until) = until else { return Ok((None, BTreeMap::new())) };
    if until.is_instance_of::<PyBool>() {
        return Err(expected());
    }
    if let Ok(offset) = until.extract::<i64>() {
        return Ok((Some(offset), BTreeMap::new()));
    }
    let items = until.call_method0("items").map_err(|_| expected())?;
    let mut offsets = BTreeMap::new();
    for item in items.try_iter()? {
        let (name, offset): (String, i64) = item?.extract().map_err(|_| expected())?;
        let message = || format!("until_offset: {name:?} is not a partition such as \"orders-0\"");
        let partition = parse_partition_directory(&name).ok_or_else(|| PyValueError::new_err(message()))?;
        offsets.insert(partition, offset);
    }
    Ok((None, offsets))
}

/// The argument `topic_ids`.
fn ids(mapping: Option<&Bound<'_, PyAny>>) -> PyResult<BTreeMap<String, Uuid>> {
    let mut ids = BTreeMap::new();
    let Some(mapping) = mapping else { return Ok(ids) };
    let expected = || PyTypeError::new_err("topic_ids must be a mapping of topics to ids");
    let items = mapping.call_method0("items").map_err(|_| expected())?;
    for item in items.try_iter()? {
        let (topic, id): (String, String) = item?.extract().map_err(|_| expected())?;
        ids.insert(topic, uuid(&id)?);
    }
    Ok(ids)
}
