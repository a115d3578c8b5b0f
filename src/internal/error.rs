//! [`MessageError`]: why a message could not be decoded.

use std::borrow::Cow;
use std::fmt;

/// Why a message could not be decoded. Positions are bytes of the key or value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageError {
    /// The bytes end inside a field.
    Truncated {
        /// Where the field begins.
        position: usize,
    },
    /// A field has an impossible value.
    Corrupt {
        /// The byte after the field.
        position: usize,
        /// Kafka's message.
        reason: String,
    },
    /// A type that the table does not contain, probably of a newer Kafka.
    UnknownType(i16),
    /// A version that the table does not contain, probably of a newer Kafka.
    UnknownVersion {
        /// Number of the type.
        type_id: i16,
        /// The version.
        version: i16,
    },
    /// A field of a record is corrupt.
    InRecord {
        /// Number of the type.
        type_id: i16,
        /// Version of the fields.
        version: i16,
        /// The corruption.
        fault: Box<MessageError>,
    },
}

impl MessageError {
    #[cold]
    pub(crate) fn in_record(self, type_id: i16, version: i16) -> Self {
        Self::InRecord { type_id, version, fault: Box::new(self) }
    }

    /// The byte of the key or value at which decoding stopped; 0 for an unknown type or version.
    #[must_use]
    pub fn position(&self) -> usize {
        match self {
            Self::Truncated { position } | Self::Corrupt { position, .. } => *position,
            Self::UnknownType(_) | Self::UnknownVersion { .. } => 0,
            Self::InRecord { fault, .. } => fault.position(),
        }
    }

    /// Number of the record type, if it was read.
    #[must_use]
    pub fn type_id(&self) -> Option<i16> {
        match self {
            Self::UnknownType(type_id) | Self::UnknownVersion { type_id, .. } | Self::InRecord { type_id, .. } => {
                Some(*type_id)
            }
            Self::Truncated { .. } | Self::Corrupt { .. } => None,
        }
    }

    /// Whether only a newer version of kbat can decode the message.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::UnknownType(_) | Self::UnknownVersion { .. })
    }

    /// The message of the exception that Kafka's decoder throws.
    pub(crate) fn java_message(&self) -> Cow<'_, str> {
        match self {
            // BufferUnderflowException
            Self::Truncated { .. } => Cow::Borrowed("null"),
            Self::Corrupt { reason, .. } => Cow::Borrowed(reason),
            other => Cow::Owned(other.to_string()),
        }
    }
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { position } => write!(f, "the bytes end inside the field at byte {position}"),
            Self::Corrupt { position, reason } => write!(f, "{reason} (byte {position})"),
            Self::UnknownType(type_id) => write!(f, "unknown record type {type_id}"),
            Self::UnknownVersion { type_id, version } => {
                write!(f, "unknown version {version} of record type {type_id}")
            }
            Self::InRecord { type_id, version, fault: reason } => {
                write!(f, "record type {type_id}, version {version}: {reason}")
            }
        }
    }
}

impl std::error::Error for MessageError {}
