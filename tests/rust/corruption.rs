//! Corruption: every truncation and every flipped bit of twenty small files of all magics and codecs. Reading must not
//! panic or hang. It returns records or an error with a position, and the batches before the corruption are unchanged.

use std::collections::BTreeSet;

use kbat::{Batch, ControlRecord, Limits, Scratch};

use crate::data::file;

const FILES: [&str; 20] = [
    "corpus-legacy/k0822-mixed-codecs/00000000000000000000.log",
    "corpus-legacy/k0822-scala0822-lz4/00000000000000000000.log",
    "corpus-legacy/k0100-java0102-lz4/00000000000000000000.log",
    "corpus-legacy/k0100-java0102-none/00000000000000000000.log",
    "corpus-legacy/k0102-broker-gzip/00000000000000000000.log",
    "corpus-legacy/k0102-compacted/00000000000000000360.log",
    "corpus-legacy/k0102-times-snappy/00000000000000000000.log",
    "corpus-legacy/k0102-format-midway/00000000000000000000.log",
    "corpus-legacy/k282-format-midway/00000000000000000000.log",
    "corpus-legacy/k282-compacted-mixed/00000000000000001309.log",
    "corpus/txn-simple/00000000000000000003.log",
    "corpus/compacted-codec/00000000000000000424.log",
    "corpus/compacted-codec2/00000000000000000457.log",
    "corpus/compacted-txn-expired/00000000000000000445.log",
    "corpus/compacted-append-time/00000000000000000474.log",
    "corpus/share-group-state/00000000000000000000.log",
    "corpus/tiny-batches/00000000000000000000.log",
    "corpus/writes/046-v2-zstd.log",
    "corpus/writes/040-v0-lz4.log",
    "corpus/writes/045-v2-lz4.log",
];

/// Enough for every file above; a flipped bit must not produce more.
fn limits() -> Limits {
    Limits { decompressed_len: 1 << 20, ..Limits::default() }
}

/// Reads all fields of a batch.
fn decode(batch: &Batch<'_>, scratch: &mut Scratch) -> kbat::Result<()> {
    for record in batch.records(scratch, &limits())? {
        let record = record?;
        record.headers().verify()?;
        if batch.is_control() {
            ControlRecord::parse(&record)?;
        }
        let _ = record.verify_crc();
    }
    Ok(())
}

/// An error must have a position inside the file.
fn assert_placed(error: &kbat::Error, len: usize) {
    let position = error.position();
    assert!(position.base_offset.is_some() && position.field.is_some(), "{error:?}");
    assert!(position.byte.is_some_and(|byte| byte <= len as u64), "{error:?} in {len} bytes");
    assert!(!error.to_string().is_empty());
}

/// Walks damaged bytes. `whole` are the original batches, `damage` is the first byte that differs.
fn walk(bytes: &[u8], whole: &[Batch<'_>], damage: usize, scratch: &mut Scratch) {
    for (index, batch) in kbat::batches(bytes).enumerate() {
        let original = whole.get(index);
        let intact = original.is_some_and(|batch| batch.position() as usize + batch.size() <= damage);
        match batch {
            Ok(batch) if original.is_some_and(|original| original.bytes() == batch.bytes()) => {}
            Ok(batch) => {
                assert!(!intact, "batch {index} ends before byte {damage}");
                if let Err(error) = decode(&batch, scratch) {
                    assert_placed(&error, bytes.len());
                }
            }
            Err(error) => {
                assert!(!intact, "batch {index} ends before byte {damage}: {error}");
                assert_placed(&error, bytes.len());
            }
        }
    }
}

fn whole_batches(bytes: &[u8]) -> Vec<Batch<'_>> {
    let mut scratch = Scratch::new();
    let batches: Vec<_> = kbat::batches(bytes).map(Result::unwrap).collect();
    for batch in &batches {
        decode(batch, &mut scratch).unwrap();
    }
    batches
}

#[test]
fn corruption_files_are_of_every_magic_and_codec() {
    let mut kinds = BTreeSet::new();
    for name in FILES {
        let bytes = file(name);
        assert!(bytes.len() <= 4_096, "{name}");
        kinds.extend(whole_batches(&bytes).iter().map(|batch| (batch.magic(), batch.compression().unwrap().id())));
    }
    assert_eq!(kinds.len(), 4 + 4 + 5, "{kinds:?}");
}

/// Edge case 3.
#[test]
fn corruption_by_every_truncation_leaves_the_batches_before() {
    let mut scratch = Scratch::new();
    for name in FILES {
        let bytes = file(name);
        let whole = whole_batches(&bytes);
        for len in 0..bytes.len() {
            walk(&bytes[..len], &whole, len, &mut scratch);
            let before = whole.iter().take_while(|batch| batch.position() as usize + batch.size() <= len).count();
            assert_eq!(kbat::batches(&bytes[..len]).count(), before, "{name} truncated to {len}");
        }
    }
}

/// A batch with a truncated compressed stream in a valid frame.
#[test]
fn corruption_by_every_cut_inside_a_batch_is_an_error() {
    let mut scratch = Scratch::new();
    for name in FILES {
        let bytes = file(name);
        for batch in whole_batches(&bytes) {
            let header_len = if batch.magic() == 2 { 61 } else { 26 };
            for len in header_len..batch.size() {
                let mut cut = batch.bytes()[..len].to_vec();
                cut[8..12].copy_from_slice(&(len as i32 - 12).to_be_bytes());
                let cut = kbat::batches(&cut).next().unwrap().unwrap();
                assert!(cut.verify_crc().is_err(), "{name} {len}");
                assert_placed(&decode(&cut, &mut scratch).unwrap_err(), len);
            }
        }
    }
}

/// Edge case 20, for every batch: the checksum detects each flipped bit.
#[test]
fn corruption_by_every_flipped_bit_is_seen_or_outside_the_checksum() {
    let mut scratch = Scratch::new();
    for name in FILES {
        let mut bytes = file(name);
        let original = bytes.clone();
        let whole = whole_batches(&original);
        for byte in 0..bytes.len() {
            let batch = whole.iter().rev().find(|batch| batch.position() as usize <= byte).unwrap();
            let (position, end) = (batch.position() as usize, batch.position() as usize + batch.size());
            let covered = if batch.magic() == 2 { 17 } else { 12 };
            for bit in 0..8 {
                bytes[byte] ^= 1 << bit;
                walk(&bytes, &whole, byte, &mut scratch);
                if byte - position >= covered && byte != position + 16 {
                    let damaged = kbat::batches(&bytes[position..end]).next().unwrap().unwrap();
                    assert!(damaged.verify_crc().is_err(), "{name} byte {byte} bit {bit}");
                }
                bytes[byte] ^= 1 << bit;
            }
        }
    }
    assert!(scratch.capacity() <= 1 << 20);
}
