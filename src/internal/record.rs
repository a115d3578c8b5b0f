//! [`Decoded`]: as much of a record as can be decoded.

use std::borrow::Cow;

use crate::format::control::ControlRecord;
use crate::format::record::Record;
use crate::internal::reader::Reader;
use crate::internal::schema::schema;
use crate::internal::{
    Family, Message, MessageError, frame, framed_fields, key, known_version, open_consumer_protocol, prefixed_message,
    value, versioned_message,
};

/// Key and value of a record, as far as they can be decoded.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Decoded<'a> {
    /// Name of the record type: Kafka's name of the message in the value, such as `PartitionRecord`; without its end
    /// for a coordinator, such as `OffsetCommit`; in capitals for a control record, such as `COMMIT`. `None` if the
    /// type is unknown.
    pub name: Option<Cow<'static, str>>,
    /// Number of the record type.
    pub type_id: Option<i16>,
    /// Version of the value. `None` for a tombstone.
    pub version: Option<i16>,
    /// The key; `None` for the families without keys, for control records, and if it cannot be decoded.
    pub key: Option<Message<'a>>,
    /// The value; `None` for a tombstone, and if it cannot be decoded.
    pub value: Option<Message<'a>>,
    /// Why the key or the value cannot be decoded.
    pub reason: Option<String>,
}

/// Decodes a record that is not a control record. A version that is newer than the known ones is not decoded.
///
/// ```
/// use kbat::internal::{Family, record};
/// let tombstone = record(Family::Group, Some(&[0, 2, 0, 4, b't', b'e', b'a', b'm']), None);
/// assert_eq!((tombstone.name.as_deref(), tombstone.type_id), (Some("GroupMetadata"), Some(2)));
/// let newer = record(Family::Group, Some(&[0, 99]), None);
/// assert_eq!(newer.reason.as_deref(), Some("unknown record type 99"));
/// ```
#[must_use]
pub fn record<'a>(family: Family, key_bytes: Option<&'a [u8]>, value_bytes: Option<&'a [u8]>) -> Decoded<'a> {
    if family.is_coordinator() { coordinated(family, key_bytes, value_bytes) } else { in_frame(family, value_bytes) }
}

fn coordinated<'a>(family: Family, key_bytes: Option<&'a [u8]>, value_bytes: Option<&'a [u8]>) -> Decoded<'a> {
    let Some(bytes) = key_bytes else { return unreadable("the key is null") };
    let key = match key(family, bytes) {
        Ok(key) => key,
        Err(fault) => {
            let type_id = fault.type_id();
            let known = type_id.and_then(|type_id| schema(family.keys()?, type_id));
            let name = known.map(|schema| Cow::Borrowed(short_name(schema.name)));
            return Decoded { name, type_id, reason: Some(reason("key", &fault)), ..Decoded::default() };
        }
    };
    let type_id = key.type_id();
    let mut decoded = Decoded {
        name: Some(Cow::Borrowed(short_name(key.name()))),
        type_id: Some(type_id),
        key: Some(key),
        ..Decoded::default()
    };
    match value_bytes.map(|bytes| value(family, type_id, bytes)) {
        None => {}
        Some(Ok(mut value)) => {
            open_consumer_protocol(&mut value);
            decoded.version = Some(value.version());
            decoded.value = Some(value);
        }
        Some(Err(fault)) => {
            decoded.version = version_of(&fault);
            decoded.reason = Some(reason("value", &fault));
        }
    }
    decoded
}

fn in_frame(family: Family, value_bytes: Option<&[u8]>) -> Decoded<'_> {
    let Some(bytes) = value_bytes else { return unreadable("the value is null") };
    let mut reader = Reader::new(bytes);
    let (schema, version) = match frame(family, &mut reader) {
        Ok(found) => found,
        Err(fault) => {
            let (type_id, reason) = (fault.type_id(), reason("value", &fault));
            return Decoded { type_id, reason: Some(reason), ..Decoded::default() };
        }
    };
    let (value, reason) = match known_version(schema, version).and_then(|()| framed_fields(schema, version, reader)) {
        Ok(value) => (Some(value), None),
        Err(fault) => (None, Some(reason("value", &fault))),
    };
    let (name, type_id) = (Some(Cow::Borrowed(schema.name)), Some(schema.type_id));
    Decoded { name, type_id, version: Some(version), key: None, value, reason }
}

/// Decodes a control record: a transaction marker, or one of KRaft's.
#[must_use]
pub fn control<'s>(record: &Record<'s>) -> Decoded<'s> {
    let control = match ControlRecord::parse(record) {
        Ok(control) => control,
        Err(error) => return unreadable(&error.to_string()),
    };
    let (name, type_id) = (Some(Cow::Owned(control.type_name())), Some(control.type_id()));
    let bytes = record.value().unwrap_or_default();
    let version = Reader::new(bytes).i16().ok();
    let decoded = match (control_message(&control), &control) {
        (Some(message), _) => versioned_message(message, bytes),
        (None, ControlRecord::Unknown { type_id }) => {
            let reason = Some(format!("unknown control record type {type_id}"));
            return Decoded { type_id: Some(*type_id), reason, ..Decoded::default() };
        }
        (None, _) => prefixed_message("EndTxnMarker", bytes),
    };
    let (value, reason) = match decoded {
        Ok(value) => (Some(value), None),
        Err(fault) => (None, Some(reason("value", &fault))),
    };
    Decoded { name, type_id, version, key: None, value, reason }
}

/// The message in the value of a control record of KRaft. A transaction marker has none that begins with its version.
pub(crate) fn control_message(control: &ControlRecord) -> Option<&'static str> {
    match control {
        ControlRecord::LeaderChange { .. } => Some("LeaderChangeMessage"),
        ControlRecord::SnapshotHeader { .. } => Some("SnapshotHeaderRecord"),
        ControlRecord::SnapshotFooter => Some("SnapshotFooterRecord"),
        ControlRecord::KRaftVersion { .. } => Some("KRaftVersionRecord"),
        ControlRecord::KRaftVoters { .. } => Some("VotersRecord"),
        ControlRecord::Abort { .. } | ControlRecord::Commit { .. } | ControlRecord::Unknown { .. } => None,
    }
}

/// The common part of the names of a coordinator's key and value.
pub(crate) fn short_name(key: &'static str) -> &'static str {
    key.strip_suffix("Key").unwrap_or(key)
}

#[cold]
fn unreadable<'a>(reason: &str) -> Decoded<'a> {
    Decoded { reason: Some(reason.to_owned()), ..Decoded::default() }
}

#[cold]
fn reason(part: &str, fault: &MessageError) -> String {
    match fault {
        MessageError::UnknownType(_) | MessageError::UnknownVersion { .. } => fault.to_string(),
        MessageError::InRecord { fault: inner, .. } => format!("{part}: {inner}"),
        corruption @ (MessageError::Truncated { .. } | MessageError::Corrupt { .. }) => format!("{part}: {corruption}"),
    }
}

fn version_of(fault: &MessageError) -> Option<i16> {
    match fault {
        MessageError::UnknownVersion { version, .. } | MessageError::InRecord { version, .. } => Some(*version),
        _ => None,
    }
}
