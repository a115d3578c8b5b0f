//! `kbat.Scan`: a lazy scan that can be read many times.

use std::sync::{Arc, PoisonError};

use arrow_schema::{DataType, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};

use crate::arrow::{
    ArrowScan, BatchScan, Column, OnCorrupt, ParallelScan, Parallelism, ScanOptions, ScanSource, ScanStats, SegmentScan,
};
use crate::io::Location;
use crate::python::arguments::time::instant;
use crate::python::arrow::batch::{self, PyArrowBatches};
use crate::python::arrow::requested_schema::requested;
use crate::python::arrow::scan::capsule;
use crate::python::arrow::scan::columns::{ScanRows, internal_columns, parse_columns};
use crate::python::arrow::scan::pass::{
    Pass, PyArrowBatchIterator, PyScanStats, SharedStats, ViewScan, warn_of_missing,
};
use crate::python::arrow::scan::progress::{PassProgress, Waiting};
use crate::python::html::Table;

/// Maximum threads for reading a whole table, if the caller does not set a number.
const MOST_THREADS: usize = 8;

/// Below this number of bytes, threads cost more than they save.
const WORTH_THREADS: u64 = 4 << 20;

/// Default maximum bytes of Arrow batches that threads may buffer.
const MAX_MEMORY_BYTES: usize = 256 << 20;

/// A lazy scan that can be read any number of times.
///
/// Any consumer of the Arrow PyCapsule interface can read it, such as polars, DuckDB and PyArrow. Or use
/// ``to_pyarrow()``, ``to_pandas()``, ``to_polars()``, ``to_batches()`` and ``to_reader()``.
#[pyclass(frozen, name = "Scan", module = "kbat")]
pub(crate) struct PyScan {
    sources: Vec<ScanSource>,
    view: ScanRows,
    options: ScanOptions,
    stats: SharedStats,
}

impl PyScan {
    pub(crate) fn new(sources: Vec<ScanSource>, view: ScanRows, options: ScanOptions) -> Self {
        Self { sources, view, options, stats: SharedStats::default() }
    }

    /// The files that the scan reads.
    pub(crate) fn files(&self) -> impl Iterator<Item = &Location> {
        self.sources.iter().filter_map(ScanSource::path)
    }

    /// The sources and options of a scan of records.
    pub(crate) fn records(&self) -> PyResult<(Vec<ScanSource>, ScanOptions)> {
        match self.view {
            ScanRows::Records => Ok((self.sources.clone(), self.options.clone())),
            _ => Err(PyValueError::new_err("only records are written as text or summed up: use view=\"records\"")),
        }
    }

    /// The sources and options of a scan of batches.
    pub(crate) fn batches(&self) -> PyResult<(Vec<ScanSource>, ScanOptions)> {
        match self.view {
            ScanRows::Batches(_) => Ok((self.sources.clone(), self.options.clone())),
            _ => Err(PyValueError::new_err("only batches are summed up: use a scan with view=\"batches\"")),
        }
    }

    /// Sets the counters of the most recent pass, which has ended.
    pub(crate) fn share(&self, py: Python<'_>, stats: ScanStats) -> PyResult<()> {
        *self.stats.lock().unwrap_or_else(PoisonError::into_inner) = Some(stats);
        warn_of_missing(py, &stats)
    }

    /// A new pass on this thread.
    pub(crate) fn pass(&self) -> Pass {
        self.pass_by(1, MAX_MEMORY_BYTES, Waiting::nobody())
    }

    /// A new pass on a number of threads. Only a pass of records uses more than one.
    fn pass_by(&self, threads: usize, max_memory_bytes: usize, waiting: Waiting) -> Pass {
        let (sources, options) = (self.sources.clone(), self.options.clone());
        let callback = waiting.callback();
        let view = match &self.view {
            ScanRows::Records | ScanRows::Internal if threads > 1 => {
                let parallelism = Parallelism { threads, max_memory_bytes, ..Parallelism::default() };
                ViewScan::Parallel(Box::new(ParallelScan::watched(sources, options, parallelism, callback)))
            }
            ScanRows::Records | ScanRows::Internal => {
                ViewScan::Records(Box::new(ArrowScan::watched(sources, options, callback)))
            }
            ScanRows::Batches(columns) => {
                ViewScan::Batches(Box::new(BatchScan::watched(sources, columns.clone(), options, callback)))
            }
            ScanRows::Segments(columns) => {
                ViewScan::Segments(Box::new(SegmentScan::new(sources, columns.clone(), options)))
            }
        };
        Pass::new(view, Arc::clone(&self.stats), waiting)
    }

    /// A new pass with a progress callback and checks for signals.
    pub(crate) fn watched(
        &self,
        py: Python<'_>,
        threads: usize,
        max_memory_bytes: Option<usize>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Pass> {
        let progress = PassProgress::of(py, progress, || self.byte_len())?;
        Ok(self.pass_by(threads, max_memory_bytes.unwrap_or(MAX_MEMORY_BYTES), Waiting::with(progress)))
    }

    /// All Arrow batches, read with the GIL released.
    fn all(
        &self,
        py: Python<'_>,
        threads: Option<usize>,
        max_memory_bytes: Option<usize>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyArrowBatches> {
        let threads = threads.unwrap_or_else(|| py.detach(|| self.threads_worth_it()));
        let mut pass = self.watched(py, threads, max_memory_bytes, progress)?;
        let mut batches = Vec::new();
        while let Some(batch) = pass.advance(py)? {
            batches.push(batch);
        }
        Ok(PyArrowBatches { schema: self.arrow_schema(), batches })
    }

    fn threads_worth_it(&self) -> usize {
        if self.byte_len() < WORTH_THREADS { 1 } else { Parallelism::default().threads.min(MOST_THREADS) }
    }

    pub(crate) fn byte_len(&self) -> u64 {
        self.sources.iter().map(ScanSource::byte_len).fold(0, u64::saturating_add)
    }

    pub(crate) fn arrow_schema(&self) -> SchemaRef {
        match &self.view {
            ScanRows::Records | ScanRows::Internal => self.options.schema(),
            ScanRows::Batches(columns) => BatchScan::schema_of(columns, &self.options),
            ScanRows::Segments(columns) => SegmentScan::schema_of(columns, &self.options),
        }
    }

    /// The scan with the columns and the kind of binary that a consumer requests, or `None` if it lacks one of the
    /// columns.
    fn as_requested(&self, schema: &SchemaRef) -> Option<Self> {
        let own = self.arrow_schema();
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        if names.is_empty() || !names.iter().all(|name| own.column_with_name(name).is_some()) {
            return None;
        }
        let wants_views = schema.fields().iter().any(|field| has_views(field.data_type()));
        let mut options = ScanOptions { binary_view: wants_views, ..self.options.clone() };
        let view = match &self.view {
            ScanRows::Records => {
                options.columns = names.iter().map(|name| name.parse().ok()).collect::<Option<_>>()?;
                ScanRows::Records
            }
            ScanRows::Internal => {
                options.columns = names.iter().map(|name| Column::of_internal(name).ok()).collect::<Option<_>>()?;
                ScanRows::Internal
            }
            ScanRows::Batches(_) => {
                ScanRows::Batches(names.iter().map(|name| name.parse().ok()).collect::<Option<_>>()?)
            }
            ScanRows::Segments(_) => {
                ScanRows::Segments(names.iter().map(|name| name.parse().ok()).collect::<Option<_>>()?)
            }
        };
        Some(Self { sources: self.sources.clone(), view, options, stats: Arc::clone(&self.stats) })
    }
}

fn has_views(data_type: &DataType) -> bool {
    match data_type {
        DataType::BinaryView => true,
        DataType::List(field) => has_views(field.data_type()),
        DataType::Struct(fields) => fields.iter().any(|field| has_views(field.data_type())),
        _ => false,
    }
}

#[pymethods]
impl PyScan {
    /// The schema, a ``pyarrow.Schema``.
    #[getter]
    fn schema<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("schema", (slf,))
    }

    /// Names of the columns, in order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.arrow_schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Count the rows. Only one column is decoded.
    ///
    /// Args:
    ///     threads: See ``to_pyarrow()``.
    #[pyo3(signature = (*, threads=None))]
    fn count(&self, py: Python<'_>, threads: Option<usize>) -> PyResult<usize> {
        let threads = threads.unwrap_or_else(|| py.detach(|| self.threads_worth_it()));
        let mut options = self.options.clone();
        if matches!(self.view, ScanRows::Records | ScanRows::Internal) {
            options.columns = vec![Column::Offset];
        }
        let own =
            Self { sources: self.sources.clone(), view: self.view.clone(), options, stats: Arc::clone(&self.stats) };
        let (mut pass, mut count) = (own.watched(py, threads, None, None)?, 0_usize);
        while let Some(batch) = pass.advance(py)? {
            count = count.saturating_add(batch.num_rows());
        }
        Ok(count)
    }

    /// Read the first rows as a ``pyarrow.Table``.
    ///
    /// Args:
    ///     rows: Maximum number of rows.
    #[pyo3(signature = (rows=10))]
    fn head<'py>(&self, py: Python<'py>, rows: usize) -> PyResult<Bound<'py, PyAny>> {
        let options = ScanOptions { max_rows: rows.clamp(1, self.options.max_rows), ..self.options.clone() };
        let own =
            Self { sources: self.sources.clone(), view: self.view.clone(), options, stats: Arc::clone(&self.stats) };
        let (mut pass, mut batches, mut left) = (own.watched(py, 1, None, None)?, Vec::new(), rows);
        while left > 0
            && let Some(batch) = pass.advance(py)?
        {
            let batch = batch.slice(0, left.min(batch.num_rows()));
            left = left.saturating_sub(batch.num_rows());
            batches.push(batch);
        }
        let all = PyArrowBatches { schema: self.arrow_schema(), batches };
        py.import("pyarrow")?.call_method1("table", (all,))
    }

    /// Iterate over a new pass, one ``pyarrow.RecordBatch`` at a time, like ``to_batches()``.
    fn __iter__(&self, py: Python<'_>) -> PyResult<PyArrowBatchIterator> {
        self.to_batches(py, 1, None, None)
    }

    /// What the most recently advanced pass has read and lost so far; None before the first pass.
    ///
    /// With several threads, rows that were decoded and not taken are counted, too.
    #[getter]
    fn stats(&self) -> Option<PyScanStats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner).map(PyScanStats)
    }

    /// The distinct topics and partitions of the sources, in their order; None if they are unknown.
    #[getter]
    fn topic_partitions(&self) -> Vec<(Option<&str>, Option<i32>)> {
        let mut found = Vec::new();
        for source in &self.sources {
            let place = (source.origin.topic.as_deref(), source.origin.partition);
            if !found.contains(&place) {
                found.push(place);
            }
        }
        found
    }

    /// Return the same scan with narrower bounds.
    ///
    /// Records without a timestamp are in no time range. So if ``missing_timestamp`` gives them one within the range,
    /// the scan is not narrowed by time, and returns rows outside of it too.
    ///
    /// Args:
    ///     columns: Names of the columns, in order, as for :func:`scan`. Default: the columns of this scan.
    ///     start_offset: First offset to read, if it is later than this scan's.
    ///     end_offset: Read up to, but not including, this offset, if it is earlier than this scan's.
    ///     start_timestamp: Read records with this timestamp or a later one, if it is later than this scan's.
    ///     end_timestamp: Read records with a timestamp before this one, if it is earlier than this scan's.
    ///     topics: Exact names. Sources of other topics are omitted; those with an unknown topic are kept.
    ///     partitions: Sources of other partitions are omitted; those with an unknown partition are kept.
    ///
    /// Raises:
    ///     ValueError: A column does not exist.
    #[pyo3(signature = (*, columns=None, start_offset=None, end_offset=None, start_timestamp=None, end_timestamp=None, topics=None, partitions=None))]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments of the Python signature")]
    fn narrow(
        &self,
        columns: Option<&Bound<'_, PyAny>>,
        start_offset: Option<i64>,
        end_offset: Option<i64>,
        start_timestamp: Option<&Bound<'_, PyAny>>,
        end_timestamp: Option<&Bound<'_, PyAny>>,
        topics: Option<Vec<String>>,
        partitions: Option<Vec<i32>>,
    ) -> PyResult<Self> {
        let (mut options, mut view) = (self.options.clone(), self.view.clone());
        options.start_offset = later(options.start_offset, start_offset);
        options.end_offset = earlier(options.end_offset, end_offset);
        let (start, end) = (start_timestamp.map(instant).transpose()?, end_timestamp.map(instant).transpose()?);
        let is_within =
            |missing: i64| start.is_none_or(|start| start <= missing) && end.is_none_or(|end| missing < end);
        if !options.missing_timestamp.is_some_and(is_within) {
            options.start_timestamp = later(options.start_timestamp, start);
            options.end_timestamp = earlier(options.end_timestamp, end);
        }
        if let Some(columns) = columns {
            match &mut view {
                ScanRows::Records => options.columns = parse_columns(columns)?,
                ScanRows::Internal => options.columns = internal_columns(columns)?,
                ScanRows::Batches(own) => *own = parse_columns(columns)?,
                ScanRows::Segments(own) => *own = parse_columns(columns)?,
            }
        }
        let is_wanted = |source: &&ScanSource| {
            let topic = source.origin.topic.as_deref().zip(topics.as_ref());
            let partition = source.origin.partition.zip(partitions.as_ref());
            topic.is_none_or(|(topic, topics)| topics.iter().any(|wanted| wanted == topic))
                && partition.is_none_or(|(partition, partitions)| partitions.contains(&partition))
        };
        Ok(Self::new(self.sources.iter().filter(is_wanted).cloned().collect(), view, options))
    }

    /// The schema for the Arrow PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        batch::schema(py, &self.arrow_schema())
    }

    /// A new pass for the Arrow PyCapsule interface, on one thread.
    ///
    /// If the consumer requests a schema, the pass has the schema's columns in its order, as ``binary`` or
    /// ``binary_view``. Other requested types are ignored, which the interface allows.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let requested = requested_schema.as_ref().map(requested).transpose()?;
        let other = requested.and_then(|schema| self.as_requested(&schema));
        capsule::stream(py, other.as_ref().unwrap_or(self).pass())
    }

    /// Iterate over a new pass as ``pyarrow.RecordBatch``, raising kbat's own exceptions.
    ///
    /// Args:
    ///     threads: Number of threads that decode parts of the sources ahead of the caller. The order of rows is
    ///         kept. Has an effect on records only.
    ///     max_memory_bytes: Maximum bytes of Arrow batches that threads may buffer. Default 256 MiB.
    ///     progress: Called periodically with the number of bytes processed and the bytes of all sources; True for a
    ///         progress bar, if ``rich`` is installed.
    #[pyo3(signature = (*, threads=1, max_memory_bytes=None, progress=None))]
    fn to_batches(
        &self,
        py: Python<'_>,
        threads: usize,
        max_memory_bytes: Option<usize>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PyArrowBatchIterator> {
        Ok(PyArrowBatchIterator::new(self.watched(py, threads, max_memory_bytes, progress)?))
    }

    /// Return a new pass as a ``pyarrow.RecordBatchReader``, raising kbat's own exceptions.
    ///
    /// The arguments are those of ``to_batches()``.
    #[pyo3(signature = (**arguments))]
    fn to_reader<'py>(slf: &Bound<'py, Self>, arguments: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyAny>> {
        let batches = slf.call_method("to_batches", (), arguments)?;
        let reader = slf.py().import("pyarrow")?.getattr("RecordBatchReader")?;
        reader.call_method1("from_batches", (slf.getattr("schema")?, batches))
    }

    /// Read all rows as a ``pyarrow.Table``.
    ///
    /// Args:
    ///     threads: See ``to_batches()``. Default: the number of CPUs, at most 8, or 1 if the sources are small.
    ///     max_memory_bytes: See ``to_batches()``.
    ///     progress: See ``to_batches()``.
    #[pyo3(signature = (*, threads=None, max_memory_bytes=None, progress=None))]
    fn to_pyarrow<'py>(
        &self,
        py: Python<'py>,
        threads: Option<usize>,
        max_memory_bytes: Option<usize>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let all = self.all(py, threads, max_memory_bytes, progress)?;
        py.import("pyarrow")?.call_method1("table", (all,))
    }

    /// Read all rows as a ``pandas.DataFrame``; needs pyarrow.
    ///
    /// Args:
    ///     threads: See ``to_pyarrow()``.
    ///     max_memory_bytes: See ``to_pyarrow()``.
    ///     progress: See ``to_pyarrow()``.
    ///     arguments: Keyword arguments of ``pyarrow.Table.to_pandas``, such as ``types_mapper=pandas.ArrowDtype``.
    #[pyo3(signature = (*, threads=None, max_memory_bytes=None, progress=None, **arguments))]
    fn to_pandas<'py>(
        &self,
        py: Python<'py>,
        threads: Option<usize>,
        max_memory_bytes: Option<usize>,
        progress: Option<&Bound<'py, PyAny>>,
        arguments: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.to_pyarrow(py, threads, max_memory_bytes, progress)?.call_method("to_pandas", (), arguments)
    }

    /// Read all rows as a ``polars.DataFrame``. The arguments are those of ``to_pyarrow()``.
    #[pyo3(signature = (*, threads=None, max_memory_bytes=None, progress=None))]
    fn to_polars<'py>(
        &self,
        py: Python<'py>,
        threads: Option<usize>,
        max_memory_bytes: Option<usize>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let all = self.all(py, threads, max_memory_bytes, progress)?;
        py.import("polars")?.call_method1("DataFrame", (all,))
    }

    /// An empty table with the columns' types, as an object with `__arrow_c_stream__`.
    fn _empty(&self) -> PyArrowBatches {
        PyArrowBatches { schema: self.arrow_schema(), batches: Vec::new() }
    }

    fn __repr__(&self) -> String {
        let schema = self.arrow_schema();
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        format!("Scan({} sources: {})", self.sources.len(), names.join(", "))
    }

    fn _repr_html_(&self) -> String {
        let schema = self.arrow_schema();
        let fields = schema.fields().iter().map(|field| [field.name().clone(), field.data_type().to_string()]);
        let ScanOptions { start_offset, end_offset, start_timestamp, end_timestamp, .. } = &self.options;
        let view = match &self.view {
            ScanRows::Records => "records",
            ScanRows::Internal => "internal topics",
            ScanRows::Batches(_) => "batches",
            ScanRows::Segments(_) => "segments",
        };
        Table::new(&format!("Scan of {view} of {} sources", self.sources.len()))
            .list(["column", "type"], fields)
            .row_if("first source", self.sources.first().map(name_of))
            .row_if("last source", self.sources.get(1..).and_then(<[_]>::last).map(name_of))
            .row_if("start_offset", *start_offset)
            .row_if("end_offset", *end_offset)
            .row_if("start_timestamp", start_timestamp.map(crate::python::html::instant))
            .row_if("end_timestamp", end_timestamp.map(crate::python::html::instant))
            .row_if("include_control", self.options.include_control.then_some("True"))
            .row_if("check_crc", (!self.options.check_crc).then_some("False"))
            .row_if("on_corrupt", self.on_corrupt())
            .finish()
    }
}

impl PyScan {
    fn on_corrupt(&self) -> Option<&'static str> {
        match self.options.on_corrupt {
            OnCorrupt::Fail => None,
            OnCorrupt::Skip => Some("skip"),
            OnCorrupt::Report => Some("report"),
        }
    }
}

fn name_of(source: &ScanSource) -> String {
    source.path().map_or_else(|| "a buffer".to_owned(), |path| path.display().to_string())
}

/// The later of two bounds.
fn later(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    one.max(other)
}

/// The earlier of two bounds.
fn earlier(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    one.into_iter().chain(other).min()
}
