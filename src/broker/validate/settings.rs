//! The settings of broker, topic and request that apply to an append.

use crate::compression::Compression;
use crate::error::{Error, Result};
use crate::format::attributes::TimestampType;
use crate::format::builder::BatchBuilder;
use crate::format::header::NO_PARTITION_LEADER_EPOCH;

/// The kind of sender. Follows Kafka's `AppendOrigin`, without followers, whose appends are not validated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum AppendOrigin {
    /// A producer.
    #[default]
    Client,
    /// A group, transaction or share coordinator. It may write control batches and any base offset.
    Coordinator,
    /// The leader of the metadata quorum. Its batches already have the leader epoch.
    RaftLeader,
}

/// The topic's and the broker's settings, named as in Kafka, and the state of the log. The default is a topic without
/// settings of its own on a 4.x broker, and an empty partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ValidationSettings {
    /// Version of the produce request, for the checks that precede all others: one batch of magic 2, and zstd only from
    /// version 7 on. `None` omits these checks. Default 13.
    pub request_version: Option<i16>,
    /// The kind of sender.
    pub origin: AppendOrigin,
    /// Message format of the log. Since Kafka 4 always 2, which is the default.
    pub magic: u8,
    /// `compression.type`: a codec, or `None` for `producer`.
    pub compression: Option<Compression>,
    /// Compression level of that codec, numbered as in Kafka.
    pub level: Option<i32>,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`: how many milliseconds a timestamp may be in the past. Default: any.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`: how many milliseconds a timestamp may be in the future. Default: one hour, as
    /// since 4.0.
    pub timestamp_after_max_ms: i64,
    /// Whether `cleanup.policy` includes `compact`, so that every record needs a key.
    pub compacted: bool,
    /// `max.message.bytes`: bytes of a batch with its log overhead. Default 1,048,588.
    pub max_message_bytes: usize,
    /// `segment.bytes`: bytes of all batches. Default 1 GiB.
    pub segment_bytes: usize,
    /// The broker's clock, milliseconds since the epoch.
    pub now_ms: i64,
    /// Log end offset: the offset of the first record.
    pub base_offset: i64,
    /// The leader epoch to store in batches.
    pub partition_leader_epoch: i32,
}

impl Default for ValidationSettings {
    fn default() -> Self {
        Self {
            request_version: Some(13),
            origin: AppendOrigin::Client,
            magic: 2,
            compression: None,
            level: None,
            timestamp_type: TimestampType::CreateTime,
            timestamp_before_max_ms: i64::MAX,
            timestamp_after_max_ms: 3_600_000,
            compacted: false,
            max_message_bytes: 1_048_588,
            segment_bytes: 1 << 30,
            now_ms: 0,
            base_offset: 0,
            partition_leader_epoch: NO_PARTITION_LEADER_EPOCH,
        }
    }
}

impl ValidationSettings {
    /// Checks the settings against each other.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) with the broken rule.
    pub fn validate(&self) -> Result<()> {
        if self.level.is_some() && self.compression.is_none() {
            return Err(Error::argument("a compression level needs a codec: set compression too"));
        }
        if self.base_offset < 0 {
            return Err(Error::argument(format!("base offset {} is negative", self.base_offset)));
        }
        let builder = BatchBuilder::new().magic(self.magic).compression(self.compression.unwrap_or_default());
        self.level.map_or(builder.clone(), |level| builder.level(level)).validate()
    }

    pub(super) fn is_client(&self) -> bool {
        self.origin == AppendOrigin::Client
    }

    /// Uses Kafka's arithmetic, which wraps.
    pub(super) fn is_out_of_range(&self, timestamp: i64) -> bool {
        let age = self.now_ms.wrapping_sub(timestamp);
        age > self.timestamp_before_max_ms || age.wrapping_neg() > self.timestamp_after_max_ms
    }
}
