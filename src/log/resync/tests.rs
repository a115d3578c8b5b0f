use std::path::{Path, PathBuf};

use super::*;
use crate::format::set_base_offset;
use crate::{BatchBuilder, batches};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");

fn read(name: &str) -> Vec<u8> {
    std::fs::read(Path::new(DATA).join(name)).unwrap()
}

pub(super) fn batch(base_offset: i64, value: &[u8]) -> Vec<u8> {
    let mut builder = BatchBuilder::new().base_offset(base_offset);
    builder.append(1_700_000_000_000, Some(b"key"), Some(value)).unwrap();
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    bytes
}

pub(super) fn message(magic: u8, offset: i64, value: &[u8]) -> Vec<u8> {
    let mut builder = BatchBuilder::new().magic(magic).base_offset(offset);
    builder.append(1, None, Some(value)).unwrap();
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    bytes
}

pub(super) fn find(bytes: &[u8], damaged: usize, next_offset: Option<i64>) -> Next {
    Resync::new(&Limits::default()).find(&bytes, u64_of(damaged), next_offset).unwrap()
}

/// Each batch's position, its size, and the offset after the batch before it.
fn frames(bytes: &[u8]) -> Vec<(usize, usize, Option<i64>)> {
    let mut next = None;
    batches(bytes)
        .map(|batch| {
            let batch = batch.unwrap();
            let frame = (usize::try_from(batch.position()).unwrap(), batch.size(), next);
            next = Some(batch.next_offset());
            frame
        })
        .collect()
}

fn logs() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for root in ["corpus", "corpus-legacy"] {
        for case in std::fs::read_dir(Path::new(DATA).join(root)).unwrap() {
            let Ok(entries) = std::fs::read_dir(case.unwrap().path()) else { continue };
            found.extend(
                entries.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "log")),
            );
        }
    }
    found.sort();
    found
}

#[test]
fn next_batch_is_found_after_damage_in_any_field() {
    let mut damages = 0;
    for path in logs() {
        let bytes = std::fs::read(&path).unwrap();
        if bytes.len() > 12_000
            || bytes.len() < 200
            || batches(&bytes).any(|batch| batch.and_then(|batch| batch.verify_crc()).is_err())
        {
            continue;
        }
        let frames = frames(&bytes);
        if frames.windows(2).any(|pair| pair[0].2 >= pair[1].2) || path.to_string_lossy().contains("-wire") {
            continue; // sent by a client: no broker has assigned offsets
        }
        for (index, &(position, size, next_offset)) in frames.iter().enumerate().step_by(frames.len() / 3 + 1) {
            let expected = frames.get(index + 1).map(|frame| u64_of(frame.0));
            // each byte of the size, magic and checksum, and one byte of the payload
            for byte in [8, 9, 10, 11, 16, 17, 20, 12, size - 1] {
                for bit in if byte % 2 == 0 { [1] } else { [0x80] } {
                    let mut damaged = bytes.clone();
                    damaged[position + byte] ^= bit;
                    let found = find(&damaged, position, next_offset);
                    let right = match (expected, found) {
                        (Some(expected), Next::Batch(found)) => expected == found,
                        (None, Next::End(_)) => true,
                        _ => false,
                    };
                    assert!(right, "{} at {position}+{byte}: {found:?}, not {expected:?}", path.display());
                    damages += 1;
                }
            }
        }
    }
    assert!(damages > 1000, "{damages} cases");
}

#[test]
fn next_batch_is_found_after_bytes_were_lost_added_or_overwritten() {
    let bytes = read("corpus/codec-lz4/00000000000000000000.log");
    let frames = frames(&bytes);
    for (index, &(position, size, next_offset)) in frames.iter().enumerate().take(frames.len() - 1) {
        let (next, _, _) = frames[index + 1];
        for (from, len) in [(0, 1), (0, 30), (5, 61), (20, size - 20), (size / 2, size / 2)] {
            let cut = [&bytes[..position + from], &bytes[position + from + len..]].concat();
            assert_eq!(find(&cut, position, next_offset), Next::Batch(u64_of(next - len)), "{index}: {len} lost");
            let added = [&bytes[..position + from], &vec![0xa5; len], &bytes[position + from..]].concat();
            let expected = if from == 0 { position + len } else { next + len };
            assert_eq!(find(&added, position, next_offset), Next::Batch(u64_of(expected)), "{index}: {len} added");
            let mut zeroed = bytes.clone();
            zeroed[position + from..position + from + len].fill(0);
            assert_eq!(find(&zeroed, position, next_offset), Next::Batch(u64_of(next)), "{index}: {len} zeros");
        }
    }
}

/// A log whose second batch has a value that contains batches starting at `inner_offset`.
pub(super) fn with_a_segment_in_a_value(inner_offset: i64, inner_count: i64) -> (Vec<u8>, usize, usize) {
    let inner: Vec<u8> = (0..inner_count).flat_map(|i| batch(inner_offset + i, b"inner inner inner")).collect();
    let (before, outer, after) = (batch(99, b"before"), batch(100, &inner), batch(101, b"after"));
    let place = before.len();
    let next = place + outer.len();
    ([before, outer, after, batch(102, b"last")].concat(), place, next)
}

#[test]
fn batches_in_a_value_are_never_taken() {
    for (inner_offset, inner_count) in [(0, 3), (99, 1), (100, 1), (100, 4), (101, 2), (102, 5), (1_000_000, 3)] {
        let (bytes, place, next) = with_a_segment_in_a_value(inner_offset, inner_count);
        for from in 0..70 {
            for len in [1, 4, 20, 61] {
                for fill in [0x00, 0xff, 0x5a] {
                    let mut damaged = bytes.clone();
                    damaged[place + from..place + from + len].fill(fill);
                    if damaged == bytes {
                        continue;
                    }
                    let found = find(&damaged, place, Some(100));
                    assert_eq!(found, Next::Batch(u64_of(next)), "{inner_offset} {inner_count}: {len} bytes at {from}");
                }
            }
        }
    }
}

#[test]
fn batches_in_the_value_of_the_last_batch_are_never_taken() {
    for (inner_offset, inner_count) in [(100, 1), (101, 3), (5000, 2)] {
        let (bytes, place, next) = with_a_segment_in_a_value(inner_offset, inner_count);
        let bytes = &bytes[..next];
        let inner = batch(inner_offset, b"inner inner inner").len();
        let first = (place..next).rev().find(|at| bytes[*at..].starts_with(&inner_offset.to_be_bytes())).unwrap();
        for len in [1, 4, 20, 61] {
            let mut damaged = bytes.to_vec();
            damaged[place + 8..place + 8 + len].fill(0x5a);
            assert!(matches!(find(&damaged, place, Some(100)), Next::End(_)), "{inner_offset}: {len}");
            // the same if the value is truncated at any byte
            for end in (place + 80..next).step_by(7) {
                // directly after an inner batch, it cannot be distinguished from a batch of the log that follows
                // missing
                // bytes, unless the value's length shows that it ends there
                let whole = first + inner * usize::try_from(inner_count).unwrap();
                let ends_with_inner = end > first && (end - first) % inner == 0 && end < whole && inner_offset > 100;
                // the same if the first inner batch has exactly the next offset
                let continues = inner_offset == 101 && end >= first + inner && end < whole;
                let found = find(&bytes[..end], place, Some(100));
                assert_eq!(
                    matches!(found, Next::End(_)),
                    !ends_with_inner && !continues,
                    "{inner_offset}: truncated at {end}"
                );
            }
        }
    }
}

#[test]
fn a_good_batch_after_missing_bytes_is_found() {
    for value_len in [500, 2000, 20_000] {
        for missing in [1, 50, 300, value_len / 2, value_len - 100] {
            for after in 1..4_usize {
                let before = [batch(0, b"a"), batch(1, b"b")].concat();
                let large = batch(2, &(0..value_len).map(|i| u8::try_from(i * 7 % 251).unwrap()).collect::<Vec<_>>());
                let good: Vec<u8> = (0..after).flat_map(|i| batch(3 + i64::try_from(i).unwrap(), b"good")).collect();
                let cut = [&large[..90], &large[90 + missing..]].concat();
                let bytes = [before.clone(), cut, good.clone()].concat();
                let expected = Next::Batch(u64_of(bytes.len() - good.len()));
                assert_eq!(find(&bytes, before.len(), Some(2)), expected, "{missing} of {value_len}, {after} after");
            }
        }
    }
}

#[test]
fn a_good_batch_after_missing_bytes_is_found_before_any_tail() {
    for missing in [10, 300, 1200, 1900] {
        let large = batch(2, &(0..2000).map(|i: i32| u8::try_from(i * 7 % 251).unwrap()).collect::<Vec<_>>());
        let good = [batch(3, b"good"), batch(4, b"good")].concat();
        let start = [batch(0, b"a"), batch(1, b"b"), [&large[..90], &large[90 + missing..]].concat()].concat();
        let damaged = batch(0, b"a").len() + batch(1, b"b").len();
        for tail in [vec![], batch(5, b"torn")[..70].to_vec(), vec![0; 9000]] {
            let bytes = [start.clone(), good.clone(), tail.clone()].concat();
            let expected = Next::Batch(u64_of(start.len()));
            assert_eq!(find(&bytes, damaged, Some(2)), expected, "{missing} bytes missing, {} after", tail.len());
        }
    }
}

#[test]
fn any_batch_is_found_whatever_comes_before_it() {
    let torn = batch(5, &[9; 3000]);
    for offset in [0, 3, 6, 1 << 40] {
        let good = batch(offset, b"good");
        let bytes = [&torn[..1500], &good[..], &torn[..80]].concat();
        let found = Resync::new(&Limits::default()).any_batch(&&bytes[..], 0, u64::MAX).unwrap();
        assert_eq!(found, Some(1500), "offset {offset}");
    }
    assert_eq!(Resync::new(&Limits::default()).any_batch(&&torn[..1500], 0, u64::MAX).unwrap(), None);
}

#[test]
fn messages_in_the_value_of_a_message_are_never_taken() {
    for magic in [0, 1] {
        let inner = [message(magic, 11, b"inner"), message(magic, 12, b"inner")].concat();
        let parts = [message(magic, 10, b"before"), message(magic, 11, &inner), message(magic, 12, b"after")];
        let (place, next) = (parts[0].len(), parts[0].len() + parts[1].len());
        let bytes = parts.concat();
        for byte in 0..22 {
            let mut damaged = bytes.clone();
            damaged[place + byte] ^= 0x41;
            assert_eq!(find(&damaged, place, Some(11)), Next::Batch(u64_of(next)), "magic {magic}, byte {byte}");
        }
    }
}

#[test]
fn a_batch_between_two_damages_is_found() {
    let parts: Vec<Vec<u8>> = (0..9).map(|i| batch(i, format!("value {i}").repeat(20).as_bytes())).collect();
    let len = parts[0].len();
    let mut bytes = parts.concat();
    bytes[2 * len..2 * len + 40].fill(0x77);
    bytes[5 * len..5 * len + 40].fill(0x77);
    assert_eq!(find(&bytes, 2 * len, Some(2)), Next::Batch(u64_of(3 * len)));
    assert_eq!(find(&bytes, 5 * len, Some(5)), Next::Batch(u64_of(6 * len)));
}

#[test]
fn offsets_that_came_before_are_not_taken_again() {
    let (good, damaged) = (batch(50, b"good"), vec![0x33; 100]);
    let bytes = [good.clone(), damaged, batch(7, b"old"), batch(51, b"next")].concat();
    let next = bytes.len() - batch(51, b"next").len();
    assert_eq!(find(&bytes, good.len(), Some(51)), Next::Batch(u64_of(next)));
    let mut moved = batch(0, b"v");
    set_base_offset(&mut moved, 60).unwrap();
    assert_eq!(find(&[vec![1; 40], moved].concat(), 0, Some(60)), Next::Batch(40));
}

#[test]
fn zeros_and_cut_batches_at_the_end_are_the_end() {
    let mut bytes = batch(1, b"damaged");
    let len = bytes.len();
    bytes[20] ^= 1;
    let zeros = [bytes.clone(), vec![0; 5000]].concat();
    assert_eq!(find(&zeros, 0, None), Next::End(u64_of(len)));
    let cut = [bytes.clone(), batch(2, b"cut")[..70].to_vec()].concat();
    assert_eq!(find(&cut, 0, None), Next::End(u64_of(len)));
    let hole = [bytes, vec![0; 5000], batch(2, b"after a hole")].concat();
    assert_eq!(find(&hole, 0, None), Next::Batch(u64_of(len + 5000)));
    assert_eq!(find(&[0x99; 3000], 0, None), Next::End(3000));
    assert_eq!(find(&[], 0, None), Next::End(0));
}

#[test]
fn damage_of_any_length_is_passed_over() {
    let piece = SEARCH_LEN;
    let after = [batch(2, b"after"), batch(3, &vec![7; 3 * piece]), batch(4, b"last")].concat();
    for len in [piece - HEAD_LEN, piece - 1, piece, piece + 1, 2 * piece - HEAD_LEN, 2 * piece, 9 * piece + 5] {
        for fill in [0, 0x55, 0xff] {
            let bytes = [batch(1, b"before"), vec![fill; len], after.clone()].concat();
            let damaged = batch(1, b"before").len();
            assert_eq!(find(&bytes, damaged, Some(2)), Next::Batch(u64_of(damaged + len)), "{len} of {fill}");
        }
        let mut bytes = [batch(1, &vec![8; len]), after.clone()].concat();
        bytes[8..12].fill(0xff); // its size
        assert_eq!(find(&bytes, 0, None), Next::Batch(u64_of(bytes.len() - after.len())), "a value of {len}");
    }
}

#[test]
fn batches_between_a_hole_and_a_wrong_size_are_found() {
    for magic in [0, 1, 2] {
        let parts: Vec<Vec<u8>> =
            (0..60).map(|i| if magic == 2 { batch(i, &[7; 1000]) } else { message(magic, i, &[7; 1000]) }).collect();
        let len = parts[0].len();
        let size = i32::try_from(len).unwrap() - 12;
        for length in [49, 60, 500, size - 4, size + 4, 5000, 1 << 20] {
            let mut bytes = parts.concat();
            bytes[10 * len + 50..14 * len + 50].fill(0);
            bytes[40 * len + 8..40 * len + 12].copy_from_slice(&length.to_be_bytes());
            assert_eq!(find(&bytes, 10 * len, Some(10)), Next::Batch(u64_of(15 * len)), "{magic} {length}");
            assert_eq!(find(&bytes, 40 * len, Some(40)), Next::Batch(u64_of(41 * len)), "{magic} {length}");
        }
    }
}

#[test]
fn a_damaged_size_behind_damage_is_no_end() {
    let parts: Vec<Vec<u8>> = (0..9).map(|i| batch(i, &[7; 100])).collect();
    let len = parts[0].len();
    let mut bytes = parts.concat();
    bytes[3 * len + 80] ^= 1;
    bytes[4 * len + 9] ^= 0x10;
    let mut resync = Resync::new(&Limits::default());
    assert_eq!(resync.find_batch(&&bytes[..], u64_of(3 * len), Some(3)).unwrap(), Some(u64_of(5 * len)));
    let cut = bytes.get(..4 * len + 70).unwrap();
    assert_eq!(resync.find_batch(&cut, u64_of(3 * len), Some(3)).unwrap(), None);
}

#[test]
fn an_offset_that_is_too_high_does_not_hide_what_follows() {
    let headers = |offsets: &[i64]| -> Vec<BatchHeader> {
        let bytes: Vec<Vec<u8>> = offsets.iter().map(|&offset| batch(offset, b"v")).collect();
        bytes.iter().map(|bytes| *batches(bytes).next().unwrap().unwrap().header()).collect()
    };
    for (offsets, next, least) in [
        (vec![5, 6, 7], 8, 8),
        (vec![5, 6, 1 << 40], (1 << 40) + 1, 7),
        (vec![5, 6, 1 << 40, 8], 9, 9),
        (vec![5, 6, 2], 3, 3),
    ] {
        let mut floor = Floor::default();
        for header in &headers(&offsets) {
            floor.pass(header);
        }
        assert_eq!((floor.next(), floor.least()), (Some(next), Some(least)), "{offsets:?}");
    }
}

/// Edge case 92: overlapping candidates, each of which extends to the end of the input.
#[test]
fn work_is_bounded_by_the_bytes() {
    let one = batch(5, b"x");
    let mut bytes = Vec::new();
    let count = 20_000;
    for i in 0..count {
        let mut head = one[..61].to_vec();
        let left = u32::try_from((count - i) * 61 - 12).unwrap();
        head[8..12].copy_from_slice(&left.to_be_bytes());
        bytes.extend_from_slice(&head);
    }
    let mut resync = Resync::new(&Limits::default());
    assert!(matches!(resync.find(&&bytes[..], 0, None).unwrap(), Next::End(_)));
    assert!(resync.spent <= u64_of(bytes.len()) * (WORK_PER_BYTE + 2) + (1 << 20), "{}", resync.spent);
}

#[test]
fn a_file_is_searched_like_its_bytes() {
    let path = Path::new(DATA).join("corpus/segments-default-interval/00000000000000000000.log");
    let bytes = std::fs::read(&path).unwrap();
    let file = crate::io::PositionedFile::open(&path).unwrap();
    for damaged in (0..bytes.len()).step_by(997) {
        let mut resync = Resync::new(&Limits::default());
        assert_eq!(resync.find(&file, u64_of(damaged), None).unwrap(), find(&bytes, damaged, None), "{damaged}");
    }
}
