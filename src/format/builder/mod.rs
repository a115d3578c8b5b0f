//! [`BatchBuilder`]: encodes records for every magic and codec.
//!
//! Follows `MemoryRecordsBuilder` of Kafka: uncompressed output is identical byte for byte, and records that Kafka
//! rejects are rejected before any byte is written. Magic 2 writes one batch. Magic 0 and 1 write one message per
//! record, or one compressed set.

mod fields;
mod finish;
mod like;
mod settings;

pub use fields::BatchFields;
pub use finish::end_transaction_marker;
pub(crate) use finish::put;

use crate::compression::Compression;
use crate::error::{Error, Result};
use crate::format::attributes::{Attributes, TimestampType};
use crate::format::control::ControlRecord;
use crate::format::header::{
    BATCH_HEADER_LEN, NO_PARTITION_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP,
};
use crate::format::record::NewHeader;
use crate::format::size::{batch_len_bound, body_len, message_len};
use crate::wire::varint::{write_varint, write_varlong};

/// An uncompressed batch of common size fits without reallocation.
const INITIAL_CAPACITY: usize = 16 << 10;

/// Builds a batch record by record.
///
/// ```
/// # fn main() -> kbat::Result<()> {
/// let mut bytes = Vec::new();
/// let mut builder = kbat::BatchBuilder::new().compression(kbat::Compression::Zstd).base_offset(42);
/// builder.append(1_700_000_000_000, Some(b"key"), Some(b"value"))?;
/// builder.append_with_headers(1_700_000_000_001, None, None, &[(b"trace", Some(b"1"))])?;
/// builder.finish_into(&mut bytes)?;
///
/// let batch = kbat::batches(&bytes).next().unwrap()?;
/// assert_eq!((batch.base_offset(), batch.last_offset()), (Some(42), 43));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct BatchBuilder {
    magic: u8,
    compression: Compression,
    level: Option<i32>,
    base_offset: i64,
    timestamp_type: TimestampType,
    log_append_time: i64,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    transactional: bool,
    control: bool,
    partition_leader_epoch: i32,
    delete_horizon_ms: Option<i64>,
    forced_last_offset: Option<i64>,
    /// Records in their stored form, before compression.
    records: Vec<u8>,
    base_timestamp: Option<i64>,
    max_timestamp: i64,
    last_offset: Option<i64>,
    count: u32,
}

impl Default for BatchBuilder {
    fn default() -> Self {
        Self {
            magic: 2,
            compression: Compression::None,
            level: None,
            base_offset: 0,
            timestamp_type: TimestampType::CreateTime,
            log_append_time: NO_TIMESTAMP,
            producer_id: NO_PRODUCER_ID,
            producer_epoch: NO_PRODUCER_EPOCH,
            base_sequence: NO_SEQUENCE,
            transactional: false,
            control: false,
            partition_leader_epoch: NO_PARTITION_LEADER_EPOCH,
            delete_horizon_ms: None,
            forced_last_offset: None,
            records: Vec::new(),
            base_timestamp: None,
            max_timestamp: NO_TIMESTAMP,
            last_offset: None,
            count: 0,
        }
    }
}

/// Records.
impl BatchBuilder {
    /// Appends a record at the next offset. `timestamp` is in milliseconds since the epoch, −1 for none.
    ///
    /// # Errors
    /// Kafka's rules: timestamps must be −1 or not negative, lengths and the span of offsets must fit an `i32`, and
    /// records of a control batch need the key of a known control record. The builder is then unchanged.
    #[inline]
    pub fn append(&mut self, timestamp: i64, key: Option<&[u8]>, value: Option<&[u8]>) -> Result<()> {
        self.append_at(self.next_offset(), timestamp, key, value, &[])
    }

    /// Appends a record with headers at the next offset.
    ///
    /// # Errors
    /// The errors of [`BatchBuilder::append`]; headers below magic 2.
    pub fn append_with_headers(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[NewHeader<'_>],
    ) -> Result<()> {
        self.append_at(self.next_offset(), timestamp, key, value, headers)
    }

    /// Appends a control record at the next offset.
    ///
    /// # Errors
    /// The errors of [`BatchBuilder::append`]; a batch that is not a control batch; a marker outside a transactional
    /// batch; a leader change without a partition leader epoch; an unknown type.
    pub fn append_control(&mut self, timestamp: i64, record: &ControlRecord) -> Result<()> {
        if !self.control {
            return Err(Error::argument("control records need a control batch"));
        }
        match record {
            ControlRecord::Unknown { .. } => return Err(Error::argument("an unknown control record can't be written")),
            ControlRecord::Abort { .. } | ControlRecord::Commit { .. } if !self.transactional => {
                return Err(Error::argument("a transaction marker needs a transactional batch"));
            }
            ControlRecord::LeaderChange { .. } if self.partition_leader_epoch == NO_PARTITION_LEADER_EPOCH => {
                return Err(Error::argument("a leader change needs a partition leader epoch"));
            }
            _ => {}
        }
        let (key, value) = record.encode();
        self.append(timestamp, Some(&key), Some(&value))
    }

    /// Appends a record at an offset above the last one.
    ///
    /// # Errors
    /// The errors of [`BatchBuilder::append_with_headers`]; an offset that does not rise.
    #[inline]
    pub fn append_at(
        &mut self,
        offset: i64,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[NewHeader<'_>],
    ) -> Result<()> {
        if self.count == 0 {
            self.validate()?;
            self.records.reserve(INITIAL_CAPACITY);
        }
        let offset_delta = self.check(offset, timestamp, key, value, headers)?;
        if self.magic == 2 {
            self.append_v2(offset_delta, timestamp, key, value, headers)?;
        } else {
            self.append_legacy(offset, timestamp, key, value)?;
        }
        self.count = self.count.saturating_add(1);
        self.last_offset = Some(offset);
        Ok(())
    }

    #[inline]
    fn next_offset(&self) -> i64 {
        self.last_offset.map_or(self.base_offset, |last| last.saturating_add(1))
    }

    /// Makes every check that can reject a record. Returns its offset delta.
    #[inline]
    fn check(
        &self,
        offset: i64,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[NewHeader<'_>],
    ) -> Result<i32> {
        if let Some(last) = self.last_offset.filter(|&last| offset <= last) {
            return Err(Error::argument(format!("offset {offset} does not come after {last}: offsets must rise")));
        }
        if offset < self.base_offset {
            return Err(Error::argument(format!("offset {offset} is before the base offset {}", self.base_offset)));
        }
        if timestamp < 0 && timestamp != NO_TIMESTAMP {
            return Err(Error::argument(format!("timestamp {timestamp} is negative: use -1 for none")));
        }
        if self.magic < 2 && !headers.is_empty() {
            return Err(Error::argument(format!("headers are not supported for magic {}", self.magic)));
        }
        if self.control && !ControlRecord::is_known_key(key) {
            return Err(Error::argument("a record of a control batch needs the key of a known control record"));
        }
        if self.count >= i32::MAX.cast_unsigned() {
            return Err(Error::argument("a batch has at most 2147483647 records"));
        }
        check_lengths(key, value, headers)?;
        offset
            .checked_sub(self.base_offset)
            .and_then(|delta| i32::try_from(delta).ok())
            .ok_or_else(|| Error::argument(format!("offset {offset} is more than 2147483647 above the base offset")))
    }

    #[inline]
    fn append_v2(
        &mut self,
        offset_delta: i32,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[NewHeader<'_>],
    ) -> Result<()> {
        let base = self.delete_horizon_ms.or(self.base_timestamp).unwrap_or(timestamp);
        let timestamp_delta = timestamp.wrapping_sub(base);
        let len = body_len(offset_delta, timestamp_delta, key, value, headers);
        let Some(len) = i32::try_from(len).ok().filter(|_| self.has_room(len)) else { return Err(too_large()) };
        let out = &mut self.records;
        write_varint(out, len);
        out.push(0);
        write_varlong(out, timestamp_delta);
        write_varint(out, offset_delta);
        write_bytes(out, key);
        write_bytes(out, value);
        write_varint(out, i32::try_from(headers.len()).unwrap_or(i32::MAX));
        for (key, value) in headers {
            write_bytes(out, Some(key));
            write_bytes(out, *value);
        }
        self.base_timestamp = Some(base);
        self.max_timestamp = self.max_timestamp.max(timestamp);
        Ok(())
    }

    /// Whether the size of the batch still fits an `i32` after a record of `len` bytes.
    #[inline]
    fn has_room(&self, len: usize) -> bool {
        let used = self.records.len().saturating_add(BATCH_HEADER_LEN).saturating_add(5);
        i32::try_from(used.saturating_add(len)).is_ok()
    }

    fn append_legacy(&mut self, offset: i64, timestamp: i64, key: Option<&[u8]>, value: Option<&[u8]>) -> Result<()> {
        if !self.has_room(message_len(self.magic, key, value)) {
            return Err(too_large());
        }
        let relative = self.magic == 1 && self.compression != Compression::None;
        let stored_offset = if relative { offset.wrapping_sub(self.base_offset) } else { offset };
        let log_append = self.magic == 1 && self.timestamp_type == TimestampType::LogAppendTime;
        let timestamp = if log_append { self.log_append_time } else { timestamp };
        // Only a log append time can be invalid here; the others are checked before. Like Kafka, magic 2 stores any
        // value.
        if timestamp < NO_TIMESTAMP {
            return Err(Error::argument(format!("log append time {timestamp} is negative: use -1 for none")));
        }
        let attributes = self.attributes(Compression::None);
        finish::write_message(&mut self.records, self.magic, stored_offset, timestamp, attributes, key, value)?;
        if self.magic == 1 {
            self.max_timestamp = self.max_timestamp.max(timestamp);
        }
        Ok(())
    }

    fn attributes(&self, compression: Compression) -> Attributes {
        let horizon = self.delete_horizon_ms.is_some();
        Attributes::of(self.magic, compression, self.timestamp_type, self.transactional, self.control, horizon)
    }

    /// Records appended so far.
    #[must_use]
    pub fn record_count(&self) -> u32 {
        self.count
    }

    /// Size of the batch in bytes before compression: what [`BatchBuilder::finish_into`] writes without compression. 0
    /// without records.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size_as(Compression::None)
    }

    /// Upper bound on the bytes that [`BatchBuilder::finish_into`] writes. Equal to [`BatchBuilder::size`] without
    /// compression.
    #[must_use]
    pub fn estimated_size(&self) -> usize {
        self.size_as(self.compression)
    }

    fn size_as(&self, compression: Compression) -> usize {
        if self.count == 0 { 0 } else { batch_len_bound(self.magic, compression, self.records.len()) }
    }
}

#[cold]
fn too_large() -> Error {
    Error::argument("the batch would exceed 2147483647 bytes")
}

#[inline]
fn check_lengths(key: Option<&[u8]>, value: Option<&[u8]>, headers: &[NewHeader<'_>]) -> Result<()> {
    let fits = |bytes: Option<&[u8]>| i32::try_from(bytes.map_or(0, <[u8]>::len)).is_ok();
    let headers_fit = || headers.iter().all(|(key, value)| fits(Some(key)) && fits(*value));
    if fits(key) && fits(value) && i32::try_from(headers.len()).is_ok() && headers_fit() {
        return Ok(());
    }
    Err(too_large())
}

#[inline]
fn write_bytes(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        None => write_varint(out, -1),
        Some(bytes) => {
            write_varint(out, i32::try_from(bytes.len()).unwrap_or(i32::MAX));
            out.extend_from_slice(bytes);
        }
    }
}
