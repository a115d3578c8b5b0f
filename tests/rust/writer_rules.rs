//! `LogWriter`: when it rolls, what it rejects, and its files after an unclean end.

use std::fs;
use std::path::Path;

use kbat::log::checkpoint::LeaderEpochs;
use kbat::log::index::{OffsetIndex, TimeIndex};
use kbat::log::{LogWriter, LogWriterOptions, OffsetPolicy, PartitionLog, SyncPolicy, Uuid};
use kbat::store::{LogFile, LogFileKind};
use kbat::{BatchBuilder, Compression, ErrorKind, Progress};

use crate::data::{Owned, all_records};
use crate::folder::Folder;

fn open(directory: &Path, options: &LogWriterOptions) -> LogWriter {
    LogWriter::open(directory, options.clone()).unwrap()
}

/// A batch of `count` records from an offset on, one millisecond apart.
fn batch(base_offset: i64, timestamp: i64, count: i64) -> Vec<u8> {
    let mut builder = BatchBuilder::new().base_offset(base_offset);
    for number in 0..count {
        builder.append(timestamp + number, Some(b"key"), Some(b"value")).unwrap();
    }
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    bytes
}

fn bases(directory: &Path) -> Vec<i64> {
    PartitionLog::open(directory).unwrap().segments().iter().map(kbat::log::Segment::base_offset).collect()
}

/// Every record of a partition.
fn records(directory: &Path) -> Vec<Owned> {
    let log = PartitionLog::open(directory).unwrap();
    log.segments().iter().flat_map(|segment| all_records(&fs::read(segment.path()).unwrap()).unwrap()).collect()
}

/// Each entry of each index refers to an existing batch.
fn assert_indexes(directory: &Path) {
    for base_offset in bases(directory) {
        let path = |kind| directory.join(LogFile::live(base_offset, kind).to_string());
        let log = fs::read(path(LogFileKind::Log)).unwrap();
        let batches: Vec<_> = kbat::batches(&log).map(Result::unwrap).collect();
        let index = OffsetIndex::open(path(LogFileKind::OffsetIndex), None).unwrap();
        index.sanity_check().unwrap();
        for entry in index.entries().unwrap() {
            let found = batches.iter().find(|batch| batch.position() == entry.position as u64).unwrap();
            assert_eq!(found.last_offset(), entry.offset);
        }
        let index = TimeIndex::open(path(LogFileKind::TimeIndex), None).unwrap();
        index.sanity_check().unwrap();
        for entry in index.entries().unwrap() {
            let found = batches.iter().find(|batch| batch.last_offset() == entry.offset).unwrap();
            assert_eq!(found.max_timestamp(), entry.timestamp);
        }
    }
}

#[test]
fn records_are_batched_and_found_again_with_every_codec() {
    let folder = Folder::new("writer-codecs");
    let codecs = [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];
    for compression in codecs {
        let directory = folder.path().join(format!("{compression}-0"));
        let options = LogWriterOptions {
            compression,
            batch_size: 500,
            segment_bytes: 4000,
            index_interval_bytes: 300,
            ..LogWriterOptions::default()
        };
        let mut writer = open(&directory, &options);
        for number in 0..1000 {
            let value = format!("value {number} {}", number * 7919);
            let headers = [(b"h".as_slice(), Some(b"x".as_slice()))];
            let offset = writer.append(5000 + number, None, Some(value.as_bytes()), &headers).unwrap();
            assert_eq!(offset, number);
            assert_eq!(writer.end_offset(), number + 1);
        }
        writer.close().unwrap();
        let records = records(&directory);
        assert_eq!(records.iter().map(|record| record.offset).collect::<Vec<_>>(), (0..1000).collect::<Vec<_>>());
        assert!(records.iter().all(|record| record.timestamp == 5000 + record.offset && record.headers.len() == 1));
        assert_indexes(&directory);
        let bases = bases(&directory);
        assert!(bases.len() > 3, "{compression} {bases:?}");
        for base_offset in &bases[1..] {
            assert!(directory.join(LogFile::live(*base_offset, LogFileKind::ProducerSnapshot).to_string()).exists());
        }
        let log = PartitionLog::open(&directory).unwrap();
        assert_eq!(log.end_offset().unwrap(), 1000);
        assert_eq!(log.leader_epochs().unwrap().epoch_for_offset(999), Some(0));
    }
}

#[test]
fn batches_get_their_offsets_and_the_leader_epoch() {
    let folder = Folder::new("writer-assign");
    let directory = folder.path().join("topic-0");
    let options = LogWriterOptions { start_offset: 100, leader_epoch: Some(5), ..LogWriterOptions::default() };
    let mut writer = open(&directory, &options);
    let two = [batch(7, 1000, 3), batch(900, 1000, 2)].concat();
    assert_eq!(writer.append_batches(&two, OffsetPolicy::Assign).unwrap(), 100);
    assert_eq!(writer.append(1, None, None, &[]).unwrap(), 105);
    assert_eq!(writer.append_batches(&two, OffsetPolicy::Assign).unwrap(), 106);
    assert_eq!(writer.append_batches(&[], OffsetPolicy::Assign).unwrap(), 111);
    writer.close().unwrap();
    let bytes = fs::read(directory.join("00000000000000000100.log")).unwrap();
    let found: Vec<_> = kbat::batches(&bytes)
        .map(|batch| batch.map(|batch| (batch.base_offset(), batch.partition_leader_epoch())).unwrap())
        .collect();
    assert_eq!(found, [100, 103, 105, 106, 109].map(|offset| (Some(offset), 5)));
    assert!(kbat::batches(&bytes).all(|batch| batch.unwrap().verify_crc().is_ok()));
    let epochs = LeaderEpochs::read(directory.join("leader-epoch-checkpoint")).unwrap();
    assert_eq!(epochs.encode(), "0\n1\n5 100\n");
    assert!(LogWriter::open(&directory, LogWriterOptions { leader_epoch: Some(4), ..options.clone() }).is_err());
    let mut writer = open(&directory, &LogWriterOptions { leader_epoch: Some(6), ..options });
    writer.append(1, None, None, &[]).unwrap();
    writer.close().unwrap();
    assert_eq!(LeaderEpochs::read(directory.join("leader-epoch-checkpoint")).unwrap().encode(), "0\n2\n5 100\n6 111\n");
}

#[test]
fn batches_that_are_not_right_are_refused_and_nothing_is_appended() {
    let folder = Folder::new("writer-refuse");
    let options = LogWriterOptions { segment_bytes: 400, ..LogWriterOptions::default() };
    let mut writer = open(folder.path(), &options);
    let good = batch(0, 1000, 2);
    let mut flipped = good.clone();
    flipped[70] ^= 1;
    let mut gap = BatchBuilder::new();
    gap.append_at(0, 1, None, None, &[]).unwrap();
    gap.append_at(2, 1, None, None, &[]).unwrap();
    let mut gap_bytes = Vec::new();
    gap.finish_into(&mut gap_bytes).unwrap();
    let cases: [(&str, Vec<u8>); 7] = [
        ("checksum", [good.clone(), flipped].concat()),
        ("cut", good[..good.len() - 1].to_vec()),
        ("more", [&good[..], &[0; 3]].concat()),
        ("zeros", [&good[..], &[0; 30]].concat()),
        ("no batch", vec![1; 40]),
        ("large", batch(0, 1000, 100)),
        ("gap in offsets", gap_bytes.clone()),
    ];
    for (what, bytes) in &cases {
        assert!(writer.append_batches(bytes, OffsetPolicy::Assign).is_err(), "{what}");
        assert_eq!(writer.end_offset(), 0, "{what}");
    }
    writer.append_batches(&gap_bytes, OffsetPolicy::Keep).unwrap();
    assert_eq!(writer.end_offset(), 3);
    let error = writer.append_batches(&good, OffsetPolicy::Keep).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument(_)), "{error}");
    assert!(writer.append(1, None, Some(&[0; 400]), &[]).is_err());
    assert!(writer.append(-2, None, None, &[]).is_err());
    assert_eq!(writer.append(1, None, None, &[]).unwrap(), 3);
    writer.close().unwrap();
    assert_eq!(records(folder.path()).len(), 3);
}

#[test]
fn a_control_batch_without_a_marker_is_refused() {
    let folder = Folder::new("writer-control");
    let mut writer = open(folder.path(), &LogWriterOptions::default());
    let mut builder = BatchBuilder::new().control(true).transactional(true).producer(7, 0, -1);
    builder.append(1, Some(&[0, 0, 0, 6]), Some(&[0, 0])).unwrap();
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    for offsets in [OffsetPolicy::Assign, OffsetPolicy::Keep] {
        assert!(writer.append_batches(&bytes, offsets).is_err());
    }
    writer.append(1, None, None, &[]).unwrap();
    writer.close().unwrap();
}

#[test]
fn a_segment_ends_where_kafka_ends_it() {
    let folder = Folder::new("writer-roll");
    let size = batch(0, 0, 1).len() as u64;
    let defaults = LogWriterOptions { index_interval_bytes: 0, ..LogWriterOptions::default() };
    let write = |name: &str, options: &LogWriterOptions, batches: &[(i64, i64)]| {
        let directory = folder.path().join(name);
        let mut writer = open(&directory, options);
        for (offset, timestamp) in batches {
            writer.append_batches(&batch(*offset, *timestamp, 1), OffsetPolicy::Keep).unwrap();
        }
        writer.close().unwrap();
        assert_indexes(&directory);
        bases(&directory)
    };
    let plain: Vec<_> = (0..9).map(|i| (i, 1000)).collect();
    // size: exactly three fit
    let by_size = LogWriterOptions { segment_bytes: 3 * size, ..defaults.clone() };
    assert_eq!(write("size", &by_size, &plain), [0, 3, 6]);
    // time: more than segment_ms past the first batch of the segment
    let by_time = LogWriterOptions { segment_ms: Some(10), ..defaults.clone() };
    assert_eq!(write("time", &by_time, &[(0, 100), (1, 110), (2, 111), (3, 0), (4, 122)]), [0, 2, 4]);
    // a full index: room for 4 time entries, one reserved for the end; the first batch has no entry
    let by_index = LogWriterOptions { segment_index_bytes: 48, ..defaults.clone() };
    let rising: Vec<_> = (0..9).map(|i| (i, 1000 + i)).collect();
    assert_eq!(write("index", &by_index, &rising), [0, 4, 8]);
    // an offset that is too far from the base
    assert_eq!(
        write("far", &defaults, &[(0, 1), (1 << 31, 1), ((1 << 31) + 1, 1), (1 << 33, 1)]),
        [0, 1 << 31, 1 << 33]
    );
}

#[test]
fn one_writer_a_directory() {
    let folder = Folder::new("writer-lock");
    let options = LogWriterOptions { topic_id: Some(Uuid([7; 16])), ..LogWriterOptions::default() };
    let writer = open(folder.path(), &options);
    let in_place = kbat::repair::RecoverOptions { in_place: true, ..kbat::repair::RecoverOptions::default() };
    for error in [
        LogWriter::open(folder.path(), options.clone()).map(drop).unwrap_err(),
        kbat::repair::recover(folder.path(), &in_place, &mut Progress::none()).map(drop).unwrap_err(),
        kbat::repair::rebuild_indexes(folder.path(), &kbat::repair::RebuildOptions::default(), &mut Progress::none())
            .map(drop)
            .unwrap_err(),
    ] {
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument(message) if message.contains("another")), "{error}");
    }
    drop(writer);
    kbat::repair::recover(folder.path(), &in_place, &mut Progress::none()).unwrap();
    open(folder.path(), &options).close().unwrap();
    open(folder.path(), &LogWriterOptions::default()).close().unwrap();
    let other = LogWriterOptions { topic_id: Some(Uuid([8; 16])), ..options };
    assert!(LogWriter::open(folder.path(), other).unwrap_err().to_string().contains("topic id"));
}

#[test]
fn options_that_kafka_forbids_are_refused() {
    let folder = Folder::new("writer-options");
    let defaults = LogWriterOptions::default();
    let cases = [
        LogWriterOptions { segment_bytes: 0, ..defaults.clone() },
        LogWriterOptions { segment_bytes: 1 << 31, ..defaults.clone() },
        LogWriterOptions { segment_index_bytes: 23, ..defaults.clone() },
        LogWriterOptions { leader_epoch: Some(-1), ..defaults.clone() },
        LogWriterOptions { start_offset: -1, ..defaults.clone() },
        LogWriterOptions { topic_id: Some(Uuid([0; 16])), ..defaults.clone() },
        LogWriterOptions { level: Some(99), compression: Compression::Gzip, ..defaults.clone() },
    ];
    for options in cases {
        let error = LogWriter::open(folder.path().join("new"), options).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument(_)), "{error}");
    }
    assert!(!folder.path().join("new").exists());
}

/// A copy of a directory.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

#[test]
fn what_was_flushed_is_there_wherever_the_log_is_cut_after_it() {
    let folder = Folder::new("writer-cut");
    let (directory, copied) = (folder.path().join("whole"), folder.path().join("cut"));
    let options = LogWriterOptions { index_interval_bytes: 0, segment_bytes: 500, ..LogWriterOptions::default() };
    let mut writer = open(&directory, &options);
    for number in 0..7 {
        writer.append(1000 + number, None, Some(b"flushed"), &[]).unwrap();
        writer.flush().unwrap();
    }
    let active = directory.join(LogFile::live(*bases(&directory).last().unwrap(), LogFileKind::Log).to_string());
    let flushed_len = fs::metadata(&active).unwrap().len() as usize;
    writer.append_batches(&batch(0, 2000, 2), OffsetPolicy::Assign).unwrap();
    drop(writer);
    let whole_len = fs::metadata(&active).unwrap().len() as usize;
    assert!(bases(&directory).len() > 1 && whole_len > flushed_len);
    for len in flushed_len..=whole_len {
        copy(&directory, &copied);
        let log = copied.join(active.file_name().unwrap());
        fs::OpenOptions::new().write(true).open(&log).unwrap().set_len(len as u64).unwrap();
        // the content of the index is arbitrary
        let index = log.with_extension(["index", "timeindex"][len % 2]);
        fs::write(&index, vec![len as u8; len % 50]).unwrap();
        let mut writer = open(&copied, &options);
        let end = if len == whole_len { 9 } else { 7 };
        assert_eq!(writer.end_offset(), end, "{len}");
        let torn = if len == whole_len { 0 } else { len - flushed_len };
        assert_eq!(writer.truncated_bytes(), torn as u64, "{len}");
        assert_eq!(writer.append(3000, None, None, &[]).unwrap(), end);
        writer.close().unwrap();
        assert_eq!(records(&copied).len() as i64, end + 1);
        assert_indexes(&copied);
        fs::remove_dir_all(&copied).unwrap();
    }
}

#[test]
fn a_roll_that_did_not_end_is_undone_or_ended() {
    let folder = Folder::new("writer-half-roll");
    let options = LogWriterOptions::default();
    let mut writer = open(folder.path(), &options);
    writer.append_batches(&batch(0, 1000, 3), OffsetPolicy::Assign).unwrap();
    writer.flush().unwrap();
    drop(writer);
    // indexes of the next segment, a snapshot past the end, a temporary file
    let stray = ["00000000000000000003.index", "00000000000000000003.timeindex", "00000000000000000009.snapshot"];
    for name in stray {
        folder.file(name, "");
    }
    folder.file("leader-epoch-checkpoint.tmp", "0\n");
    folder.file("00000000000000000000.log.deleted", "x");
    let writer = open(folder.path(), &options);
    assert_eq!(writer.end_offset(), 3);
    for name in stray {
        assert!(!folder.path().join(name).exists(), "{name}");
    }
    drop(writer);
    folder.file("00000000000000000003.log", "");
    let mut writer = open(folder.path(), &options);
    assert_eq!(writer.append(1, None, None, &[]).unwrap(), 3);
    writer.close().unwrap();
    assert_eq!(bases(folder.path()), [0, 3]);
    assert_eq!(records(folder.path()).len(), 4);
}

#[test]
fn an_open_transaction_is_known_after_a_kill_without_snapshots() {
    let folder = Folder::new("writer-txn");
    let options = LogWriterOptions { segment_bytes: 250, sync: SyncPolicy::Always, ..LogWriterOptions::default() };
    let mut writer = open(folder.path(), &options);
    let transactional = |sequence: i32| {
        let mut builder = BatchBuilder::new().producer(7, 0, sequence).transactional(true);
        builder.append(1000, None, Some(b"value")).unwrap();
        let mut bytes = Vec::new();
        builder.finish_into(&mut bytes).unwrap();
        bytes
    };
    for sequence in 0..8 {
        writer.append_batches(&transactional(sequence), OffsetPolicy::Assign).unwrap();
    }
    assert_eq!(writer.last_stable_offset(), 0);
    drop(writer);
    for entry in fs::read_dir(folder.path()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "snapshot") {
            fs::write(path, "torn").unwrap();
        }
    }
    let mut writer = open(folder.path(), &options);
    assert_eq!((writer.end_offset(), writer.last_stable_offset()), (8, 0));
    let abort = kbat::ControlRecord::Abort { coordinator_epoch: 3 };
    let mut marker = BatchBuilder::new().producer(7, 0, -1).transactional(true).control(true);
    marker.append_control(2000, &abort).unwrap();
    let mut bytes = Vec::new();
    marker.finish_into(&mut bytes).unwrap();
    writer.append_batches(&bytes, OffsetPolicy::Assign).unwrap();
    assert_eq!(writer.last_stable_offset(), 9);
    writer.close().unwrap();
    let last = bases(folder.path()).pop().unwrap();
    let path = folder.path().join(LogFile::live(last, LogFileKind::TransactionIndex).to_string());
    let entries = kbat::log::index::TransactionIndex::open(&path).unwrap().entries().unwrap();
    assert_eq!(entries, [kbat::log::index::AbortedTransaction::new(7, 0, 8, 9)]);
}

#[test]
fn a_damaged_batch_is_cut_with_its_leader_epoch() {
    let folder = Folder::new("writer-flip");
    let with_epoch =
        |leader_epoch| LogWriterOptions { leader_epoch: Some(leader_epoch), ..LogWriterOptions::default() };
    for epoch in [0, 3] {
        let mut writer = open(folder.path(), &with_epoch(epoch));
        writer.append_batches(&batch(0, 1000, 4), OffsetPolicy::Assign).unwrap();
        writer.close().unwrap();
    }
    let epochs = || LeaderEpochs::read(folder.path().join("leader-epoch-checkpoint")).unwrap().encode();
    assert_eq!(epochs(), "0\n2\n0 0\n3 4\n");
    let log = folder.path().join("00000000000000000000.log");
    let mut bytes = fs::read(&log).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&log, &bytes).unwrap();
    let writer = open(folder.path(), &LogWriterOptions::default());
    assert_eq!((writer.end_offset(), writer.truncated_bytes()), (4, bytes.len() as u64 / 2));
    assert_eq!(epochs(), "0\n1\n0 0\n");
    drop(writer);
    assert_eq!(records(folder.path()).len(), 4);
}
