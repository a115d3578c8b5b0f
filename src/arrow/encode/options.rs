//! [`EncodeOptions`]: how to encode Arrow data as record batches.

use crate::compression::Compression;
use crate::error::{Error, Result};
use crate::format::attributes::TimestampType;
use crate::format::builder::BatchBuilder;
use crate::format::header::{NO_PARTITION_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP};

/// Options of [`EncodedBatches`](crate::arrow::EncodedBatches): those of a [`BatchBuilder`], and the size of batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "plan", derive(serde::Serialize, serde::Deserialize))]
pub struct EncodeOptions {
    /// Message format: 0, 1 or 2. Default 2.
    pub magic: u8,
    /// Codec of the batches.
    pub compression: Compression,
    /// Level of the codec, as in Kafka.
    pub level: Option<i32>,
    /// Maximum bytes of a batch before compression, except for a single record that is larger. Default 128 KiB.
    pub batch_bytes: usize,
    /// Maximum number of records of a batch.
    pub batch_rows: Option<usize>,
    /// Offset of the first record if the data has no `offset` column. Default 0.
    pub base_offset: Option<i64>,
    /// Timestamp of records without one, in milliseconds since the epoch. Required if the data has no `timestamp`
    /// column, except with magic 0. If it is `None`, a null in the column becomes −1, Kafka's value for no timestamp.
    pub timestamp: Option<i64>,
    /// Type of the timestamps; magic 0 has none.
    pub timestamp_type: TimestampType,
    /// Timestamp of all records with [`TimestampType::LogAppendTime`], in milliseconds since the epoch.
    pub log_append_time: i64,
    /// Producer id, −1 for none.
    pub producer_id: i64,
    /// Producer epoch, −1 for none.
    pub producer_epoch: i16,
    /// Sequence of the first record, −1 for none. Each batch continues the sequence of the one before it.
    pub base_sequence: i32,
    /// Whether the batches belong to a transaction.
    pub transactional: bool,
    /// Leader epoch of the batches.
    pub partition_leader_epoch: i32,
}

impl Default for EncodeOptions {
    fn default() -> Self {
        Self {
            magic: 2,
            compression: Compression::None,
            level: None,
            batch_bytes: 128 << 10,
            batch_rows: None,
            base_offset: None,
            timestamp: None,
            timestamp_type: TimestampType::CreateTime,
            log_append_time: NO_TIMESTAMP,
            producer_id: NO_PRODUCER_ID,
            producer_epoch: NO_PRODUCER_EPOCH,
            base_sequence: NO_SEQUENCE,
            transactional: false,
            partition_leader_epoch: NO_PARTITION_LEADER_EPOCH,
        }
    }
}

impl EncodeOptions {
    /// Checks that the options are valid and do not contradict each other.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) that names the broken rule.
    pub fn validate(&self) -> Result<()> {
        if self.batch_bytes == 0 || self.batch_rows == Some(0) {
            return Err(Error::argument("batch_bytes and batch_rows must be 1 or more"));
        }
        if let Some(offset) = self.base_offset.filter(|offset| *offset < 0) {
            return Err(Error::argument(format!("the base offset {offset} is negative")));
        }
        self.builder(self.base_offset.unwrap_or(0), self.base_sequence).validate_all()
    }

    pub(super) fn builder(&self, base_offset: i64, base_sequence: i32) -> BatchBuilder {
        let mut builder = BatchBuilder::new()
            .magic(self.magic)
            .compression(self.compression)
            .base_offset(base_offset)
            .producer(self.producer_id, self.producer_epoch, base_sequence)
            .transactional(self.transactional)
            .partition_leader_epoch(self.partition_leader_epoch);
        if self.timestamp_type == TimestampType::LogAppendTime {
            builder = builder.log_append_time(self.log_append_time);
        }
        match self.level {
            Some(level) => builder.level(level),
            None => builder,
        }
    }
}
