//! The submodule `kbat._core.parquet`: `kbat.write_parquet`.

use std::path::PathBuf;

use pyo3::exceptions::PyIsADirectoryError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::io::refuse_sources;
use crate::parquet::{ParquetFile, ParquetOptions, ParquetWriter, PartitionBy};
use crate::python::arguments::location::StoreArguments;
use crate::python::arrow::scan::class::PyScan;
use crate::python::runtime::errors::{EISDIR, OrRaise};
use crate::python::runtime::submodule::add_submodule;

/// Creates the submodule and everything in it.
pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let module = add_submodule(parent, "parquet", "Write columns to Parquet files.")?;
    module.add_class::<PyParquetFile>()?;
    module.add_function(wrap_pyfunction!(write_parquet, &module)?)
}

/// A Parquet file written by :func:`write_parquet`.
#[pyclass(frozen, name = "ParquetFile", module = "kbat")]
pub(crate) struct PyParquetFile(pub(crate) ParquetFile);

#[pymethods]
impl PyParquetFile {
    /// Path of the file.
    #[getter]
    fn path(&self) -> std::ffi::OsString {
        self.0.path.clone().into_os_string()
    }

    /// Number of rows.
    #[getter]
    fn row_count(&self) -> u64 {
        self.0.row_count
    }

    /// Bytes of the file.
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
/// Memory use is up to ``max_memory_bytes`` of rows, plus half a megabyte per open file. Each directory gets one
/// file; with more than 1,024 directories and unsorted rows, some get several. Files get their final names when all
/// of them are complete, and an error leaves none. Existing files of these names are replaced, including the targets
/// of links; other files in the directory are kept. A file that is read is never replaced.
///
/// Args:
///     scan: A scan from :func:`kbat.scan`.
///     target: The file, or the directory if ``partition_by`` names columns. For a URL, the files are uploaded when all
///         of them are complete; until then they take room in the system's temporary directory.
///     partition_by: Columns that become directories, outermost first: ``topic``, ``partition`` and similar, also
///         ``"date"`` and ``"hour"`` of the timestamp in UTC.
///     compression: ``none``, ``snappy``, ``lz4``, ``gzip``, ``zstd``; the last two also with a level: ``"zstd:3"``.
///     names: Names for the written columns, in their order, to replace the scan's names.
///     file_stem: Beginning of the names of files in a partitioned directory.
///     row_group_bytes: Target size of a row group in bytes of encoded data.
///     max_memory_bytes: Maximum bytes that all open files together may buffer.
///     threads: Number of threads that read. With more than one, another thread writes at the same time.
///     progress: Called periodically with the number of bytes processed and the bytes of all sources; True for a
///         progress bar, if ``rich`` is installed.
///     storage_options: How to open the store of a target that is a URL, with the names of object_store, such as
///         ``{"access_key_id": ..., "region": ..., "endpoint": ...}``. Default: the environment, such as
///         ``AWS_ACCESS_KEY_ID``, or the role of the machine.
///     store: A store of obstore; a target without a scheme stays a path in the file system.
///
/// Returns:
///     The files written.
///
/// Raises:
///     ValueError: A column or codec does not exist, a column can't name a directory, or the target is one of the files
///         that are read.
///     KbatError: Reading the scan failed.
///     OSError: A file can't be written.
///
/// Example:
///     >>> kbat.write_parquet(kbat.scan("/var/lib/kafka/data"), "out", partition_by=["topic", "date"])
#[pyfunction]
#[pyo3(
    signature = (scan, target, *, partition_by=None, compression="snappy", names=None, file_stem="part", row_group_bytes=134_217_728, max_memory_bytes=268_435_456, threads=1, progress=None, **stores),
    text_signature = "(scan, target, *, partition_by=None, compression='snappy', names=None, file_stem='part', row_group_bytes=134217728, max_memory_bytes=268435456, threads=1, progress=None, storage_options=None, store=None)"
)]
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
    stores: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<PyParquetFile>> {
    let target = StoreArguments::new("write_parquet", stores)?.locate_target(py, target)?;
    let keys: Vec<String> = partition_by.unwrap_or_default();
    let options = ParquetOptions {
        compression: compression.parse().or_raise(py)?,
        partition_by: keys
            .iter()
            .map(|key| key.parse::<PartitionBy>())
            .collect::<crate::error::Result<_>>()
            .or_raise(py)?,
        names,
        file_stem: file_stem.to_owned(),
        row_group_len: row_group_bytes,
        memory_len: max_memory_bytes,
    };
    let scan = scan.get();
    py.detach(|| refuse_sources(target.location(), scan.files())).or_raise(py)?;
    if options.partition_by.is_empty() && target.location().is_dir() {
        let path = target.path().as_os_str().to_owned();
        return Err(PyIsADirectoryError::new_err((
            EISDIR,
            "this is a directory: name a file, or set partition_by",
            path,
        )));
    }
    let mut writer = ParquetWriter::new(target.path(), &scan.arrow_schema(), options).or_raise(py)?;
    let mut pass = scan.watched(py, threads, None, progress)?;
    while let Some(arrow_batch) = pass.advance(py)? {
        py.detach(|| writer.write(&arrow_batch)).or_raise(py)?;
    }
    let files = py.detach(|| writer.finish().and_then(|files| target.publish().map(|()| files))).or_raise(py)?;
    let placed = |file: ParquetFile| PyParquetFile(ParquetFile { path: target.final_path(&file.path), ..file });
    Ok(files.into_iter().map(placed).collect())
}
