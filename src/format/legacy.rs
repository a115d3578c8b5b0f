//! Messages of v0 and v1, and compressed sets of them.
//!
//! A compressed set is one message, the *wrapper*, whose value is a compressed concatenation of ordinary entries:
//!
//! | | v0 | v1 |
//! |---|---|---|
//! | inner offset | absolute | relative, from 0; compaction leaves gaps |
//! | wrapper offset | last inner offset | last inner offset, absolute; 0 if an old client wrote no offset at all |
//! | record offset | inner | wrapper − last inner + inner; inner if the wrapper has 0 |
//! | timestamp | none | the inner one, or the wrapper's if its type is `LogAppendTime` |
//! | timestamp type | none | the wrapper's |
//!
//! Follows `AbstractLegacyRecordBatch.DeepRecordsIterator` of Kafka. As in Kafka's consumer, inner checksums are
//! checked only on request ([`Record::verify_crc`]).

use crate::compression::Payload;
use crate::error::{Error, ErrorKind, Result};
use crate::format::attributes::{Attributes, TimestampType};
use crate::format::bookmark::{Bookmark, LegacySet, Wrapper};
use crate::format::cursor::Cursor;
use crate::format::header::{BatchHeader, MIN_LENGTH, NO_SEQUENCE, NO_TIMESTAMP, split_log_overhead};
use crate::format::record::{Record, RecordPosition, RecordTail};
use crate::num::u64_of;
use crate::slices::Slices;

/// The fields of a v0 or v1 message.
pub(crate) struct LegacyMessage<'a> {
    pub(crate) magic: u8,
    pub(crate) attributes: Attributes,
    pub(crate) timestamp: i64,
    pub(crate) key: Option<&'a [u8]>,
    pub(crate) value: Option<&'a [u8]>,
}

/// Bytes of the fields that every message has: those before the key and between key and value.
const FIXED_LEN: u64 = 14;

impl<'a> LegacyMessage<'a> {
    /// Position of the value in a message.
    pub(crate) fn value_start(&self) -> u64 {
        let timestamp_len = if self.magic == 0 { 0 } else { 8 };
        let key_len = self.key.map_or(0, |key| u64_of(key.len()));
        FIXED_LEN.saturating_add(timestamp_len).saturating_add(key_len)
    }

    /// Parses a message, starting at its checksum. The checksum covers bytes after the value, which have no meaning.
    #[inline]
    pub(crate) fn parse(bytes: &'a [u8], position: u64) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, position);
        cursor.u32("crc")?;
        let magic = cursor.u8("magic")?;
        let attributes = Attributes::new(u16::from(cursor.u8("attributes")?), magic);
        // Kafka treats every magic other than 0 as 1 here, because nothing checks the magic inside a set
        let timestamp = if magic == 0 { NO_TIMESTAMP } else { cursor.i64("timestamp")? };
        let key = cursor.nullable_bytes("key")?;
        let value = cursor.nullable_bytes("value")?;
        Ok(Self { magic, attributes, timestamp, key, value })
    }
}

/// Iterates over a message, or over the messages of a compressed set.
#[derive(Debug)]
pub(crate) struct LegacyRecords<'s> {
    rest: &'s [u8],
    len: usize,
    index: u32,
    wrapper: Option<Wrapper>,
    base_offset: i64,
    /// Position of the message in the input; for a wrapper, of its compressed value.
    position: u64,
    timestamp_type: Option<TimestampType>,
}

impl<'s> LegacyRecords<'s> {
    /// The state before the wrapper is decoded. `position` is that of the message in the input; for a wrapper, of its
    /// compressed value.
    #[inline]
    fn unopened(header: &BatchHeader, position: u64, payload: &Payload<'s>) -> Self {
        Self {
            rest: payload.bytes,
            len: payload.bytes.len(),
            index: 0,
            wrapper: None,
            base_offset: header.stored_base_offset,
            position,
            timestamp_type: header.timestamp_type(),
        }
    }

    #[inline]
    pub(crate) fn new(header: &BatchHeader, position: u64, payload: Payload<'s>) -> Result<Self> {
        let mut records = Self::unopened(header, position, &payload);
        if header.is_legacy_wrapper() {
            let fault = payload.fault;
            let last_inner = records.find_last_inner()?;
            if let Some(fault) = fault {
                return Err(records.place().error((*fault).into(), "value"));
            }
            records.wrapper = Some(records.unwrap_offsets(header, last_inner)?);
        }
        Ok(records)
    }

    /// Finds the last inner entry and drops an incomplete one after it, which Kafka ignores.
    fn find_last_inner(&mut self) -> Result<Option<i64>> {
        let mut rest = self.rest;
        let mut last = None;
        while let Some((offset, size, after)) = split_log_overhead(rest) {
            // Java cannot allocate arrays of the two largest sizes: its consumers fail at them, while any other size
            // ends the set
            if !(MIN_LENGTH..=i32::MAX - 2).contains(&size) {
                return Err(self.place().error(ErrorKind::BatchLength { length: size, minimum: MIN_LENGTH }, "size"));
            }
            let Some((_, next)) = usize::try_from(size).ok().and_then(|size| after.split_at_checked(size)) else {
                break;
            };
            last = Some(offset);
            rest = next;
        }
        let whole = self.rest.len().saturating_sub(rest.len());
        self.rest = self.rest.part(..whole);
        self.len = whole;
        Ok(last)
    }

    fn unwrap_offsets(&self, header: &BatchHeader, last_inner: Option<i64>) -> Result<Wrapper> {
        let Some(last_inner) = last_inner else {
            return Err(self.wrapper_error("it contains no messages", "value"));
        };
        let offset = self.base_offset;
        let shift = match (header.magic(), offset) {
            (0, _) | (_, 0) => 0,
            _ if offset < last_inner => {
                let error = self.wrapper_error("its offset is less than its last message's relative offset", "offset");
                return Err(error.at_byte(header.position()));
            }
            _ => offset.wrapping_sub(last_inner),
        };
        let log_append = self.timestamp_type == Some(TimestampType::LogAppendTime);
        Ok(Wrapper { shift, log_append_time: log_append.then_some(header.max_timestamp()) })
    }

    #[cold]
    fn wrapper_error(&self, what: &'static str, field: &'static str) -> Error {
        Error::new(ErrorKind::InvalidWrapper(what)).at(self.position).in_batch(self.base_offset).in_field(field)
    }

    #[cold]
    fn message_error(&self, error: Error) -> Error {
        match self.wrapper {
            Some(_) => self.place().locate(error), // its position counts in the decompressed bytes
            None => error.in_batch(self.base_offset).in_record(self.index),
        }
    }

    fn place(&self) -> RecordPosition {
        RecordPosition { position: self.position, base_offset: self.base_offset, index: self.index }
    }

    pub(crate) fn bookmark(&self) -> Bookmark {
        let set = self.wrapper.map(|wrapper| LegacySet { len: self.len, wrapper });
        Bookmark { consumed: self.len.wrapping_sub(self.rest.len()), index: self.index, done: false, set }
    }

    pub(crate) fn resumed(header: &BatchHeader, position: u64, payload: &Payload<'s>, bookmark: &Bookmark) -> Self {
        let mut records = Self::unopened(header, position, payload);
        if let Some(LegacySet { len, wrapper }) = bookmark.set {
            records.len = len;
            records.wrapper = Some(wrapper);
        }
        records.rest = records.rest.part(bookmark.consumed..records.len);
        records.index = bookmark.index;
        records
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<Result<Record<'s>>> {
        if self.rest.is_empty() {
            return None;
        }
        let (offset, message) = match self.wrapper {
            None => (self.base_offset, std::mem::take(&mut self.rest)),
            Some(wrapper) => {
                let (offset, size, after) = split_log_overhead(self.rest)?;
                let (message, rest) = after.split_at_checked(usize::try_from(size).ok()?)?;
                self.rest = rest;
                (offset.wrapping_add(wrapper.shift), message)
            }
        };
        let record = self.record(offset, message);
        self.index = self.index.wrapping_add(1);
        Some(record)
    }

    #[inline]
    fn record(&self, offset: i64, bytes: &'s [u8]) -> Result<Record<'s>> {
        let place = self.place();
        let message = LegacyMessage::parse(bytes, self.position).map_err(|error| self.message_error(error))?;
        if self.wrapper.is_some() && message.attributes.is_compressed() {
            // as in Kafka, an unknown codec is rejected first
            message.attributes.compression().map_err(|error| place.locate(error))?;
            let kind = ErrorKind::InvalidWrapper("it contains a compressed message");
            return Err(place.error(kind, "attributes"));
        }
        let timestamp = match self.wrapper.and_then(|wrapper| wrapper.log_append_time) {
            Some(log_append_time) if message.magic == 1 => log_append_time,
            _ => message.timestamp,
        };
        Ok(Record {
            offset,
            timestamp,
            timestamp_type: self.timestamp_type,
            key: message.key,
            value: message.value,
            sequence: NO_SEQUENCE,
            extra: RecordTail::Message(bytes),
            place,
        })
    }
}

/// The length of a field as v0 and v1 store it, −1 for null.
pub(crate) fn stored_len(bytes: Option<&[u8]>) -> Option<i32> {
    bytes.map_or(Some(-1), |bytes| i32::try_from(bytes.len()).ok())
}

/// Bytes of a message without its log overhead.
pub(crate) fn message_len(magic: u8, key: Option<&[u8]>, value: Option<&[u8]>) -> u64 {
    let overhead = if magic == 0 { 14 } else { 22 };
    let len = |bytes: Option<&[u8]>| bytes.map_or(0, |bytes| u64_of(bytes.len()));
    len(key).saturating_add(len(value)).saturating_add(overhead)
}
