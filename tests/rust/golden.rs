//! Exact bytes: the vectors of Kafka's own tests.

use kbat::{BatchBuilder, Compression, ControlRecord};

use crate::data::first;

/// The records of `MemoryRecordsTest.testChecksum`.
fn build(magic: u8, compression: Compression) -> Vec<u8> {
    let mut builder = BatchBuilder::new().magic(magic).compression(compression);
    builder.append(283_843, Some(b"key1"), Some(b"value1")).unwrap();
    builder.append(1_234, Some(b"key2"), Some(b"value2")).unwrap();
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    bytes
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// After `MemoryRecordsTest.testChecksum`. The two checksums of v0 and v1 with lz4 depend on what lz4-java's compressor
/// finds.
#[test]
fn golden_checksums_of_every_magic_are_kafkas() {
    for (magic, compression, checksum) in [
        (0, Compression::None, 1_978_725_405),
        (1, Compression::None, 109_425_508),
        (2, Compression::None, 3_851_219_455),
        (2, Compression::Lz4, 2_745_969_314),
    ] {
        let bytes = build(magic, compression);
        assert_eq!(first(&bytes).crc(), checksum, "magic {magic} {compression}");
        first(&bytes).verify_crc().unwrap();
    }
}

#[test]
fn golden_v2_batch_is_exact() {
    let expected = hex("000000000000000000000055ffffffff02e58cf1ff00000000000100000000000454c300000000000454c3
         ffffffffffffffffffffffffffff0000000220000000086b6579310c76616c756531002400e1bf2202086b6579320c76616c75653200");
    assert_eq!(build(2, Compression::None), expected);
}

#[test]
fn golden_v2_lz4_stream_is_exact() {
    let expected =
        hex("04224d186040822400008020000000086b6579310c76616c756531002400e1bf2202086b6579320c76616c7565320000000000");
    assert_eq!(first(&build(2, Compression::Lz4)).stored_records(), expected);
}

/// Edge case 44. Brokers before 0.10 include the frame magic in the header checksum, later ones do not.
#[test]
fn golden_lz4_frame_heads_depend_on_magic() {
    let head = |magic| first(&build(magic, Compression::Lz4)).stored_records()[..7].to_vec();
    assert_eq!(head(0), hex("04224d1860401a"));
    assert_eq!(head(1), hex("04224d18604082"));
    assert_eq!(head(2), hex("04224d18604082"));
}

/// Edge case 64. After `MemoryRecordsTest.testBuildEndTxnMarker`.
#[test]
fn golden_commit_marker_is_exact() {
    let expected =
        hex("00000000000003d7000000420000001d02050d7e510030000000000000018bcfe568000000018bcfe568000000000000000049
         000dffffffff000000012000000008000000010c00000000015b00");
    let marker = ControlRecord::Commit { coordinator_epoch: 347 };
    let bytes = kbat::format::end_transaction_marker(983, 1_700_000_000_000, 29, 73, 13, &marker).unwrap();
    assert_eq!(bytes, expected);
    assert_eq!(bytes.len(), 78);
}

/// Edge case 51. The output of Java's codecs for empty input.
#[test]
fn golden_empty_streams_of_java_are_read() {
    let streams = [
        (crate::raw::GZIP, "1f8b08000000000000ff03000000000000000000"),
        (crate::raw::SNAPPY, "82534e41505059000000000100000001"),
        (crate::raw::LZ4, "04224d1860408200000000"),
        (crate::raw::ZSTD, "28b52ffd2000010000"),
    ];
    for (codec, stream) in streams {
        let mut batch = crate::raw::V2::compressed(codec, &hex(stream));
        batch.record_count = 0;
        assert!(crate::data::records(&first(&batch.bytes())).unwrap().is_empty(), "codec {codec}");
        batch.record_count = 1;
        let bytes = batch.bytes();
        let error = crate::data::records(&first(&bytes)).unwrap_err();
        assert!(
            matches!(error.kind(), kbat::ErrorKind::MissingRecords { declared: 1, found: 0 }),
            "codec {codec}: {error}"
        );
    }
}
