//! `partition.metadata`: the id of the topic that a partition directory belongs to. Old logs do not have this file.
//!
//! ```text
//! version: 0
//! topic_id: bAmibu5sR86NaVa0PfqQXA
//! ```
//!
//! Source: `PartitionMetadataFile` of Kafka, KIP-516.

use std::path::Path;

use super::{fault, lines, malformed, read_text};
use crate::error::Result;
use crate::io::Location;
use crate::io::atomic::write_atomically;
use crate::log::uuid::Uuid;

/// The version that Kafka writes.
const VERSION: i32 = 0;

/// The content of `partition.metadata`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PartitionMetadata {
    /// Version of the file, 0 or greater.
    pub version: i32,
    /// Id of the topic, never all zeros.
    pub topic_id: Uuid,
}

impl PartitionMetadata {
    /// Creates the metadata for a topic.
    #[must_use]
    pub fn new(topic_id: Uuid) -> Self {
        Self { version: VERSION, topic_id }
    }

    /// Reads the file.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidFile`](crate::ErrorKind::InvalidFile) if the text is malformed; I/O errors.
    pub fn read(path: impl Into<Location>) -> Result<Self> {
        let path: &Location = &path.into();
        Self::parse(&read_text(path)?).map_err(|error| error.with_path(path))
    }

    /// Parses the text of the file.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidFile`](crate::ErrorKind::InvalidFile) if the text is malformed.
    pub fn parse(text: &str) -> Result<Self> {
        let mut lines = lines(text);
        let line = lines.next().unwrap_or_default();
        let version = value(line).and_then(|version| version.parse::<i32>().ok()).ok_or_else(|| malformed(1, line))?;
        if version < VERSION {
            return Err(fault(format!("partition metadata version {version} is negative")).in_field("version"));
        }
        let line = lines.next().unwrap_or_default();
        let topic_id = value(line).and_then(Uuid::parse).ok_or_else(|| malformed(2, line))?;
        if topic_id.is_zero() {
            return Err(fault("the topic id is all zeros").in_field("topic_id"));
        }
        Ok(Self { version, topic_id })
    }

    /// Encodes the file as text.
    #[must_use]
    pub fn encode(&self) -> String {
        format!("version: {}\ntopic_id: {}", self.version, self.topic_id)
    }

    /// Writes the file atomically.
    ///
    /// # Errors
    /// I/O errors.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        write_atomically(path, self.encode().as_bytes())
    }
}

/// Returns the value after the colon of a line.
fn value(line: &str) -> Option<&str> {
    let (_, value) = line.split_once(": ")?;
    Some(value.trim()).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_round_trips() {
        let text = "version: 0\ntopic_id: bAmibu5sR86NaVa0PfqQXA";
        let parsed = PartitionMetadata::parse(text).unwrap();
        assert_eq!(parsed.topic_id.to_string(), "bAmibu5sR86NaVa0PfqQXA");
        assert_eq!(parsed.encode(), text);
        assert_eq!(PartitionMetadata::parse("version: 7\r\ntopic_id: bAmibu5sR86NaVa0PfqQXA\r\n").unwrap().version, 7);
    }

    #[test]
    fn metadata_malformed_is_refused() {
        for text in [
            "",
            "version: 0",
            "version: -1\ntopic_id: bAmibu5sR86NaVa0PfqQXA",
            "version: 0\ntopic_id: x",
            "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
            "version:0\ntopic_id:bAmibu5sR86NaVa0PfqQXA",
        ] {
            assert!(PartitionMetadata::parse(text).is_err(), "{text:?}");
        }
    }
}
