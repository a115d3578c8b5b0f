//! Removing records from batches, with the results of Kafka's `MemoryRecords.filterTo` (format.md tests 76 to 84).

use kbat::broker::retain::{BatchRetention, RetainOptions, RetainOutcome, Retained, retain_records};
use kbat::{Batch, BatchBuilder, Compression, ControlRecord, Limits, Record, Scratch, TimestampType};
use proptest::prelude::*;

use crate::data::{Owned, all_records, data_dir, files, first, records};

type Keep<'a> = &'a mut dyn FnMut(&Record<'_>) -> kbat::Result<bool>;

fn options(retention: BatchRetention) -> RetainOptions {
    RetainOptions { retention, ..RetainOptions::default() }
}

fn retain(batch: &Batch<'_>, options: &RetainOptions, keep: Keep<'_>, out: &mut Vec<u8>) -> RetainOutcome {
    retain_records(batch, options, keep, &mut Scratch::new(), &Limits::default(), out).unwrap()
}

/// Filters all batches of a buffer with the same options.
fn retain_all(bytes: &[u8], options: &RetainOptions, mut keep: impl FnMut(&Record<'_>) -> bool) -> Vec<u8> {
    let mut out = Vec::new();
    for batch in kbat::batches(bytes) {
        retain(&batch.unwrap(), options, &mut |record| Ok(keep(record)), &mut out);
    }
    out
}

type NewRecord<'a> = (i64, i64, Option<&'a str>);

fn build(builder: BatchBuilder, records: &[NewRecord<'_>]) -> Vec<u8> {
    let mut builder = builder.base_offset(records[0].0);
    for (offset, timestamp, key) in records {
        builder.append_at(*offset, *timestamp, key.map(str::as_bytes), Some(b"value"), &[]).unwrap();
    }
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    bytes
}

/// The reference input of format.md 7.4.
fn reference(magic: u8, compression: Compression) -> Vec<u8> {
    let batches: [&[NewRecord<'_>]; 4] = [
        &[(0, 10, None)],
        &[(1, 11, Some("1")), (2, 12, None)],
        &[(3, 13, None), (4, 20, Some("4")), (5, 15, Some("5"))],
        &[(6, 16, Some("6"))],
    ];
    batches.iter().flat_map(|batch| build(BatchBuilder::new().magic(magic).compression(compression), batch)).collect()
}

/// First offset, last offset and largest timestamp of each batch.
fn spans(bytes: &[u8]) -> Vec<(i64, i64, i64)> {
    let span = |batch: kbat::Result<Batch<'_>>| {
        let batch = batch.unwrap();
        let first = batch.first_offset(&mut Scratch::new(), &Limits::default()).unwrap();
        (first, batch.last_offset(), batch.max_timestamp())
    };
    kbat::batches(bytes).map(span).collect()
}

#[test]
fn retain_reference_input_gives_kafka_result() {
    let cases = [
        (1, Compression::None, vec![(1, 1, 11), (4, 4, 20), (5, 5, 15), (6, 6, 16)]),
        (1, Compression::Gzip, vec![(1, 1, 11), (4, 5, 20), (6, 6, 16)]),
        (2, Compression::None, vec![(1, 2, 11), (3, 5, 20), (6, 6, 16)]),
        (2, Compression::Zstd, vec![(1, 2, 11), (3, 5, 20), (6, 6, 16)]),
    ];
    for (magic, compression, expected) in cases {
        let kept =
            retain_all(&reference(magic, compression), &RetainOptions::default(), |record| record.key().is_some());
        assert_eq!(spans(&kept), expected, "magic {magic} {compression}");
        let offsets: Vec<i64> = all_records(&kept).unwrap().iter().map(|record| record.offset).collect();
        assert_eq!(offsets, [1, 4, 5, 6]);
        assert!(kbat::batches(&kept).all(|batch| batch.unwrap().verify_crc().is_ok()));
    }
}

#[test]
fn retain_of_v0_without_timestamps_keeps_magic_and_offsets() {
    let kept = retain_all(&reference(0, Compression::Lz4), &RetainOptions::default(), |record| record.key().is_some());
    assert_eq!(spans(&kept), [(1, 1, -1), (4, 5, -1), (6, 6, -1)]);
    assert!(kbat::batches(&kept).all(|batch| batch.unwrap().magic() == 0));
}

#[test]
fn retain_with_upgrade_rewrites_old_formats_as_v2() {
    let upgrade = RetainOptions { upgrade: true, ..RetainOptions::default() };
    for (magic, compression) in [(0, Compression::None), (0, Compression::Gzip), (1, Compression::Snappy)] {
        let bytes = reference(magic, compression);
        let kept = retain_all(&bytes, &upgrade, |_| true);
        for batch in kbat::batches(&kept) {
            let batch = batch.unwrap();
            assert_eq!((batch.magic(), batch.timestamp_type()), (2, Some(TimestampType::CreateTime)));
            assert_eq!((batch.compression().unwrap(), batch.producer_id()), (compression, -1));
        }
        let strip = |records: Vec<Owned>| -> Vec<(i64, i64, Option<Vec<u8>>)> {
            records.into_iter().map(|record| (record.offset, record.timestamp, record.key)).collect()
        };
        assert_eq!(strip(all_records(&kept).unwrap()), strip(all_records(&bytes).unwrap()));
    }
}

#[test]
fn retain_of_everything_copies_the_bytes() {
    for path in files(&data_dir().join("corpus"), &["log"]) {
        let bytes = std::fs::read(&path).unwrap();
        for batch in kbat::batches(&bytes).map_while(kbat::Result::ok).take(20) {
            let mut out = Vec::new();
            let keep: Keep<'_> = &mut |_| Ok(true);
            let Ok(outcome) = retain_records(
                &batch,
                &options(BatchRetention::RetainEmpty),
                keep,
                &mut Scratch::new(),
                &Limits::default(),
                &mut out,
            ) else {
                continue;
            };
            if outcome.records_read > 0 {
                assert_eq!((outcome.batch, &out[..]), (Retained::Unchanged, batch.bytes()), "{}", path.display());
            }
        }
    }
}

#[test]
fn retain_of_some_offsets_keeps_the_range_of_v2_and_that_of_the_survivors_before() {
    let input = [(5, 1, Some("a")), (8, 2, Some("b")), (10, 3, Some("c"))];
    for (magic, expected) in [(1, (8, 8, 2)), (2, (0, 10, 2))] {
        let mut builder = BatchBuilder::new().magic(magic).compression(Compression::Gzip).base_offset(0);
        for (offset, timestamp, key) in input {
            builder.append_at(offset, timestamp, key.map(str::as_bytes), None, &[]).unwrap();
        }
        let mut bytes = Vec::new();
        builder.finish_into(&mut bytes).unwrap();
        let kept = retain_all(&bytes, &RetainOptions::default(), |record| record.offset() == 8);
        assert_eq!(spans(&kept), [expected]);
        assert_eq!(all_records(&kept).unwrap()[0].offset, 8);
    }
}

#[test]
fn retain_keeps_producer_epoch_bits_and_sequences() {
    let builder = BatchBuilder::new().producer(23, 5, 10).transactional(true).partition_leader_epoch(67);
    let bytes = build(builder, &[(3, 10, None), (4, 11, Some("1")), (5, 12, Some("2"))]);
    let kept = retain_all(&bytes, &RetainOptions::default(), |record| record.key().is_some());
    let batch = first(&kept);
    assert_eq!((batch.producer_id(), batch.producer_epoch(), batch.base_sequence()), (23, 5, 10));
    assert_eq!((batch.base_offset(), batch.last_offset(), batch.last_sequence()), (Some(3), 5, 12));
    assert_eq!((batch.is_transactional(), batch.partition_leader_epoch()), (true, 67));
    let sequences: Vec<i32> = records(&batch).unwrap().iter().map(|record| record.sequence).collect();
    assert_eq!(sequences, [11, 12]);
}

#[test]
fn retain_empty_leaves_the_header() {
    let builder = BatchBuilder::new().producer(23, 5, 10).partition_leader_epoch(67).compression(Compression::Lz4);
    let bytes = build(builder, &[(3, 10, None), (4, 12, None)]);
    let kept = retain_all(&bytes, &options(BatchRetention::RetainEmpty), |_| false);
    let batch = first(&kept);
    assert_eq!(
        (kept.len(), batch.record_count(), batch.max_timestamp(), batch.base_timestamp()),
        (61, Some(0), 12, -1)
    );
    assert_eq!((batch.base_offset(), batch.last_offset(), batch.last_sequence()), (Some(3), 4, 11));
    assert_eq!((batch.compression().unwrap(), batch.partition_leader_epoch()), (Compression::None, 67));
    batch.verify_crc().unwrap();
    for (retention, left) in
        [(BatchRetention::RetainEmpty, 61), (BatchRetention::DeleteEmpty, 0), (BatchRetention::Delete, 0)]
    {
        assert_eq!(retain_all(&kept, &options(retention), |_| true).len(), left, "{retention:?}");
    }
}

#[test]
fn retain_delete_does_not_read_the_records() {
    let mut bytes = build(BatchBuilder::new().compression(Compression::Gzip), &[(0, 1, None)]);
    bytes[61..].fill(0xff);
    let mut out = Vec::new();
    let outcome = retain(&first(&bytes), &options(BatchRetention::Delete), &mut |_| panic!("was read"), &mut out);
    assert_eq!((outcome.batch, out.len()), (Retained::Dropped, 0));
    let result = retain_records(
        &first(&bytes),
        &RetainOptions::default(),
        &mut |_| Ok(true),
        &mut Scratch::new(),
        &Limits::default(),
        &mut out,
    );
    assert!(result.is_err());
    assert!(out.is_empty());
}

#[test]
fn retain_keeps_log_append_time() {
    for magic in [1, 2] {
        let builder = BatchBuilder::new().magic(magic).compression(Compression::Gzip).log_append_time(500);
        let bytes = build(builder, &[(0, 500, None), (1, 500, Some("1"))]);
        let kept = retain_all(&bytes, &RetainOptions::default(), |record| record.key().is_some());
        let batch = first(&kept);
        assert_eq!((batch.timestamp_type(), batch.max_timestamp()), (Some(TimestampType::LogAppendTime), 500));
        assert_eq!(records(&batch).unwrap()[0].timestamp, 500);
    }
}

#[test]
fn retain_sets_a_delete_horizon_for_tombstones_once() {
    let mut builder = BatchBuilder::new();
    for (timestamp, value) in [(50, Some(&b"x"[..])), (100, None), (150, None)] {
        builder.append(timestamp, Some(b"k"), value).unwrap();
    }
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    let with_horizon = |horizon| RetainOptions { delete_horizon_ms: Some(horizon), ..RetainOptions::default() };
    let kept = retain_all(&bytes, &with_horizon(120), |_| true);
    let batch = first(&kept);
    assert_eq!((batch.delete_horizon_ms(), batch.base_timestamp(), batch.max_timestamp()), (Some(120), 120, 150));
    assert_eq!(all_records(&kept).unwrap(), all_records(&bytes).unwrap());
    // the first horizon stays, also when records are removed
    assert_eq!(retain_all(&kept, &with_horizon(999), |_| true), kept);
    let fewer = retain_all(&kept, &with_horizon(999), |record| record.offset() > 0);
    assert_eq!(first(&fewer).delete_horizon_ms(), Some(120));
    // no tombstone among the retained records: no horizon
    assert_eq!(first(&retain_all(&bytes, &with_horizon(7), |record| record.offset() == 0)).delete_horizon_ms(), None);
}

#[test]
fn retain_sets_a_delete_horizon_for_the_marker_of_an_empty_transaction() {
    let marker = ControlRecord::Commit { coordinator_epoch: 3 };
    let bytes = kbat::format::end_transaction_marker(7, 1000, 0, 9, 1, &marker).unwrap();
    let options = RetainOptions {
        delete_horizon_ms: Some(5000),
        is_marker_of_empty_transaction: true,
        ..RetainOptions::default()
    };
    let kept = retain_all(&bytes, &options, |_| true);
    let batch = first(&kept);
    assert_eq!((batch.delete_horizon_ms(), batch.is_control(), batch.is_transactional()), (Some(5000), true, true));
    assert_eq!(records(&batch).unwrap()[0].timestamp, 1000);
}

#[test]
fn retain_predicate_that_fails_leaves_out_as_it_was() {
    let bytes = build(BatchBuilder::new(), &[(0, 1, None)]);
    let mut out = vec![7];
    let refuse: Keep<'_> = &mut |_| Err(std::io::Error::other("no").into());
    let result = retain_records(
        &first(&bytes),
        &RetainOptions::default(),
        refuse,
        &mut Scratch::new(),
        &Limits::default(),
        &mut out,
    );
    assert!(matches!(result.unwrap_err().kind(), kbat::ErrorKind::Io(_)));
    assert_eq!(out, [7]);
}

proptest! {
    #[test]
    fn retain_keeps_exactly_the_chosen_records(
        keep in prop::collection::vec(any::<bool>(), 1..40),
        magic in 0..=2_u8,
        codec in 0..4_u8,
        upgrade in any::<bool>(),
        horizon in prop::option::of(0..i64::MAX),
    ) {
        let compression = Compression::from_id(codec).unwrap();
        let mut builder = BatchBuilder::new().magic(magic).compression(compression).base_offset(40);
        for index in 0..keep.len() {
            let value = (index % 3 > 0).then_some(&b"value"[..]);
            builder.append_at(40 + 2 * index as i64, 1000 - index as i64, Some(b"k"), value, &[]).unwrap();
        }
        let mut bytes = Vec::new();
        builder.finish_into(&mut bytes).unwrap();
        let options = RetainOptions { upgrade, delete_horizon_ms: horizon, ..RetainOptions::default() };
        let chosen = |offset: i64| keep[((offset - 40) / 2) as usize];
        let kept = all_records(&retain_all(&bytes, &options, |record| chosen(record.offset()))).unwrap();
        let mut expected = all_records(&bytes).unwrap();
        expected.retain(|record| chosen(record.offset));
        for record in &mut expected {
            if upgrade && magic == 0 {
                record.timestamp_type = Some(TimestampType::CreateTime);
            }
        }
        prop_assert_eq!(kept, expected);
    }
}

#[test]
fn header_keys_that_are_no_utf8_stay_as_they_are() {
    let key = [0xff, 0xfe];
    let mut builder = BatchBuilder::new();
    for value in [&b"a"[..], b"b"] {
        let headers: [kbat::format::NewHeader<'_>; 1] = [(&key, Some(b"h"))];
        builder.append_with_headers(1, None, Some(value), &headers).unwrap();
    }
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    let kept = retain_all(&bytes, &options(BatchRetention::RetainEmpty), |record| record.value() == Some(b"b"));
    let (mut scratch, limits) = (Scratch::new(), Limits::default());
    let kept = first(&kept).records(&mut scratch, &limits).unwrap().map(Result::unwrap).collect::<Vec<_>>();
    assert_eq!(kept.len(), 1);
    assert_eq!(kept[0].headers().map(|header| header.unwrap().key().to_vec()).collect::<Vec<_>>(), [key]);
}
