//! Compares `HeaderReader` with `SegmentReader` on all test data, and counts the bytes that it reads.

use std::fs;

use kbat::log::{HeaderReader, SegmentReader};
use kbat::{BatchBuilder, Limits};

use crate::data::{data_dir, files};

#[test]
fn headers_of_every_segment_are_those_of_its_batches() {
    let paths = files(&data_dir(), &["log"]);
    assert!(paths.len() > 300);
    for path in paths {
        let limits = Limits::default();
        let mut headers = HeaderReader::open(&path, &limits).unwrap();
        let mut batches = SegmentReader::open(&path).unwrap();
        while let Some(batch) = batches.next_batch() {
            let header = headers.next_header().expect("as many headers as batches");
            match (batch, header) {
                (Ok(batch), Ok(header)) => assert_eq!(*batch.header(), header, "{}", path.display()),
                (Err(batch), Err(header)) => assert_eq!(batch.to_string(), header.to_string()),
                (batch, header) => panic!("{}: {batch:?} and {header:?}", path.display()),
            }
        }
        assert!(headers.next_header().is_none(), "{}", path.display());
        assert_eq!(headers.remainder_len(), batches.remainder_len(), "{}", path.display());
    }
}

#[test]
fn headers_of_large_batches_are_read_without_their_payloads() {
    let mut bytes = Vec::new();
    for number in 0..100 {
        let mut builder = BatchBuilder::new().base_offset(number);
        builder.append(number, None, Some(&[7; 16_000])).unwrap();
        builder.finish_into(&mut bytes).unwrap();
    }
    let path = std::env::temp_dir().join(format!("kbat-headers-{}.log", std::process::id()));
    fs::write(&path, &bytes).unwrap();
    let mut headers = HeaderReader::open(&path, &Limits::default()).unwrap();
    let mut offsets = Vec::new();
    while let Some(header) = headers.next_header() {
        offsets.push(header.unwrap().last_offset());
    }
    let mut out = Vec::new();
    let first = HeaderReader::open(&path, &Limits::default()).unwrap().next_header().unwrap().unwrap();
    assert_eq!(headers.read_batch(&first, &mut out).unwrap().bytes(), &bytes[..first.size()]);
    fs::remove_file(&path).unwrap();
    assert_eq!(offsets, (0..100).collect::<Vec<_>>());
    let read = headers.bytes_read() - u64::try_from(first.size()).unwrap();
    assert!(read * 50 < u64::try_from(bytes.len()).unwrap(), "{read} of {} bytes", bytes.len());
}
