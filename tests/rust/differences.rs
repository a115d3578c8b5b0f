//! Differences to Kafka from docs/differences.md that other modules do not test: recovery and conversion.

use std::fs;
use std::path::{Path, PathBuf};

use kbat::broker::convert::{ConvertOptions, convert_batch};
use kbat::repair::{RecoverOptions, RepairReport, recover};
use kbat::{BatchBuilder, ErrorKind, Limits, Progress, Scratch};

use crate::data::data_dir;
use crate::raw::fix_crc;
use crate::recovery::{TempDir, copy_partition};

fn run(place: &Path, in_place: bool, limits: Limits) -> kbat::Result<RepairReport> {
    let out = (!in_place).then(|| place.with_extension("out"));
    let options = RecoverOptions { out, in_place, limits, index_interval_bytes: 1024, ..RecoverOptions::default() };
    recover(place, &options, &mut Progress::none())
}

/// A partition of segments with these base offsets, and batches with these offsets in each.
fn partition(directory: &TempDir, name: &str, segments: &[(i64, &[i64])]) -> PathBuf {
    let place = directory.join(name);
    fs::create_dir_all(&place).unwrap();
    for (base, offsets) in segments {
        let bytes: Vec<u8> = offsets.iter().flat_map(|&offset| batch(offset)).collect();
        fs::write(log(&place, *base), bytes).unwrap();
    }
    place
}

fn log(place: &Path, base: i64) -> PathBuf {
    place.join(format!("{base:020}.log"))
}

fn batch(offset: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut builder = BatchBuilder::new().base_offset(offset);
    builder.append(1000, None, Some(&[7; 50])).unwrap();
    builder.finish_into(&mut bytes).unwrap();
    bytes
}

#[test]
fn damage_in_a_segment_without_indexes_drops_the_later_ones_too() {
    let directory = TempDir::new("differences-index");
    let place = partition(&directory, "t-0", &[(0, &[0, 1, 2]), (3, &[3, 4])]);
    let mut bytes = fs::read(log(&place, 0)).unwrap();
    bytes[batch(0).len() + 70] ^= 1;
    fs::write(log(&place, 0), bytes).unwrap();
    let report = run(&place, false, Limits::default()).unwrap();
    assert_eq!((report.start_offset, report.end_offset, report.segments.len()), (0, 1, 1));
    let reasons: Vec<_> = report.dropped.iter().map(|range| range.reason).collect();
    assert_eq!(reasons, ["crc", "after_fault"]);
}

#[test]
fn a_magic_that_was_flipped_is_a_fault() {
    let directory = TempDir::new("differences-magic");
    let place = partition(&directory, "t-0", &[(0, &[0, 1, 2])]);
    let mut bytes = fs::read(log(&place, 0)).unwrap();
    bytes[batch(0).len() + 16] = 3;
    fs::write(log(&place, 0), bytes).unwrap();
    let report = run(&place, false, Limits::default()).unwrap();
    assert_eq!((report.end_offset, report.dropped[0].reason), (1, "unsupported_magic"));
}

#[test]
fn a_limit_ends_a_recovery_and_cuts_nothing() {
    let directory = TempDir::new("differences-limit");
    let place = partition(&directory, "t-0", &[(0, &[0, 1, 2])]);
    let before = fs::read(log(&place, 0)).unwrap();
    let error = run(&place, true, Limits { batch_len: 100, ..Limits::default() }).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit { name: "batch_len", .. }), "{error}");
    assert!(fs::read(log(&place, 0)).unwrap() == before);
}

#[test]
fn an_abort_marker_that_comes_twice_does_not_end_a_recovery() {
    let directory = TempDir::new("differences-abort");
    let place = directory.join("t-0");
    copy_partition(&data_dir().join("corpus/txn-none"), &place);
    let last = log(&place, 328);
    let mut bytes = fs::read(&last).unwrap();
    let end = kbat::batches(&bytes).last().map_or(328, |batch| batch.unwrap().next_offset());
    let is_abort = |batch: &kbat::Batch<'_>| {
        let (mut scratch, limits) = (Scratch::new(), Limits::default());
        batch.is_control()
            && batch.records(&mut scratch, &limits).unwrap().any(|record| record.unwrap().key() == Some(&[0; 4]))
    };
    let marker = [0, 24, 124, 125, 205].iter().find_map(|&base| {
        let segment = fs::read(log(&place, base)).unwrap();
        let batch = kbat::batches(&segment).map(Result::unwrap).find(is_abort)?;
        let start = usize::try_from(batch.position()).unwrap();
        Some(segment[start..start + batch.size()].to_vec())
    });
    for offset in [end, end + 1] {
        let mut again = marker.clone().unwrap();
        kbat::format::set_base_offset(&mut again, offset).unwrap();
        bytes.extend_from_slice(&again);
    }
    fs::write(&last, &bytes).unwrap();
    let report = run(&place, false, Limits::default()).unwrap();
    assert!(report.is_complete(), "{report}");
    assert_eq!(report.end_offset, end + 2);
}

#[test]
fn offsets_too_far_apart_are_cut_in_place() {
    let directory = TempDir::new("differences-overflow");
    let far = 1 << 31;
    let place = partition(&directory, "t-0", &[(0, &[0, 1, far, far + 1])]);
    let report = run(&place, true, Limits::default()).unwrap();
    assert_eq!((report.end_offset, report.dropped[0].reason), (2, "offset_overflow"));
    assert_eq!(fs::read(log(&place, 0)).unwrap(), [batch(0), batch(1)].concat());
}

#[test]
fn damage_is_not_converted() {
    let mut bytes = batch(5);
    *bytes.last_mut().unwrap() ^= 1;
    let convert = |bytes: &[u8]| {
        let batch = kbat::batches(bytes).next().unwrap().unwrap();
        let (mut scratch, mut out) = (Scratch::new(), Vec::new());
        convert_batch(&batch, 1, &ConvertOptions::default(), &mut scratch, &Limits::default(), &mut out)
    };
    let error = convert(&bytes).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Crc { .. }), "{error}");
    fix_crc(&mut bytes);
    assert!(convert(&bytes).is_err(), "the last record's header count is wrong now, whatever the checksum says");
}
