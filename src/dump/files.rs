//! `.snapshot` and `.txnindex` files.

use super::DumpJob;
use super::index::read_index;
use crate::dump::sink::{push, push_field};
use crate::dump::{Format, jsonl, kafka};
use crate::error::{Error, ErrorKind, Result};
use crate::internal::{Value, single_message};
use crate::io::Location;
use crate::slices::Slices;
use crate::wire::crc::crc32c;

/// The only version of a producer snapshot.
const SNAPSHOT_VERSION: i16 = 1;
/// Bytes of version and checksum, which the checksum does not cover.
const SNAPSHOT_CRC_START: usize = 6;
/// Size of an entry of a transaction index in bytes.
const TRANSACTION_LEN: usize = 34;
/// The fields of an entry of a transaction index after its version of two bytes.
const TRANSACTION_FIELDS: [(&str, usize); 4] =
    [("producerId", 2), ("firstOffset", 10), ("lastOffset", 18), ("lastStableOffset", 26)];

impl DumpJob<'_> {
    /// Kafka reports a corrupt snapshot and continues.
    pub(super) fn snapshot(&mut self, path: &Location) -> Result<()> {
        let bytes = read_index(path)?;
        match producers(&bytes) {
            Ok(Value::Array(producers)) => {
                for producer in &producers {
                    self.producer(producer)?;
                }
                Ok(())
            }
            Ok(_) => Ok(()),
            Err(message) => self.note(&message),
        }
    }

    fn producer(&mut self, producer: &Value<'_>) -> Result<()> {
        let int = |name: &str| producer.get(name).and_then(Value::as_int).unwrap_or_default();
        let (last_sequence, offset_delta) = (int("lastSequence"), int("offsetDelta"));
        let first_offset = Some(int("currentTxnFirstOffset")).filter(|offset| *offset >= 0);
        let out = &mut self.sink.buffer;
        if self.options.format == Format::Jsonl {
            jsonl::producer(out, producer);
            return self.sink.end_line();
        }
        push_field(out, "producerId: ", int("producerId"));
        push_field(out, " producerEpoch: ", int("epoch"));
        push_field(out, " coordinatorEpoch: ", int("coordinatorEpoch"));
        push(out, " currentTxnFirstOffset: ");
        kafka::optional_long(out, first_offset);
        push_field(out, " lastTimestamp: ", int("timestamp"));
        if int("lastOffset") >= 0 {
            push_field(out, " firstSequence: ", first_sequence(last_sequence, offset_delta));
            push_field(out, " lastSequence: ", last_sequence);
            push_field(out, " lastOffset: ", int("lastOffset"));
            push_field(out, " offsetDelta: ", offset_delta);
            push_field(out, " timestamp: ", int("timestamp"));
        }
        out.push(b'\n');
        self.sink.end_line()
    }

    /// Kafka reads all entries before it prints the first one.
    pub(super) fn transaction_index(&mut self, path: &Location) -> Result<()> {
        let bytes = read_index(path)?;
        let entries = || bytes.chunks_exact(TRANSACTION_LEN);
        // only the first byte of the version is read
        let version = |entry: &[u8]| i64::from(entry.first().copied().unwrap_or_default().cast_signed());
        if let Some(newer) = entries().map(version).find(|version| *version > 0) {
            let message = format!("an aborted transaction has version {newer}, but only 0 is known");
            return Err(Error::new(ErrorKind::InvalidFile(message)).with_path(path));
        }
        for entry in entries() {
            let out = &mut self.sink.buffer;
            let number =
                |start: usize| entry.get(start..).and_then(<[u8]>::first_chunk).copied().map_or(0, i64::from_be_bytes);
            let fields = TRANSACTION_FIELDS.map(|(name, start)| (name, number(start)));
            if self.options.format == Format::Jsonl {
                jsonl::transaction(out, &fields);
            } else {
                push_field(out, "version: ", version(entry));
                for (name, value) in fields {
                    out.push(b' ');
                    push(out, name);
                    push_field(out, ": ", value);
                }
                out.push(b'\n');
            }
            self.sink.end_line()?;
        }
        Ok(())
    }
}

/// The producers of a snapshot, or Kafka's message about it.
fn producers(bytes: &[u8]) -> std::result::Result<Value<'_>, String> {
    let invalid = |reason: &str| format!("Snapshot failed schema validation: {reason}");
    let Some((version, body)) = bytes.split_first_chunk() else { return Err(invalid("null")) };
    let version = i16::from_be_bytes(*version);
    if version != SNAPSHOT_VERSION {
        return Err(invalid(&format!("Snapshot contained an unknown file version {version}")));
    }
    let message = single_message("ProducerSnapshot", version, body);
    let mut message = message.map_err(|fault| invalid(&fault.java_message()))?;
    let stored = message.value.get("crc").and_then(Value::as_int).unwrap_or_default();
    let computed = i64::from(crc32c(bytes.part(SNAPSHOT_CRC_START..)));
    if stored != computed {
        return Err(format!(
            "Snapshot is corrupt (CRC is no longer valid). Stored crc: {stored}. Computed crc: {computed}"
        ));
    }
    Ok(message.value.get_mut("producerEntries").map_or(Value::Null, |entries| std::mem::replace(entries, Value::Null)))
}

/// The sequence of the first record of a batch; sequences wrap from 2³¹ − 1 to 0. Overflows like Java's `int`.
fn first_sequence(last: i64, delta: i64) -> i64 {
    let (last, delta) = (i32::try_from(last).unwrap_or_default(), i32::try_from(delta).unwrap_or_default());
    let first = if last < delta {
        i32::MAX.wrapping_sub(delta.wrapping_sub(last)).wrapping_add(1)
    } else {
        last.wrapping_sub(delta)
    };
    first.into()
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn sequences_wrap_to_the_largest() {
        assert_eq!(first_sequence(10, 3), 7);
        assert_eq!(first_sequence(1, 3), i64::from(i32::MAX) - 1);
    }

    #[test]
    fn snapshots_that_kafka_refuses_have_its_message() {
        assert_eq!(producers(&[]).unwrap_err(), "Snapshot failed schema validation: null");
        let version = "Snapshot failed schema validation: Snapshot contained an unknown file version 7";
        assert_eq!(producers(&[0, 7]).unwrap_err(), version);
        let crc = producers(&[0, 1, 0, 0, 0, 5, 0, 0, 0, 0]).unwrap_err();
        assert!(
            crc.starts_with("Snapshot is corrupt (CRC is no longer valid). Stored crc: 5. Computed crc: "),
            "{crc}"
        );
    }
}
