//! The submodule `kbat._core.plan`: plans of reads, and the rows of their tasks.

pub(crate) mod read_options;
pub(crate) mod sink;

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::parquet::{ParquetOptions, ParquetWriter};
use crate::plan::{
    Condition, PlanColumn, PlanView, Read, ReadLimit, ReadTask, RowFilter, Stream, TaskReader, WantedColumn,
    columns_of_schema, error_column as error, option_rows, paths, view_columns,
};
use crate::python::arrow::batch::PyArrowBatch;
use crate::python::arrow::scan::pass::PyScanStats;
use crate::python::output::parquet::PyParquetFile;
use crate::python::plan::read_options::PyReadOptions;
use crate::python::runtime::errors::OrRaise;
use crate::python::runtime::exclusive::Exclusive;
use crate::python::runtime::interrupt;
use crate::python::runtime::submodule::add_submodule;
use crate::python::runtime::warning::warn_all;

/// Creates the submodule and everything in it.
pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let module = add_submodule(parent, "plan", "Plans of reads: options, tasks, micro-batches.")?;
    module.add_class::<PyReadOptions>()?;
    module.add_class::<PyTaskReader>()?;
    module.add_class::<PyStream>()?;
    module.add_function(wrap_pyfunction!(options, &module)?)?;
    module.add_function(wrap_pyfunction!(columns, &module)?)?;
    module.add_function(wrap_pyfunction!(error_column, &module)?)?;
    module.add_function(wrap_pyfunction!(check, &module)?)?;
    module.add_function(wrap_pyfunction!(plan, &module)?)?;
    module.add_function(wrap_pyfunction!(nothing, &module)?)?;
    module.add_function(wrap_pyfunction!(local_path, &module)?)?;
    module.add_function(wrap_pyfunction!(write_parquet, &module)?)
}

/// Return the absolute path of a path or ``file:`` URL.
///
/// Args:
///     path: The path.
///
/// Raises:
///     ValueError: A URL of another scheme.
#[pyfunction]
fn local_path(py: Python<'_>, path: &str) -> PyResult<String> {
    paths::local_path(path).or_raise(py)
}

/// Return the name, default and description of every option.
#[pyfunction]
fn options() -> Vec<(&'static str, &'static str, &'static str)> {
    option_rows().iter().map(|row| (row.name, row.default, row.text)).collect()
}

/// Name in a schema, name in a scan, type in SQL, description.
type Described = (String, &'static str, &'static str, &'static str);

fn described(column: &PlanColumn) -> Described {
    (column.name(), column.field, column.data_type, column.text)
}

/// Return the name in a schema, the name in a scan, the type in SQL and the description of every column.
///
/// Args:
///     view: ``records``, ``batches`` or ``segments``.
///
/// Returns:
///     The columns, and how many of them are read by default.
///
/// Raises:
///     ValueError: Another view.
#[pyfunction]
fn columns(py: Python<'_>, view: &str) -> PyResult<(Vec<Described>, usize)> {
    let (columns, count) = view_columns(view.parse::<PlanView>().or_raise(py)?);
    Ok((columns.iter().map(described).collect(), count))
}

/// Return the column that describes corruption, like those of :func:`columns`.
#[pyfunction]
fn error_column() -> Described {
    described(error())
}

/// Check the schema of a read, and return the names of its columns in a scan.
///
/// Args:
///     options: The options of the read.
///     schema: Name, type in SQL and whether it may be null, for each column.
///
/// Raises:
///     ValueError: A column that does not exist or has another type.
#[pyfunction]
fn check(py: Python<'_>, options: &PyReadOptions, schema: Vec<(String, String, bool)>) -> PyResult<Vec<&'static str>> {
    let wanted = schema.into_iter().map(|(name, data_type, is_nullable)| WantedColumn { name, data_type, is_nullable });
    let found = columns_of_schema(&wanted.collect::<Vec<_>>(), &options.options).or_raise(py)?;
    Ok(found.into_iter().map(|column| column.field).collect())
}

/// Plan a batch read.
///
/// Args:
///     options: The options of the read.
///     columns: Names of columns.
///     filters: Conditions that the query applies to each row: operator, column, type and values as texts.
///     splits: Whether several tasks may read a batch with more than ``maxRecordsPerPartition`` offsets.
///
/// Returns:
///     The tasks, as bytes for :class:`TaskReader`. They contain the options, which may be secret.
///
/// Raises:
///     FileNotFoundError: A path does not exist.
///     KbatError: Corruption hides a bound.
///     ValueError: A wrong option, or bounds that do not fit the existing partitions.
#[pyfunction]
#[pyo3(signature = (options, columns, filters=vec![], *, splits=true))]
fn plan<'py>(
    py: Python<'py>,
    options: &PyReadOptions,
    columns: Vec<String>,
    filters: Vec<Vec<String>>,
    splits: bool,
) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    let read = Read::new(&options.given, &options.session, &columns).or_raise(py)?;
    let known = filters.iter().filter_map(|parts| Condition::parse(parts));
    let filter = RowFilter::new(known.map(|condition| condition.of_column(read.options())).collect());
    let read = read.filter(filter);
    let mut warnings = Vec::new();
    let tasks = py.detach(|| read.plan(splits, &mut warnings));
    warn_all(py, warnings)?;
    bytes_of(py, &tasks.or_raise(py)?)
}

/// Return a task that reads nothing, to check what the others would do.
///
/// Args:
///     options: The options of the read.
///     columns: Names of columns.
///
/// Raises:
///     ValueError: A column that does not exist.
#[pyfunction]
fn nothing<'py>(py: Python<'py>, options: &PyReadOptions, columns: Vec<String>) -> PyResult<Bound<'py, PyBytes>> {
    let read = Read::new(&options.given, &options.session, &columns).or_raise(py)?;
    Ok(PyBytes::new(py, &read.nothing().to_bytes().or_raise(py)?))
}

/// Write the rows of a task to Parquet files. ``headers`` of a record without headers is an empty list.
///
/// Args:
///     task: The bytes that :func:`plan` returned.
///     target: The file, or the directory if ``partition_by`` names columns.
///     partition_by: As for :func:`kbat.write_parquet`.
///     compression: As for :func:`kbat.write_parquet`.
///     names: Names of the columns, in their order, without those that name directories.
///     file_stem: Beginning of the names of files in a partitioned directory.
///
/// Returns:
///     The files written.
///
/// Raises:
///     KbatError: Reading the rows failed.
///     OSError: A file can't be read or written.
///     ValueError: A column or codec does not exist, or a column can't name a directory.
#[pyfunction]
fn write_parquet(
    py: Python<'_>,
    task: &[u8],
    target: PathBuf,
    partition_by: Vec<String>,
    compression: &str,
    names: Vec<String>,
    file_stem: String,
) -> PyResult<Vec<PyParquetFile>> {
    let options = ParquetOptions {
        compression: compression.parse().or_raise(py)?,
        partition_by: partition_by.iter().map(|key| key.parse()).collect::<crate::error::Result<_>>().or_raise(py)?,
        names: Some(names),
        file_stem,
        ..ParquetOptions::default()
    };
    let mut reader = ReadTask::from_bytes(task).and_then(TaskReader::new).or_raise(py)?.with_empty_headers();
    let schema = reader.schema().or_raise(py)?;
    let mut writer = ParquetWriter::new(&target, &schema, options).or_raise(py)?;
    loop {
        let written = py.detach(|| reader.next().map(|batch| batch.and_then(|batch| writer.write(&batch))));
        warn_all(py, reader.take_warnings())?;
        interrupt::check(py)?;
        match written {
            Some(written) => written.or_raise(py)?,
            None => break,
        }
    }
    let files = py.detach(|| writer.finish()).or_raise(py)?;
    Ok(files.into_iter().map(PyParquetFile).collect())
}

fn bytes_of<'py>(py: Python<'py>, tasks: &[ReadTask]) -> PyResult<Vec<Bound<'py, PyBytes>>> {
    tasks.iter().map(|task| Ok(PyBytes::new(py, &task.to_bytes().or_raise(py)?))).collect()
}

/// Iterates over the rows of a task as ``pyarrow.RecordBatch``.
///
/// Args:
///     task: The bytes that :func:`plan` or :meth:`Stream.plan` returned.
///
/// Raises:
///     ValueError: Other bytes.
#[pyclass(frozen, name = "TaskReader", module = "kbat._core.plan")]
struct PyTaskReader(Exclusive<TaskReader>);

#[pymethods]
impl PyTaskReader {
    #[new]
    fn new(py: Python<'_>, task: &[u8]) -> PyResult<Self> {
        let reader = ReadTask::from_bytes(task).and_then(TaskReader::new).or_raise(py)?;
        Ok(Self(Exclusive::new(reader)))
    }

    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (next, warnings) = self.0.with(py, |reader| (reader.next(), reader.take_warnings()))?;
        interrupt::check(py)?;
        warn_all(py, warnings)?;
        match next.transpose().or_raise(py)? {
            Some(batch) => py.import("pyarrow")?.call_method1("record_batch", (PyArrowBatch(batch),)).map(Some),
            None => Ok(None),
        }
    }

    /// What was read and lost so far.
    #[getter]
    fn stats(&self, py: Python<'_>) -> PyResult<PyScanStats> {
        self.0.with(py, |reader| PyScanStats(reader.stats()))
    }
}

/// Plans the micro-batches of a stream. Offsets are JSON, as Kafka writes them.
///
/// Args:
///     options: The options of the read.
///     columns: Names of columns.
///
/// Raises:
///     ValueError: A wrong option.
#[pyclass(frozen, name = "Stream", module = "kbat._core.plan")]
struct PyStream(Exclusive<Stream>);

impl PyStream {
    fn call<R: Send>(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&mut Stream) -> crate::error::Result<R> + Send,
    ) -> PyResult<R> {
        let (result, warnings) = self.0.with(py, |stream| (run(stream), stream.take_warnings()))?;
        warn_all(py, warnings)?;
        result.or_raise(py)
    }
}

#[pymethods]
impl PyStream {
    #[new]
    fn new(py: Python<'_>, options: &PyReadOptions, columns: Vec<String>) -> PyResult<Self> {
        let read = Read::new(&options.given, &options.session, &columns).or_raise(py)?;
        Ok(Self(Exclusive::new(Stream::new(read).or_raise(py)?)))
    }

    /// Return the offsets at which a new query starts.
    fn initial_offset(&self, py: Python<'_>) -> PyResult<String> {
        self.call(py, Stream::initial_offset)
    }

    /// Return the end of the next micro-batch, which is its start if there is nothing to read yet.
    ///
    /// Args:
    ///     start: Its start. Default: the end of the last one.
    ///     is_limited: Whether the limits of the options apply.
    #[pyo3(signature = (start=None, *, is_limited=true))]
    fn latest_offset(&self, py: Python<'_>, start: Option<String>, is_limited: bool) -> PyResult<String> {
        let limit = if is_limited { ReadLimit::OfOptions } else { ReadLimit::AllAvailable };
        self.call(py, |stream| stream.latest_offset(start.as_deref(), limit))
    }

    /// Return the last known ends of all logs; None before the first call of :meth:`latest_offset`.
    fn report_latest_offset(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.call(py, |stream| Ok(stream.report_latest_offset()))
    }

    /// Fix the end of the query: the ends of all logs now.
    fn prepare_for_available_now(&self, py: Python<'_>) -> PyResult<()> {
        self.call(py, Stream::prepare_for_available_now)
    }

    /// Return the tasks of a micro-batch, as bytes for :class:`TaskReader`.
    fn plan<'py>(&self, py: Python<'py>, start: String, end: String) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let tasks = self.call(py, |stream| stream.plan(&start, &end))?;
        bytes_of(py, &tasks)
    }
}
