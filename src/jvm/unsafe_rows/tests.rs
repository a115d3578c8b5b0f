use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Int32Array, Int64Array, ListArray, RecordBatch, StringArray,
    StructArray, TimestampMicrosecondArray,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field, Fields};

use super::*;

const KNOWN: [&str; 5] = ["key", "value", "timestamp", "headers", "offset"];

const HEADERS: &str = r#"{"type":"array","containsNull":true,"elementType":{"type":"struct","fields":[
    {"name":"key","type":"string","nullable":true,"metadata":{}},
    {"name":"value","type":"binary","nullable":true,"metadata":{}}]}}"#;

fn record_type(fields: &[(&str, &str)]) -> crate::Result<RecordType> {
    let field = |(name, kind): &(&str, &str)| {
        let kind = if kind.starts_with('{') { (*kind).to_owned() } else { format!("\"{kind}\"") };
        format!(r#"{{"name":"{name}","type":{kind},"nullable":true,"metadata":{{}}}}"#)
    };
    let fields: Vec<String> = fields.iter().map(field).collect();
    RecordType::of_json(&format!(r#"{{"type":"struct","fields":[{}]}}"#, fields.join(",")), &KNOWN)
}

fn headers() -> ListArray {
    let fields =
        Fields::from(vec![Field::new("key", DataType::Utf8, true), Field::new("value", DataType::Binary, true)]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(StringArray::from(vec!["a", "b", "c"])),
        Arc::new(BinaryArray::from(vec![Some(&b"1"[..]), None, Some(b"")])),
    ];
    let pairs = StructArray::new(fields, columns, None);
    let field = Arc::new(Field::new("element", pairs.data_type().clone(), true));
    ListArray::new(field, OffsetBuffer::from_lengths([2, 0, 1]), Arc::new(pairs), None)
}

fn records() -> RecordBatch {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("offset", Arc::new(Int64Array::from(vec![7, -8, 9]))),
        ("timestamp", Arc::new(TimestampMicrosecondArray::from(vec![Some(1000), None, Some(-1)]))),
        ("timestampType", Arc::new(Int32Array::from(vec![0, 1, -1]))),
        ("key", Arc::new(BinaryArray::from(vec![None, Some(&b"key of 16 bytes."[..]), Some(b"")]))),
        ("value", Arc::new(BinaryArray::from(vec![Some(&b"value"[..]), None, Some(&[0xff; 100])]))),
        ("headers", Arc::new(headers())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

#[test]
fn array_of_a_row_has_sparks_bytes() {
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("offset", Arc::new(Int64Array::from(vec![7]))),
        ("key", Arc::new(BinaryArray::from(vec![None::<&[u8]>]))),
        ("flag", Arc::new(BooleanArray::from(vec![true]))),
        ("value", Arc::new(BinaryArray::from(vec![&b"ab"[..]]))),
    ];
    let bytes = array_of_rows(&[RecordBatch::try_from_iter(columns).unwrap()]).unwrap();
    let words: Vec<u64> = bytes.chunks(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect();
    let row = (24_u64 << 32) + 48; // after the count, the null bits and one field; five words and the padded value
    assert_eq!(words[..8], [1, 0, row, 0b10, 7, 0, u64::from_ne_bytes([1, 0, 0, 0, 0, 0, 0, 0]), (40 << 32) | 2]);
    assert_eq!(&bytes[64..], b"ab\0\0\0\0\0\0");
}

#[test]
fn records_written_are_read_again() {
    let records = records();
    let bytes = array_of_rows(&[records.clone(), records.slice(1, 2)]).unwrap();
    let fields = [
        ("offset", "long"),
        ("timestamp", "timestamp"),
        ("timestampType", "integer"),
        ("key", "binary"),
        ("value", "string"),
        ("headers", HEADERS),
    ];
    let found = batch_of_array(&bytes, &record_type(&fields).unwrap()).unwrap();
    let names: Vec<_> = found.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["offset", "timestamp", "key", "value", "headers"]);
    assert_eq!(found.num_rows(), 5);
    for (number, row) in [0, 1, 2, 1, 2].into_iter().enumerate() {
        for name in ["offset", "key", "value"] {
            let (one, other) = (found.column_by_name(name).unwrap(), records.column_by_name(name).unwrap());
            assert_eq!(&one.slice(number, 1), &other.slice(row, 1), "{name} of row {row}");
        }
    }
    let times = found.column_by_name("timestamp").unwrap();
    assert_eq!(times.null_count(), 2);
    let lists = found.column_by_name("headers").unwrap().as_list::<i32>();
    let lengths: Vec<_> = lists.iter().map(|list| list.map(|list| list.len())).collect();
    assert_eq!(lengths, [Some(2), None, Some(1), None, Some(1)]);
    let values = lists.value(0).as_struct().column_by_name("value").unwrap().as_binary::<i32>().clone();
    assert_eq!((values.value(0), values.is_null(1)), (&b"1"[..], true));
}

#[test]
fn rows_after_their_lengths_are_read() {
    let records = records();
    let array = array_of_rows(std::slice::from_ref(&records)).unwrap();
    let fields = record_type(&[("offset", "long"), ("timestamp", "timestamp"), ("timestampType", "integer")]).unwrap();
    let mut bytes = Vec::new();
    let mut ends = vec![0];
    for number in 0..records.num_rows() {
        let row = cells::value_at(&array, 16 + 8 * number).unwrap();
        bytes.extend_from_slice(&u64::try_from(row.len()).unwrap().to_ne_bytes());
        bytes.extend_from_slice(row);
        ends.push(bytes.len());
    }
    let found = batch_of_rows(&bytes, &fields).unwrap();
    assert_eq!(found.num_rows(), records.num_rows());
    assert_eq!(found.column_by_name("offset"), records.column_by_name("offset"));
    for len in 0..bytes.len() {
        assert_eq!(batch_of_rows(&bytes[..len], &fields).is_ok(), ends.contains(&len), "{len} bytes");
    }
}

#[test]
fn row_of_values_has_sparks_bytes() {
    let inner = row_of(&[Cell::Int(3)]);
    let row = row_of(&[Cell::Bytes(&inner), Cell::Long(-2), Cell::Int(7), Cell::Bytes(b"ab")]);
    let int = |number: i32| [number.to_ne_bytes(), [0; 4]].concat();
    let field = |start: u64, len: u64| ((start << 32) | len).to_ne_bytes();
    // the null bits, four fields, the inner row with its own null bits, and the padded value
    let head = [[0; 8], field(40, 16), (-2_i64).to_ne_bytes()].concat();
    assert_eq!(row, [&head[..], &int(7), &field(56, 2), &[0; 8], &int(3), b"ab\0\0\0\0\0\0"].concat());
}

#[test]
fn runs_end_where_the_first_field_changes() {
    let fields = record_type(&[("log", "string"), ("value", "binary")]).unwrap();
    let mut bytes = Vec::new();
    for (log, value) in [("a", "1"), ("a", "2"), ("", "3"), ("b", "4"), ("a", "5")] {
        let row = row_of(&[Cell::Bytes(log.as_bytes()), Cell::Bytes(value.as_bytes())]);
        bytes.extend_from_slice(&u64::try_from(row.len()).unwrap().to_ne_bytes());
        bytes.extend_from_slice(&row);
    }
    let runs = batches_of_runs(&bytes, &fields).unwrap();
    let values = |rows: &RecordBatch| rows.column(0).as_binary::<i32>().iter().flatten().flatten().copied().collect();
    let found: Vec<(&[u8], Vec<u8>)> = runs.iter().map(|(log, rows)| (*log, values(rows))).collect();
    let expected = [("a", "12"), ("", "3"), ("b", "4"), ("a", "5")];
    assert_eq!(found, expected.map(|(log, values)| (log.as_bytes(), values.as_bytes().to_vec())));
    assert!(batches_of_runs(&[], &fields).unwrap().is_empty());
    assert!(batches_of_runs(&bytes[..bytes.len() - 1], &fields).is_err());
}

#[test]
fn column_of_nulls_only_has_its_rows() {
    let column: ArrayRef = Arc::new(BinaryArray::from(vec![None::<&[u8]>; 3]));
    let bytes = array_of_rows(&[RecordBatch::try_from_iter([("value", column)]).unwrap()]).unwrap();
    let found = batch_of_array(&bytes, &record_type(&[("value", "void")]).unwrap()).unwrap();
    assert_eq!((found.num_rows(), found.column(0).data_type()), (3, &DataType::Null));
}

#[test]
fn many_rows_have_several_words_of_null_bits() {
    let offsets: Int64Array = (0..200).map(|number| (number % 3 > 0).then_some(number)).collect();
    let column: ArrayRef = Arc::new(offsets);
    let bytes = array_of_rows(&[RecordBatch::try_from_iter([("offset", column)]).unwrap()]);
    let found = batch_of_array(&bytes.unwrap(), &record_type(&[("offset", "long")]).unwrap()).unwrap();
    let found = found.column(0).as_primitive::<Int64Type>().clone();
    assert!((0..200_i64).zip(&found).all(|(number, value)| value == (number % 3 > 0).then_some(number)));
}

#[test]
fn null_record_is_an_error_with_its_number() {
    let mut bytes = array_of_rows(&[records()]).unwrap();
    bytes[8] = 0b100;
    let error = batch_of_array(&bytes, &record_type(&[("offset", "long")]).unwrap()).unwrap_err();
    assert!(error.to_string().starts_with("kbat_encode: element 2 of an array of records is null"), "{error}");
}

#[test]
fn bytes_in_another_form_are_an_error() {
    let fields = record_type(&[("offset", "long"), ("timestamp", "timestamp"), ("x", "long"), ("key", "binary")]);
    let fields = fields.unwrap();
    let bytes = array_of_rows(&[records()]).unwrap();
    for len in 0..bytes.len() - 8 {
        assert!(batch_of_array(&bytes[..len], &fields).is_err(), "{len} bytes");
    }
    for at in 0..bytes.len() {
        let mut bytes = bytes.clone();
        bytes[at] ^= 0x80;
        let _ = batch_of_array(&bytes, &fields); // some of these are values of the records
    }
}

#[test]
fn types_are_checked_and_names_in_another_case_refused() {
    let message = |fields: &[(&str, &str)]| record_type(fields).unwrap_err().to_string();
    assert_eq!(message(&[("Key", "binary")]), "kbat: column Key: rename it to key");
    assert!(message(&[("value", "decimal(10,2)")]).contains("unsupported type decimal(10,2)"));
    assert!(record_type(&[("other", "interval"), ("value", "void")]).is_ok());
    assert!(RecordType::of_json("\"string\"", &KNOWN).is_err());
}
