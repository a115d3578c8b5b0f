//! Records of v2, after Kafka's `DefaultRecordTest`.

use kbat::ErrorKind;
use kbat::format::NewHeader;

use crate::data::{Owned, first, records};
use crate::raw::{Shape, V2, body, field, varint, varlong, with_len};

/// The one record of a batch with that record body.
fn parse(body: &[u8]) -> kbat::Result<Owned> {
    let bytes = V2::of_body(body).bytes();
    records(&first(&bytes)).map(|mut records| records.remove(0))
}

/// Attributes, deltas of zero, key and value; the caller adds the rest.
fn start() -> Vec<u8> {
    [vec![0, 0, 0], field(Some(b"k")), field(Some(b"v"))].concat()
}

/// After `testBasicSerde`.
#[test]
fn record_of_every_shape_is_read_as_written() {
    let headers: [NewHeader<'_>; 3] = [(b"foo", Some(b"value")), (b"bar", None), ("Aêñü".as_bytes(), Some(b""))];
    let (key, value): (&[u8], &[u8]) = (b"hi", b"there");
    let shapes: [Shape<'_>; 5] = [
        (Some(key), Some(value), &[]),
        (None, Some(value), &[]),
        (Some(key), None, &[]),
        (None, None, &[]),
        (Some(key), Some(value), &headers),
    ];
    for (key, value, headers) in shapes {
        let pairs = headers.iter().map(|(key, value)| [field(Some(key)), field(*value)].concat()).collect::<Vec<_>>();
        let fields =
            [vec![0], varlong(323), varint(10), field(key), field(value), varint(headers.len() as i32)].concat();
        let body = [fields, pairs.concat()].concat();
        assert_eq!(kbat::format::record_len(10, 323, key, value, headers), with_len(&body).len());
        let mut batch = V2::of_body(&body);
        (batch.base_offset, batch.base_sequence, batch.base_timestamp) = (37, 723, 100);
        let bytes = batch.bytes();
        let record = records(&first(&bytes)).unwrap().remove(0);
        assert_eq!((record.offset, record.sequence, record.timestamp), (47, 733, 423));
        assert_eq!((record.key.as_deref(), record.value.as_deref()), (key, value));
        let found: Vec<NewHeader<'_>> =
            record.headers.iter().map(|(key, value)| (key.as_slice(), value.as_deref())).collect();
        assert_eq!(found, headers);
    }
}

/// After `testBasicSerdeInvalidHeaderCountTooHigh`.
#[test]
fn record_header_count_too_high_is_refused() {
    let headers = [field(Some(b"a")), field(None)].concat();
    let body = [start(), varint(2), headers].concat();
    assert!(matches!(parse(&body).unwrap_err().kind(), ErrorKind::Truncated));
}

/// After `testBasicSerdeInvalidHeaderCountTooLow`.
#[test]
fn record_header_count_too_low_is_refused() {
    let headers = [field(Some(b"a")), field(None)].concat();
    let body = [start(), varint(1), headers.clone(), headers].concat();
    let error = parse(&body).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::TrailingBytes { count: 3 }), "{error}");
    assert_eq!(error.position().field, Some("headers"));
}

/// After `testInvalidKeySize` and `testInvalidValueSize`.
#[test]
fn record_key_or_value_longer_than_the_body_is_refused() {
    let key = [vec![0, 0, 0], varint(105), vec![0; 60]].concat();
    let value = [vec![0, 0, 0], field(Some(b"k")), varint(105), vec![0; 60]].concat();
    for (body, name) in [(key, "key"), (value, "value")] {
        let error = parse(&body).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Truncated), "{error}");
        assert_eq!(error.position().field, Some(name));
    }
}

/// After `testInvalidNumHeaders`.
#[test]
fn record_header_count_negative_or_huge_is_refused() {
    for count in [-1, 100, i32::MAX, i32::MIN] {
        let error = parse(&[start(), varint(count)].concat()).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidValue { value, .. } if *value == i64::from(count)), "{error}");
        assert_eq!(error.position().field, Some("header_count"));
    }
}

/// After `testInvalidHeaderKey` and `testNullHeaderKey`.
#[test]
fn record_header_key_too_long_or_null_is_refused() {
    for key_len in [105, -1] {
        let error = parse(&[start(), varint(1), varint(key_len), vec![0; 20]].concat()).unwrap_err();
        match key_len {
            -1 => assert!(matches!(error.kind(), ErrorKind::InvalidValue { value: -1, .. }), "{error}"),
            _ => assert!(matches!(error.kind(), ErrorKind::Truncated), "{error}"),
        }
    }
}

/// After `testInvalidHeaderValue`.
#[test]
fn record_header_value_too_long_is_refused() {
    let error = parse(&[start(), varint(1), varint(1), vec![1], varint(105), vec![0; 20]].concat()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Truncated), "{error}");
    assert_eq!(error.position().field, Some("header_value"));
}

/// After `testUnderflowReadingTimestamp`.
#[test]
fn record_of_attributes_only_is_refused() {
    let error = parse(&[0]).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Truncated), "{error}");
    assert_eq!(error.position().field, Some("timestamp_delta"));
}

/// After `testUnderflowReadingVarlong` and `testInvalidVarlong`.
#[test]
fn record_timestamp_delta_cut_or_too_long_is_refused() {
    let whole = varlong(-(1 << 40));
    let cut = [vec![0], whole[..whole.len() - 1].to_vec()].concat();
    assert!(matches!(parse(&cut).unwrap_err().kind(), ErrorKind::Truncated));
    let mut too_long = vec![0];
    too_long.extend_from_slice(&[0x80; 10]);
    too_long.push(1);
    assert!(matches!(parse(&too_long).unwrap_err().kind(), ErrorKind::Varint));
}

/// After `testInvalidSizeOfBodyInBytes` and `testSerdeNoSequence`.
#[test]
fn record_declared_longer_than_the_batch_is_refused() {
    let mut batch = V2::of_body(&[]);
    batch.records = varint(10);
    let bytes = batch.bytes();
    let error = records(&first(&bytes)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::InvalidValue { value: 10, .. }), "{error}");
    assert_eq!(error.position().byte, Some(62));

    assert_eq!(parse(&body(0, 1, None, None)).unwrap().sequence, -1);
}

/// After `ByteUtilsTest`: varints longer than necessary are accepted, varints that are too long are not, in every
/// field.
#[test]
fn record_varints_longer_than_needed_are_read() {
    let body = [
        vec![0],
        vec![0x80, 0x00],
        vec![0x80, 0x80, 0x00],
        vec![0x81, 0x00],
        vec![0x82, 0x80, 0x00, 7],
        vec![0x80, 0x00],
    ];
    let record = parse(&body.concat()).unwrap();
    assert_eq!((record.offset, record.timestamp, record.key, record.value), (0, 1_000, None, Some(vec![7])));
    for place in 1..body.len() {
        let mut body = body.to_vec();
        body[place] = vec![0xff; 11];
        assert!(parse(&body.concat()).is_err(), "field {place}");
    }
}
