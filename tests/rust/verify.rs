//! Verification has no findings if Kafka has no error, and reports position and kind of all corruption.

#![allow(clippy::case_sensitive_file_extension_comparisons, reason = "Kafka's names are in lower case")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use kbat::repair::{Report, Severity, verify};
use kbat::{Limits, Progress};

use crate::data::{data_dir, text};
use crate::recovery::{TempDir, copy_partition, partition_files, whole_partitions};

fn report(path: &Path) -> Report {
    verify(path, &Limits::default(), &mut Progress::none()).unwrap()
}

/// Severity, kind and position of each finding above the severity `info`.
fn found(report: &Report) -> Vec<(Severity, &'static str, Option<u64>, Option<i64>)> {
    let more = report.findings.iter().filter(|finding| finding.severity > Severity::Info);
    more.map(|finding| (finding.severity, finding.kind, finding.position, finding.offset)).collect()
}

#[test]
fn verify_whole_partitions_finds_no_error() {
    let mut kinds: BTreeMap<(Severity, &str), usize> = BTreeMap::new();
    let mut seen = (0, 0, 0);
    for case in whole_partitions() {
        let report = report(&case);
        assert!(report.is_ok(), "{report}");
        seen.0 += report.segment_count;
        seen.1 += report.batch_count;
        seen.2 += report.record_count;
        for finding in report.findings.iter().filter(|finding| finding.kind != "unknown_file") {
            *kinds.entry((finding.severity, finding.kind)).or_default() += 1;
        }
    }
    let expected = [
        ((Severity::Info, "aborted_transaction_unknown"), 13),
        ((Severity::Info, "index_missing"), 3),
        ((Severity::Info, "index_offset"), 74),
        ((Severity::Info, "index_zero_tail"), 6),
        ((Severity::Info, "leader_epochs_missing"), 13),
        ((Severity::Info, "offset_gap"), 28),
        ((Severity::Info, "partition_metadata_missing"), 19),
        ((Severity::Info, "segment_gap"), 29),
        ((Severity::Info, "snapshot_mismatch"), 10),
        ((Severity::Info, "snapshot_stray"), 18),
        ((Severity::Info, "time_index_incomplete"), 2),
        ((Severity::Info, "time_index_value"), 1),
        ((Severity::Info, "zero_tail"), 1),
        // a 0.11 broker counted markers as data
        ((Severity::Warning, "snapshot_mismatch"), 1),
    ];
    assert_eq!(kinds, BTreeMap::from(expected));
    assert_eq!(seen, (175, 5000, 17828));
}

/// The lines of `kafka-dump-log` about mismatches in indexes: index file and offset.
fn mismatches(text: &str) -> Vec<(String, i64)> {
    let (mut found, mut file) = (Vec::new(), None);
    for line in text.lines() {
        if let Some(path) = line.strip_prefix("Mismatches in :") {
            file = Some(path.rsplit('/').next().unwrap().to_owned());
        } else if let (Some(file), Some(rest)) = (&file, line.trim().strip_prefix("Index offset: ")) {
            found.push((file.clone(), rest.split(',').next().unwrap().parse().unwrap()));
        } else {
            file = None;
        }
    }
    found.sort();
    found
}

#[test]
fn verify_names_the_index_entries_that_kafka_dump_log_calls_mismatches() {
    let (mut dumps, mut entries) = (0, 0);
    for case in whole_partitions() {
        let path = case.join("kafka-dump-log.txt");
        if !path.exists() && !case.join("kafka-dump-log.txt.gz").exists() {
            continue;
        }
        dumps += 1;
        let mut expected = mismatches(&text(&path));
        // at most 20 findings of one kind in one file are listed
        let mut listed: BTreeMap<String, usize> = BTreeMap::new();
        expected.retain(|(file, _)| {
            let count = listed.entry(file.clone()).or_default();
            *count += 1;
            *count <= 20
        });
        let kinds = ["index_offset", "index_mismatch"];
        let mut found: Vec<_> = report(&case)
            .findings
            .iter()
            .filter(|finding| kinds.contains(&finding.kind))
            .map(|finding| (finding.path.file_name().unwrap().to_str().unwrap().to_owned(), finding.offset.unwrap()))
            .collect();
        found.sort();
        assert_eq!(found, expected, "{}", case.display());
        entries += found.len();
    }
    assert_eq!((dumps, entries), (72, 74));
}

/// The report of a case whose first segment was damaged, and the start of each batch in it.
fn damaged(directory: &TempDir, case: &str, damage: impl Fn(&mut Vec<u8>, &[usize])) -> (Report, Vec<usize>) {
    let place = directory.join(case);
    let _ = fs::remove_dir_all(&place);
    copy_partition(&data_dir().join("corpus").join(case), &place);
    let log = place.join("00000000000000000000.log");
    let mut bytes = fs::read(&log).unwrap();
    let positions: Vec<usize> = kbat::batches(&bytes).map(|batch| batch.unwrap().position() as usize).collect();
    damage(&mut bytes, &positions);
    fs::write(&log, &bytes).unwrap();
    (report(&place), positions)
}

#[test]
fn verify_damage_in_the_log_is_named_with_its_place() {
    let directory = TempDir::new("verify-damage");
    let error = |kind, position: usize, offset| (Severity::Error, kind, Some(position as u64), Some(offset));
    let case = "codec-lz4";
    let base = |index: usize| {
        let bytes = fs::read(data_dir().join("corpus/codec-lz4/00000000000000000000.log")).unwrap();
        kbat::batches(&bytes).nth(index).unwrap().unwrap().base_offset().unwrap()
    };
    let (report, at) = damaged(&directory, case, |bytes, at| bytes[at[5] + 90] ^= 8);
    assert_eq!(found(&report), [error("crc", at[5], base(5))]);
    assert_eq!((report.batch_count, report.exit_code()), (15, 2));

    let (report, at) = damaged(&directory, case, |bytes, at| bytes[at[5]..at[6]].fill(0));
    assert_eq!(found(&report), [error("batch_length", at[5], base(5))]);

    let (report, at) = damaged(&directory, case, |bytes, at| bytes[at[5] + 16] = 7);
    assert_eq!(found(&report), [error("unsupported_magic", at[5], base(5))]);

    let (report, at) = damaged(&directory, case, |bytes, at| bytes.truncate(at[15] + 70));
    assert_eq!(found(&report)[0], error("partial_batch", at[15], base(15)));

    // the checksum does not cover the offset
    let (report, at) = damaged(&directory, case, |bytes, at| bytes[at[5] + 5] = 1);
    assert!(found(&report).contains(&(Severity::Error, "offset_order", Some(at[5] as u64), None)), "{report}");
    let (report, at) = damaged(&directory, case, |bytes, at| bytes[at[5] + 7] = 0);
    assert_eq!(found(&report)[0], error("offset_order", at[5], 0));

    let (report, at) = damaged(&directory, case, |bytes, at| {
        let batch = bytes[at[4]..at[5]].to_vec();
        bytes.splice(at[5]..at[5], batch);
    });
    assert_eq!(found(&report)[0], error("offset_order", at[5], base(4)));

    let (report, at) = damaged(&directory, case, |bytes, at| {
        bytes.splice(at[5]..at[5], [0x5a; 333]);
    });
    assert_eq!(found(&report)[0], error("unsupported_magic", at[5], base(5)));
}

#[test]
fn verify_of_one_log_knows_whether_the_log_goes_on_behind_it() {
    let directory = TempDir::new("verify-one");
    let place = directory.join("partition");
    copy_partition(&data_dir().join("corpus/txn-none"), &place);
    let log = place.join("00000000000000000000.log");
    let len = fs::metadata(&log).unwrap().len();
    fs::File::options().write(true).open(&log).unwrap().set_len(len - 1).unwrap();
    let whole = report(&place);
    let alone = report(&log);
    assert!(
        alone.findings[0].message.ends_with("deletes all later segments; salvage keeps all complete batches"),
        "{alone}"
    );
    assert!(whole.findings.contains(&alone.findings[0]), "{whole}");
    let is_later = |name: &&String| name.ends_with(".log") && !name.starts_with("00000000000000000000");
    for name in partition_files(&place).iter().filter(is_later) {
        fs::remove_file(place.join(name)).unwrap();
    }
    let alone = report(&log);
    assert!(alone.findings[0].message.ends_with("nothing before it is lost"), "{alone}");
}

#[test]
fn verify_records_that_break_rules_are_named() {
    let directory = TempDir::new("verify-records");
    let path = directory.join("00000000000000000000.log");
    let mut builder = kbat::BatchBuilder::new();
    for timestamp in [1000, 1001, 1002] {
        builder.append(timestamp, None, Some(b"value")).unwrap();
    }
    let mut good = Vec::new();
    builder.finish_into(&mut good).unwrap();
    let kinds = |change: &dyn Fn(&mut [u8])| {
        let mut bytes = good.clone();
        change(&mut bytes);
        let crc = crc_fast::crc32_iscsi(&bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
        fs::write(&path, &bytes).unwrap();
        let report = report(&path);
        let kinds: Vec<_> = found(&report).iter().map(|(severity, kind, ..)| (*severity, *kind)).collect();
        kinds.into_iter().filter(|(_, kind)| *kind != "index_missing").collect::<Vec<_>>()
    };
    assert_eq!(kinds(&|_| {}), []);
    assert_eq!(kinds(&|bytes| bytes[26] = 1), [(Severity::Error, "record_offset")]);
    assert_eq!(
        kinds(&|bytes| bytes[35..43].copy_from_slice(&1001_i64.to_be_bytes())),
        [(Severity::Warning, "record_timestamp")]
    );
    assert_eq!(kinds(&|bytes| bytes[60] = 4), [(Severity::Error, "missing_records")]);
    assert_eq!(kinds(&|bytes| bytes[60] = 2), [(Severity::Error, "trailing_bytes")]);
    assert_eq!(kinds(&|bytes| bytes[22] = 5), [(Severity::Error, "unsupported_codec")]);
}

#[test]
fn verify_indexes_and_files_beside_the_log() {
    let directory = TempDir::new("verify-files");
    let place = directory.join("partition");
    copy_partition(&data_dir().join("corpus/txn-none"), &place);
    let file = |name: &str| place.join(name);
    assert_eq!(found(&report(&place)), []);
    let with = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let path = place.join(name);
        let before = fs::read(&path).unwrap();
        let mut bytes = before.clone();
        change(&mut bytes);
        fs::write(&path, bytes).unwrap();
        let report = report(&place);
        fs::write(&path, before).unwrap();
        found(&report).into_iter().map(|(severity, kind, ..)| (severity, kind)).collect::<Vec<_>>()
    };
    let (index, time) = ("00000000000000000024.index", "00000000000000000024.timeindex");
    assert_eq!(with(index, &|bytes| bytes[15] ^= 1), [(Severity::Error, "index_position")]);
    assert_eq!(with(index, &|bytes| bytes[11] = 5), [(Severity::Error, "index_mismatch")]);
    assert_eq!(with(index, &|bytes| bytes.truncate(21)), [(Severity::Warning, "index_len")]);
    assert_eq!(with(time, &|bytes| bytes[18] ^= 1)[0], (Severity::Error, "time_index_mismatch"));
    assert_eq!(with(time, &|bytes| bytes[13] = 1)[0], (Severity::Warning, "time_index_timestamp"));
    assert_eq!(with(time, &|bytes| bytes.truncate(24)), [(Severity::Warning, "time_index_incomplete")]);
    assert_eq!(with("00000000000000000125.txnindex", &|bytes| bytes.truncate(34))[0].1, "aborted_transaction_missing");
    assert_eq!(
        with("00000000000000000125.txnindex", &|bytes| bytes[0] = 1)[0],
        (Severity::Warning, "transaction_index")
    );
    assert_eq!(with("00000000000000000125.snapshot", &|bytes| bytes[20] ^= 1), [(Severity::Warning, "snapshot")]);
    assert_eq!(with("leader-epoch-checkpoint", &|bytes| bytes[0] = b'x'), [(Severity::Error, "leader_epochs")]);
    assert_eq!(with("partition.metadata", &|bytes| bytes.truncate(20)), [(Severity::Error, "partition_metadata")]);

    fs::rename(file("00000000000000000205.log"), file("00000000000000000210.log")).unwrap();
    let kinds: Vec<_> = found(&report(&place)).into_iter().map(|(_, kind, ..)| kind).collect();
    assert!(kinds.contains(&"orphan_index") && kinds.contains(&"segment_gap"), "{kinds:?}");
    assert!(kinds.contains(&"segments_overlap") || kinds.contains(&"offset_overflow"), "{kinds:?}");
}

#[test]
fn verify_crashed_partitions_have_the_errors_that_recovery_cuts() {
    let errors = |name: &str| {
        let report = report(&data_dir().join("corpus").join(name));
        let errors = report.findings.iter().filter(|finding| finding.severity == Severity::Error);
        errors.map(|finding| finding.kind).collect::<Vec<_>>()
    };
    assert_eq!(errors("crash-flip"), ["crc"]);
    assert_eq!(errors("crash-torn"), ["partial_batch"]);
    assert!(errors("crash-index").iter().all(|kind| kind.contains("index")) && !errors("crash-index").is_empty());
    assert!(errors("crash-txn").iter().all(|kind| *kind == "aborted_transaction_missing"));
    for name in ["crash-flip", "crash-index", "crash-torn", "crash-txn"] {
        let report = report(&data_dir().join("corpus").join(name).join("recovered"));
        assert_eq!(found(&report), [], "{report}");
    }
}

#[test]
fn verify_log_directory() {
    let directory = TempDir::new("verify-directory");
    let top = data_dir().join("corpus/log-dir");
    for entry in fs::read_dir(&top).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, directory.join(path.file_name().unwrap().to_str().unwrap())).unwrap();
        }
    }
    copy_partition(&data_dir().join("corpus/txn-none"), &directory.join("topic-0"));
    copy_partition(&data_dir().join("corpus/crash-flip"), &directory.join("topic-1"));
    fs::create_dir(directory.join("nonsense")).unwrap();
    fs::create_dir(directory.join("old-3.0123456789abcdef0123456789abcdef-delete")).unwrap();
    fs::write(directory.join("log-start-offset-checkpoint"), "0\n2\ntopic 0 343\ntopic 1 3\n").unwrap();
    fs::write(directory.join("recovery-point-offset-checkpoint"), "0\n7\ntopic 0 3\n").unwrap();
    let report = report(&directory.join(""));
    let kinds: Vec<_> =
        found(&report).into_iter().map(|(severity, kind, _, offset)| (severity, kind, offset)).collect();
    let expected = [
        (Severity::Error, "directory_name", None),
        (Severity::Error, "crc", Some(99)),
        (Severity::Error, "checkpoint", None),
        (Severity::Error, "checkpoint_beyond_end", Some(343)),
    ];
    assert_eq!(kinds, expected);
    assert_eq!(report.segment_count, 9);
    let text = report.to_string();
    assert!(text.contains("error: crc: ") && text.ends_with("4 errors, 0 warnings"), "{text}");
}
