//! Objects in memory, split into parts.

use super::Splitter;
use crate::arrow::{ArrowScan, ParallelScan, Parallelism, ScanOptions, ScanSource};
use crate::format::builder::BatchBuilder;
use crate::format::frame::batches;
use crate::io::Location;
use crate::limits::Limits;
use crate::num::u64_of;
use crate::objects::tests::store;
use crate::store::SegmentFile;

/// A source of an object with these bytes.
fn source(bytes: &[u8]) -> ScanSource {
    let objects = store(&[("a-0/00000000000000000000.log", bytes.to_vec())]);
    let path = Location::of_objects(objects, "s3://bucket", "").join("a-0").join("00000000000000000000.log");
    ScanSource::file(&SegmentFile { path, partition: None, base_offset: Some(0), size: u64_of(bytes.len()) })
}

/// 200 batches of different lengths, and the positions at which they end.
fn segment() -> (Vec<u8>, Vec<u64>) {
    let mut bytes = Vec::new();
    let mut ends = Vec::new();
    for number in 0..200_u16 {
        let mut builder = BatchBuilder::new().base_offset(i64::from(number));
        builder.append(i64::from(number), None, Some(&vec![b'x'; usize::from(number % 50) * 20])).unwrap();
        builder.finish_into(&mut bytes).unwrap();
        ends.push(u64_of(bytes.len()));
    }
    (bytes, ends)
}

/// A part's window, and its bytes if it has them.
type Part = ((u64, u64), Option<Vec<u8>>);

/// The windows of the parts, and the bytes that they have.
fn parts(bytes: &[u8], max_bytes: u64) -> Vec<Part> {
    let Some(mut splitter) = Splitter::new(&source(bytes), None) else { return Vec::new() };
    let mut found = Vec::new();
    while let Some((part, opened)) = splitter.next(max_bytes, &Limits::default()) {
        found.push((part.window, opened.map(|opened| opened.bytes)));
        assert!(found.len() <= bytes.len());
    }
    found
}

/// Checks that the parts are adjacent, have the bytes of the object, and begin with batches.
fn check(bytes: &[u8], ends: &[u64], max_bytes: u64) -> Vec<Part> {
    let found = parts(bytes, max_bytes);
    let mut next = 0;
    for ((start, end), part) in &found {
        assert_eq!(*start, next);
        assert!(*start == 0 || ends.contains(start), "{start} of {max_bytes}");
        if let Some(part) = part {
            assert!(part.len() <= usize::try_from(max_bytes).unwrap() * 4);
            let from = usize::try_from(*start).unwrap();
            assert_eq!(part[..], bytes[from..from + part.len()]);
            assert_eq!(*end, if *end == u64::MAX { *end } else { start + u64_of(part.len()) });
        }
        next = *end;
    }
    assert_eq!(next, u64::MAX);
    found
}

#[test]
fn parts_have_all_bytes_and_begin_with_batches() {
    let (bytes, ends) = segment();
    for max_bytes in [1, 60, 500, 1200, 10_000, 50_000, u64_of(bytes.len()) - 1, u64_of(bytes.len()), 1 << 30] {
        let found = check(&bytes, &ends, max_bytes);
        if max_bytes >= 1200 {
            assert!(found.iter().all(|(_, part)| part.is_some()));
            assert!(u64_of(found.len()) <= u64_of(bytes.len()) / (max_bytes - 1200).max(1) + 200);
        }
    }
    // a batch that is longer than a part may be is left to the reader
    assert!(check(&bytes, &ends, 60).last().unwrap().1.is_none());
    assert!(parts(&[], 100).is_empty());
}

#[test]
fn what_is_after_a_corrupt_batch_or_at_the_end_is_one_part() {
    let (mut bytes, ends) = segment();
    let position = usize::try_from(ends[99]).unwrap();
    for tail in [&bytes[..30], &vec![0; 100_000][..]] {
        let whole = [&bytes[..], tail].concat();
        check(&whole, &ends, 10_000);
        assert_eq!(batches(&whole).filter_map(Result::ok).count(), 200);
    }
    bytes[position + 8..position + 12].copy_from_slice(&(-1_i32).to_be_bytes());
    let found = check(&bytes, &ends, 10_000);
    let (last, part) = found.last().unwrap();
    assert!(last.0 <= ends[99] && part.is_none());
}

#[test]
fn a_scan_of_parts_returns_the_same_rows_and_error() {
    let (good, ends) = segment();
    let mut bad = good.clone();
    let position = usize::try_from(ends[150]).unwrap();
    bad[position + 40] ^= 1;
    let mut long = good.clone();
    long[position + 8..position + 12].copy_from_slice(&(1_i32 << 20).to_be_bytes());
    for bytes in [good, bad, long] {
        let sources = || vec![source(&bytes), source(&bytes)];
        let rows = |found: &mut dyn Iterator<Item = crate::Result<arrow_array::RecordBatch>>| {
            let (mut rows, mut error) = (0, None);
            for batch in found {
                match batch {
                    Ok(batch) => rows += batch.num_rows(),
                    Err(found) => error = Some(found.to_string()),
                }
            }
            (rows, error)
        };
        let expected = rows(&mut ArrowScan::new(sources(), ScanOptions::default()));
        for (threads, part_bytes) in [(1, 100), (2, 2000), (3, 10_000), (2, 1 << 20)] {
            let parallelism = Parallelism { threads, part_bytes, ..Parallelism::default() };
            let found = rows(&mut ParallelScan::new(sources(), ScanOptions::default(), parallelism));
            assert_eq!(found, expected);
        }
    }
}
