//! A builder with the settings of an existing batch.

use crate::compression::Compression;
use crate::format::attributes::TimestampType;
use crate::format::batch::Batch;
use crate::format::builder::BatchBuilder;

impl BatchBuilder {
    /// Settings for a batch of `magic` like `batch`, as far as `magic` supports them: timestamp type and log append
    /// time; between batches of magic 2 also producer, flags, leader epoch, delete horizon and last offset.
    ///
    /// As in Kafka, a delete horizon below 0 means that there is none.
    pub(crate) fn like(batch: &Batch<'_>, magic: u8, compression: Compression, base_offset: i64) -> Self {
        let mut builder = Self::new().magic(magic).compression(compression).base_offset(base_offset);
        if batch.timestamp_type() == Some(TimestampType::LogAppendTime) && magic > 0 {
            builder = builder.log_append_time(batch.max_timestamp());
        }
        if magic < 2 || batch.magic() < 2 {
            return builder;
        }
        builder = builder
            .producer(batch.producer_id(), batch.producer_epoch(), batch.base_sequence())
            .transactional(batch.is_transactional())
            .control(batch.is_control())
            .partition_leader_epoch(batch.partition_leader_epoch())
            .last_offset(batch.last_offset());
        match batch.delete_horizon_ms().filter(|&horizon| horizon >= 0) {
            Some(horizon) => builder.delete_horizon_ms(horizon),
            None => builder,
        }
    }
}
