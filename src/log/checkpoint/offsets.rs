//! Offset checkpoints: `recovery-point-offset-checkpoint`, `log-start-offset-checkpoint`, `replication-offset-checkpoint`
//! and `cleaner-offset-checkpoint` at the top of a log directory.
//!
//! The checkpoint of log start offsets omits partitions that start at the base offset of their first segment.

use std::path::Path;

use super::{encode_entries, fault, parse_entries, read_text};
use crate::error::Result;
use crate::io::Location;
use crate::io::atomic::write_atomically;

/// The entry of a partition in an offset checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionOffset {
    /// Name of the topic.
    pub topic: String,
    /// Number of the partition.
    pub partition: i32,
    /// The offset.
    pub offset: i64,
}

impl PartitionOffset {
    fn parse(fields: &[&str]) -> Option<Self> {
        match fields {
            [topic, partition, offset] => Some(Self {
                topic: (*topic).to_owned(),
                partition: partition.parse().ok()?,
                offset: offset.parse().ok()?,
            }),
            _ => None,
        }
    }
}

/// The offsets of a list of partitions.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OffsetCheckpoint {
    /// The entries in file order.
    pub entries: Vec<PartitionOffset>,
}

impl OffsetCheckpoint {
    /// Reads a checkpoint file.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidFile`](crate::ErrorKind::InvalidFile) if the text is malformed; I/O errors.
    pub fn read(path: impl Into<Location>) -> Result<Self> {
        let path: &Location = &path.into();
        Self::parse(&read_text(path)?).map_err(|error| error.with_path(path))
    }

    /// Parses the text of a checkpoint.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidFile`](crate::ErrorKind::InvalidFile) if the text is malformed.
    pub fn parse(text: &str) -> Result<Self> {
        Ok(Self { entries: parse_entries(text, PartitionOffset::parse)? })
    }

    /// Returns the offset of a partition. If it has several entries, the last one counts.
    #[must_use]
    pub fn offset(&self, topic: &str, partition: i32) -> Option<i64> {
        let found = self.entries.iter().rev().find(|entry| entry.topic == topic && entry.partition == partition);
        found.map(|entry| entry.offset)
    }

    /// Encodes the checkpoint as text.
    #[must_use]
    pub fn encode(&self) -> String {
        encode_entries(self.entries.iter().map(|entry| format!("{} {} {}", entry.topic, entry.partition, entry.offset)))
    }

    /// Writes a checkpoint file atomically.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidFile`](crate::ErrorKind::InvalidFile) if a topic name is empty or contains white space,
    /// because it could not be read back; I/O errors.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        match self.entries.iter().find(|entry| entry.topic.is_empty() || entry.topic.contains(char::is_whitespace)) {
            Some(entry) => Err(fault(format!("{:?} is not a valid topic name", entry.topic)).with_path(path)),
            None => write_atomically(path, self.encode().as_bytes()),
        }
    }
}
