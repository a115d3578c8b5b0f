//! The header of v2: edge cases 13 to 22.

use kbat::{Compression, ErrorKind, Limits, Scratch, TimestampType};

use crate::data::{first, records, records_within};
use crate::raw::{CONTROL, DELETE_HORIZON, LOG_APPEND_TIME, TRANSACTIONAL, V2, body, plain_records, with_len};

/// Edge case 13. The count never determines an allocation.
#[test]
fn header_record_count_that_is_wrong_is_refused() {
    for count in [-1, -5, i32::MIN] {
        let bytes = V2 { record_count: count, ..V2::of(&plain_records(3)) }.bytes();
        let error = records(&first(&bytes)).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidValue { value, .. } if *value == i64::from(count)), "{error}");
        assert_eq!((error.position().byte, error.position().field), (Some(57), Some("record_count")));
    }
    for count in [4, 1_000, i32::MAX] {
        let bytes = V2 { record_count: count, ..V2::of(&plain_records(3)) }.bytes();
        let (mut scratch, limits) = (Scratch::new(), Limits::default());
        let items: Vec<_> = first(&bytes).records(&mut scratch, &limits).unwrap().collect();
        assert_eq!(items.len(), 4, "three records and an error");
        let error = items[3].as_ref().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::MissingRecords { found: 3, .. }), "{error}");
    }
    for count in [1, 2] {
        let bytes = V2 { record_count: count, ..V2::of(&plain_records(3)) }.bytes();
        let error = records(&first(&bytes)).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::TrailingBytes { .. }), "{error}");
    }
}

/// Edge case 13: Kafka returns no records and no error.
#[test]
fn header_record_count_zero_hides_the_bytes_behind() {
    let bytes = V2 { record_count: 0, ..V2::of(&plain_records(3)) }.bytes();
    assert!(records(&first(&bytes)).unwrap().is_empty());
    let garbage = V2 { record_count: 0, ..V2::compressed(crate::raw::ZSTD, b"no frame") }.bytes();
    assert!(records(&first(&garbage)).unwrap().is_empty());
}

#[test]
fn header_record_count_above_the_limit_is_refused() {
    let bytes = V2::of(&plain_records(3)).bytes();
    let limits = |record_count| Limits { record_count, ..Limits::default() };
    assert_eq!(records_within(&first(&bytes), &limits(3)).unwrap().len(), 3);
    let error = records_within(&first(&bytes), &limits(2)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit { name: "record_count", limit: 2, actual: 3 }), "{error}");
}

/// Edge case 14. franz-go moved its offset past such a batch.
#[test]
fn header_record_count_without_bytes_is_refused() {
    for count in [1, 5, i32::MAX] {
        let bytes = V2 { record_count: count, records: Vec::new(), ..V2::default() }.bytes();
        first(&bytes).verify_crc().unwrap();
        let error = records(&first(&bytes)).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::MissingRecords { found: 0, .. }), "{error}");
        assert_eq!(error.position().byte, Some(61));
    }
}

/// Edge case 15.
#[test]
fn header_of_an_emptied_batch_gives_the_next_offset() {
    let bytes = V2 { base_offset: 100, last_offset_delta: 5, record_count: 0, ..V2::default() }.bytes();
    assert_eq!((first(&bytes).last_offset(), first(&bytes).next_offset()), (105, 106));
    assert!(records(&first(&bytes)).unwrap().is_empty());
}

/// Edge case 16. Not checked when reading, as in Kafka: offsets come from the records.
#[test]
fn header_last_offset_delta_that_does_not_match_is_read() {
    for delta in [1, 0, -1, i32::MIN, i32::MAX] {
        let bytes = V2 { base_offset: 10, last_offset_delta: delta, ..V2::of(&plain_records(3)) }.bytes();
        assert_eq!(first(&bytes).last_offset(), 10 + i64::from(delta));
        let offsets: Vec<_> = records(&first(&bytes)).unwrap().iter().map(|record| record.offset).collect();
        assert_eq!(offsets, [10, 11, 12]);
    }
}

/// Edge case 17. Sums wrap as Java's do.
#[test]
fn header_base_offset_at_the_extremes_wraps() {
    for base_offset in [-1, i64::MIN, i64::MAX] {
        let bytes = V2 { base_offset, ..V2::of(&plain_records(3)) }.bytes();
        let batch = first(&bytes);
        assert_eq!(batch.last_offset(), base_offset.wrapping_add(2));
        assert_eq!(batch.next_offset(), base_offset.wrapping_add(3));
        assert_eq!(records(&batch).unwrap()[2].offset, base_offset.wrapping_add(2));
    }
}

/// Edge case 18.
#[test]
fn header_attribute_bits_alone_mean_what_they_should() {
    for bit in 0..16_u16 {
        let bits = 1 << bit;
        let bytes = V2 { attributes: bits, ..V2::of(&plain_records(1)) }.bytes();
        let batch = first(&bytes);
        assert_eq!(batch.attributes().bits(), bits);
        assert_eq!(batch.is_transactional(), bits == TRANSACTIONAL);
        assert_eq!(batch.is_control(), bits == CONTROL);
        assert_eq!(batch.delete_horizon_ms().is_some(), bits == DELETE_HORIZON);
        let log_append = batch.timestamp_type() == Some(TimestampType::LogAppendTime);
        assert_eq!(log_append, bits == LOG_APPEND_TIME);
        let codec = batch.compression().unwrap();
        let expected = [Compression::Gzip, Compression::Snappy, Compression::Zstd].get(usize::from(bit)).copied();
        assert_eq!(codec, expected.unwrap_or(Compression::None));
        assert_eq!(records(&batch).is_ok(), codec == Compression::None);
    }
}

/// Edge case 18.
#[test]
fn header_codec_that_does_not_exist_is_named_by_number() {
    for id in [5_u8, 6, 7] {
        let bytes = V2 { attributes: id.into(), ..V2::of(&plain_records(1)) }.bytes();
        let batch = first(&bytes);
        for error in [batch.compression().unwrap_err(), records(&batch).unwrap_err()] {
            assert!(matches!(error.kind(), ErrorKind::UnsupportedCodec { id: found } if *found == id), "{error}");
            assert!(error.to_string().contains(&format!("codec {id}")), "{error}");
            assert_eq!(error.position().byte, Some(21));
        }
    }
}

/// Edge case 19 (KAFKA-8522).
#[test]
fn header_delete_horizon_is_still_what_timestamps_count_from() {
    let deltas = [-50_i64, 0, 50];
    let all: Vec<_> = (0..3).map(|index| with_len(&body(deltas[index as usize], index, None, None))).collect();
    let batch = V2 { attributes: DELETE_HORIZON, base_timestamp: 100, max_timestamp: 150, ..V2::of(&all) };
    let bytes = batch.bytes();
    assert_eq!(first(&bytes).delete_horizon_ms(), Some(100));
    let timestamps: Vec<_> = records(&first(&bytes)).unwrap().iter().map(|record| record.timestamp).collect();
    assert_eq!(timestamps, [50, 100, 150]);
}

/// Edge case 20.
#[test]
fn header_bit_flips_are_seen_by_the_checksum_where_it_covers() {
    let good = V2::of(&plain_records(2)).bytes();
    for byte in (0..8).chain(12..16).chain(17..good.len()) {
        for bit in 0..8 {
            let mut bytes = good.clone();
            bytes[byte] ^= 1 << bit;
            let outside = byte < 16;
            assert_eq!(first(&bytes).verify_crc().is_ok(), outside, "byte {byte} bit {bit}");
        }
    }
}

/// Edge case 21. The caller decides about a wrong checksum: records and the next batch can still be read.
#[test]
fn header_checksum_failure_does_not_stop_the_walk() {
    let mut bad = V2::of(&plain_records(2)).bytes();
    let last = bad.len() - 2;
    bad[last] ^= 1;
    let bytes = [bad, V2 { base_offset: 2, ..V2::of(&plain_records(2)) }.bytes()].concat();
    let batches: Vec<_> = kbat::batches(&bytes).map(Result::unwrap).collect();
    let error = batches[0].verify_crc().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Crc { stored, computed } if stored != computed), "{error}");
    assert_ne!(batches[0].crc(), batches[0].computed_crc());
    assert_eq!(records(&batches[0]).unwrap().len(), 2);
    batches[1].verify_crc().unwrap();
    assert_eq!(records(&batches[1]).unwrap()[0].offset, 2);
}

/// Edge case 22 (KAFKA-7692); building one is `batch_sequence_at_its_end_wraps_to_zero`.
#[test]
fn header_base_sequence_wraps_to_zero_and_none_stays_none() {
    let bytes = V2 { base_sequence: i32::MAX, producer_id: 1, producer_epoch: 0, ..V2::of(&plain_records(2)) }.bytes();
    let sequences: Vec<_> = records(&first(&bytes)).unwrap().iter().map(|record| record.sequence).collect();
    assert_eq!((sequences, first(&bytes).last_sequence()), (vec![i32::MAX, 0], 0));
    let bytes = V2::of(&plain_records(2)).bytes();
    assert!(records(&first(&bytes)).unwrap().iter().all(|record| record.sequence == -1));
    assert_eq!(first(&bytes).last_sequence(), -1);
}

/// Edge case 75: an edit rejects values that the format can't represent, and bytes that are not a batch.
#[test]
fn header_edits_of_what_can_not_have_them_are_refused() {
    let mut v0 = crate::raw::message(0, 5, 0, None, Some(b"v"));
    let before = v0.clone();
    assert!(kbat::format::set_partition_leader_epoch(&mut v0, 1).is_err());
    assert!(kbat::format::set_log_append_time(&mut v0, 1).is_err());
    assert_eq!(v0, before);
    kbat::format::set_base_offset(&mut v0, 77).unwrap();
    first(&v0).verify_crc().unwrap();
    assert_eq!(first(&v0).base_offset(), Some(77));

    let mut v0_set = crate::raw::wrapper(0, 5, &[before]);
    assert!(kbat::format::set_base_offset(&mut v0_set, 1).is_err());
    assert!(kbat::format::set_base_offset(&mut [0; 40], 1).is_err());
    assert!(kbat::format::set_base_offset(&mut [], 1).is_err());
}

#[test]
fn header_edits_of_the_append_time_keep_unknown_attributes_and_take_no_negative_time() {
    let mut batch = crate::raw::V2 { attributes: 0x80, ..crate::raw::V2::of(&[crate::raw::record(0)]) }.bytes();
    let before = batch.clone();
    assert!(kbat::format::set_log_append_time(&mut batch, -1).is_err());
    assert_eq!(batch, before);
    kbat::format::set_log_append_time(&mut batch, 5).unwrap();
    assert_eq!(first(&batch).attributes().bits(), 0x88);
    first(&batch).verify_crc().unwrap();
}
