//! Records and their headers: edge cases 23 to 38. The malformed ones of Kafka's own tests are in `format_record`.

use kbat::{BatchBuilder, Compression, ErrorKind, Limits, Scratch};

use crate::data::{Owned, first, records, records_within};
use crate::raw::{LOG_APPEND_TIME, V2, body, field, plain_records, record, varint, varlong, with_len};

fn parse(body: &[u8]) -> kbat::Result<Owned> {
    let bytes = V2::of_body(body).bytes();
    records(&first(&bytes)).map(|mut records| records.remove(0))
}

/// The error of a batch whose records are these bytes.
fn error_of(count: i32, records_bytes: &[u8]) -> kbat::Error {
    let bytes = V2 { record_count: count, records: records_bytes.to_vec(), ..V2::default() }.bytes();
    records(&first(&bytes)).unwrap_err()
}

/// Edge case 23.
#[test]
fn record_length_that_is_wrong_is_refused() {
    let content = body(0, 0, None, Some(b"value"));
    for length in [0, -1, i32::MIN, content.len() as i32 - 1, content.len() as i32 + 1, i32::MAX] {
        let error = error_of(1, &[varint(length), content.clone()].concat());
        let position = error.position();
        assert!(position.byte.is_some_and(|byte| (61..=61 + 20).contains(&byte)), "{error}");
        assert_eq!((position.base_offset, position.record), (Some(0), Some(0)), "{error}");
    }
    let longer = [content.clone(), vec![0; 3]].concat();
    let error = error_of(1, &with_len(&longer));
    assert!(matches!(error.kind(), ErrorKind::TrailingBytes { count: 3 }), "{error}");
    let into_the_next = [varint(content.len() as i32 + 4), content, record(1)].concat();
    error_of(2, &into_the_next);
}

/// Edge case 24. Other libraries read the attributes as a varint, so that 0x80 shifts all following bytes.
#[test]
fn record_attributes_of_any_value_are_one_byte() {
    for attributes in [0x00, 0x7f, 0x80, 0xff] {
        let mut body = body(5, 0, Some(b"k"), Some(b"v"));
        body[0] = attributes;
        let record = parse(&body).unwrap();
        assert_eq!((record.offset, record.timestamp, record.key), (0, 1_005, Some(b"k".to_vec())));
    }
}

/// Edge case 25. Varints that are too long are rejected; bits that do not fit are dropped, as in Java.
#[test]
fn record_varints_past_their_last_byte_are_refused() {
    let int = |bytes: &[u8]| parse(&[vec![0, 0], bytes.to_vec(), field(None), field(None), varint(0)].concat());
    let long = |bytes: &[u8]| parse(&[vec![0], bytes.to_vec(), vec![0], field(None), field(None), varint(0)].concat());
    assert_eq!(int(&[0x80, 0x80, 0x80, 0x80, 0x10]).unwrap().offset, 0, "bit 32 is dropped");
    assert_eq!(int(&[0xfe, 0xff, 0xff, 0xff, 0x0f]).unwrap().offset, i64::from(i32::MAX));
    for varint in [[0x80_u8, 0x80, 0x80, 0x80, 0x80, 0x00].as_slice(), &[0xff; 6]] {
        assert!(matches!(int(varint).unwrap_err().kind(), ErrorKind::Varint));
    }
    let tenth = |last: u8| [vec![0x80; 9], vec![last]].concat();
    assert_eq!(long(&tenth(2)).unwrap().timestamp, 1_000, "bit 64 is dropped");
    for varlong in [[vec![0x80; 10], vec![0]].concat(), vec![0xff; 11]] {
        assert!(matches!(long(&varlong).unwrap_err().kind(), ErrorKind::Varint));
    }
    for cut in 1..5 {
        assert!(matches!(parse(&[vec![0, 0], vec![0x80; cut]].concat()).unwrap_err().kind(), ErrorKind::Truncated));
    }
}

/// Edge case 26. A delta of more than 24.8 days does not fit an i32; a library lost its position there.
#[test]
fn record_timestamp_deltas_of_every_size_are_read() {
    let deltas = [1 << 31, -(1 << 31), 2_151_360_000, -2_151_360_000, i64::MIN, i64::MAX, i64::MAX - 1_000, 1 << 55];
    for delta in deltas {
        let record = parse(&body(delta, 0, Some(b"k"), Some(b"v"))).unwrap();
        assert_eq!(record.timestamp, 1_000_i64.wrapping_add(delta), "sums wrap as Java's do");
        assert_eq!((record.key, record.value), (Some(b"k".to_vec()), Some(b"v".to_vec())));
    }
}

/// Edge case 27. Another library treats a first timestamp of −1 as "not set".
#[test]
fn record_timestamps_of_minus_one_are_kept() {
    let all: Vec<_> =
        [0, 1_000, -5].iter().enumerate().map(|(i, delta)| with_len(&body(*delta, i as i32, None, None))).collect();
    let bytes = V2 { base_timestamp: -1, ..V2::of(&all) }.bytes();
    let timestamps: Vec<_> = records(&first(&bytes)).unwrap().iter().map(|record| record.timestamp).collect();
    assert_eq!(timestamps, [-1, 999, -6]);

    let mut builder = BatchBuilder::new();
    builder.append(-1, None, None).unwrap();
    builder.append(1_700_000_000_000, None, None).unwrap();
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    let timestamps: Vec<_> = records(&first(&bytes)).unwrap().iter().map(|record| record.timestamp).collect();
    assert_eq!((timestamps, first(&bytes).base_timestamp()), (vec![-1, 1_700_000_000_000], -1));
}

/// Edge case 28.
#[test]
fn record_timestamps_under_log_append_time_are_the_batchs() {
    let all = [with_len(&body(-7, 0, None, None)), with_len(&body(i64::MAX, 1, None, None))];
    let bytes = V2 { attributes: LOG_APPEND_TIME, max_timestamp: 99, ..V2::of(&all) }.bytes();
    assert!(records(&first(&bytes)).unwrap().iter().all(|record| record.timestamp == 99));
}

/// Edge case 29.
#[test]
fn record_offset_deltas_in_any_order_are_kept() {
    let deltas = [5, 5, 3, -2, i32::MAX, i32::MIN];
    let bytes = V2 { base_offset: 10, ..V2::of(&deltas.map(record)) }.bytes();
    let offsets: Vec<_> = records(&first(&bytes)).unwrap().iter().map(|record| record.offset).collect();
    assert_eq!(offsets, deltas.map(|delta| 10 + i64::from(delta)));
}

/// Edge case 30.
#[test]
fn record_keys_and_values_of_every_length_are_read() {
    let lens = [0, 1, 63, 64, 127, 128, 8_191, 8_192, 16_383, 16_384, 1 << 20];
    for compression in Compression::ALL {
        let mut builder = BatchBuilder::new().compression(compression);
        let blobs: Vec<Vec<u8>> = lens.iter().map(|&len| (0..len).map(|i: usize| (i % 251) as u8).collect()).collect();
        builder.append(0, None, None).unwrap();
        for blob in &blobs {
            builder.append(0, Some(blob), None).unwrap();
            builder.append(0, None, Some(blob)).unwrap();
        }
        let mut bytes = Vec::new();
        builder.finish_into(&mut bytes).unwrap();
        let found = records(&first(&bytes)).unwrap();
        assert_eq!((found[0].key.as_ref(), found[0].value.as_ref()), (None, None));
        for (index, blob) in blobs.iter().enumerate() {
            let pair = [&found[1 + 2 * index], &found[2 + 2 * index]];
            assert_eq!((pair[0].key.as_ref(), pair[0].value.as_ref()), (Some(blob), None));
            assert_eq!((pair[1].key.as_ref(), pair[1].value.as_ref()), (None, Some(blob)));
        }
    }
}

/// Edge case 30: a value of 64 MiB.
#[test]
fn record_value_of_64_mib_is_read() {
    let value = vec![7; 64 << 20];
    let mut builder = BatchBuilder::new();
    builder.append(0, None, Some(&value)).unwrap();
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    let (mut scratch, limits) = (Scratch::new(), Limits::default());
    let record = first(&bytes).records(&mut scratch, &limits).unwrap().next().unwrap().unwrap();
    assert!(record.value() == Some(&value));
    assert_eq!(scratch.capacity(), 0, "borrowed from the input");
}

/// Edge case 31. Any negative length is null, as in Kafka's `Utils.readBytes`; some libraries reject −2.
#[test]
fn record_lengths_below_minus_one_are_null() {
    for len in [-1, -2, i32::MIN] {
        let record = parse(&[vec![0, 0, 0], varint(len), varint(len), varint(0)].concat()).unwrap();
        assert_eq!((record.key, record.value), (None, None));
    }
}

/// Edge case 32.
#[test]
fn record_bytes_after_the_last_one_are_refused() {
    let error = error_of(1, &[record(0), vec![0]].concat());
    assert!(matches!(error.kind(), ErrorKind::TrailingBytes { count: 1 }), "{error}");
    let error = error_of(1, &[record(0), record(1)].concat());
    assert!(matches!(error.kind(), ErrorKind::TrailingBytes { .. }), "{error}");
    assert_eq!(error.position().byte, Some(61 + record(0).len() as u64));
}

/// Edge case 33. Two other libraries can't read a batch twice.
#[test]
fn record_iterators_over_one_batch_are_independent() {
    for compression in Compression::ALL {
        let mut builder = BatchBuilder::new().compression(compression);
        for value in [b"a", b"b", b"c"] {
            builder.append(0, None, Some(value)).unwrap();
        }
        let mut bytes = Vec::new();
        builder.finish_into(&mut bytes).unwrap();
        let batch = first(&bytes);
        let (mut one, mut two, limits) = (Scratch::new(), Scratch::new(), Limits::default());
        let mut ahead = batch.records(&mut one, &limits).unwrap();
        ahead.next().unwrap().unwrap();
        let behind: Vec<_> = batch.records(&mut two, &limits).unwrap().map(|record| record.unwrap().offset()).collect();
        assert_eq!(behind, [0, 1, 2]);
        assert_eq!(ahead.next().unwrap().unwrap().offset(), 1);
        assert_eq!(records(&batch).unwrap(), records(&batch).unwrap());
    }
}

/// Edge case 34.
#[test]
fn header_counts_from_none_to_ten_thousand_are_read() {
    for count in [0_usize, 1, 10_000] {
        let headers = vec![(b"k".as_slice(), Some(b"v".as_slice())); count];
        let mut builder = BatchBuilder::new();
        builder.append_with_headers(0, None, None, &headers).unwrap();
        let mut bytes = Vec::new();
        builder.finish_into(&mut bytes).unwrap();
        assert_eq!(records(&first(&bytes)).unwrap()[0].headers.len(), count);
        let limits = Limits { header_count: count.saturating_sub(1), ..Limits::default() };
        let result = records_within(&first(&bytes), &limits);
        assert_eq!(result.is_err(), count > 0);
        if let Err(error) = result {
            assert!(matches!(error.kind(), ErrorKind::Limit { name: "header_count", .. }), "{error}");
        }
    }
}

/// Edge case 34: a count that three bytes can't hold allocates nothing.
#[test]
fn header_count_beyond_the_bytes_is_refused() {
    for count in [i32::MAX, 100, 4, -1] {
        let error = parse(&[vec![0, 0, 0], field(None), field(None), varint(count), vec![0; 3]].concat()).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidValue { .. }), "{error}");
    }
}

/// Edge cases 35 and 36 (KIP-82).
#[test]
fn headers_keep_order_duplicates_nulls_and_empties() {
    let headers: [kbat::format::NewHeader<'_>; 6] =
        [(b"b", None), (b"a", Some(b"")), (b"b", Some(b"2")), (b"", Some(b"no key")), (b"b", None), (b"", None)];
    for compression in Compression::ALL {
        let mut builder = BatchBuilder::new().compression(compression);
        builder.append_with_headers(0, None, None, &headers).unwrap();
        let mut bytes = Vec::new();
        builder.finish_into(&mut bytes).unwrap();
        let found = records(&first(&bytes)).unwrap().remove(0).headers;
        let expected: Vec<_> = headers.iter().map(|(key, value)| (key.to_vec(), value.map(<[u8]>::to_vec))).collect();
        assert_eq!(found, expected);
    }
}

/// Edge case 37. The bytes are always available; UTF-8 is only checked when text is requested.
#[test]
fn header_keys_that_are_not_utf8_fail_only_as_text() {
    let fields = [vec![0, 0, 0], field(None), field(None), varint(1), field(Some(b"a\xff\xc3")), field(None)].concat();
    let bytes = V2::of_body(&fields).bytes();
    let (mut scratch, limits) = (Scratch::new(), Limits::default());
    let record = first(&bytes).records(&mut scratch, &limits).unwrap().next().unwrap().unwrap();
    let header = record.headers().next().unwrap().unwrap();
    assert_eq!((header.key(), header.value()), (b"a\xff\xc3".as_slice(), None));
    assert!(header.key_str().is_err());
    assert_eq!(header.key_lossy(), "a\u{fffd}\u{fffd}");
    assert_eq!(record.headers().len(), 1);
    assert!(!record.headers().is_empty());
}

/// Edge case 37.
#[test]
fn header_key_of_negative_length_is_refused() {
    for len in [-1, -2, i32::MIN] {
        let error = parse(&[vec![0, 0, 0], field(None), field(None), varint(1), varint(len), field(None)].concat())
            .unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidValue { value, .. } if *value == i64::from(len)), "{error}");
        assert_eq!(error.position().field, Some("header_key_length"));
    }
}

/// Edge case 38: headers are parsed on request, which is when this is detected.
#[test]
fn headers_that_end_inside_a_value_are_refused() {
    let headers = [varint(2), field(Some(b"a")), field(Some(b"1")), field(Some(b"b")), varint(9), vec![1, 2]].concat();
    let bytes = V2::of_body(&[vec![0, 0, 0], field(None), field(None), headers].concat()).bytes();
    let (mut scratch, limits) = (Scratch::new(), Limits::default());
    let record = first(&bytes).records(&mut scratch, &limits).unwrap().next().unwrap().unwrap();
    let items: Vec<_> = record.headers().collect();
    assert_eq!((items.len(), items[0].is_ok(), items[1].is_err()), (2, true, true));
    assert!(matches!(record.headers().verify().unwrap_err().kind(), ErrorKind::Truncated));
}

/// After corruption in one record, the records before it are still returned.
#[test]
fn records_before_a_damaged_one_are_given() {
    let mut all = plain_records(3);
    all[2] = with_len(&[vec![0], varlong(0), varint(2), varint(99)].concat());
    let bytes = V2::of(&all).bytes();
    let (mut scratch, limits) = (Scratch::new(), Limits::default());
    let mut walk = first(&bytes).records(&mut scratch, &limits).unwrap();
    assert_eq!(walk.by_ref().take(2).map(|record| record.unwrap().index()).collect::<Vec<_>>(), [0, 1]);
    let error = walk.next().unwrap().unwrap_err();
    assert_eq!((error.position().record, error.position().field), (Some(2), Some("key")));
    assert!(walk.next().is_none(), "an error ends the walk");
}
