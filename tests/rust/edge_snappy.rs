//! The three framings of snappy: edge cases 39 to 43.

use kbat::{ErrorKind, Limits, Scratch};

use crate::data::{Owned, first, records};
use crate::raw::{SNAPPY, V2, body, record, snappy, varint, with_len};

const MAGIC: &[u8] = b"\x82SNAPPY\0";

/// A header with version and compatible version, then chunks with their lengths.
fn xerial(versions: [u8; 8], chunks: &[&[u8]]) -> Vec<u8> {
    let mut out = [MAGIC, &versions].concat();
    for content in chunks {
        let block = snappy(content);
        out.extend_from_slice(&(block.len() as i32).to_be_bytes());
        out.extend_from_slice(&block);
    }
    out
}

const BIG_ENDIAN: [u8; 8] = [0, 0, 0, 1, 0, 0, 0, 1];
const LITTLE_ENDIAN: [u8; 8] = [1, 0, 0, 0, 1, 0, 0, 0];

fn read(stream: &[u8], count: i32) -> kbat::Result<Vec<Owned>> {
    let bytes = V2 { record_count: count, ..V2::compressed(SNAPPY, stream) }.bytes();
    records(&first(&bytes))
}

/// Edge case 39. Inputs of up to 16 bytes, the length of the header that is searched.
#[test]
fn snappy_raw_blocks_of_every_length_are_read() {
    let mut seen = Vec::new();
    for len in (0..60_usize).chain([1 << 20]) {
        let value: Vec<u8> = (0..len).map(|i| ((i * i) >> 3) as u8).collect();
        let stream = snappy(&with_len(&body(0, 0, None, Some(&value))));
        seen.push(stream.len());
        assert_eq!(read(&stream, 1).unwrap()[0].value, Some(value));
    }
    assert!([15, 16, 17].iter().all(|len| seen.contains(len)), "{seen:?}");
}

/// Edge case 40. Another library reads only the first chunk.
#[test]
fn snappy_chunks_one_and_many_are_read() {
    let whole: Vec<u8> = (0..9_000).flat_map(record).collect();
    assert!(whole.len() > 64 << 10);
    for chunk_len in [whole.len(), 32 << 10, 1 << 10, 7] {
        let chunks: Vec<&[u8]> = whole.chunks(chunk_len).collect();
        assert_eq!(read(&xerial(BIG_ENDIAN, &chunks), 9_000).unwrap().len(), 9_000, "chunks of {chunk_len}");
    }
    let with_empty_chunk = xerial(BIG_ENDIAN, &[&record(0), b"", &record(1)]);
    assert_eq!(read(&with_empty_chunk, 2).unwrap().len(), 2, "a chunk may hold nothing");
}

/// Edge case 40. Fewer bytes than a header are a raw, broken block; fewer than four bytes after a chunk are ignored.
#[test]
fn snappy_streams_cut_are_refused() {
    let stream = xerial(BIG_ENDIAN, &[&record(0)]);
    for len in 0..stream.len() {
        let error = read(&stream[..len], 1).unwrap_err();
        let empty = (16..20).contains(&len);
        match error.kind() {
            ErrorKind::MissingRecords { .. } => assert!(empty, "{len}: {error}"),
            ErrorKind::Decompression { .. } => assert!(!empty, "{len}: {error}"),
            _ => panic!("{len}: {error}"),
        }
    }
    for tail in 1..4 {
        assert_eq!(read(&[stream.clone(), vec![9; tail]].concat(), 1).unwrap().len(), 1);
    }
}

/// Edge case 40.
#[test]
fn snappy_chunk_lengths_that_are_wrong_are_refused() {
    for len in [0, -1, i32::MIN, i32::MAX, 1_000] {
        let stream = [xerial(BIG_ENDIAN, &[]), i32::to_be_bytes(len).to_vec(), snappy(&record(0))].concat();
        let error = read(&stream, 1).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Decompression { .. }), "{len}: {error}");
        assert_eq!((error.position().byte, error.position().field), (Some(61), Some("records")));
    }
}

/// Edge case 41. Redpanda writes little-endian versions; Java ignores both versions.
#[test]
fn snappy_header_versions_of_any_value_are_read() {
    for versions in [BIG_ENDIAN, LITTLE_ENDIAN, [0, 0, 0, 2, 0, 0, 0, 9], [0; 8], [0xff; 8]] {
        assert_eq!(read(&xerial(versions, &[&record(0), &record(1)]), 2).unwrap().len(), 2, "{versions:?}");
    }
}

/// Edge case 41. Consecutive streams; the version of each later header must be at least 1.
#[test]
fn snappy_further_headers_are_stepped_over() {
    for (versions, good) in [(BIG_ENDIAN, true), (LITTLE_ENDIAN, true), ([0; 8], false), ([0xff; 8], false)] {
        let stream = [xerial(BIG_ENDIAN, &[&record(0)]), xerial(versions, &[&record(1)])].concat();
        assert_eq!(read(&stream, 2).is_ok(), good, "{versions:?}");
    }
    let several = [xerial(BIG_ENDIAN, &[]), xerial(LITTLE_ENDIAN, &[]), xerial(BIG_ENDIAN, &[&record(0)])].concat();
    assert_eq!(read(&several, 1).unwrap().len(), 1);
    let cut = [xerial(BIG_ENDIAN, &[&record(0)]), MAGIC[..6].to_vec()].concat();
    assert!(read(&cut, 1).is_err());
}

/// Edge case 42. A record set whose first bytes are the magic: length 5313, attributes 'N', deltas 'A' and 'P', a key
/// of 40.
#[test]
fn snappy_block_of_records_that_look_like_the_magic_is_read() {
    let start = [MAGIC[..6].to_vec(), b"Y\0".to_vec(), vec![1; 38]].concat();
    let value_len = 5_313 - (start.len() - 2) - 2 - 1;
    let record = [start, varint(value_len as i32), vec![2; value_len], varint(0)].concat();
    assert!(record.starts_with(MAGIC));
    let found = read(&snappy(&record), 1).unwrap().remove(0);
    assert_eq!((found.offset, found.key.unwrap().len(), found.value.unwrap().len()), (40, 40, value_len));
}

/// Edge case 43. A fuzzer's find in rskafka: ten bytes that claim four gigabytes.
#[test]
fn snappy_declared_length_that_can_not_be_allocates_nothing() {
    let claim = [&[0xff, 0xff, 0xff, 0xff, 0x0f][..], &[0; 5]].concat();
    for stream in [claim.clone(), [xerial(BIG_ENDIAN, &[]), 10_i32.to_be_bytes().to_vec(), claim].concat()] {
        let bytes = V2::compressed(SNAPPY, &stream).bytes();
        let mut scratch = Scratch::new();
        let error = first(&bytes).records(&mut scratch, &Limits::default()).unwrap().next().unwrap().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Decompression { .. }), "{error}");
        assert!(scratch.capacity() <= 1 << 20, "{}", scratch.capacity());
    }
}

/// Kafka reads in steps of 2 KiB and loses the step in which a chunk fails.
#[test]
fn snappy_records_of_whole_steps_before_a_fault_are_given() {
    let whole: Vec<u8> = (0..1_000).flat_map(record).collect();
    let mut stream = xerial(BIG_ENDIAN, &[&whole[..5_000], &whole[5_000..]]);
    let last = stream.len() - 1;
    stream.truncate(last);
    let bytes = V2 { record_count: 1_000, ..V2::compressed(SNAPPY, &stream) }.bytes();
    let (mut scratch, limits) = (Scratch::new(), Limits::default());
    let items: Vec<_> = first(&bytes).records(&mut scratch, &limits).unwrap().collect();
    let given: usize = items.iter().flatten().map(|item| record(item.offset() as i32).len()).sum();
    assert!((4_096 - 10..=4_096).contains(&given), "{given} bytes");
    assert!(matches!(items.last().unwrap().as_ref().unwrap_err().kind(), ErrorKind::Decompression { .. }));
}

/// Bytes that begin like another header but are not one. snappy-java returns the bytes so far and continues after it.
/// If there are none, because a step of 2 KiB begins there, the stream ends.
#[test]
fn snappy_broken_further_headers_are_passed_over() {
    let broken = [&MAGIC[..4], &[0; 12]].concat();
    let chunk = |records: &[u8]| xerial(BIG_ENDIAN, &[records])[16..].to_vec();
    let between = [xerial(BIG_ENDIAN, &[&record(0)]), broken.clone(), chunk(&record(1))].concat();
    assert_eq!(read(&between, 2).unwrap().len(), 2);
    let behind = [xerial(BIG_ENDIAN, &[&record(0), &record(1)]), broken.clone()].concat();
    assert_eq!(read(&behind, 2).unwrap().len(), 2);
    let at_the_start = [xerial(BIG_ENDIAN, &[]), broken.clone(), chunk(&record(0))].concat();
    assert!(read(&at_the_start, 1).is_err());
    // the step truncated by a broken header is returned; the next step begins there
    let many: Vec<u8> = (1..1_000).flat_map(record).collect();
    let mut fault = [xerial(BIG_ENDIAN, &[&record(0)]), broken, chunk(&many[..3_000]), chunk(&many[3_000..])].concat();
    fault.pop();
    let bytes = V2 { record_count: 1_000, ..V2::compressed(SNAPPY, &fault) }.bytes();
    let (mut scratch, limits) = (Scratch::new(), Limits::default());
    let items: Vec<_> = first(&bytes).records(&mut scratch, &limits).unwrap().collect();
    let given: usize = items.iter().flatten().map(|item| record(item.offset() as i32).len()).sum();
    let steps = record(0).len() + 2_048;
    assert!((steps - 10..=steps).contains(&given), "{given} bytes");
}
