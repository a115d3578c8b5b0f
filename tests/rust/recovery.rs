//! Recovery of the `crash-*` cases has the same result as the broker's, and recovery of corruption follows Kafka's
//! rules.

#![allow(clippy::case_sensitive_file_extension_comparisons, reason = "Kafka's names are in lower case")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use kbat::Progress;
use kbat::log::checkpoint::LeaderEpochs;
use kbat::repair::{RecoverOptions, recover};
use serde_json::Value;

use crate::data::{data_dir, files};

/// A directory that is removed when the test ends.
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    pub(crate) fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("kbat-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The files that a broker writes into a partition directory.
fn is_partition_file(name: &str) -> bool {
    let ending = name.rsplit('.').next().unwrap();
    ["log", "index", "timeindex", "txnindex", "snapshot"].contains(&ending)
        || ["leader-epoch-checkpoint", "partition.metadata"].contains(&name)
}

pub(crate) fn partition_files(directory: &Path) -> BTreeSet<String> {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| is_partition_file(name)).collect()
}

pub(crate) fn copy_partition(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in partition_files(from) {
        fs::copy(from.join(&name), to.join(&name)).unwrap();
    }
}

/// `index.interval.bytes` of a case.
pub(crate) fn interval_of(case: &Path) -> u64 {
    let case: Value = serde_json::from_slice(&fs::read(case.join("case.json")).unwrap()).unwrap();
    case["topicConfig"]["index.interval.bytes"].as_str().map_or(4096, |bytes| bytes.parse().unwrap())
}

fn recovered(case: &Path, out: &Path) {
    let options = RecoverOptions {
        out: Some(out.to_path_buf()),
        index_interval_bytes: interval_of(case),
        ..RecoverOptions::default()
    };
    recover(case, &options, &mut Progress::none()).unwrap();
}

/// Compares two partition directories byte by byte. The leader that a restart elects adds an epoch of its own.
fn assert_same_partition(found: &Path, expected: &Path) {
    assert_eq!(partition_files(found), partition_files(expected), "{}", expected.display());
    for name in partition_files(expected) {
        let (found, expected) = (found.join(&name), expected.join(&name));
        if name == "leader-epoch-checkpoint" {
            let (found, expected) = (LeaderEpochs::read(&found).unwrap(), LeaderEpochs::read(&expected).unwrap());
            let (_, without_last) = expected.entries().split_last().unwrap();
            assert_eq!(found.entries(), without_last);
        } else if name != "partition.metadata" {
            assert!(fs::read(&found).unwrap() == fs::read(&expected).unwrap(), "{}", expected.display());
        }
    }
}

const CRASHES: [&str; 4] = ["crash-flip", "crash-index", "crash-torn", "crash-txn"];

#[test]
fn recover_crashed_partition_is_what_the_broker_made_of_it() {
    let directory = TempDir::new("recover-crash");
    for name in CRASHES {
        let case = data_dir().join("corpus").join(name);
        let out = directory.join(name);
        recovered(&case, &out);
        assert_same_partition(&out, &case.join("recovered"));
    }
}

fn options(out: Option<PathBuf>) -> RecoverOptions {
    RecoverOptions { out, index_interval_bytes: 1024, ..RecoverOptions::default() }
}

/// Every file of a directory with its content.
pub(crate) fn content(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.map(|name| (name.clone(), fs::read(directory.join(name)).unwrap())).collect()
}

#[test]
fn recover_in_place_is_recover_into_a_copy_and_dry_run_changes_nothing() {
    let directory = TempDir::new("recover-in-place");
    for name in CRASHES {
        let (place, out) = (directory.join(name), directory.join(&format!("{name}-out")));
        copy_partition(&data_dir().join("corpus").join(name), &place);
        let before = content(&place);
        let mut dry =
            recover(&place, &RecoverOptions { dry_run: true, ..options(None) }, &mut Progress::none()).unwrap();
        assert!(content(&place) == before);
        let copy = recover(&place, &options(Some(out.clone())), &mut Progress::none()).unwrap();
        assert!(content(&place) == before);
        (dry.out, dry.dry_run) = (Some(out.clone()), false);
        assert_eq!(dry, copy);
        let there = RecoverOptions { in_place: true, ..options(None) };
        let report = recover(&place, &there, &mut Progress::none()).unwrap();
        assert_eq!(report.dropped, copy.dropped);
        assert!(content(&place) == content(&out), "{name}");
        // a second run truncates nothing
        let again = recover(&place, &there, &mut Progress::none()).unwrap();
        assert!(again.is_complete());
        assert!(content(&place) == content(&out), "{name}");
    }
}

#[test]
fn recover_fault_in_the_middle_deletes_later_segments() {
    let directory = TempDir::new("recover-middle");
    let place = directory.join("partition");
    copy_partition(&data_dir().join("corpus/txn-none"), &place);
    let segment = place.join("00000000000000000125.log");
    let mut bytes = fs::read(&segment).unwrap();
    let positions: Vec<usize> = kbat::batches(&bytes).map(|batch| batch.unwrap().position() as usize).collect();
    bytes[positions[9] + 70] ^= 1;
    fs::write(&segment, &bytes).unwrap();
    let end_offset = kbat::batches(&bytes).nth(8).unwrap().unwrap().next_offset();

    let there = RecoverOptions { in_place: true, ..options(None) };
    let report = recover(&place, &there, &mut Progress::none()).unwrap();
    assert_eq!(report.end_offset, end_offset);
    assert_eq!(fs::read(&segment).unwrap(), &bytes[..positions[9]]);
    let reasons: Vec<_> = report.dropped.iter().map(|range| (range.reason, range.position)).collect();
    let first = ("crc", positions[9] as u64);
    assert_eq!(reasons, [first, ("after_fault", 0), ("after_fault", 0), ("after_fault", 0), ("after_fault", 0)]);
    assert_eq!((report.dropped[0].first_offset, report.dropped[0].last_offset), (Some(end_offset), Some(204)));
    assert_eq!((report.dropped[4].first_offset, report.dropped[4].last_offset), (Some(328), Some(341)));
    let snapshots: Vec<_> = partition_files(&place).into_iter().filter(|name| name.ends_with(".snapshot")).collect();
    let expected = [24, 124, 125, end_offset].map(|offset| format!("{offset:020}.snapshot"));
    assert_eq!(snapshots, expected);
    assert!(!partition_files(&place).iter().any(|name| name.starts_with("00000000000000000205.")));
}

#[test]
fn recover_after_a_broken_compaction_takes_the_swap_files_and_drops_the_rest() {
    let directory = TempDir::new("recover-swap");
    let (place, out) = (directory.join("partition"), directory.join("out"));
    copy_partition(&data_dir().join("corpus/txn-none"), &place);
    let name = |offset: i64, ending: &str| place.join(format!("{offset:020}{ending}"));
    // 24 and 124 were compacted into 24; the round that began at 205 did not end
    fs::copy(name(24, ".log"), name(24, ".log.swap")).unwrap();
    fs::copy(name(24, ".index"), name(24, ".index.swap")).unwrap();
    fs::copy(name(205, ".log"), name(205, ".log.cleaned")).unwrap();
    fs::copy(name(220, ".log"), name(220, ".log.swap")).unwrap();
    fs::copy(name(0, ".log"), name(0, ".log.deleted")).unwrap();
    fs::write(name(7, ".timeindex"), b"orphan").unwrap();
    fs::write(place.join("00000000000000000009-0000000001.checkpoint.deleted"), b"kept").unwrap();

    let before = content(&place);
    let report = recover(&place, &options(Some(out.clone())), &mut Progress::none()).unwrap();
    assert!(content(&place) == before);
    assert!(report.is_complete());
    let bases: Vec<i64> = report.segments.iter().map(|segment| segment.base_offset).collect();
    assert_eq!(bases, [0, 24, 124, 125, 205, 220, 313, 328]);
    for ending in [".log.swap", ".log.cleaned", ".log.deleted"] {
        assert!(!content(&out).keys().any(|name| name.ends_with(ending)));
    }
    assert!(!out.join("00000000000000000007.timeindex").exists());
    assert!(out.join("00000000000000000009-0000000001.checkpoint.deleted").exists());
    let there = RecoverOptions { in_place: true, ..options(None) };
    recover(&place, &there, &mut Progress::none()).unwrap();
    assert!(content(&place) == content(&out));
}

#[test]
fn recover_batches_out_of_order_empties_the_segment_and_offsets_too_far_apart_split_it() {
    let directory = TempDir::new("recover-order");
    let batch = |offset: i64| {
        let mut bytes = Vec::new();
        let mut builder = kbat::BatchBuilder::new().base_offset(offset);
        builder.append(1000 + offset, None, Some(&[7; 1200])).unwrap();
        builder.finish_into(&mut bytes).unwrap();
        bytes
    };
    let case = |name: &str, offsets: &[i64]| {
        let (place, out) = (directory.join(name), directory.join(&format!("{name}-out")));
        fs::create_dir_all(&place).unwrap();
        let bytes: Vec<u8> = offsets.iter().flat_map(|&offset| batch(offset)).collect();
        fs::write(place.join("00000000000000000000.log"), bytes).unwrap();
        let report = recover(&place, &options(Some(out.clone())), &mut Progress::none()).unwrap();
        (report, out)
    };
    let (report, out) = case("order", &[0, 1, 2, 1]);
    assert_eq!((report.end_offset, report.dropped[0].reason, report.dropped[0].position), (0, "offset_order", 0));
    assert_eq!(fs::read(out.join("00000000000000000000.log")).unwrap(), b"");
    assert_eq!(fs::read(out.join("00000000000000000000.index")).unwrap(), b"");

    let far = 1 << 31;
    let (report, out) = case("overflow", &[0, 1, far, far + 1]);
    assert!(report.is_complete());
    assert_eq!(fs::read(out.join("00000000000000000000.log")).unwrap(), [batch(0), batch(1)].concat());
    assert_eq!(fs::read(out.join("00000000002147483648.log")).unwrap(), [batch(far), batch(far + 1)].concat());
    assert_eq!(report.end_offset, far + 2);
}

#[test]
fn recover_refuses_what_it_could_harm() {
    let directory = TempDir::new("recover-refuse");
    let (place, out, empty) = (directory.join("partition"), directory.join("out"), directory.join("empty"));
    copy_partition(&data_dir().join("corpus/crash-torn"), &place);
    fs::create_dir_all(&out).unwrap();
    fs::create_dir_all(&empty).unwrap();
    fs::write(out.join("something"), b"").unwrap();
    let log = place.join("00000000000000000000.log");
    let of =
        |path: &Path, options: RecoverOptions| recover(path, &options, &mut Progress::none()).unwrap_err().to_string();
    assert!(of(&place, options(Some(out.clone()))).contains("is not empty"));
    assert!(of(&place, options(None)).contains("in_place"));
    assert!(of(&empty, options(Some(directory.join("new")))).contains("holds no segment"));
    assert!(of(&log, options(Some(directory.join("new")))).contains("not a partition directory"));
    assert!(!directory.join("new").exists());
    // an empty directory is treated as missing
    recover(&place, &options(Some(empty.clone())), &mut Progress::none()).unwrap();
    assert!(empty.join("00000000000000000000.log").exists());
}

#[test]
fn recover_ended_by_its_caller_leaves_nothing() {
    let directory = TempDir::new("recover-cancel");
    let out = directory.join("out");
    let mut calls = 0;
    let mut end = |_, _| {
        calls += 1;
        false
    };
    let case = data_dir().join("corpus/crash-torn");
    let error = recover(&case, &options(Some(out.clone())), &mut Progress::new(&mut end)).unwrap_err();
    assert!(matches!(error.kind(), kbat::ErrorKind::Io(error) if error.kind() == std::io::ErrorKind::Interrupted));
    assert_eq!((calls, fs::read_dir(directory.join("")).unwrap().count()), (1, 0));
}

/// Every partition of both corpora that a broker closed properly.
pub(crate) fn whole_partitions() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = ["corpus", "corpus-legacy"]
        .iter()
        .flat_map(|corpus| files(&data_dir().join(corpus), &["log"]))
        .map(|path| path.parent().unwrap().to_path_buf())
        .filter(|folder| folder.join("indexes.jsonl").exists() || folder.join("indexes.jsonl.gz").exists())
        .filter(|folder| !CRASHES.iter().any(|name| folder.ends_with(name)))
        .collect();
    folders.dedup();
    folders
}

#[test]
fn recover_whole_partition_keeps_its_bytes_and_most_of_its_indexes() {
    let directory = TempDir::new("recover-whole");
    let (mut logs, mut indexes, mut equal) = (0, 0, 0);
    for case in whole_partitions() {
        let out = directory.join("out");
        let interval = if case.join("case.json").exists() { interval_of(&case) } else { 4096 };
        let options = RecoverOptions { index_interval_bytes: interval, ..options(Some(out.clone())) };
        let report = recover(&case, &options, &mut Progress::none()).unwrap();
        let is_zero_tail = report.dropped.iter().all(|range| range.reason == "zero_tail");
        assert!(is_zero_tail, "{}: {report}", case.display());
        for name in partition_files(&case) {
            let (found, expected) = (fs::read(out.join(&name)), fs::read(case.join(&name)).unwrap());
            match name.rsplit('.').next().unwrap() {
                "log" => {
                    let valid: usize = kbat::batches(&expected).map(|batch| batch.unwrap().size()).sum();
                    assert!(found.unwrap() == expected[..valid], "{} {name}", case.display());
                    logs += 1;
                }
                "index" | "timeindex" => {
                    indexes += 1;
                    equal += usize::from(found.unwrap() == expected);
                }
                _ => {}
            }
        }
        fs::remove_dir_all(&out).unwrap();
    }
    // the rest: brokers that restarted, dialects before 3.0, indexes of running brokers
    assert_eq!((logs, indexes, equal), (175, 347, 310));
}
