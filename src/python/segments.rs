//! `kbat.find_segments` and `kbat.SegmentFile`.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;

use crate::log::SegmentFile;
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

/// Find the segments of a path: a ``.log`` file, a partition directory, or a log directory.
///
/// Args:
///     path: A file is taken whatever its name is. In directories, files that are no segments and directories that are
///         no live partitions are passed over.
///
/// Returns:
///     Sorted by topic, partition and base offset.
///
/// Raises:
///     OSError: The path can't be read.
#[pyfunction]
pub(crate) fn find_segments(py: Python<'_>, path: PathBuf) -> PyResult<Vec<PySegmentFile>> {
    let segments = py.detach(|| crate::find_segments(&path)).or_raise(py)?;
    Ok(segments.into_iter().map(PySegmentFile).collect())
}
