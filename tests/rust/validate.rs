//! A broker's answers to produce requests: Kafka's `LogValidatorTest` (format.md test 107) and the checks before it
//! (format.md 5.3). `tests/python/test_kafka_validate.py` compares the same code with Kafka's own classes.

use kbat::broker::validate::{Accepted, AppendOrigin, ErrorCode, Refusal, Validation, ValidationSettings, validate};
use kbat::{BatchBuilder, Compression, Limits, TimestampType};

use crate::data::{data_dir, file, files, first, records};
use crate::raw::{V2, fix_crc, varint};

const NOW: i64 = 1_700_000_000_000;

fn settings() -> ValidationSettings {
    ValidationSettings { now_ms: NOW, base_offset: 1234, partition_leader_epoch: 7, ..ValidationSettings::default() }
}

fn answer(bytes: &[u8], settings: &ValidationSettings) -> Validation {
    validate(bytes, settings, &Limits::default()).unwrap()
}

fn accepted(bytes: &[u8], settings: &ValidationSettings) -> Accepted {
    match answer(bytes, settings) {
        Validation::Accepted(accepted) => accepted,
        Validation::Refused(refusal) => panic!("{refusal}"),
    }
}

fn refused(bytes: &[u8], settings: &ValidationSettings) -> Refusal {
    match answer(bytes, settings) {
        Validation::Accepted(accepted) => panic!("{accepted:?}"),
        Validation::Refused(refusal) => refusal,
    }
}

/// Checks that a request is rejected with a code, and a message that contains some words.
fn check_refusal(bytes: &[u8], settings: &ValidationSettings, code: ErrorCode, words: &str) -> Refusal {
    let refusal = refused(bytes, settings);
    assert_eq!(refusal.code, code, "{refusal}");
    assert!(refusal.message.contains(words), "{refusal}");
    refusal
}

fn built(builder: BatchBuilder, timestamps: &[i64]) -> Vec<u8> {
    let (mut builder, mut bytes) = (builder, Vec::new());
    for &timestamp in timestamps {
        builder.append(timestamp, Some(b"key"), Some(b"value")).unwrap();
    }
    builder.finish_into(&mut bytes).unwrap();
    bytes
}

fn three() -> Vec<u8> {
    built(BatchBuilder::new(), &[NOW, NOW + 5, NOW + 3])
}

#[test]
fn accepted_batches_get_offsets_and_epoch_in_place() {
    let bytes = three();
    let accepted = accepted(&bytes, &settings());
    let mut expected = bytes.clone();
    expected[..8].copy_from_slice(&1234_i64.to_be_bytes());
    expected[12..16].copy_from_slice(&7_i32.to_be_bytes());
    assert_eq!(accepted.bytes, expected);
    assert_eq!((accepted.next_offset, accepted.max_timestamp), (1237, NOW + 5));
    assert_eq!((accepted.shallow_offset_of_max_timestamp, accepted.is_rebuilt), (1236, false));
    // the bytes of a truncated batch are dropped
    let with_tail = [&bytes[..], &bytes[..bytes.len() - 1]].concat();
    assert_eq!(self::accepted(&with_tail, &settings()), accepted);
    assert_eq!(accepted.valid_len, bytes.len());
}

#[test]
fn log_append_time_is_given_to_every_batch() {
    let settings = ValidationSettings { timestamp_type: TimestampType::LogAppendTime, ..settings() };
    for (compression, target) in [
        (Compression::None, None),
        (Compression::Gzip, None),
        (Compression::Gzip, Some(Compression::Zstd)),
        (Compression::None, Some(Compression::Lz4)),
    ] {
        let bytes = built(BatchBuilder::new().compression(compression), &[1, 2, 3]);
        let settings = ValidationSettings { compression: target, ..settings };
        let accepted = accepted(&bytes, &settings);
        let batch = first(&accepted.bytes);
        batch.verify_crc().unwrap();
        assert_eq!(batch.timestamp_type(), Some(TimestampType::LogAppendTime));
        assert_eq!(batch.compression().unwrap(), target.unwrap_or(compression));
        assert!(records(&batch).unwrap().iter().all(|record| record.timestamp == NOW));
        assert_eq!((accepted.max_timestamp, accepted.is_rebuilt), (NOW, target.is_some()));
    }
}

#[test]
fn another_codec_rebuilds_and_another_level_does_not() {
    let bytes = built(BatchBuilder::new().compression(Compression::Gzip).level(1), &[NOW; 3]);
    let gzip = ValidationSettings { compression: Some(Compression::Gzip), level: Some(9), ..settings() };
    assert_eq!(accepted(&bytes, &gzip).bytes[61..], bytes[61..]);
    let none = ValidationSettings { compression: Some(Compression::None), ..settings() };
    let plain = accepted(&bytes, &none);
    assert!(plain.is_rebuilt);
    assert_eq!(first(&plain.bytes).base_offset(), Some(1234));
    assert_eq!(records(&first(&plain.bytes)).unwrap().len(), 3);
}

#[test]
fn offsets_and_counts_must_agree() {
    for (last_offset_delta, record_count, words) in [
        (2, 3, ""),
        (0, 3, "Inconsistent batch offset range"),
        (15, 3, "Inconsistent batch offset range"),
        (-3, 3, "invalid offset range"),
        (5, 6, "MISSING"),
        (1, 2, "trailing bytes"),
        (2, 0, "Invalid reported count"),
    ] {
        let mut bytes = three();
        bytes[23..27].copy_from_slice(&i32::to_be_bytes(last_offset_delta));
        bytes[57..61].copy_from_slice(&i32::to_be_bytes(record_count));
        fix_crc(&mut bytes);
        match words {
            "" => drop(accepted(&bytes, &settings())),
            "MISSING" => {
                drop(check_refusal(&bytes, &settings(), ErrorCode::InvalidRecord, "declares a record count of 6"));
            }
            words => drop(check_refusal(&bytes, &settings(), ErrorCode::InvalidRecord, words)),
        }
    }
}

#[test]
fn requests_hold_one_batch_of_magic_2() {
    let any = ValidationSettings { request_version: None, ..settings() };
    let two = [three(), three()].concat();
    check_refusal(&two, &settings(), ErrorCode::InvalidRecord, "exactly one record batch");
    check_refusal(&two, &any, ErrorCode::InvalidRecord, "more than one batch");
    check_refusal(&[], &settings(), ErrorCode::InvalidRecord, "at least one record batch");
    check_refusal(&[], &any, ErrorCode::InvalidRecord, "no batches at all");
    let old = built(BatchBuilder::new().magic(1), &[NOW; 2]);
    check_refusal(&old, &settings(), ErrorCode::InvalidRecord, "magic version 2");
    let converted = accepted(&old, &any);
    assert_eq!((first(&converted.bytes).magic(), converted.next_offset, converted.is_rebuilt), (2, 1236, true));
    let zstd = built(BatchBuilder::new().compression(Compression::Zstd), &[NOW]);
    let version = |version| ValidationSettings { request_version: Some(version), ..settings() };
    check_refusal(&zstd, &version(6), ErrorCode::UnsupportedCompressionType, "ZStandard");
    accepted(&zstd, &version(7));
}

#[test]
fn damage_is_corrupt() {
    let mut bytes = three();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let refusal = check_refusal(&bytes, &settings(), ErrorCode::CorruptMessage, "stored crc");
    assert_eq!((refusal.code.code(), refusal.position.byte), (2, Some(17)));
    let mut bytes = three();
    bytes[16] = 3;
    check_refusal(&bytes, &settings(), ErrorCode::CorruptMessage, "magic 3");
    bytes[8..12].copy_from_slice(&5_i32.to_be_bytes());
    check_refusal(&bytes, &settings(), ErrorCode::CorruptMessage, "batch length 5");
    // a file may end in zeros, a request may not
    let zeros = [&three()[..], &[0; 40]].concat();
    check_refusal(&zeros, &settings(), ErrorCode::CorruptMessage, "Record size 0");
}

#[test]
fn sizes_are_bounded() {
    let bytes = three();
    let most = |max_message_bytes| ValidationSettings { max_message_bytes, ..settings() };
    accepted(&bytes, &most(bytes.len()));
    check_refusal(&bytes, &most(bytes.len() - 1), ErrorCode::MessageTooLarge, "exceeds the maximum configured");
    // a rebuilt batch may be too large although the original was not
    let compressed = built(BatchBuilder::new().compression(Compression::Gzip), &[NOW; 50]);
    let unpacked = ValidationSettings { compression: Some(Compression::None), ..most(compressed.len()) };
    check_refusal(&compressed, &unpacked, ErrorCode::MessageTooLarge, "Message batch size");
    let segment = ValidationSettings { segment_bytes: bytes.len() - 1, ..settings() };
    check_refusal(&bytes, &segment, ErrorCode::RecordListTooLarge, "segment size");
}

#[test]
fn clients_write_no_control_batches_and_no_offsets_of_their_own() {
    let marker =
        kbat::format::end_transaction_marker(0, NOW, -1, 5, 6, &kbat::ControlRecord::Commit { coordinator_epoch: 0 });
    let marker = marker.unwrap();
    check_refusal(&marker, &settings(), ErrorCode::InvalidRecord, "control records");
    let coordinator = ValidationSettings { origin: AppendOrigin::Coordinator, ..settings() };
    accepted(&marker, &coordinator);
    // a topic's codec does not apply to markers
    let gzip = ValidationSettings { compression: Some(Compression::Gzip), ..coordinator };
    assert_eq!(accepted(&marker, &gzip).bytes, accepted(&marker, &coordinator).bytes);
    let elsewhere = built(BatchBuilder::new().base_offset(3), &[NOW]);
    check_refusal(&elsewhere, &settings(), ErrorCode::InvalidRecord, "should be 0, but it is 3");
    accepted(&elsewhere, &coordinator);
    let raft = ValidationSettings { origin: AppendOrigin::RaftLeader, ..settings() };
    check_refusal(&elsewhere, &raft, ErrorCode::InvalidRecord, "expected 7 but the batch has -1");
    let mut idempotent = built(BatchBuilder::new().producer(5, 0, 0), &[NOW]);
    accepted(&idempotent, &settings());
    idempotent[53..57].copy_from_slice(&(-1_i32).to_be_bytes());
    fix_crc(&mut idempotent);
    check_refusal(&idempotent, &settings(), ErrorCode::InvalidRecord, "Invalid sequence number -1");
}

#[test]
fn records_at_fault_are_listed() {
    let mut builder = BatchBuilder::new();
    for key in [None, Some(&b"k"[..]), None, None, None] {
        builder.append(NOW, key, Some(b"v")).unwrap();
    }
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    let compacted = ValidationSettings { compacted: true, ..settings() };
    for codec in Compression::ALL {
        let options = kbat::broker::convert::ConvertOptions { compression: Some(codec), ..Default::default() };
        let mut compressed = Vec::new();
        kbat::broker::convert::convert(&bytes, 2, &options, &Limits::default(), &mut compressed).unwrap();
        let refusal = check_refusal(&compressed, &compacted, ErrorCode::InvalidRecord, "4 record errors in total");
        let indexes: Vec<u32> = refusal.record_errors.iter().map(|error| error.index).collect();
        assert_eq!(indexes, [0, 2, 3, 4]);
        assert_eq!(refusal.record_errors[0].message, "Compacted topic cannot accept message without key");
        assert_eq!(refusal.position.record, Some(0));
    }
}

#[test]
fn timestamps_too_far_away_are_refused_and_win() {
    let bounds = ValidationSettings { timestamp_before_max_ms: 1000, timestamp_after_max_ms: 2000, ..settings() };
    let bytes = built(BatchBuilder::new(), &[NOW - 1001, NOW - 1000, NOW + 2000, NOW + 2001, -1]);
    let refusal = check_refusal(&bytes, &bounds, ErrorCode::InvalidTimestamp, "invalid timestamp");
    let found: Vec<_> = refusal.record_errors.iter().map(|error| (error.index, error.message.clone())).collect();
    let text = |timestamp: i64, offset: i64| {
        format!(
            "Timestamp {timestamp} of message with offset {offset} is out of range. The timestamp should be within [{}, {}]",
            NOW - 1000,
            NOW + 2000
        )
    };
    assert_eq!(found, [(0, text(NOW - 1001, 0)), (3, text(NOW + 2001, 3))]);
    let mut builder = BatchBuilder::new();
    builder.append(NOW, None, None).unwrap();
    builder.append(NOW - 1001, Some(b"k"), None).unwrap();
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    let refusal = refused(&bytes, &ValidationSettings { compacted: true, ..bounds });
    assert_eq!((refusal.code, refusal.record_errors.len()), (ErrorCode::InvalidTimestamp, 2));
    // by default, timestamps up to an hour in the future are accepted
    check_refusal(&built(BatchBuilder::new(), &[NOW + 3_600_001]), &settings(), ErrorCode::InvalidTimestamp, "");
    accepted(&built(BatchBuilder::new(), &[NOW + 3_600_000]), &settings());
}

#[test]
fn producers_do_not_give_log_append_times() {
    let bytes = built(BatchBuilder::new().log_append_time(NOW), &[NOW]);
    let appending = ValidationSettings { timestamp_type: TimestampType::LogAppendTime, ..settings() };
    check_refusal(&bytes, &appending, ErrorCode::InvalidTimestamp, "");
    // on a topic with CreateTime, the type is not checked if the timestamp is valid
    assert_eq!(first(&accepted(&bytes, &settings()).bytes).timestamp_type(), Some(TimestampType::CreateTime));
}

#[test]
fn offsets_inside_a_compressed_batch_count_from_zero() {
    let record = |delta: i32| {
        let body = [&[0][..], &varint(0), &varint(delta), &varint(-1), &varint(-1), &varint(0)].concat();
        [varint(body.len() as i32), body].concat()
    };
    let plain = V2::of(&[record(0), record(5)]).bytes();
    accepted(&plain, &settings());
    let stream = miniz(&plain[61..]);
    let mut batch = V2::compressed(crate::raw::GZIP, &stream);
    (batch.record_count, batch.last_offset_delta) = (2, 1);
    check_refusal(&batch.bytes(), &settings(), ErrorCode::UnknownServerError, "count from 0");
    let unpacked = ValidationSettings { compression: Some(Compression::None), ..settings() };
    let rebuilt = accepted(&batch.bytes(), &unpacked);
    let offsets: Vec<i64> = records(&first(&rebuilt.bytes)).unwrap().iter().map(|record| record.offset).collect();
    assert_eq!(offsets, [1234, 1235]);
}

/// A broker does not check the lengths of compressed records if the fields fit.
#[test]
fn wrong_record_lengths_in_a_compressed_batch_are_not_seen() {
    let body = [&[0][..], &varint(0), &varint(0), &varint(-1), &varint(-1), &varint(0)].concat();
    let wrong = [varint(body.len() as i32 + 1), body].concat();
    let batch = V2::compressed(crate::raw::GZIP, &miniz(&wrong)).bytes();
    accepted(&batch, &settings());
    assert!(records(&first(&batch)).is_err());
    check_refusal(&V2::of(&[wrong]).bytes(), &settings(), ErrorCode::InvalidRecord, "");
}

#[test]
fn linked_lz4_blocks_are_not_for_brokers() {
    let mut bytes = built(BatchBuilder::new().compression(Compression::Lz4), &[NOW]);
    accepted(&bytes, &settings());
    bytes[65] &= !0x20;
    fix_crc(&mut bytes);
    check_refusal(&bytes, &settings(), ErrorCode::UnknownServerError, "Dependent block stream");
}

#[test]
fn a_batch_without_records_is_not_refused_for_its_frame() {
    let linked = [0x04, 0x22, 0x4d, 0x18, 0x40, 0x40, 0xc0, 0, 0, 0, 0];
    let batch = V2 { record_count: 0, ..V2::compressed(crate::raw::LZ4, &linked) };
    check_refusal(&batch.bytes(), &settings(), ErrorCode::InvalidRecord, "count");
    // a coordinator's count is not checked, and Kafka does not decompress a batch without records
    let coordinator = ValidationSettings { origin: AppendOrigin::Coordinator, ..settings() };
    let answer = answer(&batch.bytes(), &coordinator);
    assert!(!format!("{answer:?}").contains("Dependent block stream"), "{answer:?}");
}

#[test]
fn older_formats_have_no_transactions() {
    let bytes = built(BatchBuilder::new().producer(5, 0, 0).transactional(true), &[NOW]);
    let old = ValidationSettings { magic: 1, ..settings() };
    check_refusal(&bytes, &old, ErrorCode::UnsupportedForMessageFormat, "Transactional records");
    let bytes = built(BatchBuilder::new().producer(5, 0, 0), &[NOW]);
    check_refusal(&bytes, &old, ErrorCode::UnsupportedForMessageFormat, "Idempotent records");
}

#[test]
fn uncompressed_v1_messages_get_offsets_one_by_one() {
    let any = ValidationSettings { request_version: None, magic: 1, ..settings() };
    let bytes = built(BatchBuilder::new().magic(1), &[NOW, NOW + 2, NOW + 1]);
    let stored = accepted(&bytes, &any);
    let offsets: Vec<_> = kbat::batches(&stored.bytes).map(|batch| batch.unwrap().last_offset()).collect();
    assert_eq!(offsets, [1234, 1235, 1236]);
    assert_eq!((stored.max_timestamp, stored.shallow_offset_of_max_timestamp), (NOW + 2, 1235));
    let appending = ValidationSettings { timestamp_type: TimestampType::LogAppendTime, ..any };
    assert_eq!(accepted(&bytes, &appending).shallow_offset_of_max_timestamp, 1234);
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    for (settings, words) in [
        (ValidationSettings { level: Some(3), ..settings() }, "a compression level needs a codec"),
        (ValidationSettings { base_offset: -1, ..settings() }, "negative"),
        (ValidationSettings { magic: 4, ..settings() }, "magic 4"),
    ] {
        let error = validate(&three(), &settings, &Limits::default()).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// The stored batches of the tests' clients, without the fields that the broker set, are accepted again and stored
/// identically.
#[test]
fn stored_batches_of_the_corpora_are_accepted_again() {
    let mut checked = 0;
    for path in files(&data_dir().join("corpus"), &["log"]) {
        let bytes = std::fs::read(&path).unwrap();
        for batch in kbat::batches(&bytes).map_while(Result::ok) {
            let whole = batch.record_count() == Some(batch.last_offset().wrapping_sub(batch.header_base()) as i32 + 1);
            if batch.magic() < 2 || !whole || batch.verify_crc().is_err() || batch.delete_horizon_ms().is_some() {
                continue;
            }
            let mut sent = batch.bytes().to_vec();
            sent[..8].fill(0);
            let settings = ValidationSettings {
                origin: if batch.is_control() { AppendOrigin::Coordinator } else { AppendOrigin::Client },
                base_offset: batch.header_base(),
                partition_leader_epoch: batch.partition_leader_epoch(),
                timestamp_after_max_ms: i64::MAX,
                now_ms: batch.max_timestamp(),
                ..ValidationSettings::default()
            };
            if batch.timestamp_type() == Some(TimestampType::CreateTime) && batch.size() <= settings.max_message_bytes {
                assert_eq!(accepted(&sent, &settings).bytes, batch.bytes(), "{}", path.display());
                checked += 1;
            }
        }
    }
    assert!(checked > 1_000, "{checked}");
}

trait HeaderBase {
    fn header_base(&self) -> i64;
}

impl HeaderBase for kbat::Batch<'_> {
    fn header_base(&self) -> i64 {
        self.base_offset().unwrap_or(0)
    }
}

/// A gzip stream of one stored block.
fn miniz(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::none());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn every_truncation_and_flip_has_an_answer() {
    let bytes = file("corpus/codec-none/00000000000000000000.log");
    let batch = kbat::batches(&bytes).next().unwrap().unwrap().bytes().to_vec();
    for len in 0..batch.len() {
        refused(&batch[..len], &settings());
    }
    for bit in 0..batch.len() * 8 {
        let mut damaged = batch.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let is_length = (8..12).contains(&(bit / 8));
        if (0..8).contains(&(bit / 8)) || is_length || bit / 8 >= 16 {
            refused(&damaged, &settings());
        }
    }
}
