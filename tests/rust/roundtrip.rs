//! Writing and reading returns the same records; reading and writing returns the same bytes if nothing is compressed.

use kbat::format::NewHeader;
use kbat::{Batch, BatchBuilder, Compression, TimestampType};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::data::{Owned, all_records, data_dir, files, records};

type Bytes = Option<Vec<u8>>;

#[derive(Debug, Clone)]
struct NewRecord {
    offset_step: i64,
    timestamp: i64,
    key: Bytes,
    value: Bytes,
    headers: Vec<(Vec<u8>, Bytes)>,
}

#[derive(Debug, Clone)]
struct NewBatch {
    magic: u8,
    compression: Compression,
    level: Option<i32>,
    base_offset: i64,
    log_append_time: Option<i64>,
    producer: Option<(i64, i16, i32)>,
    transactional: bool,
    control: bool,
    leader_epoch: i32,
    delete_horizon: Option<i64>,
    records: Vec<NewRecord>,
}

fn bytes() -> impl Strategy<Value = Bytes> {
    option::weighted(0.8, prop_oneof![vec(any::<u8>(), 0..40), vec(0..3_u8, 0..3_000), Just(Vec::new())])
}

fn timestamps() -> impl Strategy<Value = i64> {
    prop_oneof![Just(-1), 0..=i64::MAX, 1_700_000_000_000..1_700_000_100_000_i64, Just(i64::MAX), Just(0)]
}

fn new_record() -> impl Strategy<Value = NewRecord> {
    let steps = prop_oneof![Just(1_i64), 1..1_000_i64, 1..10_000_000_i64];
    let headers = vec((vec(any::<u8>(), 0..10), option::of(vec(any::<u8>(), 0..20))), 0..4);
    (steps, timestamps(), bytes(), bytes(), headers).prop_map(|(offset_step, timestamp, key, value, headers)| {
        NewRecord { offset_step, timestamp, key, value, headers }
    })
}

fn codecs() -> impl Strategy<Value = (Compression, Option<i32>)> {
    let levels = |compression: Compression| match compression.levels() {
        Some((lowest, highest)) => option::of(lowest.max(-50)..=highest).boxed(),
        None => Just(None).boxed(),
    };
    prop::sample::select(&Compression::ALL[..]).prop_flat_map(move |codec| (Just(codec), levels(codec)))
}

fn new_batch() -> impl Strategy<Value = NewBatch> {
    let producers = option::of((0..i64::MAX, 0..i16::MAX, 0..=i32::MAX));
    let flags = (any::<bool>(), any::<bool>(), -1..i32::MAX, option::weighted(0.2, 0..i64::MAX));
    let base_offsets = prop_oneof![Just(0), 0..1_000_000_i64, 0..i64::MAX / 2];
    let head = (0..=2_u8, codecs(), base_offsets, option::weighted(0.2, 0..=i64::MAX), producers, flags);
    (head, vec(new_record(), 1..30)).prop_map(|(head, mut records)| {
        let (mut magic, (compression, level), base_offset, log_append_time, producer, flags) = head;
        if compression == Compression::Zstd {
            magic = 2;
        }
        if magic < 2 {
            for record in &mut records {
                record.headers.clear();
            }
        }
        let v2 = magic == 2;
        if v2 && flags.1 {
            // a control batch accepts only the keys of control records
            records
                .iter_mut()
                .zip((0..7).cycle())
                .for_each(|(record, type_id)| record.key = Some(vec![0, 0, 0, type_id]));
        }
        NewBatch {
            magic,
            compression,
            level,
            base_offset,
            log_append_time: log_append_time.filter(|_| magic > 0),
            producer: producer.filter(|_| v2),
            transactional: v2 && producer.is_some() && flags.0,
            control: v2 && flags.1,
            leader_epoch: if v2 { flags.2 } else { -1 },
            delete_horizon: flags.3.filter(|_| v2),
            records,
        }
    })
}

/// Builds a batch and the records that must be read from it.
fn write(batch: &NewBatch) -> (Vec<u8>, Vec<Owned>) {
    let mut builder = BatchBuilder::new()
        .magic(batch.magic)
        .compression(batch.compression)
        .base_offset(batch.base_offset)
        .transactional(batch.transactional)
        .control(batch.control)
        .partition_leader_epoch(batch.leader_epoch);
    if let Some(level) = batch.level {
        builder = builder.level(level);
    }
    if let Some(timestamp) = batch.log_append_time {
        builder = builder.log_append_time(timestamp);
    }
    if let Some((id, epoch, sequence)) = batch.producer {
        builder = builder.producer(id, epoch, sequence);
    }
    if let Some(horizon) = batch.delete_horizon {
        builder = builder.delete_horizon_ms(horizon);
    }
    let mut offset = batch.base_offset - 1;
    let mut expected = Vec::new();
    for record in &batch.records {
        offset += record.offset_step;
        let headers: Vec<NewHeader<'_>> =
            record.headers.iter().map(|(key, value)| (&key[..], value.as_deref())).collect();
        let (key, value) = (record.key.as_deref(), record.value.as_deref());
        builder.append_at(offset, record.timestamp, key, value, &headers).unwrap();
        expected.push(expect(batch, offset, record));
    }
    let (exact, most) = (builder.size(), builder.estimated_size());
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    assert!(bytes.len() <= most);
    assert!(batch.compression != Compression::None || bytes.len() == exact);
    (bytes, expected)
}

fn expect(batch: &NewBatch, offset: i64, record: &NewRecord) -> Owned {
    let timestamp = if batch.magic == 0 { -1 } else { batch.log_append_time.unwrap_or(record.timestamp) };
    let log_append = batch.log_append_time.is_some();
    let timestamp_type = if log_append { TimestampType::LogAppendTime } else { TimestampType::CreateTime };
    let sequence = batch.producer.map_or(-1, |(_, _, base)| {
        ((i64::from(base) + (offset - batch.base_offset)) % (i64::from(i32::MAX) + 1)) as i32
    });
    Owned {
        offset,
        timestamp,
        timestamp_type: (batch.magic > 0).then_some(timestamp_type),
        key: record.key.clone(),
        value: record.value.clone(),
        headers: record.headers.clone(),
        sequence,
    }
}

fn config() -> ProptestConfig {
    ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    /// Edge cases 35, 54, 55 and 76 among all others.
    #[test]
    fn roundtrip_of_any_batch_reads_what_was_written(batch in new_batch()) {
        let (bytes, expected) = write(&batch);
        for batch in kbat::batches(&bytes) {
            batch.unwrap().verify_crc().unwrap();
        }
        prop_assert_eq!(all_records(&bytes).unwrap(), expected);
        let last = kbat::batches(&bytes).last().unwrap().unwrap();
        prop_assert_eq!(last.last_offset(), all_records(&bytes).unwrap().last().unwrap().offset);
        if batch.magic == 2 {
            prop_assert_eq!((last.base_offset(), last.partition_leader_epoch()), (Some(batch.base_offset), batch.leader_epoch));
            prop_assert_eq!((last.is_transactional(), last.is_control()), (batch.transactional, batch.control));
            prop_assert_eq!(last.delete_horizon_ms(), batch.delete_horizon);
            prop_assert_eq!(last.record_count(), Some(batch.records.len() as i32));
        }
    }

    /// Edge case 90, as far as one machine can test it.
    #[test]
    fn roundtrip_of_any_batch_twice_writes_the_same_bytes(batch in new_batch()) {
        prop_assert_eq!(write(&batch).0, write(&batch).0);
    }

    /// Reading any bytes ends and does not panic.
    #[test]
    fn roundtrip_of_any_bytes_is_records_or_an_error(mut bytes in vec(any::<u8>(), 0..300), magic in 0..3_u8, len in 0..300_i32) {
        if bytes.len() > 16 {
            bytes[16] = magic;
            bytes[8..12].copy_from_slice(&len.to_be_bytes());
        }
        for batch in kbat::batches(&bytes).flatten() {
            let _ = records(&batch);
        }
    }
}

/// A builder with the settings of a batch that was read.
fn rebuild(batch: &Batch<'_>) -> BatchBuilder {
    let builder = BatchBuilder::new()
        .magic(batch.magic())
        .base_offset(batch.base_offset().unwrap())
        .last_offset(batch.last_offset())
        .transactional(batch.is_transactional())
        .control(batch.is_control())
        .partition_leader_epoch(batch.partition_leader_epoch())
        .producer(batch.producer_id(), batch.producer_epoch(), batch.base_sequence());
    let builder = match batch.delete_horizon_ms() {
        Some(horizon) => builder.delete_horizon_ms(horizon),
        None => builder,
    };
    match batch.timestamp_type() {
        Some(TimestampType::LogAppendTime) => builder.log_append_time(batch.max_timestamp()),
        _ => builder,
    }
}

/// Whether the API returns all information of the bytes. It hides the producers' timestamps if the broker set its own,
/// and a batch that compaction emptied has no records to rebuild. A builder never writes damaged batches.
fn is_shown_whole(batch: &Batch<'_>) -> bool {
    let hides_times = batch.magic() == 2 && batch.timestamp_type() == Some(TimestampType::LogAppendTime);
    let is_uncompressed = batch.compression().unwrap() == Compression::None;
    is_uncompressed && !hides_times && batch.record_count() != Some(0) && batch.verify_crc().is_ok()
}

#[test]
fn roundtrip_of_uncompressed_corpus_batches_is_exact() {
    let mut rebuilt = 0;
    for path in files(&data_dir(), &["log"]) {
        let bytes = std::fs::read(&path).unwrap();
        for batch in kbat::batches(&bytes).map(Result::unwrap).filter(is_shown_whole) {
            let mut builder = rebuild(&batch);
            for record in records(&batch).unwrap() {
                let headers: Vec<NewHeader<'_>> =
                    record.headers.iter().map(|(key, value)| (key.as_slice(), value.as_deref())).collect();
                let (key, value) = (record.key.as_deref(), record.value.as_deref());
                builder.append_at(record.offset, record.timestamp, key, value, &headers).unwrap();
            }
            let mut written = Vec::new();
            builder.finish_into(&mut written).unwrap();
            assert!(written == batch.bytes(), "{} at {}", path.display(), batch.position());
            rebuilt += 1;
        }
    }
    assert!(rebuilt >= 3_000, "{rebuilt}");
}

/// Compressed batches of the corpus, compressed again, have the same records.
#[test]
fn roundtrip_of_compressed_corpus_batches_keeps_the_records() {
    let mut rebuilt = 0;
    for path in files(&data_dir().join("corpus/writes"), &["log"]) {
        let bytes = std::fs::read(&path).unwrap();
        for batch in kbat::batches(&bytes).map(Result::unwrap).filter(|batch| batch.magic() == 2) {
            let mut builder = rebuild(&batch).compression(batch.compression().unwrap());
            let expected = records(&batch).unwrap();
            for record in &expected {
                let headers: Vec<NewHeader<'_>> =
                    record.headers.iter().map(|(key, value)| (key.as_slice(), value.as_deref())).collect();
                let (key, value) = (record.key.as_deref(), record.value.as_deref());
                builder.append_at(record.offset, record.timestamp, key, value, &headers).unwrap();
            }
            let mut written = Vec::new();
            builder.finish_into(&mut written).unwrap();
            assert_eq!(all_records(&written).unwrap(), expected, "{}", path.display());
            rebuilt += 1;
        }
    }
    assert!(rebuilt >= 40, "{rebuilt}");
}
