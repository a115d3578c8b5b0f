//! The properties that the fuzzers check, on random bytes and on real files with random corruption.

use proptest::prelude::*;

use crate::data;

/// Small real files, one of every codec and magic, to corrupt.
const SEEDS: [&str; 4] = [
    "corpus/tiny-batches/00000000000000000000.log",
    "corpus/txn-simple/00000000000000000000.log",
    "corpus-legacy/k0102-java0102-snappy/00000000000000000000.log",
    "corpus-legacy/k0822-java0822-lz4/00000000000000000000.log",
];

fn seeds() -> Vec<Vec<u8>> {
    SEEDS.iter().map(|name| data::file(name)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn properties_of_random_bytes_hold(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        kbat::fuzzing::read(&bytes);
        kbat::fuzzing::rewrite(&bytes);
        kbat::fuzzing::retain(&bytes);
        kbat::fuzzing::convert(&bytes);
        kbat::fuzzing::validate(&bytes);
    }

    #[test]
    fn properties_of_damaged_files_hold(
        seed in 0..SEEDS.len(),
        kept in 50..=100_usize,
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = seeds().swap_remove(seed);
        bytes.truncate(bytes.len() * kept / 100 + 1);
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        kbat::fuzzing::read(&bytes);
        kbat::fuzzing::rewrite(&bytes);
        kbat::fuzzing::retain(&bytes);
        kbat::fuzzing::convert(&bytes);
        kbat::fuzzing::validate(&bytes);
    }
}

#[test]
fn properties_of_whole_files_hold() {
    for bytes in seeds() {
        kbat::fuzzing::read(&bytes);
        kbat::fuzzing::rewrite(&bytes);
        kbat::fuzzing::retain(&bytes);
        kbat::fuzzing::convert(&bytes);
        kbat::fuzzing::validate(&bytes);
    }
}
