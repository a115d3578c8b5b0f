//! Compaction, filtering and recompression of directories from Rust. No bytes may cause a panic or an incomplete
//! target.

use std::fs;
use std::path::{Path, PathBuf};

use kbat::rewrite::{
    CompactOptions, FilterOptions, IndexOptions, RewriteOptions, compact, filter, rewrite as rewrite_partition,
};
use kbat::{BatchBuilder, Compression, Progress, Record};

use crate::data::{Owned, all_records, data_dir, from_base64, json_lines};
use crate::folder::Folder;

/// A partition with one segment per buffer, each with its base offset.
pub(crate) fn partition(folder: &Folder, name: &str, segments: &[(i64, &[u8])]) -> PathBuf {
    let directory = folder.path().join(name);
    fs::create_dir_all(&directory).unwrap();
    for (base, bytes) in segments {
        fs::write(directory.join(format!("{base:020}.log")), bytes).unwrap();
    }
    directory
}

fn batch(base_offset: i64, records: &[(&str, Option<&str>)]) -> Vec<u8> {
    let mut builder = BatchBuilder::new().base_offset(base_offset);
    for (key, value) in records {
        builder.append(1000, Some(key.as_bytes()), value.map(str::as_bytes)).unwrap();
    }
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    bytes
}

fn records_of(directory: &Path) -> Vec<Owned> {
    let segments = kbat::find_segments(directory).unwrap();
    segments.iter().flat_map(|segment| all_records(&fs::read(&segment.path).unwrap()).unwrap()).collect()
}

fn offsets_of(directory: &Path) -> Vec<i64> {
    records_of(directory).iter().map(|record| record.offset).collect()
}

pub(crate) fn names_in(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Two segments: offsets 0 to 3, and the active segment from 4 on.
fn two_segments(folder: &Folder) -> PathBuf {
    let first = [batch(0, &[("a", Some("1")), ("b", Some("2"))]), batch(2, &[("a", None), ("c", Some("3"))])].concat();
    partition(folder, "source", &[(0, &first), (4, &batch(4, &[("b", Some("4")), ("b", Some("5"))]))])
}

#[test]
fn an_index_that_repeated_offsets_do_not_fit_is_an_error_of_the_source() {
    let folder = Folder::new("rewrite-order");
    let (first, second) = (batch(0, &[("a", Some("1")), ("b", Some("2"))]), batch(2, &[("a", None)]));
    let (twice, again) = ([first.clone(), second.clone()].concat(), [first.clone(), second.clone()].concat());
    let source = partition(&folder, "source", &[(0, &twice), (1, &again), (3, &batch(3, &[("c", None)]))]);
    let out = folder.path().join("out");
    let index = IndexOptions { index_interval_bytes: 0, ..IndexOptions::default() };
    let options = CompactOptions { index, ..CompactOptions::default() };
    let error = compact(&source, &out, &options, &mut Progress::none()).unwrap_err();
    assert!(error.to_string().contains("segments repeat offsets: salvage"), "{error}");
    assert_eq!(error.path(), Some(source.join(format!("{:020}.log", 1)).as_path()), "{error}");
    assert_eq!(error.position().byte, Some(0), "{error}");
    assert!(!out.exists());
}

#[test]
fn compact_drops_what_is_superseded_and_copies_the_active_segment() {
    let folder = Folder::new("rewrite-compact");
    let (source, out) = (two_segments(&folder), folder.path().join("out"));
    let options = CompactOptions { now_ms: Some(5000), delete_retention_ms: 10, ..CompactOptions::default() };
    let report = compact(&source, &out, &options, &mut Progress::none()).unwrap();
    assert_eq!(offsets_of(&out), [1, 2, 3, 4, 5]);
    assert_eq!((report.dropped.superseded, report.tombstones_retained, report.untouched_segments), (1, 1, 1));
    assert_eq!((report.first_uncleanable_offset, report.end_offset, report.delete_horizons_set), (4, 6, 1));
    let options = CompactOptions { now_ms: Some(5010), include_active: true, ..options };
    compact(&out, folder.path().join("again"), &options, &mut Progress::none()).unwrap();
    assert_eq!(offsets_of(&folder.path().join("again")), [3, 5]);
    assert_eq!(offsets_of(&source), [0, 1, 2, 3, 4, 5]);
}

#[test]
fn filter_keeps_what_the_closure_keeps() {
    let folder = Folder::new("rewrite-filter");
    let (source, out) = (two_segments(&folder), folder.path().join("out"));
    let mut keep = |record: &Record<'_>| Ok(record.key() != Some(b"b"));
    let report = filter(&source, &out, &FilterOptions::default(), &mut keep, &mut Progress::none()).unwrap();
    assert_eq!(offsets_of(&out), [0, 2, 3]);
    assert_eq!((report.dropped_records, report.rebuilt_batches, report.emptied_batches), (3, 1, 1));
    let names = ["index", "log", "timeindex"].map(|kind| format!("{:020}.{kind}", 0));
    assert_eq!(names_in(&out)[..3], names);
    let mut fail = |_: &Record<'_>| Err(std::io::Error::other("no").into());
    let target = folder.path().join("failed");
    assert!(filter(&source, &target, &FilterOptions::default(), &mut fail, &mut Progress::none()).is_err());
    assert_eq!(names_in(folder.path()), ["out", "source"]);
}

#[test]
fn rewrite_joins_and_compresses() {
    let folder = Folder::new("rewrite-rewrite");
    let (source, out) = (two_segments(&folder), folder.path().join("out"));
    let options = RewriteOptions {
        compression: Some(Compression::Gzip),
        batch_bytes: Some(1 << 20),
        ..RewriteOptions::default()
    };
    let report = rewrite_partition(&source, &out, &options, &mut Progress::none()).unwrap();
    assert_eq!(records_of(&out), records_of(&source));
    assert_eq!((report.read.batches, report.written.batches, report.written.segments), (3, 2, 2));
    assert!(report.losses.is_empty());
}

#[test]
fn rewrite_that_its_caller_ends_leaves_nothing() {
    let folder = Folder::new("rewrite-ended");
    let source = two_segments(&folder);
    let mut refuse = |_, _| false;
    let result =
        compact(&source, folder.path().join("out"), &CompactOptions::default(), &mut Progress::new(&mut refuse));
    assert!(
        matches!(result.unwrap_err().kind(), kbat::ErrorKind::Io(error) if error.kind() == std::io::ErrorKind::Interrupted)
    );
    assert_eq!(names_in(folder.path()), ["source"]);
}

#[test]
fn batches_that_span_too_many_offsets_for_one_segment_begin_another() {
    let folder = Folder::new("rewrite-span");
    let far = i64::from(i32::MAX);
    let first = [batch(0, &[("a", Some("1"))]), batch(far + 1, &[("b", Some("2"))])].concat();
    let source = partition(&folder, "source", &[(0, &first), (far + 2, &[])]);
    for target in ["1", "2"] {
        let out = folder.path().join(target);
        if target == "1" {
            compact(&source, &out, &CompactOptions::default(), &mut Progress::none()).unwrap();
        } else {
            let mut all = |_: &Record<'_>| Ok(true);
            filter(&source, &out, &FilterOptions::default(), &mut all, &mut Progress::none()).unwrap();
        }
        let bases: Vec<_> = kbat::find_segments(&out).unwrap().iter().map(|segment| segment.base_offset).collect();
        assert_eq!(bases, [Some(0), Some(far + 1), Some(far + 2)]);
        assert_eq!(offsets_of(&out), [0, far + 1]);
    }
}

/// All three on any bytes: a readable target, or an error and no target.
fn rewrite_anything(folder: &Folder, bytes: &[u8]) {
    let source = partition(folder, "source", &[(0, bytes), (1 << 40, &[])]);
    let out = folder.path().join("out");
    for call in 0..4 {
        let progress = &mut Progress::none();
        let result = match call {
            0 | 1 => {
                let check_crc = call == 0;
                compact(&source, &out, &CompactOptions { check_crc, ..CompactOptions::default() }, progress).map(drop)
            }
            2 => {
                let mut keep = |record: &Record<'_>| Ok(record.offset() % 2 == 0);
                let options = FilterOptions { check_crc: false, ..FilterOptions::default() };
                filter(&source, &out, &options, &mut keep, progress).map(drop)
            }
            _ => {
                let options = RewriteOptions { magic: Some(2), batch_bytes: Some(500), ..RewriteOptions::default() };
                rewrite_partition(&source, &out, &options, progress).map(drop)
            }
        };
        assert_eq!(out.exists(), result.is_ok());
        let _ = fs::remove_dir_all(&out);
        assert_eq!(names_in(folder.path()), ["source"]);
    }
}

#[test]
fn rewrites_of_damaged_buffers_give_a_target_or_an_error() {
    let folder = Folder::new("rewrite-damaged");
    for (number, line) in json_lines(&data_dir().join("corpus/verdicts/verdicts.jsonl")).iter().enumerate() {
        if number % 4 == 0 {
            rewrite_anything(&folder, &from_base64(&line["bytes"]).unwrap());
        }
    }
}
