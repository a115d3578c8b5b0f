//! `sum_batches` and `sum_records` of the submodule `kbat._core.arrow`: sums over batch headers and records by groups.

use std::collections::BTreeMap;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::arrow::{
    BatchGroup, BatchKey, BatchSums, ProgressCallback, RecordSums, ScanStats, sum_records_watched, sum_watched,
};
use crate::error::Result;
use crate::python::arrow::scan::class::PyScan;
use crate::python::arrow::scan::progress::{PassProgress, Waiting};
use crate::python::runtime::errors::OrRaise;
use crate::python::runtime::progress::run;

/// A group: the values of its keys, its sums by their names, and its batches by class of size.
type PyGroup<'py> = (Bound<'py, PyTuple>, Bound<'py, PyDict>, Bound<'py, PyDict>);

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
) -> PyResult<Vec<PyGroup<'py>>> {
    let (sources, options) = scan.get().batches()?;
    let keys = keys_of(py, &by)?;
    let groups =
        summed(py, scan.get(), progress, |callback, stats| sum_watched(sources, &keys, &options, callback, stats))?;
    groups.iter().map(|(group, sums)| described(py, &keys, group, batch_figures(py, sums)?, &sums.sizes)).collect()
}

/// Sum up the records of a scan by groups, on one thread. Needs no PyArrow.
///
/// Args:
///     scan: A scan with ``view="records"``. Its columns have no effect.
///     by: What to group by, as for :func:`sum_batches`. The day of a record is that of its own timestamp.
///     progress: As for :func:`sum_batches`.
///
/// Returns:
///     The groups in the order of their first records, as :func:`sum_batches` returns them, with the number of records
///     by class of size. The size of a record is that of its key, value and headers, without compression. The figures:
///     ``records``, ``key_bytes``, ``value_bytes``, ``header_bytes``, ``headers``, ``null_keys``, ``tombstones`` (with
///     a key and a null value), ``smallest_record`` and ``largest_record``.
///
/// Raises:
///     ValueError: An unknown group, or a scan of another view.
///     KbatError: Corruption.
///     OSError: A file can't be read.
#[pyfunction]
#[pyo3(signature = (scan, by, *, progress=None))]
pub(crate) fn sum_records<'py>(
    py: Python<'py>,
    scan: &Bound<'py, PyScan>,
    by: Vec<String>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Vec<PyGroup<'py>>> {
    let (sources, options) = scan.get().records()?;
    let keys = keys_of(py, &by)?;
    let groups = summed(py, scan.get(), progress, |callback, stats| {
        sum_records_watched(sources, &keys, &options, callback, stats)
    })?;
    groups.iter().map(|(group, sums)| described(py, &keys, group, record_figures(py, sums)?, &sums.sizes)).collect()
}

fn keys_of(py: Python<'_>, names: &[String]) -> PyResult<Vec<BatchKey>> {
    names.iter().map(|name| name.parse()).collect::<Result<Vec<BatchKey>>>().or_raise(py)
}

/// Sums up a scan with the GIL released. The scan shares what was read and lost.
fn summed<T: Send>(
    py: Python<'_>,
    scan: &PyScan,
    progress: Option<&Bound<'_, PyAny>>,
    sum: impl FnOnce(Option<ProgressCallback>, &mut ScanStats) -> Result<T> + Send,
) -> PyResult<T> {
    let waiting = Waiting::with(PassProgress::of(py, progress, || scan.byte_len())?);
    let callback = waiting.callback();
    let mut stats = ScanStats::default();
    let result = run(py, None, |_, _| sum(callback, &mut stats));
    scan.share(py, stats)?;
    if let Some(raised) = waiting.raised() {
        return Err(raised);
    }
    let groups = result?;
    waiting.end(py)?;
    Ok(groups)
}

fn described<'py>(
    py: Python<'py>,
    keys: &[BatchKey],
    group: &BatchGroup,
    figures: Bound<'py, PyDict>,
    sizes: &BTreeMap<u64, u64>,
) -> PyResult<PyGroup<'py>> {
    let values = keys.iter().map(|key| value_of(py, *key, group)).collect::<PyResult<Vec<_>>>()?;
    let counts = PyDict::new(py);
    for (class, count) in sizes {
        counts.set_item(class, count)?;
    }
    Ok((PyTuple::new(py, values)?, figures, counts))
}

fn record_figures<'py>(py: Python<'py>, sums: &RecordSums) -> PyResult<Bound<'py, PyDict>> {
    let figures = PyDict::new(py);
    for (name, sum) in [
        ("records", sums.records),
        ("key_bytes", sums.key_bytes),
        ("value_bytes", sums.value_bytes),
        ("header_bytes", sums.header_bytes),
        ("headers", sums.headers),
        ("null_keys", sums.null_keys),
        ("tombstones", sums.tombstones),
    ] {
        figures.set_item(name, sum)?;
    }
    figures.set_item("smallest_record", sums.smallest_record)?;
    figures.set_item("largest_record", sums.largest_record)?;
    Ok(figures)
}

fn batch_figures<'py>(py: Python<'py>, sums: &BatchSums) -> PyResult<Bound<'py, PyDict>> {
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
    Ok(figures)
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
