//! [`Written`]: what a task wrote; data that can be sent anywhere as bytes.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::num::u64_of;
use crate::plan::transfer;
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
    /// The topics in which the number of partitions has decided where a row belongs.
    pub(super) counted_topics: BTreeSet<String>,
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
        transfer::to_bytes(self)
    }

    /// The value that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// Bytes of another version of kbat, or other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        transfer::from_bytes(bytes, "the result of a task")
    }
}
