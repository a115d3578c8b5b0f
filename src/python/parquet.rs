//! The submodule `kbat._core.parquet`: `kbat.write_parquet`.

use std::path::PathBuf;

use pyo3::prelude::*;

use crate::parquet::{ParquetFile, ParquetOptions, ParquetWriter, PartitionBy};
use crate::python::errors::OrRaise;
use crate::python::log::add_submodule;
use crate::python::scan_class::PyScan;

/// Makes the submodule and everything in it.
pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let module = add_submodule(parent, "parquet", "Columns to Parquet files.")?;
    module.add_class::<PyParquetFile>()?;
    module.add_function(wrap_pyfunction!(write_parquet, &module)?)
}

/// A Parquet file that was written.
#[pyclass(frozen, name = "ParquetFile", module = "kbat")]
pub(crate) struct PyParquetFile(ParquetFile);

#[pymethods]
impl PyParquetFile {
    /// Where it is.
    #[getter]
    fn path(&self) -> std::ffi::OsString {
        self.0.path.clone().into_os_string()
    }

    /// Its rows.
    #[getter]
    fn row_count(&self) -> u64 {
        self.0.row_count
    }

    /// Its bytes.
    #[getter]
    fn size(&self) -> u64 {
        self.0.size
    }

    fn __repr__(&self) -> String {
        format!("ParquetFile({}, {} rows, {} bytes)", self.0.path.display(), self.0.row_count, self.0.size)
    }
}

/// Write a scan to Parquet in Rust: one file, or a directory partitioned in Hive's layout.
///
/// Memory holds ``max_memory_bytes`` of rows, and half a megabyte a file. A directory gets one file; of more than 1,024
/// directories, whose rows come in no order, some get several. Files get their names when all of them are whole; an
/// error leaves none.
/// A file that has such a name is replaced, one that a link leads to as well; others in the directory stay.
///
/// Args:
///     scan: What :func:`kbat.scan` gives.
///     target: The file; the directory where ``partition_by`` names something.
///     partition_by: Columns that become directories, outermost first: ``topic``, ``partition`` and the like, also
///         ``"date"`` and ``"hour"`` of the timestamp in UTC.
///     compression: ``none``, ``snappy``, ``lz4``, ``gzip``, ``zstd``; the last two also with a level: ``"zstd:3"``.
///     names: Other names for the columns that are written, in their order.
///     file_stem: Beginning of the names of files in a partitioned directory.
///     row_group_bytes: Bytes of encoded data after which a row group ends.
///     max_memory_bytes: Bytes that all open files together may hold.
///     threads: Threads that read; with more than one, writing goes on beside them.
///     progress: Called every now and then with the bytes walked over and the bytes of all sources; True for a
///         progress bar, if ``rich`` is installed.
///
/// Returns:
///     The files.
///
/// Raises:
///     ValueError: A column or codec that does not exist, a column that can't name a directory.
///     KbatError: What reading the scan raises.
///     OSError: A file that can't be written.
///
/// Example:
///     >>> kbat.write_parquet(kbat.scan("/var/lib/kafka/data"), "out", partition_by=["topic", "date"])
#[pyfunction]
#[pyo3(signature = (scan, target, *, partition_by=None, compression="snappy", names=None, file_stem="part", row_group_bytes=134_217_728, max_memory_bytes=268_435_456, threads=1, progress=None))]
#[expect(clippy::too_many_arguments, reason = "the keyword arguments of the Python signature")]
pub(crate) fn write_parquet(
    py: Python<'_>,
    scan: &Bound<'_, PyScan>,
    target: PathBuf,
    partition_by: Option<Vec<String>>,
    compression: &str,
    names: Option<Vec<String>>,
    file_stem: &str,
    row_group_bytes: usize,
    max_memory_bytes: usize,
    threads: usize,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<PyParquetFile>> {
    let keys: Vec<String> = partition_by.unwrap_or_default();
    let options = ParquetOptions {
        compression: compression.parse().or_raise(py)?,
        partition_by: keys.iter().map(|key| key.parse::<PartitionBy>()).collect::<crate::Result<_>>().or_raise(py)?,
        names,
        file_stem: file_stem.to_owned(),
        row_group_len: row_group_bytes,
        memory_len: max_memory_bytes,
    };
    let scan = scan.get();
    let mut writer = ParquetWriter::new(&target, &scan.arrow_schema(), options).or_raise(py)?;
    let mut pass = scan.watched(py, threads, None, progress)?;
    while let Some(arrow_batch) = pass.advance(py)? {
        py.detach(|| writer.write(&arrow_batch)).or_raise(py)?;
    }
    let files = py.detach(|| writer.finish()).or_raise(py)?;
    Ok(files.into_iter().map(PyParquetFile).collect())
}
