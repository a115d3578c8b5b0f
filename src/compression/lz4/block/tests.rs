use lz4_flex::block::{DecompressError, compress, decompress_into, decompress_into_with_dict};
use proptest::prelude::*;

use super::*;

/// Output, or whether the space was too small for it.
type Answer = Result<Vec<u8>, bool>;

fn ours(block: &[u8], room_len: usize, before: &[u8]) -> Answer {
    let mut buffer = before.to_vec();
    buffer.resize(before.len() + room_len, 0xee);
    let result = decompress(block, &mut buffer, before.len());
    assert_eq!(&buffer[..before.len()], before, "bytes before the output changed");
    result.map(|end| buffer[before.len()..end].to_vec()).map_err(|fault| fault == Fault::Full)
}

fn theirs(block: &[u8], room_len: usize, before: &[u8]) -> Answer {
    let mut room = vec![0; room_len];
    let result = if before.is_empty() {
        decompress_into(block, &mut room)
    } else {
        decompress_into_with_dict(block, &mut room, before)
    };
    result.map(|len| room[..len].to_vec()).map_err(|error| matches!(error, DecompressError::OutputTooSmall { .. }))
}

/// Data with runs, repeats at many distances, words, and noise.
fn data() -> impl Strategy<Value = Vec<u8>> {
    let words = proptest::sample::select(vec!["order ", "view ", "region ", "queue ", "paid "]);
    let part = prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..90),
        (any::<u8>(), 1..2000_usize).prop_map(|(byte, len)| vec![byte; len]),
        (proptest::collection::vec(97..110_u8, 1..40), 1..60_usize).prop_map(|(word, times)| word.repeat(times)),
        proptest::collection::vec(words, 1..400).prop_map(|words| words.concat().into_bytes()),
    ];
    proptest::collection::vec(part, 0..30).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn block_that_lz4_flex_wrote_is_read(data in data(), spare in 0..60_usize) {
        let block = compress(&data);
        prop_assert_eq!(ours(&block, data.len() + spare, &[]), Ok(data));
    }

    #[test]
    fn block_with_damage_is_read_or_refused_as_by_lz4_flex(
        data in data(),
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in 0..20_usize,
        room in any::<prop::sample::Index>(),
    ) {
        let mut block = compress(&data);
        for (place, byte) in damage {
            let place = place.index(block.len());
            block[place] = byte;
        }
        block.truncate(block.len().saturating_sub(cut));
        let room_len = room.index(data.len() + 100);
        prop_assert_eq!(ours(&block, room_len, &[]), theirs(&block, room_len, &[]));
    }

    #[test]
    fn block_of_random_bytes_is_read_or_refused_as_by_lz4_flex(
        block in proptest::collection::vec(any::<u8>(), 0..400),
        room_len in 0..5000_usize,
        before in proptest::collection::vec(any::<u8>(), 0..300),
    ) {
        prop_assert_eq!(ours(&block, room_len, &before), theirs(&block, room_len, &before));
    }

    /// Tokens, offsets and lengths that are mostly possible, so that blocks are decoded far.
    #[test]
    fn block_of_random_sequences_is_read_or_refused_as_by_lz4_flex(
        sequences in proptest::collection::vec((any::<u8>(), 0..50_u8, 0..40_u16, 0..300_usize), 0..200),
        room_len in 0..20_000_usize,
        before in proptest::collection::vec(any::<u8>(), 0..64),
    ) {
        let mut block = Vec::new();
        for (token, literals, offset, more) in sequences {
            // the fields of literals and match, unless a continued one is wanted
            let field = if literals > 40 { 15 } else { literals & token & 0x0f };
            block.push((field << 4) | (token & 0x0f));
            if field == 15 {
                block.push(literals);
            }
            let count = usize::from(field) + if field == 15 { usize::from(literals) } else { 0 };
            block.extend((0..count).map(|number| b'a' + u8::try_from(number % 26).unwrap()));
            block.extend(offset.to_le_bytes());
            if token & 0x0f == 15 {
                block.extend(vec![u8::MAX; more / 255]);
                block.push(u8::try_from(more % 255).unwrap());
            }
        }
        block.push(0);
        prop_assert_eq!(ours(&block, room_len, &before), theirs(&block, room_len, &before));
    }
}

#[test]
fn runs_of_every_offset_and_length_are_read() {
    for offset in 1..70_u16 {
        for more in 0..80_u8 {
            let before: Vec<u8> = (0..u8::try_from(offset).unwrap()).collect();
            let (token, extra) = if more < 15 { (more, None) } else { (15, Some(more - 15)) };
            let mut block = vec![token];
            block.extend(offset.to_le_bytes());
            block.extend(extra);
            block.extend([0x50, b'v', b'w', b'x', b'y', b'z']);
            for room_len in [usize::from(more) + 9, usize::from(more) + 100] {
                assert_eq!(ours(&block, room_len, &before), theirs(&block, room_len, &before), "{offset} {more}");
                assert!(ours(&block, room_len, &before).is_ok());
            }
        }
    }
}

#[test]
fn fault_is_told() {
    let refused = |block: &[u8]| decompress(block, &mut [0; 100], 0);
    assert_eq!(refused(&[]), Err(Fault::Ended));
    assert_eq!(refused(&[0x20, b'a']), Err(Fault::Literals));
    assert_eq!(refused(&[0x10, b'a', 1]), Err(Fault::Ended));
    assert_eq!(refused(&[0x10, b'a', 1, 0]), Err(Fault::Ended));
    assert_eq!(refused(&[0x10, b'a', 0, 0, 0]), Err(Fault::Offset));
    assert_eq!(refused(&[0x10, b'a', 2, 0, 0]), Err(Fault::Offset));
    assert_eq!(refused(&[0x1f, b'a', 1, 0, 81, 0]), Err(Fault::Full));
    assert_eq!(refused(&[0x1f, b'a', 1, 0, 80, 0]), Ok(100));
}
