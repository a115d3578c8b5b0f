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

use crate::error::Result;
use crate::format::attributes::Attributes;
use crate::format::cursor::Cursor;

/// Bytes of offset and size before every batch or message.
pub(crate) const LOG_OVERHEAD: usize = 12;
/// Bytes that must be there to know the magic.
pub(crate) const HEADER_LEN_UP_TO_MAGIC: usize = 17;
/// Place of the magic in every format.
pub(crate) const MAGIC_POSITION: usize = 16;
/// Place of the checksum of v0 and v1, and where what it covers begins.
pub(crate) const LEGACY_CRC_POSITION: usize = 12;
pub(crate) const LEGACY_CRC_START: usize = 16;
/// Place of `partition_leader_epoch` in v2.
pub(crate) const PARTITION_LEADER_EPOCH_POSITION: usize = 12;
/// Place of the checksum of v2, and where what it covers begins.
pub(crate) const CRC_POSITION: usize = 17;
pub(crate) const CRC_START: usize = 21;
/// Place of `max_timestamp` in v2.
pub(crate) const MAX_TIMESTAMP_POSITION: usize = 35;
/// Bytes of a v2 batch before its records.
pub(crate) const BATCH_HEADER_LEN: usize = 61;
/// Size of the smallest v0 message without its log overhead, the least that framing accepts for every magic.
pub(crate) const MIN_LENGTH: i32 = 14;
/// Size of an empty v2 batch without its log overhead.
pub(crate) const MIN_LENGTH_V2: i32 = 49;

/// "No timestamp" of Kafka, also what v0 shows.
pub const NO_TIMESTAMP: i64 = -1;
/// "No producer" of Kafka.
pub const NO_PRODUCER_ID: i64 = -1;
/// "No producer epoch" of Kafka.
pub const NO_PRODUCER_EPOCH: i16 = -1;
/// "No sequence" of Kafka.
pub const NO_SEQUENCE: i32 = -1;
/// "No partition leader epoch" of Kafka.
pub const NO_PARTITION_LEADER_EPOCH: i32 = -1;

/// The fields of a batch header; what a magic lacks holds Kafka's value for "none".
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header {
    pub(crate) base_offset: i64,
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
    pub(crate) record_count: i32,
}

impl Header {
    /// Reads a v2 header.
    #[inline]
    pub(crate) fn parse_v2(bytes: &[u8], position: u64) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, position);
        let base_offset = cursor.i64("base_offset")?;
        cursor.i32("batch_length")?;
        let partition_leader_epoch = cursor.i32("partition_leader_epoch")?;
        let magic = cursor.u8("magic")?;
        Ok(Self {
            base_offset,
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
            record_count: cursor.i32("record_count")?,
        })
    }

    /// Reads what a v0 or v1 message has of a header.
    ///
    /// A v1 message may be shorter than its timestamp (framing only asks for 14 bytes); that field is then "none" here, and
    /// reading the record fails.
    #[inline]
    pub(crate) fn parse_legacy(bytes: &[u8], position: u64) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, position);
        let base_offset = cursor.i64("offset")?;
        cursor.i32("size")?;
        let crc = cursor.u32("crc")?;
        let magic = cursor.u8("magic")?;
        let attributes = Attributes::new(u16::from(cursor.u8("attributes")?), magic);
        let timestamp = if magic == 0 { NO_TIMESTAMP } else { cursor.i64("timestamp").unwrap_or(NO_TIMESTAMP) };
        Ok(Self {
            base_offset,
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
            record_count: 1,
        })
    }
}
