//! Properties that hold for any bytes, one function each. `fuzz/` and the tests call them. They panic if the property
//! does not hold.

#![expect(clippy::panic, reason = "a property that does not hold is reported by a panic")]

use crate::broker::convert::{ConvertOptions, convert_batch};
use crate::broker::retain::{BatchRetention, RetainOptions, retain_records};
use crate::broker::validate::{Validation, ValidationSettings};
use crate::compression::{Compression, Scratch};
use crate::error::Result;
use crate::format::attributes::TimestampType;
use crate::format::batch::Batch;
use crate::format::builder::{BatchBuilder, put};
use crate::format::control::ControlRecord;
use crate::format::frame::{Batches, batches};
use crate::format::header::{CRC_POSITION, CRC_START, LEGACY_CRC_POSITION, LEGACY_CRC_START};
use crate::format::record::Record;
use crate::limits::Limits;
use crate::wire::crc;

/// Limits that keep a fuzzing run fast.
fn limits() -> Limits {
    Limits { decompressed_len: 1 << 20, ratio_free_len: 1 << 20, ..Limits::default() }
}

/// Batches follow each other within the bytes, memory stays within the limits, and every error has a position.
pub fn read(bytes: &[u8]) {
    let (mut scratch, limits) = (Scratch::new(), limits());
    let mut walk: Batches<'_> = batches(bytes);
    loop {
        let before = walk.position();
        match walk.next() {
            None => break,
            Some(Ok(batch)) => {
                assert_eq!(batch.position(), before, "a batch begins where the last one ended");
                let _ = batch.verify_crc();
                match batch.records(&mut scratch, &limits) {
                    Ok(records) => records.for_each(|record| read_record(record, bytes)),
                    Err(error) => assert!(error.position().byte.is_some(), "{error} has no position"),
                }
            }
            Some(Err(error)) => {
                assert!(error.position().byte.is_some(), "{error} has no position");
                if !walk.skip_batch() {
                    break;
                }
            }
        }
    }
    assert!(walk.remainder().len() <= bytes.len(), "the remainder is a part of the input");
    // snappy decompresses a copy of its input that is stored after the output
    let most = limits.decompressed_len.saturating_add(bytes.len()).saturating_add(256);
    assert!(scratch.capacity() <= most, "memory stays within the limits");
}

fn read_record(record: Result<Record<'_>>, bytes: &[u8]) {
    match record {
        Ok(record) => {
            let _ = (record.verify_crc(), record.headers().verify(), ControlRecord::parse(&record));
        }
        Err(error) => {
            let byte = error.position().byte.unwrap_or_else(|| panic!("{error} has no position"));
            assert!(byte <= crate::num::u64_of(bytes.len()), "{error} is past the end");
        }
    }
}

/// Records read from an uncompressed v2 batch and written again are equal when read back.
pub fn rewrite(bytes: &[u8]) {
    let (mut scratch, limits) = (Scratch::new(), limits());
    for batch in batches(bytes).map_while(Result::ok) {
        let plain = batch.magic() == 2 && batch.compression().is_ok_and(|codec| codec == Compression::None);
        if !plain || batch.is_control() || batch.timestamp_type() == Some(TimestampType::LogAppendTime) {
            continue;
        }
        let Some(base_offset) = batch.base_offset() else { continue };
        let Ok(records) = batch.records(&mut scratch, &limits) else { continue };
        let mut builder = BatchBuilder::new().base_offset(base_offset);
        let mut written = Vec::new();
        for record in records.map_while(Result::ok) {
            let Ok(headers) = record.headers().collect::<Result<Vec<_>>>() else { break };
            let headers: Vec<_> = headers.iter().map(|header| (header.key(), header.value())).collect();
            let (offset, timestamp) = (record.offset(), record.timestamp());
            if builder.append_at(offset, timestamp, record.key(), record.value(), &headers).is_ok() {
                written.push((offset, timestamp, record.key(), record.value()));
            }
        }
        let mut out = Vec::new();
        builder.finish_into(&mut out).unwrap_or_else(|error| panic!("{error}"));
        let mut again = Scratch::new();
        let read = batches(&out).flat_map(|batch| {
            let batch = batch.unwrap_or_else(|error| panic!("{error}"));
            batch.verify_crc().unwrap_or_else(|error| panic!("{error}"));
            let records = batch.records(&mut again, &limits).unwrap_or_else(|error| panic!("{error}"));
            let own = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
            records
                .map(|record| record.unwrap_or_else(|error| panic!("{error}")))
                .map(|record| (record.offset(), record.timestamp(), own(record.key()), own(record.value())))
                .collect::<Vec<_>>()
        });
        let expected = written.iter().map(|&(offset, timestamp, key, value)| {
            (offset, timestamp, key.map(<[u8]>::to_vec), value.map(<[u8]>::to_vec))
        });
        assert!(read.eq(expected), "the records read back are equal");
    }
}

/// Removing every second record of a batch, if the batch can be rewritten, keeps the others unchanged.
pub fn retain(bytes: &[u8]) {
    let (mut scratch, mut again, limits) = (Scratch::new(), Scratch::new(), limits());
    let own = |record: Record<'_>| {
        let own = |bytes: Option<&[u8]>| bytes.map(<[u8]>::to_vec);
        (record.offset(), record.timestamp(), own(record.key()), own(record.value()))
    };
    for batch in batches(bytes).map_while(Result::ok) {
        let mut count = 0_u32;
        let mut kept = Vec::new();
        let mut keep = |record: &Record<'_>| {
            count = count.wrapping_add(1);
            // the reader reports no timestamp for a v0 message in a v1 set; the rewritten message is v1 and has the
            // set's timestamp
            let append_time = batch.timestamp_type() == Some(TimestampType::LogAppendTime);
            kept.extend((count & 1 == 1).then(|| {
                let (offset, timestamp, key, value) = own(*record);
                (offset, if append_time { batch.max_timestamp() } else { timestamp }, key, value)
            }));
            Ok(count & 1 == 1)
        };
        let options = RetainOptions {
            retention: BatchRetention::RetainEmpty,
            delete_horizon_ms: Some(1_700_000_000_000),
            is_marker_of_empty_transaction: false,
            upgrade: true,
        };
        let mut out = Vec::new();
        if retain_records(&batch, &options, &mut keep, &mut scratch, &limits, &mut out).is_err() {
            assert!(out.is_empty(), "nothing is written on failure");
            continue;
        }
        if out == batch.bytes() {
            continue;
        }
        let mut read = Vec::new();
        for batch in batches(&out) {
            let batch = batch.unwrap_or_else(|error| panic!("{error}"));
            batch.verify_crc().unwrap_or_else(|error| panic!("{error}"));
            let records = batch.records(&mut again, &limits).unwrap_or_else(|error| panic!("{error}"));
            read.extend(records.map(|record| own(record.unwrap_or_else(|error| panic!("{error}")))));
        }
        assert_eq!(read, kept, "the kept records are unchanged");
    }
}

/// The bytes of a batch with a recomputed checksum.
fn sealed(batch: &Batch<'_>) -> Vec<u8> {
    let mut bytes = batch.bytes().to_vec();
    if batch.magic() == 2 {
        let crc = crc::crc32c(bytes.get(CRC_START..).unwrap_or_default());
        put(&mut bytes, CRC_POSITION, &crc.to_be_bytes());
    } else {
        let crc = crc::crc32(bytes.get(LEGACY_CRC_START..).unwrap_or_default());
        put(&mut bytes, LEGACY_CRC_POSITION, &crc.to_be_bytes());
    }
    bytes
}

/// Offset, key and value of a record.
type Essence = (i64, Option<Vec<u8>>, Option<Vec<u8>>);

/// The parts of each record that a conversion must keep, or `None` if some record cannot be read.
fn essence(bytes: &[u8]) -> Option<Vec<Essence>> {
    let (mut scratch, limits) = (Scratch::new(), limits());
    let mut all = Vec::new();
    for batch in batches(bytes) {
        for record in batch.ok()?.records(&mut scratch, &limits).ok()? {
            let record = record.ok()?;
            all.push((record.offset(), record.key().map(<[u8]>::to_vec), record.value().map(<[u8]>::to_vec)));
        }
    }
    Some(all)
}

/// A converted batch has the target format, valid checksums and the same records. A failed conversion writes nothing.
pub fn convert(bytes: &[u8]) {
    let (mut scratch, limits) = (Scratch::new(), limits());
    for batch in batches(bytes).map_while(Result::ok) {
        let sealed = sealed(&batch);
        for (magic, compression) in
            [(0, None), (1, None), (2, None), (1, Some(Compression::Gzip)), (2, Some(Compression::Lz4))]
        {
            let options = ConvertOptions { compression, ..ConvertOptions::default() };
            let mut out = Vec::new();
            let Some(Ok(batch)) = batches(&sealed).next() else { continue };
            if convert_batch(&batch, magic, &options, &mut scratch, &limits, &mut out).is_err() {
                assert!(out.is_empty(), "a failed conversion writes nothing");
                continue;
            }
            for converted in batches(&out) {
                let converted = converted.unwrap_or_else(|error| panic!("{error}"));
                assert_eq!(converted.magic(), magic, "the format is the target");
                converted.verify_crc().unwrap_or_else(|error| panic!("{error}"));
            }
            if magic == 2 || !batch.is_control() {
                assert_eq!(essence(&out), essence(&sealed), "a conversion keeps the records");
            }
        }
    }
}

/// An accepted batch has valid checksums, offsets from the end of the log, and an unchanged size if it was not rebuilt.
pub fn validate(bytes: &[u8]) {
    let settings = ValidationSettings { request_version: None, base_offset: 1000, ..ValidationSettings::default() };
    let rebuilding = ValidationSettings { compression: Some(Compression::Gzip), ..settings };
    for batch in batches(bytes).map_while(Result::ok) {
        let mut sealed = sealed(&batch);
        if batch.magic() == 2 {
            put(&mut sealed, 0, &[0; 8]);
        }
        for settings in [settings, rebuilding] {
            let Ok(Validation::Accepted(accepted)) = crate::broker::validate::validate(&sealed, &settings, &limits())
            else {
                continue;
            };
            assert!(accepted.is_rebuilt || accepted.bytes.len() == sealed.len(), "the size changes only by rebuilding");
            let mut next_offset = None;
            for stored in batches(&accepted.bytes) {
                let stored = stored.unwrap_or_else(|error| panic!("{error}"));
                stored.verify_crc().unwrap_or_else(|error| panic!("{error}"));
                next_offset = Some(stored.next_offset());
            }
            assert_eq!(next_offset, Some(accepted.next_offset), "the last batch ends before the next offset");
        }
    }
}
