//! [`Reader`]: the primitive types of Kafka's messages, with the messages of Kafka's `ByteBufferAccessor`.

use crate::internal::MessageError;
use crate::num::usize_of;
use crate::wire::varint::{VarintFault, read_unsigned_varint};

/// Reads from the front of some bytes.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
    len: usize,
    /// Number of values that may still be read.
    values_left: usize,
}

/// Number of values that a message may always have, and number of bytes per value beyond them. An empty text takes one
/// byte, but some 50 bytes of memory.
const FREE_VALUES: usize = 1 << 20;
const BYTES_PER_VALUE: usize = 4;

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        let values_left = FREE_VALUES.saturating_add(bytes.len() / BYTES_PER_VALUE);
        Self { rest: bytes, len: bytes.len(), values_left }
    }

    /// Counts a value that takes memory.
    ///
    /// # Errors
    /// Too many values for the bytes.
    pub(crate) fn count_value(&mut self) -> Result<(), MessageError> {
        match self.values_left.checked_sub(1) {
            Some(left) => {
                self.values_left = left;
                Ok(())
            }
            None => Err(self.fault(format!("too many fields for {} bytes", self.len))),
        }
    }

    pub(crate) fn remaining(&self) -> usize {
        self.rest.len()
    }

    fn position(&self) -> usize {
        self.len.saturating_sub(self.rest.len())
    }

    #[cold]
    pub(crate) fn fault(&self, reason: impl Into<String>) -> MessageError {
        MessageError::Corrupt { position: self.position(), reason: reason.into() }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], MessageError> {
        match self.rest.split_first_chunk::<N>() {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(*head)
            }
            None => Err(MessageError::Truncated { position: self.position() }),
        }
    }

    pub(crate) fn i8(&mut self) -> Result<i8, MessageError> {
        self.array().map(i8::from_be_bytes)
    }

    pub(crate) fn i16(&mut self) -> Result<i16, MessageError> {
        self.array().map(i16::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, MessageError> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn i32(&mut self) -> Result<i32, MessageError> {
        self.array().map(i32::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, MessageError> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn i64(&mut self) -> Result<i64, MessageError> {
        self.array().map(i64::from_be_bytes)
    }

    pub(crate) fn f64(&mut self) -> Result<f64, MessageError> {
        self.array().map(f64::from_be_bytes)
    }

    pub(crate) fn uvarint(&mut self) -> Result<u32, MessageError> {
        let position = self.position();
        read_unsigned_varint(&mut self.rest).map_err(|fault| match fault {
            VarintFault::Truncated => MessageError::Truncated { position },
            VarintFault::TooLong => self.too_long(),
        })
    }

    /// Kafka's message has the value of the first five bytes.
    #[cold]
    fn too_long(&self) -> MessageError {
        let bytes = self.rest.iter().take(5).zip([0_u32, 7, 14, 21, 28]);
        let value = bytes.fold(0, |value, (byte, shift)| value | u32::from(byte & 0x7f).wrapping_shl(shift));
        self.fault(format!(
            "Varint is too long, the most significant bit in the 5th byte is set, converted value: {value:x}"
        ))
    }

    /// As many bytes as a length in the input; Java cannot allocate a negative number of them.
    pub(crate) fn bytes(&mut self, len: i32) -> Result<&'a [u8], MessageError> {
        let Ok(wanted) = u32::try_from(len) else { return Err(self.fault(len.to_string())) };
        match self.rest.split_at_checked(usize_of(wanted)) {
            Some((head, rest)) => {
                self.rest = rest;
                Ok(head)
            }
            None => Err(self.fault(format!(
                "Error reading byte array of {len} byte(s): only {} byte(s) available",
                self.remaining()
            ))),
        }
    }

    /// The length of a compact string, compact bytes or a compact array; negative for null.
    pub(crate) fn compact_len(&mut self) -> Result<i32, MessageError> {
        self.uvarint().map(|len| len.cast_signed().wrapping_sub(1))
    }
}
