//! Replaying each partition of the corpora results in the producer snapshots and transaction indexes of its broker.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kbat::log::SegmentReader;
use kbat::log::index::AbortedTransaction;
use kbat::log::producer::{ProducerEntry, ProducerStates};
use kbat::{Limits, Scratch};
use serde_json::Value;

use crate::data::{data_dir, files, json_lines};

/// The directories that contain a partition with answers about its indexes.
fn partitions() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = ["corpus", "corpus-legacy"]
        .iter()
        .flat_map(|corpus| files(&data_dir().join(corpus), &["log"]))
        .map(|path| path.parent().unwrap().to_path_buf())
        .filter(|folder| folder.join("indexes.jsonl").exists() || folder.join("indexes.jsonl.gz").exists())
        .collect();
    folders.dedup();
    folders
}

/// The result of replaying a partition.
#[derive(Default)]
struct Replay {
    /// State after each batch, by the offset after it.
    states: BTreeMap<i64, ProducerStates>,
    /// Aborted transactions by the base offset of the segment that holds the marker.
    aborted: BTreeMap<i64, Vec<AbortedTransaction>>,
}

fn replay(folder: &Path) -> Replay {
    let (mut scratch, limits) = (Scratch::new(), Limits::default());
    let (mut replay, mut states) = (Replay::default(), ProducerStates::new());
    for segment in kbat::find_segments(folder).unwrap() {
        let base_offset = segment.base_offset.unwrap();
        replay.states.entry(base_offset).or_insert_with(|| states.clone());
        let mut reader = SegmentReader::open(&segment.path).unwrap();
        while let Some(Ok(batch)) = reader.next_batch() {
            let aborted = states.update(&batch, &mut scratch, &limits).unwrap();
            replay.aborted.entry(base_offset).or_default().extend(aborted);
            replay.states.insert(batch.next_offset(), states.clone());
        }
    }
    replay
}

fn entry_of(line: &Value) -> ProducerEntry {
    let number = |field: &str| line[field].as_i64().unwrap();
    let batch = &line["batches"][0];
    let of_batch = |field: &str, none: i64| batch[field].as_i64().unwrap_or(none);
    ProducerEntry {
        producer_id: number("producerId"),
        producer_epoch: number("producerEpoch") as i16,
        last_sequence: of_batch("lastSequence", -1) as i32,
        last_offset: of_batch("lastOffset", -1),
        offset_delta: of_batch("offsetDelta", 0) as i32,
        timestamp: number("lastTimestamp"),
        coordinator_epoch: number("coordinatorEpoch") as i32,
        current_txn_first_offset: line["currentTxnFirstOffset"].as_i64(),
    }
}

fn aborted_of(line: &Value) -> AbortedTransaction {
    let number = |field: &str| line[field].as_i64().unwrap();
    AbortedTransaction {
        version: 0,
        producer_id: number("producerId"),
        first_offset: number("firstOffset"),
        last_offset: number("lastOffset"),
        last_stable_offset: number("lastStableOffset"),
    }
}

/// The entries of each file with that ending, by the offset in its name.
fn answers<T>(folder: &Path, ending: &str, entry: fn(&Value) -> T) -> BTreeMap<i64, Vec<T>> {
    let mut found: BTreeMap<i64, Vec<T>> = BTreeMap::new();
    for line in json_lines(&folder.join("indexes.jsonl")) {
        let Some(digits) = line["file"].as_str().unwrap().strip_suffix(ending) else { continue };
        let entries = found.entry(digits.parse().unwrap()).or_default();
        if line["type"] != "header" {
            entries.push(entry(&line));
        }
    }
    found
}

/// Cases in which a replay differs from the broker's files: compaction removed batches later, or a 0.11 broker counted
/// a marker as its producer's last batch.
const DIFFERENT: [&str; 4] = ["compacted-empty-batches", "compacted-txn", "compacted-txn-expired", "k0110-txn"];

fn may_differ(folder: &Path) -> bool {
    DIFFERENT.contains(&folder.file_name().unwrap().to_str().unwrap())
}

#[test]
fn replay_gives_the_snapshots_of_the_broker() {
    let (mut snapshots, mut producers, mut different) = (0, 0, 0);
    for folder in partitions() {
        let replay = replay(&folder);
        for (offset, expected) in answers(&folder, ".snapshot", entry_of) {
            let (_, states) = replay.states.range(..=offset).next_back().unwrap();
            let found = states.to_snapshot().entries;
            if found != expected && may_differ(&folder) {
                different += 1;
                continue;
            }
            assert_eq!(found, expected, "{} {offset}", folder.display());
            snapshots += 1;
            producers += found.len();
        }
    }
    assert_eq!((snapshots, producers, different), (161, 113, 11));
}

#[test]
fn replay_gives_the_transaction_indexes_of_the_broker() {
    let (mut indexes, mut transactions, mut different) = (0, 0, 0);
    for folder in partitions() {
        let replay = replay(&folder);
        let expected = answers(&folder, ".txnindex", aborted_of);
        for (offset, found) in &replay.aborted {
            let expected = expected.get(offset).cloned().unwrap_or_default();
            if *found != expected && (may_differ(&folder) || folder.ends_with("crash-txn")) {
                different += 1;
                continue;
            }
            assert_eq!(*found, expected, "{} {offset}", folder.display());
            indexes += usize::from(!found.is_empty());
            transactions += found.len();
        }
    }
    // the index of crash-txn was removed by hand; its recovered/ has it
    assert_eq!((indexes, transactions, different), (12, 55, 5));
}

#[test]
fn snapshot_read_back_goes_on_as_the_replay_would() {
    let (mut scratch, limits) = (Scratch::new(), Limits::default());
    for folder in partitions() {
        let segments = kbat::find_segments(&folder).unwrap();
        let (mut whole, mut resumed) = (ProducerStates::new(), ProducerStates::new());
        for segment in segments {
            resumed = ProducerStates::from_snapshot(&resumed.to_snapshot(), resumed.end_offset());
            let mut reader = SegmentReader::open(&segment.path).unwrap();
            while let Some(Ok(batch)) = reader.next_batch() {
                let expected = whole.update(&batch, &mut scratch, &limits).unwrap();
                assert_eq!(resumed.update(&batch, &mut scratch, &limits).unwrap(), expected);
                assert_eq!(resumed.first_unstable_offset(), whole.first_unstable_offset());
            }
            assert_eq!(resumed.to_snapshot(), whole.to_snapshot());
            assert_eq!(resumed.end_offset(), whole.end_offset());
        }
    }
}

#[test]
fn marker_of_another_epoch_ends_the_transaction_and_forgets_the_batches() {
    let (mut scratch, limits) = (Scratch::new(), Limits::default());
    let mut states = ProducerStates::new();
    let mut bytes = Vec::new();
    let mut builder = kbat::BatchBuilder::new().base_offset(10).producer(7, 3, 0).transactional(true);
    builder.append(1000, None, Some(b"value")).unwrap();
    builder.finish_into(&mut bytes).unwrap();
    let mut builder = kbat::BatchBuilder::new().base_offset(11).producer(8, 0, 0).transactional(true);
    builder.append(1001, None, Some(b"value")).unwrap();
    builder.finish_into(&mut bytes).unwrap();
    for batch in kbat::batches(&bytes) {
        states.update(&batch.unwrap(), &mut scratch, &limits).unwrap();
    }
    assert_eq!((states.first_unstable_offset(), states.last_stable_offset(12)), (Some(10), 10));

    let marker = |offset, producer_id, epoch, coordinator_epoch| {
        let control = kbat::ControlRecord::Abort { coordinator_epoch };
        kbat::format::end_transaction_marker(offset, 2000, 0, producer_id, epoch, &control).unwrap()
    };
    let fence = marker(12, 7, 4, 5);
    let batch = kbat::batches(&fence).next().unwrap().unwrap();
    let aborted = states.update(&batch, &mut scratch, &limits).unwrap().unwrap();
    assert_eq!((aborted.first_offset, aborted.last_offset, aborted.last_stable_offset), (10, 12, 11));
    let entry = states.to_snapshot().entries[0];
    assert_eq!((entry.producer_epoch, entry.last_offset, entry.last_sequence), (4, -1, -1));
    assert_eq!((entry.coordinator_epoch, entry.timestamp, entry.current_txn_first_offset), (5, 2000, None));

    // a marker without a transaction aborts nothing
    let empty = marker(13, 7, 4, 5);
    let batch = kbat::batches(&empty).next().unwrap().unwrap();
    assert_eq!(states.update(&batch, &mut scratch, &limits).unwrap(), None);
    assert_eq!(states.last_stable_offset(14), 11);
}
