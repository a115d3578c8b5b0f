//! [`Batch`]: one type over v2 record batches, v0/v1 messages and v0/v1 compressed message sets.

use std::ops::Deref;

use crate::compression::{Payload, Scratch};
use crate::error::{Error, ErrorKind, Result};
use crate::format::header::{
    BATCH_HEADER_LEN, BatchHeader, CRC_POSITION, CRC_START, LEGACY_CRC_POSITION, LEGACY_CRC_START,
};
use crate::format::legacy;
use crate::format::prefetch::{prefetch, prefetch_distance};
use crate::limits::Limits;
use crate::num::u64_of;
use crate::slices::Slices;
use crate::wire::crc;

/// A batch, borrowed from the bytes that contain it. Only its header has been parsed.
///
/// For magic 0 and 1, every uncompressed message is a batch of one record, and a compressed message set is one batch.
/// Fields that these formats lack hold Kafka's value for "none" (−1).
#[derive(Debug, Clone, Copy)]
pub struct Batch<'a> {
    bytes: &'a [u8],
    header: BatchHeader,
}

impl Deref for Batch<'_> {
    type Target = BatchHeader;

    fn deref(&self) -> &BatchHeader {
        &self.header
    }
}

impl<'a> Batch<'a> {
    /// `bytes` is exactly one frame whose size and magic were checked.
    #[inline]
    pub(crate) fn parse(bytes: &'a [u8], position: u64) -> Result<Self> {
        Ok(Self { bytes, header: BatchHeader::parse(bytes, position, bytes.len())? })
    }

    /// A batch from these bytes and the header parsed from them.
    pub(crate) fn of(bytes: &'a [u8], header: BatchHeader) -> Self {
        Self { bytes, header }
    }

    /// The same batch with the timestamps that its records store, instead of the time of an append.
    #[cfg(feature = "text")]
    pub(crate) fn with_create_times(&self) -> Self {
        let attributes = self.header.attributes.without_log_append_time();
        Self { bytes: self.bytes, header: BatchHeader { attributes, ..self.header } }
    }

    /// The header's fields, without the batch's bytes.
    #[must_use]
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// All bytes of the batch, including its log overhead.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Checks the batch's checksum: CRC-32C for v2, CRC-32 for v0 and v1. Messages inside a compressed set of magic 0
    /// and 1 have their own checksums: [`Record::verify_crc`](crate::Record::verify_crc).
    ///
    /// # Errors
    /// [`ErrorKind::Crc`].
    #[inline]
    pub fn verify_crc(&self) -> Result<()> {
        let computed = self.computed_crc();
        if computed == self.header.crc { Ok(()) } else { Err(self.crc_error(computed)) }
    }

    /// Computes the checksum of the batch's bytes.
    #[must_use]
    pub fn computed_crc(&self) -> u32 {
        let covered = |start: usize| self.bytes.part(start..);
        if self.header.magic == 2 { crc::crc32c(covered(CRC_START)) } else { crc::crc32(covered(LEGACY_CRC_START)) }
    }

    #[cold]
    fn crc_error(&self, computed: u32) -> Error {
        let place = if self.header.magic == 2 { CRC_POSITION } else { LEGACY_CRC_POSITION };
        Error::new(ErrorKind::Crc { stored: self.header.crc, computed })
            .at(self.position().saturating_add(u64_of(place)))
            .in_batch(self.header.stored_base_offset)
            .in_field("crc")
    }

    /// The bytes after the header as stored: records or compressed records in v2, the value of a message in v0 and v1.
    /// Empty if a v0 or v1 message has no value.
    #[must_use]
    pub fn stored_records(&self) -> &'a [u8] {
        if self.header.magic == 2 {
            self.bytes.part(BATCH_HEADER_LEN..)
        } else {
            legacy::LegacyMessage::parse(self.message_bytes(), self.message_position())
                .ok()
                .and_then(|message| message.value)
                .unwrap_or_default()
        }
    }

    /// The decompressed bytes of the records. For an uncompressed v0 or v1 message, the message.
    #[inline]
    pub(crate) fn payload<'s>(&self, scratch: &'s mut Scratch, limits: &Limits) -> Result<Payload<'s>>
    where
        'a: 's,
    {
        if !self.header.attributes.is_compressed() {
            let start = if self.header.magic == 2 { BATCH_HEADER_LEN } else { crate::format::header::LOG_OVERHEAD };
            return Ok(Payload::borrowed(self.bytes.part(start..)));
        }
        self.decompress(scratch, limits)
    }

    fn decompress<'s>(&self, scratch: &'s mut Scratch, limits: &Limits) -> Result<Payload<'s>>
    where
        'a: 's,
    {
        let compression = self.compression()?;
        prefetch(self.bytes, prefetch_distance(self.bytes.len(), true), self.bytes.len());
        if self.header.magic == 2 {
            if self.header.stored_record_count <= 0 {
                return Ok(Payload::borrowed(&[])); // no record will be read, so skip decompression
            }
            return Ok(scratch.decompress(compression, self.header.magic, self.stored_records(), limits));
        }
        let base_offset = self.header.stored_base_offset;
        if self.header.magic < compression.min_magic() {
            let kind = ErrorKind::CompressionBelowMagic { compression, magic: self.header.magic.cast_signed() };
            return Err(Error::new(kind).at(self.attributes_position()).in_batch(base_offset).in_field("attributes"));
        }
        let message = legacy::LegacyMessage::parse(self.message_bytes(), self.message_position())
            .map_err(|error| error.in_batch(base_offset))?;
        let Some(value) = message.value else {
            return Err(Error::new(ErrorKind::InvalidWrapper("its value is null"))
                .at(self.message_position().saturating_add(message.value_start()))
                .in_batch(base_offset)
                .in_field("value"));
        };
        Ok(scratch.decompress(compression, self.header.magic, value, limits))
    }

    /// A v0 or v1 message, starting at its checksum.
    fn message_bytes(&self) -> &'a [u8] {
        self.bytes.part(crate::format::header::LOG_OVERHEAD..)
    }

    /// Position of the records: of a v0 or v1 message, or of the compressed value of a wrapper.
    pub(crate) fn records_position(&self) -> u64 {
        match self.header.magic {
            2 => self.position().saturating_add(u64_of(BATCH_HEADER_LEN)),
            _ if self.is_legacy_wrapper() => self.value_position(),
            _ => self.message_position(),
        }
    }

    /// Position of the value of a v0 or v1 message.
    fn value_position(&self) -> u64 {
        let start = legacy::LegacyMessage::parse(self.message_bytes(), 0).map_or(0, |message| message.value_start());
        self.message_position().saturating_add(start)
    }

    fn message_position(&self) -> u64 {
        self.position().saturating_add(u64_of(crate::format::header::LOG_OVERHEAD))
    }
}
