//! The submodule `kbat._core.repair`: `kbat.verify`, `kbat.recover`, `kbat.salvage`, `kbat.rebuild_indexes`.

mod findings;
mod reports;

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::io::Progress;
use crate::python::limits::{PyLimits, or_default};
use crate::python::log::add_submodule;
use crate::python::progress::run;
use crate::python::segments::selection;
use crate::repair::{
    RebuildOptions, RecoverOptions, SalvageOptions, rebuild_indexes as rebuild_partition, recover as recover_partition,
    salvage as salvage_partition, verify_selected,
};
use crate::store::listing::list_location;
use findings::{PyFinding, PyReport};
use reports::{PyDroppedRange, PyRepairReport, PyRepairedSegment};

/// Makes the submodule and everything in it.
pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let module =
        add_submodule(parent, "repair", "Damaged logs: verifying, recovering, salvaging, rebuilding indexes.")?;
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

/// Verify a ``.log`` file with the indexes beside it, a partition directory, or a log directory with its partitions.
///
/// Everything that a broker's recovery and ``kafka-dump-log`` check, and more. Nothing is changed; damage of any kind
/// is in the report, never an exception.
///
/// Args:
///     path: The file or directory.
///     topics: Of a log directory, only these topics: names, or patterns with ``*``, ``?`` and ``[...]``. Default: all.
///     partitions: Of a log directory, only partitions with these numbers. Default: all.
///     limits: Bounds on untrusted input.
///     progress: Called with the bytes done and the bytes to do, every few megabytes.
///
/// Raises:
///     LimitError: A batch is longer than ``limits.batch_len``. A record over another limit is a finding ``limit``.
///     OSError: A file can't be read.
///     ValueError: The path holds something but no segment, or a topic or partition does not exist.
///
/// Example:
///     >>> report = kbat.verify("/var/lib/kafka/data")
///     >>> print(report)
///     >>> sys.exit(report.exit_code)
#[pyfunction]
#[pyo3(signature = (path, *, topics=None, partitions=None, limits=None, progress=None))]
fn verify(
    py: Python<'_>,
    path: PathBuf,
    topics: Option<&Bound<'_, PyAny>>,
    partitions: Option<&Bound<'_, PyAny>>,
    limits: Option<PyLimits>,
    progress: Option<Py<PyAny>>,
) -> PyResult<PyReport> {
    let (limits, is_selected) = (or_default(limits), topics.is_some() || partitions.is_some());
    let selection = selection(py, topics, partitions, "error")?;
    let verify = |progress: &mut Progress<'_>| {
        if is_selected {
            selection.check(list_location(&path, &|_| false)?.partitions.iter())?;
        }
        verify_selected(&path, &|partition| selection.includes(partition), &limits, progress)
    };
    run(py, progress, |_, progress| verify(progress)).map(PyReport)
}

/// Recover a partition directory as a broker does when it starts after an unclean shutdown.
///
/// The log is cut at the first batch that is incomplete or whose size, magic or checksum is wrong, and all later
/// segments are deleted; indexes, transaction indexes, producer snapshots and leader epochs are made from what is
/// left. Files of interrupted compactions and deletions are settled. To keep what lies after the first fault, use
/// ``salvage``.
///
/// Args:
///     path: The partition's directory.
///     out: Directory for the recovered copy; it must be missing or empty. It appears when it is complete.
///     dry_run: Change nothing and report what would be done.
///     in_place: Change the directory itself. Refused where a broker holds the log directory's ``.lock`` (seen on
///         Linux only).
///     index_interval_bytes: Bytes between two index entries, the topic's ``index.interval.bytes``.
///     limits: Bounds on untrusted input.
///     progress: Called with the bytes done and the bytes to do, every few megabytes.
///
/// Raises:
///     ValueError: Neither or both of ``out`` and ``in_place``; ``out`` is not empty; no segment; a segment of
///         2 GiB or more; a broker runs.
///     LimitError: A batch whose checksum is right is over the limits.
///     OSError: Reading or writing failed.
///
/// Example:
///     >>> print(kbat.recover("orders-0", dry_run=True))
///     >>> kbat.recover("orders-0", "recovered/orders-0").end_offset
#[pyfunction]
#[pyo3(signature = (path, out=None, dry_run=false, *, in_place=false, index_interval_bytes=4096, limits=None, progress=None))]
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
) -> PyResult<PyRepairReport> {
    if !dry_run && out.is_none() && !in_place {
        let message = "give out, a directory for the recovered copy, or in_place=True to change the directory itself";
        return Err(PyValueError::new_err(message));
    }
    let options = RecoverOptions { out, in_place, dry_run, index_interval_bytes, limits: or_default(limits) };
    run(py, progress, |_, progress| recover_partition(&path, &options, progress)).map(PyRepairReport)
}

/// Keep every whole batch of a file or partition directory that a broker would cut at the first fault.
///
/// A batch is whole if its size, magic and checksum are right, all its records can be read, and its offsets lie after
/// those of the batch before it. After damage the next batch is looked for; bytes inside a record are never taken for
/// one. What was left out is in ``dropped`` of the report and in the file ``holes.jsonl`` of the result.
///
/// Args:
///     path: The file or directory, which is only read.
///     out: Directory to write; it must be missing or empty. It appears when it is complete: segments with their
///         offsets as they were, indexes, producer snapshots, leader epochs.
///     index_interval_bytes: Bytes between two index entries.
///     limits: Bounds on untrusted input.
///     progress: Called with the bytes done and the bytes to do, every few megabytes.
///
/// Raises:
///     ValueError: ``out`` is not empty; no segment.
///     LimitError: A batch that is whole is over the limits.
///     OSError: Reading or writing failed.
///
/// Example:
///     >>> for hole in kbat.salvage("orders-0", "saved/orders-0").dropped:
///     ...     print(hole.position, hole.length, hole.first_offset, hole.last_offset, hole.reason)
#[pyfunction]
#[pyo3(signature = (path, out, *, index_interval_bytes=4096, limits=None, progress=None))]
fn salvage(
    py: Python<'_>,
    path: PathBuf,
    out: PathBuf,
    index_interval_bytes: u64,
    limits: Option<PyLimits>,
    progress: Option<Py<PyAny>>,
) -> PyResult<PyRepairReport> {
    let options = SalvageOptions { index_interval_bytes, limits: or_default(limits) };
    run(py, progress, |_, progress| salvage_partition(&path, &out, &options, progress)).map(PyRepairReport)
}

/// Make ``.index``, ``.timeindex``, ``.txnindex`` and producer snapshots anew, for a partition or one segment.
///
/// No byte of a ``.log`` file is changed. Indexes reach up to a segment's first fault. Snapshots that can be read are
/// kept.
///
/// Args:
///     path: The partition's directory, or a ``.log`` file.
///     out: Directory for the new files; it must be missing or empty. Default: they replace those beside the log.
///     index_interval_bytes: Bytes between two index entries, the topic's ``index.interval.bytes``.
///     limits: Bounds on untrusted input.
///     progress: Called with the bytes done and the bytes to do, every few megabytes.
///
/// Raises:
///     ValueError: ``out`` is not empty; no segment; a broker runs and the files would be replaced.
///     LimitError: A batch whose checksum is right is over the limits.
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
