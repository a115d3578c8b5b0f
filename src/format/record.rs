//! Records of v2 and their headers.
//!
//! ```text
//! length           varint    bytes of the body that follows
//! attributes       i8        unused
//! timestamp_delta  varlong   to the batch's base_timestamp
//! offset_delta     varint    to the batch's base_offset
//! key              varint length (negative = null), bytes
//! value            varint length (negative = null), bytes
//! header_count     varint
//! headers          header_count × { key: varint length ≥ 0, UTF-8; value: varint length (negative = null), bytes }
//! ```
//!
//! The body must be consumed to its last byte. Source: <https://kafka.apache.org/documentation/#record>.

use std::borrow::Cow;
use std::iter::FusedIterator;

use crate::error::{Error, ErrorKind, Result};
use crate::format::attributes::TimestampType;
use crate::num::{u64_of, usize_of};
use crate::wire::crc;
use crate::wire::varint::{read_varint, read_varlong};

/// A header to write: key and value.
pub type NewHeader<'a> = (&'a [u8], Option<&'a [u8]>);

/// A record, borrowed from the input or from the [`Scratch`](crate::Scratch) its batch was decompressed into.
#[derive(Debug, Clone, Copy)]
pub struct Record<'s> {
    pub(crate) offset: i64,
    pub(crate) timestamp: i64,
    pub(crate) timestamp_type: Option<TimestampType>,
    pub(crate) key: Option<&'s [u8]>,
    pub(crate) value: Option<&'s [u8]>,
    pub(crate) sequence: i32,
    pub(crate) extra: RecordTail<'s>,
    pub(crate) place: RecordPosition,
}

/// The parts of a record that depend on the format.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RecordTail<'s> {
    /// v2: headers that are not parsed yet.
    Headers { bytes: &'s [u8], count: u32 },
    /// v0 and v1: the message, starting at its checksum.
    Message(&'s [u8]),
}

/// The position of a record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RecordPosition {
    pub(crate) position: u64,
    pub(crate) base_offset: i64,
    pub(crate) index: u32,
}

impl RecordPosition {
    /// Adds this position to an error found in a part of the record.
    #[cold]
    pub(crate) fn locate(self, error: Error) -> Error {
        error.at_byte(self.position).in_batch(self.base_offset).in_record(self.index)
    }

    #[cold]
    pub(crate) fn error(self, kind: ErrorKind, field: &'static str) -> Error {
        Error::new(kind).at(self.position).in_batch(self.base_offset).in_record(self.index).in_field(field)
    }
}

impl<'s> Record<'s> {
    /// Offset in the partition.
    #[inline]
    #[must_use]
    pub fn offset(&self) -> i64 {
        self.offset
    }

    /// Milliseconds since the epoch; −1 if there is none.
    #[inline]
    #[must_use]
    pub fn timestamp(&self) -> i64 {
        self.timestamp
    }

    /// The type of the timestamp, which is the batch's. `None` in v0.
    #[inline]
    #[must_use]
    pub fn timestamp_type(&self) -> Option<TimestampType> {
        self.timestamp_type
    }

    /// The key, or `None` for Kafka's null, which differs from an empty key.
    #[inline]
    #[must_use]
    pub fn key(&self) -> Option<&'s [u8]> {
        self.key
    }

    /// The value, or `None` for Kafka's null, which is a tombstone in compacted topics.
    #[inline]
    #[must_use]
    pub fn value(&self) -> Option<&'s [u8]> {
        self.value
    }

    /// Sequence from its producer, −1 for none.
    #[inline]
    #[must_use]
    pub fn sequence(&self) -> i32 {
        self.sequence
    }

    /// The headers in the order they were written, including duplicates. The iterator parses them lazily.
    #[inline]
    #[must_use]
    pub fn headers(&self) -> Headers<'s> {
        match self.extra {
            RecordTail::Headers { bytes, count } => Headers { rest: bytes, left: count, place: self.place },
            RecordTail::Message(_) => Headers { rest: &[], left: 0, place: self.place },
        }
    }

    /// Index of the record in its batch, counting from 0.
    #[inline]
    #[must_use]
    pub fn index(&self) -> u32 {
        self.place.index
    }

    /// Verifies the checksum of a v0 or v1 message, also inside a compressed set. A v2 record does not have its own
    /// checksum.
    ///
    /// # Errors
    /// [`ErrorKind::Crc`].
    pub fn verify_crc(&self) -> Result<()> {
        let RecordTail::Message(message) = self.extra else { return Ok(()) };
        let Some((stored, covered)) = message.split_first_chunk::<4>() else {
            return Err(self.place.error(ErrorKind::Truncated, "crc"));
        };
        let (stored, computed) = (u32::from_be_bytes(*stored), crc::crc32(covered));
        if stored == computed { Ok(()) } else { Err(self.place.error(ErrorKind::Crc { stored, computed }, "crc")) }
    }
}

/// A record header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header<'s> {
    key: &'s [u8],
    value: Option<&'s [u8]>,
}

impl<'s> Header<'s> {
    /// The key as stored. Kafka requires UTF-8 but does not enforce it.
    #[must_use]
    pub fn key(&self) -> &'s [u8] {
        self.key
    }

    /// The key as text.
    ///
    /// # Errors
    /// The key is not UTF-8.
    pub fn key_str(&self) -> std::result::Result<&'s str, std::str::Utf8Error> {
        std::str::from_utf8(self.key)
    }

    /// The key as Kafka's consumers return it, with U+FFFD for malformed UTF-8.
    #[must_use]
    pub fn key_lossy(&self) -> Cow<'s, str> {
        decode_as_java(self.key)
    }

    /// The value. Null and empty are different.
    #[must_use]
    pub fn value(&self) -> Option<&'s [u8]> {
        self.value
    }
}

/// Text as Java decodes it, with U+FFFD for each malformed sequence. Java treats an encoded surrogate as one such
/// sequence, `String::from_utf8_lossy` as three.
pub(crate) fn decode_as_java(bytes: &[u8]) -> Cow<'_, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    let mut text = String::with_capacity(bytes.len());
    let mut surrogate = 0; // bytes seen of an encoded surrogate
    for chunk in bytes.utf8_chunks() {
        if !chunk.valid().is_empty() {
            text.push_str(chunk.valid());
            surrogate = 0;
        }
        surrogate = match (surrogate, chunk.invalid()) {
            (1, [0xa0..=0xbf]) => 2,
            (2, [0x80..=0xbf]) | (_, []) => 0,
            (_, invalid) => {
                text.push(char::REPLACEMENT_CHARACTER);
                u8::from(*invalid == [0xed])
            }
        };
    }
    Cow::Owned(text)
}

/// Iterates over the headers of a record; see [`Record::headers`].
#[derive(Debug, Clone)]
pub struct Headers<'s> {
    rest: &'s [u8],
    left: u32,
    place: RecordPosition,
}

impl Headers<'_> {
    /// The number of headers left.
    #[must_use]
    pub fn len(&self) -> usize {
        usize_of(self.left)
    }

    /// Whether no header is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Parses the remaining headers and discards them.
    ///
    /// # Errors
    /// The errors of the iterator.
    pub fn verify(self) -> Result<()> {
        for header in self {
            header?;
        }
        Ok(())
    }
}

impl<'s> Headers<'s> {
    /// Parses the remaining headers into `out`, replacing its content.
    pub(crate) fn read_into(self, out: &mut Vec<NewHeader<'s>>) -> Result<()> {
        out.clear();
        for header in self {
            let header = header?;
            out.push((header.key(), header.value()));
        }
        Ok(())
    }

    fn parse(&mut self) -> Result<Header<'s>> {
        let place = self.place;
        let mut rest = self.rest;
        let key_len = read_varint(&mut rest).map_err(|fault| place.error(fault.into(), "header_key_length"))?;
        let Ok(key_len) = usize::try_from(key_len) else {
            let kind = ErrorKind::InvalidValue { value: key_len.into(), expected: "a header key of 0 bytes or more" };
            return Err(place.error(kind, "header_key_length"));
        };
        let (key, mut rest) =
            rest.split_at_checked(key_len).ok_or_else(|| place.error(ErrorKind::Truncated, "header_key"))?;
        let value = read_nullable(&mut rest).map_err(|kind| place.error(kind, "header_value"))?;
        let left = self.left.wrapping_sub(1);
        if left == 0 && !rest.is_empty() {
            return Err(place.error(ErrorKind::TrailingBytes { count: u64_of(rest.len()) }, "headers"));
        }
        (self.rest, self.left) = (rest, left);
        Ok(Header { key, value })
    }
}

impl<'s> Iterator for Headers<'s> {
    type Item = Result<Header<'s>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let header = self.parse();
        if header.is_err() {
            self.left = 0;
        }
        Some(header)
    }
}

impl FusedIterator for Headers<'_> {}

/// Bytes preceded by a varint length; any negative length is null, as in `Utils.readBytes` of Kafka.
#[inline]
fn read_nullable<'s>(bytes: &mut &'s [u8]) -> std::result::Result<Option<&'s [u8]>, ErrorKind> {
    let len = read_varint(bytes)?;
    let Ok(len) = usize::try_from(len) else { return Ok(None) };
    match bytes.split_at_checked(len) {
        Some((head, rest)) => {
            *bytes = rest;
            Ok(Some(head))
        }
        None => Err(ErrorKind::Truncated),
    }
}

/// The body of a v2 record with unresolved deltas and unparsed headers.
pub(crate) struct Body<'s> {
    pub(crate) timestamp_delta: i64,
    pub(crate) offset_delta: i32,
    pub(crate) key: Option<&'s [u8]>,
    pub(crate) value: Option<&'s [u8]>,
    pub(crate) header_count: u32,
    pub(crate) headers: &'s [u8],
}

/// An error in a body: its kind, its field, and how many bytes of the body were left there.
pub(crate) struct BodyFault {
    pub(crate) kind: ErrorKind,
    pub(crate) field: &'static str,
    pub(crate) left: usize,
}

/// Parses the bytes after a record's length.
#[inline]
pub(crate) fn parse_body(bytes: &[u8]) -> std::result::Result<Body<'_>, Box<BodyFault>> {
    let mut rest = bytes;
    let Some((_attributes, after)) = rest.split_first() else {
        return Err(fault(ErrorKind::Truncated, "attributes", rest));
    };
    rest = after;
    let timestamp_delta = match read_varlong(&mut rest) {
        Ok(delta) => delta,
        Err(why) => return Err(fault(why.into(), "timestamp_delta", rest)),
    };
    let offset_delta = match read_varint(&mut rest) {
        Ok(delta) => delta,
        Err(why) => return Err(fault(why.into(), "offset_delta", rest)),
    };
    let key = match read_nullable(&mut rest) {
        Ok(key) => key,
        Err(kind) => return Err(fault(kind, "key", rest)),
    };
    let value = match read_nullable(&mut rest) {
        Ok(value) => value,
        Err(kind) => return Err(fault(kind, "value", rest)),
    };
    let header_count = match read_varint(&mut rest) {
        Ok(count) => count,
        Err(why) => return Err(fault(why.into(), "header_count", rest)),
    };
    match u32::try_from(header_count) {
        Ok(0) if rest.is_empty() => {
            Ok(Body { timestamp_delta, offset_delta, key, value, header_count: 0, headers: rest })
        }
        Ok(0) => Err(fault(ErrorKind::TrailingBytes { count: u64_of(rest.len()) }, "length", rest)),
        // a header takes at least two bytes, so a count beyond the remaining bytes is corrupt
        Ok(count) if usize_of(count) <= rest.len() => {
            Ok(Body { timestamp_delta, offset_delta, key, value, header_count: count, headers: rest })
        }
        _ => {
            let kind = ErrorKind::InvalidValue {
                value: header_count.into(),
                expected: "as many headers as the record's bytes can hold",
            };
            Err(fault(kind, "header_count", rest))
        }
    }
}

#[cold]
#[inline(never)]
#[expect(clippy::unnecessary_box_returns, reason = "a pointer keeps the result small on success")]
fn fault(kind: ErrorKind, field: &'static str, rest: &[u8]) -> Box<BodyFault> {
    Box::new(BodyFault { kind, field, left: rest.len() })
}
