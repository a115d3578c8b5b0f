//! [`SegmentReader`]: reading a file in windows has the same result as reading its bytes from memory.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::PathBuf;

use kbat::log::SegmentReader;
use kbat::{BatchBuilder, ErrorKind, Limits};

use crate::data;

/// A file in its own directory, removed when dropped.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("kbat-reader-{name}-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        Self(directory)
    }

    fn path(&self) -> PathBuf {
        self.0.join("00000000000000000000.log")
    }

    fn holding(name: &str, bytes: &[u8]) -> Self {
        let file = Self::new(name);
        fs::write(file.path(), bytes).unwrap();
        file
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Position, size and last offset of the batches, and how the walk ended.
type Walk = (Vec<(u64, usize, i64)>, Option<String>, u64);

fn in_memory(bytes: &[u8]) -> Walk {
    let (mut seen, mut error) = (Vec::new(), None);
    let mut walk = kbat::batches(bytes);
    for batch in walk.by_ref() {
        match batch {
            Ok(batch) => seen.push((batch.position(), batch.size(), batch.last_offset())),
            Err(fault) => error = Some(fault.kind().to_string()),
        }
    }
    (seen, error, walk.remainder().len() as u64)
}

fn by_windows(mut reader: SegmentReader) -> Walk {
    let (mut seen, mut error) = (Vec::new(), None);
    while let Some(batch) = reader.next_batch() {
        match batch {
            Ok(batch) => seen.push((batch.position(), batch.size(), batch.last_offset())),
            Err(fault) => error = Some(fault.kind().to_string()),
        }
    }
    (seen, error, reader.remainder_len())
}

fn record(value: &[u8]) -> Vec<u8> {
    let mut builder = BatchBuilder::new();
    builder.append(1, None, Some(value)).unwrap();
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    bytes
}

#[test]
fn reader_of_every_file_walks_as_in_memory() {
    let mut files = 0;
    for root in ["corpus", "corpus-legacy"] {
        for path in data::files(&data::data_dir().join(root), &["log", "checkpoint"]) {
            let bytes = fs::read(&path).unwrap();
            assert_eq!(by_windows(SegmentReader::open(&path).unwrap()), in_memory(&bytes), "{}", path.display());
            files += 1;
        }
    }
    assert!(files > 400, "{files}");
}

#[test]
fn reader_of_batches_across_windows_gives_them_whole() {
    let mut bytes = Vec::new();
    for len in (0..60).map(|i| i * 7919) {
        bytes.extend_from_slice(&record(&vec![7; len]));
    }
    bytes.extend_from_slice(&record(&vec![9; 3 << 20]));
    bytes.resize(bytes.len() + 3_000_000, 0);
    let file = Temporary::holding("windows", &bytes);
    let walk = by_windows(SegmentReader::open(file.path()).unwrap());
    assert_eq!(walk, in_memory(&bytes));
    assert_eq!((walk.0.len(), walk.2), (61, 3_000_000));
}

/// Edge case 10: batches that straddle 2 GiB and 4 GiB. The values are zeros that the file system does not store.
#[test]
fn reader_of_a_file_past_4_gib_has_its_positions() {
    const LEN: usize = 100 << 20;
    let batch = record(&vec![0; LEN]);
    let head = batch.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    let file = Temporary::new("sparse");
    let mut out = File::create(file.path()).unwrap();
    let count = 42;
    for i in 0..count {
        out.seek(SeekFrom::Start(i * batch.len() as u64)).unwrap();
        out.write_all(&batch[..head]).unwrap();
    }
    out.set_len(count * batch.len() as u64).unwrap();
    drop(out);
    assert!(count * batch.len() as u64 > 4 << 30);
    let (seen, error, remainder) = by_windows(SegmentReader::open(file.path()).unwrap());
    assert_eq!((seen.len() as u64, error, remainder), (count, None, 0));
    assert!(seen.iter().enumerate().all(|(i, &(position, ..))| position == (i * batch.len()) as u64));
}

/// Edge case 83.
#[test]
fn reader_of_a_file_that_gets_shorter_ends_there() {
    let one = record(&vec![5; 2 << 20]);
    let file = Temporary::holding("shorter", &one.repeat(3));
    let mut reader = SegmentReader::open(file.path()).unwrap();
    assert!(reader.next_batch().unwrap().is_ok());
    OpenOptions::new().write(true).open(file.path()).unwrap().set_len(one.len() as u64 + 100).unwrap();
    assert!(reader.next_batch().is_none());
    assert_eq!(reader.position(), one.len() as u64);
}

#[test]
fn reader_steps_over_a_batch_that_it_refuses() {
    let (small, large) = (record(b"small"), record(&vec![1; 5000]));
    let mut unknown = record(b"unknown");
    unknown[16] = 9;
    let file = Temporary::holding("skip", &[&small[..], &large, &unknown, &small].concat());
    let limits = Limits { batch_len: 1000, ..Limits::default() };
    let mut reader = SegmentReader::open_with(file.path(), &limits).unwrap();
    assert!(reader.next_batch().unwrap().is_ok());
    let error = reader.next_batch().unwrap().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit { name: "batch_len", .. }), "{error}");
    assert_eq!(error.path(), Some(file.path().as_path()));
    assert!(reader.next_batch().is_none(), "it stops for good after an error");
    assert!(reader.skip_batch().unwrap());
    let error = reader.next_batch().unwrap().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::UnsupportedMagic(9)), "{error}");
    assert!(reader.skip_batch().unwrap());
    assert_eq!(reader.next_batch().unwrap().unwrap().size(), small.len());
    assert!(reader.next_batch().is_none());
    assert!(!reader.skip_batch().unwrap());
}

#[test]
fn reader_of_what_is_no_file_says_so() {
    let file = Temporary::new("none");
    let missing = SegmentReader::open(file.path()).unwrap_err();
    assert!(matches!(missing.kind(), ErrorKind::Io(_)), "{missing}");
    assert!(missing.to_string().contains("00000000000000000000.log"), "{missing}");
    assert!(SegmentReader::open(&file.0).is_err());
}
