//! [`LogDirectory`]: everything in a broker's `log.dir`.
//!
//! ```text
//! meta.properties                    which broker and cluster
//! .kafka_cleanshutdown               there while the broker is down after a clean shutdown
//! *-checkpoint                       four text files: topic, partition, offset
//! <topic>-<partition>/               a partition
//! <topic>-<partition>.<hex>-delete/  likewise -future and -stray: no live partition
//! ```
//!
//! Source: `LogManager`, `BrokerMetadataCheckpoint`, `OffsetCheckpointFile` of Kafka.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::log::checkpoint::{MetaProperties, OffsetCheckpoint};
use crate::log::partition::{PartitionLog, log_starts};
use crate::store::listing::metadata_if_there;
use crate::store::names::{DirectoryState, PartitionDirectory, TopicPartition, parse_base_offset};

/// The offset checkpoints that a broker keeps.
pub const OFFSET_CHECKPOINTS: [&str; 4] = [
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
];
/// There while the broker is down after a clean shutdown.
const CLEAN_SHUTDOWN: &str = ".kafka_cleanshutdown";
const META_PROPERTIES: &str = "meta.properties";
/// Directories that are no partitions and none of a partition's business.
const OTHER_DIRECTORIES: [&str; 1] = ["remote-log-index-cache"];

/// A directory that holds no live partition.
#[derive(Debug)]
pub struct StrayDirectory {
    /// Where it is.
    pub path: PathBuf,
    /// What its name says; `None` where the name is not one that a broker gives.
    pub partition: Option<PartitionDirectory>,
    /// Why it could not be listed, where its name is that of a live partition.
    pub error: Option<Error>,
}

impl StrayDirectory {
    /// Why it holds no live partition: `delete`, `future`, `stray`; `unreadable` for a live one that can't be listed,
    /// `unknown` for a name that no broker gives.
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
    path: PathBuf,
    partitions: Vec<PartitionLog>,
    stray: Vec<StrayDirectory>,
    clean_shutdown: bool,
}

impl LogDirectory {
    /// Lists a log directory and its partitions. What is no partition is in [`LogDirectory::stray`], never an error.
    ///
    /// # Errors
    /// A directory that can't be read, or that is a partition directory.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::open_with(path, &Limits::default())
    }

    /// As [`LogDirectory::open`], with limits of your own for everything that is read from it.
    ///
    /// # Errors
    /// A directory that can't be read.
    pub fn open_with(path: impl AsRef<Path>, limits: &Limits) -> Result<Self> {
        let path = path.as_ref();
        let entries = || fs::read_dir(path)?.collect::<std::io::Result<Vec<_>>>();
        let entries = entries().map_err(|error| Error::from(error).with_path(path))?;
        let mut directory = Self {
            path: path.to_path_buf(),
            partitions: Vec::new(),
            stray: Vec::new(),
            clean_shutdown: path.join(CLEAN_SHUTDOWN).exists(),
        };
        if entries.iter().any(|entry| entry.file_name().to_str().and_then(parse_base_offset).is_some()) {
            let message =
                "this is a partition directory, not a log directory: use PartitionLog, or the directory above";
            return Err(Error::argument(message).with_path(path));
        }
        let starts = log_starts(path);
        for entry in &entries {
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if let Err(error) = metadata_if_there(&entry.path())
                && let Some(partition) = PartitionDirectory::parse(&name)
            {
                directory.add(entry.path(), Some(partition), Some(Err(error)));
                continue;
            }
            if !entry.path().is_dir() {
                continue;
            }
            if !OTHER_DIRECTORIES.contains(&name.as_ref()) && !name.starts_with('.') {
                let partition = PartitionDirectory::parse(&name);
                let live = partition.as_ref().is_some_and(|partition| partition.state == DirectoryState::Live);
                let log = live.then(|| PartitionLog::list(&entry.path(), starts.as_ref(), limits));
                directory.add(entry.path(), partition, log);
            }
        }
        directory.partitions.sort_by(|a, b| a.topic_partition().cmp(&b.topic_partition()));
        directory.stray.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(directory)
    }

    /// Drops the partitions that a caller does not want.
    #[cfg_attr(not(feature = "python"), expect(dead_code, reason = "only Python selects partitions"))]
    pub(crate) fn retain(&mut self, wanted: impl Fn(&TopicPartition) -> bool) {
        self.partitions.retain(|log| log.topic_partition().is_some_and(&wanted));
    }

    /// `log` is what a live partition's directory holds.
    fn add(&mut self, path: PathBuf, partition: Option<PartitionDirectory>, log: Option<Result<PartitionLog>>) {
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

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The live partitions by topic and partition.
    #[must_use]
    pub fn partitions(&self) -> &[PartitionLog] {
        &self.partitions
    }

    /// A partition.
    #[must_use]
    pub fn partition(&self, topic: &str, partition: i32) -> Option<&PartitionLog> {
        let wanted = TopicPartition { topic: topic.to_owned(), partition };
        self.partitions.iter().find(|log| log.topic_partition() == Some(&wanted))
    }

    /// The other directories: of partitions that were deleted, moved or left behind, and those whose names are none of a
    /// broker's. A broker refuses to start where one of the latter lies.
    #[must_use]
    pub fn stray(&self) -> &[StrayDirectory] {
        &self.stray
    }

    /// Whether the broker left the mark of a clean shutdown. A running broker's directory has none.
    #[must_use]
    pub fn is_clean_shutdown(&self) -> bool {
        self.clean_shutdown
    }

    /// `meta.properties`; `None` where there is no such file.
    ///
    /// # Errors
    /// A file that is malformed or can't be read.
    pub fn meta(&self) -> Result<Option<MetaProperties>> {
        match MetaProperties::read(self.path.join(META_PROPERTIES)) {
            Ok(meta) => Ok(Some(meta)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// One of the [`OFFSET_CHECKPOINTS`] by its file name; `None` where there is no such file.
    ///
    /// # Errors
    /// A file that is malformed or can't be read.
    pub fn checkpoint(&self, name: &str) -> Result<Option<OffsetCheckpoint>> {
        match OffsetCheckpoint::read(self.path.join(name)) {
            Ok(checkpoint) => Ok(Some(checkpoint)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }
}
