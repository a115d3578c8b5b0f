//! Tiered storage: objects that Aiven's plugin wrote, compared with the partitions of `corpus/` that they were made of;
//! damaged copies of them; `__remote_log_metadata` of a broker.

use std::fs;
use std::path::{Path, PathBuf};

use kbat::log::PartitionLog;
use kbat::tiered::aiven::{EncryptionKeys, Key, Manifest, ObjectKind, Segment};
use kbat::tiered::metadata::{MetadataRecord, RemoteLogState, SegmentState};
use kbat::tiered::{Candidate, RemoteOptions, choose};
use kbat::{ErrorKind, Limits, Location, Scratch};
use serde_json::{Value, json};

use crate::data::{data_dir, files};
use crate::folder::Folder;

fn aiven() -> PathBuf {
    data_dir().join("tiered/aiven")
}

fn keys() -> EncryptionKeys {
    let mut keys = EncryptionKeys::new();
    keys.insert_file("key1", aiven().join("test-private-key.pem")).unwrap();
    keys
}

fn open(path: &Path) -> kbat::Result<Segment> {
    Segment::open_file(path, &keys(), &Limits::default())
}

fn whole(segment: &Segment) -> kbat::Result<Vec<u8>> {
    let mut out = vec![0; usize::try_from(segment.original_len()).unwrap()];
    let count = segment.read_at(&mut out, 0)?;
    assert_eq!(count, out.len());
    Ok(out)
}

/// A segment of a mode: `segment("zstd-aes", "codec-none", 0)`.
fn segment(mode: &str, topic: &str, start_offset: i64) -> PathBuf {
    let is_wanted = |path: &PathBuf| {
        let key = Key::parse(path.to_str().unwrap()).unwrap();
        key.topic == topic && key.segment.start_offset == start_offset
    };
    files(&aiven().join(mode), &["log"]).into_iter().find(is_wanted).unwrap()
}

/// Copies a segment's objects, changed by a function.
fn damaged(folder: &Folder, path: &Path, change: impl Fn(ObjectKind, &mut Vec<u8>)) -> PathBuf {
    for kind in ObjectKind::ALL {
        let name = path.with_extension(kind.suffix().trim_start_matches('.'));
        let mut bytes = fs::read(&name).unwrap();
        change(kind, &mut bytes);
        folder.file(name.file_name().unwrap().to_str().unwrap(), bytes);
    }
    folder.path().join(path.file_name().unwrap())
}

/// Copies a segment's objects with a member of the manifest replaced: `("/chunkIndex/originalChunkSize", 1)`.
fn lying(folder: &Folder, path: &Path, pointer: &str, value: &Value) -> PathBuf {
    damaged(folder, path, |kind, bytes| {
        if kind == ObjectKind::Manifest {
            let mut manifest: Value = serde_json::from_slice(bytes).unwrap();
            *manifest.pointer_mut(pointer).unwrap() = value.clone();
            *bytes = manifest.to_string().into_bytes();
        }
    })
}

#[test]
fn aiven_segments_of_all_modes_equal_the_partitions() {
    let mut counts = Vec::new();
    for mode in ["plain", "zstd", "aes", "zstd-aes", "zstd-aes-4m"] {
        let paths = files(&aiven().join(mode), &["log"]);
        counts.push(paths.len());
        for path in paths {
            let key = Key::parse(path.to_str().unwrap()).unwrap();
            let case = data_dir().join("corpus").join(&key.topic);
            let original = |suffix: &str| {
                fs::read(case.join(format!("{:020}{suffix}", key.segment.start_offset))).unwrap_or_default()
            };
            let segment = open(&path).unwrap();
            assert!(whole(&segment).unwrap() == original(".log"), "{}", path.display());

            let metadata = segment.manifest().segment.as_ref().unwrap();
            assert_eq!((metadata.topic.as_str(), metadata.topic_id), (key.topic.as_str(), key.topic_id));
            assert_eq!((metadata.partition, metadata.segment_id), (key.partition, key.segment.segment_id));
            assert_eq!(metadata.start_offset, key.segment.start_offset);

            let object = fs::read(path.with_extension("indexes")).unwrap();
            assert_eq!(segment.manifest().indexes.object_len(), object.len() as u64);
            let indexes = segment.indexes(&object).unwrap();
            assert_eq!(indexes.offset, original(".index"), "{}", path.display());
            assert_eq!(indexes.timestamp, original(".timeindex"), "{}", path.display());
            assert_eq!(indexes.transaction.clone().unwrap_or_default(), original(".txnindex"), "{}", path.display());
            assert!(indexes.producer_snapshot == snapshot_after(&case, key.segment.start_offset));
            assert_eq!(indexes.leader_epochs().unwrap().entries().len(), 1);
        }
    }
    assert_eq!(counts, [22; 5]);
}

/// The snapshot of the next segment's base offset, or of the end of the log.
fn snapshot_after(case: &Path, start_offset: i64) -> Vec<u8> {
    let offset = |path: &PathBuf| path.file_stem().unwrap().to_str().unwrap().parse::<i64>().unwrap();
    let next = files(case, &["log"]).into_iter().find(|path| offset(path) > start_offset);
    let last = || files(case, &["snapshot"]).pop().unwrap();
    fs::read(next.map_or_else(last, |path| path.with_extension("snapshot"))).unwrap()
}

#[test]
fn aiven_read_at_equals_the_original_at_every_position() {
    let path = segment("zstd-aes", "codec-none", 0);
    let segment = open(&path).unwrap();
    let original = whole(&segment).unwrap();
    for start in (0..original.len() + 5000).step_by(611) {
        for len in [1, 61, 4096, 20_000] {
            let mut out = vec![0; len];
            let count = segment.read_at(&mut out, start as u64).unwrap();
            let expected = original.get(start..).unwrap_or_default();
            assert!(out[..count] == expected[..expected.len().min(len)], "{len} bytes at {start}");
        }
    }
}

#[test]
fn aiven_chain_of_manifests_is_complete() {
    let mut paths = files(&aiven().join("zstd"), &["log"]);
    paths.retain(|path| path.to_str().unwrap().contains("txn-lz4"));
    let candidates: Vec<Candidate> = paths
        .iter()
        .map(|path| {
            let segment = open(path).unwrap();
            let metadata = segment.manifest().segment.clone().unwrap();
            Candidate {
                start_offset: metadata.start_offset,
                last_offset: Some(metadata.end_offset),
                leader_epochs: metadata.leader_epochs,
                ..Candidate::default()
            }
        })
        .collect();
    let chain = choose(&candidates, None, None);
    assert_eq!(chain.links.len(), 7);
    assert!(chain.gaps.is_empty() && chain.omitted.is_empty());
    assert_eq!(chain.links.last().unwrap().offsets, 356..366);
}

#[test]
fn aiven_wrong_key_is_named_and_no_secret_is_shown() {
    let path = segment("aes", "txn-lz4", 0);
    let error = |keys: &EncryptionKeys| Segment::open_file(&path, keys, &Limits::default()).unwrap_err();
    let mut other = EncryptionKeys::new();
    other.insert_file("key1", aiven().join("other-private-key.pem")).unwrap();
    let wrong = error(&other);
    assert!(matches!(wrong.kind(), ErrorKind::InvalidArgument(_)));
    assert!(wrong.to_string().contains("key \"key1\" does not decrypt"), "{wrong}");
    assert_eq!(wrong.path().unwrap(), path.with_extension("rsm-manifest"));

    let mut rotated = EncryptionKeys::new();
    for id in ["key3", "key2"] {
        rotated.insert_file(id, aiven().join("test-private-key.pem")).unwrap();
    }
    let unknown = error(&rotated);
    let expected = "encrypted with the key \"key1\": encryption keys were passed for \"key2\", \"key3\"";
    assert!(unknown.to_string().contains(expected), "{unknown}");
    assert!(error(&EncryptionKeys::new()).to_string().contains("no encryption keys were passed"));
    assert_eq!(format!("{rotated:?}"), "EncryptionKeys { ids: [\"key2\", \"key3\"], .. }");

    let pem = fs::read_to_string(aiven().join("test-private-key.pem")).unwrap();
    let mut on_demand = EncryptionKeys::new();
    on_demand.set_callback(move |id| Ok((id == "key1").then(|| pem.clone())));
    assert!(Segment::open_file(&path, &on_demand, &Limits::default()).is_ok());
}

#[test]
fn aiven_flipped_bit_is_an_error_that_names_object_and_chunk() {
    for mode in ["zstd", "aes", "zstd-aes"] {
        let path = segment(mode, "codec-none", 0);
        let chunk = open(&path).unwrap().manifest().chunks.chunk(5).unwrap();
        let folder = Folder::new(&format!("tiered-flip-{mode}"));
        // the first byte of a zstd frame's magic, or of an initialization vector
        let place = chunk.transformed.start as usize;
        let copy = damaged(&folder, &path, |kind, bytes| {
            if kind == ObjectKind::Log {
                bytes[place] ^= 0x10;
            }
        });
        let damaged = open(&copy).unwrap();
        let mut before = vec![0; chunk.original.start as usize];
        assert_eq!(damaged.read_at(&mut before, 0).unwrap(), before.len());
        let error = damaged.read_at(&mut [0], chunk.original.start).unwrap_err();
        assert!(error.to_string().contains("chunk 5 "), "{mode}: {error}");
        assert_eq!(error.path(), Some(copy.as_path()));
        assert_eq!(error.position().byte, Some(chunk.original.start));
        let mut after = [0; 100];
        assert_eq!(damaged.read_at(&mut after, chunk.original.end).unwrap(), 100);
    }
    let folder = Folder::new("tiered-flip-indexes");
    let copy = damaged(&folder, &segment("aes", "txn-lz4", 4), |kind, bytes| {
        if kind == ObjectKind::Indexes {
            bytes[0] ^= 1;
        }
    });
    let object = fs::read(copy.with_extension("indexes")).unwrap();
    let error = open(&copy).unwrap().indexes(&object).unwrap_err();
    assert!(error.to_string().contains("the offset index cannot be decrypted"), "{error}");
    assert_eq!(error.path().unwrap(), copy.with_extension("indexes"));
}

#[test]
fn aiven_truncated_object_is_an_error_that_names_the_chunk() {
    for mode in ["plain", "zstd", "aes", "zstd-aes"] {
        let folder = Folder::new(&format!("tiered-truncated-{mode}"));
        let copy = damaged(&folder, &segment(mode, "codec-none", 0), |kind, bytes| {
            if kind == ObjectKind::Log {
                bytes.truncate(bytes.len() - 1);
            }
        });
        let truncated = open(&copy).unwrap();
        let last = truncated.manifest().chunks.chunk(19).unwrap();
        let mut before = vec![0; last.original.start as usize];
        assert_eq!(truncated.read_at(&mut before, 0).unwrap(), before.len());
        let error = whole(&truncated).unwrap_err();
        assert!(error.to_string().contains("chunk 19 is truncated"), "{mode}: {error}");
        assert_eq!(error.path(), Some(copy.as_path()));
    }
    let folder = Folder::new("tiered-truncated-indexes");
    let path = segment("zstd", "txn-lz4", 4);
    let copy = damaged(&folder, &path, |kind, bytes| {
        if kind == ObjectKind::Indexes {
            bytes.pop();
        }
    });
    let object = fs::read(copy.with_extension("indexes")).unwrap();
    assert!(open(&copy).unwrap().indexes(&object).unwrap_err().to_string().contains("its manifest describes"));
    fs::remove_file(copy.with_extension("rsm-manifest")).unwrap();
    let missing = open(&copy).unwrap_err();
    assert!(missing.is_not_found() && missing.to_string().contains("incomplete"), "{missing}");
}

#[test]
fn aiven_manifest_that_lies_is_an_error_that_names_it() {
    let members = [
        "/chunkIndex/originalChunkSize",
        "/chunkIndex/originalFileSize",
        "/chunkIndex/transformedChunkSize",
        "/chunkIndex/finalTransformedChunkSize",
        "/segmentIndexes/offset/position",
        "/segmentIndexes/timestamp/size",
    ];
    let folder = Folder::new("tiered-lying");
    for member in members {
        for value in [json!(-1), json!(1_u64 << 31), json!(u64::MAX), json!(1e300), json!("1"), json!(null)] {
            let copy = lying(&folder, &segment("plain", "txn-lz4", 4), member, &value);
            let error = open(&copy).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::InvalidFile(_)), "{member} {value}: {error}");
            assert_eq!(error.path().unwrap(), copy.with_extension("rsm-manifest"));
        }
        // in the range of an int, but not the size of the object
        for value in [json!(0), json!(1), json!(0x7fff_ffff)] {
            let copy = lying(&folder, &segment("plain", "txn-lz4", 4), member, &value);
            let object = fs::read(copy.with_extension("indexes")).unwrap();
            let result = open(&copy).and_then(|segment| {
                segment.indexes(&object)?;
                whole_in_steps(&segment)
            });
            let original = fs::read(segment("plain", "txn-lz4", 4)).unwrap();
            assert!(result.is_err() || result.unwrap() == original, "{member} {value}");
        }
    }
    let copy = lying(&folder, &segment("zstd-aes", "codec-none", 0), "/chunkIndex/originalFileSize", &json!(90_000));
    let error = open(&copy).unwrap_err().to_string();
    assert!(error.contains("count of 20") && error.contains("make it 22"), "{error}");
}

/// Reads a segment in steps, because the size in its manifest may be wrong.
fn whole_in_steps(segment: &Segment) -> kbat::Result<Vec<u8>> {
    let mut out = Vec::new();
    loop {
        let mut step = [0; 1000];
        let count = segment.read_at(&mut step, out.len() as u64)?;
        if count == 0 {
            return Ok(out);
        }
        out.extend(&step[..count]);
    }
}

#[test]
fn aiven_manifest_of_iceberg_is_refused_by_name() {
    let error = Manifest::parse(b"PFA1").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidArgument(message) if message.contains("Iceberg")));
}

#[test]
fn remote_log_metadata_of_a_broker_becomes_the_state_of_each_segment() {
    let log = fs::read(data_dir().join("tiered/kafka-local/remote-log-metadata.log")).unwrap();
    let (mut state, mut scratch, limits) = (RemoteLogState::default(), Scratch::new(), Limits::default());
    for batch in kbat::batches(&log) {
        for record in batch.unwrap().records(&mut scratch, &limits).unwrap() {
            let record = record.unwrap();
            assert_eq!(record.key(), None);
            let parsed = MetadataRecord::parse(record.value().unwrap()).unwrap();
            assert_eq!(state.apply(parsed), None);
        }
    }
    let partitions: Vec<_> = state.partitions().collect();
    assert_eq!(partitions.len(), 1);
    let (partition, remote) = partitions[0];
    assert_eq!((partition.topic.as_str(), partition.partition), ("orders", 0));
    assert_eq!(remote.segments().count(), 7);
    let candidates: Vec<Candidate> = remote
        .segments()
        .map(|segment| Candidate {
            start_offset: segment.start_offset,
            last_offset: Some(segment.end_offset),
            leader_epochs: segment.leader_epochs.clone(),
            state: Some(segment.state),
            preference: remote.finish_order(segment.id),
            ..Candidate::default()
        })
        .collect();
    let chain = choose(&candidates, None, None);
    let starts: Vec<i64> = chain.links.iter().map(|link| link.offsets.start).collect();
    assert_eq!(starts, [200, 2218, 2361, 4404, 4517, 6535]);
    assert_eq!(chain.links.last().unwrap().offsets.end, 6678);
    assert!(chain.gaps.is_empty());
    let deleted: Vec<_> = remote.segments().filter(|segment| segment.state == SegmentState::DeleteFinished).collect();
    assert_eq!((deleted.len(), deleted[0].start_offset, chain.omitted.len()), (1, 0, 1));
}

#[test]
fn remote_segments_and_the_local_tail_are_one_log() {
    let kafka = data_dir().join("tiered/kafka-local");
    let (tail, remote) = (Location::from(kafka.join("log-dir/orders-0")), Location::from(kafka.join("remote")));
    let joined = tail.with_remote(remote, &RemoteOptions::new()).unwrap();
    let log = PartitionLog::open(joined).unwrap();
    let bases: Vec<i64> = log.segments().iter().map(kbat::log::Segment::base_offset).collect();
    assert_eq!(bases, [200, 2218, 2361, 4404, 4517, 6535, 6678]);
    assert_eq!((log.start_offset(), log.end_offset().unwrap()), (200, 8633));
    assert_eq!(log.find_offset(3000).unwrap().unwrap().0.base_offset(), 2361);
    assert!(!log.aborted_transactions(200, 8633).unwrap().is_empty());
}

#[test]
fn remote_location_without_the_partition_is_refused() {
    let tail = Location::from(data_dir().join("tiered/kafka-local/log-dir/orders-0"));
    let error = tail.with_remote(Location::from(data_dir().join("log-dir")), &RemoteOptions::new()).unwrap_err();
    assert!(error.to_string().contains("remote has no effect"), "{error}");
}
