//! Valid and invalid Zstandard frames: edge case 47.

use std::io::Write as _;

use kbat::{Compression, ErrorKind, Limits, Scratch};

use crate::data::{first, records};
use crate::raw::{V2, ZSTD, record, zstd};

const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

fn read(stream: &[u8], count: i32) -> kbat::Result<usize> {
    let bytes = V2 { record_count: count, ..V2::compressed(ZSTD, stream) }.bytes();
    records(&first(&bytes)).map(|records| records.len())
}

/// A frame of the reference library, written as a stream: without content size unless pledged.
fn stream(content: &[u8], checksum: bool) -> Vec<u8> {
    let mut encoder = ::zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
    encoder.include_checksum(checksum).unwrap();
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn refused(stream: &[u8]) -> String {
    let error = read(stream, 1).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Decompression { compression: Compression::Zstd, .. }), "{error}");
    error.to_string()
}

/// A handmade frame: descriptor with its fields, then one raw block.
fn frame(head: &[u8], content: &[u8]) -> Vec<u8> {
    let block = (content.len() as u32) << 3 | 1;
    [&MAGIC, head, &block.to_le_bytes()[..3], content].concat()
}

/// A skippable frame.
fn skippable(len: usize) -> Vec<u8> {
    [&[0x5a, 0x2a, 0x4d, 0x18], (len as u32).to_le_bytes().as_slice(), &vec![7; len]].concat()
}

/// Edge case 47. Java and librdkafka write none; kafka-python and franz-go do.
#[test]
fn zstd_frames_with_and_without_content_size_are_read() {
    let content: Vec<u8> = (0..30_000).flat_map(record).collect();
    for stream in [zstd(&content), stream(&content, false), stream(&content, true)] {
        assert_eq!(read(&stream, 30_000).unwrap(), 30_000);
    }
    assert_eq!(read(&frame(&[0x00, 0x58], &record(0)), 1).unwrap(), 1);
    assert_eq!(read(&frame(&[0x20, record(0).len() as u8], &record(0)), 1).unwrap(), 1);
}

/// Edge case 47. A library read only the first frame (kafka-python #2717).
#[test]
fn zstd_frames_in_a_row_are_one_stream() {
    let several = [zstd(&record(0)), stream(&record(1), true), zstd(b""), zstd(&record(2))].concat();
    assert_eq!(read(&several, 3).unwrap(), 3);
    let skipping = [skippable(5), zstd(&record(0)), skippable(0), stream(&record(1), false), skippable(300)].concat();
    assert_eq!(read(&skipping, 2).unwrap(), 2);
}

/// Edge case 47. After franz-go's `TestDecompressZstdHugeClaim`.
#[test]
fn zstd_content_size_that_lies_is_refused_and_allocates_nothing() {
    let head = |size: u64| [&[0xe0][..], &size.to_le_bytes()].concat();
    for size in [8_u64 << 30, u64::MAX, 3] {
        let bytes = V2::compressed(ZSTD, &frame(&head(size), &record(0))).bytes();
        let mut scratch = Scratch::new();
        let error = first(&bytes).records(&mut scratch, &Limits::default()).unwrap().last().unwrap().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Decompression { .. }), "{size}: {error}");
        assert!(scratch.capacity() <= 1 << 20, "{size}: {}", scratch.capacity());
    }
    assert_eq!(read(&frame(&head(record(0).len() as u64), &record(0)), 1).unwrap(), 1);
}

/// Edge case 47. zstd-jni takes windows up to 128 MiB.
#[test]
fn zstd_windows_past_128_mib_are_refused() {
    let window = |log: u8| (log - 10) << 3;
    for log in [10, 17, 27] {
        assert_eq!(read(&frame(&[0x00, window(log)], &record(0)), 1).unwrap(), 1, "log {log}");
    }
    for byte in [window(27) | 1, window(28), window(31), 0xff] {
        let bytes = V2::compressed(ZSTD, &frame(&[0x00, byte], &record(0))).bytes();
        let mut scratch = Scratch::new();
        let error = first(&bytes).records(&mut scratch, &Limits::default()).unwrap().last().unwrap().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Decompression { .. }), "{byte:#x}: {error}");
        assert!(scratch.capacity() <= 1 << 20);
    }
}

/// Edge case 47.
#[test]
fn zstd_frame_of_a_dictionary_is_refused() {
    refused(&frame(&[0x01, 0x58, 7], &record(0)));
    assert_eq!(read(&frame(&[0x01, 0x58, 0], &record(0)), 1).unwrap(), 1, "0 means no dictionary");
}

/// Edge case 47.
#[test]
fn zstd_checksum_that_is_wrong_is_refused() {
    let good = stream(&record(0), true);
    assert_eq!(read(&good, 1).unwrap(), 1);
    for byte in good.len() - 4..good.len() {
        let mut bad = good.clone();
        bad[byte] ^= 0x10;
        refused(&bad);
    }
}

/// Edge case 47.
#[test]
fn zstd_streams_cut_or_followed_by_garbage_are_refused() {
    for good in [zstd(&record(0)), stream(&record(0), true)] {
        for len in 1..good.len() {
            refused(&good[..len]);
        }
        for tail in [&b"garbage"[..], &[0], &[9, 9, 9], &[0; 12]] {
            refused(&[&good, tail].concat());
        }
    }
    let error = read(&[], 1).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::MissingRecords { .. }), "no input is an empty stream: {error}");
}

/// zstd-jni requires only one complete frame per read of 128 KiB: a later one may be truncated.
#[test]
fn zstd_frame_cut_behind_a_whole_one_is_no_fault() {
    let good = zstd(&record(0));
    for tail in [&good[..1], &good[..3], &zstd(b"")[..6], &skippable(50)[..30]] {
        assert_eq!(read(&[&good, tail].concat(), 1).unwrap(), 1, "{tail:?}");
    }
    let far = [&good[..], &skippable(200_000)[..150_000]].concat();
    refused(&far);
}

/// Edge case 47: zstd requires message format 2.
#[test]
fn zstd_below_magic_2_is_refused() {
    for magic in [0, 1] {
        let inner = crate::raw::message(magic, 0, 0, None, Some(b"v"));
        let bytes = crate::raw::message(magic, 0, ZSTD as u8, None, Some(&zstd(&inner)));
        let error = records(&first(&bytes)).unwrap_err();
        assert!(
            matches!(error.kind(), ErrorKind::CompressionBelowMagic { compression: Compression::Zstd, .. }),
            "{error}"
        );
        let error = kbat::BatchBuilder::new().magic(magic).compression(Compression::Zstd).validate().unwrap_err();
        assert!(error.to_string().contains(&format!("not supported for magic {magic}")), "{error}");
    }
}

/// Kafka reads in steps of 16 KiB and loses the step in which the stream fails, however much room there is.
#[test]
fn zstd_records_of_whole_steps_before_a_fault_are_given() {
    let whole: Vec<u8> = (0..20_000).flat_map(record).collect();
    let mut bad = stream(&whole, true);
    *bad.last_mut().unwrap() ^= 1;
    let bytes = V2 { record_count: 20_000, ..V2::compressed(ZSTD, &bad) }.bytes();
    let (mut scratch, limits) = (Scratch::new(), Limits::default());
    for _ in 0..2 {
        let items: Vec<_> = first(&bytes).records(&mut scratch, &limits).unwrap().collect();
        let given: usize = items.iter().flatten().map(|item| record(item.offset() as i32).len()).sum();
        let steps = whole.len() - whole.len() % (16 << 10);
        assert!((steps - 20..=steps).contains(&given), "{given} bytes of {}", whole.len());
        assert!(matches!(items.last().unwrap().as_ref().unwrap_err().kind(), ErrorKind::Decompression { .. }));
    }
}
