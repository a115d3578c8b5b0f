//! How a [`LogWriter`](crate::log::LogWriter) writes.

use crate::compression::Compression;
use crate::error::{Error, Result};
use crate::format::builder::BatchBuilder;
use crate::limits::Limits;
use crate::log::index::{DEFAULT_INDEX_INTERVAL_BYTES, DEFAULT_MAX_INDEX_BYTES};
use crate::log::uuid::Uuid;
use crate::num::u64_of;
use crate::store::names::MAX_SEGMENT_LEN;

/// Room for one entry and the last one in a time index.
const MIN_INDEX_BYTES: u64 = 24;
/// `batch.size` of Kafka's producer.
const DEFAULT_BATCH_SIZE: usize = 16_384;

/// When what was written is flushed to the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SyncPolicy {
    /// By `flush`, by `close` and where a segment ends.
    #[default]
    Flush,
    /// Also after each batch.
    Always,
}

/// How a [`LogWriter`](crate::log::LogWriter) writes. Names and defaults are those of a topic's configuration.
#[derive(Debug, Clone)]
pub struct LogWriterOptions {
    /// `segment.bytes`: the most bytes of a segment.
    pub segment_bytes: u64,
    /// `segment.ms`: how far timestamps may be past the first batch's largest one in a segment; no bound by default.
    pub segment_ms: Option<u64>,
    /// `index.interval.bytes`: how many bytes lie between batches with an index entry.
    pub index_interval_bytes: u64,
    /// `segment.index.bytes`: the most bytes of an index.
    pub segment_index_bytes: u64,
    /// Codec of the batches that are made from records.
    pub compression: Compression,
    /// Its level, as Kafka counts.
    pub level: Option<i32>,
    /// Bytes of records, before compression, that make a batch full. A larger record is a batch of its own.
    pub batch_size: usize,
    /// Leader epoch that batches get: not below the partition's latest; by default that one, or 0.
    pub leader_epoch: Option<i32>,
    /// Id of the topic, for `partition.metadata`.
    pub topic_id: Option<Uuid>,
    /// First offset of a partition that is new.
    pub start_offset: i64,
    /// When what was written is flushed to the disk.
    pub sync: SyncPolicy,
    /// Bounds on what is read: the partition when it is opened, batches that are appended.
    pub limits: Limits,
}

impl Default for LogWriterOptions {
    fn default() -> Self {
        Self {
            segment_bytes: 1 << 30,
            segment_ms: None,
            index_interval_bytes: DEFAULT_INDEX_INTERVAL_BYTES,
            segment_index_bytes: DEFAULT_MAX_INDEX_BYTES,
            compression: Compression::None,
            level: None,
            batch_size: DEFAULT_BATCH_SIZE,
            leader_epoch: None,
            topic_id: None,
            start_offset: 0,
            sync: SyncPolicy::Flush,
            limits: Limits::default(),
        }
    }
}

impl LogWriterOptions {
    pub(super) fn validate(&self) -> Result<()> {
        let check = |ok: bool, message: &str| if ok { Ok(()) } else { Err(Error::argument(message)) };
        check((1..=MAX_SEGMENT_LEN).contains(&self.segment_bytes), "segment_bytes must be from 1 to 2147483647")?;
        check(self.segment_index_bytes >= MIN_INDEX_BYTES, "segment_index_bytes must be at least 24")?;
        check(self.leader_epoch.is_none_or(|epoch| epoch >= 0), "leader_epoch must not be negative")?;
        check(self.start_offset >= 0, "start_offset must not be negative")?;
        check(self.topic_id.is_none_or(|id| !id.is_zero()), "topic_id must not be all zeros")?;
        self.batch_builder(0).validate_all()
    }

    /// A batch without records.
    pub(super) fn batch_builder(&self, leader_epoch: i32) -> BatchBuilder {
        let builder = BatchBuilder::new().compression(self.compression).partition_leader_epoch(leader_epoch);
        match self.level {
            Some(level) => builder.level(level),
            None => builder,
        }
    }

    /// Refuses a batch that no segment has room for.
    pub(super) fn check_batch_len(&self, len: usize) -> Result<()> {
        if u64_of(len) <= self.segment_bytes {
            return Ok(());
        }
        Err(Error::argument(format!("a batch of {len} bytes is more than segment_bytes ({})", self.segment_bytes)))
    }
}
