//! Records of internal topics as columns.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int16Type;
use kbat::BatchBuilder;
use kbat::arrow::{ArrowScan, Column, Decoder, ScanOptions, ScanSource};
use kbat::internal::Family;

const GROUP: &[u8] = &[0, 2, 0, 4, b't', b'e', b'a', b'm'];

/// Key and value.
type KeyValue<'r> = (Option<&'r [u8]>, Option<&'r [u8]>);

fn scanned(records: &[KeyValue<'_>], topic: &str, decoder: Decoder) -> RecordBatch {
    let mut builder = BatchBuilder::new();
    for (key, value) in records {
        builder.append(1_700_000_000_000, *key, *value).unwrap();
    }
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    let source = ScanSource::memory(Arc::new(bytes)).or_topic_partition(Some(topic), Some(0));
    let options = ScanOptions { columns: Column::internal(), decoder, ..ScanOptions::default() };
    let mut batches: Vec<_> = ArrowScan::new(vec![source], options).map(Result::unwrap).collect();
    assert_eq!(batches.len(), 1);
    batches.remove(0)
}

fn texts<'b>(batch: &'b RecordBatch, column: &str) -> Vec<Option<&'b str>> {
    batch.column_by_name(column).unwrap().as_string::<i32>().iter().collect()
}

#[test]
fn topic_selects_the_decoder() {
    let records: [KeyValue<'_>; 3] = [(Some(GROUP), None), (Some(&[0, 99]), Some(b"x")), (None, Some(b"x"))];
    let batch = scanned(&records, "__consumer_offsets", Decoder::ByTopic);
    assert_eq!(texts(&batch, "record_type"), [Some("GroupMetadata"), None, None]);
    assert_eq!(texts(&batch, "key"), [Some(r#"{"group":"team"}"#), None, None]);
    assert_eq!(texts(&batch, "value"), [None; 3]);
    assert_eq!(texts(&batch, "reason"), [None, Some("unknown record type 99"), Some("the key is null")]);
    let types: Vec<_> = batch.column_by_name("type_id").unwrap().as_primitive::<Int16Type>().iter().collect();
    assert_eq!(types, [Some(2), Some(99), None]);
    let tombstones: Vec<_> = batch.column_by_name("is_tombstone").unwrap().as_boolean().iter().flatten().collect();
    assert_eq!(tombstones, [true, false, false]);
}

#[test]
fn decoder_can_be_forced() {
    let batch = scanned(&[(Some(GROUP), None)], "copy", Decoder::Internal(Family::Group));
    assert_eq!(texts(&batch, "record_type"), [Some("GroupMetadata")]);
    let batch = scanned(&[(Some(b"a"), Some(b"\0\0\0\0\x05\x02b"))], "__consumer_offsets", Decoder::Json);
    assert_eq!(texts(&batch, "key"), [Some("\"a\"")]);
    assert_eq!(texts(&batch, "value"), [Some(r#"{"schemaId":5,"kind":"binary","data":"AmI="}"#)]);
}

#[test]
fn keys_of_a_schema_registry_name_the_record_type() {
    let key: &[u8] = br#"{"keytype":"SCHEMA","subject":"orders-value","version":1,"magic":1}"#;
    let batch = scanned(&[(Some(key), Some(b"{}"))], "_schemas", Decoder::ByTopic);
    assert_eq!(texts(&batch, "record_type"), [Some("SCHEMA")]);
    assert_eq!(texts(&batch, "key"), [std::str::from_utf8(key).ok()]);
    assert_eq!(texts(&batch, "value"), [Some("{}")]);
}
