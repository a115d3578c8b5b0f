//! Compares batches from the specifications in `corpus/writes` with those of Kafka's `MemoryRecordsBuilder`.

use std::path::Path;

use kbat::{Batch, BatchBuilder, Compression, ControlRecord};
use serde_json::Value;

use crate::data::{all_records, data_dir, files, from_base64, json_lines, records};

/// A builder with the settings of one batch of a specification.
fn builder(spec: &Value) -> BatchBuilder {
    let number = |field: &str| spec[field].as_i64();
    let mut builder = BatchBuilder::new()
        .magic(number("magic").unwrap() as u8)
        .compression(spec["codec"].as_str().unwrap().parse().unwrap())
        .base_offset(number("baseOffset").unwrap())
        .transactional(spec["transactional"] == true)
        .control(spec["control"] == true);
    if let Some(level) = number("level") {
        builder = builder.level(level as i32);
    }
    if let Some(timestamp) = number("logAppendTime") {
        builder = builder.log_append_time(timestamp);
    }
    if let Some(last_offset) = number("lastOffset") {
        builder = builder.last_offset(last_offset);
    }
    if let Some(epoch) = number("partitionLeaderEpoch") {
        builder = builder.partition_leader_epoch(epoch as i32);
    }
    if let Some(producer_id) = number("producerId") {
        let sequence = number("baseSequence").unwrap_or(-1) as i32;
        builder = builder.producer(producer_id, number("producerEpoch").unwrap() as i16, sequence);
    }
    if let Some(horizon) = number("deleteHorizonMs") {
        builder = builder.delete_horizon_ms(horizon);
    }
    builder
}

fn append(builder: &mut BatchBuilder, record: &Value) {
    let timestamp = record["timestamp"].as_i64().unwrap();
    if let Some(control) = control_record(record) {
        return builder.append_control(timestamp, &control).unwrap();
    }
    let offset = record["offset"].as_i64().unwrap();
    let (key, value) = (from_base64(&record["key"]), from_base64(&record["value"]));
    let pairs: Vec<(Vec<u8>, Option<Vec<u8>>)> = record["headers"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|pair| (pair[0].as_str().unwrap().as_bytes().to_vec(), from_base64(&pair[1])))
        .collect();
    let headers: Vec<kbat::format::NewHeader<'_>> =
        pairs.iter().map(|(key, value)| (key.as_slice(), value.as_deref())).collect();
    builder.append_at(offset, timestamp, key.as_deref(), value.as_deref(), &headers).unwrap();
}

fn control_record(record: &Value) -> Option<ControlRecord> {
    let number = |field: &str| record[field].as_i64().unwrap();
    Some(match record["controlType"].as_str()? {
        "ABORT" => ControlRecord::Abort { coordinator_epoch: number("coordinatorEpoch") as i32 },
        "COMMIT" => ControlRecord::Commit { coordinator_epoch: number("coordinatorEpoch") as i32 },
        "LEADER_CHANGE" => ControlRecord::LeaderChange {
            leader_id: number("leaderId") as i32,
            voters: Vec::new(),
            granting_voters: Vec::new(),
        },
        "SNAPSHOT_HEADER" => {
            ControlRecord::SnapshotHeader { last_contained_log_timestamp: number("lastContainedLogTimestamp") }
        }
        "SNAPSHOT_FOOTER" => ControlRecord::SnapshotFooter,
        "KRAFT_VERSION" => ControlRecord::KRaftVersion { kraft_version: number("kraftVersion") as i16 },
        other => panic!("{other}"),
    })
}

/// The bytes of all batches of a specification.
fn build(path: &Path) -> Vec<u8> {
    let spec = &json_lines(path)[0];
    let mut bytes = Vec::new();
    for batch in spec["batches"].as_array().unwrap() {
        let mut builder = builder(batch);
        for record in batch["records"].as_array().unwrap() {
            append(&mut builder, record);
        }
        let (exact, most, before) = (builder.size(), builder.estimated_size(), bytes.len());
        builder.finish_into(&mut bytes).unwrap();
        let len = bytes.len() - before;
        assert!(len <= most, "{}: {len} bytes, estimated {most}", path.display());
        if batch["codec"] == "none" {
            assert_eq!((len, len), (exact, most), "{}", path.display());
        }
    }
    bytes
}

fn assert_same_header(ours: &Batch<'_>, kafkas: &Batch<'_>, place: &str) {
    let fields = |batch: &Batch<'_>| {
        (
            (batch.base_offset(), batch.last_offset(), batch.record_count(), batch.partition_leader_epoch()),
            (batch.magic(), batch.attributes(), batch.base_timestamp(), batch.max_timestamp()),
            (batch.producer_id(), batch.producer_epoch(), batch.base_sequence(), batch.last_sequence()),
        )
    };
    assert_eq!(fields(ours), fields(kafkas), "{place}");
    ours.verify_crc().unwrap();
}

#[test]
fn writes_of_every_specification_equal_those_of_kafka() {
    let (mut uncompressed, mut compressed) = (0, 0);
    let specs = files(&data_dir().join("corpus/writes"), &["json"]);
    assert_eq!(specs.len(), 84);
    for path in &specs {
        let place = path.display().to_string();
        let ours = build(path);
        let kafkas = std::fs::read(place.replace(".spec.json", ".log")).unwrap();
        if kbat::batches(&kafkas).all(|batch| batch.unwrap().compression().unwrap() == Compression::None) {
            assert!(ours == kafkas, "{place}: other bytes");
            uncompressed += 1;
            continue;
        }
        let pairs = kbat::batches(&ours).map(Result::unwrap).zip(kbat::batches(&kafkas).map(Result::unwrap));
        for (ours, kafkas) in pairs {
            assert_same_header(&ours, &kafkas, &place);
            assert_eq!(records(&ours).unwrap(), records(&kafkas).unwrap(), "{place}");
        }
        assert_eq!(kbat::batches(&ours).count(), kbat::batches(&kafkas).count(), "{place}");
        assert_eq!(all_records(&ours).unwrap(), all_records(&kafkas).unwrap(), "{place}");
        compressed += 1;
    }
    assert!(uncompressed >= 20 && compressed >= 60, "{uncompressed} and {compressed}");
}
