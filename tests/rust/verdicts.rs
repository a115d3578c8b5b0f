//! Compares the results of Kafka and kbat on 1556 buffers, most of them damaged.
//!
//! Kafka's steps: frame, check the checksum, iterate, check each message's checksum, read key, value and headers. kbat
//! does the same with its own calls; outcome, number of records before the error and the records must be Kafka's. The
//! one exception, zeros up to the end, is in docs/differences.md.

use std::fmt::Write as _;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kbat::{Batch, ControlRecord, Limits, Record, Scratch};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::data::{base64, data_dir, from_base64, headers_json, json_lines};

/// The result of reading a buffer.
#[derive(Default)]
struct Verdict {
    records: Vec<Value>,
    error: Option<kbat::Error>,
}

fn consume(bytes: &[u8]) -> Verdict {
    let mut verdict = Verdict::default();
    let (mut scratch, limits) = (Scratch::new(), Limits::default());
    for batch in kbat::batches(bytes) {
        let result = batch.and_then(|batch| consume_batch(&batch, &mut scratch, &limits, &mut verdict.records));
        if let Err(error) = result {
            verdict.error = Some(error);
            break;
        }
    }
    verdict
}

fn consume_batch(
    batch: &Batch<'_>,
    scratch: &mut Scratch,
    limits: &Limits,
    records: &mut Vec<Value>,
) -> kbat::Result<()> {
    batch.verify_crc()?;
    for record in batch.records(scratch, limits)? {
        let record = record?;
        record.verify_crc()?;
        records.push(record_json(batch, &record)?);
    }
    Ok(())
}

/// A record as the answers write it.
fn record_json(batch: &Batch<'_>, record: &Record<'_>) -> kbat::Result<Value> {
    let mut line = json!({
        "offset": record.offset(),
        "timestamp": record.timestamp(),
        "key": base64(record.key()),
        "value": base64(record.value()),
        "headers": headers_json(record)?,
        "sequence": record.sequence(),
    });
    if batch.is_control() {
        // parsing a control record does not decide whether the record is read
        line["control"] = match ControlRecord::parse(record) {
            Ok(control) => control_json(&control),
            Err(error) => json!({"error": error.to_string()}),
        };
    }
    Ok(line)
}

fn control_json(control: &ControlRecord) -> Value {
    match control {
        ControlRecord::Abort { coordinator_epoch } | ControlRecord::Commit { coordinator_epoch } => {
            json!({"type": control.type_name(), "epoch": coordinator_epoch})
        }
        ControlRecord::Unknown { .. } => json!({"type": "UNKNOWN"}),
        _ => json!({"type": control.type_name()}),
    }
}

/// One record in the canonical form that the answers hash.
fn canonical(record: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let mut headers = String::new();
    for pair in record["headers"].as_array().unwrap() {
        let comma = if headers.is_empty() { "" } else { "," };
        let key = STANDARD.encode(pair[0].as_str().unwrap());
        write!(headers, "{comma}{key}:{}", text(&pair[1])).unwrap();
    }
    format!(
        "{}\t{}\t{}\t{}\t{headers}\t{}\n",
        record["offset"],
        record["timestamp"],
        text(&record["key"]),
        text(&record["value"]),
        record["sequence"]
    )
}

fn sha256(records: &[Value]) -> String {
    let mut hash = Sha256::new();
    for record in records {
        hash.update(canonical(record));
    }
    hash.finalize().iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

/// The difference between kbat and Kafka, or `None`.
fn disagreement(line: &Value, verdict: &Verdict) -> Option<String> {
    let refused = line["outcome"] == "error";
    if refused != verdict.error.is_some() {
        let error = verdict.error.as_ref().map(ToString::to_string);
        return Some(format!("Kafka: {} {}, kbat: {error:?}", line["outcome"], line["message"]));
    }
    if line["count"].as_u64() != Some(verdict.records.len() as u64) {
        let error = verdict.error.as_ref().map(ToString::to_string);
        return Some(format!(
            "Kafka: {} records {}, kbat: {} {error:?}",
            line["count"],
            line["message"],
            verdict.records.len()
        ));
    }
    if let Some(hash) = line["sha256"].as_str() {
        return (hash != sha256(&verdict.records)).then(|| "other records".to_owned());
    }
    let expected = line["records"].as_array().unwrap();
    verdict.records.iter().zip(expected).find_map(|(found, expected)| record_disagreement(found, expected))
}

fn record_disagreement(found: &Value, expected: &Value) -> Option<String> {
    let same = ["offset", "timestamp", "key", "value", "headers", "sequence"]
        .iter()
        .all(|field| found[field] == expected[field]);
    if !same {
        return Some(format!("{found} is not {expected}"));
    }
    let control = &found["control"];
    let type_agrees = expected["controlType"].is_null()
        || control["type"] == expected["controlType"]
        || !control["error"].is_null() && expected["coordinatorEpoch"].is_null();
    let epoch_agrees = expected["coordinatorEpoch"].is_null() || control["epoch"] == expected["coordinatorEpoch"];
    let error_agrees = expected["controlError"].is_null() || !control["error"].is_null();
    (!type_agrees || !epoch_agrees || !error_agrees).then(|| format!("{control} is not {expected}"))
}

/// The buffers that end in zeros: Kafka treats 18 or more as a broken size field, kbat as a preallocated tail.
fn ends_in_zeros(line: &Value) -> bool {
    line["mutation"].as_str().unwrap().starts_with("zeros after the set")
        && line["message"] == "Record size 0 is less than the minimum record overhead (14)"
}

fn verdict_lines() -> Vec<Value> {
    let lines = json_lines(&data_dir().join("corpus/verdicts/verdicts.jsonl"));
    assert_eq!(lines.len(), 1556);
    lines
}

#[test]
fn verdicts_on_damaged_buffers_are_those_of_kafka() {
    let mut disagreements = Vec::new();
    let mut refused = 0;
    for line in verdict_lines().iter().filter(|line| !ends_in_zeros(line)) {
        let verdict = consume(&from_base64(&line["bytes"]).unwrap());
        refused += usize::from(verdict.error.is_some());
        if let Some(what) = disagreement(line, &verdict) {
            disagreements.push(format!("{} {}: {what}", line["name"], line["mutation"]));
        }
    }
    assert!(disagreements.is_empty(), "{}:\n{}", disagreements.len(), disagreements.join("\n"));
    assert_eq!(refused, 957 - ZERO_TAILS);
}

/// The number of buffers with zeros at the end that Kafka rejects.
const ZERO_TAILS: usize = 19;

#[test]
fn verdicts_on_zero_tails_are_a_clean_end() {
    let lines = verdict_lines();
    let zero_tails: Vec<_> = lines.iter().filter(|line| ends_in_zeros(line)).collect();
    assert_eq!(zero_tails.len(), ZERO_TAILS);
    for line in zero_tails {
        let bytes = from_base64(&line["bytes"]).unwrap();
        let verdict = consume(&bytes);
        assert!(verdict.error.is_none(), "{}", line["name"]);
        assert_eq!(line["count"].as_u64(), Some(verdict.records.len() as u64), "{}", line["name"]);
        let mut walk = kbat::batches(&bytes);
        assert!(walk.by_ref().all(|batch| batch.is_ok()));
        assert!(walk.remainder().len() >= 16 && walk.remainder().iter().all(|&byte| byte == 0), "{}", line["name"]);
    }
}
