//! Compares every segment and snapshot of `tests/data`, batch by batch and record by record, with Kafka 4.3.1.

use std::path::Path;

use kbat::{Batch, ControlRecord, ErrorKind, Limits, Record, Scratch};
use serde_json::Value;

use crate::data::{base64, data_dir, file, files, headers_json, json_lines, timestamp_type_name};

/// Counts of the comparisons in one directory.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    files: usize,
    batches: usize,
    records: usize,
    errors: usize,
}

/// One batch of the answers: its line, the lines of its records, and Kafka's errors.
#[derive(Default)]
struct Expected<'a> {
    batch: Option<&'a Value>,
    records: Vec<&'a Value>,
    error: Option<&'a Value>,
}

/// Groups the lines of an answer by batch, in file order.
fn by_batch(lines: &[Value]) -> Vec<Expected<'_>> {
    let mut batches: Vec<(u64, Expected<'_>)> = Vec::new();
    for line in lines {
        match (line["type"].as_str().unwrap(), line["stage"].as_str()) {
            ("batch", _) => {
                let expected = Expected { batch: Some(line), ..Expected::default() };
                batches.push((line["position"].as_u64().unwrap(), expected));
            }
            ("record", _) => batches.last_mut().unwrap().1.records.push(line),
            ("error", Some("framing")) | ("end", _) => {}
            ("error", _) => {
                let position = line["position"].as_u64().unwrap();
                if batches.last().is_none_or(|(last, _)| *last != position) {
                    batches.push((position, Expected::default()));
                }
                batches.last_mut().unwrap().1.error = Some(line);
            }
            other => panic!("{other:?}"),
        }
    }
    batches.into_iter().map(|(_, expected)| expected).collect()
}

fn expected_path(path: &Path) -> std::path::PathBuf {
    let name = path.file_name().unwrap().to_str().unwrap();
    path.with_file_name(format!("{}.expected.jsonl", name.strip_suffix(".log").unwrap_or(name)))
}

fn assert_batch(batch: &Batch<'_>, expected: &Value, place: &str) {
    let (mut scratch, limits) = (Scratch::new(), Limits::default());
    let legacy = batch.magic() < 2;
    let number = |field: &str| expected[field].as_i64();
    assert_eq!(Some(batch.position() as i64), number("position"), "{place}");
    assert_eq!(Some(batch.size() as i64), number("size"), "{place}");
    assert_eq!(batch.first_offset(&mut scratch, &limits).ok(), number("baseOffset"), "{place}");
    assert_eq!(Some(batch.last_offset()), number("lastOffset"), "{place}");
    assert_eq!(batch.record_count().filter(|_| !legacy).map(i64::from), number("count"), "{place}");
    assert_eq!(Some(i64::from(batch.partition_leader_epoch())), number("partitionLeaderEpoch"), "{place}");
    assert_eq!(Some(i64::from(batch.magic())), number("magic"), "{place}");
    assert_eq!(Some(i64::from(batch.crc())), number("crc"), "{place}");
    assert_eq!(Some(batch.verify_crc().is_ok()), expected["crcValid"].as_bool(), "{place}");
    assert_eq!(Some(i64::from(batch.attributes().bits())), number("attributes"), "{place}");
    assert_eq!(Some(batch.compression().unwrap().name()), expected["compression"].as_str(), "{place}");
    assert_eq!(Some(timestamp_type_name(batch.timestamp_type())), expected["timestampType"].as_str(), "{place}");
    assert_eq!(Some(batch.base_timestamp()).filter(|_| !legacy), number("baseTimestamp"), "{place}");
    assert_eq!(Some(batch.max_timestamp()), number("maxTimestamp"), "{place}");
    assert_eq!(Some(batch.producer_id()), number("producerId"), "{place}");
    assert_eq!(Some(i64::from(batch.producer_epoch())), number("producerEpoch"), "{place}");
    assert_eq!(Some(i64::from(batch.base_sequence())), number("baseSequence"), "{place}");
    assert_eq!(Some(i64::from(batch.last_sequence())), number("lastSequence"), "{place}");
    assert_eq!(Some(batch.is_transactional()), expected["isTransactional"].as_bool(), "{place}");
    assert_eq!(Some(batch.is_control()), expected["isControl"].as_bool(), "{place}");
    assert_eq!(batch.delete_horizon_ms(), number("deleteHorizonMs"), "{place}");
}

fn assert_record(batch: &Batch<'_>, record: &Record<'_>, expected: &Value, place: &str) {
    assert_eq!(Some(record.offset()), expected["offset"].as_i64(), "{place}");
    assert_eq!(Some(record.timestamp()), expected["timestamp"].as_i64(), "{place}");
    assert_eq!(Some(timestamp_type_name(record.timestamp_type())), expected["timestampType"].as_str(), "{place}");
    assert_eq!(base64(record.key()), expected["key"], "{place}");
    assert_eq!(base64(record.value()), expected["value"], "{place}");
    assert_eq!(headers_json(record).unwrap(), expected["headers"], "{place}");
    assert_eq!(Some(i64::from(record.sequence())), expected["sequence"].as_i64(), "{place}");
    record.verify_crc().unwrap_or_else(|error| panic!("{place}: {error}"));
    if batch.magic() < 2 {
        let len = kbat::format::message_len(batch.magic(), record.key(), record.value());
        assert_eq!(Some(len as u64), expected["sizeInBytes"].as_u64(), "{place}");
    }
    let Some(control_type) = expected["controlType"].as_str() else { return };
    let control = ControlRecord::parse(record).unwrap();
    assert_eq!(control.type_name(), control_type, "{place}");
    if let Some(epoch) = expected["coordinatorEpoch"].as_i64() {
        let found = match control {
            ControlRecord::Abort { coordinator_epoch } | ControlRecord::Commit { coordinator_epoch } => {
                coordinator_epoch
            }
            other => panic!("{place}: {other:?}"),
        };
        assert_eq!(i64::from(found), epoch, "{place}");
    }
}

/// Compares one file with its answers.
fn assert_file(path: &Path, seen: &mut Seen) {
    let bytes = std::fs::read(path).unwrap();
    let lines = json_lines(&expected_path(path));
    let expected = by_batch(&lines);
    let (mut scratch, limits) = (Scratch::new(), Limits::default());
    let mut walk = kbat::batches(&bytes);
    let mut found = 0;
    for batch in walk.by_ref() {
        let place = format!("{} batch {found}", path.display());
        let batch = batch.unwrap_or_else(|error| panic!("{place}: {error}"));
        let Some(expected) = expected.get(found) else { panic!("{place}: Kafka has fewer batches") };
        found += 1;
        if let Some(line) = expected.batch {
            assert_batch(&batch, line, &place);
        }
        if expected.error.is_some() {
            seen.errors += 1;
            assert_documented_error(path, &batch);
            if expected.batch.is_none() {
                continue; // linked blocks: Kafka has no answer
            }
        }
        let mut count = 0;
        let records = batch.records(&mut scratch, &limits).unwrap_or_else(|error| panic!("{place}: {error}"));
        for record in records {
            let record = match record {
                Ok(record) => record,
                Err(_) if expected.error.is_some() => break,
                Err(error) => panic!("{place}: {error}"),
            };
            let line = expected.records.get(count).unwrap_or_else(|| panic!("{place}: Kafka has {count} records"));
            assert_record(&batch, &record, line, &format!("{place} record {count}"));
            count += 1;
        }
        assert_eq!(count, expected.records.len(), "{place}");
        seen.records += count;
    }
    assert_eq!(found, expected.len(), "{}", path.display());
    let end = lines.last().unwrap();
    assert_eq!(walk.position(), end["validBytes"].as_u64().unwrap(), "{}", path.display());
    assert_eq!(bytes.len() as u64, end["fileSize"].as_u64().unwrap(), "{}", path.display());
    if lines.iter().any(|line| line["stage"] == "framing") {
        seen.errors += 1;
        assert!(walk.remainder().iter().all(|&byte| byte == 0), "{}", path.display());
    }
    seen.batches += found;
    seen.files += 1;
}

/// The three batches that Kafka can't read: one in an unsupported form, one that breaks a rule, one with a flipped bit.
fn assert_documented_error(path: &Path, batch: &Batch<'_>) {
    let case = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
    let records = crate::data::records(batch);
    match case {
        // tested by `corpus_linked_lz4_blocks_are_read`
        "k0102-kp135-lz4-wire" => assert!(records.is_ok(), "{records:?}"),
        "k0822-nested-wire" => {
            let error = records.unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::InvalidWrapper(_)), "{error}");
        }
        "crash-flip" => {
            assert!(matches!(batch.verify_crc().unwrap_err().kind(), ErrorKind::Crc { .. }));
            let error = records.unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::Decompression { .. }), "{error}");
        }
        _ => panic!("{} has an error that no rule names", path.display()),
    }
}

fn walk(folder: &str) -> Seen {
    let mut seen = Seen::default();
    for path in files(&data_dir().join(folder), &["log", "checkpoint"]) {
        if path.parent().unwrap().ends_with("log-dir") {
            continue; // the copy of another case, and checkpoints that are text
        }
        assert_file(&path, &mut seen);
    }
    seen
}

#[test]
fn corpus_of_a_current_broker_reads_as_in_kafka() {
    assert_eq!(walk("corpus"), Seen { files: 242, batches: 4147, records: 17752, errors: 2 });
}

#[test]
fn corpus_of_old_brokers_and_other_clients_reads_as_in_kafka() {
    assert_eq!(walk("corpus-legacy"), Seen { files: 209, batches: 2347, records: 8632, errors: 2 });
}

/// kafka-python 1.3.5 sent a set of linked LZ4 blocks, which brokers rejected, so there is no answer of Kafka. The
/// content size in the frame and the checksum of every message show that it is read correctly.
#[test]
fn corpus_linked_lz4_blocks_are_read() {
    let bytes = file("corpus-legacy/k0102-kp135-lz4-wire/00000000000000000000.log");
    let batch = kbat::batches(&bytes).nth(2).unwrap().unwrap();
    assert_eq!(batch.position(), 608);
    let frame = batch.stored_records();
    assert_eq!(frame[4..6], [0x48, 0x40], "linked blocks and a content size");
    let content_size = u64::from_le_bytes(frame[6..14].try_into().unwrap());
    let (mut scratch, limits) = (Scratch::new(), Limits::default());
    let mut len = 0;
    for (index, record) in batch.records(&mut scratch, &limits).unwrap().enumerate() {
        let record = record.unwrap();
        record.verify_crc().unwrap();
        assert_eq!(record.offset(), index as i64);
        len += kbat::format::message_len(1, record.key(), record.value()) as u64;
    }
    assert_eq!(len, content_size);
    assert!(len > 65536, "one block would not be linked to anything");
}
