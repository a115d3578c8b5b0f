//! `kbat.ProducerSnapshot` and `kbat.Checkpoint`: files that are read into memory as a whole.

use std::ffi::OsString;
use std::path::PathBuf;

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::io::Location;
use crate::log::checkpoint::{Checkpoint, EpochEntry, PartitionOffset};
use crate::log::producer::{ProducerEntry, ProducerSnapshot};
use crate::python::arguments::location::StoreArguments;
use crate::python::runtime::errors::OrRaise;
use crate::store::LogFile;

/// The state of a producer in a producer snapshot.
#[pyclass(frozen, eq, hash, get_all, name = "ProducerEntry", module = "kbat")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PyProducerEntry {
    /// Producer id.
    producer_id: i64,
    /// Producer epoch.
    producer_epoch: i16,
    /// Sequence of the first record of its last batch.
    first_sequence: i32,
    /// Sequence of the last record of its last batch, -1 if there is none.
    last_sequence: i32,
    /// Offset of the first record of its last batch.
    first_offset: i64,
    /// Offset of the last record of its last batch, -1 if unknown.
    last_offset: i64,
    /// Last minus first offset of its last batch.
    offset_delta: i32,
    /// Timestamp of its last batch or marker, milliseconds since the epoch.
    timestamp: i64,
    /// Epoch of the coordinator that wrote its last marker, -1 if there is none.
    coordinator_epoch: i32,
    /// First offset of its open transaction, None if there is none.
    current_txn_first_offset: Option<i64>,
}

impl From<ProducerEntry> for PyProducerEntry {
    fn from(entry: ProducerEntry) -> Self {
        Self {
            producer_id: entry.producer_id,
            producer_epoch: entry.producer_epoch,
            first_sequence: entry.first_sequence(),
            last_sequence: entry.last_sequence,
            first_offset: entry.first_offset(),
            last_offset: entry.last_offset,
            offset_delta: entry.offset_delta,
            timestamp: entry.timestamp,
            coordinator_epoch: entry.coordinator_epoch,
            current_txn_first_offset: entry.current_txn_first_offset,
        }
    }
}

#[pymethods]
impl PyProducerEntry {
    fn __repr__(&self) -> String {
        let open = self.current_txn_first_offset.map(|offset| format!(", current_txn_first_offset={offset}"));
        format!(
            "ProducerEntry(producer_id={}, producer_epoch={}, last_sequence={}, last_offset={}{})",
            self.producer_id,
            self.producer_epoch,
            self.last_sequence,
            self.last_offset,
            open.unwrap_or_default()
        )
    }
}

/// A producer snapshot: the state of each producer at one offset. The constructor reads the whole file.
///
/// Args:
///     path: The ``.snapshot`` file.
///
/// Raises:
///     CrcError: The checksum does not match the entries.
///     TruncatedError: The file is empty or ends too early.
///     CorruptError: The version is not 1.
///     OSError: The file can't be read.
#[pyclass(frozen, name = "ProducerSnapshot", module = "kbat")]
pub(crate) struct PyProducerSnapshot {
    path: PathBuf,
    snapshot: ProducerSnapshot,
}

impl PyProducerSnapshot {
    pub(crate) fn read(py: Python<'_>, location: &Location) -> PyResult<Self> {
        let snapshot = py.detach(|| ProducerSnapshot::read(location)).or_raise(py)?;
        Ok(Self { path: location.to_path_buf(), snapshot })
    }

    fn name_offset(&self) -> Option<i64> {
        let name = self.path.file_name().and_then(|name| name.to_str());
        name.and_then(LogFile::parse).map(|file| file.base_offset)
    }
}

#[pymethods]
impl PyProducerSnapshot {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Ok(Self { path: path.clone(), ..Self::read(py, &StoreArguments::default().locate(py, path)?)? })
    }

    /// Path of the file.
    #[getter]
    fn path(&self) -> OsString {
        self.path.clone().into_os_string()
    }

    /// The first offset that the snapshot does not cover, from the file's name; None if the name has no offset.
    #[getter]
    fn offset(&self) -> Option<i64> {
        self.name_offset()
    }

    /// One entry per producer, in the order of the file.
    #[getter]
    fn entries(&self) -> Vec<PyProducerEntry> {
        self.snapshot.entries.iter().copied().map(Into::into).collect()
    }

    fn __len__(&self) -> usize {
        self.snapshot.entries.len()
    }

    fn __repr__(&self) -> String {
        format!("ProducerSnapshot({}, {} entries)", self.path.display(), self.snapshot.entries.len())
    }
}

/// The entry of a partition in an offset checkpoint.
#[pyclass(frozen, eq, hash, get_all, name = "PartitionOffset", module = "kbat")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PyPartitionOffset {
    /// Name of the topic.
    topic: String,
    /// Number of the partition.
    partition: i32,
    /// The offset.
    offset: i64,
}

impl From<PartitionOffset> for PyPartitionOffset {
    fn from(PartitionOffset { topic, partition, offset }: PartitionOffset) -> Self {
        Self { topic, partition, offset }
    }
}

#[pymethods]
impl PyPartitionOffset {
    fn __repr__(&self) -> String {
        format!("PartitionOffset(topic={:?}, partition={}, offset={})", self.topic, self.partition, self.offset)
    }
}

/// A leader epoch and its first offset.
#[pyclass(frozen, eq, hash, get_all, name = "EpochEntry", module = "kbat")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct PyEpochEntry {
    /// The leader epoch.
    epoch: i32,
    /// First offset that the leader of this epoch wrote.
    start_offset: i64,
}

impl From<EpochEntry> for PyEpochEntry {
    fn from(EpochEntry { epoch, start_offset }: EpochEntry) -> Self {
        Self { epoch, start_offset }
    }
}

#[pymethods]
impl PyEpochEntry {
    fn __repr__(&self) -> String {
        format!("EpochEntry(epoch={}, start_offset={})", self.epoch, self.start_offset)
    }
}

/// A checkpoint file in text format.
///
/// It contains either an offset for each partition of a log directory (``*-offset-checkpoint``) or the leader epochs
/// of a partition (``leader-epoch-checkpoint``). The format of its lines determines which. The constructor reads the
/// whole file.
///
/// Args:
///     path: The file.
///
/// Raises:
///     CorruptError: The text is malformed.
///     OSError: The file can't be read.
///
/// Example:
///     >>> kbat.Checkpoint("orders-0/leader-epoch-checkpoint").entries
///     [EpochEntry(epoch=0, start_offset=0), EpochEntry(epoch=2, start_offset=40)]
#[pyclass(frozen, name = "Checkpoint", module = "kbat")]
pub(crate) struct PyCheckpoint {
    path: PathBuf,
    checkpoint: Checkpoint,
}

#[pymethods]
impl PyCheckpoint {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let location = StoreArguments::default().locate(py, path.clone())?;
        let checkpoint = py.detach(|| Checkpoint::read(&location)).or_raise(py)?;
        Ok(Self { path, checkpoint })
    }

    /// Path of the file.
    #[getter]
    fn path(&self) -> OsString {
        self.path.clone().into_os_string()
    }

    /// Version of the format: 0 is the only one.
    #[getter]
    fn version(&self) -> i32 {
        self.checkpoint.version()
    }

    /// Kind of the entries: ``"offsets"`` or ``"leader_epochs"``.
    #[getter]
    fn kind(&self) -> &'static str {
        match self.checkpoint {
            Checkpoint::Offsets(_) => "offsets",
            Checkpoint::LeaderEpochs(_) => "leader_epochs",
        }
    }

    /// Offsets in the order of the file, or leader epochs from the oldest.
    ///
    /// Offsets have ``topic``, ``partition`` and ``offset``; leader epochs have ``epoch`` and ``start_offset``.
    #[getter]
    fn entries(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        match &self.checkpoint {
            Checkpoint::Offsets(checkpoint) => {
                let entries = checkpoint.entries.iter().cloned().map(PyPartitionOffset::from);
                entries.map(|entry| entry.into_py_any(py)).collect()
            }
            Checkpoint::LeaderEpochs(epochs) => {
                let entries = epochs.entries().iter().copied().map(PyEpochEntry::from);
                entries.map(|entry| entry.into_py_any(py)).collect()
            }
        }
    }

    fn __len__(&self) -> usize {
        match &self.checkpoint {
            Checkpoint::Offsets(checkpoint) => checkpoint.entries.len(),
            Checkpoint::LeaderEpochs(epochs) => epochs.entries().len(),
        }
    }

    fn __repr__(&self) -> String {
        format!("Checkpoint({}, {}, {} entries)", self.path.display(), self.kind(), self.__len__())
    }
}
