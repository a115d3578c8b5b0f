//! `kbat.LogDirectory`.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::log::checkpoint::MetaProperties;
use crate::log::{LogDirectory, OFFSET_CHECKPOINTS, PartitionLog, Segment, StrayDirectory};
use crate::python::arguments::limits::{PyLimits, or_default};
use crate::python::arguments::location::StoreArguments;
use crate::python::html::{self, Table};
use crate::python::locations::segments::selection;
use crate::python::log::partition::PyPartitionLog;
use crate::python::runtime::errors::OrRaise;
use crate::store::TopicPartition;

/// The entries of a checkpoint, by topic and partition.
type Offsets = HashMap<(String, i32), i64>;

/// A broker's log directory. It is listed once, by the constructor.
///
/// Args:
///     path: The directory, one of the broker's ``log.dirs``, or its URL.
///     topics: Only these topics: names, or patterns with ``*``, ``?`` and ``[...]``. Default: all.
///     partitions: Only partitions with these numbers. Default: all.
///     limits: Bounds on untrusted input, for everything read from the directory.
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
///     OSError: The directory can't be read. Subdirectories that are not live partitions are in ``stray``.
///     ValueError: The path is a partition directory; a topic or partition does not exist.
///
/// Example:
///     >>> for log in kbat.LogDirectory("/var/lib/kafka/data").partitions:
///     ...     print(log.topic, log.partition, log.start_offset, log.end_offset)
#[pyclass(frozen, name = "LogDirectory", module = "kbat")]
pub(crate) struct PyLogDirectory(LogDirectory);

#[pymethods]
impl PyLogDirectory {
    #[new]
    #[pyo3(
        signature = (path, *, topics=None, partitions=None, limits=None, **stores),
        text_signature = "(path, *, topics=None, partitions=None, limits=None, storage_options=None, store=None, encryption_keys=None, remote=None, remote_log_metadata=None)"
    )]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        topics: Option<&Bound<'_, PyAny>>,
        partitions: Option<&Bound<'_, PyAny>>,
        limits: Option<PyLimits>,
        stores: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let (limits, selection) = (or_default(limits), selection(py, topics, partitions, "error")?);
        let path = StoreArguments::new("LogDirectory", stores)?.locate_selected(py, path, &selection)?;
        let open = || {
            let mut directory = LogDirectory::open_with(&path, &limits)?;
            selection.check(directory.partitions().iter().filter_map(PartitionLog::topic_partition))?;
            directory.retain(|partition| selection.includes(partition));
            Ok(directory)
        };
        py.detach(open).map(Self).or_raise(py)
    }

    /// Path of the directory.
    #[getter]
    fn path(&self) -> OsString {
        self.0.path().as_os_str().to_owned()
    }

    /// The live partitions, sorted by topic and partition.
    #[getter]
    fn partitions(&self) -> Vec<PyPartitionLog> {
        self.0.partitions().iter().cloned().map(PyPartitionLog).collect()
    }

    /// Find a partition. Returns None if it does not exist.
    fn partition(&self, topic: &str, partition: i32) -> Option<PyPartitionLog> {
        self.0.partition(topic, partition).cloned().map(PyPartitionLog)
    }

    /// Read ``PartitionLog.end_offset`` of each partition, with the same errors; of a store, 16 at a time.
    fn end_offsets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let ends = py.detach(|| self.0.end_offsets()).or_raise(py)?;
        let offsets = PyDict::new(py);
        for (log, end) in self.0.partitions().iter().zip(ends) {
            if let Some(TopicPartition { topic, partition }) = log.topic_partition() {
                offsets.set_item((topic.as_str(), *partition), end)?;
            }
        }
        Ok(offsets)
    }

    /// Directories that are not live partitions: deleted, future and stray ones, and foreign names.
    #[getter]
    fn stray(&self) -> Vec<PyStrayDirectory> {
        self.0.stray().iter().map(PyStrayDirectory::of).collect()
    }

    /// Whether the broker marked its shutdown as clean. A running broker's directory does not have the mark.
    #[getter]
    fn is_clean_shutdown(&self) -> bool {
        self.0.is_clean_shutdown()
    }

    /// The content of ``meta.properties``, or None if the file does not exist.
    ///
    /// Raises:
    ///     CorruptError: The file is malformed.
    #[getter]
    fn meta(&self, py: Python<'_>) -> PyResult<Option<PyMetaProperties>> {
        Ok(self.0.meta().or_raise(py)?.map(PyMetaProperties))
    }

    /// The existing offset checkpoints, by file name: ``(topic, partition) -> offset``.
    ///
    /// Raises:
    ///     CorruptError: One of the files is malformed.
    #[getter]
    fn checkpoints(&self, py: Python<'_>) -> PyResult<HashMap<&'static str, Offsets>> {
        let mut checkpoints = HashMap::new();
        for name in OFFSET_CHECKPOINTS {
            if let Some(checkpoint) = self.0.checkpoint(name).or_raise(py)? {
                let entries = checkpoint.entries.into_iter();
                checkpoints.insert(name, entries.map(|entry| ((entry.topic, entry.partition), entry.offset)).collect());
            }
        }
        Ok(checkpoints)
    }

    fn __repr__(&self) -> String {
        format!(
            "LogDirectory({}, {} partitions, {} stray)",
            self.0.path().display(),
            self.0.partitions().len(),
            self.0.stray().len()
        )
    }

    fn _repr_html_(&self) -> String {
        let partitions = self.0.partitions();
        let row = |log: &PartitionLog| {
            let (topic, partition) =
                log.topic_partition().map_or_else(Default::default, |tp| (tp.topic.clone(), tp.partition.to_string()));
            let size: u64 = log.segments().iter().map(Segment::size).sum();
            [topic, partition, log.segments().len().to_string(), html::size(size)]
        };
        let stray = self.0.stray().len();
        let caption =
            format!("LogDirectory {}: {} partitions, {stray} stray", self.0.path().display(), partitions.len());
        Table::new(&caption).list(["topic", "partition", "segments", "size"], partitions.iter().map(row)).finish()
    }
}

/// The broker's properties in ``meta.properties``.
#[pyclass(frozen, name = "MetaProperties", module = "kbat")]
pub(crate) struct PyMetaProperties(MetaProperties);

#[pymethods]
impl PyMetaProperties {
    /// Version of the format: 0 or 1.
    #[getter]
    fn version(&self) -> i32 {
        self.0.version
    }

    /// Id of the node; ``broker.id`` in version 0.
    #[getter]
    fn node_id(&self) -> Option<i32> {
        self.0.node_id
    }

    /// Id of the cluster.
    #[getter]
    fn cluster_id(&self) -> Option<&str> {
        self.0.cluster_id.as_deref()
    }

    /// Id of the log directory.
    #[getter]
    fn directory_id(&self) -> Option<&str> {
        self.0.directory_id.as_deref()
    }

    fn __repr__(&self) -> String {
        let text =
            |value: &Option<String>| value.as_ref().map_or_else(|| "None".to_owned(), |value| format!("{value:?}"));
        format!(
            "MetaProperties(version={}, node_id={}, cluster_id={}, directory_id={})",
            self.0.version,
            self.0.node_id.map_or_else(|| "None".to_owned(), |id| id.to_string()),
            text(&self.0.cluster_id),
            text(&self.0.directory_id)
        )
    }
}

/// A directory that is not a live partition.
#[pyclass(frozen, get_all, name = "StrayDirectory", module = "kbat")]
pub(crate) struct PyStrayDirectory {
    /// Path of the directory.
    path: OsString,
    /// Topic, if the name contains one; possibly only its beginning.
    topic: Option<String>,
    /// Partition, if the name contains one.
    partition: Option<i32>,
    /// Why the directory is not a live partition.
    ///
    /// ``"delete"``, ``"future"`` or ``"stray"``; ``"unreadable"`` for a live partition that can't be listed,
    /// ``"unknown"`` for a name that brokers do not create.
    state: &'static str,
    /// Why a live partition can't be listed; None for the other states.
    error: Option<String>,
}

impl PyStrayDirectory {
    fn of(stray: &StrayDirectory) -> Self {
        Self {
            path: stray.path.as_os_str().to_owned(),
            topic: stray.partition.as_ref().map(|partition| partition.topic.clone()),
            partition: stray.partition.as_ref().map(|partition| partition.partition),
            state: stray.state(),
            error: stray.error.as_ref().map(ToString::to_string),
        }
    }
}

#[pymethods]
impl PyStrayDirectory {
    fn __repr__(&self) -> String {
        format!("StrayDirectory({}, {})", PathBuf::from(&self.path).display(), self.state)
    }
}
