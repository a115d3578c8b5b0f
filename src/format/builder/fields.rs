//! [`BatchFields`]: the header of a batch that is built again from its records.

use crate::error::{Error, Result};
use crate::format::attributes::{Attributes, TimestampType};
use crate::format::builder::BatchBuilder;

/// The fields of a batch's header that its records do not determine.
///
/// Fields that magic 0 and 1 do not have are ignored for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "text", derive(serde::Deserialize))]
pub struct BatchFields {
    /// Offset of the first record when the batch was written.
    pub base_offset: i64,
    /// Offset of the last record when the batch was written.
    pub last_offset: i64,
    /// Message format: 0, 1 or 2.
    pub magic: u8,
    /// The attributes as stored: codec, timestamp type and flags.
    pub attributes: u16,
    /// Leader epoch of the append, −1 for none.
    pub partition_leader_epoch: i32,
    /// The stored base timestamp in milliseconds since the epoch, or the delete horizon; −1 for none.
    pub base_timestamp: i64,
    /// Largest timestamp in milliseconds since the epoch, or the time of the append; −1 for none.
    pub max_timestamp: i64,
    /// Producer id, −1 for none.
    pub producer_id: i64,
    /// Producer epoch, −1 for none.
    pub producer_epoch: i16,
    /// Sequence of the first record, −1 for none.
    pub base_sequence: i32,
    /// Number of records that will be appended; `None` if it is unknown. A writer refuses another number of records.
    #[cfg_attr(feature = "text", serde(default))]
    pub record_count: Option<u32>,
}

impl BatchFields {
    fn stored_attributes(&self) -> Attributes {
        Attributes::new(self.attributes, self.magic)
    }

    /// The type of the timestamps, and the time of the append if there is one.
    pub(crate) fn timestamps(&self) -> (Option<TimestampType>, Option<i64>) {
        let timestamp_type = self.stored_attributes().timestamp_type();
        (timestamp_type, (timestamp_type == Some(TimestampType::LogAppendTime)).then_some(self.max_timestamp))
    }

    /// Checks that the offsets are those of a batch after `end_offset`.
    pub(crate) fn check_offsets(&self, end_offset: i64) -> Result<()> {
        let Self { base_offset, last_offset, .. } = *self;
        if base_offset < end_offset {
            let last = end_offset.saturating_sub(1);
            return Err(Error::argument(format!(
                "base offset {base_offset} is not above the offset before it, {last}"
            )));
        }
        let span = last_offset.checked_sub(base_offset);
        if last_offset == i64::MAX || span.is_none_or(|span| !(0..=i64::from(i32::MAX)).contains(&span)) {
            let message = format!("last offset {last_offset} does not fit a batch with the base offset {base_offset}");
            return Err(Error::argument(message));
        }
        Ok(())
    }
}

impl BatchBuilder {
    /// Creates a builder for a batch with these fields. Without compression and with the records that the batch had, it
    /// is the same byte for byte.
    ///
    /// # Errors
    /// Fields that contradict each other, as for [`BatchBuilder::validate`], and an unknown codec.
    pub(crate) fn with_fields(fields: &BatchFields) -> Result<Self> {
        let attributes = fields.stored_attributes();
        let compression = attributes.compression().map_err(|_| {
            Error::argument(format!(
                "attributes {} have the unknown codec {}",
                fields.attributes,
                attributes.codec_id()
            ))
        })?;
        let builder = Self {
            magic: fields.magic,
            compression,
            base_offset: fields.base_offset,
            timestamp_type: attributes.timestamp_type().unwrap_or(TimestampType::CreateTime),
            log_append_time: fields.max_timestamp,
            producer_id: fields.producer_id,
            producer_epoch: fields.producer_epoch,
            base_sequence: fields.base_sequence,
            transactional: attributes.is_transactional(),
            control: attributes.is_control(),
            partition_leader_epoch: fields.partition_leader_epoch,
            delete_horizon_ms: attributes.has_delete_horizon().then_some(fields.base_timestamp),
            // sets of magic 0 and 1 end with their last record
            forced_last_offset: Some(fields.last_offset).filter(|_| fields.magic == 2),
            base_timestamp: Some(fields.base_timestamp),
            max_timestamp: fields.max_timestamp,
            ..Self::default()
        };
        builder.validate_all()?;
        Ok(builder)
    }
}
