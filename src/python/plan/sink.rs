//! The submodule `kbat._core.sink`: writes of rows to partition directories, by tasks and one commit.

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::Error;
use crate::plan::Pairs;
use crate::python::arrow::input::arrow_input;
use crate::python::arrow::requested_schema::arrow_error;
use crate::python::runtime::errors::OrRaise;
use crate::python::runtime::exclusive::Exclusive;
use crate::python::runtime::submodule::add_submodule;
use crate::python::runtime::warning::warn_all;
use crate::sink::{TaskWriter, WriteJob, Written, write_option_rows};

/// Creates the submodule and everything in it.
pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let module = add_submodule(parent, "sink", "Writes of rows to partition directories: options, tasks, commits.")?;
    module.add_class::<PyTaskWriter>()?;
    module.add_function(wrap_pyfunction!(options, &module)?)?;
    module.add_function(wrap_pyfunction!(start, &module)?)?;
    module.add_function(wrap_pyfunction!(directory, &module)?)?;
    module.add_function(wrap_pyfunction!(is_committed, &module)?)?;
    module.add_function(wrap_pyfunction!(commit, &module)?)?;
    module.add_function(wrap_pyfunction!(abort, &module)?)
}

/// Return the name, the other name, the default and the description of every option of a write.
#[pyfunction]
fn options() -> Vec<(&'static str, Option<&'static str>, &'static str, &'static str)> {
    write_option_rows().iter().map(|row| (row.name, row.alias, row.default, row.text)).collect()
}

/// Start a write, and create the directory in which its tasks write.
///
/// Completes the commits of drivers that died.
///
/// Args:
///     given: Names and texts of options, in any case.
///     columns: Name and type in SQL of each column.
///     overwrite: Whether the commit replaces all partitions of the topics of the rows.
///
/// Returns:
///     The write, as bytes for the other functions and for :class:`TaskWriter`.
///
/// Raises:
///     OSError: The directory can't be created, or moving the files of an interrupted commit failed.
///     ValueError: A wrong option, or a column that can't be written.
#[pyfunction]
#[pyo3(signature = (given, columns, *, overwrite))]
fn start(py: Python<'_>, given: Pairs, columns: Pairs, overwrite: bool) -> PyResult<Bound<'_, PyBytes>> {
    let warning = WriteJob::check(&given, &columns).or_raise(py)?;
    warn_all(py, warning.into_iter().collect())?;
    let job = py.detach(|| WriteJob::start(&given, &columns, overwrite)).or_raise(py)?;
    Ok(PyBytes::new(py, &job.to_bytes().or_raise(py)?))
}

fn job_of(py: Python<'_>, job: &[u8]) -> PyResult<WriteJob> {
    WriteJob::from_bytes(job).or_raise(py)
}

/// Return the directory in which the tasks of a write create files.
///
/// Args:
///     job: The bytes that :func:`start` returned.
///
/// Raises:
///     ValueError: Other bytes.
#[pyfunction]
fn directory(py: Python<'_>, job: &[u8]) -> PyResult<PathBuf> {
    Ok(job_of(py, job)?.directory().to_path_buf())
}

/// Return whether a write is committed, although some files may not be moved yet.
///
/// Args:
///     job: The bytes that :func:`start` returned.
///
/// Raises:
///     ValueError: Other bytes.
#[pyfunction]
fn is_committed(py: Python<'_>, job: &[u8]) -> PyResult<bool> {
    Ok(job_of(py, job)?.is_committed())
}

/// Set the offsets of all records, and move them into the partitions, task by task.
///
/// Before the commit, nothing is visible; after it, the next write to the path moves the remaining files.
///
/// Args:
///     job: The bytes that :func:`start` returned.
///     written: What :meth:`TaskWriter.finish` returned for each task.
///     epoch: The id of a streaming query and the number of its micro-batch, which is written once: the commit
///         discards the records if the target already has them.
///
/// Raises:
///     CorruptError: The end of an existing partition is corrupt.
///     FileExistsError: A concurrent write created the same files, and locks have no effect here.
///     OSError: A file can't be read, written or moved.
///     ValueError: Other bytes, ``leaderEpoch`` is below the latest epoch of a partition, or the id of the query is not
///         1 to 100 ASCII letters, digits and dashes.
#[pyfunction]
#[pyo3(signature = (job, written, *, epoch=None))]
fn commit(py: Python<'_>, job: &[u8], written: Vec<Vec<u8>>, epoch: Option<(String, i64)>) -> PyResult<()> {
    let job = job_of(py, job)?;
    let written = written.iter().map(|bytes| Written::from_bytes(bytes)).collect::<crate::error::Result<Vec<_>>>();
    let written = written.or_raise(py)?;
    py.detach(|| match &epoch {
        Some((query, number)) => job.commit_epoch(&written, query, *number),
        None => job.commit(&written),
    })
    .or_raise(py)
}

/// Remove all files of a write, unless it is committed and only moving failed: the next write completes it.
///
/// Args:
///     job: The bytes that :func:`start` returned.
///
/// Raises:
///     OSError: A file can't be removed.
///     ValueError: Other bytes.
#[pyfunction]
fn abort(py: Python<'_>, job: &[u8]) -> PyResult<()> {
    let job = job_of(py, job)?;
    py.detach(|| job.abort()).or_raise(py)
}

/// Writes the rows of one task, grouped by partition.
///
/// Args:
///     job: The bytes that :func:`start` returned.
///     number: The number of the task; the commit puts the rows of the tasks in this order.
///     attempt: A number that differs between runs of the same task.
///
/// Raises:
///     ValueError: Other bytes.
#[pyclass(frozen, name = "TaskWriter", module = "kbat._core.sink")]
struct PyTaskWriter(Exclusive<Option<TaskWriter>>);

#[pymethods]
impl PyTaskWriter {
    #[new]
    #[pyo3(signature = (job, number, attempt=0))]
    fn new(py: Python<'_>, job: &[u8], number: u32, attempt: u64) -> PyResult<Self> {
        let writer = TaskWriter::new(&job_of(py, job)?, number, attempt).or_raise(py)?;
        Ok(Self(Exclusive::new(Some(writer))))
    }

    /// Write rows, or keep them until there are enough for a batch.
    ///
    /// Args:
    ///     data: Arrow data with the columns of the write.
    ///
    /// Raises:
    ///     OSError: Writing failed, as after the write was aborted.
    ///     ValueError: A row without a topic or a partition, or with one that is not valid; a record that Kafka's
    ///         rules forbid.
    fn write(&self, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = data.py();
        for batch in arrow_input(data)?.batches {
            let batch = batch.map_err(arrow_error)?;
            self.0.with(py, |writer| open(writer)?.write(&batch))?.or_raise(py)?;
        }
        Ok(())
    }

    /// Write the remaining rows and close the files.
    ///
    /// Returns:
    ///     What was written, as bytes for :func:`commit`.
    ///
    /// Raises:
    ///     OSError: Writing failed.
    ///     ValueError: A record that Kafka's rules forbid, or the writer is finished.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let written =
            self.0.with(py, |writer| writer.take().map_or_else(|| Err(finished()), TaskWriter::finish)?.to_bytes())?;
        Ok(PyBytes::new(py, &written.or_raise(py)?))
    }
}

fn open(writer: &mut Option<TaskWriter>) -> crate::error::Result<&mut TaskWriter> {
    writer.as_mut().ok_or_else(finished)
}

fn finished() -> Error {
    Error::argument("the writer is finished")
}
