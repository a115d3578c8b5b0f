//! `kbat.find_segments` and `kbat.SegmentFile`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use pyo3::exceptions::PyFileNotFoundError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::log::{DirectoryState, PartitionDirectory, SegmentFile, parse_base_offset};
use crate::python::errors::OrRaise;

/// A segment's ``.log`` file, as :func:`find_segments` found it.
#[pyclass(frozen, name = "SegmentFile", module = "kbat")]
pub(crate) struct PySegmentFile(SegmentFile);

#[pymethods]
impl PySegmentFile {
    /// Where it is.
    #[getter]
    fn path(&self) -> OsString {
        self.0.path.clone().into_os_string()
    }

    /// Topic, if the directory is named after one.
    #[getter]
    fn topic(&self) -> Option<&str> {
        self.0.partition.as_ref().map(|partition| partition.topic.as_str())
    }

    /// Partition, if the directory is named after one.
    #[getter]
    fn partition(&self) -> Option<i32> {
        self.0.partition.as_ref().map(|partition| partition.partition)
    }

    /// Base offset, if the file is named after one.
    #[getter]
    fn base_offset(&self) -> Option<i64> {
        self.0.base_offset
    }

    /// Bytes when it was found.
    #[getter]
    fn size(&self) -> u64 {
        self.0.size
    }

    fn __repr__(&self) -> String {
        format!("SegmentFile({}, {} bytes)", self.0.path.display(), self.0.size)
    }
}

/// Find the segments of a ``.log`` file, a partition directory, a log directory, or a pattern that matches such.
///
/// Args:
///     path: A file is taken whatever its name is. In directories, and among what a pattern matches, files that are no
///         segments and directories that are no live partitions are passed over.
///
/// Returns:
///     Sorted by topic, partition and base offset; with a pattern, first by what it matches.
///
/// Raises:
///     OSError: The path can't be read, or nothing matches.
#[pyfunction]
pub(crate) fn find_segments(py: Python<'_>, path: PathBuf) -> PyResult<Vec<PySegmentFile>> {
    Ok(segments_of(py, path)?.into_iter().flatten().map(PySegmentFile).collect())
}

/// The segments of a path, or of each path that a pattern matches.
pub(crate) fn segments_of(py: Python<'_>, path: PathBuf) -> PyResult<Vec<Vec<SegmentFile>>> {
    let paths = expanded(py, path)?;
    py.detach(|| paths.iter().map(|path| crate::find_segments(path)).collect::<crate::Result<_>>()).or_raise(py)
}

/// The paths that a pattern means; a path that exists is taken as it is.
fn expanded(py: Python<'_>, path: PathBuf) -> PyResult<Vec<PathBuf>> {
    let is_pattern = path.to_str().is_some_and(|text| text.contains(['*', '?', '[']));
    if !is_pattern || path.exists() {
        return Ok(vec![path]);
    }
    let text = PyString::new(py, &path.to_string_lossy());
    let mut found: Vec<PathBuf> = py.import("glob")?.call_method1("glob", (text,))?.extract()?;
    if found.is_empty() {
        return Err(PyFileNotFoundError::new_err(format!("nothing matches {}", path.display())));
    }
    found.retain(|path| is_of_a_log(path));
    if found.is_empty() {
        let message = format!("nothing that matches {} is a segment, a partition or a log directory", path.display());
        return Err(PyFileNotFoundError::new_err(message));
    }
    found.sort();
    Ok(found)
}

/// Whether a path that was not named but matched is taken: what a log directory would leave out is left out here too.
fn is_of_a_log(path: &Path) -> bool {
    if path.is_dir() {
        return is_no_dead_partition(path);
    }
    name_of(path).and_then(parse_base_offset).is_some() && path.parent().is_none_or(is_no_dead_partition)
}

fn is_no_dead_partition(directory: &Path) -> bool {
    let parsed = name_of(directory).and_then(PartitionDirectory::parse);
    parsed.is_none_or(|parsed| parsed.state == DirectoryState::Live)
}

fn name_of(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}
