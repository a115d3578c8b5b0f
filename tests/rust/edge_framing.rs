//! Where batches start and end: edge cases 1 to 12, and Kafka's `ByteBufferLogInputStreamTest`.

use kbat::{Batches, ErrorKind};

use crate::data::{all_records, first};
use crate::raw::{V2, fix_crc, message, plain_records, wrapper};

fn v2(base_offset: i64) -> Vec<u8> {
    V2 { base_offset, ..V2::of(&plain_records(2)) }.bytes()
}

/// The base offsets of a walk, and the walk at its end.
fn walk(bytes: &[u8]) -> (Vec<i64>, Batches<'_>) {
    let mut walk = kbat::batches(bytes);
    let offsets = walk.by_ref().map(|batch| batch.unwrap().base_offset().unwrap()).collect();
    (offsets, walk)
}

/// Edge case 1.
#[test]
fn framing_fewer_bytes_than_a_header_are_no_batch() {
    let batch = v2(0);
    for len in (0..=16).chain([17, 60, 61, batch.len() - 1]) {
        let (offsets, walk) = walk(&batch[..len]);
        assert_eq!((offsets.len(), walk.position(), walk.remainder().len()), (0, 0, len), "{len} bytes");
    }
}

/// Edge case 2.
#[test]
fn framing_a_short_tail_is_left_over() {
    let mut bytes = v2(0);
    let len = bytes.len();
    bytes.extend_from_slice(&[0; 4]);
    let (offsets, walk) = walk(&bytes);
    assert_eq!((offsets, walk.position(), walk.remainder()), (vec![0], len as u64, &[0_u8; 4][..]));
}

/// Edge case 3. After `iteratorRaisesOnTooSmallRecords` and `iteratorIgnoresIncompleteEntries`.
#[test]
fn framing_a_batch_cut_anywhere_leaves_the_ones_before() {
    let batches = [v2(0), message(1, 2, 0, None, Some(b"x")), v2(3)];
    let bytes = batches.concat();
    for len in 0..bytes.len() {
        let whole = batches.iter().scan(0, |end, batch| {
            *end += batch.len();
            Some(*end)
        });
        let ends: Vec<usize> = whole.take_while(|end| *end <= len).collect();
        let (offsets, walk) = walk(&bytes[..len]);
        assert_eq!(offsets, [0, 2, 3][..ends.len()], "{len} bytes");
        assert_eq!(walk.position(), ends.last().copied().unwrap_or(0) as u64);
    }
}

/// Edge case 4. After `iteratorRaisesOnTooSmallRecords`: other libraries loop forever or raise an internal error here.
#[test]
fn framing_a_length_too_small_is_refused() {
    for magic in [0_u8, 1, 2] {
        let minimum = if magic == 2 { 49 } else { 14 };
        for length in [-1, -12, -13, i32::MIN, 0, 9, 13, 14, 48, 49] {
            let mut bytes = vec![0; 100];
            bytes[8..12].copy_from_slice(&i32::to_be_bytes(length));
            bytes[16] = magic;
            bytes[99] = 1;
            let item = kbat::batches(&bytes).next().unwrap();
            if length >= minimum {
                assert_eq!(item.unwrap().size() as i32, length + 12);
                continue;
            }
            let error = item.unwrap_err();
            assert!(
                matches!(error.kind(), ErrorKind::BatchLength { length: found, .. } if *found == length),
                "{error}"
            );
            assert_eq!((error.position().byte, error.position().base_offset), (Some(8), Some(0)));
            assert_eq!(error.position().field, Some("batch_length"));
        }
    }
}

/// Edge case 5. Kafka's sum overflows: an exception in memory, a silent end as a file.
#[test]
fn framing_a_length_near_the_end_of_an_i32_is_refused() {
    for length in [i32::MAX, i32::MAX - 11] {
        let mut bytes = v2(7);
        bytes[8..12].copy_from_slice(&length.to_be_bytes());
        let error = kbat::batches(&bytes).next().unwrap().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::BatchLength { .. }), "{error}");
        assert!(error.to_string().contains("exceeds the largest possible batch"), "{error}");
    }
    let mut bytes = v2(7);
    bytes[8..12].copy_from_slice(&(i32::MAX - 12).to_be_bytes());
    assert_eq!(walk(&bytes).0.len(), 0, "a batch with the largest length is only truncated");
}

/// Edge case 6. After `iteratorRaisesOnInvalidMagic`.
#[test]
fn framing_an_unknown_magic_is_refused_and_can_be_skipped() {
    for magic in [3_i8, 37, 127, -1, -128] {
        let mut unknown = v2(2);
        unknown[16] = magic.cast_unsigned();
        let bytes = [v2(0), unknown, v2(4)].concat();
        let mut walk = kbat::batches(&bytes);
        assert!(walk.next().unwrap().is_ok());
        let error = walk.next().unwrap().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::UnsupportedMagic(found) if *found == magic), "{error}");
        assert_eq!(error.position().byte, Some(v2(0).len() as u64 + 16));
        assert!(walk.next().is_none(), "an error ends the walk");
        assert!(walk.skip_batch());
        assert_eq!(walk.next().unwrap().unwrap().base_offset(), Some(4));
        assert!(!walk.skip_batch(), "nothing failed");
    }
}

#[test]
fn framing_a_length_that_lies_can_not_be_skipped() {
    let mut bytes = v2(0);
    bytes[8..12].copy_from_slice(&3_i32.to_be_bytes());
    let mut walk = kbat::batches(&bytes);
    assert!(walk.next().unwrap().is_err());
    assert!(!walk.skip_batch());
    assert!(walk.next().is_none());
}

/// Edge case 7. Other libraries use the first batch's magic for all batches, or read only the first batch.
#[test]
fn framing_magics_in_every_order_are_each_read_as_their_own() {
    let batches: [Vec<u8>; 4] = [
        message(0, 10, 0, Some(b"k"), Some(b"v")),
        message(1, 11, 0, Some(b"k"), Some(b"v")),
        V2 { base_offset: 12, ..V2::of(&plain_records(1)) }.bytes(),
        wrapper(1, 13, &[message(1, 0, 0, Some(b"k"), Some(b"v"))]),
    ];
    for a in 0..4 {
        for b in 0..4 {
            for c in 0..4 {
                let bytes = [a, b, c].map(|index: usize| batches[index].clone()).concat();
                let offsets: Vec<_> = all_records(&bytes).unwrap().iter().map(|record| record.offset).collect();
                assert_eq!(offsets, [a, b, c].map(|index| index as i64 + 10));
            }
        }
    }
}

/// Edge case 8. sarama refused more than 131070 records in a batch.
#[test]
fn framing_many_batches_and_many_records_are_read() {
    let bytes: Vec<u8> =
        (0..1_000).flat_map(|offset| V2 { base_offset: offset, ..V2::of(&plain_records(1)) }.bytes()).collect();
    assert_eq!(walk(&bytes).0, (0..1_000).collect::<Vec<_>>());

    let bytes = V2::of(&plain_records(200_000)).bytes();
    let records = crate::data::records(&first(&bytes)).unwrap();
    assert_eq!((records.len(), records[199_999].offset), (200_000, 199_999));
}

/// Edge case 9. Another library reads such a header from bytes after the buffer.
#[test]
fn framing_a_v2_batch_shorter_than_its_header_is_refused() {
    for total in 26..61 {
        let mut bytes = v2(0)[..total].to_vec();
        bytes[8..12].copy_from_slice(&(total as i32 - 12).to_be_bytes());
        fix_crc(&mut bytes);
        let error = kbat::batches(&bytes).next().unwrap().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::BatchLength { minimum: 49, .. }), "{total}: {error}");
    }
}

/// Edge case 10, as far as positions go: a window of a large file knows where it begins.
#[test]
fn framing_a_window_past_4_gib_has_positions_of_the_file() {
    let start = (4_u64 << 30) - 10;
    let mut damaged = v2(2);
    damaged[16] = 9;
    let bytes = [v2(0), damaged].concat();
    let mut walk = kbat::batches(&bytes).starting_at(start);
    assert_eq!(walk.next().unwrap().unwrap().position(), start);
    let second = start + v2(0).len() as u64;
    assert_eq!(walk.position(), second);
    assert_eq!(walk.next().unwrap().unwrap_err().position().byte, Some(second + 16));
}

/// Edge case 11. To Kafka, 18 zeros and more are a corrupt file.
#[test]
fn framing_zeros_to_the_end_are_a_clean_stop() {
    for zeros in [1, 11, 12, 16, 17, 18, 61, 4_096, 100_000] {
        let batch = v2(0);
        let bytes = [batch.clone(), vec![0; zeros]].concat();
        let (offsets, walk) = walk(&bytes);
        assert_eq!((offsets.len(), walk.position(), walk.remainder().len()), (1, batch.len() as u64, zeros));
    }
}

/// Edge case 12.
#[test]
fn framing_zeros_in_the_middle_are_refused_with_their_place() {
    let batch = v2(0);
    for zeros in [12, 18, 512, 4_096] {
        let bytes = [batch.clone(), vec![0; zeros], v2(2)].concat();
        let mut walk = kbat::batches(&bytes);
        assert!(walk.next().unwrap().is_ok());
        let error = walk.next().unwrap().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::BatchLength { length: 0, .. }), "{zeros}: {error}");
        assert_eq!(error.position().byte, Some(batch.len() as u64 + 8));
        assert_eq!(walk.remainder().len(), zeros + v2(2).len());
    }
}
