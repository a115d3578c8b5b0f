//! [`Written`]: what a task wrote; data that can be sent anywhere as bytes.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::num::u64_of;
use crate::store::TopicPartition;

/// The log, from offset 0, that one task wrote for a partition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fragment {
    pub(super) topic: String,
    pub(super) partition: i32,
    pub(super) directory: String,
    pub(super) record_count: i64,
}

impl Fragment {
    pub(super) fn name(&self) -> TopicPartition {
        TopicPartition { topic: self.topic.clone(), partition: self.partition }
    }
}

/// How much a task wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteCounts {
    /// Record batches.
    pub batches: u64,
    /// Records.
    pub records: u64,
    /// Bytes of the batches.
    pub bytes: u64,
}

impl WriteCounts {
    /// Adds a batch.
    pub(super) fn add(&mut self, record_count: u32, bytes: usize) {
        self.batches = self.batches.saturating_add(1);
        self.records = self.records.saturating_add(u64::from(record_count));
        self.bytes = self.bytes.saturating_add(u64_of(bytes));
    }
}

/// What a task wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// The number of the task.
    pub(super) number: u32,
    pub(super) fragments: Vec<Fragment>,
    pub(super) counts: WriteCounts,
}

impl Written {
    /// How much it is.
    #[must_use]
    pub fn counts(&self) -> WriteCounts {
        self.counts
    }

    /// The value as bytes for [`from_bytes`](Self::from_bytes).
    ///
    /// # Errors
    /// None that occurs.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        serde_json::to_vec(self).map_err(Error::other)
    }

    /// The value that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// Other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        parsed(bytes, "what a task of a write has written")
    }
}

/// Parses the bytes of a value.
///
/// # Errors
/// Other bytes, such as those of another version.
pub(super) fn parsed<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T> {
    serde_json::from_slice(bytes)
        .map_err(|error| Error::argument(format!("kbat: these bytes are not {what}, of this version: {error}")))
}
