//! Valid and invalid gzip members: edge case 48.

use kbat::{Compression, ErrorKind};

use crate::data::{first, records};
use crate::raw::{GZIP, V2, crc32, deflate, gzip, gzip_trailer, message, record};

fn read(stream: &[u8], count: i32) -> kbat::Result<usize> {
    let bytes = V2 { record_count: count, ..V2::compressed(GZIP, stream) }.bytes();
    records(&first(&bytes)).map(|records| records.len())
}

fn refused(stream: &[u8]) {
    let error = read(stream, 1).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Decompression { compression: Compression::Gzip, .. }), "{error}");
}

/// A member with these flags and optional header fields.
fn member(flags: u8, optional: &[u8], content: &[u8]) -> Vec<u8> {
    let head = [0x1f, 0x8b, 8, flags, 1, 2, 3, 4, 2, 3];
    [&head, optional, &deflate(content), &gzip_trailer(content)].concat()
}

/// Edge case 48.
#[test]
fn gzip_members_in_a_row_are_one_stream() {
    let several = [gzip(&record(0)), gzip(b""), member(8, b"name\0", &record(1)), gzip(&record(2))].concat();
    assert_eq!(read(&several, 3).unwrap(), 3);
    let large: Vec<u8> = (0..20_000).flat_map(record).collect();
    let (left, right) = large.split_at(large.len() / 3);
    assert_eq!(read(&[gzip(left), gzip(right)].concat(), 20_000).unwrap(), 20_000);
}

/// Edge case 48. FEXTRA, FNAME, FCOMMENT, FHCRC, FTEXT.
#[test]
fn gzip_optional_header_fields_are_skipped() {
    let extra: &[u8] = &[5, 0, 1, 2, 0, 4, 5];
    let all = [extra, b"name\0", b"comment\0"].concat();
    for (flags, optional) in [(4, extra), (8, b"name\0"), (16, b"comment\0"), (28, &all), (1, b""), (8, b"\0")] {
        assert_eq!(read(&member(flags, optional, &record(0)), 1).unwrap(), 1, "flags {flags}");
    }
}

/// Edge case 48.
#[test]
fn gzip_header_checksum_is_verified() {
    let plain = member(2 | 8, b"name\0", b"");
    let checksum = crc32(&plain[..15]) as u16;
    for (checksum, good) in [(checksum, true), (checksum ^ 1, false), (checksum ^ 0x8000, false)] {
        let optional = [&b"name\0"[..], &checksum.to_le_bytes()].concat();
        assert_eq!(read(&member(2 | 8, &optional, &record(0)), 1).is_ok(), good);
    }
}

/// Edge case 48.
#[test]
fn gzip_trailer_that_is_wrong_is_refused() {
    let good = gzip(&record(0));
    for byte in good.len() - 8..good.len() {
        let mut bad = good.clone();
        bad[byte] ^= 4;
        refused(&bad);
    }
}

/// Edge case 48.
#[test]
fn gzip_streams_cut_anywhere_are_refused() {
    let good = member(28, &[&[1, 0, 9][..], b"n\0", b"c\0"].concat(), &record(0));
    for len in 0..good.len() {
        refused(&good[..len]);
    }
}

/// Edge case 48. As in Java, bytes that are not a header end the stream.
#[test]
fn gzip_bytes_after_the_last_member_are_ignored() {
    let good = gzip(&record(0));
    for tail in
        [&b"x"[..], &[0; 50], &[0x1f], &[0x1f, 0x8b], &[0x1f, 0x8b, 8], &[0x1f, 0x8b, 8, 4, 0, 0, 0, 0, 0, 0, 9, 9]]
    {
        assert_eq!(read(&[&good, tail].concat(), 1).unwrap(), 1, "{tail:?}");
    }
    // a member has more than 18 bytes: Java ignores fewer
    let next = gzip(b"");
    for len in 0..next.len() {
        assert_eq!(read(&[&good, &next[..len]].concat(), 1).is_ok(), len <= 18, "{len} bytes of a further member");
    }
}

/// Edge case 48: a second member with a valid start and an invalid rest.
#[test]
fn gzip_second_member_that_is_broken_is_refused() {
    let mut second = gzip(&record(1));
    let last = second.len() - 1;
    second[last] ^= 1;
    assert!(read(&[gzip(&record(0)), second].concat(), 2).is_err());
    let no_deflate = [gzip(&record(0)), gzip(b"")[..10].to_vec(), vec![0xff; 30]].concat();
    assert!(read(&no_deflate, 2).is_err());
}

/// The first bytes of a member may occur inside compressed data, and do not start a member there.
#[test]
fn gzip_member_start_inside_the_data_is_data() {
    let value = [0x1f, 0x8b, 8].repeat(3);
    let record = crate::raw::with_len(&crate::raw::body(0, 0, None, Some(&value)));
    let stored =
        [&[1][..], &(record.len() as u16).to_le_bytes(), &(!(record.len() as u16)).to_le_bytes(), &record].concat();
    let stream = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff], stored.as_slice(), &gzip_trailer(&record)].concat();
    assert_eq!(read(&stream, 1).unwrap(), 1);
}

#[test]
fn gzip_headers_that_are_none_are_refused() {
    for head in [[0x1f, 0x8b, 7], [0x1f, 0x8c, 8], [0x78, 0x9c, 8]] {
        let mut stream = gzip(&record(0));
        stream[..3].copy_from_slice(&head);
        refused(&stream);
    }
}

/// A match before the first byte, regardless of the checksum. A decoder with a window of zeros would return zeros.
#[test]
fn gzip_distance_before_the_start_is_refused() {
    // last block, fixed codes: literal 0, match of 3 at distance 4, end
    let bits = "110_00110000_0000001_00011_0000000";
    let bits: Vec<u8> = bits.bytes().filter(u8::is_ascii_digit).map(|digit| digit - b'0').collect();
    let pack = |byte: &[u8]| byte.iter().rev().fold(0, |packed, bit| packed << 1 | bit);
    let deflate: Vec<u8> = bits.chunks(8).map(pack).collect();
    let member = |trailer: [u8; 8]| [&gzip(b"")[..10], &deflate, &trailer].concat();
    let error_of = |trailer| {
        let set = message(1, 0, GZIP as u8, None, Some(&member(trailer)));
        records(&first(&set)).unwrap_err()
    };
    for content in [[0; 4], [0, 0, 0, 1]] {
        let error = error_of(gzip_trailer(&content));
        assert!(matches!(error.kind(), ErrorKind::Decompression { .. }), "{error}");
        assert!(error.to_string().contains("invalid deflate stream"), "{error}");
    }
}
