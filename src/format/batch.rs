//! [`Batch`]: one type over v2 record batches, v0/v1 messages and v0/v1 compressed message sets.

use crate::compression::{Compression, Payload, Scratch};
use crate::error::{Error, ErrorKind, Result};
use crate::format::attributes::{Attributes, TimestampType};
use crate::format::crc;
use crate::format::header::{
    BATCH_HEADER_LEN, CRC_POSITION, CRC_START, Header, LEGACY_CRC_POSITION, LEGACY_CRC_START, NO_SEQUENCE,
};
use crate::format::legacy;
use crate::format::records::Records;
use crate::limits::Limits;
use crate::num::u64_of;

/// A batch, borrowed from the bytes it was found in. Only its header has been read.
///
/// For magic 0 and 1 every uncompressed message is a batch of one record, and a compressed message set one batch; fields
/// that these formats lack hold Kafka's value for "none" (−1).
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    bytes: &'a [u8],
    position: u64,
    header: Header,
}

impl<'a> Batch<'a> {
    /// `bytes` is exactly one frame whose size and magic were checked.
    #[inline]
    pub(crate) fn parse(bytes: &'a [u8], position: u64) -> Result<Self> {
        let magic = bytes.get(crate::format::header::MAGIC_POSITION).copied().unwrap_or(0);
        let header =
            if magic == 2 { Header::parse_v2(bytes, position)? } else { Header::parse_legacy(bytes, position)? };
        Ok(Self { bytes, position, header })
    }

    pub(crate) fn header(&self) -> &Header {
        &self.header
    }

    /// All bytes of the batch, its log overhead included.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Where the batch begins in the input, in bytes.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Bytes of the batch, its 12 bytes of log overhead included.
    #[must_use]
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// Message format: 0, 1 or 2.
    #[must_use]
    pub fn magic(&self) -> u8 {
        self.header.magic
    }

    /// Offset of the batch's first record as it was when the batch was written; compaction may have removed that record.
    ///
    /// `None` for compressed sets of magic 0 and 1, which tell only when decompressed: see [`Batch::first_offset`].
    #[must_use]
    pub fn base_offset(&self) -> Option<i64> {
        if self.is_legacy_wrapper() { None } else { Some(self.header.base_offset) }
    }

    /// The base offset of any batch, decompressing where that is needed.
    ///
    /// # Errors
    /// Those of [`Batch::records`].
    pub fn first_offset(&self, scratch: &mut Scratch, limits: &Limits) -> Result<i64> {
        if !self.is_legacy_wrapper() {
            return Ok(self.header.base_offset);
        }
        match self.records(scratch, limits)?.next() {
            Some(record) => Ok(record?.offset()),
            None => Ok(self.header.base_offset),
        }
    }

    /// Offset of the batch's last record as it was when the batch was written.
    #[must_use]
    pub fn last_offset(&self) -> i64 {
        self.header.base_offset.wrapping_add(i64::from(self.header.last_offset_delta))
    }

    /// The offset after [`Batch::last_offset`].
    #[must_use]
    pub fn next_offset(&self) -> i64 {
        self.last_offset().wrapping_add(1)
    }

    /// Records declared in the header; `None` for compressed sets of magic 0 and 1, whose count is known only when
    /// decompressed.
    #[must_use]
    pub fn record_count(&self) -> Option<i32> {
        if self.is_legacy_wrapper() { None } else { Some(self.header.record_count) }
    }

    /// Leader epoch at the time of append, −1 for none.
    #[must_use]
    pub fn partition_leader_epoch(&self) -> i32 {
        self.header.partition_leader_epoch
    }

    /// The stored checksum.
    #[must_use]
    pub fn crc(&self) -> u32 {
        self.header.crc
    }

    /// The attributes as stored.
    #[must_use]
    pub fn attributes(&self) -> Attributes {
        self.header.attributes
    }

    /// The codec of the records.
    ///
    /// # Errors
    /// [`ErrorKind::UnsupportedCodec`] where the attributes name none.
    pub fn compression(&self) -> Result<Compression> {
        self.header
            .attributes
            .compression()
            .map_err(|error| error.at(self.attributes_position()).in_batch(self.header.base_offset))
    }

    fn attributes_position(&self) -> u64 {
        self.position.saturating_add(if self.magic() == 2 { 21 } else { 17 })
    }

    /// What the timestamps are; `None` in v0.
    #[must_use]
    pub fn timestamp_type(&self) -> Option<TimestampType> {
        self.header.attributes.timestamp_type()
    }

    /// The stored base timestamp in milliseconds since the epoch: a delete horizon where the attributes say so; in v1 the
    /// message's timestamp, in v0 −1.
    #[must_use]
    pub fn base_timestamp(&self) -> i64 {
        self.header.base_timestamp
    }

    /// Largest timestamp of the records in milliseconds since the epoch, −1 for none.
    #[must_use]
    pub fn max_timestamp(&self) -> i64 {
        self.header.max_timestamp
    }

    /// When compaction may drop the batch's tombstones or markers, in milliseconds since the epoch.
    #[must_use]
    pub fn delete_horizon_ms(&self) -> Option<i64> {
        self.header.attributes.has_delete_horizon().then_some(self.header.base_timestamp)
    }

    /// Producer id, −1 for none.
    #[must_use]
    pub fn producer_id(&self) -> i64 {
        self.header.producer_id
    }

    /// Producer epoch, −1 for none.
    #[must_use]
    pub fn producer_epoch(&self) -> i16 {
        self.header.producer_epoch
    }

    /// Sequence of the first record, −1 for none.
    #[must_use]
    pub fn base_sequence(&self) -> i32 {
        self.header.base_sequence
    }

    /// Sequence of the last record, −1 for none. After 2³¹ − 1 comes 0.
    #[must_use]
    pub fn last_sequence(&self) -> i32 {
        match self.header.base_sequence {
            NO_SEQUENCE => NO_SEQUENCE,
            base => increment_sequence(base, self.header.last_offset_delta),
        }
    }

    /// Whether the batch belongs to a transaction.
    #[must_use]
    pub fn is_transactional(&self) -> bool {
        self.header.attributes.is_transactional()
    }

    /// Whether the batch holds control records, which Kafka's consumers never show.
    #[must_use]
    pub fn is_control(&self) -> bool {
        self.header.attributes.is_control()
    }

    /// Whether this is a compressed set of magic 0 or 1.
    pub(crate) fn is_legacy_wrapper(&self) -> bool {
        self.header.magic < 2 && self.header.attributes.is_compressed()
    }

    /// Checks the batch's checksum: CRC-32C for v2, CRC-32 before. Messages inside a compressed set of magic 0 and 1 have
    /// their own: [`Record::verify_crc`](crate::Record::verify_crc).
    ///
    /// # Errors
    /// [`ErrorKind::Crc`].
    #[inline]
    pub fn verify_crc(&self) -> Result<()> {
        let computed = self.computed_crc();
        if computed == self.header.crc { Ok(()) } else { Err(self.crc_error(computed)) }
    }

    /// The checksum that the batch's bytes have.
    #[must_use]
    pub fn computed_crc(&self) -> u32 {
        let covered = |start: usize| self.bytes.get(start..).unwrap_or_default();
        if self.header.magic == 2 { crc::crc32c(covered(CRC_START)) } else { crc::crc32(covered(LEGACY_CRC_START)) }
    }

    #[cold]
    fn crc_error(&self, computed: u32) -> Error {
        let place = if self.header.magic == 2 { CRC_POSITION } else { LEGACY_CRC_POSITION };
        Error::new(ErrorKind::Crc { stored: self.header.crc, computed })
            .at(self.position.saturating_add(u64_of(place)))
            .in_batch(self.header.base_offset)
            .in_field("crc")
    }

    /// The bytes after the header as stored: records or compressed records in v2, the value of a message before. Empty where
    /// a v0 or v1 message has none.
    #[must_use]
    pub fn stored_records(&self) -> &'a [u8] {
        if self.header.magic == 2 {
            self.bytes.get(BATCH_HEADER_LEN..).unwrap_or_default()
        } else {
            legacy::Message::parse(self.message_bytes(), self.message_position())
                .ok()
                .and_then(|message| message.value)
                .unwrap_or_default()
        }
    }

    /// Iterates the records, decompressing into `scratch` where the batch is compressed. Uncompressed records borrow the
    /// input. The checksum is not looked at: see [`Batch::verify_crc`].
    ///
    /// # Errors
    /// A codec that is unknown or not built in, a negative record count, a limit, and what only compressed sets of magic 0
    /// and 1 can get wrong. A stream that fails in its middle gives the records before the fault first.
    #[inline]
    pub fn records<'s>(&self, scratch: &'s mut Scratch, limits: &Limits) -> Result<Records<'s>>
    where
        'a: 's,
    {
        let payload = self.payload(scratch, limits)?;
        Records::new(self, payload, limits)
    }

    /// The records' bytes, decompressed. Of an uncompressed v0 or v1 message: the message.
    #[inline]
    pub(crate) fn payload<'s>(&self, scratch: &'s mut Scratch, limits: &Limits) -> Result<Payload<'s>>
    where
        'a: 's,
    {
        if !self.header.attributes.is_compressed() {
            let start = if self.header.magic == 2 { BATCH_HEADER_LEN } else { crate::format::header::LOG_OVERHEAD };
            return Ok(Payload::borrowed(self.bytes.get(start..).unwrap_or_default()));
        }
        self.decompress(scratch, limits)
    }

    fn decompress<'s>(&self, scratch: &'s mut Scratch, limits: &Limits) -> Result<Payload<'s>>
    where
        'a: 's,
    {
        let compression = self.compression()?;
        if self.header.magic == 2 {
            if self.header.record_count <= 0 {
                return Ok(Payload::borrowed(&[])); // nothing will be read, so nothing is decompressed
            }
            return Ok(scratch.decompress(compression, self.header.magic, self.stored_records(), limits));
        }
        let base_offset = self.header.base_offset;
        if compression == Compression::Zstd {
            let kind = ErrorKind::CompressionBelowMagic { compression, magic: self.header.magic.cast_signed() };
            return Err(Error::new(kind).at(self.attributes_position()).in_batch(base_offset).in_field("attributes"));
        }
        let message = legacy::Message::parse(self.message_bytes(), self.message_position())
            .map_err(|error| error.in_batch(base_offset))?;
        let Some(value) = message.value else {
            return Err(Error::new(ErrorKind::InvalidWrapper("its value is null"))
                .at(self.position)
                .in_batch(base_offset)
                .in_field("value"));
        };
        Ok(scratch.decompress(compression, self.header.magic, value, limits))
    }

    /// A v0 or v1 message from its checksum on.
    fn message_bytes(&self) -> &'a [u8] {
        self.bytes.get(crate::format::header::LOG_OVERHEAD..).unwrap_or_default()
    }

    pub(crate) fn message_position(&self) -> u64 {
        self.position.saturating_add(u64_of(crate::format::header::LOG_OVERHEAD))
    }
}

/// Kafka's sequence arithmetic: after 2³¹ − 1 comes 0. Wraps as Java's `int` does for any input.
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
