//! The attributes field.
//!
//! | bit | v0 | v1 | v2 |
//! |---|---|---|---|
//! | 0–2 | codec | codec | codec |
//! | 3 | – | timestamp type | timestamp type |
//! | 4 | – | – | transactional |
//! | 5 | – | – | control batch |
//! | 6 | – | – | `base_timestamp` holds the delete horizon |
//!
//! One byte in v0 and v1, two in v2. Undefined bits are kept and returned by [`Attributes::bits`].

use std::fmt;

use crate::compression::Compression;
use crate::error::{Error, ErrorKind, Result};

const CODEC_MASK: u16 = 0x07;
const TIMESTAMP_TYPE_BIT: u16 = 0x08;
const TRANSACTIONAL_BIT: u16 = 0x10;
const CONTROL_BIT: u16 = 0x20;
const DELETE_HORIZON_BIT: u16 = 0x40;

/// The type of a batch's timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "plan", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum TimestampType {
    /// Set by the producer.
    CreateTime,
    /// Set by the broker on append.
    LogAppendTime,
}

impl TimestampType {
    /// Kafka's name: `CreateTime` or `LogAppendTime`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::CreateTime => "CreateTime",
            Self::LogAppendTime => "LogAppendTime",
        }
    }

    /// Kafka's number, also that of Spark's `timestampType` column: 0 or 1.
    #[must_use]
    pub fn id(self) -> i32 {
        match self {
            Self::CreateTime => 0,
            Self::LogAppendTime => 1,
        }
    }
}

impl fmt::Display for TimestampType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The attributes of a batch or message, as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    bits: u16,
    magic: u8,
}

impl Attributes {
    pub(crate) const fn new(bits: u16, magic: u8) -> Self {
        Self { bits, magic }
    }

    /// All bits as stored, including undefined ones: 8 in v0 and v1, 16 in v2.
    #[must_use]
    pub const fn bits(self) -> u16 {
        self.bits
    }

    /// The message format of these attributes.
    pub(crate) const fn magic(self) -> u8 {
        self.magic
    }

    /// Number of the codec, 0 to 7.
    #[must_use]
    pub fn codec_id(self) -> u8 {
        crate::num::low_u8(u64::from(self.bits & CODEC_MASK))
    }

    /// The codec.
    ///
    /// # Errors
    /// [`ErrorKind::UnsupportedCodec`] for the numbers 5 to 7.
    pub fn compression(self) -> Result<Compression> {
        let id = self.codec_id();
        Compression::from_id(id).ok_or_else(|| Error::new(ErrorKind::UnsupportedCodec { id }).in_field("attributes"))
    }

    /// Whether any codec bit is set.
    #[must_use]
    pub const fn is_compressed(self) -> bool {
        self.bits & CODEC_MASK != 0
    }

    /// The type of the timestamps; `None` in v0, which has no timestamps.
    #[must_use]
    pub const fn timestamp_type(self) -> Option<TimestampType> {
        match (self.magic, self.bits & TIMESTAMP_TYPE_BIT) {
            (0, _) => None,
            (_, 0) => Some(TimestampType::CreateTime),
            _ => Some(TimestampType::LogAppendTime),
        }
    }

    /// Whether the batch is part of a transaction.
    #[must_use]
    pub const fn is_transactional(self) -> bool {
        self.magic >= 2 && self.bits & TRANSACTIONAL_BIT != 0
    }

    /// Whether the batch holds control records.
    #[must_use]
    pub const fn is_control(self) -> bool {
        self.magic >= 2 && self.bits & CONTROL_BIT != 0
    }

    /// Whether `base_timestamp` holds a delete horizon.
    #[must_use]
    pub const fn has_delete_horizon(self) -> bool {
        self.magic >= 2 && self.bits & DELETE_HORIZON_BIT != 0
    }

    pub(crate) fn of(
        magic: u8,
        compression: Compression,
        timestamp_type: TimestampType,
        transactional: bool,
        control: bool,
        delete_horizon: bool,
    ) -> Self {
        let flag = |set: bool, bit: u16| if set { bit } else { 0 };
        let bits = u16::from(compression.id())
            | flag(magic >= 1 && timestamp_type == TimestampType::LogAppendTime, TIMESTAMP_TYPE_BIT)
            | flag(transactional, TRANSACTIONAL_BIT)
            | flag(control, CONTROL_BIT)
            | flag(delete_horizon, DELETE_HORIZON_BIT);
        Self { bits, magic }
    }

    /// The attributes of a batch whose timestamps are those that it stores.
    #[cfg(feature = "text")]
    pub(crate) fn without_log_append_time(self) -> Self {
        Self { bits: self.bits & !TIMESTAMP_TYPE_BIT, magic: self.magic }
    }

    pub(crate) fn with_log_append_time(self) -> Self {
        Self { bits: self.bits | TIMESTAMP_TYPE_BIT, magic: self.magic }
    }
}
