//! The lines of `kafka-dump-log`.

use crate::dump::log_file::ParsedBatch;
use crate::dump::sink::{push, push_field, push_flag, push_int, push_uint};
use crate::error::Result;
use crate::format::attributes::TimestampType;
use crate::format::record::{Record, RecordTail};
use crate::num::u64_of;

/// Kafka's name of the timestamp type of format v0.
const NO_TIMESTAMP_TYPE: &str = "NoTimestampType";

/// The first line of every file.
pub(super) fn heading(out: &mut Vec<u8>, shown: &str) {
    push(out, "Dumping ");
    push(out, shown);
    out.push(b'\n');
}

/// The line of a batch. Up to an unknown codec, it is written also if that is an error.
pub(super) fn batch(out: &mut Vec<u8>, found: &ParsedBatch<'_>) -> Result<()> {
    let header = &found.header;
    if found.magic >= 2 {
        push_field(out, "baseOffset: ", header.base_offset);
        push_field(out, " lastOffset: ", header.last_offset());
        push_field(out, " count: ", header.record_count.into());
        push_field(out, " baseSequence: ", header.base_sequence.into());
        push_field(out, " lastSequence: ", header.last_sequence().into());
        push_field(out, " producerId: ", header.producer_id);
        push_field(out, " producerEpoch: ", header.producer_epoch.into());
        push_field(out, " partitionLeaderEpoch: ", header.partition_leader_epoch.into());
        push_flag(out, " isTransactional: ", header.is_transactional());
        push_flag(out, " isControl: ", header.is_control());
        push(out, " deleteHorizonMs: ");
        optional_long(out, header.delete_horizon_ms());
    } else {
        push_field(out, "offset: ", header.base_offset);
    }
    push(out, " position: ");
    push_uint(out, header.position);
    out.push(b' ');
    push(out, timestamp_type(found));
    push_field(out, ": ", header.max_timestamp);
    push(out, " size: ");
    push_uint(out, u64_of(header.size));
    push_field(out, " magic: ", i64::from(found.magic));
    push(out, " compresscodec: ");
    push(out, header.attributes.compression()?.name());
    push_field(out, " crc: ", header.crc.into());
    push_flag(out, " isvalid: ", found.is_valid);
    out.push(b'\n');
    Ok(())
}

/// The start of the line of a record.
#[inline]
pub(super) fn record(out: &mut Vec<u8>, record: &Record<'_>, timestamp_type: &str) -> Result<()> {
    push_field(out, "| offset: ", record.offset);
    out.push(b' ');
    push(out, timestamp_type);
    push_field(out, ": ", record.timestamp);
    push(out, " keySize: ");
    size(out, record.key);
    push(out, " valueSize: ");
    size(out, record.value);
    match record.extra {
        RecordTail::Headers { .. } => {
            push_field(out, " sequence: ", record.sequence.into());
            push(out, " headerKeys: [");
            for (place, header) in record.headers().enumerate() {
                if place > 0 {
                    out.push(b',');
                }
                push(out, &header?.key_lossy());
            }
            out.push(b']');
        }
        RecordTail::Message(message) => {
            let stored = message.first_chunk().copied().map_or(0, u32::from_be_bytes);
            push_flag(out, " isValid: ", record.verify_crc().is_ok());
            push_field(out, " crc: ", stored.into());
        }
    }
    Ok(())
}

/// Kafka's name of a batch's timestamp type.
pub(super) fn timestamp_type(found: &ParsedBatch<'_>) -> &'static str {
    found.header.attributes.timestamp_type().map_or(NO_TIMESTAMP_TYPE, TimestampType::name)
}

/// A number as Java's `OptionalLong` shows it.
pub(super) fn optional_long(out: &mut Vec<u8>, value: Option<i64>) {
    match value {
        Some(value) => {
            push_field(out, "OptionalLong[", value);
            out.push(b']');
        }
        None => push(out, "OptionalLong.empty"),
    }
}

#[inline]
fn size(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => push_uint(out, u64_of(bytes.len())),
        None => push_int(out, -1),
    }
}
