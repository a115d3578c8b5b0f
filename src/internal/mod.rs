//! The records of Kafka's internal topics, decoded by one table.
//!
//! | topic | family | framing |
//! |---|---|---|
//! | `__consumer_offsets` | [`Family::Group`] | coordinator |
//! | `__transaction_state` | [`Family::Transaction`] | coordinator |
//! | `__share_group_state` | [`Family::Share`] | coordinator |
//! | `__cluster_metadata`, `.checkpoint` files | [`Family::Metadata`] | framed |
//! | `__remote_log_metadata` | [`Family::Remote`] | framed |
//!
//! ```text
//! coordinator   key    type i16, fields
//!               value  version i16, fields; null deletes the key
//! framed        value  frame version uvarint (1), type uvarint, version uvarint, fields
//! ```
//!
//! The table `schemas.txt` has all fields of all versions. `tests/internal_schemas.py` writes it from the schemas in
//! Kafka's jars, so a new record type needs no code. [`Message::write_json`] writes what Kafka's `JsonConverter`
//! classes write.
//!
//! A type or version that the table does not contain is a [`MessageError`], and so is corruption; neither panics. A value
//! takes memory in proportion to its bytes. [`record()`] decodes as much as possible and returns the reason for the rest.
//!
//! ```
//! use kbat::internal::{Family, key};
//! let message = key(Family::Group, &[0, 2, 0, 4, b't', b'e', b'a', b'm']).unwrap();
//! assert_eq!((message.name(), message.type_id()), ("GroupMetadataKey", 2));
//! assert_eq!(message.to_json(), r#"{"group":"team"}"#);
//! ```
//!
//! Source: `CoordinatorRecordSerde`, `AbstractApiMessageSerde` and the message generator of Kafka 4.3.1 and 4.4.0.

mod decode;
mod error;
mod json;
mod reader;
mod record;
mod schema;
mod value;

use crate::error::{Error, ErrorKind};
use crate::num::u64_of;

pub use error::MessageError;
pub(crate) use json::{write_base64, write_bytes, write_string};
pub use record::{Decoded, control, record};
pub(crate) use record::{control_message, short_name};
pub(crate) use schema::snake_case;
pub use value::Value;

use decode::fields;
use reader::Reader;
use schema::{Schema, Set, schema, single};

/// A group of internal messages whose types are numbered together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Family {
    /// `__consumer_offsets`: committed offsets and the groups of all protocols.
    Group,
    /// `__transaction_state`: transactional ids.
    Transaction,
    /// `__share_group_state`: the state of share groups.
    Share,
    /// `__cluster_metadata` and its snapshots: topics, partitions, brokers, configurations.
    Metadata,
    /// `__remote_log_metadata`: segments in tiered storage.
    Remote,
}

impl Family {
    /// The family of the records in a topic.
    ///
    /// ```
    /// use kbat::internal::Family;
    /// assert_eq!(Family::of_topic("__consumer_offsets"), Some(Family::Group));
    /// assert_eq!(Family::of_topic("orders"), None);
    /// ```
    #[must_use]
    pub fn of_topic(topic: &str) -> Option<Self> {
        match topic {
            "__consumer_offsets" => Some(Self::Group),
            "__transaction_state" => Some(Self::Transaction),
            "__share_group_state" => Some(Self::Share),
            "__cluster_metadata" => Some(Self::Metadata),
            "__remote_log_metadata" => Some(Self::Remote),
            _ => None,
        }
    }

    /// Whether keys have a type and values a version; otherwise values have both and there is no key.
    #[must_use]
    pub fn is_coordinator(self) -> bool {
        matches!(self, Self::Group | Self::Transaction | Self::Share)
    }

    fn keys(self) -> Option<Set> {
        match self {
            Self::Group => Some(Set::GroupKey),
            Self::Transaction => Some(Set::TransactionKey),
            Self::Share => Some(Set::ShareKey),
            Self::Metadata | Self::Remote => None,
        }
    }

    fn values(self) -> Set {
        match self {
            Self::Group => Set::GroupValue,
            Self::Transaction => Set::TransactionValue,
            Self::Share => Set::ShareValue,
            Self::Metadata => Set::Metadata,
            Self::Remote => Set::Remote,
        }
    }
}

/// A decoded key or value.
#[derive(Debug, Clone, PartialEq)]
pub struct Message<'a> {
    schema: &'static Schema,
    version: i16,
    pub(crate) value: Value<'a>,
}

impl<'a> Message<'a> {
    /// Kafka's name of the message, such as `OffsetCommitValue`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.schema.name
    }

    /// Number of its type.
    #[must_use]
    pub fn type_id(&self) -> i16 {
        self.schema.type_id
    }

    /// Version of its fields; 0 for a coordinator's key.
    #[must_use]
    pub fn version(&self) -> i16 {
        self.version
    }

    /// The fields.
    #[must_use]
    pub fn value(&self) -> &Value<'a> {
        &self.value
    }

    /// Appends the fields as JSON, as Kafka's `JsonConverter` of the message writes them.
    pub fn write_json(&self, out: &mut Vec<u8>) {
        self.value.write_json(out);
    }

    /// The fields as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        self.value.to_json()
    }
}

/// Decodes a coordinator's key.
///
/// # Errors
/// An unknown type, or corruption. For the families without coordinator, [`MessageError::UnknownType`] of −1.
pub fn key(family: Family, bytes: &[u8]) -> Result<Message<'_>, MessageError> {
    let mut reader = Reader::new(bytes);
    let type_id = reader.i16()?;
    let found = family.keys().and_then(|set| schema(set, type_id));
    let schema = found.ok_or(MessageError::UnknownType(if family.is_coordinator() { type_id } else { -1 }))?;
    // Kafka reports the type as the version
    message(schema, 0, reader).map_err(|fault| fault.in_record(type_id, type_id))
}

/// Decodes a coordinator's value, whose type is that of its key.
///
/// # Errors
/// An unknown type or version, or corruption.
pub fn value(family: Family, type_id: i16, bytes: &[u8]) -> Result<Message<'_>, MessageError> {
    let schema = schema(family.values(), type_id).ok_or(MessageError::UnknownType(type_id))?;
    let mut reader = Reader::new(bytes);
    let version = reader.i16()?;
    known_version(schema, version)?;
    message(schema, version, reader).map_err(|fault| fault.in_record(type_id, version))
}

/// Decodes a framed value. A newer version is read as the newest known one, as Kafka does; if it has further fields,
/// their bytes are a [`MessageError`]. [`framed_strict`] refuses newer versions.
///
/// # Errors
/// An unknown frame version or type, or corruption, also bytes after the last field.
pub fn framed(family: Family, bytes: &[u8]) -> Result<Message<'_>, MessageError> {
    let mut reader = Reader::new(bytes);
    let (schema, version) = frame(family, &mut reader)?;
    framed_fields(schema, version, reader)
}

/// Decodes a framed value of a version that the table contains.
///
/// # Errors
/// Those of [`framed`], and an unknown version.
pub fn framed_strict(family: Family, bytes: &[u8]) -> Result<Message<'_>, MessageError> {
    let mut reader = Reader::new(bytes);
    let (schema, version) = frame(family, &mut reader)?;
    known_version(schema, version)?;
    framed_fields(schema, version, reader)
}

fn known_version(schema: &Schema, version: i16) -> Result<(), MessageError> {
    if (schema.lowest..=schema.highest).contains(&version) {
        return Ok(());
    }
    Err(MessageError::UnknownVersion { type_id: schema.type_id, version })
}

/// Decodes the fields after a frame, which must be all that follows.
fn framed_fields<'a>(
    schema: &'static Schema,
    version: i16,
    mut reader: Reader<'a>,
) -> Result<Message<'a>, MessageError> {
    let value = message_of(schema, version, &mut reader).map_err(|fault| fault.in_record(schema.type_id, version))?;
    match reader.remaining() {
        0 => Ok(Message { schema, version, value }),
        count => Err(reader.fault(format!("Found {count} byte(s) of garbage after {}", schema.type_id))),
    }
}

fn frame(family: Family, reader: &mut Reader<'_>) -> Result<(&'static Schema, i16), MessageError> {
    match short(reader, "frame version")? {
        1 => {}
        0 => {
            let message = "Could not deserialize metadata record with frame version 0. Note that upgrades from the \
                           preview release of KRaft in 2.8 to newer versions are not supported.";
            return Err(reader.fault(message));
        }
        version => {
            let message = format!(
                "Could not deserialize metadata record due to unknown frame version {version}(only frame version 1 \
                 is supported)"
            );
            return Err(reader.fault(message));
        }
    }
    let (type_id, version) = (short(reader, "type")?, short(reader, "version")?);
    let found = if family.is_coordinator() { None } else { schema(family.values(), type_id) };
    found.map(|schema| (schema, version)).ok_or(MessageError::UnknownType(type_id))
}

/// An unsigned varint in a frame. Kafka narrows a negative one to 16 bits.
fn short(reader: &mut Reader<'_>, entity: &str) -> Result<i16, MessageError> {
    let number = reader.uvarint().map_err(|_| reader.fault(format!("Error while reading {entity}")))?.cast_signed();
    if number > i32::from(i16::MAX) {
        return Err(reader.fault(format!("Value for {entity} was too large.")));
    }
    let [.., high, low] = number.to_be_bytes();
    Ok(i16::from_be_bytes([high, low]))
}

/// Decodes a message that is not of a family, such as `ProducerSnapshot`.
pub(crate) fn single_message<'a>(name: &str, version: i16, bytes: &'a [u8]) -> Result<Message<'a>, MessageError> {
    let schema = single(name).ok_or(MessageError::UnknownType(-1))?;
    message(schema, version, Reader::new(bytes))
}

/// Decodes a message that begins with a field for its version, such as `LeaderChangeMessage`. A newer version is read
/// as the newest known one.
pub(crate) fn versioned_message<'a>(name: &str, bytes: &'a [u8]) -> Result<Message<'a>, MessageError> {
    let schema = single(name).ok_or(MessageError::UnknownType(-1))?;
    let version = Reader::new(bytes).i16()?;
    message(schema, version.clamp(schema.lowest, schema.highest), Reader::new(bytes))
}

/// Replaces the bytes in a group's metadata that are messages of the consumer protocol by their fields. Bytes that are
/// not such messages stay.
pub(crate) fn open_consumer_protocol(message: &mut Message<'_>) {
    if message.name() != "GroupMetadataValue"
        || message.value.get("protocolType").and_then(Value::as_text) != Some("consumer")
    {
        return;
    }
    let Some(Value::Array(members)) = message.value.get_mut("members") else { return };
    for member in members {
        for (field, name) in
            [("subscription", "ConsumerProtocolSubscription"), ("assignment", "ConsumerProtocolAssignment")]
        {
            let Some(place) = member.get_mut(field) else { continue };
            let opened = place.as_bytes().map(|bytes| prefixed_message(name, bytes));
            if let Some(Ok(opened)) = opened {
                *place = opened.value;
            }
        }
    }
}

/// Decodes a message after its version.
fn prefixed_message<'a>(name: &str, bytes: &'a [u8]) -> Result<Message<'a>, MessageError> {
    let schema = single(name).ok_or(MessageError::UnknownType(-1))?;
    let mut reader = Reader::new(bytes);
    let version = reader.i16()?;
    message(schema, version, reader)
}

fn message<'a>(schema: &'static Schema, version: i16, mut reader: Reader<'a>) -> Result<Message<'a>, MessageError> {
    let value = message_of(schema, version, &mut reader)?;
    Ok(Message { schema, version, value })
}

fn message_of<'a>(schema: &'static Schema, version: i16, reader: &mut Reader<'a>) -> Result<Value<'a>, MessageError> {
    fields(reader, &schema.fields, schema.context(version)).map(Value::Struct)
}

impl From<MessageError> for Error {
    fn from(fault: MessageError) -> Self {
        let position = fault.position();
        Self::new(ErrorKind::InvalidFile(fault.to_string())).at(u64_of(position))
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "tests")]
mod tests;
