//! The submodule `kbat._core.arrow`: records, batches and segments as Arrow columns, and the way back.

use std::str::FromStr;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyString};

use crate::arrow::{BatchColumn, Column, Isolation, OnCorrupt, ScanOptions, SegmentColumn, TimestampUnit};
use crate::python::encode;
use crate::python::errors::OrRaise;
use crate::python::limits::{PyLimits, or_default};
use crate::python::log::add_submodule;
use crate::python::scan_class::PyScan;
use crate::python::scan_pass::{PyArrowBatchIterator, PyScanStats};
use crate::python::scan_source::{self, sources};

/// Makes the submodule and everything in it.
pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let module =
        add_submodule(parent, "arrow", "Records, batches and segments as Arrow columns, and Arrow data as batches.")?;
    module.add_class::<PyScan>()?;
    module.add_class::<PyArrowBatchIterator>()?;
    module.add_class::<PyScanStats>()?;
    module.add_class::<encode::PyEncodedBatch>()?;
    module.add_class::<encode::PyEncodedBatchIterator>()?;
    module.add_function(wrap_pyfunction!(scan, &module)?)?;
    module.add_function(wrap_pyfunction!(scan_source::split, &module)?)?;
    module.add_function(wrap_pyfunction!(encode::encode, &module)?)?;
    module.add_function(wrap_pyfunction!(encode::encode_batches, &module)?)?;
    Ok(())
}

/// Batches of a buffer, of files or of directories as Arrow columns.
///
/// Nothing is read yet. Each use of the result is a fresh pass, in Rust, with the GIL released; memory holds one Arrow
/// batch.
///
/// Args:
///     source: A bytes-like object, or the path of a ``.log`` file, a partition directory or a log directory, a
///         pattern such as ``/data/orders-*``, a part of a file as :func:`split` gives them, or a list of these.
///     columns: Names, in the order wanted. Columns that are left out cost nothing. Of records: default ``key value
///         topic partition offset timestamp timestamp_type headers``; also ``base_offset position
///         partition_leader_epoch producer_id producer_epoch sequence is_transactional compression magic batch_size
///         segment``. Of batches: default all that the header tells; also ``crc_ok uncompressed_size ratio``, which
///         read the whole batch. Of segments: default all but ``batch_count``, which reads every header.
///     view: ``"records"``; ``"batches"``, a row a batch, control batches too, reading headers only;
///         ``"segments"``, a row a ``.log`` file.
///     start_offset: First offset to give. Without it records come that were deleted and lie in a segment still; those
///         of a partition begin at its ``PartitionLog.start_offset``.
///     end_offset: First offset not to give any more.
///     start_timestamp: Smallest timestamp to give, in milliseconds since the epoch or as a ``datetime`` with a
///         time zone. What lies before it by name, index or header of a batch is not read.
///     end_timestamp: Smallest timestamp not to give any more.
///     isolation: ``"read_committed"``: neither records of aborted transactions nor any from the last stable offset
///         on, as a consumer with that ``isolation.level``. What was aborted is told by the markers in the
///         partition's segments, and their transaction indexes; for a buffer or a file outside a partition
///         directory, by itself.
///     include_control: Whether control records come too.
///     check_crc: Whether checksums are checked; not by views, which read headers: their column ``crc_ok`` does it.
///     on_corrupt: ``"fail"``: the first fault ends the pass with its exception. ``"skip"``: damaged batches are
///         left out whole, the next batch is looked for, and ``Scan.stats`` counts what was lost. ``"report"``: as
///         ``"skip"``, and each fault is a row of nulls with a last column ``error``, a struct of ``kind message
///         path position length first_offset last_offset``. What bounds leave out by its header is not checked with
///         ``"fail"``, as nobody reads it.
///     limits: Bounds on untrusted input.
///     topic: Topic for files outside a ``topic-partition`` directory, and for buffers.
///     partition: Partition likewise.
///     timestamp_unit: ``"ms"``, Kafka's own, or ``"us"``, Spark's. Where there is no timestamp, it is -1 ms; its type
///         is 0 for CreateTime, 1 for LogAppendTime and -1 before v1.
///     binary_view: Whether keys, values and the values of headers are ``binary_view``: those of uncompressed batches
///         are not copied. The Arrow data then holds the buffer, or the parts of the file that were read.
///     max_rows: Rows of an Arrow batch at the most.
///     max_bytes: Bytes of keys, values and headers after which an Arrow batch ends with the Kafka batch.
///     leave_page_cache: Whether pages that reading brings into the page cache are dropped again, for a machine that a
///         broker works on. What was cached stays. It is slower; on systems other than Linux without effect.
///
/// Raises:
///     OSError: The path can't be read.
///     ValueError: A column that does not exist, or an argument that can't be.
///
/// Example:
///     >>> kbat.scan("topic-0/", columns=["offset", "timestamp", "value"]).to_polars()
#[pyfunction]
#[pyo3(signature = (source, *, columns=None, view="records", start_offset=None, end_offset=None, start_timestamp=None, end_timestamp=None, isolation="read_uncommitted", include_control=false, check_crc=true, on_corrupt="fail", limits=None, topic=None, partition=None, timestamp_unit="ms", binary_view=false, max_rows=16384, max_bytes=1_048_576, leave_page_cache=false))]
#[expect(
    clippy::too_many_arguments,
    clippy::fn_params_excessive_bools,
    reason = "the keyword arguments of the Python signature"
)]
pub(crate) fn scan(
    source: &Bound<'_, PyAny>,
    columns: Option<&Bound<'_, PyAny>>,
    view: &str,
    start_offset: Option<i64>,
    end_offset: Option<i64>,
    start_timestamp: Option<&Bound<'_, PyAny>>,
    end_timestamp: Option<&Bound<'_, PyAny>>,
    isolation: &str,
    include_control: bool,
    check_crc: bool,
    on_corrupt: &str,
    limits: Option<PyLimits>,
    topic: Option<&str>,
    partition: Option<i32>,
    timestamp_unit: &str,
    binary_view: bool,
    max_rows: usize,
    max_bytes: usize,
    leave_page_cache: bool,
) -> PyResult<PyScan> {
    if max_rows == 0 {
        return Err(PyValueError::new_err("max_rows must be 1 or more"));
    }
    let options = ScanOptions {
        timestamp_unit: choice(
            "timestamp_unit",
            timestamp_unit,
            &[("ms", TimestampUnit::Millisecond), ("us", TimestampUnit::Microsecond)],
        )?,
        start_offset,
        end_offset,
        start_timestamp: start_timestamp.map(milliseconds).transpose()?,
        end_timestamp: end_timestamp.map(milliseconds).transpose()?,
        isolation: choice(
            "isolation",
            isolation,
            &[("read_uncommitted", Isolation::ReadUncommitted), ("read_committed", Isolation::ReadCommitted)],
        )?,
        include_control,
        check_crc,
        on_corrupt: choice(
            "on_corrupt",
            on_corrupt,
            &[("fail", OnCorrupt::Fail), ("skip", OnCorrupt::Skip), ("report", OnCorrupt::Report)],
        )?,
        limits: or_default(limits),
        binary_view,
        max_rows,
        max_bytes,
        leave_page_cache,
        ..ScanOptions::default()
    };
    let (options, view) = with_columns(options, view, columns)?;
    let sources = sources(source)?;
    let sources = sources.into_iter().map(|source| source.or_topic_partition(topic, partition)).collect();
    Ok(PyScan::new(sources, view, options))
}

/// The rows of a scan, with their columns; those of records are in the options.
#[derive(Clone)]
pub(crate) enum Rows {
    Records,
    Batches(Vec<BatchColumn>),
    Segments(Vec<SegmentColumn>),
}

fn with_columns(
    mut options: ScanOptions,
    view: &str,
    columns: Option<&Bound<'_, PyAny>>,
) -> PyResult<(ScanOptions, Rows)> {
    let rows = match view {
        "records" => {
            options.columns = columns.map_or_else(|| Ok(Column::DEFAULT.to_vec()), parse_columns)?;
            return Ok((options, Rows::Records));
        }
        "batches" => Rows::Batches(columns.map_or_else(|| Ok(BatchColumn::defaults()), parse_columns)?),
        "segments" => Rows::Segments(columns.map_or_else(|| Ok(SegmentColumn::defaults()), parse_columns)?),
        _ => {
            let message = format!("view must be \"records\", \"batches\" or \"segments\", not {view:?}");
            return Err(PyValueError::new_err(message));
        }
    };
    if options.isolation == Isolation::ReadCommitted {
        return Err(PyValueError::new_err("isolation \"read_committed\" is about records: it needs view=\"records\""));
    }
    Ok((options, rows))
}

/// One of the values that an argument can have, by its name.
fn choice<T: Copy>(argument: &str, name: &str, choices: &[(&str, T)]) -> PyResult<T> {
    if let Some((_, value)) = choices.iter().find(|(known, _)| *known == name) {
        return Ok(*value);
    }
    let names: Vec<String> = choices.iter().map(|(known, _)| format!("{known:?}")).collect();
    Err(PyValueError::new_err(format!("{argument} must be {}, not {name:?}", names.join(" or "))))
}

/// Milliseconds since the epoch of an int or a datetime; a part of a millisecond counts as a whole one.
pub(crate) fn milliseconds(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    if object.is_instance_of::<PyInt>() || object.hasattr("__index__")? {
        return object.extract();
    }
    let module = object.py().import("datetime")?;
    if !object.is_instance(&module.getattr("datetime")?)? {
        let message = "a timestamp must be an int in milliseconds since the epoch or a datetime";
        return Err(pyo3::exceptions::PyTypeError::new_err(message));
    }
    if object.getattr("tzinfo")?.is_none() {
        return Err(PyValueError::new_err("a datetime without a time zone is no instant: give it a tzinfo"));
    }
    let utc = module.getattr("timezone")?.getattr("utc")?;
    let epoch = module.getattr("datetime")?.call1((1970, 1, 1, 0, 0, 0, 0, utc))?;
    let millisecond = module.getattr("timedelta")?.call1((0, 0, 0, 1))?;
    let before: i64 = epoch.sub(object)?.floor_div(millisecond)?.extract()?;
    Ok(before.saturating_neg())
}

pub(crate) fn parse_columns<C>(columns: &Bound<'_, PyAny>) -> PyResult<Vec<C>>
where
    C: FromStr<Err = crate::Error> + PartialEq + std::fmt::Display,
{
    if columns.is_instance_of::<PyString>() {
        return Err(PyValueError::new_err("columns must be a list of names, not one string"));
    }
    let mut parsed = Vec::new();
    for name in columns.try_iter()? {
        let column = name?.extract::<String>()?.parse::<C>().or_raise(columns.py())?;
        if parsed.contains(&column) {
            return Err(PyValueError::new_err(format!("column {column} is asked for twice")));
        }
        parsed.push(column);
    }
    Ok(parsed)
}
