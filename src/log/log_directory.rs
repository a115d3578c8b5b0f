//! [`LogDirectory`]: the contents of a broker's `log.dir`.
//!
//! ```text
//! meta.properties                    the ids of the broker and the cluster
//! .kafka_cleanshutdown               exists while the broker is down after a clean shutdown
//! *-checkpoint                       four text files: topic, partition, offset
//! <topic>-<partition>/               a partition
//! <topic>-<partition>.<hex>-delete/  also -future and -stray: not a live partition
//! ```
//!
//! Source: `LogManager`, `BrokerMetadataCheckpoint`, `OffsetCheckpointFile` of Kafka.

use std::path::Path;

use crate::error::{Error, Result};
use crate::io::Location;
use crate::io::waiting::map_waiting;
use crate::limits::Limits;
use crate::log::checkpoint::{MetaProperties, OffsetCheckpoint};
use crate::log::partition::{PartitionLog, log_starts};
use crate::store::names::{DirectoryState, PartitionDirectory, TopicPartition, is_hidden, parse_base_offset};
use crate::store::refuse_foreign_directory;
#[cfg(feature = "plan")]
use crate::store::refuse_misplaced_logs;

/// The offset checkpoints that a broker keeps.
pub const OFFSET_CHECKPOINTS: [&str; 4] = [
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
];
/// Exists while the broker is down after a clean shutdown.
const CLEAN_SHUTDOWN: &str = ".kafka_cleanshutdown";
const META_PROPERTIES: &str = "meta.properties";
/// Directories that belong to a broker but not to a partition.
const OTHER_DIRECTORIES: [&str; 1] = ["remote-log-index-cache"];

/// A directory that is not a live partition.
#[derive(Debug)]
pub struct StrayDirectory {
    /// Path of the directory.
    pub path: Location,
    /// The parsed name, or `None` if it is not a name that a broker uses.
    pub partition: Option<PartitionDirectory>,
    /// Why it could not be listed, if its name is that of a live partition.
    pub error: Option<Error>,
}

impl StrayDirectory {
    /// Why it is not a live partition: `delete`, `future` or `stray`, `unreadable` for a live one that cannot be
    /// listed, or `unknown` for a name that no broker uses.
    #[must_use]
    pub fn state(&self) -> &'static str {
        match self.partition.as_ref().map(|partition| partition.state) {
            Some(DirectoryState::Delete) => "delete",
            Some(DirectoryState::Future) => "future",
            Some(DirectoryState::Stray) => "stray",
            Some(DirectoryState::Live) => "unreadable",
            None => "unknown",
        }
    }
}

/// A broker's log directory, listed once.
#[derive(Debug)]
pub struct LogDirectory {
    path: Location,
    partitions: Vec<PartitionLog>,
    stray: Vec<StrayDirectory>,
    clean_shutdown: bool,
}

impl LogDirectory {
    /// Lists a log directory and its partitions. Directories that are not live partitions are in
    /// [`LogDirectory::stray`] and cause no error.
    ///
    /// # Errors
    /// I/O errors; [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a partition directory.
    pub fn open(path: impl Into<Location>) -> Result<Self> {
        let path: &Location = &path.into();
        Self::open_with(path, &Limits::default())
    }

    /// Like [`LogDirectory::open`], with custom limits for everything that is read from it.
    ///
    /// # Errors
    /// The errors of [`LogDirectory::open`].
    pub fn open_with(path: impl Into<Location>, limits: &Limits) -> Result<Self> {
        let path: &Location = &path.into();
        let directory = Self::list(path, limits)?;
        if directory.has_no_partition() {
            refuse_foreign_directory(path)?;
        }
        Ok(directory)
    }

    /// Like [`LogDirectory::open`], for a directory to which partitions are written: it may have other files only.
    ///
    /// # Errors
    /// I/O errors; [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a partition directory, and for
    /// a directory around log directories.
    #[cfg(feature = "plan")]
    pub(crate) fn open_target(path: &Location) -> Result<Self> {
        let directory = Self::list(path, &Limits::default())?;
        if directory.has_no_partition() {
            refuse_misplaced_logs(path)?;
        }
        Ok(directory)
    }

    fn has_no_partition(&self) -> bool {
        self.partitions.is_empty() && self.stray.iter().all(|stray| stray.partition.is_none())
    }

    fn list(path: &Location, limits: &Limits) -> Result<Self> {
        let entries = path.entries()?;
        let mut directory = Self {
            path: path.clone(),
            partitions: Vec::new(),
            stray: Vec::new(),
            clean_shutdown: path.join(CLEAN_SHUTDOWN).exists(),
        };
        if entries.iter().any(|entry| parse_base_offset(entry.name()).is_some()) {
            let message =
                "this is a partition directory, not a log directory: use PartitionLog, or name the parent directory";
            return Err(Error::argument(message).with_path(path));
        }
        let starts = log_starts(path);
        for entry in entries {
            let name = entry.name();
            if let Err(error) = entry.status_if_there()
                && let Some(partition) = PartitionDirectory::parse(name)
            {
                directory.add(entry, Some(partition), Some(Err(error)));
                continue;
            }
            if !entry.is_dir() {
                continue;
            }
            if !OTHER_DIRECTORIES.contains(&name) && !is_hidden(name) {
                let partition = PartitionDirectory::parse(name);
                let live = partition.as_ref().is_some_and(|partition| partition.state == DirectoryState::Live);
                let log = live.then(|| PartitionLog::list(&entry, starts.as_ref(), limits));
                directory.add(entry, partition, log);
            }
        }
        directory.partitions.sort_by(|a, b| a.topic_partition().cmp(&b.topic_partition()));
        directory.stray.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(directory)
    }

    /// Drops the partitions that the caller does not want.
    pub(crate) fn retain(&mut self, wanted: impl Fn(&TopicPartition) -> bool) {
        self.partitions.retain(|log| log.topic_partition().is_some_and(&wanted));
    }

    /// Adds a directory. `log` is the content of a live partition's directory.
    fn add(&mut self, path: Location, partition: Option<PartitionDirectory>, log: Option<Result<PartitionLog>>) {
        let error = match log {
            Some(Ok(log)) => {
                self.partitions.push(log);
                return;
            }
            Some(Err(error)) => Some(error),
            None => None,
        };
        self.stray.push(StrayDirectory { path, partition, error });
    }

    /// Path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The live partitions, sorted by topic and partition.
    #[must_use]
    pub fn partitions(&self) -> &[PartitionLog] {
        &self.partitions
    }

    /// Returns one partition.
    #[must_use]
    pub fn partition(&self, topic: &str, partition: i32) -> Option<&PartitionLog> {
        let wanted = TopicPartition { topic: topic.to_owned(), partition };
        self.partitions.iter().find(|log| log.topic_partition() == Some(&wanted))
    }

    /// Returns the end offsets of the partitions, in the order of [`LogDirectory::partitions`]. Of a store, 16 partitions
    /// are read at a time.
    ///
    /// # Errors
    /// The errors of [`PartitionLog::end_offset`]: those of the first partition whose end cannot be read.
    pub fn end_offsets(&self) -> Result<Vec<i64>> {
        map_waiting(&self.partitions, !self.path.is_local(), PartitionLog::end_offset)
    }

    /// The other directories: those of partitions that were deleted, moved or abandoned, and those with names that
    /// no broker uses. A broker refuses to start if a directory has such a name.
    #[must_use]
    pub fn stray(&self) -> &[StrayDirectory] {
        &self.stray
    }

    /// Whether the broker left the marker of a clean shutdown. A running broker's directory does not have it.
    #[must_use]
    pub fn is_clean_shutdown(&self) -> bool {
        self.clean_shutdown
    }

    /// Reads `meta.properties`. Returns `None` if there is no such file.
    ///
    /// # Errors
    /// The errors of [`MetaProperties::read`].
    pub fn meta(&self) -> Result<Option<MetaProperties>> {
        match MetaProperties::read(self.path.join(META_PROPERTIES)) {
            Ok(meta) => Ok(Some(meta)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads one of the [`OFFSET_CHECKPOINTS`] by its file name. Returns `None` if there is no such file.
    ///
    /// # Errors
    /// The errors of [`OffsetCheckpoint::read`].
    pub fn checkpoint(&self, name: &str) -> Result<Option<OffsetCheckpoint>> {
        match OffsetCheckpoint::read(self.path.join(name)) {
            Ok(checkpoint) => Ok(Some(checkpoint)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }
}
