//! Conversion between message formats: down-converted answers of real brokers, Kafka's own tests, and losses.

use kbat::broker::convert::{ConvertOptions, Loss, convert, convert_batch};
use kbat::{Batch, BatchBuilder, Compression, ControlRecord, ErrorKind, Limits, Scratch, TimestampType};

use crate::data::{Owned, all_records, data_dir, file, files, first, records};
use crate::raw::{fix_crc, varint};

const FETCH: ConvertOptions = ConvertOptions { compression: None, level: None, first_offset: Some(0) };

fn fetch_from(offset: i64) -> ConvertOptions {
    ConvertOptions { first_offset: Some(offset), ..FETCH }
}

fn to(bytes: &[u8], magic: u8, options: &ConvertOptions) -> (Vec<u8>, Vec<Loss>) {
    let mut out = Vec::new();
    let losses = convert(bytes, magic, options, &Limits::default(), &mut out).unwrap();
    (out, losses.iter().collect())
}

fn plain(bytes: &[u8], magic: u8) -> (Vec<u8>, Vec<Loss>) {
    to(bytes, magic, &ConvertOptions::default())
}

fn offsets(bytes: &[u8]) -> Vec<i64> {
    all_records(bytes).unwrap().iter().map(|record| record.offset).collect()
}

fn magics(bytes: &[u8]) -> Vec<u8> {
    kbat::batches(bytes).map(|batch| batch.unwrap().magic()).collect()
}

/// Batches of a broker's answer, without the filler at its end.
fn whole(answer: &[u8]) -> Vec<Batch<'_>> {
    kbat::batches(answer).map_while(Result::ok).filter(|batch| batch.base_offset() != Some(-1)).collect()
}

/// A broker's answer: the stored log, converted batch by batch until the answer is full or a batch can't be converted.
fn check_answer(case: &str, source: &str, magic: u8, fetch_offset: i64) {
    let answer = file(&format!("corpus-legacy/{case}/00000000000000000000.log"));
    let log = file(&format!("corpus-legacy/{source}/00000000000000000000.log"));
    let (mut out, mut scratch) = (Vec::new(), Scratch::new());
    for batch in kbat::batches(&log).map(Result::unwrap).filter(|batch| batch.last_offset() >= fetch_offset) {
        let options = fetch_from(fetch_offset);
        if convert_batch(&batch, magic, &options, &mut scratch, &Limits::default(), &mut out).is_err() {
            break;
        }
    }
    let mut ours = kbat::batches(&out).map(Result::unwrap);
    let theirs = whole(&answer);
    assert!(!theirs.is_empty(), "{case}");
    for batch in theirs {
        let mine = ours.next().unwrap_or_else(|| panic!("{case}: too few batches"));
        assert_eq!((mine.magic(), mine.last_offset()), (batch.magic(), batch.last_offset()), "{case}");
        assert_eq!(records(&mine).unwrap(), records(&batch).unwrap(), "{case}");
        assert_eq!(mine.max_timestamp(), batch.max_timestamp(), "{case}");
        if !batch.attributes().is_compressed() {
            assert_eq!(mine.bytes(), batch.bytes(), "{case}");
        }
    }
}

#[test]
fn brokers_down_converted_answers_are_equal() {
    let mut checked = 0;
    for path in files(&data_dir().join("corpus-legacy"), &["log"]) {
        let case = path.parent().unwrap().file_name().unwrap().to_str().unwrap();
        let Some((magic, source)) = case.strip_prefix("fetched-v").and_then(|rest| rest.split_once('-')) else {
            continue;
        };
        let (source, fetch_offset) = match source {
            "upgrade-chain" => ("upgrade-chain-352", 0),
            "upgrade-chain-from37" => ("upgrade-chain-352", 37),
            source => (source, 0),
        };
        check_answer(case, source, magic.parse().unwrap(), fetch_offset);
        checked += 1;
    }
    assert_eq!(checked, 14);
}

/// Kafka's `FileRecordsTest`: v0 at 0, 2, 3; v1 at 9, 11, 15; v2 at 16, 17, 22, 24.
fn mixed(compression: Compression) -> Vec<u8> {
    let mut out = Vec::new();
    for (magic, offsets) in [(0, &[0, 2, 3][..]), (1, &[9, 11, 15]), (2, &[16, 17, 22, 24])] {
        let mut builder = BatchBuilder::new().magic(magic).compression(compression).base_offset(offsets[0]);
        for &offset in offsets {
            let key = format!("k{offset}");
            let headers: &[kbat::format::NewHeader<'_>] =
                if offset == 17 || offset == 24 { &[(b"headerKey", Some(b"headerValue"))] } else { &[] };
            builder.append_at(offset, offset + 1, Some(key.as_bytes()), Some(b"value"), headers).unwrap();
        }
        builder.finish_into(&mut out).unwrap();
    }
    out
}

/// format.md test 60.
#[test]
fn fetch_of_mixed_formats_keeps_offsets_and_drops_only_converted_uncompressed_records() {
    let all = [0, 2, 3, 9, 11, 15, 16, 17, 22, 24];
    for compression in [Compression::None, Compression::Gzip] {
        let bytes = mixed(compression);
        for magic in 0..=2 {
            let (converted, _) = to(&bytes, magic, &FETCH);
            assert_eq!(offsets(&converted), all);
            assert!(magics(&converted).iter().all(|&found| found <= magic));
            let headers = all_records(&converted).unwrap().iter().filter(|record| !record.headers.is_empty()).count();
            assert_eq!(headers, if magic == 2 { 2 } else { 0 });
        }
        assert_eq!(to(&bytes, 2, &FETCH).0, bytes);
        for (magic, first_offset, dropped) in [(0, 11, 9), (1, 17, 16)] {
            let (converted, _) = to(&bytes, magic, &fetch_from(first_offset));
            let drops = compression == Compression::None;
            let expected: Vec<i64> = all.into_iter().filter(|&offset| !drops || offset != dropped).collect();
            assert_eq!(offsets(&converted), expected, "magic {magic}, {compression}");
        }
    }
}

/// format.md test 61.
#[test]
fn fetch_of_transactions_gives_data_without_markers() {
    let mut bytes = Vec::new();
    let mut builder = BatchBuilder::new().log_append_time(12);
    builder.append(3, Some(b"a"), Some(b"1")).unwrap();
    builder.finish_into(&mut bytes).unwrap();
    let abort = ControlRecord::Abort { coordinator_epoch: 0 };
    bytes.extend(kbat::format::end_transaction_marker(1, 13, -1, 5, 6, &abort).unwrap());
    let mut builder = BatchBuilder::new().base_offset(2).producer(5, 6, 7).transactional(true);
    builder.append(14, Some(b"b"), None).unwrap();
    builder.append(15, None, Some(b"3")).unwrap();
    builder.finish_into(&mut bytes).unwrap();
    let commit = ControlRecord::Commit { coordinator_epoch: 0 };
    bytes.extend(kbat::format::end_transaction_marker(4, 16, -1, 5, 6, &commit).unwrap());

    let (converted, losses) = to(&bytes, 1, &FETCH);
    let types: Vec<_> = kbat::batches(&converted).map(|batch| batch.unwrap().timestamp_type().unwrap()).collect();
    assert_eq!(types, [TimestampType::LogAppendTime, TimestampType::CreateTime, TimestampType::CreateTime]);
    let found: Vec<_> =
        all_records(&converted).unwrap().iter().map(|record| (record.offset, record.timestamp)).collect();
    assert_eq!(found, [(0, 12), (2, 14), (3, 15)]);
    assert_eq!(losses, [Loss::Producer, Loss::Transactional, Loss::ControlBatches]);
    // format.md test 63: only a marker
    let marker = kbat::format::end_transaction_marker(4, 16, -1, 5, 6, &commit).unwrap();
    assert_eq!(to(&marker, 0, &FETCH), (Vec::new(), vec![Loss::ControlBatches]));
}

/// format.md test 62.
#[test]
fn fetch_of_v0_and_v2_as_v1_copies_and_converts() {
    let mut bytes = Vec::new();
    for (magic, base_offset) in [(0, 1), (2, 2)] {
        let mut builder = BatchBuilder::new().magic(magic).base_offset(base_offset);
        for record in 0..=i64::from(magic) / 2 {
            builder.append(record, None, Some(b"value")).unwrap();
        }
        builder.finish_into(&mut bytes).unwrap();
    }
    let (converted, _) = to(&bytes, 1, &fetch_from(3));
    assert_eq!((offsets(&converted), magics(&converted)), (vec![1, 3], vec![0, 1]));
}

/// format.md tests 58 and 59.
#[test]
fn fetch_of_a_partial_batch_or_nothing_gives_nothing() {
    let bytes = mixed(Compression::None);
    let v2 = &bytes[kbat::batches(&bytes).last().unwrap().unwrap().position() as usize..];
    assert!(to(&v2[..v2.len() - 1], 0, &FETCH).0.is_empty());
    assert_eq!(to(&[], 0, &FETCH), (Vec::new(), Vec::new()));
}

#[test]
fn zstd_below_v2_is_refused_unless_another_codec_is_asked_for() {
    let mut bytes = Vec::new();
    let mut builder = BatchBuilder::new().compression(Compression::Zstd).base_offset(9);
    builder.append(1, None, Some(b"value")).unwrap();
    builder.finish_into(&mut bytes).unwrap();
    for options in [FETCH, ConvertOptions::default()] {
        let mut out = vec![7];
        let error = convert(&bytes, 1, &options, &Limits::default(), &mut out).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::CompressionBelowMagic { magic: 1, .. }), "{error}");
        assert_eq!((error.position().byte, error.position().base_offset, out), (Some(21), Some(9), vec![7]));
    }
    let options = ConvertOptions { compression: Some(Compression::Gzip), level: Some(9), first_offset: None };
    let (converted, losses) = to(&bytes, 1, &options);
    assert_eq!((offsets(&converted), losses), (vec![9], Vec::new()));
    assert_eq!(first(&converted).compression().unwrap(), Compression::Gzip);
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let gzip = Some(Compression::Gzip);
    for (magic, options, expected) in [
        (2, ConvertOptions { level: Some(3), ..ConvertOptions::default() }, "a compression level needs a codec"),
        (2, ConvertOptions { compression: gzip, first_offset: Some(0), level: None }, "keeps the codecs"),
        (2, ConvertOptions { compression: gzip, level: Some(10), first_offset: None }, "levels 1 to 9"),
        (1, ConvertOptions { compression: Some(Compression::Zstd), ..ConvertOptions::default() }, "zstd"),
        (3, ConvertOptions::default(), "magic 3"),
    ] {
        let error = convert(&[], magic, &options, &Limits::default(), &mut Vec::new()).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}

/// The properties of a source's records that conversion to a magic must keep.
fn expected(record: &Owned, magic: u8) -> Owned {
    let legacy = magic < 2;
    Owned {
        timestamp: if magic == 0 { -1 } else { record.timestamp },
        timestamp_type: (magic > 0).then(|| record.timestamp_type.unwrap_or(TimestampType::CreateTime)),
        headers: if legacy { Vec::new() } else { record.headers.clone() },
        sequence: if legacy { -1 } else { record.sequence },
        ..record.clone()
    }
}

/// edge-cases 63: every log of the corpora to every format.
#[test]
fn corpora_converted_to_every_format_have_the_same_records() {
    let mut checked = 0;
    for path in files(&data_dir(), &["log"]).iter().filter(|path| !path.to_string_lossy().contains("fetched-")) {
        let bytes = std::fs::read(path).unwrap();
        for magic in 0..=2 {
            let (mut out, mut scratch) = (Vec::new(), Scratch::new());
            for batch in kbat::batches(&bytes).map_while(Result::ok) {
                let Ok(before) = records(&batch) else { continue };
                // old clients sent all offsets as 0 or −1
                let rises = before.windows(2).all(|pair| pair[0].offset < pair[1].offset)
                    && before.iter().all(|record| record.offset >= 0);
                if batch.verify_crc().is_err() || !rises || before.iter().any(|record| record.timestamp < -1) {
                    continue;
                }
                let zstd = batch.compression().unwrap() == Compression::Zstd;
                let compression = (zstd && magic < 2).then_some(Compression::Lz4);
                let options = ConvertOptions { compression, ..ConvertOptions::default() };
                out.clear();
                convert_batch(&batch, magic, &options, &mut scratch, &Limits::default(), &mut out)
                    .unwrap_or_else(|error| panic!("{} to {magic}: {error}", path.display()));
                let dropped = magic < 2 && batch.is_control();
                let before: Vec<Owned> = before.iter().filter(|_| !dropped).map(|r| expected(r, magic)).collect();
                assert_eq!(all_records(&out).unwrap(), before, "{} to {magic}", path.display());
                assert!(magics(&out).iter().all(|&found| found == magic));
                kbat::batches(&out).for_each(|batch| batch.unwrap().verify_crc().unwrap());
                checked += 1;
            }
        }
    }
    assert!(checked > 10_000, "{checked}");
}

/// A v2 batch with all properties that older formats lack.
fn rich() -> Vec<u8> {
    let mut builder = BatchBuilder::new()
        .base_offset(100)
        .producer(5, 6, 7)
        .transactional(true)
        .partition_leader_epoch(3)
        .delete_horizon_ms(50)
        .last_offset(120);
    builder.append_at(103, 40, Some(b"k"), None, &[(b"h", None)]).unwrap();
    builder.append_at(110, 60, None, Some(b"v"), &[]).unwrap();
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    bytes
}

#[test]
fn losses_are_named() {
    use Loss::{DeleteHorizon, Headers, OffsetRange, PartitionLeaderEpoch, Producer, Timestamps, Transactional};
    let v2 = [Headers, Producer, PartitionLeaderEpoch, Transactional, DeleteHorizon, OffsetRange];
    assert_eq!(plain(&rich(), 2), (rich(), Vec::new()));
    assert_eq!(plain(&rich(), 1).1, v2);
    let mut v0 = v2.to_vec();
    v0.insert(5, Timestamps);
    assert_eq!(plain(&rich(), 0).1, v0);
    let appended = {
        let mut bytes = Vec::new();
        let mut builder = BatchBuilder::new().magic(1).log_append_time(9);
        builder.append(1, None, Some(b"v")).unwrap();
        builder.finish_into(&mut bytes).unwrap();
        bytes
    };
    assert_eq!(plain(&appended, 0).1, [Timestamps, Loss::TimestampType]);
    assert_eq!(plain(&appended, 2).1, []);
    assert_eq!(plain(&plain(&appended, 0).0, 2).1, []);
    let names: Vec<&str> = Loss::ALL.map(Loss::name).to_vec();
    assert_eq!(names.len(), names.iter().collect::<std::collections::HashSet<_>>().len());
}

#[test]
fn a_batch_without_records_disappears_below_v2() {
    let mut bytes = rich()[..61].to_vec();
    bytes[8..12].copy_from_slice(&49_i32.to_be_bytes());
    bytes[57..61].copy_from_slice(&0_i32.to_be_bytes());
    fix_crc(&mut bytes);
    assert!(plain(&bytes, 1).0.is_empty());
    assert!(plain(&bytes, 1).1.contains(&Loss::OffsetRange));
    let options = ConvertOptions { compression: Some(Compression::Gzip), ..ConvertOptions::default() };
    assert_eq!(to(&bytes, 2, &options).0, bytes);
}

#[test]
fn another_codec_keeps_everything_else_of_a_batch() {
    let options = ConvertOptions { compression: Some(Compression::Zstd), ..ConvertOptions::default() };
    let (compressed, losses) = to(&rich(), 2, &options);
    let header = *first(&compressed);
    assert_eq!((header.base_offset(), header.last_offset(), losses), (Some(100), 120, Vec::new()));
    assert_eq!((header.producer_id(), header.base_sequence(), header.partition_leader_epoch()), (5, 7, 3));
    assert_eq!((header.delete_horizon_ms(), header.max_timestamp()), (Some(50), 60));
    assert!(header.is_transactional());
    let back = ConvertOptions { compression: Some(Compression::None), ..ConvertOptions::default() };
    assert_eq!(to(&compressed, 2, &back).0, rich());
}

#[test]
fn damage_is_not_given_a_new_checksum() {
    let mut bytes = rich();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    let error = convert(&bytes, 1, &ConvertOptions::default(), &Limits::default(), &mut Vec::new()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Crc { .. }), "{error}");
    // a valid wrapper around a message with a wrong checksum
    let mut inner = Vec::new();
    let mut builder = BatchBuilder::new().magic(1);
    builder.append(1, None, Some(b"value")).unwrap();
    builder.finish_into(&mut inner).unwrap();
    inner[12] ^= 1;
    let wrapper = wrapper(&inner, 0);
    let error = convert(&wrapper, 2, &ConvertOptions::default(), &Limits::default(), &mut Vec::new()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Crc { .. }), "{error}");
    assert_eq!(error.position().record, Some(0));
}

/// A v1 message set of entries, compressed with snappy.
fn wrapper(entries: &[u8], offset: i64) -> Vec<u8> {
    let mut block = Vec::new();
    let mut length = entries.len();
    while length > 127 {
        block.push(length as u8 & 127 | 128);
        length >>= 7;
    }
    block.push(length as u8);
    for literal in entries.chunks(60) {
        block.push((literal.len() as u8 - 1) << 2);
        block.extend_from_slice(literal);
    }
    let mut out = Vec::new();
    let mut builder = BatchBuilder::new().magic(1).base_offset(offset);
    builder.append(1, None, Some(&block)).unwrap();
    builder.finish_into(&mut out).unwrap();
    out[17] |= 2;
    fix_crc(&mut out);
    out
}

#[test]
fn a_set_whose_offsets_span_more_than_a_delta_becomes_several_batches() {
    let mut entries = Vec::new();
    let inner = [0, 5, 1 << 31, (1 << 31) + 2, 1 << 33];
    for offset in inner {
        let mut builder = BatchBuilder::new().magic(1).base_offset(offset);
        builder.append(7, Some(b"k"), Some(b"value")).unwrap();
        builder.finish_into(&mut entries).unwrap();
    }
    let bytes = wrapper(&entries, 1000 + (1 << 33));
    assert_eq!(offsets(&bytes), inner.map(|offset| offset + 1000));
    let (converted, losses) = plain(&bytes, 2);
    assert_eq!((offsets(&converted), losses), (inner.map(|offset| offset + 1000).to_vec(), Vec::new()));
    let bases: Vec<_> = kbat::batches(&converted).map(|batch| batch.unwrap().base_offset().unwrap()).collect();
    assert_eq!(bases, [1000, 1000 + (1 << 31), 1000 + (1 << 33)]);
}

#[test]
fn offsets_that_do_not_rise_are_refused_with_their_place() {
    let record = |delta: i32| {
        let body = [&[0][..], &varint(0), &varint(delta), &varint(-1), &varint(-1), &varint(0)].concat();
        [varint(body.len() as i32), body].concat()
    };
    let bytes = crate::raw::V2::of(&[record(1), record(1)]).bytes();
    let mut out = Vec::new();
    let error = convert(&bytes, 1, &ConvertOptions::default(), &Limits::default(), &mut out).unwrap_err();
    assert!(error.to_string().contains("offsets must rise"), "{error}");
    assert_eq!((error.position().record, error.position().byte, out), (Some(1), Some(0), Vec::new()));
}

/// pykafka sends offset −1; as the last offset of a compressed v1 set, no client could read it.
#[test]
fn negative_offsets_are_refused_for_compressed_v1() {
    let sent = file("corpus-legacy/k0822-pykafka-snappy-wire/00000000000000000000.log");
    let negative = kbat::batches(&sent)
        .map(Result::unwrap)
        .find(|batch| batch.attributes().is_compressed() && records(batch).is_ok_and(|records| records[0].offset < 0));
    let negative = negative.expect("a set with offset -1").bytes();
    let error = convert(negative, 1, &ConvertOptions::default(), &Limits::default(), &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("negative offset -1"), "{error}");
}
