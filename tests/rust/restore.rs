//! Restores from Rust: the same bytes and offsets, ends inside batches, gaps, overlaps, transactions, checkpoints.

use std::fs;
use std::path::{Path, PathBuf};

use kbat::log::checkpoint::{LeaderEpochs, OffsetCheckpoint, PartitionMetadata, PartitionOffset};
use kbat::log::producer::ProducerSnapshot;
use kbat::log::{PartitionLog, Uuid};
use kbat::plan::{Replicas, Selection};
use kbat::repair::verify;
use kbat::restore::{OpenTransactions, RestoreOptions, RestoreReport, RestoredPartition, restore};
use kbat::store::TopicPartition;
use kbat::{BatchBuilder, Compression, ControlRecord, ErrorKind, Limits, Progress, Scratch};

use crate::data::data_dir;
use crate::folder::Folder;
use crate::rewrite::{names_in, partition};

pub(crate) const TIME: i64 = 1_700_000_000_000;

/// A builder of a batch whose records have the timestamps `TIME` + offset.
fn filled(builder: BatchBuilder, base_offset: i64, count: i64) -> Vec<u8> {
    let mut builder = builder.base_offset(base_offset);
    for offset in base_offset..base_offset + count {
        builder.append(TIME + offset, Some(b"key"), Some(format!("value {offset}").as_bytes())).unwrap();
    }
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    bytes
}

pub(crate) fn batch(base_offset: i64, count: i64) -> Vec<u8> {
    filled(BatchBuilder::new().partition_leader_epoch(3), base_offset, count)
}

pub(crate) fn restored(source: &Path, out: &Path, options: &RestoreOptions) -> RestoreReport {
    restore(source, out, options, &mut Progress::none()).unwrap()
}

fn refused(source: &Path, out: &Path, options: &RestoreOptions) -> kbat::Error {
    let error = restore(source, out, options, &mut Progress::none()).unwrap_err();
    assert!(!out.exists());
    error
}

/// Restores one partition, and returns its part of the report.
fn single(source: &Path, out: &Path, options: &RestoreOptions) -> RestoredPartition {
    let mut report = restored(source, out, options);
    assert_eq!(report.partitions.len(), 1, "{report}");
    let single = report.partitions.remove(0);
    assert_eq!(PartitionLog::open(out.join("t-0")).unwrap().end_offset().unwrap(), single.end_offset);
    single
}

/// Offsets and timestamps of all records.
fn records_of(directory: &Path) -> Vec<(i64, i64)> {
    let (mut scratch, limits, mut found) = (Scratch::new(), Limits::default(), Vec::new());
    for segment in kbat::find_segments(directory).unwrap() {
        let bytes = fs::read(&segment.path).unwrap();
        for batch in kbat::batches(&bytes) {
            let batch = batch.unwrap();
            batch.verify_crc().unwrap();
            for record in batch.records(&mut scratch, &limits).unwrap() {
                let record = record.unwrap();
                found.push((record.offset(), record.timestamp()));
            }
        }
    }
    found
}

fn offsets_of(directory: &Path) -> Vec<i64> {
    records_of(directory).into_iter().map(|(offset, _)| offset).collect()
}

fn topic(name: &str) -> RestoreOptions {
    RestoreOptions { selection: Selection::default().topics(&[name]).unwrap(), ..RestoreOptions::default() }
}

#[test]
fn restore_of_a_log_directory_has_the_same_segments() {
    let folder = Folder::new("restore-whole");
    let (source, out) = (data_dir().join("log-dir"), folder.path().join("out"));
    let report = restored(&source, &out, &RestoreOptions::default());
    assert!(report.partitions.len() > 10);
    for restored in &report.partitions {
        let name = format!("{}-{}", restored.partition.topic, restored.partition.partition);
        for file in fs::read_dir(source.join(&name)).unwrap().map(|entry| entry.unwrap().path()) {
            if file.extension().is_some_and(|extension| extension == "log") {
                let copy = out.join(&name).join(file.file_name().unwrap());
                assert!(fs::read(&file).unwrap() == fs::read(&copy).unwrap(), "{}", file.display());
            }
        }
        let (old, new) = (PartitionLog::open(source.join(&name)), PartitionLog::open(out.join(&name)));
        let (old, new) = (old.unwrap(), new.unwrap());
        assert_eq!(new.start_offset(), old.start_offset(), "{name}");
        assert_eq!(new.end_offset().unwrap(), old.end_offset().unwrap(), "{name}");
        assert_eq!(new.last_stable_offset().unwrap(), old.last_stable_offset().unwrap(), "{name}");
        assert_eq!(restored.end_offset, old.end_offset().unwrap(), "{name}");
    }
    let found = verify(&out, &Limits::default(), &mut Progress::none()).unwrap();
    assert!(found.is_ok(), "{found}");
}

#[test]
fn restore_dry_run_describes_the_same_partitions_and_writes_nothing() {
    let folder = Folder::new("restore-dry");
    let (source, out) = (data_dir().join("log-dir"), folder.path().join("out"));
    for until_timestamp in [None, Some(TIME), Some(1_600_000_000_000)] {
        let options = RestoreOptions { until_timestamp, ..RestoreOptions::default() };
        let plan = restored(&source, &out, &RestoreOptions { dry_run: true, ..options.clone() });
        assert!(!out.exists());
        let report = restored(&source, &out, &options);
        fs::remove_dir_all(&out).unwrap();
        for (planned, done) in plan.partitions.iter().zip(&report.partitions) {
            assert_eq!((planned.start_offset, planned.end_offset), (done.start_offset, done.end_offset), "{done}");
            assert_eq!((&planned.gaps, planned.cut), (&done.gaps, done.cut), "{done}");
            assert_eq!(planned.source_topic_id, done.source_topic_id);
            if done.cut.is_none() {
                assert_eq!(planned.byte_count(), done.byte_count(), "{done}");
                assert_eq!(planned.max_timestamp, done.max_timestamp, "{done}");
            }
        }
        assert_eq!(plan.partitions.len(), report.partitions.len());
    }
}

#[test]
fn restore_until_an_offset_splits_batches_of_every_format() {
    let folder = Folder::new("restore-cut");
    let codecs = [Compression::None, Compression::Gzip, Compression::Lz4, Compression::Zstd];
    for (magic, codec) in (0..=2).flat_map(|magic| codecs.map(|codec| (magic, codec))) {
        if magic < 2 && codec == Compression::Zstd {
            continue;
        }
        let build = || BatchBuilder::new().magic(magic).compression(codec);
        let bytes = [filled(build(), 10, 5), filled(build(), 15, 5), filled(build(), 20, 5)].concat();
        let source = partition(&folder, "t-0", &[(10, &bytes)]);
        for until in [10, 12, 15, 19, 24, 25, 99] {
            let out = folder.path().join("out");
            let options = RestoreOptions { until_offset: Some(until), ..RestoreOptions::default() };
            let report = single(&source, &out, &options);
            let end = until.min(25);
            assert_eq!(offsets_of(&out.join("t-0")), (10..end).collect::<Vec<_>>(), "magic {magic}, {codec}, {until}");
            assert_eq!((report.start_offset, report.end_offset), (10, end));
            assert_eq!(report.cut.is_some(), until < 25);
            let log = fs::read(out.join("t-0/00000000000000000010.log")).unwrap();
            let whole = usize::try_from((end - 10) / 5).unwrap() * (bytes.len() / 3);
            if magic == 2 && codec == Compression::None {
                assert!(log[..whole] == bytes[..whole]);
            }
            let found = verify(&out, &Limits::default(), &mut Progress::none()).unwrap();
            assert!(found.is_ok(), "{found}");
            fs::remove_dir_all(&out).unwrap();
        }
        fs::remove_dir_all(&source).unwrap();
    }
}

#[test]
fn restore_split_batch_keeps_its_producer_and_sequence() {
    let folder = Folder::new("restore-cut-producer");
    let bytes = filled(BatchBuilder::new().producer(7, 2, 40).partition_leader_epoch(5), 10, 5);
    let (source, out) = (partition(&folder, "t-0", &[(10, &bytes)]), folder.path().join("out"));
    single(
        &source,
        &out,
        &RestoreOptions { until_offset: Some(13), keep_producers: true, ..RestoreOptions::default() },
    );
    let log = fs::read(out.join("t-0/00000000000000000010.log")).unwrap();
    let batch = kbat::batches(&log).next().unwrap().unwrap();
    assert_eq!((batch.base_offset(), batch.last_offset(), batch.last_sequence()), (Some(10), 12, 42));
    assert_eq!((batch.producer_id(), batch.producer_epoch(), batch.partition_leader_epoch()), (7, 2, 5));
    let snapshot = ProducerSnapshot::read(out.join("t-0/00000000000000000013.snapshot")).unwrap();
    assert_eq!(snapshot.entries[0].last_sequence, 42);
}

#[test]
fn restore_until_a_time_ends_before_the_first_record_that_is_as_new() {
    let folder = Folder::new("restore-time");
    let mut mixed = BatchBuilder::new().base_offset(5);
    for time in [TIME + 3, TIME + 50, TIME + 4] {
        mixed.append(time, None, Some(b"x")).unwrap();
    }
    let mut bytes = batch(0, 5);
    mixed.finish_into(&mut bytes).unwrap();
    let source = partition(&folder, "t-0", &[(0, &bytes), (8, &batch(8, 2))]);
    let cases =
        [(TIME, 0, Some(TIME)), (TIME + 3, 3, Some(TIME + 3)), (TIME + 5, 6, Some(TIME + 50)), (TIME + 51, 10, None)];
    for (time, end, found) in cases {
        let out = folder.path().join("out");
        let report =
            single(&source, &out, &RestoreOptions { until_timestamp: Some(time), ..RestoreOptions::default() });
        assert_eq!(offsets_of(&out.join("t-0")), (0..end).collect::<Vec<_>>());
        assert_eq!((report.end_offset, report.cut.and_then(|cut| cut.timestamp)), (end, found));
        assert!(report.max_timestamp.is_none_or(|largest| largest < time));
        fs::remove_dir_all(&out).unwrap();
    }
}

#[test]
fn restore_reports_gaps_overlaps_and_incomplete_batches() {
    let folder = Folder::new("restore-gap");
    let torn = [batch(20, 2), batch(22, 2)[..70].to_vec()].concat();
    let first = [batch(0, 2), batch(2, 3)].concat();
    let again = [batch(2, 3), batch(5, 2)].concat();
    let source = partition(&folder, "t-0", &[(0, &first), (2, &again), (20, &torn)]);
    let out = folder.path().join("out");
    let report = single(&source, &out, &RestoreOptions::default());
    assert_eq!(offsets_of(&out.join("t-0")), (0..7).chain(20..22).collect::<Vec<_>>());
    assert_eq!((report.gaps.as_slice(), report.overlaps.as_slice()), (&[(7, 19)][..], &[(2, 4)][..]));
    assert_eq!((report.tail_bytes, report.end_offset), (70, 22));
    let bases: Vec<i64> = report.segments.iter().map(|segment| segment.base_offset).collect();
    assert_eq!(bases, [0, 5, 20]);
    let plan = restored(&source, &out.join("unused"), &RestoreOptions { dry_run: true, ..RestoreOptions::default() });
    assert_eq!((&plan.partitions[0].gaps, &plan.partitions[0].overlaps), (&report.gaps, &report.overlaps));
}

#[test]
fn restore_refuses_corruption_with_its_position() {
    let folder = Folder::new("restore-corrupt");
    let mut bytes = [batch(0, 2), batch(2, 2), batch(4, 2)].concat();
    let second = batch(0, 2).len();
    bytes[second + 65] ^= 1;
    let source = partition(&folder, "t-0", &[(0, &bytes)]);
    let error = refused(&source, &folder.path().join("out"), &RestoreOptions::default());
    assert!(matches!(error.kind(), ErrorKind::Crc { .. }), "{error}");
    assert_eq!(error.position().base_offset, Some(2));
    assert!(error.path().unwrap().starts_with(&source));
    fs::remove_dir_all(&source).unwrap();
    // an overlap that does not begin with a batch
    let source = partition(&folder, "t-0", &[(0, &batch(0, 5)), (3, &batch(3, 4))]);
    let error = refused(&source, &folder.path().join("out"), &RestoreOptions::default());
    assert!(matches!(error.kind(), ErrorKind::InvalidValue { value: 3, .. }), "{error}");
    fs::remove_dir_all(&source).unwrap();
    // a batch is missing its end, but the log continues
    let source = partition(&folder, "t-0", &[(0, &batch(0, 5)[..80]), (5, &batch(5, 4))]);
    let error = refused(&source, &folder.path().join("out"), &RestoreOptions::default());
    assert!(matches!(error.kind(), ErrorKind::CutBatch), "{error}");
}

/// A transactional batch of a producer.
fn transactional(producer_id: i64, base_offset: i64, count: i64) -> Vec<u8> {
    filled(BatchBuilder::new().producer(producer_id, 1, 0).transactional(true), base_offset, count)
}

fn commit(producer_id: i64, offset: i64) -> Vec<u8> {
    let marker = ControlRecord::Commit { coordinator_epoch: 4 };
    kbat::format::end_transaction_marker(offset, TIME + offset, 0, producer_id, 1, &marker).unwrap()
}

#[test]
fn restore_names_open_transactions_or_aborts_them() {
    let folder = Folder::new("restore-open");
    let bytes = [transactional(7, 0, 3), transactional(9, 3, 3), commit(7, 6), commit(9, 7)].concat();
    let source = partition(&folder, "t-0", &[(0, &bytes)]);
    let until = |offset| RestoreOptions { until_offset: Some(offset), ..RestoreOptions::default() };
    let out = folder.path().join("out");
    let report = single(&source, &out, &until(7));
    let open: Vec<_> =
        report.open_transactions.iter().map(|one| (one.producer_id, one.first_offset, one.aborted)).collect();
    assert_eq!(open, [(9, 3, false)]);
    assert_eq!(PartitionLog::open(out.join("t-0")).unwrap().last_stable_offset().unwrap(), 3);
    fs::remove_dir_all(&out).unwrap();
    let abort = RestoreOptions { open_transactions: OpenTransactions::Abort, ..until(5) };
    let report = single(&source, &out, &abort);
    let open: Vec<_> =
        report.open_transactions.iter().map(|one| (one.producer_id, one.first_offset, one.aborted)).collect();
    assert_eq!(open, [(7, 0, true), (9, 3, true)]);
    let log = PartitionLog::open(out.join("t-0")).unwrap();
    assert_eq!((log.end_offset().unwrap(), log.last_stable_offset().unwrap()), (7, 7));
    let aborted: Vec<_> = log.aborted_transactions(0, 7).unwrap().iter().map(|one| one.producer_id).collect();
    assert_eq!(aborted, [7, 9]);
    let found = verify(&out, &Limits::default(), &mut Progress::none()).unwrap();
    assert!(found.is_ok(), "{found}");
}

#[test]
fn restore_replaces_leader_epochs_without_changing_checksums() {
    let folder = Folder::new("restore-epoch");
    let source = partition(&folder, "t-0", &[(4, &batch(4, 5)), (9, &batch(9, 5))]);
    let out = folder.path().join("out");
    let report = single(&source, &out, &RestoreOptions { leader_epoch: Some(0), ..RestoreOptions::default() });
    assert_eq!(report.leader_epoch, Some(0));
    assert_eq!(offsets_of(&out.join("t-0")), (4..14).collect::<Vec<_>>());
    let epochs = LeaderEpochs::read(out.join("t-0/leader-epoch-checkpoint")).unwrap();
    assert_eq!(epochs.entries().iter().map(|one| (one.epoch, one.start_offset)).collect::<Vec<_>>(), [(0, 4)]);
    let kept = folder.path().join("kept");
    assert_eq!(single_epoch(&source, &kept), Some(3));
}

fn single_epoch(source: &Path, out: &Path) -> Option<i32> {
    single(source, out, &RestoreOptions::default()).leader_epoch
}

#[test]
fn restore_writes_checkpoints_and_topic_ids_for_the_new_broker() {
    let folder = Folder::new("restore-target");
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    partition(&folder, "source/t-0", &[(4, &batch(4, 5))]);
    partition(&folder, "source/u-3", &[(0, &batch(0, 5))]);
    let entry = |topic: &str, partition, offset| PartitionOffset { topic: topic.to_owned(), partition, offset };
    let starts = OffsetCheckpoint { entries: vec![entry("t", 0, 6)] };
    starts.write(source.join("log-start-offset-checkpoint")).unwrap();
    let broker = folder.path().join("broker");
    fs::create_dir_all(broker.join("u-3")).unwrap();
    let id = Uuid([9; 16]);
    PartitionMetadata::new(id).write(broker.join("u-3/partition.metadata")).unwrap();
    for name in ["log-start-offset-checkpoint", "recovery-point-offset-checkpoint"] {
        let others = OffsetCheckpoint { entries: vec![entry("other", 1, 55), entry("u", 3, 0)] };
        others.write(broker.join(name)).unwrap();
    }
    let options = RestoreOptions {
        topic_ids: [("t".to_owned(), Uuid([1; 16]))].into(),
        log_directory: Some(broker),
        ..RestoreOptions::default()
    };
    let out = folder.path().join("out");
    let report = restored(&source, &out, &options);
    assert_eq!(report.warnings.len(), 1, "{report}");
    assert!(report.warnings[0].ends_with("leader_epoch=0 to replace them: t-0, u-3"), "{report}");
    let starts = OffsetCheckpoint::read(out.join("log-start-offset-checkpoint")).unwrap();
    assert_eq!(starts.entries, [entry("other", 1, 55), entry("t", 0, 6), entry("u", 3, 0)]);
    let ends = OffsetCheckpoint::read(out.join("recovery-point-offset-checkpoint")).unwrap();
    assert_eq!(ends.entries, [entry("other", 1, 55), entry("t", 0, 9), entry("u", 3, 5)]);
    for (name, expected) in [("t-0", Uuid([1; 16])), ("u-3", id)] {
        let metadata = PartitionMetadata::read(out.join(name).join("partition.metadata")).unwrap();
        assert_eq!(metadata.topic_id, expected);
    }
    fs::remove_dir_all(&out).unwrap();
    let report = restored(&source, &out, &RestoreOptions::default());
    assert!(report.warnings[0].contains("t, u"), "{report}");
    assert!(!names_in(&out.join("t-0")).contains(&"partition.metadata".to_owned()));
}

#[test]
fn restore_never_ends_a_log_before_its_start() {
    let folder = Folder::new("restore-start");
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    partition(&folder, "source/t-0", &[(4, &batch(4, 5))]);
    let starts = [PartitionOffset { topic: "t".to_owned(), partition: 0, offset: 7 }];
    OffsetCheckpoint { entries: starts.to_vec() }.write(source.join("log-start-offset-checkpoint")).unwrap();
    for (until_offset, until_timestamp) in [(Some(2), None), (None, Some(TIME))] {
        let out = folder.path().join("out");
        let options = RestoreOptions { until_offset, until_timestamp, ..RestoreOptions::default() };
        let report = single(&source, &out, &options);
        assert_eq!((report.start_offset, report.end_offset), (7, 7));
        fs::remove_dir_all(&out).unwrap();
    }
}

#[test]
fn restore_finds_partitions_at_any_depth_and_one_replica() {
    let folder = Folder::new("restore-depth");
    let source = folder.path().join("source");
    fs::create_dir_all(source.join("111/cluster-1")).unwrap();
    fs::create_dir_all(source.join("000/cluster-1")).unwrap();
    partition(&folder, "source/111/cluster-1/t-0", &[(0, &batch(0, 5))]);
    partition(&folder, "source/000/cluster-1/t-1", &[(0, &batch(0, 2))]);
    fs::create_dir_all(source.join("000/cluster-1/t-2")).unwrap();
    let out = folder.path().join("out");
    let report = restored(&source, &out, &RestoreOptions::default());
    let ends: Vec<_> = report.partitions.iter().map(|one| (one.partition.partition, one.end_offset)).collect();
    assert_eq!(ends, [(0, 5), (1, 2)]);
    assert_eq!(report.skipped.iter().map(|one| one.partition.partition).collect::<Vec<_>>(), [2]);
    fs::remove_dir_all(&out).unwrap();
    partition(&folder, "source/000/cluster-1/t-0", &[(0, &batch(0, 3))]);
    let error = refused(&source, &out, &RestoreOptions::default());
    assert!(error.to_string().contains("partition t-0 is in several directories"), "{error}");
    let selection = Selection::default().replicas(Replicas::Longest);
    let report = restored(&source, &out, &RestoreOptions { selection, ..RestoreOptions::default() });
    assert_eq!(report.partitions[0].end_offset, 5);
}

/// A record of `__consumer_offsets` as brokers of Kafka 0.9 to 1.1 write it.
fn append_commit(builder: &mut BatchBuilder, group: &str, topic: &str, partition: i32, offset: Option<i64>) {
    let text = |text: &str| [&u16::try_from(text.len()).unwrap().to_be_bytes()[..], text.as_bytes()].concat();
    let key = [&[0, 1][..], &text(group), &text(topic), &partition.to_be_bytes()].concat();
    let value = offset.map(|offset| {
        let times = [TIME.to_be_bytes(), TIME.to_be_bytes()].concat();
        [&[0, 1][..], &offset.to_be_bytes(), &text(""), &times].concat()
    });
    builder.append(TIME, Some(&key), value.as_deref()).unwrap();
}

/// A batch of commits for partition 0 of topic t.
fn commits(builder: BatchBuilder, base_offset: i64, commits: &[(&str, Option<i64>)]) -> Vec<u8> {
    let mut builder = builder.base_offset(base_offset);
    for (group, offset) in commits {
        append_commit(&mut builder, group, "t", 0, *offset);
    }
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    bytes
}

fn with_offsets(folder: &Folder) -> PathBuf {
    let source = folder.path().join("source");
    fs::create_dir(&source).unwrap();
    partition(folder, "source/t-0", &[(4, &batch(4, 5))]);
    let plain = BatchBuilder::new;
    let transaction = |id| BatchBuilder::new().producer(id, 1, 0).transactional(true);
    let bytes = [
        commits(plain(), 0, &[("early", Some(1)), ("late", Some(99)), ("gone", Some(5)), ("a/b", Some(5))]),
        commits(plain(), 4, &[("gone", None), ("a/b", Some(6))]),
        commits(transaction(1), 6, &[("committed", Some(7)), ("replaced", Some(5))]),
        commits(transaction(2), 8, &[("open", Some(7))]),
        commits(plain(), 9, &[("replaced", Some(8))]),
        commit(1, 10),
    ];
    partition(folder, "source/__consumer_offsets-3", &[(0, &bytes.concat())]);
    source
}

#[test]
fn restore_writes_committed_offsets_within_the_restored_log() {
    let folder = Folder::new("restore-offsets");
    let (source, out, csv) = (with_offsets(&folder), folder.path().join("out"), folder.path().join("csv"));
    let options = RestoreOptions { committed_offsets: Some(csv.clone()), ..RestoreOptions::default() };
    let report = restored(&source, &out, &options);
    assert_eq!(report.partitions.len(), 1);
    assert!(report.skipped[0].reason.contains("internal"), "{report}");
    let found: Vec<_> =
        report.committed_offsets.iter().map(|one| (one.group.as_str(), one.committed, one.offset)).collect();
    let expected = [("a/b", 6, 6), ("committed", 7, 7), ("early", 1, 4), ("late", 99, 9), ("replaced", 8, 8)];
    assert_eq!(found, expected);
    assert_eq!(names_in(&csv), ["a%2Fb.csv", "committed.csv", "early.csv", "late.csv", "replaced.csv"]);
    assert_eq!(fs::read_to_string(csv.join("late.csv")).unwrap(), "t,0,9\n");
    fs::remove_dir_all(&out).unwrap();
    fs::remove_dir_all(&csv).unwrap();
    // from another location, and only planned
    let elsewhere = RestoreOptions { offsets_source: Some(source.as_path().into()), dry_run: true, ..options };
    let plan = restored(&source.join("t-0"), &out, &elsewhere);
    assert_eq!(plan.committed_offsets, report.committed_offsets);
    assert!(!csv.exists());
}

#[test]
fn restore_refuses_wrong_options() {
    let folder = Folder::new("restore-options");
    let source = partition(&folder, "t-0", &[(0, &batch(0, 5))]);
    let out = folder.path().join("out");
    let default = RestoreOptions::default;
    let missing = TopicPartition { topic: "t".to_owned(), partition: 4 };
    let cases = [
        (RestoreOptions { until_offset: Some(-1), ..default() }, "until_offset -1 is negative"),
        (RestoreOptions { until_offsets: [(missing, 3)].into(), ..default() }, "until_offset names t-4"),
        (RestoreOptions { leader_epoch: Some(-1), ..default() }, "leader_epoch -1 is negative"),
        (RestoreOptions { topic_ids: [("t".to_owned(), Uuid([0; 16]))].into(), ..default() }, "all zeros"),
        (RestoreOptions { committed_offsets: Some(out.join("csv")), ..default() }, "inside the output directory"),
        (RestoreOptions { committed_offsets: Some(folder.path().join("csv")), ..default() }, "__consumer_offsets"),
        (topic("other"), "no topic matches"),
    ];
    for (options, message) in cases {
        let error = refused(&source, &out, &options).to_string();
        assert!(error.contains(message), "{error}");
    }
    let error = refused(&source.join("00000000000000000000.log"), &out, &RestoreOptions::default());
    assert!(error.to_string().contains("this is a file"), "{error}");
    let odd = partition(&folder, "odd", &[(0, &batch(0, 5))]);
    let error = refused(&odd, &out, &RestoreOptions::default());
    assert!(error.to_string().contains("<topic>-<partition>"), "{error}");
}
