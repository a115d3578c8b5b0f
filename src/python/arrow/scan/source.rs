//! The `source` argument of a scan: bytes, paths, patterns, parts of files, and lists of these.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyList, PyTuple};

use crate::arrow::ScanSource;
use crate::error::Error;
use crate::io::Location;
use crate::plan::{Discovery, Selection, find_segments};
use crate::python::arguments::limits::{PyLimits, or_default};
use crate::python::arguments::location::StoreArguments;
use crate::python::arguments::source::{SourceArgument, source};
use crate::python::locations::segments::{PySegmentFile, discovered, warn_of};
use crate::python::log::partition::PyPartitionLog;
use crate::python::log::segment::PySegment;
use crate::python::runtime::errors::OrRaise;

/// Sources of a `source` argument, in their order. All paths of a list are searched together, so that no segment is
/// read twice.
pub(crate) fn sources(
    object: &Bound<'_, PyAny>,
    selection: &Selection,
    stores: &StoreArguments,
) -> PyResult<Vec<ScanSource>> {
    let py = object.py();
    let mut parts = Vec::new();
    flatten(object, stores, &mut parts)?;
    let paths: Vec<Location> = parts.iter().filter_map(|part| part.path().cloned()).collect();
    if paths.is_empty() && !parts.is_empty() && !selection.is_everything() {
        let message = "topics and partitions select directories and have no effect on buffers and parts of files";
        return Err(PyValueError::new_err(message));
    }
    let is_memory = |part: &SourceItem| matches!(part, SourceItem::Source(source) if source.path().is_none());
    if stores.has_remote() && !parts.is_empty() && parts.iter().all(is_memory) {
        let message = "remote has no effect on buffers: remove it, or pass the partition's directory";
        return Err(PyValueError::new_err(message));
    }
    if parts.iter().all(|part| matches!(part, SourceItem::Path(_))) {
        py.detach(|| Location::check_remote_effect(&paths)).or_raise(py)?;
    }
    let mut discovery = if paths.is_empty() { Discovery::default() } else { discovered(py, &paths, selection)? };
    warn_of(py, &discovery)?;
    let mut locations = std::mem::take(&mut discovery.locations).into_iter();
    let mut all = Vec::new();
    for part in parts {
        match part {
            SourceItem::Source(source) => all.push(*source),
            SourceItem::Path(_) | SourceItem::Opened(_) => {
                let missing = || Error::bug("a path that was searched has no result");
                all.extend(ScanSource::files(&locations.next().ok_or_else(missing).or_raise(py)?));
            }
        }
    }
    refuse_overlaps(&all)?;
    py.detach(|| ScanSource::find_neighbours(&mut all));
    Ok(all)
}

/// Refuses different parts of a file that overlap, since records would be read twice. A part that is passed twice is
/// read twice, as a buffer is.
fn refuse_overlaps(sources: &[ScanSource]) -> PyResult<()> {
    if sources.iter().all(|source| source.window == (0, u64::MAX)) {
        return Ok(());
    }
    let window = |source: &ScanSource| Some((source.path()?.resolved(), source.window.0, source.window.1));
    let mut windows: Vec<_> = sources.iter().filter_map(window).collect();
    windows.sort();
    windows.dedup();
    for ((path, start, end), (next_path, next_start, next_end)) in windows.iter().zip(windows.iter().skip(1)) {
        if path == next_path && next_start < end && start < end && next_start < next_end {
            let message =
                format!("two parts of {} contain byte {next_start}: records would be read twice", path.display());
            return Err(PyValueError::new_err(message));
        }
    }
    Ok(())
}

/// One item of a `source` argument.
enum SourceItem {
    Source(Box<ScanSource>),
    Path(Location),
    /// The location of a segment or partition that was opened before.
    Opened(Location),
}

impl SourceItem {
    fn path(&self) -> Option<&Location> {
        match self {
            Self::Source(_) => None,
            Self::Path(path) | Self::Opened(path) => Some(path),
        }
    }
}

fn flatten(object: &Bound<'_, PyAny>, stores: &StoreArguments, parts: &mut Vec<SourceItem>) -> PyResult<()> {
    if let Some(part) = file_part(object, stores)? {
        parts.push(SourceItem::Source(Box::new(part)));
    } else if object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() {
        for item in object.try_iter()? {
            flatten(&item?, stores, parts)?;
        }
    } else if let Some(location) = opened(object) {
        parts.push(SourceItem::Opened(location));
    } else {
        parts.push(match source(object)? {
            SourceArgument::Bytes(bytes) => SourceItem::Source(Box::new(ScanSource::memory(bytes))),
            SourceArgument::Path(path) => SourceItem::Path(stores.locate(object.py(), path)?),
        });
    }
    Ok(())
}

/// The location of a segment, a partition or a found segment, which knows its store.
fn opened(object: &Bound<'_, PyAny>) -> Option<Location> {
    if let Ok(segment) = object.cast::<PySegment>() {
        return Some(segment.get().0.location().clone());
    }
    if let Ok(log) = object.cast::<PyPartitionLog>() {
        return Some(log.get().0.location().clone());
    }
    object.cast::<PySegmentFile>().ok().map(|file| file.get().0.path.clone())
}

/// A tuple of a path and a range of bytes, as returned by [`split`]. Batches that begin in the range are read.
fn file_part(object: &Bound<'_, PyAny>, stores: &StoreArguments) -> PyResult<Option<ScanSource>> {
    let Ok(tuple) = object.cast::<PyTuple>() else { return Ok(None) };
    if tuple.len() != 3 || !tuple.get_item(1)?.is_instance_of::<PyInt>() {
        return Ok(None);
    }
    let (path, start, end): (PathBuf, u64, u64) = tuple.extract()?;
    let py = object.py();
    let path = stores.locate(py, path)?;
    let segments = py.detach(|| find_segments(&path)).or_raise(py)?;
    match segments.as_slice() {
        [segment] if !path.is_dir() => Ok(Some(ScanSource::file(segment).within(start, end))),
        _ => Err(PyValueError::new_err(format!("{} is not a file: only files can be read in parts", path.display()))),
    }
}

/// Split segments into parts of about equal size, each of which is a source for :func:`scan`.
///
/// Parts begin at batch boundaries, and together they contain every batch once. Only headers are read to find them.
///
/// Args:
///     source: Path or URL of a ``.log`` file, a partition directory or a log directory, a pattern, or a list of these.
///     max_bytes: Maximum bytes of a part. A larger batch is a part of its own.
///     limits: Bounds on untrusted input.
///     storage_options: How to open the store of a URL, with the names of object_store, such as
///         ``{"access_key_id": ..., "region": ..., "endpoint": ...}``. Default: the environment, such as
///         ``AWS_ACCESS_KEY_ID``, or the role of the machine.
///     store: A store of obstore; paths are relative to it.
///     encryption_keys: PEM files of private keys by their ids, for segments that Aiven's plugin has encrypted; or a
///         function that returns the PEM text of an id.
///     remote: Where the earlier segments of these logs are, in tiered storage or in a backup: a path or a URL. Each
///         offset is read once, from ``source`` if it is there. ``storage_options`` are those of the URLs,
///         and ``store`` is that of ``remote``.
///     remote_log_metadata: The log directory with the topic ``__remote_log_metadata``, or a partition directory or
///         ``.log`` file of it: only segments that it has as finished are read. Default with ``remote``: the
///         partitions in the log directory, if any.
///
/// Returns:
///     Path, first byte and byte after the last one of each part. A segment that may still grow is split at its
///     current size.
///
/// Raises:
///     OSError: A path can't be read.
///     ValueError: A source is not a file, or ``max_bytes`` is less than 1.
#[pyfunction]
#[pyo3(
    signature = (source, max_bytes, *, limits=None, **stores),
    text_signature = "(source, max_bytes, *, limits=None, storage_options=None, store=None, encryption_keys=None, remote=None, remote_log_metadata=None)"
)]
pub(crate) fn split(
    source: &Bound<'_, PyAny>,
    max_bytes: u64,
    limits: Option<PyLimits>,
    stores: Option<&Bound<'_, PyDict>>,
) -> PyResult<Vec<(OsString, u64, u64)>> {
    if max_bytes == 0 {
        return Err(PyValueError::new_err("max_bytes must be 1 or more"));
    }
    let (py, limits) = (source.py(), or_default(limits));
    let mut parts = Vec::new();
    let stores = StoreArguments::new("split", stores)?;
    for source in sources(source, &Selection::default(), &stores)? {
        let Some(path) = source.path().cloned() else {
            return Err(PyValueError::new_err("only files can be split into parts"));
        };
        let (start, end) = source.window;
        let end = end.min(path.len().or_raise(py)?);
        let found = py.detach(|| crate::log::split_points(&path, start..end, max_bytes, &limits)).or_raise(py)?;
        let ends = found.iter().skip(1).copied().chain([end]);
        parts.extend(found.iter().copied().zip(ends).map(|(start, end)| (path.as_os_str().to_owned(), start, end)));
    }
    Ok(parts)
}
