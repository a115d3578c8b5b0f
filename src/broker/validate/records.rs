//! The checks of a batch's header against its records, and of each record.
//!
//! Follows `LogValidator.validateBatch` and `validateRecord`. Compressed v2 batches that may stay unchanged are parsed
//! like Kafka's `DefaultRecord.readPartiallyFrom`: fields are skipped one after the other, and the declared record
//! lengths are not checked. A broker stores a batch whose record lengths are wrong, and consumers then fail to read it.

use crate::broker::validate::outcome::{ErrorCode, RecordErrors, StepResult, refuse, unreadable};
use crate::broker::validate::settings::ValidationSettings;
use crate::compression::{Compression, Payload, Scratch};
use crate::error::{Error, ErrorKind, Result, check_limit};
use crate::format::attributes::TimestampType;
use crate::format::batch::Batch;
use crate::format::header::{BATCH_HEADER_LEN, NO_PRODUCER_ID, NO_TIMESTAMP};
use crate::format::record::{Record, RecordTail};
use crate::limits::Limits;
use crate::num::u64_of;
use crate::wire::varint::{VarintFault, read_varint, read_varlong};

/// Checks the header of a batch.
pub(super) fn check_header(batch: &Batch<'_>, first: &Batch<'_>, settings: &ValidationSettings) -> StepResult<()> {
    if batch.magic() != first.magic() {
        let message =
            format!("Batch magic {} is not the same as the first batch's magic byte {}", batch.magic(), first.magic());
        return refuse(ErrorCode::InvalidRecord, message, batch);
    }
    if settings.is_client() {
        check_client_batch(batch)?;
    }
    if settings.magic < 2 && batch.is_transactional() {
        let message = format!("Transactional records cannot be used with magic version {}", settings.magic);
        return refuse(ErrorCode::UnsupportedForMessageFormat, message, batch);
    }
    if settings.magic < 2 && batch.producer_id() > NO_PRODUCER_ID {
        let message = format!("Idempotent records cannot be used with magic version {}", settings.magic);
        return refuse(ErrorCode::UnsupportedForMessageFormat, message, batch);
    }
    Ok(())
}

fn check_client_batch(batch: &Batch<'_>) -> StepResult<()> {
    let (base, last, count) =
        (batch.header().stored_base_offset, batch.last_offset(), batch.header().stored_record_count);
    let by_offsets = last.wrapping_sub(base).wrapping_add(1);
    if batch.magic() >= 2 {
        let message = if by_offsets <= 0 {
            format!("Batch has an invalid offset range: [{base}, {last}]")
        } else if count <= 0 {
            format!("Invalid reported count for record batch: {count}")
        } else if by_offsets != i64::from(count) {
            format!("Inconsistent batch offset range [{base}, {last}] and count of records {count}")
        } else {
            String::new()
        };
        if !message.is_empty() {
            return refuse(ErrorCode::InvalidRecord, message, batch);
        }
    }
    if batch.is_control() {
        return refuse(ErrorCode::InvalidRecord, "Clients are not allowed to write control records", batch);
    }
    if batch.producer_id() > NO_PRODUCER_ID && batch.base_sequence() < 0 {
        let message = format!(
            "Invalid sequence number {} in record batch with producerId {}",
            batch.base_sequence(),
            batch.producer_id()
        );
        return refuse(ErrorCode::InvalidRecord, message, batch);
    }
    Ok(())
}

/// Results of checking the records of a batch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Findings {
    pub(super) record_count: i64,
    /// Largest timestamp of the records, −1 for none.
    pub(super) max_timestamp: i64,
    /// Index of the first record that has it.
    pub(super) index_of_max_timestamp: i64,
    /// Whether offsets count from 0.
    pub(super) counts_from_zero: bool,
}

/// The parts of a record that the checks need.
struct CheckedRecord {
    offset: i64,
    timestamp: i64,
    has_key: bool,
    magic: u8,
}

/// How to parse a batch's records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParseDepth {
    Full,
    Short,
}

/// Checks all records of a batch and collects those that break a rule.
pub(super) fn check_records(
    batch: &Batch<'_>,
    depth: ParseDepth,
    settings: &ValidationSettings,
    scratch: &mut Scratch,
    limits: &Limits,
) -> StepResult<Findings> {
    if has_linked_blocks(batch) {
        return refuse(ErrorCode::UnknownServerError, "Dependent block stream is unsupported", batch);
    }
    let mut checks = Checks::new(batch, settings);
    let walked = match depth {
        ParseDepth::Full => checks.walk(scratch, limits),
        ParseDepth::Short => checks.walk_shortly(scratch, limits),
    };
    walked.map_err(|error| unreadable(error, batch))?;
    checks.errors.check(batch)?;
    Ok(checks.findings)
}

/// Whether the batch is an LZ4 frame with linked blocks: kbat reads them, Kafka's code does not. Kafka reads no frame
/// if the batch has no records.
fn has_linked_blocks(batch: &Batch<'_>) -> bool {
    const INDEPENDENT_BLOCKS: u8 = 0x20;
    let is_lz4 = batch.attributes().codec_id() == Compression::Lz4.id();
    is_lz4
        && batch.record_count() != Some(0)
        && batch.stored_records().get(4).is_some_and(|flags| flags & INDEPENDENT_BLOCKS == 0)
}

struct Checks<'a, 'b> {
    batch: &'a Batch<'b>,
    settings: &'a ValidationSettings,
    errors: RecordErrors,
    findings: Findings,
}

impl<'a, 'b> Checks<'a, 'b> {
    fn new(batch: &'a Batch<'b>, settings: &'a ValidationSettings) -> Self {
        let findings = Findings {
            record_count: 0,
            max_timestamp: NO_TIMESTAMP,
            index_of_max_timestamp: 0,
            counts_from_zero: true,
        };
        Self { batch, settings, errors: RecordErrors::default(), findings }
    }

    fn walk(&mut self, scratch: &mut Scratch, limits: &Limits) -> Result<()> {
        let in_set = self.batch.is_legacy_wrapper();
        for record in self.batch.records(scratch, limits)? {
            let record = record?;
            record.headers().verify()?;
            let magic = magic_of(&record, self.batch.magic());
            if in_set && magic == self.batch.magic() {
                record.verify_crc()?;
            }
            let (offset, timestamp) = (record.offset(), record.timestamp());
            self.see(&CheckedRecord { offset, timestamp, has_key: record.key().is_some(), magic });
        }
        Ok(())
    }

    fn walk_shortly(&mut self, scratch: &mut Scratch, limits: &Limits) -> Result<()> {
        let header = *self.batch.header();
        let log_append_time =
            (self.batch.timestamp_type() == Some(TimestampType::LogAppendTime)).then_some(header.max_timestamp);
        let payload = self.batch.payload(scratch, limits)?;
        let Ok(mut left) = u32::try_from(header.stored_record_count) else {
            let kind = ErrorKind::InvalidValue {
                value: header.stored_record_count.into(),
                expected: "a record count of 0 or more",
            };
            return Err(self.short_error(kind, payload));
        };
        let mut rest = payload.bytes;
        while left > 0 {
            left = left.wrapping_sub(1);
            let short = match ShortRecord::parse(&mut rest) {
                Ok(short) => short,
                Err(fault) => return Err(self.short_error(fault.into(), payload)),
            };
            let limit = limits.record_count;
            check_limit("record_count", limit, usize::try_from(self.findings.record_count).unwrap_or(limit))?;
            self.see(&CheckedRecord {
                offset: header.stored_base_offset.wrapping_add(i64::from(short.offset_delta)),
                timestamp: log_append_time.unwrap_or(header.base_timestamp.wrapping_add(short.timestamp_delta)),
                has_key: short.has_key,
                magic: 2,
            });
        }
        if !rest.is_empty() {
            let kind = ErrorKind::TrailingBytes { count: u64_of(rest.len()) };
            return Err(self.short_error(kind, Payload::borrowed(rest)));
        }
        if payload.fault.is_some() {
            return Err(self.short_error(ErrorKind::Truncated, payload));
        }
        Ok(())
    }

    /// If the bytes ended because the stream failed, returns the stream's error.
    #[cold]
    fn short_error(&self, kind: ErrorKind, payload: Payload<'_>) -> Error {
        let kind = match (kind, payload.fault) {
            (ErrorKind::Truncated, Some(fault)) => (*fault).into(),
            (kind, _) => kind,
        };
        let position = self.batch.position().saturating_add(u64_of(BATCH_HEADER_LEN));
        Error::new(kind)
            .at(position)
            .in_batch(self.batch.header().stored_base_offset)
            .in_record(u32::try_from(self.findings.record_count).unwrap_or(u32::MAX))
            .in_field("records")
    }

    fn see(&mut self, record: &CheckedRecord) {
        let index = self.findings.record_count;
        self.findings.counts_from_zero &= record.offset == index;
        if self.batch.magic() > 0 && record.timestamp > self.findings.max_timestamp {
            self.findings.max_timestamp = record.timestamp;
            self.findings.index_of_max_timestamp = index;
        }
        self.findings.record_count = index.saturating_add(1);
        if let Some((code, message)) = self.record_error(record) {
            self.errors.add(code, u32::try_from(index).unwrap_or(u32::MAX), message);
        }
    }

    fn record_error(&self, record: &CheckedRecord) -> Option<(ErrorCode, String)> {
        let (batch, settings) = (self.batch, self.settings);
        if record.magic != batch.magic() {
            let message = format!("Record's magic {} does not match outer magic {}", record.magic, batch.magic());
            return Some((ErrorCode::InvalidRecord, message));
        }
        if settings.compacted && !record.has_key {
            let message = "Compacted topic cannot accept message without key".to_owned();
            return Some((ErrorCode::InvalidRecord, message));
        }
        if settings.timestamp_type == TimestampType::CreateTime && record.timestamp != NO_TIMESTAMP {
            return settings.is_out_of_range(record.timestamp).then(|| self.out_of_range(record));
        }
        (batch.timestamp_type() == Some(TimestampType::LogAppendTime)).then(|| {
            let message = "Invalid timestamp type in message. Producer should not set timestamp type to LogAppendTime.";
            (ErrorCode::InvalidTimestamp, message.to_owned())
        })
    }

    #[cold]
    fn out_of_range(&self, record: &CheckedRecord) -> (ErrorCode, String) {
        let settings = self.settings;
        let message = format!(
            "Timestamp {} of message with offset {} is out of range. The timestamp should be within [{}, {}]",
            record.timestamp,
            record.offset,
            settings.now_ms.wrapping_sub(settings.timestamp_before_max_ms),
            settings.now_ms.wrapping_add(settings.timestamp_after_max_ms)
        );
        (ErrorCode::InvalidTimestamp, message)
    }
}

/// The magic of a message inside a set.
fn magic_of(record: &Record<'_>, batch_magic: u8) -> u8 {
    match record.extra {
        RecordTail::Headers { .. } => batch_magic,
        RecordTail::Message(bytes) => bytes.get(4).copied().unwrap_or(batch_magic),
    }
}

/// A v2 record, parsed only as far as a broker does.
struct ShortRecord {
    timestamp_delta: i64,
    offset_delta: i32,
    has_key: bool,
}

/// An error while skipping a record.
enum ShortFault {
    Varint(VarintFault),
    Negative { value: i32, expected: &'static str },
}

impl From<VarintFault> for ShortFault {
    fn from(fault: VarintFault) -> Self {
        Self::Varint(fault)
    }
}

impl From<ShortFault> for ErrorKind {
    fn from(fault: ShortFault) -> Self {
        match fault {
            ShortFault::Varint(fault) => fault.into(),
            ShortFault::Negative { value, expected } => Self::InvalidValue { value: value.into(), expected },
        }
    }
}

impl ShortRecord {
    fn parse(bytes: &mut &[u8]) -> std::result::Result<Self, ShortFault> {
        read_varint(bytes)?;
        step_over(bytes, 1)?;
        let timestamp_delta = read_varlong(bytes)?;
        let offset_delta = read_varint(bytes)?;
        let key_len = read_varint(bytes)?;
        step_over(bytes, key_len)?;
        let value_len = read_varint(bytes)?;
        step_over(bytes, value_len)?;
        let header_count = read_varint(bytes)?;
        if header_count < 0 {
            return Err(ShortFault::Negative { value: header_count, expected: "a header count of 0 or more" });
        }
        for _ in 0..header_count {
            let key_len = read_varint(bytes)?;
            if key_len < 0 {
                return Err(ShortFault::Negative { value: key_len, expected: "a header key of 0 bytes or more" });
            }
            step_over(bytes, key_len)?;
            let value_len = read_varint(bytes)?;
            step_over(bytes, value_len)?;
        }
        Ok(Self { timestamp_delta, offset_delta, has_key: key_len >= 0 })
    }
}

/// Skips `len` bytes; skips nothing for a negative length, which means null.
fn step_over(bytes: &mut &[u8], len: i32) -> std::result::Result<(), VarintFault> {
    let Ok(len) = usize::try_from(len) else { return Ok(()) };
    *bytes = bytes.get(len..).ok_or(VarintFault::Truncated)?;
    Ok(())
}
