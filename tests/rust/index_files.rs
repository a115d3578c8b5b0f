//! Compares the other files of the partitions in `tests/data` with Kafka 4.3.1.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kbat::Limits;
use kbat::log::HeaderReader;
use kbat::log::checkpoint::{LeaderEpochs, MetaProperties, OffsetCheckpoint, PartitionMetadata};
use kbat::log::index::{OffsetIndex, SegmentIndexer, TimeIndex, TransactionIndex};
use kbat::log::producer::{ProducerEntry, ProducerSnapshot};
use kbat::store::{LogFile, LogFileKind};
use serde_json::{Value, json};

use crate::data::{data_dir, files, json_lines, text};

/// The answers about one file.
#[derive(Default)]
struct Expected {
    header: Value,
    entries: Vec<Value>,
    zeros_from: Option<u64>,
}

/// The directories with index dumps.
fn folders() -> Vec<PathBuf> {
    let dumps = files(&data_dir(), &["jsonl", "gz"]).into_iter();
    let dumps = dumps.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with("indexes.jsonl"));
    dumps.map(|path| path.parent().unwrap().to_path_buf()).collect()
}

/// The answers of a folder by file.
fn expected(folder: &Path) -> BTreeMap<String, Expected> {
    let mut by_file: BTreeMap<String, Expected> = BTreeMap::new();
    for line in json_lines(&folder.join("indexes.jsonl")) {
        let expected = by_file.entry(line["file"].as_str().unwrap().to_owned()).or_default();
        match line["type"].as_str() {
            Some("header") => expected.header = line,
            Some("zeroTail") => expected.zeros_from = line["from"].as_u64(),
            None => expected.entries.push(line),
            Some(other) => panic!("{other}"),
        }
    }
    by_file
}

fn assert_offset_index(path: &Path, expected: &Expected) {
    let place = path.display();
    let index = OffsetIndex::open(path, None).unwrap();
    let entries = index.entries().unwrap();
    assert_eq!(index.entry_count(), entries.len() as u64, "{place}");
    assert_eq!(Some(index.slot_count()), expected.header["entries"].as_u64(), "{place}");
    assert_eq!(expected.zeros_from.unwrap_or_else(|| index.slot_count()), entries.len() as u64, "{place}");
    assert_eq!(index.sanity_check().is_err(), !expected.header["sanityError"].is_null(), "{place}");
    let entries: Vec<Value> =
        entries.iter().map(|entry| json!({"offset": entry.offset, "position": entry.position})).collect();
    assert_entries(path, &entries, &expected.entries, &["offset", "position"]);
}

fn assert_time_index(path: &Path, expected: &Expected) {
    let place = path.display();
    let index = TimeIndex::open(path, None).unwrap();
    let entries = index.entries().unwrap();
    assert_eq!(index.entry_count(), entries.len() as u64, "{place}");
    assert_eq!(Some(index.slot_count()), expected.header["entries"].as_u64(), "{place}");
    assert_eq!(expected.zeros_from.unwrap_or_else(|| index.slot_count()), entries.len() as u64, "{place}");
    assert_eq!(index.sanity_check().is_err(), !expected.header["sanityError"].is_null(), "{place}");
    let entries: Vec<Value> =
        entries.iter().map(|entry| json!({"timestamp": entry.timestamp, "offset": entry.offset})).collect();
    assert_entries(path, &entries, &expected.entries, &["timestamp", "offset"]);
}

fn assert_transaction_index(path: &Path, expected: &Expected) {
    let place = path.display();
    let index = TransactionIndex::open(path).unwrap();
    let base_offset = LogFile::parse(path.file_name().unwrap().to_str().unwrap()).unwrap().base_offset;
    assert_eq!(Some(index.entry_count()), expected.header["entries"].as_u64(), "{place}");
    assert_eq!(index.sanity_check(base_offset).is_err(), !expected.header["sanityError"].is_null(), "{place}");
    let entries = index.entries().unwrap();
    let bytes: Vec<u8> = entries.iter().flat_map(kbat::log::index::AbortedTransaction::encode).collect();
    assert_eq!(bytes, std::fs::read(path).unwrap(), "{place}");
    let entries: Vec<Value> = entries
        .iter()
        .map(|entry| {
            json!({"version": entry.version, "producerId": entry.producer_id, "firstOffset": entry.first_offset,
                "lastOffset": entry.last_offset, "lastStableOffset": entry.last_stable_offset})
        })
        .collect();
    let fields = ["version", "producerId", "firstOffset", "lastOffset", "lastStableOffset"];
    assert_entries(path, &entries, &expected.entries, &fields);
}

fn producer_json(entry: &ProducerEntry) -> Value {
    let batch = json!({"firstSequence": entry.first_sequence(), "lastSequence": entry.last_sequence,
        "lastOffset": entry.last_offset, "offsetDelta": entry.offset_delta, "timestamp": entry.timestamp});
    json!({"producerId": entry.producer_id, "producerEpoch": entry.producer_epoch,
        "coordinatorEpoch": entry.coordinator_epoch, "currentTxnFirstOffset": entry.current_txn_first_offset,
        "lastTimestamp": entry.timestamp, "batches": if entry.has_batch() { vec![batch] } else { vec![] }})
}

fn assert_snapshot(path: &Path, expected: &Expected) {
    let place = path.display();
    let snapshot = ProducerSnapshot::read(path).unwrap();
    assert_eq!(snapshot.encode().unwrap(), std::fs::read(path).unwrap(), "{place}");
    // Kafka's classes list them in the order of a hash map
    let by_id = |mut entries: Vec<Value>| {
        entries.sort_by_key(|entry| entry["producerId"].as_i64());
        entries
    };
    let found = by_id(snapshot.entries.iter().map(producer_json).collect());
    let fields =
        ["producerId", "producerEpoch", "coordinatorEpoch", "currentTxnFirstOffset", "lastTimestamp", "batches"];
    assert_entries(path, &found, &by_id(expected.entries.clone()), &fields);
}

fn assert_entries(path: &Path, found: &[Value], expected: &[Value], fields: &[&str]) {
    let place = path.display();
    assert_eq!(found.len(), expected.len(), "{place}");
    for (found, expected) in found.iter().zip(expected) {
        for field in fields {
            assert_eq!(found[field], expected[field], "{place} {field}");
        }
    }
}

#[test]
fn every_index_and_snapshot_holds_what_kafka_reads() {
    let mut seen = BTreeMap::new();
    for folder in folders() {
        for (name, expected) in expected(&folder) {
            let path = folder.join(&name);
            let kind = LogFile::parse(&name).unwrap().kind;
            match kind {
                LogFileKind::OffsetIndex => assert_offset_index(&path, &expected),
                LogFileKind::TimeIndex => assert_time_index(&path, &expected),
                LogFileKind::TransactionIndex => assert_transaction_index(&path, &expected),
                LogFileKind::ProducerSnapshot => assert_snapshot(&path, &expected),
                other => panic!("{other:?}"),
            }
            *seen.entry(kind).or_insert(0) += 1;
        }
    }
    let kinds = [
        LogFileKind::OffsetIndex,
        LogFileKind::TimeIndex,
        LogFileKind::TransactionIndex,
        LogFileKind::ProducerSnapshot,
    ];
    assert_eq!(kinds.map(|kind| seen[&kind]), [182, 179, 16, 172]);
}

/// The answers about lookups with a name like `<base>.lookup-<kind>.jsonl`, with the path of the segment without its
/// suffix.
fn lookups(kind: &str) -> Vec<(PathBuf, Vec<Value>)> {
    let mut found = Vec::new();
    for path in files(&data_dir(), &["jsonl", "gz"]) {
        let name = path.file_name().unwrap().to_str().unwrap();
        let Some((base, _)) = name.split_once(&format!(".lookup-{kind}.jsonl")) else { continue };
        let lines = json_lines(&path.with_file_name(format!("{base}.lookup-{kind}.jsonl")));
        found.push((path.with_file_name(base), lines));
    }
    found
}

#[test]
fn every_offset_lookup_gives_kafkas_answer() {
    let mut seen = 0;
    for (segment, lines) in lookups("offset") {
        let place = segment.display();
        let index = OffsetIndex::open(segment.with_extension("index"), None).unwrap();
        for line in lines {
            let found = index.lookup(line["target"].as_i64().unwrap()).unwrap();
            assert_eq!(Some(found.offset), line["indexOffset"].as_i64(), "{place} {line}");
            assert_eq!(Some(i64::from(found.position)), line["indexPosition"].as_i64(), "{place} {line}");
            seen += 1;
        }
    }
    assert_eq!(seen, 7575);
}

#[test]
fn every_time_lookup_gives_kafkas_answer() {
    let mut seen = 0;
    for (segment, lines) in lookups("time") {
        let place = segment.display();
        let index = TimeIndex::open(segment.with_extension("timeindex"), None).unwrap();
        for line in lines {
            let found = index.lookup(line["target"].as_i64().unwrap()).unwrap();
            assert_eq!(Some(found.timestamp), line["timeIndexTimestamp"].as_i64(), "{place} {line}");
            assert_eq!(Some(found.offset), line["timeIndexOffset"].as_i64(), "{place} {line}");
            seen += 1;
        }
    }
    assert_eq!(seen, 9818);
}

#[test]
fn every_leader_epoch_checkpoint_is_written_as_read() {
    let (mut empty, mut written) = (0, 0);
    for path in named("leader-epoch-checkpoint") {
        let place = path.display();
        let (epochs, text) = (LeaderEpochs::read(&path).unwrap(), text(&path));
        if text.is_empty() {
            assert!(epochs.entries().is_empty(), "{place}");
            empty += 1;
        } else {
            assert_eq!(epochs.encode(), text, "{place}");
            written += 1;
        }
    }
    assert_eq!((empty, written), (12, 116));
    let path = data_dir().join("corpus/leader-epochs/leader-epoch-checkpoint");
    let epochs = LeaderEpochs::read(&path).unwrap();
    let starts: Vec<_> = epochs.entries().iter().map(|entry| (entry.epoch, entry.start_offset)).collect();
    assert_eq!(starts, [(0, 0), (2, 40)]);
}

#[test]
fn every_partition_metadata_is_written_as_read() {
    let paths = named("partition.metadata");
    for path in &paths {
        assert_eq!(PartitionMetadata::read(path).unwrap().encode(), text(path).trim_end(), "{}", path.display());
    }
    assert_eq!(paths.len(), 73);
}

/// Every file of that name.
fn named(name: &str) -> Vec<PathBuf> {
    let mut found: Vec<_> = files(&data_dir(), &["metadata", "log", "json"])
        .into_iter()
        .map(|path| path.with_file_name(name))
        .filter(|path| path.exists())
        .collect();
    found.dedup();
    found
}

#[test]
fn the_files_of_a_log_directory_are_told() {
    for folder in ["corpus/log-dir", "log-dir"] {
        let folder = data_dir().join(folder);
        for name in ["cleaner", "log-start", "recovery-point", "replication"] {
            let path = folder.join(format!("{name}-offset-checkpoint"));
            let place = path.display();
            let checkpoint = OffsetCheckpoint::read(&path).unwrap();
            assert_eq!(checkpoint.encode(), text(&path), "{place}");
            if name == "log-start" {
                assert_eq!(checkpoint.offset("log-start", 0), Some(170), "{place}");
            }
        }
        let properties = MetaProperties::read(folder.join("meta.properties")).unwrap();
        assert_eq!((properties.version, properties.node_id), (1, Some(1)));
        assert!(properties.cluster_id.is_some() && properties.directory_id.is_some());
    }
    let shutdown = kbat::log::checkpoint::CleanShutdown::read(data_dir().join("log-dir")).unwrap();
    assert_eq!(shutdown.unwrap().broker_epoch, Some(106));
    assert!(kbat::log::checkpoint::CleanShutdown::read(data_dir()).unwrap().is_none());
}

/// `index.interval.bytes` of a case of the corpus; `recovered/` is of the same case.
fn index_interval_bytes(folder: &Path) -> u64 {
    let case = if folder.ends_with("recovered") { folder.parent().unwrap() } else { folder };
    let case: Value = serde_json::from_str(&text(&case.join("case.json"))).unwrap();
    case["topicConfig"]["index.interval.bytes"]
        .as_str()
        .map_or(kbat::log::index::DEFAULT_INDEX_INTERVAL_BYTES, |bytes| bytes.parse().unwrap())
}

/// How much of an index follows from the batches of its segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Same {
    /// All of it.
    Yes,
    /// All except the last time entry, which a broker writes when it closes the segment.
    NotClosed,
    No,
}

/// Compares the offset and time index of a segment with indexes built from the headers of its batches.
fn compare(index: &Path) -> (Same, Same) {
    let base_offset = LogFile::parse(index.file_name().unwrap().to_str().unwrap()).unwrap().base_offset;
    let interval_bytes = index_interval_bytes(index.parent().unwrap());
    let mut indexer = SegmentIndexer::new(base_offset, interval_bytes, kbat::log::index::DEFAULT_MAX_INDEX_BYTES);
    let (mut offsets, mut times) = (Vec::new(), Vec::new());
    let mut headers = HeaderReader::open(index.with_extension("log"), &Limits::default()).unwrap();
    while let Some(header) = headers.next_header() {
        let entries = indexer.observe(&header.unwrap()).unwrap();
        offsets.extend(entries.offset);
        times.extend(entries.time);
    }
    let same_offsets = OffsetIndex::open(index, None).unwrap().entries().unwrap() == offsets;
    let found = TimeIndex::open(index.with_extension("timeindex"), None).unwrap().entries().unwrap();
    let not_closed = found == times;
    times.extend(indexer.finish());
    let same_times = if found == times { Same::Yes } else { [Same::No, Same::NotClosed][usize::from(not_closed)] };
    (if same_offsets { Same::Yes } else { Same::No }, same_times)
}

/// Indexes of segments that were open when the broker restarted, which forgets the bytes since the last entry, and an
/// index of random bytes.
const OTHER_DENSITY: [&str; 3] = [
    "cluster-metadata/00000000000000000000",
    "crash-index/00000000000000000000",
    "transaction-state/00000000000000000000",
];
/// Copied while the broker ran, or after it was killed.
const NOT_CLOSED: [&str; 3] =
    ["crash-torn/00000000000000000124", "live/00000000000000000217", "preallocated-live/00000000000000000000"];

#[test]
fn indexes_made_from_the_log_are_those_of_the_broker() {
    let corpus = data_dir().join("corpus");
    let mut by_name = BTreeMap::new();
    for index in files(&corpus, &["index"]) {
        let name = index.strip_prefix(&corpus).unwrap().with_extension("").display().to_string();
        by_name.insert(name, compare(&index));
    }
    assert_eq!(by_name.len(), 152);
    let with = |same| by_name.iter().filter(move |(_, found)| **found == same).map(|(name, _)| name.as_str());
    assert_eq!(with((Same::No, Same::No)).collect::<Vec<_>>(), OTHER_DENSITY);
    assert_eq!(with((Same::Yes, Same::NotClosed)).collect::<Vec<_>>(), NOT_CLOSED);
    assert_eq!(with((Same::Yes, Same::Yes)).count(), 146);
}
