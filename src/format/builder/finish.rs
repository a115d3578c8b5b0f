//! The end of a batch: header, compression, length and checksum.

use crate::compression::{Compression, compress};
use crate::error::{Error, Result};
use crate::format::attributes::{Attributes, TimestampType};
use crate::format::builder::{BatchBuilder, too_large};
use crate::format::control::ControlRecord;
use crate::format::header::{BATCH_HEADER_LEN, CRC_START, LOG_OVERHEAD, NO_SEQUENCE, NO_TIMESTAMP};
use crate::format::legacy;
use crate::num::u64_of;
use crate::slices::Slices;
use crate::wire::crc;

impl BatchBuilder {
    /// Appends the batch to `out`. Like Kafka, appends nothing if the batch has no records.
    ///
    /// # Errors
    /// Settings that contradict each other, or a batch of more than 2³¹ − 1 bytes. `out` is then unchanged.
    pub fn finish_into(self, out: &mut Vec<u8>) -> Result<()> {
        self.validate_all()?;
        let Some(last_offset) = self.forced_last_offset.or(self.last_offset).filter(|_| self.count > 0) else {
            return Ok(());
        };
        let start = out.len();
        let result = match (self.magic, self.compression) {
            (2, _) => self.write_batch(last_offset, out),
            (_, Compression::None) => {
                out.extend_from_slice(&self.records);
                Ok(())
            }
            _ => self.write_wrapper(last_offset, out),
        };
        if result.is_err() {
            out.truncate(start);
        }
        result
    }

    /// Appends the header of a batch that lost its records to compaction: magic 2, no codec, no delete horizon, its
    /// largest timestamp kept.
    ///
    /// # Errors
    /// Settings that contradict each other, or a last offset that is too far from the base offset. `out` is then
    /// unchanged.
    pub(crate) fn finish_empty_into(mut self, last_offset: i64, max_timestamp: i64, out: &mut Vec<u8>) -> Result<()> {
        (self.magic, self.compression, self.level) = (2, Compression::None, None);
        (self.delete_horizon_ms, self.base_timestamp, self.count) = (None, None, 0);
        (self.log_append_time, self.max_timestamp) = (max_timestamp, max_timestamp);
        self.records.clear();
        self.validate()?;
        self.write_batch(last_offset, out)
    }

    /// Appends the header of a batch whose records are all gone, if it is of magic 2; older formats have no such batch.
    ///
    /// # Errors
    /// The errors of [`BatchBuilder::finish_empty_into`].
    pub(crate) fn finish_without_records_into(self, last_offset: i64, out: &mut Vec<u8>) -> Result<()> {
        let max_timestamp = self.max_timestamp;
        if self.magic < 2 { Ok(()) } else { self.finish_empty_into(last_offset, max_timestamp, out) }
    }

    fn write_batch(&self, last_offset: i64, out: &mut Vec<u8>) -> Result<()> {
        let last_offset_delta =
            last_offset
                .checked_sub(self.base_offset)
                .and_then(|delta| i32::try_from(delta).ok())
                .ok_or_else(|| Error::argument(format!("last offset {last_offset} is too far from the base offset")))?;
        let start = out.len();
        out.reserve(self.estimated_size());
        self.write_header(last_offset_delta, out);
        let records = start.saturating_add(BATCH_HEADER_LEN);
        compress(self.compression, self.level, self.magic, &self.records, out)?;
        debug_assert!(out.len() >= records, "the header was written");
        let length = out.len().saturating_sub(start).saturating_sub(LOG_OVERHEAD);
        let length = i32::try_from(length).map_err(|_| too_large())?;
        let batch = out.part_mut(start..);
        let crc = crc::crc32c(batch.part(CRC_START..));
        put(batch, 8, &length.to_be_bytes());
        put(batch, 17, &crc.to_be_bytes());
        Ok(())
    }

    /// Writes the 61 bytes of the header. Length and checksum are filled in afterwards.
    fn write_header(&self, last_offset_delta: i32, out: &mut Vec<u8>) {
        let max_timestamp = match self.timestamp_type {
            TimestampType::LogAppendTime => self.log_append_time,
            TimestampType::CreateTime => self.max_timestamp,
        };
        out.extend_from_slice(&self.base_offset.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.partition_leader_epoch.to_be_bytes());
        out.push(self.magic);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.attributes(self.compression).bits().to_be_bytes());
        out.extend_from_slice(&last_offset_delta.to_be_bytes());
        out.extend_from_slice(&self.base_timestamp.unwrap_or(NO_TIMESTAMP).to_be_bytes());
        out.extend_from_slice(&max_timestamp.to_be_bytes());
        out.extend_from_slice(&self.producer_id.to_be_bytes());
        out.extend_from_slice(&self.producer_epoch.to_be_bytes());
        out.extend_from_slice(&self.base_sequence.to_be_bytes());
        out.extend_from_slice(&self.count.to_be_bytes());
    }

    fn write_wrapper(&self, last_offset: i64, out: &mut Vec<u8>) -> Result<()> {
        let mut value = Vec::new();
        compress(self.compression, self.level, self.magic, &self.records, &mut value)?;
        let timestamp = match self.timestamp_type {
            TimestampType::LogAppendTime => self.log_append_time,
            TimestampType::CreateTime => self.max_timestamp,
        };
        let attributes = self.attributes(self.compression);
        write_message(out, self.magic, last_offset, timestamp, attributes, None, Some(&value))
    }
}

/// A batch with one transaction marker, as a transaction coordinator writes it: 78 bytes.
///
/// `timestamp` is in milliseconds since the epoch.
///
/// # Errors
/// A record that is neither `Abort` nor `Commit`, or a negative producer id or epoch.
///
/// ```
/// # fn main() -> kbat::Result<()> {
/// let marker = kbat::ControlRecord::Commit { coordinator_epoch: 347 };
/// let bytes = kbat::format::end_transaction_marker(983, 1_700_000_000_000, 29, 73, 13, &marker)?;
/// assert_eq!(bytes.len(), 78);
/// # Ok(()) }
/// ```
pub fn end_transaction_marker(
    base_offset: i64,
    timestamp: i64,
    partition_leader_epoch: i32,
    producer_id: i64,
    producer_epoch: i16,
    marker: &ControlRecord,
) -> Result<Vec<u8>> {
    if !matches!(marker, ControlRecord::Abort { .. } | ControlRecord::Commit { .. }) {
        return Err(Error::argument(format!("{marker} is not a transaction marker: use Abort or Commit")));
    }
    if producer_id < 0 || producer_epoch < 0 {
        return Err(Error::argument("a transaction marker needs a producer id and epoch of 0 or more"));
    }
    let mut builder = BatchBuilder::new()
        .base_offset(base_offset)
        .partition_leader_epoch(partition_leader_epoch)
        .producer(producer_id, producer_epoch, NO_SEQUENCE)
        .transactional(true)
        .control(true);
    builder.append_control(timestamp, marker)?;
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes)?;
    Ok(bytes)
}

/// Appends a v0 or v1 message with its log overhead.
pub(super) fn write_message(
    out: &mut Vec<u8>,
    magic: u8,
    offset: i64,
    timestamp: i64,
    attributes: Attributes,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
) -> Result<()> {
    let len = legacy::message_len(magic, key, value);
    let size = i32::try_from(len.saturating_add(u64_of(LOG_OVERHEAD))).map_err(|_| too_large())?;
    let size = size.saturating_sub(12);
    out.extend_from_slice(&offset.to_be_bytes());
    out.extend_from_slice(&size.to_be_bytes());
    let crc_place = out.len();
    out.extend_from_slice(&[0; 4]);
    out.push(magic);
    out.push(crate::num::low_u8(u64::from(attributes.bits())));
    if magic == 1 {
        out.extend_from_slice(&timestamp.to_be_bytes());
    }
    for bytes in [key, value] {
        out.extend_from_slice(&legacy::stored_len(bytes).ok_or_else(too_large)?.to_be_bytes());
        out.extend_from_slice(bytes.unwrap_or_default());
    }
    let message = out.part_mut(crc_place..);
    let crc = crc::crc32(message.part(4..));
    put(message, 0, &crc.to_be_bytes());
    Ok(())
}

/// Overwrites existing bytes.
pub(crate) fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    let place = bytes.get_mut(at..).and_then(|rest| rest.get_mut(..field.len()));
    debug_assert!(place.is_some(), "{} bytes at {at}", field.len());
    if let Some(place) = place {
        place.copy_from_slice(field);
    }
}
