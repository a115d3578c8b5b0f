//! Which partition a record belongs to by its key: Kafka's default partitioner.
//!
//! Source: `Utils.murmur2` and `BuiltInPartitioner.partitionForKey` of kafka-clients.

use std::num::NonZeroU32;

const SEED: u32 = 0x9747_b28c;
const MULTIPLIER: u32 = 0x5bd1_e995;

/// The 32-bit murmur2 hash of some bytes, as Kafka computes it.
#[must_use]
pub fn murmur2(data: &[u8]) -> u32 {
    let (words, tail) = data.as_chunks::<4>();
    let len = u32::try_from(data.len()).unwrap_or(u32::MAX);
    let mut hash = SEED ^ len;
    for word in words {
        let mixed = u32::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        hash = hash.wrapping_mul(MULTIPLIER) ^ (mixed ^ (mixed >> 24)).wrapping_mul(MULTIPLIER);
    }
    if !tail.is_empty() {
        let rest = tail.iter().rev().fold(0_u32, |rest, &byte| (rest << 8) | u32::from(byte));
        hash = (hash ^ rest).wrapping_mul(MULTIPLIER);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(MULTIPLIER);
    hash ^ (hash >> 15)
}

/// The partition of a topic with `partition_count` partitions to which a producer sends records with this key.
#[must_use]
pub fn partition_for_key(key: &[u8], partition_count: NonZeroU32) -> u32 {
    (murmur2(key) & 0x7fff_ffff) % partition_count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From Kafka's own `UtilsTest.testMurmur2`.
    #[test]
    fn murmur2_of_kafkas_examples_is_kafkas() {
        let examples: [(&[u8], i32); 6] = [
            (b"21", -973_932_308),
            (b"foobar", -790_332_482),
            (b"a-little-bit-long-string", -985_981_536),
            (b"a-little-bit-longer-string", -1_486_304_829),
            (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58_897_971),
            (b"abc", 479_470_107),
        ];
        for (data, expected) in examples {
            assert_eq!(murmur2(data).cast_signed(), expected);
        }
    }

    #[test]
    fn partition_for_key_is_within_the_count() {
        let count = NonZeroU32::new(7).unwrap();
        let partitions: Vec<u32> = (0_u32..50).map(|key| partition_for_key(&key.to_be_bytes(), count)).collect();
        assert!(partitions.iter().all(|&partition| partition < 7));
        assert!((0..7).all(|partition| partitions.contains(&partition)));
        assert_eq!(partition_for_key(b"21", count), (-973_932_308_i32).cast_unsigned() % (1 << 31) % 7);
    }
}
