//! The header of a batch, in wire order.
//!
//! ```text
//! v2, 61 bytes                                   v0 and v1, 26 and 34 bytes with both lengths
//!   0  base_offset             i64                 0  offset        i64
//!   8  batch_length            i32                 8  size          i32
//!  12  partition_leader_epoch  i32                12  crc           u32   CRC-32 of 16..
//!  16  magic                   i8                 16  magic         i8
//!  17  crc                     u32  of 21..       17  attributes    i8
//!  21  attributes              i16                18  timestamp     i64   v1 only
//!  23  last_offset_delta       i32                26  key           i32 length, bytes     (v0: 18)
//!  27  base_timestamp          i64                ..  value         i32 length, bytes
//!  35  max_timestamp           i64
//!  43  producer_id             i64
//!  51  producer_epoch          i16
//!  53  base_sequence           i32
//!  57  record_count            i32
//!  61  records
//! ```
//!
//! Source: <https://kafka.apache.org/documentation/#messageformat>, `DefaultRecordBatch` and `LegacyRecord` of Kafka.

use crate::compression::Compression;
use crate::error::Result;
use crate::format::attributes::{Attributes, TimestampType};
use crate::format::cursor::Cursor;
use crate::num::u64_of;

/// Bytes of offset and size at the start of every batch or message.
pub(crate) const LOG_OVERHEAD: usize = 12;
/// Bytes from the start of a batch up to and including the magic.
pub(crate) const HEADER_LEN_UP_TO_MAGIC: usize = 17;
/// Position of the batch length, the message size in v0 and v1.
pub(crate) const BATCH_LENGTH_POSITION: usize = 8;
/// Position of the magic in every format.
pub(crate) const MAGIC_POSITION: usize = 16;
/// Positions of the v0 and v1 checksum and of the first byte that it covers.
pub(crate) const LEGACY_CRC_POSITION: usize = 12;
pub(crate) const LEGACY_CRC_START: usize = 16;
/// Position of `partition_leader_epoch` in v2.
pub(crate) const PARTITION_LEADER_EPOCH_POSITION: usize = 12;
/// Positions of the v2 checksum and of the first byte that it covers.
pub(crate) const CRC_POSITION: usize = 17;
pub(crate) const CRC_START: usize = 21;
/// Position of `max_timestamp` in v2.
pub(crate) const MAX_TIMESTAMP_POSITION: usize = 35;
/// Position of the record count in v2.
pub(crate) const RECORD_COUNT_POSITION: usize = 57;
/// Bytes of a v2 batch before its records.
pub(crate) const BATCH_HEADER_LEN: usize = 61;
/// Size of the smallest v0 message without its log overhead: the minimum that framing accepts for every magic.
pub(crate) const MIN_LENGTH: i32 = 14;
/// Size of an empty v2 batch without its log overhead.
pub(crate) const MIN_LENGTH_V2: i32 = 49;

/// Splits a batch or message into its offset, its size and the bytes after them.
#[inline]
pub(crate) fn split_log_overhead(bytes: &[u8]) -> Option<(i64, i32, &[u8])> {
    let (offset, rest) = bytes.split_first_chunk()?;
    let (size, rest) = rest.split_first_chunk()?;
    Some((i64::from_be_bytes(*offset), i32::from_be_bytes(*size), rest))
}

/// Kafka's "no timestamp", also used for v0.
pub const NO_TIMESTAMP: i64 = -1;
/// Kafka's "no producer".
pub const NO_PRODUCER_ID: i64 = -1;
/// Kafka's "no producer epoch".
pub const NO_PRODUCER_EPOCH: i16 = -1;
/// Kafka's "no sequence".
pub const NO_SEQUENCE: i32 = -1;
/// Kafka's "no partition leader epoch".
pub const NO_PARTITION_LEADER_EPOCH: i32 = -1;

/// The header of a batch and its position, without its bytes. A [`Batch`](crate::Batch) derefs to it.
///
/// For magic 0 and 1, every uncompressed message is a batch of one record, and a compressed message set is one batch.
/// Fields that these formats lack hold Kafka's value for "none" (−1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    pub(crate) stored_base_offset: i64,
    pub(crate) partition_leader_epoch: i32,
    pub(crate) magic: u8,
    pub(crate) crc: u32,
    pub(crate) attributes: Attributes,
    pub(crate) last_offset_delta: i32,
    pub(crate) base_timestamp: i64,
    pub(crate) max_timestamp: i64,
    pub(crate) producer_id: i64,
    pub(crate) producer_epoch: i16,
    pub(crate) base_sequence: i32,
    pub(crate) stored_record_count: i32,
    pub(crate) position: u64,
    pub(crate) size: usize,
}

impl BatchHeader {
    /// `bytes` begins with a frame of `size` bytes whose size and magic were checked, and contains at least its header.
    #[inline]
    pub(crate) fn parse(bytes: &[u8], position: u64, size: usize) -> Result<Self> {
        if bytes.get(MAGIC_POSITION) == Some(&2) {
            Self::parse_v2(bytes, position, size)
        } else {
            Self::parse_legacy(bytes, position, size)
        }
    }

    /// Parses a v2 header.
    #[inline]
    fn parse_v2(bytes: &[u8], position: u64, size: usize) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, position);
        let base_offset = cursor.i64("base_offset")?;
        cursor.i32("batch_length")?;
        let partition_leader_epoch = cursor.i32("partition_leader_epoch")?;
        let magic = cursor.u8("magic")?;
        Ok(Self {
            stored_base_offset: base_offset,
            partition_leader_epoch,
            magic,
            crc: cursor.u32("crc")?,
            attributes: Attributes::new(cursor.u16("attributes")?, magic),
            last_offset_delta: cursor.i32("last_offset_delta")?,
            base_timestamp: cursor.i64("base_timestamp")?,
            max_timestamp: cursor.i64("max_timestamp")?,
            producer_id: cursor.i64("producer_id")?,
            producer_epoch: cursor.i16("producer_epoch")?,
            base_sequence: cursor.i32("base_sequence")?,
            stored_record_count: cursor.i32("record_count")?,
            position,
            size,
        })
    }

    /// Parses the header fields of a v0 or v1 message.
    ///
    /// A v1 message may be too short for its timestamp, because framing requires only 14 bytes. The timestamp is then
    /// "none" here, and reading the record fails.
    #[inline]
    fn parse_legacy(bytes: &[u8], position: u64, size: usize) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, position);
        let base_offset = cursor.i64("offset")?;
        cursor.i32("size")?;
        let crc = cursor.u32("crc")?;
        let magic = cursor.u8("magic")?;
        let attributes = Attributes::new(u16::from(cursor.u8("attributes")?), magic);
        let timestamp = if magic == 0 { NO_TIMESTAMP } else { cursor.i64("timestamp").unwrap_or(NO_TIMESTAMP) };
        Ok(Self {
            stored_base_offset: base_offset,
            partition_leader_epoch: NO_PARTITION_LEADER_EPOCH,
            magic,
            crc,
            attributes,
            last_offset_delta: 0,
            base_timestamp: timestamp,
            max_timestamp: timestamp,
            producer_id: NO_PRODUCER_ID,
            producer_epoch: NO_PRODUCER_EPOCH,
            base_sequence: NO_SEQUENCE,
            stored_record_count: 1,
            position,
            size,
        })
    }
}

/// The fields of the header.
impl BatchHeader {
    /// Position of the batch in the input, in bytes.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Bytes of the batch, including its 12 bytes of log overhead.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Position after the batch in the input, in bytes.
    pub(crate) fn end(&self) -> u64 {
        self.position.saturating_add(u64_of(self.size))
    }

    /// Message format: 0, 1 or 2.
    #[must_use]
    pub fn magic(&self) -> u8 {
        self.magic
    }

    /// Offset of the batch's first record when the batch was written. Compaction may have removed that record.
    ///
    /// `None` for compressed sets of magic 0 and 1, for which it requires decompression: see
    /// [`Batch::first_offset`](crate::Batch::first_offset).
    #[must_use]
    pub fn base_offset(&self) -> Option<i64> {
        if self.is_legacy_wrapper() { None } else { Some(self.stored_base_offset) }
    }

    /// Offset of the batch's last record when the batch was written.
    #[must_use]
    pub fn last_offset(&self) -> i64 {
        self.stored_base_offset.wrapping_add(i64::from(self.last_offset_delta))
    }

    /// The offset after [`BatchHeader::last_offset`].
    #[must_use]
    pub fn next_offset(&self) -> i64 {
        self.last_offset().wrapping_add(1)
    }

    /// Whether no offset is between `before` and this batch. Unknown, so `false`, if the header has no base offset.
    pub(crate) fn continues(&self, before: &Self) -> bool {
        self.base_offset() == Some(before.next_offset())
    }

    /// Record count as declared in the header; `None` for compressed sets of magic 0 and 1, whose headers do not have
    /// it.
    #[must_use]
    pub fn record_count(&self) -> Option<i32> {
        if self.is_legacy_wrapper() { None } else { Some(self.stored_record_count) }
    }

    /// Leader epoch at the time of append, −1 for none.
    #[must_use]
    pub fn partition_leader_epoch(&self) -> i32 {
        self.partition_leader_epoch
    }

    /// The stored checksum.
    #[must_use]
    pub fn crc(&self) -> u32 {
        self.crc
    }

    /// The attributes as stored.
    #[must_use]
    pub fn attributes(&self) -> Attributes {
        self.attributes
    }

    /// The codec of the records.
    ///
    /// # Errors
    /// [`ErrorKind::UnsupportedCodec`](crate::ErrorKind::UnsupportedCodec) if the attributes do not name a codec.
    pub fn compression(&self) -> Result<Compression> {
        self.attributes
            .compression()
            .map_err(|error| error.at(self.attributes_position()).in_batch(self.stored_base_offset))
    }

    pub(crate) fn attributes_position(&self) -> u64 {
        self.position.saturating_add(if self.magic() == 2 { 21 } else { 17 })
    }

    /// The type of the timestamps; `None` in v0.
    #[must_use]
    pub fn timestamp_type(&self) -> Option<TimestampType> {
        self.attributes.timestamp_type()
    }

    /// The stored base timestamp in milliseconds since the epoch: the delete horizon if the attributes have that flag;
    /// in v1 the message's timestamp, in v0 −1.
    #[must_use]
    pub fn base_timestamp(&self) -> i64 {
        self.base_timestamp
    }

    /// Largest timestamp of the records in milliseconds since the epoch, −1 for none.
    #[must_use]
    pub fn max_timestamp(&self) -> i64 {
        self.max_timestamp
    }

    /// When compaction may remove the batch's tombstones or markers, in milliseconds since the epoch.
    #[must_use]
    pub fn delete_horizon_ms(&self) -> Option<i64> {
        self.attributes.has_delete_horizon().then_some(self.base_timestamp)
    }

    /// Producer id, −1 for none.
    #[must_use]
    pub fn producer_id(&self) -> i64 {
        self.producer_id
    }

    /// Producer epoch, −1 for none.
    #[must_use]
    pub fn producer_epoch(&self) -> i16 {
        self.producer_epoch
    }

    /// Sequence of the first record, −1 for none.
    #[must_use]
    pub fn base_sequence(&self) -> i32 {
        self.base_sequence
    }

    /// Sequence of the last record, −1 for none. Sequences wrap from 2³¹ − 1 to 0.
    #[must_use]
    pub fn last_sequence(&self) -> i32 {
        match self.base_sequence {
            NO_SEQUENCE => NO_SEQUENCE,
            base => increment_sequence(base, self.last_offset_delta),
        }
    }

    /// Whether the batch belongs to a transaction.
    #[must_use]
    pub fn is_transactional(&self) -> bool {
        self.attributes.is_transactional()
    }

    /// Whether the batch holds control records, which Kafka's consumers never return.
    #[must_use]
    pub fn is_control(&self) -> bool {
        self.attributes.is_control()
    }

    /// Whether this is a compressed set of magic 0 or 1.
    pub(crate) fn is_legacy_wrapper(&self) -> bool {
        self.magic < 2 && self.attributes.is_compressed()
    }
}

/// Kafka's sequence arithmetic: sequences wrap from 2³¹ − 1 to 0. Overflows like Java's `int` for other input.
pub(crate) fn increment_sequence(sequence: i32, increment: i32) -> i32 {
    if sequence > i32::MAX.wrapping_sub(increment) {
        return increment.wrapping_sub(i32::MAX.wrapping_sub(sequence)).wrapping_sub(1);
    }
    sequence.wrapping_add(increment)
}

#[cfg(test)]
mod tests {
    use super::increment_sequence;

    #[test]
    fn increment_sequence_wraps_to_zero() {
        assert_eq!(increment_sequence(i32::MAX, 1), 0);
        assert_eq!(increment_sequence(i32::MAX - 5, 10), 4);
        assert_eq!(increment_sequence(983, 22), 1005);
    }
}
