//! Valid and invalid LZ4 frames: edge cases 44 to 46, and Kafka's `Lz4CompressionTest`.

use std::io::Write as _;

use kbat::{BatchBuilder, Compression, ErrorKind, Limits, Scratch};
use lz4::{BlockMode, BlockSize, ContentChecksum, EncoderBuilder};
use xxhash_rust::xxh32::xxh32;

use crate::data::{first, records};
use crate::raw::{LZ4, V2, message, record};

const FRAME_MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
const END_MARK: [u8; 4] = [0; 4];
const RECORDS: i32 = 40_000;

fn payload() -> Vec<u8> {
    (0..RECORDS).flat_map(record).collect()
}

/// Reads a stream of [`payload`], or of one record, in a v2 batch.
fn read(stream: &[u8], count: i32) -> kbat::Result<usize> {
    let bytes = V2 { record_count: count, ..V2::compressed(LZ4, stream) }.bytes();
    records(&first(&bytes)).map(|records| records.len())
}

/// A frame of the reference library.
fn reference(configure: impl Fn(&mut EncoderBuilder)) -> Vec<u8> {
    let mut builder = EncoderBuilder::new();
    builder.checksum(ContentChecksum::NoChecksum).block_checksum(lz4::liblz4::BlockChecksum::NoBlockChecksum);
    builder.block_mode(BlockMode::Independent).block_size(BlockSize::Max64KB);
    configure(&mut builder);
    let mut encoder = builder.build(Vec::new()).unwrap();
    encoder.write_all(&payload()).unwrap();
    let (stream, result) = encoder.finish();
    result.unwrap();
    stream
}

/// Magic, descriptor and its checksum.
fn head(descriptor: &[u8]) -> Vec<u8> {
    [&FRAME_MAGIC, descriptor, &[(xxh32(descriptor, 0) >> 8) as u8]].concat()
}

/// An uncompressed block.
fn stored(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32 | 1 << 31).to_le_bytes(), bytes].concat()
}

/// A frame with one stored block, which holds one record.
fn frame(descriptor: &[u8]) -> Vec<u8> {
    [head(descriptor), stored(&record(0)), END_MARK.to_vec()].concat()
}

fn refused(stream: &[u8], part: &str) {
    let error = read(stream, 1).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Decompression { compression: Compression::Lz4, .. }), "{error}");
    assert!(error.to_string().contains(part), "{error}");
}

/// Edge case 44. Brokers stored v0 sets only with the broken checksum, franz-go sends the correct one: both are read.
#[test]
fn lz4_header_checksum_of_magic_0_is_not_looked_at() {
    let stream = |checksum: u8, magic| {
        let inner = message(magic, 0, 0, None, Some(b"v"));
        [&FRAME_MAGIC[..], &[0x60, 0x40, checksum], &stored(&inner), &END_MARK].concat()
    };
    for (magic, checksum, good) in
        [(0, 0x1a, true), (0, 0x82, true), (0, 0xff, true), (1, 0x82, true), (1, 0x1a, false)]
    {
        let bytes = message(magic, 0, LZ4 as u8, None, Some(&stream(checksum, magic)));
        assert_eq!(records(&first(&bytes)).is_ok(), good, "magic {magic} checksum {checksum:#x}");
    }
}

/// Edge case 44. After `testBadFrameChecksum`.
#[test]
fn lz4_header_checksum_broken_in_v2_is_refused() {
    let mut stream = frame(&[0x60, 0x40]);
    assert_eq!((stream[6], read(&stream, 1).unwrap()), (0x82, 1));
    for checksum in [0x1a, 0xff, 0] {
        stream[6] = checksum;
        refused(&stream, "descriptor corrupted");
    }
}

/// Edge case 45. Every block size, with and without each flag, from the reference library.
#[test]
fn lz4_frames_of_every_kind_are_read() {
    let on = lz4::liblz4::BlockChecksum::BlockChecksumEnabled;
    for size in [BlockSize::Max64KB, BlockSize::Max256KB, BlockSize::Max1MB, BlockSize::Max4MB] {
        let plain = reference(|builder| _ = builder.block_size(size.clone()));
        assert_eq!(plain[4] & 0x3c, 0x20, "independent blocks only");
        assert_eq!(read(&plain, RECORDS).unwrap(), RECORDS as usize);
        let linked = reference(|builder| _ = builder.block_size(size.clone()).block_mode(BlockMode::Linked));
        assert_eq!(linked[4] & 0x20, 0);
        assert_eq!(read(&linked, RECORDS).unwrap(), RECORDS as usize, "Java refuses them; see docs/differences.md");
        let all = reference(|builder| {
            builder.block_size(size.clone()).block_checksum(on.clone()).checksum(ContentChecksum::ChecksumEnabled);
            builder.content_size(payload().len() as u64).level(9);
        });
        assert_eq!(all[4] & 0x3c, 0x3c);
        assert_eq!(read(&all, RECORDS).unwrap(), RECORDS as usize);
    }
}

/// Edge case 45. Java does not verify either (KAFKA-20528), so wrong ones exist.
#[test]
fn lz4_content_size_and_checksum_that_lie_are_read() {
    let size = [&[0x68, 0x40][..], &(8_u64 << 30).to_le_bytes()].concat();
    assert_eq!(read(&frame(&size), 1).unwrap(), 1);
    let checksum = [frame(&[0x64, 0x40]), vec![1, 2, 3, 4]].concat();
    assert_eq!(read(&checksum, 1).unwrap(), 1);
    refused(&checksum[..checksum.len() - 1], "prematurely");
}

/// Edge case 45.
#[test]
fn lz4_block_checksum_that_is_wrong_is_refused() {
    let block = stored(&record(0));
    let checksum = xxh32(&block[4..], 0).to_le_bytes();
    let stream = [head(&[0x70, 0x40]), block.clone(), checksum.to_vec(), END_MARK.to_vec()].concat();
    assert_eq!(read(&stream, 1).unwrap(), 1);
    for byte in 0..4 {
        let mut stream = stream.clone();
        stream[7 + block.len() + byte] ^= 1;
        refused(&stream, "block checksum");
    }
    // a block with a truncated checksum is dropped completely
    let cut = [head(&[0x70, 0x40]), block].concat();
    let bytes = V2::compressed(LZ4, &cut).bytes();
    let (mut scratch, limits) = (Scratch::new(), Limits::default());
    let items: Vec<_> = first(&bytes).records(&mut scratch, &limits).unwrap().map(|item| item.is_ok()).collect();
    assert_eq!(items, [false]);
}

/// Edge case 45.
#[test]
fn lz4_bytes_after_the_end_mark_are_ignored() {
    let good = frame(&[0x60, 0x40]);
    for tail in [&b"garbage"[..], &good, &[0; 100], &[0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0]] {
        assert_eq!(read(&[&good, tail].concat(), 1).unwrap(), 1);
    }
    let stored_of_nothing = [head(&[0x60, 0x40]), stored(&record(0)), vec![0, 0, 0, 0x80], b"behind".to_vec()].concat();
    assert_eq!(read(&stored_of_nothing, 1).unwrap(), 1, "a stored block of no bytes is an end mark too");
}

/// Edge case 45. A skippable frame and the format before frames: Java knows neither.
#[test]
fn lz4_streams_that_begin_otherwise_are_refused() {
    let good = frame(&[0x60, 0x40]);
    let skippable = [&[0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 9][..], &good].concat();
    let legacy = [&[0x02, 0x21, 0x4c, 0x18][..], &good[4..]].concat();
    for stream in [skippable, legacy, [&[0], good.as_slice()].concat()] {
        refused(&stream, "magic");
    }
}

/// Edge case 45. After `testHeaderPrematureEnd`: the end mark must be there.
#[test]
fn lz4_streams_cut_anywhere_are_refused() {
    let good = frame(&[0x60, 0x40]);
    for len in 0..good.len() {
        refused(&good[..len], "prematurely");
    }
}

/// Edge case 45. After `testNotSupported` and `testBadBlockSize`.
#[test]
fn lz4_descriptors_that_kafka_refuses_are_refused() {
    for (descriptor, part) in [
        ([0x61, 0x40], "reserved"),
        ([0x62, 0x40], "reserved"),
        ([0x60, 0xc0], "reserved"),
        ([0x60, 0x41], "reserved"),
        ([0x20, 0x40], "version 0"),
        ([0xa0, 0x40], "version 2"),
        ([0x60, 0x30], "block size value 3"),
        ([0x60, 0x00], "block size value 0"),
    ] {
        refused(&frame(&descriptor), part);
    }
    for len in [(64 << 10) + 1, 1 << 24, u32::MAX >> 1] {
        let stream = [head(&[0x60, 0x40]), u32::to_le_bytes(len).to_vec(), vec![0; 70 << 10]].concat();
        refused(&stream, "exceeded max");
    }
}

/// Edge case 45: a block that decompresses to more than the frame's block size.
#[test]
fn lz4_blocks_that_unpack_to_more_than_they_may_are_refused() {
    let block = lz4_flex::block::compress(&vec![0; (64 << 10) + 1]);
    let stream = [head(&[0x60, 0x40]), (block.len() as u32).to_le_bytes().to_vec(), block, END_MARK.to_vec()].concat();
    let error = read(&stream, 1).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Decompression { .. }), "{error}");
}

/// Edge case 45: linked blocks refer back at most 64 KiB, and not before the first byte.
#[test]
fn lz4_linked_block_that_looks_back_too_far_is_refused() {
    // token: no literal, match of 4; offset 9
    let block = [0x00, 9, 0, 0x50, 1, 2, 3, 4, 5];
    let stream = [head(&[0x40, 0x40]), (block.len() as u32).to_le_bytes().to_vec(), block.to_vec(), END_MARK.to_vec()];
    let error = read(&stream.concat(), 1).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Decompression { .. }), "{error}");
}

/// Edge case 45. Offset 0 is invalid; lz4-java copies the previous content of its buffer.
#[test]
fn lz4_match_of_offset_0_is_refused() {
    // token: one literal, match of 4; offset 0; five literals
    let block = [0x10, 7, 0, 0, 0x50, 1, 2, 3, 4, 5];
    let stream = [head(&[0x60, 0x40]), (block.len() as u32).to_le_bytes().to_vec(), block.to_vec(), END_MARK.to_vec()];
    let error = read(&stream.concat(), 1).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Decompression { .. }), "{error}");
}

/// liblz4 requires five literals at the end of a block, and twelve bytes after the start of the last match.
#[test]
fn lz4_block_with_few_literals_behind_a_match_is_read() {
    let mut builder = BatchBuilder::new();
    builder.append_with_headers(0, None, Some(b"v"), &[(b"h", Some(b"abcdefghabcdefghabcdefgh"))]).unwrap();
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    let records = first(&bytes).stored_records();
    let (literals, repeated) = records.split_at(records.len() - 16);
    let long = u8::try_from(literals.len() - 15).unwrap();
    for few in 0..4 {
        // token: literals of 15 and more, match of 12 to 16; token: few literals
        let behind = &repeated[16 - few..];
        let token = 0xf0 | u8::try_from(12 - few).unwrap();
        let block = [&[token, long], literals, &[8, 0], &[u8::try_from(few).unwrap() << 4], behind].concat();
        let stream =
            [head(&[0x60, 0x40]), (block.len() as u32).to_le_bytes().to_vec(), block, END_MARK.to_vec()].concat();
        assert_eq!(read(&stream, 1).unwrap(), 1, "{few}");
    }
}

/// Edge case 45. An empty block is skipped; Kafka's stream ends at one.
#[test]
fn lz4_block_of_no_bytes_is_read_over() {
    let nothing = [&1_u32.to_le_bytes()[..], &[0]].concat();
    let stream = [head(&[0x60, 0x40]), nothing.clone(), stored(&record(0)), nothing, END_MARK.to_vec()].concat();
    assert_eq!(read(&stream, 1).unwrap(), 1);
}

/// Edge case 46. As Java writes: independent blocks of 64 KiB, no optional fields, uncompressed if that is smaller.
#[test]
fn lz4_written_frames_have_javas_layout() {
    let mut noise = 1_u32;
    let value: Vec<u8> = (0..200_000)
        .map(|index| {
            noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            if index < 100_000 { (noise >> 24) as u8 } else { 7 }
        })
        .collect();
    for level in [None, Some(1), Some(9), Some(17)] {
        let mut builder = BatchBuilder::new().compression(Compression::Lz4);
        if let Some(level) = level {
            builder = builder.level(level);
        }
        builder.append(0, None, Some(&value)).unwrap();
        let raw_len = builder.size() - 61;
        let mut bytes = Vec::new();
        builder.finish_into(&mut bytes).unwrap();
        let stream = first(&bytes).stored_records();
        assert_eq!(stream[..7], [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82]);
        let (mut rest, mut unpacked, mut kinds) = (&stream[7..], 0, Vec::new());
        loop {
            let field = u32::from_le_bytes(rest[..4].try_into().unwrap());
            let len = (field & !(1 << 31)) as usize;
            let (block, after) = rest[4..].split_at(len);
            rest = after;
            if len == 0 {
                break;
            }
            kinds.push(field >> 31 == 1);
            unpacked +=
                if field >> 31 == 1 { len } else { lz4_flex::block::decompress(block, 64 << 10).unwrap().len() };
            assert!(unpacked == raw_len || unpacked % (64 << 10) == 0, "all blocks except the last one are full");
        }
        assert_eq!((rest.len(), unpacked), (0, raw_len), "nothing after the end mark");
        assert!(kinds[0] && !kinds[3], "{kinds:?}");
        assert_eq!(records(&first(&bytes)).unwrap()[0].value.as_ref(), Some(&value));
    }
}
