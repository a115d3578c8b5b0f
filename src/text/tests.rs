//! Complete lines of small logs, in every format.

use std::sync::Arc;

use super::*;
use crate::{BatchBuilder, Compression};

/// Three batches: four records of every kind, one compressed record, one record appended by a broker.
fn log() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut builder = BatchBuilder::new().base_offset(10);
    builder.append(1_700_000_000_000, Some(b"k1"), Some(b"a,\"b\"\n")).unwrap();
    builder.append(1_700_000_000_001, None, None).unwrap();
    builder.append(-1, Some(b""), Some(b"\xff\x1b")).unwrap();
    let headers: [(&[u8], Option<&[u8]>); 3] = [(b"a", Some(b"1")), (b"a", None), (b"b", Some(b"\xfe"))];
    builder.append_with_headers(1_700_000_000_003, Some(b"k2"), Some(b"{\"n\":\n1}"), &headers).unwrap();
    builder.finish_into(&mut bytes).unwrap();
    let mut builder = BatchBuilder::new().base_offset(14).compression(Compression::Lz4);
    builder.append(1_700_000_000_004, Some(b"k1"), Some(b"five")).unwrap();
    builder.finish_into(&mut bytes).unwrap();
    let mut builder = BatchBuilder::new().base_offset(15).log_append_time(1_700_000_000_005);
    builder.append(1_700_000_000_005, Some(b"k3"), Some(b"six")).unwrap();
    builder.finish_into(&mut bytes).unwrap();
    bytes
}

fn source(bytes: Vec<u8>) -> Vec<ScanSource> {
    vec![ScanSource::memory(Arc::new(bytes)).or_topic_partition(Some("orders"), Some(3))]
}

fn written(scan: &ScanOptions, text: &TextOptions) -> (String, Written) {
    let mut out = Vec::new();
    let written = write_records(source(log()), scan, text, &mut out).unwrap();
    (String::from_utf8(out).unwrap(), written)
}

fn formatted(format: &str) -> String {
    written(&ScanOptions::default(), &options(format)).0
}

fn options(format: &str) -> TextOptions {
    TextOptions { format: format.parse().unwrap(), ..TextOptions::default() }
}

#[test]
fn json_lines_keep_everything() {
    let start = "{\"topic\": \"orders\", \"partition\": 3, \"offset\": ";
    let expected = [
        "10, \"timestamp\": 1700000000000, \"timestamp_type\": \"CreateTime\", \"key\": \"k1\", \
         \"value\": \"a,\\\"b\\\"\\n\", \"headers\": []}",
        "11, \"timestamp\": 1700000000001, \"timestamp_type\": \"CreateTime\", \"key\": null, \"value\": null, \
         \"headers\": []}",
        "12, \"timestamp\": null, \"timestamp_type\": \"CreateTime\", \"key\": \"\", \
         \"value\": {\"base64\": \"/xs=\"}, \"headers\": []}",
        "13, \"timestamp\": 1700000000003, \"timestamp_type\": \"CreateTime\", \"key\": \"k2\", \
         \"value\": \"{\\\"n\\\":\\n1}\", \
         \"headers\": [[\"a\", \"1\"], [\"a\", null], [\"b\", {\"base64\": \"/g==\"}]]}",
        "14, \"timestamp\": 1700000000004, \"timestamp_type\": \"CreateTime\", \"key\": \"k1\", \"value\": \"five\", \
         \"headers\": []}",
        "15, \"timestamp\": 1700000000005, \"timestamp_type\": \"LogAppendTime\", \"key\": \"k3\", \
         \"value\": \"six\", \"headers\": []}",
    ];
    assert_eq!(formatted("jsonl"), expected.map(|rest| format!("{start}{rest}\n")).concat());
}

#[test]
fn csv_quotes_what_would_end_a_field() {
    let expected = [
        "topic,partition,offset,timestamp,timestamp_type,key,value,headers\n",
        "orders,3,10,1700000000000,CreateTime,k1,\"a,\"\"b\"\"\n\",[]\n",
        "orders,3,11,1700000000001,CreateTime,,,[]\n",
        "orders,3,12,,CreateTime,\"\",0xff1b,[]\n",
        "orders,3,13,1700000000003,CreateTime,k2,\"{\"\"n\"\":\n1}\",\"[[\"\"a\"\", \"\"1\"\"], [\"\"a\"\", null], \
         [\"\"b\"\", {\"\"base64\"\": \"\"/g==\"\"}]]\"\n",
        "orders,3,14,1700000000004,CreateTime,k1,five,[]\n",
        "orders,3,15,1700000000005,LogAppendTime,k3,six,[]\n",
    ];
    assert_eq!(formatted("csv"), expected.concat());
    let text = TextOptions { csv_header: false, limit: Some(0), ..options("csv") };
    assert_eq!(written(&ScanOptions::default(), &text).0, "");
}

#[test]
fn lines_for_people_have_times() {
    let expected = [
        "orders-3@10  2023-11-14 22:13:20.000Z  \"k1\"  \"a,\"b\"\\n\"\n",
        "orders-3@11  2023-11-14 22:13:20.001Z  null  null\n",
        "orders-3@12  -  \"\"  0xff1b\n",
        "orders-3@13  2023-11-14 22:13:20.003Z  \"k2\"  \"{\"n\":\\n1}\"  a=\"1\"  a=null  b=0xfe\n",
        "orders-3@14  2023-11-14 22:13:20.004Z  \"k1\"  \"five\"\n",
        "orders-3@15  2023-11-14 22:13:20.005Z  \"k3\"  \"six\"\n",
    ];
    assert_eq!(formatted("text"), expected.concat());
}

#[test]
fn a_format_string_has_the_letters_of_kcat() {
    let text = TextOptions { limit: Some(4), ..options("%t %p %o %T %K %k %S %h%%|") };
    let expected = "orders 3 10 1700000000000 2 k1 6 %|orders 3 11 1700000000001 -1  -1 %|orders 3 12 -1 0  2 %|\
                    orders 3 13 1700000000003 2 k2 8 a=1,a=NULL,b=";
    let mut out = Vec::new();
    write_records(source(log()), &ScanOptions::default(), &text, &mut out).unwrap();
    assert_eq!(out, [expected.as_bytes(), b"\xfe%|"].concat());
}

#[test]
fn raw_is_the_bytes_of_values() {
    let mut out = Vec::new();
    write_records(source(log()), &ScanOptions::default(), &options("raw"), &mut out).unwrap();
    assert_eq!(out, b"a,\"b\"\n\xff\x1b{\"n\":\n1}fivesix");
    let terminal = TextOptions { is_terminal: true, ..options("raw") };
    assert_eq!(written(&ScanOptions::default(), &terminal).0, "a,\"b\"\n\\xff\\x1b{\"n\":\n1}fivesix");
}

#[test]
fn keys_and_values_have_forms() {
    let offset = ScanOptions { start_offset: Some(12), end_offset: Some(14), ..ScanOptions::default() };
    let text = TextOptions { key: Rendering::Hex, value: Rendering::Json, ..options("%k=%s;") };
    assert_eq!(written(&offset, &text).0, "={\"base64\": \"/xs=\"};6b32={\"n\":1};");
    let text = TextOptions { key: Rendering::Base64, value: Rendering::Text, ..options("%k=%s;") };
    assert_eq!(written(&offset, &text).0, "=\u{fffd}\u{1b};azI=={\"n\":\n1};");
}

#[test]
fn patterns_and_limits_choose_records() {
    let scan = ScanOptions::default();
    let key = |pattern: Pattern| TextOptions { key_pattern: Some(pattern), ..options("%o ") };
    assert_eq!(written(&scan, &key(Pattern::equal("k1"))).0, "10 14 ");
    assert_eq!(written(&scan, &key(Pattern::whole("k[23]").unwrap())).0, "13 15 ");
    let text = TextOptions { value_pattern: Some(Pattern::found("^(f|s)i").unwrap()), ..options("%o ") };
    assert_eq!(written(&scan, &text).0, "14 15 ");
    let (shown, counts) = written(&scan, &TextOptions { limit: Some(1), ..text });
    assert_eq!((shown.as_str(), counts.stats.records, counts.next_offset), ("14 ", 1, Some(15)));
    let header = |name: &str, value: Option<&str>| {
        let headers = vec![(name.into(), value.map(Into::into)), (b"a".to_vec(), None)];
        written(&scan, &TextOptions { headers, ..options("%o ") }).0
    };
    assert_eq!([header("b", None), header("a", Some("1")), header("a", Some("2"))], ["13 ", "13 ", ""]);
    let times = ScanOptions { start_timestamp: Some(1_700_000_000_003), ..ScanOptions::default() };
    assert_eq!(written(&times, &options("%o ")).0, "13 14 15 ");
}

#[test]
fn a_corrupt_batch_is_not_written_in_part() {
    let mut bytes = log();
    // the second batch
    let second = usize::try_from(crate::format::frame::batches(&bytes).nth(1).unwrap().unwrap().position()).unwrap();
    bytes[second + 65] ^= 1;
    let mut out = Vec::new();
    let failed = write_records(source(bytes.clone()), &ScanOptions::default(), &options("%o "), &mut out);
    assert!(failed.unwrap_err().to_string().contains("checksum mismatch"));
    assert_eq!(out, b"10 11 12 13 ");

    let report = ScanOptions { on_corrupt: OnCorrupt::Report, ..ScanOptions::default() };
    let text = TextOptions { key_pattern: Some(Pattern::equal("k3")), ..options("jsonl") };
    let mut out = Vec::new();
    let written = write_records(source(bytes.clone()), &report, &text, &mut out).unwrap();
    let lines = String::from_utf8(out).unwrap();
    let (error, record) = lines.split_once('\n').unwrap();
    assert!(error.starts_with("{\"error\": {\"kind\": \"crc\", \"message\": \"checksum mismatch"), "{error}");
    let end = ", \"first_offset\": 14, \"last_offset\": 14}}";
    assert!(error.contains(&format!("\"path\": null, \"position\": {second}, ")) && error.ends_with(end), "{error}");
    assert!(record.contains("\"offset\": 15"), "{record}");
    assert_eq!((written.stats.records, written.stats.batches_skipped, written.next_offset), (1, 1, Some(16)));

    let refused = write_records(source(bytes), &report, &options("csv"), &mut Vec::new());
    assert!(refused.unwrap_err().to_string().contains("only in the formats jsonl and text"));
}

#[test]
fn a_batch_that_is_corrupt_after_its_first_records_is_not_written() {
    let mut bytes = Vec::new();
    let mut builder = BatchBuilder::new();
    builder.append(0, None, Some(b"first")).unwrap();
    builder.append(0, None, Some(b"second")).unwrap();
    builder.finish_into(&mut bytes).unwrap();
    // the count of headers of the last record
    *bytes.last_mut().unwrap() = 2;
    let scan = ScanOptions { check_crc: false, on_corrupt: OnCorrupt::Skip, ..ScanOptions::default() };
    let mut out = Vec::new();
    let written = write_records(source(bytes), &scan, &options("%s "), &mut out).unwrap();
    assert_eq!((out.as_slice(), written.stats.records, written.next_offset), (b"".as_slice(), 0, None));
}

#[test]
fn an_output_that_fails_ends_the_work() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::other("the disk is full"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let failed = write_records(source(log()), &ScanOptions::default(), &options("jsonl"), &mut Full);
    assert!(failed.unwrap_err().to_string().contains("the disk is full"));
}

#[test]
fn the_line_of_a_batch_counts_the_records_that_follow() {
    let counts = |text: TextOptions| -> Vec<String> {
        let text = TextOptions { batches: true, ..text };
        let lines = written(&ScanOptions::default(), &text).0;
        let of_batches = lines.lines().filter_map(|line| line.split_once("\"record_count\": "));
        of_batches.map(|(_, count)| count.to_owned()).collect()
    };
    assert_eq!(counts(options("jsonl")), ["4}}", "1}}", "1}}"]);
    assert_eq!(counts(TextOptions { limit: Some(3), ..options("jsonl") }), ["3}}"]);
    assert_eq!(counts(TextOptions { key_pattern: Some(Pattern::equal("k1")), ..options("jsonl") }), ["1}}", "1}}"]);
}
