//! Limits on the cost of untrusted bytes: edge cases 49, 50 and 92. Limits bound memory, so the tests measure memory.

use kbat::{BatchBuilder, Compression, ErrorKind, Limits, Scratch};

use crate::data::{first, records_within};
use crate::raw::{GZIP, V2, gzip, record};

const CODECS: [Compression; 4] = [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

/// One record of `len` equal bytes.
fn bomb(magic: u8, compression: Compression, len: usize) -> Vec<u8> {
    let mut builder = BatchBuilder::new().magic(magic).compression(compression);
    builder.append(0, None, Some(&vec![0; len])).unwrap();
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    bytes
}

/// The error of reading a batch, and the memory of the scratch afterwards.
fn fail(bytes: &[u8], limits: &Limits) -> (kbat::Error, usize) {
    let mut scratch = Scratch::new();
    let error = match first(bytes).records(&mut scratch, limits) {
        Ok(records) => records.last().unwrap().unwrap_err(),
        Err(error) => error,
    };
    (error, scratch.capacity())
}

fn magics(compression: Compression) -> impl Iterator<Item = u8> {
    (0..=2).filter(move |magic| *magic == 2 || compression != Compression::Zstd)
}

/// Edge case 49.
#[test]
fn limit_of_bytes_stops_a_bomb_with_memory_bounded() {
    let limit = 700_001;
    let limits = Limits { decompressed_len: limit, ..Limits::default() };
    for compression in CODECS {
        for magic in magics(compression) {
            let (error, capacity) = fail(&bomb(magic, compression, 16 << 20), &limits);
            let ErrorKind::Limit { name, limit: named, actual } = *error.kind() else {
                panic!("{compression}: {error}")
            };
            assert_eq!((name, named), ("decompressed_len", limit as u64), "{compression}");
            assert!(actual > named);
            assert!(capacity <= limit, "{compression}: {capacity} bytes held");
        }
    }
}

/// Edge case 49. Snappy has a maximum ratio of about 20.
#[test]
fn limit_of_ratio_stops_a_bomb_with_memory_bounded() {
    for compression in CODECS {
        let bytes = bomb(2, compression, 16 << 20);
        let ratio = if compression == Compression::Snappy { 10 } else { 50 };
        let limits = Limits { ratio, ratio_free_len: 1_000, ..Limits::default() };
        let (error, capacity) = fail(&bytes, &limits);
        assert!(matches!(error.kind(), ErrorKind::Limit { name: "ratio", .. }), "{compression}: {error}");
        let bound = first(&bytes).stored_records().len() * ratio;
        assert!(capacity <= bound, "{compression}: {capacity} bytes held, {bound} allowed");
    }
}

/// Edge case 49: the default limits reject 32 KB that decompress to a gigabyte.
#[test]
fn limit_defaults_stop_a_gigabyte_from_32_kilobytes() {
    // blocks of 128 KiB of one byte each, the last one marked
    let block = |last: u32| [&(last | 1 << 1 | (128 << 10) << 3).to_le_bytes()[..3], &[0]].concat();
    let blocks = (0..8_192).flat_map(|index| block(u32::from(index == 8_191))).collect();
    let stream = [vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 0x58], blocks].concat();
    assert_eq!(stream.len(), (32 << 10) + 6);
    let (error, capacity) = fail(&V2::compressed(crate::raw::ZSTD, &stream).bytes(), &Limits::default());
    assert!(matches!(error.kind(), ErrorKind::Limit { name: "ratio", .. }), "{error}");
    assert!(capacity <= 128 << 20, "{capacity} bytes held");
}

/// Edge case 49.
#[test]
fn limit_met_exactly_passes_and_one_byte_less_fails() {
    for compression in CODECS {
        for magic in magics(compression) {
            for len in [10, 5_000, (64 << 10) - 40, 64 << 10, 1_000_000] {
                let bytes = bomb(magic, compression, len);
                let unpacked = if magic == 2 {
                    kbat::format::record_len(0, 0, None, Some(&vec![0; len]), &[])
                } else {
                    kbat::format::message_len(magic, None, Some(&vec![0; len]))
                };
                let limits = |decompressed_len| Limits { decompressed_len, ..Limits::default() };
                let exact = records_within(&first(&bytes), &limits(unpacked));
                assert_eq!(exact.unwrap().len(), 1, "{compression} magic {magic} {len}");
                let (error, capacity) = fail(&bytes, &limits(unpacked - 1));
                assert!(matches!(error.kind(), ErrorKind::Limit { .. }), "{compression} magic {magic} {len}: {error}");
                // snappy uses a copy of its input after the output
                assert!(capacity < unpacked + bytes.len() + 256, "{compression} magic {magic} {len}: {capacity}");
            }
        }
    }
}

/// Edge case 49, with the decoders for streams of several parts.
#[test]
fn limit_met_exactly_by_several_members_and_frames_passes() {
    let halves: Vec<Vec<u8>> = [0..3_000, 3_000..6_000].map(|half| half.flat_map(record).collect()).to_vec();
    let unpacked = halves.concat().len();
    let zstd_halves: Vec<u8> = halves.iter().flat_map(|half| crate::raw::zstd(half)).collect();
    let gzip_halves: Vec<u8> = halves.iter().flat_map(|half| gzip(half)).collect();
    let with_an_empty_one = [gzip_halves.clone(), gzip(b"")].concat();
    let with_an_empty_frame = [zstd_halves.clone(), crate::raw::zstd(b"")].concat();
    let zstd = crate::raw::ZSTD;
    for (codec, stream) in
        [(GZIP, gzip_halves), (GZIP, with_an_empty_one), (zstd, zstd_halves), (zstd, with_an_empty_frame)]
    {
        let bytes = V2 { record_count: 6_000, ..V2::compressed(codec, &stream) }.bytes();
        let limits = |decompressed_len| Limits { decompressed_len, ..Limits::default() };
        assert_eq!(records_within(&first(&bytes), &limits(unpacked)).unwrap().len(), 6_000, "codec {codec}");
        let (error, _) = fail(&bytes, &limits(unpacked - 1));
        assert!(matches!(error.kind(), ErrorKind::Limit { .. }), "codec {codec}: {error}");
    }
}

/// Edge case 50. librdkafka's fixed cap got consumers "stuck forever" on an honest batch (#3935).
#[test]
fn limit_that_an_honest_batch_passes_can_be_raised() {
    let bytes = bomb(2, Compression::Zstd, 20 << 20);
    assert!(bytes.len() < 8_000, "more than 2600 times smaller");
    let tight = Limits { ratio_free_len: 1 << 20, ..Limits::default() };
    let (error, _) = fail(&bytes, &tight);
    let text = error.to_string();
    assert!(text.contains("limit ratio of") && text.contains("raise Limits.ratio"), "{text}");
    let raised = Limits { ratio: 100_000, ..tight };
    assert_eq!(records_within(&first(&bytes), &raised).unwrap().len(), 1);
    assert_eq!(records_within(&first(&bytes), &Limits::default()).unwrap().len(), 1, "the defaults read it");
}

/// After a batch exceeds a limit, the scratch can be used for the next batch.
#[test]
fn limit_passed_leaves_the_scratch_usable() {
    let (mut scratch, tight) = (Scratch::new(), Limits { decompressed_len: 1_000, ..Limits::default() });
    for compression in CODECS {
        let bytes = bomb(2, compression, 100_000);
        assert!(first(&bytes).records(&mut scratch, &tight).unwrap().last().unwrap().is_err());
        let records = first(&bytes).records(&mut scratch, &Limits::default()).unwrap();
        assert_eq!(records.map(|record| record.unwrap().value().unwrap().len()).collect::<Vec<_>>(), [100_000]);
        assert!(
            first(&bytes).records(&mut scratch, &tight).unwrap().last().unwrap().is_err(),
            "a larger buffer does not raise the limit"
        );
    }
}

/// Edge case 92. A million of each takes a moment; with quadratic time, the test would not end.
#[test]
fn scale_of_a_million_batches_records_and_headers_is_linear() {
    let empty = V2 { record_count: 0, ..V2::default() }.bytes();
    let bytes = empty.repeat(1_000_000);
    assert_eq!(kbat::batches(&bytes).map(Result::unwrap).count(), 1_000_000);

    let mut builder = BatchBuilder::new();
    for _ in 0..1_000_000 {
        builder.append(0, None, Some(b"v")).unwrap();
    }
    let headers = vec![(&b""[..], None); 1_000_000];
    builder.append_with_headers(0, None, None, &headers).unwrap();
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    let (mut scratch, limits) = (Scratch::new(), Limits::default());
    let records = first(&bytes).records(&mut scratch, &limits).unwrap();
    let counts =
        records.fold((0, 0), |(records, headers), record| (records + 1, headers + record.unwrap().headers().count()));
    assert_eq!(counts, (1_000_001, 1_000_000));
}
