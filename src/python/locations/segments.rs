//! `kbat.find_segments` and `kbat.SegmentFile`.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};

use crate::io::Location;
use crate::plan::{Discovery, Selection};
use crate::python::arguments::location::StoreArguments;
use crate::python::runtime::errors::OrRaise;
use crate::python::runtime::warning::warn;
use crate::store::SegmentFile;

/// A segment's ``.log`` file, as found by :func:`find_segments`.
#[pyclass(frozen, name = "SegmentFile", module = "kbat")]
pub(crate) struct PySegmentFile(pub(crate) SegmentFile);

#[pymethods]
impl PySegmentFile {
    /// Path of the file.
    #[getter]
    fn path(&self) -> OsString {
        self.0.path.as_os_str().to_owned()
    }

    /// Topic, if the directory's name contains one.
    #[getter]
    fn topic(&self) -> Option<&str> {
        self.0.partition.as_ref().map(|partition| partition.topic.as_str())
    }

    /// Partition, if the directory's name contains one.
    #[getter]
    fn partition(&self) -> Option<i32> {
        self.0.partition.as_ref().map(|partition| partition.partition)
    }

    /// Base offset, if the file's name contains one.
    #[getter]
    fn base_offset(&self) -> Option<i64> {
        self.0.base_offset
    }

    /// Bytes of the file when it was found.
    #[getter]
    fn size(&self) -> u64 {
        self.0.size
    }

    fn __repr__(&self) -> String {
        format!("SegmentFile({}, {} bytes)", self.0.path.display(), self.0.size)
    }
}

/// Find the segments at a path: a ``.log`` file, a partition directory, a log directory, or a pattern.
///
/// A file with any name is accepted, unless its content is clearly something else, such as a gzip file. In
/// directories, files that are not segments and directories that are not live partitions are skipped.
///
/// Args:
///     path: A path, a URL, a pattern such as ``/data/orders-*``, or a list of these.
///     topics: Only these topics: names, or patterns with ``*``, ``?`` and ``[...]``. Default: all.
///     partitions: Only partitions with these numbers. Default: all.
///     replicas: What to do if a partition is in several directories: ``"error"`` raises an error, ``"longest"``
///         uses the directory with the largest range of offsets.
///     storage_options: How to open the store of a URL, with the names of object_store, such as
///         ``{"access_key_id": ..., "region": ..., "endpoint": ...}``. Default: the environment, such as
///         ``AWS_ACCESS_KEY_ID``, or the role of the machine.
///     store: A store of obstore; paths are relative to it.
///     encryption_keys: PEM files of private keys by their ids, for segments that Aiven's plugin has encrypted; or a
///         function that returns the PEM text of an id.
///     remote: Where the earlier segments of these logs are, in tiered storage or in a backup: a path or a URL. Each
///         offset is read once, from ``path`` if it is there. ``storage_options`` are those of the URLs,
///         and ``store`` is that of ``remote``.
///     remote_log_metadata: The log directory with the topic ``__remote_log_metadata``, or a partition directory or
///         ``.log`` file of it: only segments that it has as finished are read. Default with ``remote``: the
///         partitions in the log directory, if any.
///
/// Returns:
///     Each segment once, sorted by topic, partition and base offset within each path. Nothing, with a warning, for
///     an empty directory.
///
/// Raises:
///     OSError: The path can't be read, or nothing matches the pattern.
///     ValueError: The path has files but no segment, a topic or partition does not exist, or a partition is in several
///         directories.
#[pyfunction]
#[pyo3(
    signature = (path, *, topics=None, partitions=None, replicas="error", **stores),
    text_signature = "(path, *, topics=None, partitions=None, replicas='error', storage_options=None, store=None, encryption_keys=None, remote=None, remote_log_metadata=None)"
)]
pub(crate) fn find_segments(
    path: &Bound<'_, PyAny>,
    topics: Option<&Bound<'_, PyAny>>,
    partitions: Option<&Bound<'_, PyAny>>,
    replicas: &str,
    stores: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<PySegmentFile>> {
    let py = path.py();
    let stores = StoreArguments::new("find_segments", stores)?;
    let discovery = discovered(py, &paths(path, &stores)?, &selection(py, topics, partitions, replicas)?)?;
    warn_of(py, &discovery)?;
    Ok(discovery.into_segments().into_iter().map(PySegmentFile).collect())
}

/// Like ``kbat.find_segments``, but returns the warnings as texts.
///
/// Args:
///     is_required: Whether a topic or partition that does not exist is an error.
///
/// Returns:
///     The segments; warnings about locations and partitions without segments; what users should know about segments in
///     remote storage, such as those that are omitted.
#[pyfunction]
#[pyo3(
    signature = (paths, *, topics=None, partitions=None, replicas="error", is_required=true, **stores),
    text_signature = "(paths, *, topics=None, partitions=None, replicas='error', is_required=True, storage_options=None, store=None, encryption_keys=None, remote=None, remote_log_metadata=None)"
)]
pub(crate) fn discover(
    paths: &Bound<'_, PyAny>,
    topics: Option<&Bound<'_, PyAny>>,
    partitions: Option<&Bound<'_, PyAny>>,
    replicas: &str,
    is_required: bool,
    stores: Option<&Bound<'_, PyDict>>,
) -> PyResult<(Vec<PySegmentFile>, Vec<String>, Vec<String>)> {
    let py = paths.py();
    let stores = StoreArguments::new("discover", stores)?;
    let selection = selection(py, topics, partitions, replicas)?;
    let selection = if is_required { selection } else { selection.that_may_be_missing() };
    let mut discovery = discovered(py, &self::paths(paths, &stores)?, &selection)?;
    let warnings = std::mem::take(&mut discovery.warnings);
    let omissions = std::mem::take(&mut discovery.omissions);
    Ok((discovery.into_segments().into_iter().map(PySegmentFile).collect(), warnings, omissions))
}

/// Refuse a file that is clearly not a log segment, such as a text file, by its first bytes.
///
/// Args:
///     path: The file.
///     storage_options: How to open the store of a URL, with the names of object_store, such as
///         ``{"access_key_id": ..., "region": ..., "endpoint": ...}``. Default: the environment, such as
///         ``AWS_ACCESS_KEY_ID``, or the role of the machine.
///     store: A store of obstore; paths are relative to it.
///     encryption_keys: PEM files of private keys by their ids, for segments that Aiven's plugin has encrypted; or a
///         function that returns the PEM text of an id.
///     remote: Where the earlier segments of these logs are, in tiered storage or in a backup: a path or a URL. Each
///         offset is read once, from ``path`` if it is there. ``storage_options`` are those of the URLs,
///         and ``store`` is that of ``remote``.
///     remote_log_metadata: The log directory with the topic ``__remote_log_metadata``, or a partition directory or
///         ``.log`` file of it: only segments that it has as finished are read. Default with ``remote``: the
///         partitions in the log directory, if any.
///
/// Raises:
///     ValueError: It is not a log segment. The message describes what it is instead.
///     OSError: The file can't be read.
#[pyfunction]
#[pyo3(
    signature = (path, **stores),
    text_signature = "(path, *, storage_options=None, store=None, encryption_keys=None, remote=None, remote_log_metadata=None)"
)]
pub(crate) fn refuse_foreign(py: Python<'_>, path: PathBuf, stores: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    let path = StoreArguments::new("refuse_foreign", stores)?.locate(py, path)?;
    py.detach(|| crate::store::refuse_foreign_file(&path)).or_raise(py)
}

/// A path or a list of paths.
fn paths(object: &Bound<'_, PyAny>, stores: &StoreArguments) -> PyResult<Vec<Location>> {
    let py = object.py();
    if !object.is_instance_of::<PyList>() && !object.is_instance_of::<PyTuple>() {
        return Ok(vec![stores.locate_one(py, object.extract()?)?]);
    }
    let paths = object.extract::<Vec<PathBuf>>()?.into_iter().map(|path| stores.locate(py, path));
    let locations = paths.collect::<PyResult<Vec<_>>>()?;
    py.detach(|| Location::check_remote_effect(&locations)).or_raise(py)?;
    Ok(locations)
}

/// The segments of some paths, found with the GIL released.
pub(crate) fn discovered(py: Python<'_>, paths: &[Location], selection: &Selection) -> PyResult<Discovery> {
    py.detach(|| crate::plan::discover(paths, selection)).or_raise(py)
}

/// Warns of what is omitted, and of locations without segments.
pub(crate) fn warn_of(py: Python<'_>, discovery: &Discovery) -> PyResult<()> {
    warn(py, &discovery.omissions)?;
    warn(py, &discovery.warnings)
}

/// Parses the arguments that select partitions. A single topic or number is treated as a list of one.
pub(crate) fn selection(
    py: Python<'_>,
    topics: Option<&Bound<'_, PyAny>>,
    partitions: Option<&Bound<'_, PyAny>>,
    replicas: &str,
) -> PyResult<Selection> {
    let mut selection = Selection::default().replicas(replicas.parse().or_raise(py)?);
    if let Some(topics) = topics {
        let expected = "topics must be a name, a pattern or a list of them";
        let names = names_of(topics).map_err(|error| with_expected(py, error, expected))?;
        selection = selection.topics(&names).or_raise(py)?;
    }
    if let Some(partitions) = partitions {
        let expected = "partitions must be a number or a list of numbers";
        let numbers = numbers_of(partitions).map_err(|error| with_expected(py, error, expected))?;
        selection = selection.partitions(&numbers).or_raise(py)?;
    }
    Ok(selection)
}

fn names_of(topics: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if topics.is_instance_of::<PyDict>() {
        return Err(PyTypeError::new_err("the values would have no effect"));
    }
    match topics.extract::<String>() {
        Ok(name) => Ok(vec![name]),
        Err(_) => topics.try_iter()?.map(|name| name?.extract()).collect(),
    }
}

fn numbers_of(partitions: &Bound<'_, PyAny>) -> PyResult<Vec<i32>> {
    match partitions.extract::<i32>() {
        Ok(number) => Ok(vec![number]),
        Err(_) => partitions.try_iter()?.map(|number| number?.extract()).collect(),
    }
}

/// Replaces the message of a `TypeError`, which does not name the argument.
fn with_expected(py: Python<'_>, error: PyErr, expected: &'static str) -> PyErr {
    if error.is_instance_of::<PyTypeError>(py) { PyTypeError::new_err(expected) } else { error }
}
