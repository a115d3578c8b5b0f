//! [`LogWriterOptions`]: configures a [`LogWriter`](crate::log::LogWriter).

use crate::compression::Compression;
use crate::error::{Error, Result};
use crate::format::builder::BatchBuilder;
use crate::limits::Limits;
use crate::log::index::{DEFAULT_INDEX_INTERVAL_BYTES, DEFAULT_MAX_INDEX_BYTES};
use crate::log::uuid::Uuid;
use crate::num::u64_of;
use crate::store::names::MAX_SEGMENT_LEN;

/// Space for one entry and the last one in a time index.
const MIN_INDEX_BYTES: u64 = 24;
/// Default of `batch.size` in Kafka's producer.
const DEFAULT_BATCH_SIZE: usize = 16_384;

/// When written data is flushed to disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SyncPolicy {
    /// By `flush`, by `close`, and at the end of a segment.
    #[default]
    Flush,
    /// Also after each batch.
    Always,
}

/// Options of a [`LogWriter`](crate::log::LogWriter). Names and defaults are those of a topic's configuration.
#[derive(Debug, Clone)]
pub struct LogWriterOptions {
    /// `segment.bytes`: largest size of a segment in bytes.
    pub segment_bytes: u64,
    /// `segment.ms`: largest difference in milliseconds between a timestamp and the largest one of a segment's first
    /// batch. Unlimited by default.
    pub segment_ms: Option<u64>,
    /// `index.interval.bytes`: number of bytes between batches with an index entry.
    pub index_interval_bytes: u64,
    /// `segment.index.bytes`: largest size of an index in bytes.
    pub segment_index_bytes: u64,
    /// Codec of batches built from records.
    pub compression: Compression,
    /// Level of the codec, as in Kafka.
    pub level: Option<i32>,
    /// Size of a full batch in bytes of records before compression. A larger record gets a batch of its own.
    pub batch_size: usize,
    /// Leader epoch of new batches. Must not be below the partition's latest epoch, which is the default (0 if there
    /// is none).
    pub leader_epoch: Option<i32>,
    /// Id of the topic, for `partition.metadata`.
    pub topic_id: Option<Uuid>,
    /// First offset of a new partition.
    pub start_offset: i64,
    /// When written data is flushed to disk.
    pub sync: SyncPolicy,
    /// Limits for reading the partition when it is opened, and for batches that are written. No batch is larger than
    /// [`Limits::batch_len`].
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

    /// Creates a builder for an empty batch.
    pub(super) fn batch_builder(&self, leader_epoch: i32) -> BatchBuilder {
        let builder = BatchBuilder::new().compression(self.compression).partition_leader_epoch(leader_epoch);
        match self.level {
            Some(level) => builder.level(level),
            None => builder,
        }
    }

    /// Refuses a batch that is larger than a segment, or that a reader with the limits would refuse.
    pub(super) fn check_batch_len(&self, len: usize) -> Result<()> {
        self.check_len(len, || format!("a batch of {len} bytes"))
    }

    /// Refuses a record that may need a batch of `len` bytes if it can't be compressed.
    pub(super) fn check_record_batch_len(&self, len: usize) -> Result<()> {
        self.check_len(len, || match self.compression {
            Compression::None => format!("a batch of {len} bytes"),
            _ => format!("a record whose batch may have {len} bytes, which are counted before compression,"),
        })
    }

    fn check_len(&self, len: usize, what: impl Fn() -> String) -> Result<()> {
        let (segment_bytes, batch_len) = (self.segment_bytes, self.limits.batch_len);
        if u64_of(len) > segment_bytes {
            return Err(Error::argument(format!("{} is larger than segment_bytes ({segment_bytes})", what())));
        }
        if len > batch_len {
            return Err(Error::argument(format!("{} is larger than limits.batch_len ({batch_len})", what())));
        }
        Ok(())
    }
}
