//! `sum_batches` of the submodule `kbat._core.arrow`: sums over batch headers by groups.

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arrow::{BatchGroup, BatchKey, BatchSums, ScanStats, sum_watched};
use crate::python::arrow::scan::class::PyScan;
use crate::python::arrow::scan::progress::{Progress, Waiting};
use crate::python::runtime::errors::OrRaise;
use crate::python::runtime::progress::run;

/// A group: the values of its keys, its sums by their names, and its batches by class of size.
type Group<'py> = (Bound<'py, PyTuple>, Bound<'py, PyDict>, Bound<'py, PyDict>);

/// Sum up the batches of a scan by groups, from their headers. Needs no PyArrow.
///
/// Args:
///     scan: A scan with ``view="batches"``. Its columns have no effect.
///     by: What to group by: ``topic``, ``partition``, ``compression``, ``producer_id``, ``magic``, and ``day``, the
///         number of days from the epoch to the largest timestamp.
///     progress: Called periodically with the number of bytes processed and the bytes of all sources; True for a
///         progress bar, if ``rich`` is installed.
///
/// Returns:
///     The groups in the order of their first batches, each a tuple of the values of ``by``, a dictionary of figures,
///     and a dictionary of the number of batches by class of size, which is the smallest size with the same 7 leading
///     bits. The figures: ``batches``, ``bytes``, ``records``, ``uncounted_batches`` and ``uncounted_bytes`` (of
///     batches without a record count), ``batch_header_bytes``, ``control_batches``, ``transactional_batches``,
///     ``gaps`` between batches, ``missing_offsets``, ``first_timestamp`` and ``last_timestamp`` of the headers,
///     ``smallest_batch`` and ``largest_batch``.
///
/// Raises:
///     ValueError: An unknown group, or a scan of another view.
///     KbatError: Corruption.
///     OSError: A file can't be read.
#[pyfunction]
#[pyo3(signature = (scan, by, *, progress=None))]
pub(crate) fn sum_batches<'py>(
    py: Python<'py>,
    scan: &Bound<'py, PyScan>,
    by: Vec<String>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Vec<Group<'py>>> {
    let scan = scan.get();
    let (sources, options) = scan.batches()?;
    let keys = by.iter().map(|name| name.parse()).collect::<crate::error::Result<Vec<BatchKey>>>().or_raise(py)?;
    let waiting = Waiting::with(Progress::of(py, progress, || scan.byte_len())?);
    let look = waiting.look();
    let mut stats = ScanStats::default();
    let result = run(py, None, |_, _| sum_watched(sources, &keys, &options, look, &mut stats));
    scan.share(stats);
    if let Some(raised) = waiting.raised() {
        return Err(raised);
    }
    let groups = result?;
    waiting.end(py)?;
    groups.iter().map(|(group, sums)| described(py, &keys, group, sums)).collect()
}

fn described<'py>(py: Python<'py>, keys: &[BatchKey], group: &BatchGroup, sums: &BatchSums) -> PyResult<Group<'py>> {
    let values = keys.iter().map(|key| value_of(py, *key, group)).collect::<PyResult<Vec<_>>>()?;
    let figures = PyDict::new(py);
    for (name, sum) in [
        ("batches", sums.batches),
        ("bytes", sums.bytes),
        ("records", sums.records),
        ("uncounted_batches", sums.uncounted_batches),
        ("uncounted_bytes", sums.uncounted_bytes),
        ("batch_header_bytes", sums.batch_header_bytes),
        ("control_batches", sums.control_batches),
        ("transactional_batches", sums.transactional_batches),
        ("gaps", sums.gaps),
        ("missing_offsets", sums.missing_offsets),
    ] {
        figures.set_item(name, sum)?;
    }
    figures.set_item("first_timestamp", sums.first_timestamp)?;
    figures.set_item("last_timestamp", sums.last_timestamp)?;
    figures.set_item("smallest_batch", sums.smallest_batch)?;
    figures.set_item("largest_batch", sums.largest_batch)?;
    let sizes = PyDict::new(py);
    for (class, count) in &sums.sizes {
        sizes.set_item(class, count)?;
    }
    Ok((PyTuple::new(py, values)?, figures, sizes))
}

fn value_of<'py>(py: Python<'py>, key: BatchKey, group: &BatchGroup) -> PyResult<Bound<'py, PyAny>> {
    match key {
        BatchKey::Topic => group.topic.as_deref().into_bound_py_any(py),
        BatchKey::Partition => group.partition.into_bound_py_any(py),
        BatchKey::Compression => group.compression.into_bound_py_any(py),
        BatchKey::ProducerId => group.producer_id.into_bound_py_any(py),
        BatchKey::Magic => group.magic.into_bound_py_any(py),
        BatchKey::Day => group.day.into_bound_py_any(py),
    }
}
