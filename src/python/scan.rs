//! `kbat.scan`: batches as Arrow columns.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList, PyString, PyTuple};

use crate::arrow::{ArrowScan, Column, ScanOptions, ScanSource, TimestampUnit};
use crate::log::find_segments;
use crate::python::capsule::{self, PyArrowBatch};
use crate::python::errors::OrRaise;
use crate::python::limits::{PyLimits, or_default};
use crate::python::source::{Source, source};

/// Batches of a buffer, of files or of directories as Arrow columns.
///
/// Nothing is read yet. Each use of the result is a fresh pass, in Rust, with the GIL released; memory holds one Arrow batch.
///
/// Args:
///     source: A bytes-like object, or the path of a ``.log`` file, a partition directory or a log directory, or a list of paths.
///     columns: Names, in the order wanted. Default ``key value topic partition offset timestamp timestamp_type headers``; also
///         ``base_offset position partition_leader_epoch producer_id producer_epoch sequence is_transactional compression magic
///         batch_size segment``. Columns that are left out cost nothing.
///     start_offset: First offset to give.
///     end_offset: First offset not to give any more.
///     include_control: Whether control records come too.
///     check_crc: Whether checksums are checked.
///     on_corrupt: ``"fail"``: the first fault ends the pass with its exception.
///     limits: Bounds on untrusted input.
///     topic: Topic for files outside a ``topic-partition`` directory, and for buffers.
///     partition: Partition likewise.
///     timestamp_unit: ``"ms"``, Kafka's own, or ``"us"``, Spark's.
///     max_rows: Rows of an Arrow batch at the most.
///     max_bytes: Bytes of keys, values and headers after which an Arrow batch ends with the Kafka batch.
///
/// Raises:
///     OSError: The path can't be read.
///     ValueError: A column that does not exist.
///
/// Example:
///     >>> kbat.scan("topic-0/", columns=["offset", "timestamp", "value"]).to_polars()
#[pyfunction]
#[pyo3(signature = (source, *, columns=None, start_offset=None, end_offset=None, include_control=false, check_crc=true, on_corrupt="fail", limits=None, topic=None, partition=None, timestamp_unit="ms", max_rows=16384, max_bytes=2_097_152))]
#[expect(clippy::too_many_arguments, reason = "the keyword arguments of the Python signature")]
pub(crate) fn scan(
    source: &Bound<'_, PyAny>,
    columns: Option<&Bound<'_, PyAny>>,
    start_offset: Option<i64>,
    end_offset: Option<i64>,
    include_control: bool,
    check_crc: bool,
    on_corrupt: &str,
    limits: Option<PyLimits>,
    topic: Option<&str>,
    partition: Option<i32>,
    timestamp_unit: &str,
    max_rows: usize,
    max_bytes: usize,
) -> PyResult<PyScan> {
    if on_corrupt != "fail" {
        return Err(PyValueError::new_err(format!("on_corrupt must be \"fail\", not {on_corrupt:?}")));
    }
    if max_rows == 0 {
        return Err(PyValueError::new_err("max_rows must be 1 or more"));
    }
    let timestamp_unit = match timestamp_unit {
        "ms" => TimestampUnit::Millisecond,
        "us" => TimestampUnit::Microsecond,
        unit => return Err(PyValueError::new_err(format!("timestamp_unit must be \"ms\" or \"us\", not {unit:?}"))),
    };
    let options = ScanOptions {
        columns: columns.map_or_else(|| Ok(Column::DEFAULT.to_vec()), parse_columns)?,
        timestamp_unit,
        start_offset,
        end_offset,
        include_control,
        check_crc,
        limits: or_default(limits),
        max_rows,
        max_bytes,
    };
    let sources = sources(source)?;
    let sources = sources.into_iter().map(|source| source.or_topic_partition(topic, partition)).collect();
    Ok(PyScan { sources, options })
}

fn parse_columns(columns: &Bound<'_, PyAny>) -> PyResult<Vec<Column>> {
    if columns.is_instance_of::<PyString>() {
        return Err(PyValueError::new_err("columns must be a list of names, not one string"));
    }
    let mut parsed = Vec::new();
    for name in columns.try_iter()? {
        let column = name?.extract::<String>()?.parse::<Column>().or_raise(columns.py())?;
        if parsed.contains(&column) {
            return Err(PyValueError::new_err(format!("column {column} is asked for twice")));
        }
        parsed.push(column);
    }
    Ok(parsed)
}

/// Sources of a `source` argument, which may also be a list of paths.
fn sources(object: &Bound<'_, PyAny>) -> PyResult<Vec<ScanSource>> {
    if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        let mut all = Vec::new();
        for part in object.try_iter()? {
            all.extend(sources(&part?)?);
        }
        return Ok(all);
    }
    match source(object)? {
        Source::Bytes(bytes) => Ok(vec![ScanSource::memory(bytes)]),
        Source::Path(path) => {
            let py = object.py();
            let segments = py.detach(|| find_segments(&path)).or_raise(py)?;
            Ok(segments.iter().map(ScanSource::file).collect())
        }
    }
}

/// A scan that can be passed over as often as you like: by anything that takes the Arrow PyCapsule interface (polars, DuckDB,
/// pandas, PyArrow), or by ``to_pyarrow()``, ``to_pandas()``, ``to_polars()`` and ``to_batches()``.
#[pyclass(frozen, name = "Scan", module = "kbat")]
pub(crate) struct PyScan {
    sources: Vec<ScanSource>,
    options: ScanOptions,
}

impl PyScan {
    pub(crate) fn pass(&self) -> ArrowScan {
        ArrowScan::new(self.sources.clone(), self.options.clone())
    }
}

#[pymethods]
impl PyScan {
    /// The schema, a ``pyarrow.Schema``.
    #[getter]
    fn schema<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("schema", (slf,))
    }

    /// The schema for the Arrow PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        capsule::schema(py, &self.options.schema())
    }

    /// A fresh pass for the Arrow PyCapsule interface. A requested schema is not heeded, which the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        drop(requested_schema);
        capsule::stream(py, self.pass())
    }

    /// Iterates a fresh pass as ``pyarrow.RecordBatch``, raising kbat's own exceptions.
    fn to_batches(&self) -> PyArrowBatchIterator {
        PyArrowBatchIterator(Mutex::new(self.pass()))
    }

    /// Everything as a ``pyarrow.Table``.
    fn to_pyarrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let batches = PyList::empty(py);
        for batch in slf.call_method0("to_batches")?.try_iter()? {
            batches.append(batch?)?;
        }
        let table = py.import("pyarrow")?.getattr("Table")?;
        table.call_method1("from_batches", (batches, slf.getattr("schema")?))
    }

    /// Everything as a ``pandas.DataFrame``; needs pyarrow.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::to_pyarrow(slf)?.call_method0("to_pandas")
    }

    /// Everything as a ``polars.DataFrame``.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    fn __repr__(&self) -> String {
        let names: Vec<&str> = self.options.columns.iter().map(|column| column.name()).collect();
        format!("Scan({} sources: {})", self.sources.len(), names.join(", "))
    }
}

/// Iterates Arrow batches as ``pyarrow.RecordBatch``; see :meth:`Scan.to_batches`.
#[pyclass(frozen, name = "ArrowBatchIterator", module = "kbat")]
pub(crate) struct PyArrowBatchIterator(Mutex<ArrowScan>);

#[pymethods]
impl PyArrowBatchIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let next = py.detach(|| self.0.lock().unwrap_or_else(PoisonError::into_inner).next());
        match next.transpose().or_raise(py)? {
            Some(batch) => {
                let batch = Bound::new(py, PyArrowBatch(batch))?;
                py.import("pyarrow")?.call_method1("record_batch", (batch,)).map(Some)
            }
            None => Ok(None),
        }
    }
}
