//! [`ParallelScan`]: the same rows and error as the sequential scan, for any number of threads and size of parts.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use arrow_array::RecordBatch;
use kbat::arrow::{ArrowScan, Column, Isolation, OnCorrupt, ParallelScan, Parallelism, ScanOptions, ScanSource};
use kbat::{BatchBuilder, find_segments};

use crate::data::{data_dir, files};
use crate::folder::Folder;

/// The result of a scan: its Arrow batches and its error.
type Scanned = (Vec<RecordBatch>, Option<String>);

fn collected(scan: impl Iterator<Item = kbat::Result<RecordBatch>>) -> Scanned {
    let (mut batches, mut error) = (Vec::new(), None);
    for next in scan {
        assert!(error.is_none(), "a scan ends after its error");
        match next {
            Ok(batch) => batches.push(batch),
            Err(fault) => error = Some(fault.to_string()),
        }
    }
    (batches, error)
}

/// Whether the rows are the same, regardless of the boundaries of Arrow batches.
fn same_rows(one: &[RecordBatch], other: &[RecordBatch]) -> bool {
    let rows = |batches: &[RecordBatch]| batches.iter().map(RecordBatch::num_rows).sum::<usize>();
    let mut others = other.iter().cloned();
    let mut rest = None;
    rows(one) == rows(other)
        && one.iter().all(|batch| {
            let mut start = 0;
            while start < batch.num_rows() {
                let part: RecordBatch = rest.take().or_else(|| others.next()).unwrap();
                let len = part.num_rows().min(batch.num_rows() - start);
                if batch.slice(start, len) != part.slice(0, len) {
                    return false;
                }
                rest = (len < part.num_rows()).then(|| part.slice(len, part.num_rows() - len));
                start += len;
            }
            true
        })
}

fn all_columns() -> ScanOptions {
    ScanOptions { columns: Column::all(), include_control: true, max_rows: 100, ..ScanOptions::default() }
}

fn assert_same(name: &str, sources: &[ScanSource], options: &ScanOptions, parts: &[u64]) {
    let expected = collected(ArrowScan::new(sources.to_vec(), options.clone()));
    for &part_bytes in parts {
        for (threads, max_memory_bytes) in [(3, 0), (4, 64 << 10)] {
            let parallelism = Parallelism { threads, max_memory_bytes, part_bytes };
            let found = collected(ParallelScan::new(sources.to_vec(), options.clone(), parallelism));
            assert_eq!(found.1, expected.1, "{name}, {parallelism:?}");
            assert!(same_rows(&found.0, &expected.0), "{name}, {parallelism:?}");
        }
    }
}

fn log_files() -> Vec<PathBuf> {
    files(&data_dir(), &["log"])
}

#[test]
fn rows_of_every_file_are_those_of_the_sequential_scan() {
    let logs = log_files();
    assert!(logs.len() > 100);
    for path in logs {
        let segments = find_segments(&path).unwrap();
        let from_file: Vec<_> = ScanSource::files(&segments);
        let bytes: Arc<Vec<u8>> = Arc::new(std::fs::read(&path).unwrap());
        let part_bytes = if bytes.len() < 20_000 { 1 } else { u64::try_from(bytes.len()).unwrap() / 20 };
        let name = path.display().to_string();
        assert_same(&name, &from_file, &all_columns(), &[part_bytes]);
        assert_same(&name, &[ScanSource::memory(bytes)], &all_columns(), &[part_bytes]);
    }
}

#[test]
fn rows_of_log_directories_are_those_of_the_sequential_scan() {
    let root = data_dir().join("log-dir");
    let sources = ScanSource::files(&find_segments(&root).unwrap());
    assert_same("all", &sources, &all_columns(), &[500, 1 << 30]);
    let bounded = ScanOptions { start_offset: Some(50), end_offset: Some(700), ..all_columns() };
    assert_same("bounded", &sources, &bounded, &[500, 1 << 30]);
    for name in ["txn-lz4-0", "txn-none-0"] {
        let Ok(segments) = find_segments(root.join(name)) else { continue };
        let committed = ScanOptions { isolation: Isolation::ReadCommitted, ..all_columns() };
        assert_same(name, &ScanSource::files(&segments), &committed, &[500]);
    }
}

#[test]
fn damage_is_passed_over_and_reported_as_by_the_sequential_scan() {
    let mut sources = Vec::new();
    for path in files(&data_dir().join("log-dir/segments-default-interval-0"), &["log"]) {
        let mut bytes = std::fs::read(path).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x55;
        sources.push(ScanSource::memory(Arc::new(bytes)));
    }
    for on_corrupt in [OnCorrupt::Fail, OnCorrupt::Skip, OnCorrupt::Report] {
        let options = ScanOptions { on_corrupt, ..all_columns() };
        assert_same(&format!("{on_corrupt:?}"), &sources, &options, &[500, 1 << 30]);
    }
}

/// A log of 24 batches after which some offsets are missing, and the position of each.
fn log_with_gaps() -> (Vec<u8>, Vec<usize>) {
    let (mut bytes, mut positions, mut offset) = (Vec::new(), Vec::new(), 0);
    for index in 0..24 {
        positions.push(bytes.len());
        let mut builder = BatchBuilder::new().base_offset(offset);
        for _ in 0..=index % 3 {
            builder.append(1_000 + offset, None, Some(&[7; 100])).unwrap();
            offset += 1;
        }
        builder.finish_into(&mut bytes).unwrap();
        offset += if index % 5 == 4 { 3 } else { 0 };
    }
    (bytes, positions)
}

/// Corruption outside the bounds must not be found because a part begins there, nor hide what is within them.
#[test]
fn corruption_outside_the_bounds_is_that_of_the_sequential_scan() {
    let folder = Folder::new("parallel-bounds");
    let path = folder.path().join("t-0/00000000000000000000.log");
    std::fs::create_dir(path.parent().unwrap()).unwrap();
    let (bytes, positions) = log_with_gaps();
    let bounds = [(None, Some(9)), (Some(30), None), (Some(12), Some(40)), (Some(100), None)];
    for (index, position) in positions.iter().enumerate() {
        // the offset, the length, the checksum, and the payload
        for place in [7, 10, 18, 80] {
            let mut damaged = bytes.clone();
            damaged[position + place] ^= 4;
            std::fs::write(&path, &damaged).unwrap();
            let sources = ScanSource::files(&find_segments(folder.path()).unwrap());
            for ((start_offset, end_offset), start_timestamp) in bounds.into_iter().zip([None, None, Some(1_025), None])
            {
                let options = ScanOptions { start_offset, end_offset, start_timestamp, ..ScanOptions::default() };
                let name =
                    format!("batch {index}, byte {place}, {start_offset:?}, {end_offset:?}, {start_timestamp:?}");
                assert_same(&name, &sources, &options, &[1, 500]);
            }
        }
    }
}

/// `count` buffers of ten records each.
fn buffers(count: i64) -> Vec<Vec<u8>> {
    let buffer = |index: i64| {
        let mut builder = BatchBuilder::new().base_offset(index.saturating_mul(10));
        for _ in 0..10 {
            builder.append(1, None, Some(&[7; 1000])).unwrap();
        }
        let mut bytes = Vec::new();
        builder.finish_into(&mut bytes).unwrap();
        bytes
    };
    (0..count).map(buffer).collect()
}

#[test]
fn first_error_is_the_one_in_order() {
    let mut buffers = buffers(20);
    for broken in [5, 6, 15] {
        buffers[broken][100] ^= 1;
    }
    let sources: Vec<_> = buffers.into_iter().map(|bytes| ScanSource::memory(Arc::new(bytes))).collect();
    for _ in 0..20 {
        let parallelism = Parallelism { threads: 8, ..Parallelism::default() };
        let mut scan = ParallelScan::new(sources.clone(), ScanOptions::default(), parallelism);
        let rows: usize = scan.by_ref().take(5).map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!(rows, 50);
        assert_eq!(scan.next().unwrap().unwrap_err().position().base_offset, Some(50));
        assert!(scan.next().is_none());
    }
}

/// A buffer that counts how many such buffers were read.
struct Counted(Vec<u8>, Arc<AtomicUsize>, AtomicUsize);

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        if self.2.fetch_add(1, Ordering::Relaxed) == 0 {
            self.1.fetch_add(1, Ordering::Relaxed);
        }
        &self.0
    }
}

/// A scan of which the caller takes one Arrow batch and then waits, and the number of opened buffers.
fn waiting(threads: usize, max_memory_bytes: usize) -> (ParallelScan, Arc<AtomicUsize>) {
    let opened = Arc::new(AtomicUsize::new(0));
    let sources = buffers(200)
        .into_iter()
        .map(|bytes| ScanSource::memory(Arc::new(Counted(bytes, Arc::clone(&opened), AtomicUsize::new(0)))));
    let parallelism = Parallelism { threads, max_memory_bytes, ..Parallelism::default() };
    let mut scan = ParallelScan::new(sources.collect(), ScanOptions::default(), parallelism);
    scan.next().unwrap().unwrap();
    (scan, opened)
}

/// The value of a counter when it no longer changes.
fn settled(counter: &AtomicUsize) -> usize {
    let (start, mut last) = (Instant::now(), usize::MAX);
    while start.elapsed() < Duration::from_secs(10) {
        let now = counter.load(Ordering::Relaxed);
        if now == last {
            return now;
        }
        last = now;
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("does not come to rest");
}

#[test]
fn threads_wait_when_the_memory_is_full() {
    let (mut scan, opened) = waiting(4, 100_000);
    let ahead = settled(&opened);
    assert!((2..20).contains(&ahead), "{ahead} buffers of 10 kB are decoded or on their way, of 100 kB that may be");
    assert_eq!(scan.by_ref().map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 1990);
    assert_eq!(scan.stats().records, 2000);
}

#[test]
fn threads_stop_when_the_scan_is_dropped() {
    let (scan, opened) = waiting(4, 100_000);
    settled(&opened);
    let before = opened.load(Ordering::Relaxed);
    drop(scan);
    // the threads own the buffers; the last thread to end drops them
    let start = Instant::now();
    while Arc::strong_count(&opened) > 1 {
        assert!(start.elapsed() < Duration::from_secs(10), "threads hold the sources still");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(opened.load(Ordering::Relaxed) <= before + 4);
}

#[test]
fn a_scan_of_nothing_ends() {
    for threads in [0, 1, 5] {
        let parallelism = Parallelism { threads, ..Parallelism::default() };
        assert!(ParallelScan::new(Vec::new(), ScanOptions::default(), parallelism).next().is_none());
        let missing = find_segments(Path::new(file!()).parent().unwrap()).map(|found| ScanSource::files(&found));
        let mut scan = ParallelScan::new(missing.unwrap_or_default(), ScanOptions::default(), parallelism);
        assert!(scan.next().is_none());
    }
}
