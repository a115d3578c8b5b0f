//! Batches of v2, after Kafka's `DefaultRecordBatchTest`.

use kbat::format::NewHeader;
use kbat::{BatchBuilder, Compression, ControlRecord, ErrorKind, TimestampType};

use crate::data::{first, records};
use crate::raw::{CONTROL, LOG_APPEND_TIME, Shape, TRANSACTIONAL, V2, fix_crc};

const SEVEN_DAYS: i64 = 7 * 86_400_000;

fn build(builder: BatchBuilder) -> Vec<u8> {
    let mut builder = builder;
    for (timestamp, key, value) in [(1, b"a", b"v"), (2, b"b", b"v"), (3, b"c", b"v")] {
        builder.append(timestamp, Some(key), Some(value)).unwrap();
    }
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    bytes
}

/// Edge case 15. After `testWriteEmptyHeader`: compaction keeps the header of a batch for its producer's last sequence.
#[test]
fn batch_without_records_keeps_its_header() {
    for bits in [0, LOG_APPEND_TIME, TRANSACTIONAL, CONTROL, TRANSACTIONAL | CONTROL | LOG_APPEND_TIME] {
        let batch = V2 {
            base_offset: 37,
            attributes: bits,
            last_offset_delta: 22,
            base_timestamp: -1,
            max_timestamp: SEVEN_DAYS,
            producer_id: 23,
            producer_epoch: 15,
            base_sequence: 983,
            record_count: 0,
            records: Vec::new(),
        };
        let bytes = batch.bytes();
        let batch = first(&bytes);
        batch.verify_crc().unwrap();
        assert_eq!(
            (batch.size(), batch.base_offset(), batch.last_offset(), batch.next_offset()),
            (61, Some(37), 59, 60)
        );
        assert_eq!((batch.base_sequence(), batch.last_sequence()), (983, 983 + 22));
        assert_eq!((batch.base_timestamp(), batch.max_timestamp()), (-1, SEVEN_DAYS));
        assert_eq!((batch.producer_id(), batch.producer_epoch(), batch.record_count()), (23, 15, Some(0)));
        assert_eq!(batch.is_transactional(), bits & TRANSACTIONAL != 0);
        assert_eq!(batch.is_control(), bits & CONTROL != 0);
        let log_append = batch.timestamp_type() == Some(TimestampType::LogAppendTime);
        assert_eq!(log_append, bits & LOG_APPEND_TIME != 0);
        assert!(records(&batch).unwrap().is_empty());
    }
}

/// After `buildDefaultRecordBatch` and `…WithProducerId`.
#[test]
fn batch_built_with_and_without_producer_has_kafkas_fields() {
    let bytes = build(BatchBuilder::new().base_offset(1_234_567));
    let batch = first(&bytes);
    batch.verify_crc().unwrap();
    assert_eq!((batch.base_offset(), batch.last_offset(), batch.max_timestamp()), (Some(1_234_567), 1_234_569, 3));
    assert_eq!(
        (batch.producer_id(), batch.producer_epoch()),
        (kbat::format::NO_PRODUCER_ID, kbat::format::NO_PRODUCER_EPOCH)
    );
    assert_eq!((batch.base_sequence(), batch.last_sequence()), (kbat::format::NO_SEQUENCE, kbat::format::NO_SEQUENCE));
    assert_eq!(batch.partition_leader_epoch(), kbat::format::NO_PARTITION_LEADER_EPOCH);
    assert!(records(&batch).unwrap().iter().all(|record| record.sequence == kbat::format::NO_SEQUENCE));

    let bytes = build(BatchBuilder::new().producer(23, 15, 983));
    assert_eq!((first(&bytes).base_sequence(), first(&bytes).last_sequence()), (983, 985));
}

/// Edge case 22. After `buildDefaultRecordBatchWithSequenceWrapAround` (KAFKA-7692).
#[test]
fn batch_sequence_at_its_end_wraps_to_zero() {
    let bytes = build(BatchBuilder::new().producer(23, 15, i32::MAX - 1));
    let batch = first(&bytes);
    assert_eq!((batch.base_sequence(), batch.last_sequence()), (i32::MAX - 1, 0));
    let sequences: Vec<_> = records(&batch).unwrap().iter().map(|record| record.sequence).collect();
    assert_eq!(sequences, [i32::MAX - 1, i32::MAX, 0]);
}

/// After `testSizeInBytes`.
#[test]
fn batch_size_is_known_before_it_is_built() {
    let header: NewHeader<'_> = (b"foo", Some(b"bar"));
    let many = [header, (b"", None), (b"baz", Some(b""))];
    let records: [Shape<'_>; 5] = [
        (Some(b"key"), Some(b"value"), &[]),
        (None, Some(b"value"), &many[..1]),
        (Some(b"key"), None, &many),
        (None, None, &[]),
        (Some(b""), Some(b""), &[]),
    ];
    let mut builder = BatchBuilder::new();
    let mut len = 0;
    for (index, (key, value, headers)) in records.into_iter().enumerate() {
        builder.append_with_headers(index as i64 * 1_000, key, value, headers).unwrap();
        len += kbat::format::record_len(index as i32, index as i64 * 1_000, key, value, headers);
        assert_eq!(builder.size(), kbat::format::batch_len_bound(2, Compression::None, len));
        assert_eq!(builder.estimated_size(), builder.size());
    }
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    assert_eq!(bytes.len(), kbat::format::batch_len_bound(2, Compression::None, len));
}

/// After `testInvalidRecordSize` and `testInvalidCrc`.
#[test]
fn batch_with_a_changed_length_or_delta_is_refused() {
    let good = build(BatchBuilder::new());
    let mut short = good.clone();
    short[8..12].copy_from_slice(&10_i32.to_be_bytes());
    let error = kbat::batches(&short).next().unwrap().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::BatchLength { length: 10, .. }), "{error}");

    let mut wrong = good;
    wrong[23..27].copy_from_slice(&23_i32.to_be_bytes());
    let error = first(&wrong).verify_crc().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Crc { .. }), "{error}");
    assert_eq!(error.position().byte, Some(17));
}

/// Edge case 13. After `testInvalidRecordCountTooManyNonCompressedV2` and its three siblings, for every codec.
#[test]
fn batch_declaring_more_or_fewer_records_is_refused() {
    for compression in Compression::ALL {
        let good = build(BatchBuilder::new().compression(compression));
        for count in [5_i32, 2] {
            let mut bytes = good.clone();
            bytes[57..61].copy_from_slice(&count.to_be_bytes());
            fix_crc(&mut bytes);
            first(&bytes).verify_crc().unwrap();
            let error = records(&first(&bytes)).unwrap_err();
            match count {
                5 => assert!(matches!(error.kind(), ErrorKind::MissingRecords { declared: 5, found: 3 }), "{error}"),
                _ => assert!(matches!(error.kind(), ErrorKind::TrailingBytes { .. }), "{error}"),
            }
        }
    }
}

/// Edge case 75. After `testSetLastOffset` and `testSetPartitionLeaderEpoch`: neither is covered by the checksum.
#[test]
fn batch_with_another_offset_and_epoch_keeps_its_checksum() {
    for compression in Compression::ALL {
        let mut bytes = build(BatchBuilder::new().compression(compression));
        kbat::format::set_base_offset(&mut bytes, 498).unwrap();
        kbat::format::set_partition_leader_epoch(&mut bytes, 500).unwrap();
        let batch = first(&bytes);
        batch.verify_crc().unwrap();
        assert_eq!((batch.base_offset(), batch.last_offset(), batch.partition_leader_epoch()), (Some(498), 500, 500));
        let offsets: Vec<_> = records(&batch).unwrap().iter().map(|record| record.offset).collect();
        assert_eq!(offsets, [498, 499, 500]);
    }
}

/// Edge cases 28 and 75. After `testSetLogAppendTime` and `testSetNoTimestampTypeNotAllowed`.
#[test]
fn batch_with_log_append_time_gives_it_to_every_record() {
    for compression in Compression::ALL {
        let before = build(BatchBuilder::new().compression(compression));
        let mut bytes = before.clone();
        kbat::format::set_log_append_time(&mut bytes, 15).unwrap();
        let batch = first(&bytes);
        batch.verify_crc().unwrap();
        assert_eq!((batch.timestamp_type(), batch.max_timestamp()), (Some(TimestampType::LogAppendTime), 15));
        assert_eq!(batch.base_timestamp(), 1, "what the producer wrote stays");
        assert_eq!(batch.stored_records(), first(&before).stored_records());
        assert!(records(&batch).unwrap().iter().all(|record| record.timestamp == 15));
        assert!(kbat::format::set_log_append_time(&mut bytes, -1).is_err());
    }
}

/// After `testReadAndWriteControlBatch`.
#[test]
fn batch_of_a_commit_marker_is_read_as_written() {
    let marker = ControlRecord::Commit { coordinator_epoch: 15 };
    let bytes = kbat::format::end_transaction_marker(0, 1_000, 5, 23, 2, &marker).unwrap();
    let batch = first(&bytes);
    assert!(batch.is_control() && batch.is_transactional());
    let mut scratch = kbat::Scratch::new();
    let record = batch.records(&mut scratch, &kbat::Limits::default()).unwrap().next().unwrap().unwrap();
    assert_eq!(ControlRecord::parse(&record).unwrap(), marker);
}
