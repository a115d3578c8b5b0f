//! Deleted and rebuilt indexes: every lookup of the corpora has the same answer as before, and logs do not change.

#![allow(clippy::case_sensitive_file_extension_comparisons, reason = "Kafka's names are in lower case")]

use std::fs;
use std::path::Path;

use kbat::Progress;
use kbat::log::index::{OffsetIndex, TimeIndex};
use kbat::log::{IndexUse, Segment};
use kbat::repair::{RebuildOptions, RepairReport, rebuild_indexes};
use serde_json::Value;

use crate::data::{data_dir, json_lines};
use crate::recovery::{TempDir, content, copy_partition, interval_of, partition_files, whole_partitions};

fn rebuild(path: &Path, interval: u64) -> RepairReport {
    let options = RebuildOptions { index_interval_bytes: interval, ..RebuildOptions::default() };
    rebuild_indexes(path, &options, &mut Progress::none()).unwrap()
}

fn answers(case: &Path, name: &str) -> Option<Vec<Value>> {
    let path = case.join(name);
    (path.exists() || case.join(format!("{name}.gz")).exists()).then(|| json_lines(&path))
}

/// Looks up all targets with the rebuilt indexes. Returns their number.
fn assert_lookups(case: &Path, log: &Path) -> (usize, usize) {
    let (segment, stem) = (Segment::open(log).unwrap(), log.file_stem().unwrap().to_str().unwrap());
    let offsets = answers(case, &format!("{stem}.lookup-offset.jsonl")).unwrap_or_default();
    for answer in &offsets {
        let found = segment.find_offset(answer["target"].as_i64().unwrap()).unwrap();
        assert_eq!(found.map(|place| place.position), answer["batchPosition"].as_u64(), "{}: {answer}", log.display());
        assert!(found.is_none_or(|place| place.index == IndexUse::Used), "{}: {answer}", log.display());
        if segment.size() > 0 && !answer["batchBaseOffset"].is_null() && case.parent().unwrap().ends_with("corpus") {
            assert_eq!(found.map(|place| place.base_offset), answer["batchBaseOffset"].as_i64());
        }
    }
    let times = answers(case, &format!("{stem}.lookup-time.jsonl")).unwrap_or_default();
    for answer in &times {
        let found = segment.find_timestamp(answer["target"].as_i64().unwrap(), None).unwrap();
        assert_eq!(found.map(|place| place.timestamp), answer["timestamp"].as_i64(), "{}: {answer}", log.display());
        assert_eq!(found.map(|place| place.offset), answer["offset"].as_i64(), "{}: {answer}", log.display());
        assert!(found.is_none_or(|place| place.index == IndexUse::Used), "{}: {answer}", log.display());
    }
    (offsets.len(), times.len())
}

#[test]
fn rebuilt_indexes_give_every_lookup_the_same_answer() {
    let directory = TempDir::new("rebuild");
    let (mut offsets, mut times, mut entries) = (0, 0, 0);
    for case in whole_partitions() {
        let place = directory.join("partition");
        copy_partition(&case, &place);
        for name in partition_files(&place).iter().filter(|name| name.contains("index") || name.ends_with(".snapshot"))
        {
            fs::remove_file(place.join(name)).unwrap();
        }
        let before = content(&place);
        let interval = if case.join("case.json").exists() { interval_of(&case) } else { 4096 };
        let report = rebuild(&place, interval);
        assert_eq!(report.files.iter().filter(|change| change.name.ends_with(".index")).count(), report.segments.len());
        let mut after = content(&place);
        after.retain(|name, _| before.contains_key(name));
        assert!(after == before, "{}", case.display());
        for segment in &report.segments {
            let seen = assert_lookups(&case, &segment.path);
            (offsets, times) = (offsets + seen.0, times + seen.1);
            let index = segment.path.with_extension("index");
            OffsetIndex::open(&index, None).unwrap().sanity_check().unwrap();
            TimeIndex::open(segment.path.with_extension("timeindex"), None).unwrap().sanity_check().unwrap();
            entries += OffsetIndex::open(&index, None).unwrap().entry_count();
        }
        fs::remove_dir_all(&place).unwrap();
    }
    assert_eq!((offsets, times, entries), (7575, 9818, 988));
}

#[test]
fn rebuild_transactions_and_snapshots_are_those_of_the_broker() {
    let directory = TempDir::new("rebuild-txn");
    let case = data_dir().join("corpus/txn-none");
    let place = directory.join("partition");
    copy_partition(&case, &place);
    for name in partition_files(&place).iter().filter(|name| name.contains("index") || name.ends_with(".snapshot")) {
        fs::remove_file(place.join(name)).unwrap();
    }
    // a corrupt snapshot is treated as missing, and an index without entries is removed
    fs::write(place.join("00000000000000000125.snapshot"), b"damage").unwrap();
    fs::write(place.join("00000000000000000205.txnindex"), [0; 34]).unwrap();
    let report = rebuild(&place, interval_of(&case));
    assert!(report.is_complete());
    assert_eq!(partition_files(&place), partition_files(&case));
    for name in partition_files(&case).iter().filter(|name| !name.ends_with(".snapshot") || name.starts_with("0000000"))
    {
        assert!(fs::read(place.join(name)).unwrap() == fs::read(case.join(name)).unwrap(), "{name}");
    }
    // a single segment, with producers from the segments before it
    let txnindex = place.join("00000000000000000125.txnindex");
    fs::remove_file(&txnindex).unwrap();
    for name in partition_files(&place).iter().filter(|name| name.ends_with(".snapshot")) {
        fs::remove_file(place.join(name)).unwrap();
    }
    let report = rebuild(&place.join("00000000000000000125.log"), interval_of(&case));
    assert_eq!(report.segments.len(), 1);
    assert!(fs::read(&txnindex).unwrap() == fs::read(case.join("00000000000000000125.txnindex")).unwrap());
}

#[test]
fn rebuild_into_a_directory_writes_what_belongs_beside_the_log_and_names_what_no_index_covers() {
    let directory = TempDir::new("rebuild-out");
    let (place, out) = (directory.join("partition"), directory.join("out"));
    copy_partition(&data_dir().join("corpus/crash-flip"), &place);
    let before = content(&place);
    let interval = interval_of(&data_dir().join("corpus/crash-flip"));
    let options =
        RebuildOptions { out: Some(out.clone()), index_interval_bytes: interval, ..RebuildOptions::default() };
    let report = rebuild_indexes(&place, &options, &mut Progress::none()).unwrap();
    assert!(content(&place) == before);
    let expected = ["00000000000000000000.index", "00000000000000000000.timeindex", "00000000000000000099.snapshot"];
    assert_eq!(content(&out).into_keys().collect::<Vec<_>>(), expected);
    let [dropped] = &report.dropped[..] else { panic!("{report}") };
    assert_eq!((dropped.position, dropped.length, dropped.reason), (13905, 21387 - 13905, "crc"));
    assert!(
        report.to_string().contains("  not indexed: 7482 bytes of 00000000000000000000.log at byte 13905: "),
        "{report}"
    );
    assert!(report.to_string().ends_with("7482 bytes not indexed; they are still in the log"), "{report}");
    let recovered = data_dir().join("corpus/crash-flip/recovered");
    for name in expected {
        assert!(fs::read(out.join(name)).unwrap() == fs::read(recovered.join(name)).unwrap(), "{name}");
    }
}
