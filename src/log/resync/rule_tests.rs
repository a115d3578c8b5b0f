//! Tests of single rules: each fails without the rule, or the part of it, that its comment names.

use super::tests::{batch, find, message, with_a_segment_in_a_value};
use super::*;
use crate::format::builder::BatchBuilder;
use crate::format::header::BATCH_HEADER_LEN;
use crate::format::set_base_offset;

/// R3: the damaged size leads over a good batch to the one after it.
#[test]
fn a_size_that_skips_a_good_batch_does_not_hide_it() {
    let parts: Vec<Vec<u8>> = (0..9).map(|i| batch(i, &[7; 100])).collect();
    let len = parts[0].len();
    let mut bytes = parts.concat();
    let length = i32::try_from(2 * len - 12).unwrap();
    bytes[2 * len + 8..2 * len + 12].copy_from_slice(&length.to_be_bytes());
    bytes[2 * len + 80] ^= 1;
    assert_eq!(find(&bytes, 2 * len, Some(2)), Next::Batch(u64_of(3 * len)));
}

/// R6 and R11: without a known offset, a message must have a plausible one and must not stand alone.
#[test]
fn messages_that_may_be_parts_of_a_compressed_set_are_not_taken() {
    let noise = [0x33_u8; 100];
    for magic in [0, 1] {
        let far = [&noise[..], &message(magic, 1 << 50, b"v")[..]].concat();
        assert!(matches!(find(&far, 0, None), Next::End(_)), "magic {magic}");
        let alone = [&noise[..], &message(magic, 5, b"v")[..], &noise[..]].concat();
        assert!(matches!(find(&alone, 0, None), Next::End(_)), "magic {magic}");
    }
}

/// R14: a set that a codec stored as it is, with the relative offsets of its messages, was written incompletely.
#[test]
fn messages_of_an_incomplete_set_are_not_taken() {
    for magic in [0, 1] {
        let messages: Vec<u8> = (0..25).flat_map(|offset| message(magic, offset, b"some value")).collect();
        let mut set = message(magic, 33, &messages);
        set[17] |= 2; // snappy
        for len in 100..set.len() {
            assert!(matches!(find(&set[..len], 0, Some(9)), Next::End(_)), "magic {magic}, {len} bytes");
            let after = [&set[..len], &message(magic, 34, b"good")[..]].concat();
            if after.len() == set.len() {
                continue; // R1: its size leads to the end
            }
            assert_eq!(find(&after, 0, Some(9)), Next::Batch(u64_of(len)), "magic {magic}, {len} bytes");
        }
    }
}

/// R8: the input ends directly after a copy of an earlier batch in the value of an incomplete one.
#[test]
fn a_batch_in_an_incomplete_batch_is_not_taken_for_its_successor() {
    let inner = batch(100, b"inner inner inner");
    let (bytes, place, _) = with_a_segment_in_a_value(100, 3);
    let first = bytes.windows(inner.len()).position(|window| window == inner).unwrap();
    assert!(matches!(find(&bytes[..first + inner.len()], place, Some(100)), Next::End(_)));
}

/// R10: the damaged size leads to a batch in the value.
#[test]
fn a_size_that_leads_into_the_value_is_not_followed() {
    for inner_offset in [100, 101, 1000] {
        let inner = batch(inner_offset, b"inner inner inner");
        let (mut bytes, place, next) = with_a_segment_in_a_value(inner_offset, 3);
        let first = bytes.windows(inner.len()).position(|window| window == inner).unwrap();
        let length = i32::try_from(first - place - 12).unwrap();
        bytes[place + 8..place + 12].copy_from_slice(&length.to_be_bytes());
        assert_eq!(find(&bytes, place, Some(100)), Next::Batch(u64_of(next)), "{inner_offset}");
    }
}

/// R12: the last batch is incomplete, and its value contains a batch.
#[test]
fn a_good_batch_before_an_incomplete_one_is_found() {
    let inner = batch(7, b"inner");
    let last = batch(8, &[&inner[..], &[0; 200][..]].concat());
    let at = last.windows(inner.len()).position(|window| window == inner).unwrap();
    let bytes = [&[0x33_u8; 100][..], &batch(7, b"good")[..], &last[..at + inner.len() + 100]].concat();
    assert_eq!(find(&bytes, 0, Some(7)), Next::Batch(100));
}

/// R10: the damaged value seems to end inside the next batch, and the chain ends in a second damaged batch.
#[test]
fn batches_between_two_damaged_ones_are_found() {
    let value: Vec<u8> = (0..2000_u32).map(|index| u8::try_from(index * index % 251).unwrap()).collect();
    let without_a_byte = |offset: i64| {
        let mut bytes = batch(offset, &value);
        bytes.remove(300);
        bytes
    };
    let first = without_a_byte(1);
    let good: Vec<u8> = (2..6).flat_map(|offset| batch(offset, b"good")).collect();
    let bytes = [first.as_slice(), &good, &without_a_byte(6), &batch(7, b"last")].concat();
    assert_eq!(find(&bytes, 0, Some(1)), Next::Batch(u64_of(first.len())));
}

/// R9: a large message lost bytes, and the last batch is incomplete.
#[test]
fn a_good_message_after_missing_bytes_is_found() {
    for magic in [0, 1] {
        let large = message(magic, 2, &(0..2000).map(|i: i32| u8::try_from(i * 7 % 251).unwrap()).collect::<Vec<_>>());
        let before = [message(magic, 0, b"a"), message(magic, 1, b"b")].concat();
        let start = [&before[..], &large[..90], &large[1000..]].concat();
        let good = [message(magic, 3, b"good"), message(magic, 4, b"good")].concat();
        for tail in [batch(5, b"torn")[..70].to_vec(), message(magic, 5, &[7; 500])[..200].to_vec(), vec![0; 10]] {
            let bytes = [&start[..], &good[..], &tail[..]].concat();
            let expected = Next::Batch(u64_of(start.len()));
            assert_eq!(find(&bytes, before.len(), Some(2)), expected, "magic {magic}, {} bytes after", tail.len());
        }
        // a message with a later offset may also be in the value
        let later = [&start[..], &message(magic, 9, b"good")[..], &batch(10, b"torn")[..70]].concat();
        assert!(matches!(find(&later, before.len(), Some(2)), Next::End(_)), "magic {magic}");
    }
}

/// R1: two damaged batches in a row, and the value of the first contains a batch that would fit between them.
#[test]
fn sizes_are_followed_over_a_second_damaged_batch() {
    let value = [b"text", &batch(100, b"inner")[..], b"text"].concat();
    let (first, second) = (batch(100, &value), batch(101, b"second"));
    let mut bytes = [&first[..], &second[..], &batch(102, b"last")[..]].concat();
    bytes[BATCH_HEADER_LEN] ^= 0x20; // the length of its record, so that R10 can't tell
    bytes[first.len() + BATCH_HEADER_LEN + 9] ^= 1;
    assert_eq!(find(&bytes, 0, Some(100)), Next::Batch(u64_of(first.len() + second.len())));
}

/// R3 is for v2 only: a message at the end of a value leads to the next message of the log too.
#[test]
fn a_message_at_the_end_of_a_value_is_not_taken() {
    for (magic, key_length) in [(0, 18), (1, 26)] {
        let outer = message(magic, 11, &[b"text", &message(magic, 11, b"inner")[..]].concat());
        let mut bytes = [&outer[..], &message(magic, 12, b"after")[..]].concat();
        bytes[key_length] ^= 0x80; // so that R10 can't tell
        assert_eq!(find(&bytes, 0, Some(11)), Next::Batch(u64_of(outer.len())), "magic {magic}");
    }
}

/// R10 and R3: a batch at the end of the last record leads to the next batch of the log too.
#[test]
fn a_batch_at_the_end_of_the_last_header_is_not_taken() {
    let inner = [b"text", &batch(11, b"inner")[..]].concat();
    let mut builder = BatchBuilder::new().base_offset(11);
    builder.append_with_headers(1, Some(b"key"), Some(b"value"), &[(b"name", Some(&inner))]).unwrap();
    let mut outer = Vec::new();
    builder.finish_into(&mut outer).unwrap();
    let key = outer.windows(3).position(|window| window == b"key").unwrap();
    outer[key] ^= 1;
    let bytes = [&outer[..], &batch(12, b"after")[..]].concat();
    assert_eq!(find(&bytes, 0, Some(11)), Next::Batch(u64_of(outer.len())));
}

/// R13: the last good batch is followed by corruption up to the end.
#[test]
fn a_good_batch_between_two_holes_is_found() {
    let bytes = [&[0x33; 100][..], &batch(7, b"good")[..], &[0x77; 100][..]].concat();
    assert_eq!(find(&bytes, 0, Some(7)), Next::Batch(100));
}

/// R13: bytes were inserted after the good batches that follow the damaged one, which lost or gained bytes.
#[test]
fn good_batches_before_inserted_bytes_are_found() {
    let good: Vec<Vec<u8>> = (2..9).map(|offset| batch(offset, b"good")).collect();
    for inserted in [&b"\x01"[..], &[0], &[0x55; 20], &[0; 40]] {
        for (removed, added) in [(3, 0), (0, 5)] {
            let mut damaged = batch(1, b"this one is damaged");
            damaged.splice(70..70 + removed, std::iter::repeat_n(0x5a, added));
            let bytes = [&damaged[..], &good[..5].concat(), inserted, &good[5..].concat()].concat();
            assert_eq!(find(&bytes, 0, Some(1)), Next::Batch(u64_of(damaged.len())), "{inserted:?} {removed} {added}");
        }
    }
}

/// Chains: a batch whose stored offset is too high does not separate the batches before it from those after it.
#[test]
fn a_chain_continues_after_an_offset_that_is_too_high() {
    let mut high = batch(2, b"high");
    set_base_offset(&mut high, 1_000_000).unwrap();
    let bytes =
        [&[0x33; 100][..], &batch(1, b"first")[..], &high[..], &batch(3, b"x")[..], &batch(4, b"y")[..]].concat();
    assert_eq!(find(&bytes, 0, Some(1)), Next::Batch(100));
}

/// The offsets of a segment span less than 2³¹.
#[test]
fn an_offset_far_above_the_floor_is_not_plausible() {
    let bytes = [&[0x33; 100][..], &batch(1 << 40, b"far")[..]].concat();
    assert!(matches!(find(&bytes, 0, Some(7)), Next::End(_)));
    assert_eq!(find(&bytes, 0, None), Next::Batch(100));
}

/// The leader epoch is not part of the checksum, so the next batch is intact although it is damaged.
#[test]
fn a_batch_with_a_damaged_leader_epoch_is_found() {
    for damaged_byte in [9, 66] {
        let (first, mut second, third) = (batch(0, b"first"), batch(1, b"second"), batch(2, b"third"));
        second[12] ^= 0x80;
        let mut bytes = [first.clone(), second, third].concat();
        bytes[damaged_byte] ^= 1;
        assert_eq!(find(&bytes, 0, Some(0)), Next::Batch(u64_of(first.len())), "{damaged_byte}");
    }
}
