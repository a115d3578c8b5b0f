//! The submodule `kbat._core.repair`: `kbat.verify`, `kbat.recover`, `kbat.salvage`, `kbat.rebuild_indexes`.

mod findings;
mod reports;

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::io::Progress;
use crate::python::arguments::limits::{PyLimits, or_default};
use crate::python::arguments::location::StoreArguments;
use crate::python::locations::segments::selection;
use crate::python::runtime::progress::run;
use crate::python::runtime::submodule::add_submodule;
use crate::repair::{
    RebuildOptions, RecoverOptions, SalvageOptions, rebuild_indexes as rebuild_partition, recover as recover_partition,
    salvage as salvage_partition, verify_selected,
};
use crate::store::listing::list_location;
use findings::{PyFinding, PyReport};
use reports::{PyDroppedRange, PyRepairReport, PyRepairedSegment};

/// Creates the submodule and everything in it.
pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let module = add_submodule(parent, "repair", "Verify, recover and salvage damaged logs, and rebuild indexes.")?;
    module.add_class::<PyDroppedRange>()?;
    module.add_class::<PyFinding>()?;
    module.add_class::<PyRepairReport>()?;
    module.add_class::<PyRepairedSegment>()?;
    module.add_class::<PyReport>()?;
    module.add_function(wrap_pyfunction!(rebuild_indexes, &module)?)?;
    module.add_function(wrap_pyfunction!(recover, &module)?)?;
    module.add_function(wrap_pyfunction!(salvage, &module)?)?;
    module.add_function(wrap_pyfunction!(verify, &module)?)?;
    Ok(())
}

/// Verify a ``.log`` file with its indexes, a partition directory, or a log directory with its partitions.
///
/// Checks everything that a broker's recovery and ``kafka-dump-log`` check, and more. Nothing is changed. Corruption
/// of any kind is in the report and never raises.
///
/// Args:
///     path: The file or directory, or its URL.
///     topics: In a log directory, only these topics: names, or patterns with ``*``, ``?`` and ``[...]``. Default:
///         all.
///     partitions: In a log directory, only partitions with these numbers. Default: all.
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
///     LimitError: A batch is longer than ``limits.batch_len``. Other exceeded limits are findings of kind
///         ``limit``.
///     OSError: A file can't be read.
///     ValueError: The directory is not empty but contains no segment, or a topic or partition does not exist.
///
/// Example:
///     >>> report = kbat.verify("/var/lib/kafka/data")
///     >>> print(report)
///     >>> sys.exit(report.exit_code)
#[pyfunction]
#[pyo3(
    signature = (path, *, topics=None, partitions=None, limits=None, progress=None, **stores),
    text_signature = "(path, *, topics=None, partitions=None, limits=None, progress=None, storage_options=None, store=None, encryption_keys=None, remote=None, remote_log_metadata=None)"
)]
fn verify(
    py: Python<'_>,
    path: PathBuf,
    topics: Option<&Bound<'_, PyAny>>,
    partitions: Option<&Bound<'_, PyAny>>,
    limits: Option<PyLimits>,
    progress: Option<Py<PyAny>>,
    stores: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyReport> {
    let (location, limits) = (StoreArguments::new("verify", stores)?.locate_one(py, path)?, or_default(limits));
    let selection = selection(py, topics, partitions, "error")?;
    let verify = |progress: &mut Progress<'_>| {
        if !selection.is_everything() {
            selection.check(list_location(&location, &|_| false)?.partitions.iter())?;
        }
        verify_selected(&location, &|partition| selection.includes(partition), &limits, progress)
    };
    run(py, progress, |_, progress| verify(progress)).map(PyReport)
}

/// Recover a partition directory as a broker does when it starts after an unclean shutdown.
///
/// The log is truncated at the first batch that is incomplete or whose size, magic or checksum is wrong, and all
/// later segments are deleted. Indexes, transaction indexes, producer snapshots and leader epochs are rebuilt from
/// the remaining batches. Interrupted compactions and deletions are completed or undone. To keep the batches after
/// the first corruption, use ``salvage``.
///
/// Args:
///     path: The partition's directory, or its URL.
///     out: Directory for the recovered copy, or its URL; it must be missing or empty. It is created when the copy is
///         complete.
///     dry_run: Change nothing and report what would be done.
///     in_place: Change the directory itself. Fails if a broker holds the log directory's ``.lock`` (detected only
///         on Linux).
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
///         offset is read once, from ``path`` if it is there. ``storage_options`` are those of the URLs,
///         and ``store`` is that of ``remote``.
///     remote_log_metadata: The log directory with the topic ``__remote_log_metadata``, or a partition directory or
///         ``.log`` file of it: only segments that it has as finished are read. Default with ``remote``: the
///         partitions in the log directory, if any.
///
/// Raises:
///     ValueError: Neither or both of ``out`` and ``in_place`` are set, ``out`` is not empty, there is no segment, a
///         segment has 2 GiB or more, or a broker is running.
///     LimitError: A batch with a valid checksum exceeds the limits.
///     OSError: Reading or writing failed.
///
/// Example:
///     >>> print(kbat.recover("orders-0", dry_run=True))
///     >>> kbat.recover("orders-0", "recovered/orders-0").end_offset
#[pyfunction]
#[pyo3(
    signature = (path, out=None, dry_run=false, *, in_place=false, index_interval_bytes=4096, limits=None, progress=None, **stores),
    text_signature = "(path, out=None, dry_run=False, *, in_place=False, index_interval_bytes=4096, limits=None, progress=None, storage_options=None, store=None, encryption_keys=None, remote=None, remote_log_metadata=None)"
)]
#[expect(clippy::too_many_arguments, reason = "the keyword arguments of the Python signature")]
fn recover(
    py: Python<'_>,
    path: PathBuf,
    out: Option<PathBuf>,
    dry_run: bool,
    in_place: bool,
    index_interval_bytes: u64,
    limits: Option<PyLimits>,
    progress: Option<Py<PyAny>>,
    stores: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyRepairReport> {
    if !dry_run && out.is_none() && !in_place {
        let message = "pass out, a directory for the recovered copy, or in_place=True to change the directory itself";
        return Err(PyValueError::new_err(message));
    }
    let stores = StoreArguments::new("recover", stores)?;
    let (path, target) = match &out {
        Some(out) if !in_place => {
            let (path, target) = stores.locate_both(py, path, out.clone())?;
            (path, Some(target))
        }
        _ => (stores.locate_all(py, path)?, None),
    };
    let out = target.as_ref().map(|target| target.path().to_path_buf()).or(out);
    let options = RecoverOptions { out, in_place, dry_run, index_interval_bytes, limits: or_default(limits) };
    let mut report = run(py, progress, |_, progress| {
        let report = recover_partition(&path, &options, progress)?;
        match &target {
            Some(target) if !dry_run => target.publish().map(|()| report),
            _ => Ok(report),
        }
    })?;
    report.out = report.out.zip(target).map(|(out, target)| target.final_path(&out));
    Ok(PyRepairReport(report))
}

/// Keep every whole batch of a file or partition directory, including those that ``recover`` would drop.
///
/// A batch is whole if its size, magic and checksum are correct, all its records can be read, and its offsets come
/// after those of the previous batch. After corruption, the search for the next batch never mistakes bytes inside a
/// record for a batch. The report lists the omitted bytes in ``dropped``, and the file ``holes.jsonl`` in ``out``
/// lists them too.
///
/// Args:
///     path: The file or directory, or its URL. It is only read.
///     out: Directory to write, or its URL; it must be missing or empty. It is created when it is complete: segments
///         with unchanged offsets, indexes, producer snapshots, leader epochs.
///     index_interval_bytes: Bytes between two index entries.
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
///     ValueError: ``out`` is not empty, or there is no segment.
///     LimitError: A whole batch exceeds the limits.
///     OSError: Reading or writing failed.
///
/// Example:
///     >>> for hole in kbat.salvage("orders-0", "saved/orders-0").dropped:
///     ...     print(hole.position, hole.length, hole.first_offset, hole.last_offset, hole.reason)
#[pyfunction]
#[pyo3(
    signature = (path, out, *, index_interval_bytes=4096, limits=None, progress=None, **stores),
    text_signature = "(path, out, *, index_interval_bytes=4096, limits=None, progress=None, storage_options=None, store=None, encryption_keys=None, remote=None, remote_log_metadata=None)"
)]
fn salvage(
    py: Python<'_>,
    path: PathBuf,
    out: PathBuf,
    index_interval_bytes: u64,
    limits: Option<PyLimits>,
    progress: Option<Py<PyAny>>,
    stores: Option<&Bound<'_, PyDict>>,
) -> PyResult<PyRepairReport> {
    let (path, target) = StoreArguments::new("salvage", stores)?.locate_both(py, path, out)?;
    let options = SalvageOptions { index_interval_bytes, limits: or_default(limits) };
    let mut report =
        run(py, progress, |_, progress| target.published(|out| salvage_partition(&path, out, &options, progress)))?;
    report.out = Some(target.final_path(target.path()));
    Ok(PyRepairReport(report))
}

/// Rebuild ``.index``, ``.timeindex``, ``.txnindex`` and producer snapshots of a partition or one segment.
///
/// ``.log`` files are not changed. Indexes cover a segment up to its first corruption. Readable snapshots are kept.
///
/// Args:
///     path: The partition's directory, or a ``.log`` file.
///     out: Directory for the new files; it must be missing or empty. Default: replace the existing ones.
///     index_interval_bytes: Bytes between two index entries, the topic's ``index.interval.bytes``.
///     limits: Bounds on untrusted input.
///     progress: Called with the bytes done and the total bytes, every few megabytes.
///
/// Raises:
///     ValueError: ``out`` is not empty, there is no segment, or the files would be replaced while a broker is
///         running.
///     LimitError: A batch with a valid checksum exceeds the limits.
///     OSError: Reading or writing failed.
///
/// Example:
///     >>> kbat.rebuild_indexes("orders-0")
#[pyfunction]
#[pyo3(signature = (path, out=None, *, index_interval_bytes=4096, limits=None, progress=None))]
fn rebuild_indexes(
    py: Python<'_>,
    path: PathBuf,
    out: Option<PathBuf>,
    index_interval_bytes: u64,
    limits: Option<PyLimits>,
    progress: Option<Py<PyAny>>,
) -> PyResult<PyRepairReport> {
    let options = RebuildOptions { out, index_interval_bytes, limits: or_default(limits) };
    run(py, progress, |_, progress| rebuild_partition(&path, &options, progress)).map(PyRepairReport)
}
