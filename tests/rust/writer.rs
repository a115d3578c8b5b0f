//! `LogWriter`: its other files are the same as a broker's for the same batches, and flushed batches are kept.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use kbat::log::checkpoint::PartitionMetadata;
use kbat::log::{LogWriter, LogWriterOptions, OffsetPolicy};
use serde_json::Value;

use crate::data::{data_dir, text};
use crate::folder::Folder;

/// The files of a directory that a broker reads, by name.
fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let read = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        entry.path().is_file().then(|| (name, fs::read(entry.path()).unwrap()))
    };
    fs::read_dir(directory).unwrap().filter_map(read).collect()
}

/// All batches of a partition, one after the other.
fn log_bytes(directory: &Path) -> Vec<u8> {
    let segments = contents(directory).into_iter().filter(|(name, _)| kbat::store::parse_base_offset(name).is_some());
    segments.flat_map(|(_, bytes)| bytes).collect()
}

/// The settings of a case's topic.
fn options_of(folder: &Path) -> LogWriterOptions {
    let case: Value = serde_json::from_str(&text(&folder.join("case.json"))).unwrap();
    let config = &case["topicConfig"];
    let number = |name: &str| config[name].as_str().map(|text| text.parse::<u64>().unwrap());
    let defaults = LogWriterOptions::default();
    LogWriterOptions {
        segment_bytes: number("internal.segment.bytes").or(number("segment.bytes")).unwrap_or(defaults.segment_bytes),
        segment_ms: number("segment.ms").or(Some(7 * 24 * 3600 * 1000)),
        index_interval_bytes: number("index.interval.bytes").unwrap_or(defaults.index_interval_bytes),
        segment_index_bytes: number("segment.index.bytes").unwrap_or(defaults.segment_index_bytes),
        topic_id: Some(PartitionMetadata::read(folder.join("partition.metadata")).unwrap().topic_id),
        ..defaults
    }
}

/// Offset of the first segment's name.
fn start_offset(directory: &Path) -> i64 {
    let names = contents(directory).into_keys();
    names.filter_map(|name| kbat::store::parse_base_offset(&name)).min().unwrap()
}

/// Appends the batches of a case, and reopens the writer after a number of batches.
fn write_case(case: &Path, directory: &Path, batches_between_closes: usize) {
    let options = LogWriterOptions { start_offset: start_offset(case), ..options_of(case) };
    let mut writer = LogWriter::open(directory, options.clone()).unwrap();
    for (number, batch) in kbat::batches(&log_bytes(case)).map_while(Result::ok).enumerate() {
        if batch.verify_crc().is_err() {
            break;
        }
        if number % batches_between_closes == batches_between_closes - 1 {
            writer.close().unwrap();
            writer = LogWriter::open(directory, options.clone()).unwrap();
            assert_eq!(writer.truncated_bytes(), 0);
        }
        assert!(writer.end_offset() <= batch.base_offset().unwrap());
        writer.append_batches(batch.bytes(), OffsetPolicy::Keep).unwrap();
        assert_eq!(writer.end_offset(), batch.next_offset());
    }
    writer.close().unwrap();
}

/// The names of files that exist in only one directory or differ.
fn differing(written: &Path, case: &Path) -> Vec<String> {
    let is_answer = |name: &str| name.contains("json") || name.contains(".txt");
    let (written, mut expected) = (contents(written), contents(case));
    expected.retain(|name, _| !is_answer(name));
    let names = written.keys().chain(expected.keys().filter(|name| !written.contains_key(*name)));
    names.filter(|name| written.get(*name) != expected.get(*name)).cloned().collect()
}

/// Cases with files that can't be derived from their batches, and why.
const OTHER: [(&str, &str); 14] = [
    ("cluster-metadata", "restarted; KRaft's own files"),
    ("crash-flip", "truncated at the corruption"),
    ("crash-index", "its indexes are random bytes"),
    ("crash-torn", "truncated at the corruption"),
    ("crash-txn", "its transaction index was removed"),
    ("empty", "a leader notes its epoch before it writes"),
    ("leader-epochs", "restarted: one snapshot more"),
    ("live", "not closed: indexes at full size, no last snapshot"),
    ("log-start", "leader epochs from the log's start on"),
    ("log-start-at-end", "leader epochs from the log's start on"),
    ("preallocated-live", "not closed"),
    ("retention-all", "retention left no batch"),
    ("transaction-state", "restarted"),
    ("txn-live", "not closed"),
];

#[test]
fn writer_makes_the_files_that_a_broker_made_of_the_same_batches() {
    let folder = Folder::new("writer-corpus");
    let (mut same, mut other) = (0, Vec::new());
    for entry in fs::read_dir(data_dir().join("corpus")).unwrap() {
        let case = entry.unwrap().path();
        let name = case.file_name().unwrap().to_str().unwrap().to_owned();
        // compaction creates segments that no writer rolled
        if !case.join("case.json").exists() || name.starts_with("compacted") {
            continue;
        }
        let directory = folder.path().join(&name);
        write_case(&case, &directory, usize::MAX);
        if differing(&directory, &case).is_empty() {
            same += 1;
        } else {
            other.push(name);
        }
    }
    other.sort();
    assert_eq!(other, OTHER.map(|(name, _)| name));
    assert_eq!(same, 33);
}

#[test]
fn writer_opened_again_and_again_makes_the_same_files() {
    let folder = Folder::new("writer-reopened");
    for name in ["txn-none", "txn-lz4", "segments-by-time", "segments-dense-index", "out-of-order", "idempotent"] {
        let (case, directory) = (data_dir().join("corpus").join(name), folder.path().join(name));
        write_case(&case, &directory, 15);
        let differing = differing(&directory, &case);
        // the snapshot of the second to last close
        assert!(
            differing.len() <= 1 && differing.iter().all(|name| name.ends_with(".snapshot")),
            "{name} {differing:?}"
        );
    }
}
