//! [`BatchBuilder`]: records to bytes, for every magic and codec.
//!
//! After `MemoryRecordsBuilder` of Kafka: uncompressed output is the same to the byte, and what it refuses is refused here,
//! before a byte is written. Magic 2 gives one batch; magic 0 and 1 one message a record, or one compressed set of them.

use crate::compression::{Compression, compress};
use crate::error::{Error, Result};
use crate::format::attributes::{Attributes, TimestampType};
use crate::format::control::ControlRecord;
use crate::format::crc;
use crate::format::header::{
    BATCH_HEADER_LEN, CRC_START, LOG_OVERHEAD, NO_PARTITION_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID,
    NO_SEQUENCE, NO_TIMESTAMP,
};
use crate::format::legacy;
use crate::format::size::{NewHeader, batch_len_bound, body_len, message_len};
use crate::format::varint::{write_varint, write_varlong};
use crate::num::u64_of;

/// Where an uncompressed batch of common size fits without growing.
const INITIAL_CAPACITY: usize = 16 << 10;

/// Builds a batch, record by record.
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
    /// Records as they will be stored, before compression.
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

/// The settings. They are checked together, by [`BatchBuilder::validate`], the first append and the end.
impl BatchBuilder {
    /// Magic 2, no compression, base offset 0, `CreateTime`, no producer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Message format: 0, 1 or 2.
    #[must_use]
    pub fn magic(mut self, magic: u8) -> Self {
        self.magic = magic;
        self
    }

    /// Codec of the records.
    #[must_use]
    pub fn compression(mut self, compression: Compression) -> Self {
        self.compression = compression;
        self
    }

    /// Level of the codec, as Kafka counts: gzip 1 to 9, lz4 1 to 17 (9 is the fast compressor), zstd −131072 to 22.
    #[must_use]
    pub fn level(mut self, level: i32) -> Self {
        self.level = Some(level);
        self
    }

    /// Offset of the batch; also that of the first record unless [`BatchBuilder::append_at`] says otherwise.
    #[must_use]
    pub fn base_offset(mut self, base_offset: i64) -> Self {
        self.base_offset = base_offset;
        self
    }

    /// What the timestamps are; magic 0 has none.
    #[must_use]
    pub fn timestamp_type(mut self, timestamp_type: TimestampType) -> Self {
        self.timestamp_type = timestamp_type;
        self
    }

    /// The time all records get with [`TimestampType::LogAppendTime`], milliseconds since the epoch. Sets that type too.
    #[must_use]
    pub fn log_append_time(mut self, timestamp: i64) -> Self {
        self.timestamp_type = TimestampType::LogAppendTime;
        self.log_append_time = timestamp;
        self
    }

    /// Producer id, epoch and the sequence of the first record.
    #[must_use]
    pub fn producer(mut self, producer_id: i64, producer_epoch: i16, base_sequence: i32) -> Self {
        (self.producer_id, self.producer_epoch, self.base_sequence) = (producer_id, producer_epoch, base_sequence);
        self
    }

    /// Whether the batch belongs to a transaction.
    #[must_use]
    pub fn transactional(mut self, transactional: bool) -> Self {
        self.transactional = transactional;
        self
    }

    /// Whether the batch holds control records.
    #[must_use]
    pub fn control(mut self, control: bool) -> Self {
        self.control = control;
        self
    }

    /// Leader epoch of the append.
    #[must_use]
    pub fn partition_leader_epoch(mut self, epoch: i32) -> Self {
        self.partition_leader_epoch = epoch;
        self
    }

    /// Stores a delete horizon in place of the base timestamp, milliseconds since the epoch.
    #[must_use]
    pub fn delete_horizon_ms(mut self, horizon: i64) -> Self {
        self.delete_horizon_ms = Some(horizon);
        self
    }

    /// Makes the batch end at this offset instead of its last record's, as compaction does.
    #[must_use]
    pub fn last_offset(mut self, last_offset: i64) -> Self {
        self.forced_last_offset = Some(last_offset);
        self
    }

    /// Checks the settings against each other, as Kafka does when it makes a builder.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) that says which rule is broken.
    pub fn validate(&self) -> Result<()> {
        let magic = self.magic;
        let refuse = |what: &str| Err(Error::argument(what));
        if magic > 2 {
            return refuse(&format!("magic {magic} is no message format: use 0, 1 or 2"));
        }
        if let Some(level) = self.level {
            self.validate_level(level)?;
        }
        if magic < 2 {
            if self.transactional {
                return refuse(&format!("transactional records are not supported for magic {magic}"));
            }
            if self.control {
                return refuse(&format!("control records are not supported for magic {magic}"));
            }
            if self.compression == Compression::Zstd {
                return refuse(&format!("zstd compression is not supported for magic {magic}"));
            }
            if self.delete_horizon_ms.is_some() {
                return refuse(&format!("a delete horizon is not supported for magic {magic}"));
            }
        }
        if self.delete_horizon_ms.is_some_and(|horizon| horizon < 0) {
            return refuse("a delete horizon must not be negative");
        }
        Ok(())
    }

    fn validate_level(&self, level: i32) -> Result<()> {
        match self.compression.levels() {
            None => Err(Error::argument(format!("{} compression has no levels", self.compression))),
            Some((lowest, highest)) if !(lowest..=highest).contains(&level) => Err(Error::argument(format!(
                "{} compression has levels {lowest} to {highest}, not {level}",
                self.compression
            ))),
            Some(_) => Ok(()),
        }
    }

    /// Kafka's rules for producers, checked when a batch is closed.
    fn validate_producer(&self) -> Result<()> {
        if self.producer_id == NO_PRODUCER_ID {
            if self.transactional {
                return Err(Error::argument("a transactional batch needs a producer id"));
            }
            return Ok(());
        }
        if self.magic < 2 {
            return Err(Error::argument(format!("idempotent batches are not supported for magic {}", self.magic)));
        }
        if self.producer_epoch == NO_PRODUCER_EPOCH {
            return Err(Error::argument("a batch with a producer id needs a producer epoch"));
        }
        if self.base_sequence < 0 && !self.control {
            return Err(Error::argument("a batch with a producer id needs a base sequence of 0 or more"));
        }
        Ok(())
    }
}

/// Records and the end.
impl BatchBuilder {
    /// Appends a record at the next offset. `timestamp` is in milliseconds since the epoch, −1 for none.
    ///
    /// # Errors
    /// Kafka's rules: no negative timestamp but −1, lengths and offset span within an `i32`. The builder is as before.
    #[inline]
    pub fn append(&mut self, timestamp: i64, key: Option<&[u8]>, value: Option<&[u8]>) -> Result<()> {
        self.append_at(self.next_offset(), timestamp, key, value, &[])
    }

    /// Appends a record with headers at the next offset.
    ///
    /// # Errors
    /// Those of [`BatchBuilder::append`]; headers below magic 2.
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
    /// Those of [`BatchBuilder::append`]; a batch that is not a control batch; a marker outside a transactional batch; an
    /// unknown type.
    pub fn append_control(&mut self, timestamp: i64, record: &ControlRecord) -> Result<()> {
        if !self.control {
            return Err(Error::argument("control records need a control batch"));
        }
        match record {
            ControlRecord::Unknown { .. } => return Err(Error::argument("an unknown control record can't be written")),
            ControlRecord::Abort { .. } | ControlRecord::Commit { .. } if !self.transactional => {
                return Err(Error::argument("a transaction marker needs a transactional batch"));
            }
            _ => {}
        }
        let (key, value) = record.encode();
        self.append(timestamp, Some(&key), Some(&value))
    }

    /// Appends a record at an offset above the last one.
    ///
    /// # Errors
    /// Those of [`BatchBuilder::append_with_headers`]; an offset that does not rise.
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

    /// Everything that could refuse a record; returns its offset delta.
    #[inline]
    fn check(
        &self,
        offset: i64,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[NewHeader<'_>],
    ) -> Result<i32> {
        let floor = self.last_offset.unwrap_or(self.base_offset.saturating_sub(1));
        if offset <= floor {
            return Err(Error::argument(format!("offset {offset} does not come after {floor}: offsets must rise")));
        }
        if timestamp < 0 && timestamp != NO_TIMESTAMP {
            return Err(Error::argument(format!("timestamp {timestamp} is negative and not -1")));
        }
        if self.magic < 2 && !headers.is_empty() {
            return Err(Error::argument(format!("headers are not supported for magic {}", self.magic)));
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

    /// Whether a record of `len` bytes keeps the batch within an `i32`.
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
        let attributes = self.attributes(Compression::None);
        write_message(&mut self.records, self.magic, stored_offset, timestamp, attributes, key, value)?;
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

    /// Bytes that [`BatchBuilder::finish_into`] writes if nothing is compressed; exact without compression. 0 without
    /// records.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size_as(Compression::None)
    }

    /// The most that [`BatchBuilder::finish_into`] can write: [`BatchBuilder::size`] where nothing is compressed.
    #[must_use]
    pub fn estimated_size(&self) -> usize {
        self.size_as(self.compression)
    }

    fn size_as(&self, compression: Compression) -> usize {
        if self.count == 0 { 0 } else { batch_len_bound(self.magic, compression, self.records.len()) }
    }

    /// Appends the batch to `out`, and nothing where no record was appended, as Kafka does.
    ///
    /// # Errors
    /// Settings that contradict each other, a batch past 2³¹ − 1 bytes. `out` is then as before.
    pub fn finish_into(self, out: &mut Vec<u8>) -> Result<()> {
        self.validate()?;
        self.validate_producer()?;
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

    fn write_batch(&self, last_offset: i64, out: &mut Vec<u8>) -> Result<()> {
        let last_offset_delta =
            last_offset.checked_sub(self.base_offset).and_then(|delta| i32::try_from(delta).ok()).ok_or_else(|| {
                Error::argument(format!("last offset {last_offset} is out of reach of the base offset"))
            })?;
        let start = out.len();
        out.reserve(self.estimated_size());
        self.write_header(last_offset_delta, out);
        let records = start.saturating_add(BATCH_HEADER_LEN);
        compress(self.compression, self.level, self.magic, &self.records, out)?;
        debug_assert!(out.len() >= records, "the header was written");
        let length = out.len().saturating_sub(start).saturating_sub(LOG_OVERHEAD);
        let length = i32::try_from(length).map_err(|_| too_large())?;
        let batch = out.get_mut(start..).unwrap_or_default();
        let crc = crc::crc32c(batch.get(CRC_START..).unwrap_or_default());
        put(batch, 8, &length.to_be_bytes());
        put(batch, 17, &crc.to_be_bytes());
        Ok(())
    }

    /// The 61 bytes; length and checksum are filled in afterwards.
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

/// A batch with one transaction marker, as a transaction coordinator has it written: 78 bytes.
///
/// `timestamp` is in milliseconds since the epoch.
///
/// # Errors
/// A record that is neither `Abort` nor `Commit`, a negative producer id or epoch.
///
/// ```
/// # fn main() -> kbat::Result<()> {
/// let marker = kbat::ControlRecord::Commit { coordinator_epoch: 347 };
/// let bytes = kbat::end_transaction_marker(983, 1_700_000_000_000, 29, 73, 13, &marker)?;
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
        return Err(Error::argument(format!("{marker} is no transaction marker: use Abort or Commit")));
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

#[cold]
fn too_large() -> Error {
    Error::argument("the batch would pass 2147483647 bytes")
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

/// Appends a v0 or v1 message with its log overhead.
fn write_message(
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
    let message = out.get_mut(crc_place..).unwrap_or_default();
    let crc = crc::crc32(message.get(4..).unwrap_or_default());
    put(message, 0, &crc.to_be_bytes());
    Ok(())
}

/// Overwrites bytes at a place that is there.
pub(crate) fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    if let Some(place) = bytes.get_mut(at..).and_then(|rest| rest.get_mut(..field.len())) {
        place.copy_from_slice(field);
    }
}
