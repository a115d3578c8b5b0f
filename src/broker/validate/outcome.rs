//! Outcomes of a validation.

use std::fmt;

use crate::compression::Compression;
use crate::error::{Error, ErrorKind, Position};
use crate::format::batch::Batch;

/// Maximum number of record errors kept. A small compressed batch can hold a hundred million records.
const MAX_RECORD_ERRORS: usize = 100_000;

/// The errors of Kafka's protocol that the bytes of a produce request can cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorCode {
    /// An exception that the broker does not handle: unknown codec numbers, streams that can't be decompressed.
    UnknownServerError,
    /// A wrong checksum, or bytes that are not a batch.
    CorruptMessage,
    /// A batch above `max.message.bytes`.
    MessageTooLarge,
    /// Batches above `segment.bytes`.
    RecordListTooLarge,
    /// Timestamps out of range, or of the type that only the broker may set.
    InvalidTimestamp,
    /// Transactional or idempotent batches in a log of an older message format.
    UnsupportedForMessageFormat,
    /// zstd in a request of a version before 7.
    UnsupportedCompressionType,
    /// A producer epoch below the one in the log.
    InvalidProducerEpoch,
    /// A sequence that does not follow the producer's last one.
    OutOfOrderSequenceNumber,
    /// A write outside the producer's open transaction.
    InvalidTxnState,
    /// A batch or record that breaks any other rule.
    InvalidRecord,
}

impl ErrorCode {
    /// Name in Kafka's protocol.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::UnknownServerError => "UNKNOWN_SERVER_ERROR",
            Self::CorruptMessage => "CORRUPT_MESSAGE",
            Self::MessageTooLarge => "MESSAGE_TOO_LARGE",
            Self::RecordListTooLarge => "RECORD_LIST_TOO_LARGE",
            Self::InvalidTimestamp => "INVALID_TIMESTAMP",
            Self::UnsupportedForMessageFormat => "UNSUPPORTED_FOR_MESSAGE_FORMAT",
            Self::UnsupportedCompressionType => "UNSUPPORTED_COMPRESSION_TYPE",
            Self::InvalidProducerEpoch => "INVALID_PRODUCER_EPOCH",
            Self::OutOfOrderSequenceNumber => "OUT_OF_ORDER_SEQUENCE_NUMBER",
            Self::InvalidTxnState => "INVALID_TXN_STATE",
            Self::InvalidRecord => "INVALID_RECORD",
        }
    }

    /// Number in Kafka's protocol.
    #[must_use]
    pub const fn code(self) -> i16 {
        match self {
            Self::UnknownServerError => -1,
            Self::CorruptMessage => 2,
            Self::MessageTooLarge => 10,
            Self::RecordListTooLarge => 18,
            Self::InvalidTimestamp => 32,
            Self::UnsupportedForMessageFormat => 43,
            Self::UnsupportedCompressionType => 76,
            Self::InvalidProducerEpoch => 47,
            Self::OutOfOrderSequenceNumber => 45,
            Self::InvalidTxnState => 48,
            Self::InvalidRecord => 87,
        }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The response of a broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Validation {
    /// The broker would append the batches.
    Accepted(Accepted),
    /// The broker would reject the request.
    Refused(Refusal),
}

/// The batches that a broker would append.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Accepted {
    /// The batches as the broker would store them, with offsets, leader epoch and, if the topic uses it, the log append
    /// time.
    pub bytes: Vec<u8>,
    /// Offset after the last record.
    pub next_offset: i64,
    /// Largest timestamp in milliseconds since the epoch, −1 for none.
    pub max_timestamp: i64,
    /// Offset for that timestamp in a time index: for uncompressed v1 messages, that of the first record with it,
    /// otherwise the last offset of the batch; −1 for none.
    pub shallow_offset_of_max_timestamp: i64,
    /// Whether the batch was rebuilt because of another codec or message format, or offsets that do not count from 0.
    pub is_rebuilt: bool,
    /// Bytes of the request's whole batches. A broker ignores the bytes after them without an error.
    pub valid_len: usize,
    /// First offset of the existing batch that this one duplicates. The broker responds with it and appends nothing.
    pub duplicate_offset: Option<i64>,
}

/// Why a broker would reject the request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The error in the produce response.
    pub code: ErrorCode,
    /// The reason, in Kafka's own words if it has a message.
    pub message: String,
    /// The invalid records that the broker would report, at most 100,000.
    pub record_errors: Vec<RecordError>,
    /// Position of the error.
    pub position: Position,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

/// An invalid record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordError {
    /// Index of the record in its batch, counting from 0.
    pub index: u32,
    /// Why the record is invalid.
    pub message: String,
}

/// Why a validation ends early: the broker rejects the request, or the outcome is unknown.
pub(super) enum Stop {
    Refused(Box<Refusal>),
    Failed(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

pub(super) type StepResult<T> = std::result::Result<T, Stop>;

/// Rejects a batch.
#[cold]
pub(super) fn refuse<T>(code: ErrorCode, message: impl Into<String>, batch: &Batch<'_>) -> StepResult<T> {
    let position = Position {
        byte: Some(batch.position()),
        base_offset: Some(batch.header().stored_base_offset),
        ..Position::default()
    };
    Err(refusal(code, message, position))
}

#[cold]
pub(super) fn refusal(code: ErrorCode, message: impl Into<String>, position: Position) -> Stop {
    Stop::Refused(Box::new(Refusal { code, message: message.into(), record_errors: Vec::new(), position }))
}

/// The broker's outcome for an error while reading the records of a batch.
#[cold]
pub(super) fn unreadable(error: Error, batch: &Batch<'_>) -> Stop {
    use ErrorCode::{CorruptMessage, InvalidRecord, UnknownServerError};
    let code = match error.kind() {
        ErrorKind::Limit { .. } | ErrorKind::Io(_) => return Stop::Failed(error),
        ErrorKind::UnsupportedCodec { id } if Compression::from_id(*id).is_some() => return Stop::Failed(error),
        ErrorKind::Crc { .. } | ErrorKind::BatchLength { .. } => CorruptMessage,
        // Kafka throws an exception that it does not map: IllegalArgumentException, KafkaException,
        // IndexOutOfBoundsException
        ErrorKind::UnsupportedCodec { .. } | ErrorKind::Decompression { .. } | ErrorKind::InvalidArgument(_) => {
            UnknownServerError
        }
        // the broker checks the checksum of an inner message first, which is wrong too unless the bytes were crafted
        ErrorKind::Truncated | ErrorKind::InvalidValue { .. }
            if batch.is_legacy_wrapper() && error.position().record.is_some() =>
        {
            CorruptMessage
        }
        ErrorKind::Truncated | ErrorKind::InvalidValue { .. } if batch.magic() < 2 => UnknownServerError,
        ErrorKind::Varint if error.position().field == Some("length") && !batch.attributes().is_compressed() => {
            UnknownServerError
        }
        _ => InvalidRecord,
    };
    let position = error.position();
    refusal(code, error.kind().to_string(), position)
}

/// Record errors, collected up to the end of the batch.
#[derive(Default)]
pub(super) struct RecordErrors {
    errors: Vec<RecordError>,
    count: u64,
    invalid_timestamps: bool,
}

impl RecordErrors {
    #[cold]
    pub(super) fn add(&mut self, code: ErrorCode, index: u32, message: String) {
        self.count = self.count.saturating_add(1);
        self.invalid_timestamps |= code == ErrorCode::InvalidTimestamp;
        if self.errors.len() < MAX_RECORD_ERRORS {
            self.errors.push(RecordError { index, message });
        }
    }

    /// Rejects a batch that has any record errors. Invalid timestamps determine the code if both kinds occur.
    pub(super) fn check(self, batch: &Batch<'_>) -> StepResult<()> {
        let Some(first) = self.errors.first() else { return Ok(()) };
        let (code, message) = if self.invalid_timestamps {
            let message = "One or more records have been rejected due to invalid timestamp".to_owned();
            (ErrorCode::InvalidTimestamp, message)
        } else {
            let shown: Vec<&str> = self.errors.iter().take(3).map(|error| error.message.as_str()).collect();
            let message = format!(
                "One or more records have been rejected due to {} record errors in total, and only showing the first \
                 three errors at most: {}",
                self.count,
                shown.join("; ")
            );
            (ErrorCode::InvalidRecord, message)
        };
        let position = Position {
            byte: Some(batch.position()),
            base_offset: Some(batch.header().stored_base_offset),
            record: Some(first.index),
            field: None,
        };
        Err(Stop::Refused(Box::new(Refusal { code, message, record_errors: self.errors, position })))
    }
}
