//! Keys and values: text, or the JSON and Java text of internal topics.

use crate::dump::frame_fault::framed_fault;
use crate::dump::sink::{push, push_field};
use crate::dump::{Decoder, remote};
use crate::error::{ErrorKind, Result};
use crate::format::record::{Record, decode_as_java};
use crate::internal::{
    Family, Message, MessageError, framed, key, open_consumer_protocol, short_name, snake_case, value, write_bytes,
    write_string,
};

/// Appends key and value of a record that is not a control record.
#[inline]
pub(super) fn write(out: &mut Vec<u8>, decoder: Decoder, record: &Record<'_>, prefix: &str) -> Result<()> {
    match decoder {
        Decoder::Text => {
            text(out, record, prefix);
            Ok(())
        }
        Decoder::Internal(Family::Metadata) => {
            push(out, prefix);
            push(out, "payload: ");
            metadata(out, record);
            Ok(())
        }
        Decoder::Internal(Family::Remote) => {
            push(out, prefix);
            push(out, "payload: ");
            push(out, &remote::describe(record));
            Ok(())
        }
        Decoder::Internal(family) => coordinator(out, family, record, prefix),
    }
}

#[inline]
fn text(out: &mut Vec<u8>, record: &Record<'_>, prefix: &str) {
    let mut prefix = prefix;
    if let Some(key) = record.key {
        push(out, prefix);
        push(out, "key: ");
        push(out, &decode_as_java(key));
        prefix = " ";
    }
    if let Some(value) = record.value {
        push(out, prefix);
        push(out, "payload: ");
        push(out, &decode_as_java(value));
    }
}

/// A record of a coordinator. Kafka shows an error instead of the key.
fn coordinator(out: &mut Vec<u8>, family: Family, record: &Record<'_>, prefix: &str) -> Result<()> {
    let (key, value) = pair(family, record)?;
    push(out, prefix);
    push(out, "key: ");
    let key = match key {
        Ok(key) => key,
        Err(message) => {
            push(out, &message);
            return Ok(());
        }
    };
    push_field(out, "{\"type\":\"", key.type_id().into());
    push(out, "\",\"data\":");
    key.write_json(out);
    push(out, "} payload: ");
    match value {
        None => push(out, "<DELETE>"),
        Some(value) => {
            push_field(out, "{\"version\":\"", value.version().into());
            push(out, "\",\"data\":");
            value.write_json(out);
            out.push(b'}');
        }
    }
    Ok(())
}

/// A decoded key, or Kafka's message, and the value.
type Pair<'r> = (std::result::Result<Message<'r>, String>, Option<Message<'r>>);

/// Decodes key and value. Kafka stops at a record without a key.
fn pair<'r>(family: Family, record: &Record<'r>) -> Result<Pair<'r>> {
    let Some(key_bytes) = record.key else {
        let message = "the record has no key, so it is not of the topic that the decoder is for: dump it without the \
                       decoder, with --print-data-log"
            .to_owned();
        return Err(record.place.error(ErrorKind::InvalidFile(message), "key"));
    };
    let offset = record.offset;
    let key = match key(family, key_bytes) {
        Ok(key) => key,
        Err(fault) => return Ok((Err(coordinator_fault(&fault, offset, "key")), None)),
    };
    let Some(value_bytes) = record.value else { return Ok((Ok(key), None)) };
    match value(family, key.type_id(), value_bytes) {
        Ok(mut value) => {
            open_consumer_protocol(&mut value);
            Ok((Ok(key), Some(value)))
        }
        Err(fault) => Ok((Err(coordinator_fault(&fault, offset, "value")), None)),
    }
}

#[cold]
fn coordinator_fault(fault: &MessageError, offset: i64, part: &str) -> String {
    let reason = match fault {
        MessageError::UnknownType(type_id) => {
            return format!("Unknown record type {type_id} at offset {offset}, skipping.");
        }
        MessageError::UnknownVersion { type_id, version } => {
            format!("Found an unknown record version {version} for {type_id} type")
        }
        MessageError::InRecord { version, fault, .. } => {
            let reason = fault.java_message();
            format!("Could not read record with version {version} from {part}'s buffer due to: {reason}.")
        }
        MessageError::Truncated { .. } | MessageError::Corrupt { .. } => {
            format!("Could not read version from {part}'s buffer.")
        }
    };
    format!("Error at offset {offset}, skipping. {reason}")
}

fn metadata(out: &mut Vec<u8>, record: &Record<'_>) {
    match framed(Family::Metadata, record.value.unwrap_or_default()) {
        Ok(message) => framed_json(out, &message),
        Err(fault) => {
            push_field(out, "Error at ", record.offset);
            push(out, ", skipping. ");
            push(out, &framed_fault(&fault));
        }
    }
}

/// A framed message with its type and version.
pub(super) fn framed_json(out: &mut Vec<u8>, message: &Message<'_>) {
    push(out, "{\"type\":\"");
    push(out, &snake_case(message.name()));
    push_field(out, "\",\"version\":", message.version().into());
    push(out, ",\"data\":");
    message.write_json(out);
    out.push(b'}');
}

/// Appends key and value as members of a JSON object.
pub(super) fn write_json(out: &mut Vec<u8>, decoder: Decoder, record: &Record<'_>) -> Result<()> {
    let family = match decoder {
        Decoder::Text => {
            push(out, ",\"key\":");
            write_bytes(out, record.key);
            push(out, ",\"value\":");
            write_bytes(out, record.value);
            return Ok(());
        }
        Decoder::Internal(family) => family,
    };
    if family.is_coordinator() {
        let (key, value) = pair(family, record)?;
        let key = match key {
            Ok(key) => key,
            Err(message) => {
                error_json(out, &message);
                return Ok(());
            }
        };
        push(out, ",\"record_type\":");
        write_string(out, short_name(key.name()));
        push_field(out, ",\"type_id\":", key.type_id().into());
        push(out, ",\"key\":");
        key.write_json(out);
        if let Some(value) = &value {
            push_field(out, ",\"version\":", value.version().into());
        }
        push(out, ",\"value\":");
        match &value {
            Some(value) => value.write_json(out),
            None => push(out, "null"),
        }
        return Ok(());
    }
    match framed(family, record.value.unwrap_or_default()) {
        Ok(message) => {
            push(out, ",\"value\":");
            framed_json(out, &message);
        }
        Err(fault) => error_json(out, &fault.to_string()),
    }
    Ok(())
}

fn error_json(out: &mut Vec<u8>, message: &str) {
    push(out, ",\"error\":");
    write_string(out, message);
}
