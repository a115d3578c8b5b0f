//! JSON lines: one object per file, batch, record, entry or producer, with a member `type`.

use crate::compression::Compression;
use crate::dump::log_file::ParsedBatch;
use crate::dump::sink::{push, push_field, push_flag};
use crate::dump::{Options, contents};
use crate::error::Result;
use crate::format::control::ControlRecord;
use crate::format::record::Record;
use crate::internal::{Value, write_bytes, write_string};
use crate::num::u64_of;

pub(super) fn heading(out: &mut Vec<u8>, shown: &str) {
    push(out, "{\"type\":\"file\",\"path\":");
    write_string(out, shown);
    push(out, "}\n");
}

pub(super) fn batch(out: &mut Vec<u8>, found: &ParsedBatch<'_>) {
    let header = &found.header;
    push(out, &format!("{{\"type\":\"batch\",\"position\":{},\"size\":{}", header.position, u64_of(header.size)));
    match header.base_offset() {
        Some(offset) => push_field(out, ",\"base_offset\":", offset),
        None => push(out, ",\"base_offset\":null"),
    }
    push_field(out, ",\"last_offset\":", header.last_offset());
    match found.magic {
        0 | 1 => push(out, ",\"record_count\":null"),
        _ => push_field(out, ",\"record_count\":", header.record_count.into()),
    }
    push_field(out, ",\"magic\":", found.magic.into());
    push(out, ",\"compression\":");
    write_string(out, header.attributes.compression().map_or("unknown", Compression::name));
    push(out, ",\"timestamp_type\":");
    match header.attributes.timestamp_type() {
        Some(kind) => write_string(out, kind.name()),
        None => push(out, "null"),
    }
    push_field(out, ",\"max_timestamp\":", header.max_timestamp);
    push_field(out, ",\"producer_id\":", header.producer_id);
    push_field(out, ",\"producer_epoch\":", header.producer_epoch.into());
    push_field(out, ",\"base_sequence\":", header.base_sequence.into());
    push_field(out, ",\"partition_leader_epoch\":", header.partition_leader_epoch.into());
    push_flag(out, ",\"is_transactional\":", header.is_transactional());
    push_flag(out, ",\"is_control\":", header.is_control());
    match header.delete_horizon_ms() {
        Some(time) => push_field(out, ",\"delete_horizon_ms\":", time),
        None => push(out, ",\"delete_horizon_ms\":null"),
    }
    push_field(out, ",\"crc\":", header.crc.into());
    push_flag(out, ",\"crc_ok\":", found.is_valid);
    push(out, "}\n");
}

pub(super) fn record(out: &mut Vec<u8>, options: &Options, found: &ParsedBatch<'_>, record: &Record<'_>) -> Result<()> {
    push_field(out, "{\"type\":\"record\",\"offset\":", record.offset);
    if !options.skip_record_metadata {
        push_field(out, ",\"timestamp\":", record.timestamp);
        push_field(out, ",\"sequence\":", record.sequence.into());
        push(out, ",\"headers\":[");
        for (place, header) in record.headers().enumerate() {
            let header = header?;
            push(out, if place > 0 { ",[" } else { "[" });
            write_string(out, &header.key_lossy());
            out.push(b',');
            write_bytes(out, header.value());
            out.push(b']');
        }
        out.push(b']');
    }
    if found.header.is_control() {
        push(out, ",\"control\":");
        write_string(out, &ControlRecord::parse(record)?.type_name());
    } else if options.contents {
        contents::write_json(out, options.decoder, record)?;
    }
    push(out, "}\n");
    Ok(())
}

pub(super) fn tail(out: &mut Vec<u8>, left: u64) {
    push(out, &format!("{{\"type\":\"tail\",\"bytes\":{left}}}\n"));
}

pub(super) fn verdict(out: &mut Vec<u8>, name: &str) {
    push(out, &format!("{{\"type\":\"index\",\"verdict\":\"{name}\"}}\n"));
}

pub(super) fn entry(out: &mut Vec<u8>, fields: &[(&str, i64)]) {
    numbers(out, "entry", fields.iter().copied());
}

pub(super) fn transaction(out: &mut Vec<u8>, fields: &[(&str, i64)]) {
    let names = ["producer_id", "first_offset", "last_offset", "last_stable_offset"];
    numbers(out, "aborted_transaction", names.into_iter().zip(fields).map(|(name, (_, value))| (name, *value)));
}

pub(super) fn producer(out: &mut Vec<u8>, producer: &Value<'_>) {
    let names = [
        ("producer_id", "producerId"),
        ("producer_epoch", "epoch"),
        ("coordinator_epoch", "coordinatorEpoch"),
        ("current_txn_first_offset", "currentTxnFirstOffset"),
        ("last_sequence", "lastSequence"),
        ("last_offset", "lastOffset"),
        ("offset_delta", "offsetDelta"),
        ("timestamp", "timestamp"),
    ];
    let value = |field: &str| producer.get(field).and_then(Value::as_int).unwrap_or_default();
    numbers(out, "producer", names.into_iter().map(|(name, field)| (name, value(field))));
}

fn numbers<'n>(out: &mut Vec<u8>, kind: &str, fields: impl Iterator<Item = (&'n str, i64)>) {
    push(out, "{\"type\":");
    write_string(out, kind);
    for (name, value) in fields {
        out.push(b',');
        write_string(out, name);
        push_field(out, ":", value);
    }
    push(out, "}\n");
}
