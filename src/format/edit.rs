//! In-place edits that a broker makes on append: base offset, partition leader epoch, log append time.

use crate::compression::Scratch;
use crate::error::{Error, Result};
use crate::format::attributes::Attributes;
use crate::format::batch::Batch;
use crate::format::builder::put;
use crate::format::frame::batches;
use crate::format::header::{
    CRC_POSITION, CRC_START, LEGACY_CRC_POSITION, LEGACY_CRC_START, MAX_TIMESTAMP_POSITION,
    PARTITION_LEADER_EPOCH_POSITION,
};
use crate::limits::Limits;
use crate::slices::Slices;
use crate::wire::crc;

/// The batch at the start of `bytes`.
fn first(bytes: &[u8]) -> Result<Batch<'_>> {
    batches(bytes).next().unwrap_or_else(|| Err(Error::argument("these bytes do not begin with a whole batch")))
}

/// Sets the base offset of the batch at the start of `bytes`. Its checksum does not cover the offset.
///
/// For a compressed set of magic 1, sets the wrapper's offset such that its first message gets `base_offset`. As in Kafka,
/// a set whose messages count from above 0 has no room for lower offsets: a reader of it then fails, or uses those as
/// they are.
///
/// # Errors
/// Bytes that do not begin with a batch; a compressed set of magic 0, whose offsets are compressed.
pub fn set_base_offset(bytes: &mut [u8], base_offset: i64) -> Result<()> {
    let batch = first(bytes)?;
    let too_large = || {
        let message = format!("base offset {base_offset} is too large: the batch would end past 2^63 - 1");
        Error::argument(message)
    };
    let stored = match (batch.is_legacy_wrapper(), batch.magic()) {
        (false, 2) => {
            let delta = i64::from(batch.header().last_offset_delta);
            base_offset.checked_add(delta).map(|_| base_offset).ok_or_else(too_large)?
        }
        (false, _) => base_offset,
        (true, 0) => {
            let message = "the offsets of a compressed set of magic 0 are in its compressed bytes: build the set with the \
                           right offsets, and keep them";
            return Err(Error::argument(message));
        }
        (true, _) => {
            let (mut scratch, limits) = (Scratch::new(), Limits::default());
            let first = batch.first_offset(&mut scratch, &limits)?;
            let last = batch.records(&mut scratch, &limits)?.last().transpose()?.map_or(first, |last| last.offset());
            last.checked_sub(first).and_then(|delta| base_offset.checked_add(delta)).ok_or_else(too_large)?
        }
    };
    put(bytes, 0, &stored.to_be_bytes());
    Ok(())
}

/// Sets the partition leader epoch of the batch at the start of `bytes`. Its checksum does not cover the epoch.
///
/// # Errors
/// Bytes that do not begin with a batch; magic 0 and 1, which have no epoch.
pub fn set_partition_leader_epoch(bytes: &mut [u8], epoch: i32) -> Result<()> {
    let magic = first(bytes)?.magic();
    if magic < 2 {
        return Err(Error::argument(format!("magic {magic} has no partition leader epoch")));
    }
    put(bytes, PARTITION_LEADER_EPOCH_POSITION, &epoch.to_be_bytes());
    Ok(())
}

/// Sets the timestamp type of the batch at the start of `bytes` to `LogAppendTime` and the timestamp of its records to
/// `timestamp`, in milliseconds since the epoch. Updates the checksum; records and deltas are unchanged.
///
/// # Errors
/// Bytes that do not begin with a batch; magic 0, which has no timestamps; a negative timestamp.
pub fn set_log_append_time(bytes: &mut [u8], timestamp: i64) -> Result<()> {
    if timestamp < 0 {
        return Err(Error::argument(format!("log append time {timestamp} is negative")));
    }
    let batch = first(bytes)?;
    let (magic, size) = (batch.magic(), batch.size());
    let attributes = batch.attributes().with_log_append_time();
    let batch = bytes.part_mut(..size);
    match magic {
        0 => Err(Error::argument("magic 0 has no timestamps")),
        1 if size < 26 => Err(Error::argument("the message is too short for a timestamp")),
        _ => {
            put_timestamp(batch, attributes, timestamp);
            Ok(())
        }
    }
}

/// Overwrites the attributes and the timestamp of a v1 message or the largest timestamp of a v2 batch, and updates the
/// checksum.
pub(crate) fn put_timestamp(batch: &mut [u8], attributes: Attributes, timestamp: i64) {
    let bits = attributes.bits();
    if attributes.magic() < 2 {
        put(batch, 17, &[crate::num::low_u8(u64::from(bits))]);
        put(batch, 18, &timestamp.to_be_bytes());
        let crc = crc::crc32(batch.part(LEGACY_CRC_START..));
        put(batch, LEGACY_CRC_POSITION, &crc.to_be_bytes());
    } else {
        put(batch, CRC_START, &bits.to_be_bytes());
        put(batch, MAX_TIMESTAMP_POSITION, &timestamp.to_be_bytes());
        let crc = crc::crc32c(batch.part(CRC_START..));
        put(batch, CRC_POSITION, &crc.to_be_bytes());
    }
}
