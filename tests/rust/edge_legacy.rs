//! Messages and compressed sets of v0 and v1: edge cases 51, 52 and 55 to 62, and Kafka's
//! `AbstractLegacyRecordBatchTest`.

use kbat::{BatchBuilder, Compression, ErrorKind, Limits, Scratch, TimestampType};

use crate::data::{Owned, first, records};
use crate::raw::{
    GZIP, LZ4, SNAPPY, V2, ZSTD, fix_crc, gzip, message, message_at, message_of, record, snappy, wrapper,
};

const LOG_APPEND_TIME: u8 = 0x08;

fn offsets(bytes: &[u8]) -> kbat::Result<Vec<i64>> {
    records(&first(bytes)).map(|records| records.iter().map(|record| record.offset).collect())
}

/// Inner messages with these offsets.
fn inner(magic: u8, offsets: &[i64]) -> Vec<Vec<u8>> {
    offsets.iter().map(|&offset| message(magic, offset, 0, Some(b"k"), Some(b"v"))).collect()
}

fn wrapper_error(bytes: &[u8]) -> kbat::Error {
    records(&first(bytes)).unwrap_err()
}

/// Edge case 55.
#[test]
fn message_with_null_and_empty_fields_keeps_the_difference() {
    for magic in [0, 1] {
        for key in [None, Some(&b""[..]), Some(b"key")] {
            for value in [None, Some(&b""[..]), Some(b"value")] {
                let bytes = message(magic, 7, 0, key, value);
                first(&bytes).verify_crc().unwrap();
                let expected = Owned {
                    offset: 7,
                    timestamp: if magic == 0 { -1 } else { 1_000 },
                    timestamp_type: (magic == 1).then_some(TimestampType::CreateTime),
                    key: key.map(<[u8]>::to_vec),
                    value: value.map(<[u8]>::to_vec),
                    headers: Vec::new(),
                    sequence: -1,
                };
                assert_eq!(records(&first(&bytes)).unwrap(), std::slice::from_ref(&expected));
                let in_a_set = wrapper(magic, 7, &[message(magic, 7, 0, key, value)]);
                assert_eq!(records(&first(&in_a_set)).unwrap(), [expected]);
            }
        }
    }
}

/// Edge case 55. No timestamp is −1 in both formats.
#[test]
fn message_without_a_timestamp_has_minus_one() {
    let bytes = message_at(1, 0, 0, -1, None, Some(b"v"));
    assert_eq!((first(&bytes).max_timestamp(), records(&first(&bytes)).unwrap()[0].timestamp), (-1, -1));
    assert_eq!(first(&message(0, 0, 0, None, None)).timestamp_type(), None);
}

/// Edge case 56. After `testIterateCompressedRecordWithWrapperOffsetZero`.
#[test]
fn wrapper_offsets_follow_the_magic() {
    let of = |magic, wrapper_offset, inner_offsets: &[i64]| {
        offsets(&wrapper(magic, wrapper_offset, &inner(magic, inner_offsets)))
    };
    assert_eq!(of(0, 12, &[10, 11, 12]).unwrap(), [10, 11, 12], "v0 is absolute");
    assert_eq!(of(1, 12, &[0, 1, 2]).unwrap(), [10, 11, 12], "v1 counts back from the wrapper");
    for magic in [0, 1] {
        assert_eq!(of(magic, 0, &[0, 1, 2]).unwrap(), [0, 1, 2], "an old client wrote no offset");
    }
    assert_eq!(of(0, 9, &[0, 1, 2]).unwrap(), [0, 1, 2]);
    assert_eq!(of(1, 342, &[0, 4, 5]).unwrap(), [337, 341, 342], "the cleaner leaves gaps");
    assert_eq!(of(1, 2, &[0, 1, 2]).unwrap(), [0, 1, 2]);
    assert_eq!(of(1, 5, &[2, 1, 0]).unwrap(), [7, 6, 5], "the last one counts, whatever it is");
}

/// Edge case 56. After `testInvalidWrapperOffsetV1`.
#[test]
fn wrapper_offset_below_its_last_message_is_refused() {
    for wrapper_offset in [1, -1, -5, i64::MIN] {
        let error = wrapper_error(&wrapper(1, wrapper_offset, &inner(1, &[0, 1, 2])));
        assert!(matches!(error.kind(), ErrorKind::InvalidWrapper(_)), "{error}");
        assert_eq!(error.position().field, Some("offset"));
    }
    // pykafka's form: everything −1
    assert_eq!(offsets(&wrapper(1, -1, &inner(1, &[-1, -1]))).unwrap(), [-1, -1]);
}

/// Edge case 57. After `testCompressedIterationWithNullValue` and `…EmptyRecords`.
#[test]
fn wrapper_without_messages_is_refused() {
    for magic in [0, 1] {
        let null = message(magic, 0, GZIP as u8, None, None);
        let empty = wrapper(magic, 0, &[]);
        let cut = wrapper(magic, 0, &[message(magic, 0, 0, None, None)[..20].to_vec()]);
        for bytes in [null, empty, cut] {
            assert!(matches!(wrapper_error(&bytes).kind(), ErrorKind::InvalidWrapper(_)));
            let (mut scratch, limits) = (Scratch::new(), Limits::default());
            assert!(first(&bytes).first_offset(&mut scratch, &limits).is_err());
        }
    }
}

/// Edge case 51: no message at all, in each codec.
#[test]
fn wrapper_of_an_empty_stream_is_refused_in_every_codec() {
    let lz4 = [0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82, 0, 0, 0, 0];
    for (codec, stream) in [(GZIP, gzip(b"")), (SNAPPY, snappy(b"")), (LZ4, lz4.to_vec())] {
        let bytes = message(1, 0, codec as u8, None, Some(&stream));
        assert!(matches!(wrapper_error(&bytes).kind(), ErrorKind::InvalidWrapper(_)), "codec {codec}");
    }
}

/// Edge case 57. Kafka 0.8.2.2 wrote and read them, later releases do not.
#[test]
fn wrapper_inside_a_wrapper_is_refused() {
    for magic in [0, 1] {
        let nested = [message(magic, 0, 0, None, Some(b"v")), wrapper(magic, 1, &inner(magic, &[0, 1]))];
        let bytes = wrapper(magic, 1, &nested);
        let (mut scratch, limits) = (Scratch::new(), Limits::default());
        let items: Vec<_> = first(&bytes).records(&mut scratch, &limits).unwrap().collect();
        assert!(items[0].is_ok());
        let error = items[1].as_ref().unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidWrapper(_)), "{error}");
        assert_eq!(error.position().record, Some(1));
    }
}

/// Edge case 57. Tolerated on read, as in Kafka: offsets follow the wrapper, timestamps the message.
#[test]
fn wrapper_of_messages_of_another_magic_is_read() {
    let bytes = wrapper(1, 5, &inner(0, &[0, 1]));
    let found = records(&first(&bytes)).unwrap();
    assert_eq!(found.iter().map(|record| (record.offset, record.timestamp)).collect::<Vec<_>>(), [(4, -1), (5, -1)]);
    let bytes = wrapper(0, 5, &inner(1, &[0, 1]));
    let found = records(&first(&bytes)).unwrap();
    assert_eq!(
        found.iter().map(|record| (record.offset, record.timestamp)).collect::<Vec<_>>(),
        [(0, 1_000), (1, 1_000)]
    );
}

/// Edge case 58. franz-go drops it.
#[test]
fn wrapper_log_append_time_is_that_of_its_messages() {
    let messages: Vec<_> = (0..3).map(|offset| message_at(1, offset, 0, offset, None, Some(b"v"))).collect();
    let value = gzip(&messages.concat());
    let times = |attributes: u8| {
        let bytes = message_at(1, 2, attributes, 99, None, Some(&value));
        let found = records(&first(&bytes)).unwrap();
        found.iter().map(|record| (record.timestamp, record.timestamp_type.unwrap())).collect::<Vec<_>>()
    };
    assert_eq!(times(GZIP as u8 | LOG_APPEND_TIME), [(99, TimestampType::LogAppendTime); 3]);
    let create = TimestampType::CreateTime;
    assert_eq!(times(GZIP as u8), [(0, create), (1, create), (2, create)]);
}

/// Edge case 58: a message's own bit has no meaning inside a set.
#[test]
fn wrapper_timestamp_type_is_that_of_its_messages() {
    let bytes = wrapper(1, 0, &[message_at(1, 0, LOG_APPEND_TIME, 5, None, Some(b"v"))]);
    let found = records(&first(&bytes)).unwrap().remove(0);
    assert_eq!((found.timestamp, found.timestamp_type), (5, Some(TimestampType::CreateTime)));
}

/// Edge case 59.
#[test]
fn wrapper_and_message_checksums_are_apart() {
    let mut broken = inner(1, &[0, 1]);
    broken[1][12] ^= 1;
    let bytes = wrapper(1, 1, &broken);
    first(&bytes).verify_crc().unwrap();
    let (mut scratch, limits) = (Scratch::new(), Limits::default());
    let found: Vec<_> = first(&bytes).records(&mut scratch, &limits).unwrap().map(Result::unwrap).collect();
    found[0].verify_crc().unwrap();
    let error = found[1].verify_crc().unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Crc { .. }), "{error}");
    assert_eq!(error.position().record, Some(1));

    let mut bytes = wrapper(1, 1, &inner(1, &[0, 1]));
    bytes[12] ^= 1;
    assert!(first(&bytes).verify_crc().is_err());
    assert_eq!(offsets(&bytes).unwrap(), [0, 1]);
}

/// Edge case 60. Fourteen bytes are a message of v0 without key and value, and too few for v1.
#[test]
fn message_of_14_bytes_is_read_only_where_it_is_whole() {
    let v0 = message(0, 0, 0, None, None);
    assert_eq!((v0.len(), records(&first(&v0)).unwrap().len()), (26, 1));
    let v1 = message_of(0, &[1, 0, 0, 0, 0, 0, 0, 0, 0, 7]);
    assert_eq!(v1.len(), 26);
    first(&v1).verify_crc().unwrap();
    let error = records(&first(&v1)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Truncated), "{error}");
    assert_eq!((error.position().field, error.position().byte), (Some("key"), Some(26)));
}

/// Edge case 60.
#[test]
fn message_field_lengths_that_are_wrong_are_refused_or_null() {
    for magic in [0_u8, 1] {
        let key_place = if magic == 0 { 18 } else { 26 };
        for (len, good) in [(i32::MAX, false), (100, false), (-2, true), (i32::MIN, true)] {
            let mut bytes = message(magic, 0, 0, None, None);
            bytes[key_place..key_place + 4].copy_from_slice(&i32::to_be_bytes(len));
            fix_crc(&mut bytes);
            match records(&first(&bytes)) {
                Ok(found) => assert!(good && found[0].key.is_none()),
                Err(error) => assert!(!good && matches!(error.kind(), ErrorKind::Truncated), "{error}"),
            }
        }
    }
}

/// Bytes after the value are covered by the checksum and ignored.
#[test]
fn message_bytes_after_the_value_are_ignored() {
    for magic in [0, 1] {
        let fields = [&message(magic, 0, 0, None, Some(b"v"))[16..], b"behind"].concat();
        let found = records(&first(&message_of(3, &fields))).unwrap();
        assert_eq!((found.len(), found[0].offset, found[0].value.as_deref()), (1, 3, Some(&b"v"[..])));
    }
}

/// Edge case 61, and 18 for the old formats.
#[test]
fn message_attribute_bits_without_a_meaning_are_kept() {
    for magic in [0, 1] {
        for bits in [0x10, 0x20, 0x40, 0x80, 0xf0] {
            let bytes = message(magic, 0, bits, None, Some(b"v"));
            let batch = first(&bytes);
            assert_eq!(batch.attributes().bits(), u16::from(bits));
            assert!(!batch.is_transactional() && !batch.is_control() && batch.delete_horizon_ms().is_none());
            assert_eq!(records(&batch).unwrap().len(), 1);
        }
        for codec in [5, 6, 7] {
            let error = wrapper_error(&message(magic, 0, codec, None, Some(b"v")));
            assert!(matches!(error.kind(), ErrorKind::UnsupportedCodec { .. }), "{error}");
            assert_eq!(error.position().byte, Some(17));
        }
    }
}

/// Edge case 62. The bit has no meaning in v0.
#[test]
fn message_timestamp_type_is_bit_3_of_v1() {
    let log_append = message(1, 0, LOG_APPEND_TIME, None, None);
    assert_eq!(first(&log_append).timestamp_type(), Some(TimestampType::LogAppendTime));
    assert_eq!(records(&first(&log_append)).unwrap()[0].timestamp_type, Some(TimestampType::LogAppendTime));
    assert_eq!(first(&message(0, 0, LOG_APPEND_TIME, None, None)).timestamp_type(), None);
}

/// After `testSetLastOffsetCompressed` and `testSetLogAppendTimeCompressed`.
#[test]
fn wrapper_edited_in_place_keeps_its_messages() {
    let mut builder = BatchBuilder::new().magic(1).compression(Compression::Gzip);
    for timestamp in 1..=3 {
        builder.append(timestamp, Some(b"k"), Some(b"v")).unwrap();
    }
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    kbat::format::set_base_offset(&mut bytes, 498).unwrap();
    first(&bytes).verify_crc().unwrap();
    assert_eq!((offsets(&bytes).unwrap(), first(&bytes).last_offset()), (vec![498, 499, 500], 500));
    assert_eq!(records(&first(&bytes)).unwrap().iter().map(|record| record.timestamp).collect::<Vec<_>>(), [1, 2, 3]);

    kbat::format::set_log_append_time(&mut bytes, 15).unwrap();
    first(&bytes).verify_crc().unwrap();
    assert!(records(&first(&bytes)).unwrap().iter().all(|record| record.timestamp == 15));
}

/// Edge case 52: codec bits with bytes that are not a stream, and a stream without codec bits.
#[test]
fn codec_bits_that_do_not_fit_the_bytes_are_refused() {
    for codec in [GZIP, SNAPPY, LZ4, ZSTD] {
        let bytes = V2::compressed(codec, &record(0)).bytes();
        let error = wrapper_error(&bytes);
        assert!(matches!(error.kind(), ErrorKind::Decompression { .. }), "codec {codec}: {error}");
    }
    for stream in [gzip(&record(0)), crate::raw::zstd(&record(0))] {
        let error = wrapper_error(&V2 { attributes: 0, ..V2::compressed(GZIP, &stream) }.bytes());
        assert_eq!(error.position().record, Some(0), "{error}");
    }
    let bytes = message(1, 0, GZIP as u8, None, Some(b"plain"));
    assert!(matches!(wrapper_error(&bytes).kind(), ErrorKind::Decompression { .. }));
    let bytes = message(1, 0, 0, None, Some(&gzip(b"x")));
    assert_eq!(records(&first(&bytes)).unwrap()[0].value, Some(gzip(b"x")));
}

/// An inner size past the end of the set ends it like a truncated message. Java can't allocate the two largest sizes,
/// and its consumers fail.
#[test]
fn set_ends_at_a_size_beyond_it_but_for_the_two_largest() {
    for (size, count) in [(1_000, Some(1)), (i32::MAX - 2, Some(1)), (i32::MAX - 1, None), (i32::MAX, None)] {
        let mut content = inner(1, &[0, 1]).concat();
        let second = inner(1, &[0]).concat().len();
        content[second + 8..second + 12].copy_from_slice(&size.to_be_bytes());
        let bytes = wrapper(1, 0, &[content]);
        match count {
            Some(count) => assert_eq!(offsets(&bytes).unwrap().len(), count, "{size}"),
            None => assert_eq!(wrapper_error(&bytes).position().field, Some("size"), "{size}"),
        }
    }
}
