//! Where a read starts and ends: the bounds of Spark's Kafka source, their JSON forms and their precedence.
//!
//! ```text
//! startingTimestamp  before  startingOffsetsByTimestamp  before  startingOffsets  before  the default
//! endingTimestamp    before  endingOffsetsByTimestamp    before  endingOffsets    before  latest
//! ```
//!
//! In a batch read, `startingTimestamp` and `endingTimestamp` filter rows: a read returns the records with starting <=
//! timestamp < ending, and those without a timestamp are in no such range. Times in JSON, and the start of a stream,
//! become offsets: that of the first record, in the order of the log, whose timestamp is not before the time. In JSON of
//! offsets, -2 is earliest and -1 latest. JSON names every partition that is read.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::error::{Error, Result};
use crate::plan::topics::PartitionName;
use crate::plan::values::{Parsed, checked_milliseconds, parse_timestamp};
use crate::plural::some_of;

/// The offset that means the log's start.
pub(crate) const EARLIEST: i64 = -2;
/// The offset that means the log's end.
pub(crate) const LATEST: i64 = -1;

/// A number for each of some partitions.
pub(crate) type ByPartition = BTreeMap<PartitionName, i64>;

/// Where a read starts or ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bound {
    /// The start of each log.
    Earliest,
    /// The end of each log.
    Latest,
    /// An offset for each partition; -2 is earliest and -1 latest.
    Offsets(ByPartition),
    /// The same time for every partition, in milliseconds since the epoch.
    Timestamp(i64),
    /// A time for each partition, in milliseconds since the epoch.
    Timestamps(ByPartition),
}

/// Parses `startingOffsets` or `endingOffsets`.
pub(crate) fn parse_offsets(text: &str) -> Parsed<Bound> {
    match text.trim().to_lowercase().as_str() {
        "earliest" => return Ok(Bound::Earliest),
        "latest" => return Ok(Bound::Latest),
        _ => {}
    }
    let form = r#"must be earliest, latest, or JSON like {"orders": {"0": 23, "1": -2}} with -2 for earliest and -1 for latest"#;
    let offset = |value: &Value| Ok(value.as_i64().filter(|offset| *offset >= EARLIEST));
    parse_json(text, offset, form).map(Bound::Offsets)
}

/// Parses `startingOffsetsByTimestamp` or `endingOffsetsByTimestamp`.
pub(crate) fn parse_timestamps(text: &str) -> Parsed<Bound> {
    let form = r#"must be JSON like {"orders": {"0": 1700000000000}} in milliseconds since 1970, UTC, or with text that has a zone, like {"orders": {"0": "2026-11-22T00:00:00Z"}}"#;
    let time = |value: &Value| match value {
        Value::String(text) => parse_timestamp(text).map(Some),
        _ => value.as_i64().filter(|number| *number >= 0).map(checked_milliseconds).transpose(),
    };
    parse_json(text, time, form).map(Bound::Timestamps)
}

/// Parses one value per partition. `parse` returns `None` for a value that does not have the form.
fn parse_json(text: &str, parse: impl Fn(&Value) -> Parsed<Option<i64>>, form: &str) -> Parsed<ByPartition> {
    let form = || form.to_owned();
    let topics: BTreeMap<String, BTreeMap<String, Value>> = serde_json::from_str(text).map_err(|_| form())?;
    let mut found = ByPartition::new();
    for (topic, numbers) in &topics {
        for (number, value) in numbers {
            let number = number.trim().parse().map_err(|_| form())?;
            let value = parse(value)?.ok_or_else(form)?;
            found.insert(PartitionName::new(topic, number), value);
        }
    }
    if found.is_empty() { Err(form()) } else { Ok(found) }
}

/// Offsets in Kafka's JSON form, sorted.
pub(crate) fn offsets_json(offsets: &ByPartition) -> String {
    let mut topics: BTreeMap<&str, BTreeMap<String, i64>> = BTreeMap::new();
    for (name, offset) in offsets {
        if let (Some(topic), Some(partition)) = (&name.topic, name.partition) {
            topics.entry(topic).or_default().insert(partition.to_string(), *offset);
        }
    }
    serde_json::to_string(&topics).unwrap_or_else(|_| "{}".to_owned())
}

/// The offsets that [`offsets_json`] wrote.
pub(crate) fn offsets_of_json(text: &str) -> Result<ByPartition> {
    let wrong = || Error::argument(format!("kbat: the offsets of a stream have another form: {text}"));
    let topics: BTreeMap<String, BTreeMap<String, i64>> = serde_json::from_str(text).map_err(|_| wrong())?;
    let mut offsets = ByPartition::new();
    for (topic, numbers) in &topics {
        for (number, offset) in numbers {
            offsets.insert(PartitionName::new(topic, number.parse().map_err(|_| wrong())?), *offset);
        }
    }
    Ok(offsets)
}

/// Checks bounds by the rules of a batch read.
pub(crate) fn check_batch_bounds(start: Option<&Bound>, end: Option<&Bound>) -> Result<()> {
    let has = |bound: Option<&Bound>, word: &Bound, number: i64| match bound {
        Some(Bound::Offsets(of)) => of.values().any(|offset| *offset == number),
        Some(bound) => bound == word,
        None => false,
    };
    if has(start, &Bound::Latest, LATEST) {
        let message = "kbat: startingOffsets can't be latest in a batch read: nothing comes after it; write earliest";
        return Err(Error::argument(message));
    }
    if has(end, &Bound::Earliest, EARLIEST) {
        let message = "kbat: endingOffsets can't be earliest in a batch read: nothing comes before it; write latest";
        return Err(Error::argument(message));
    }
    match (start, end) {
        (Some(Bound::Timestamp(start)), Some(Bound::Timestamp(end))) if start > end => Err(Error::argument(format!(
            "kbat: startingTimestamp {start} is after endingTimestamp {end}: no record is between"
        ))),
        (Some(Bound::Offsets(starts)), Some(Bound::Offsets(ends))) => check_order(starts, ends, "offset"),
        (Some(Bound::Timestamps(starts)), Some(Bound::Timestamps(ends))) => check_order(starts, ends, "timestamp"),
        _ => Ok(()),
    }
}

fn check_order(starts: &ByPartition, ends: &ByPartition, what: &str) -> Result<()> {
    let (in_starts, in_ends): (BTreeSet<_>, BTreeSet<_>) = (starts.keys().collect(), ends.keys().collect());
    let different: Vec<String> = in_starts.symmetric_difference(&in_ends).map(ToString::to_string).collect();
    if !different.is_empty() {
        return Err(Error::argument(format!(
            "kbat: starting and ending {what}s name different partitions; only one of them has {}",
            different.join(", ")
        )));
    }
    for (partition, first) in starts {
        if let Some(last) = ends.get(partition).filter(|last| (0..*first).contains(*last)) {
            return Err(Error::argument(format!(
                "kbat: starting {what} {first} of {partition} is greater than its ending {what} {last}"
            )));
        }
    }
    Ok(())
}

/// Refuses JSON that does not name exactly the partitions that are read.
pub(crate) fn check_names_all(name: &str, bound: &Bound, partitions: &[&PartitionName]) -> Result<()> {
    let (of, what, unset) = match bound {
        Bound::Offsets(of) => (of, "offsets", "-2 is earliest and -1 latest"),
        Bound::Timestamps(of) => (of, "timestamps", "0 is before all records"),
        _ => return Ok(()),
    };
    let missing: Vec<_> = partitions.iter().filter(|partition| !of.contains_key(**partition)).collect();
    let extra: Vec<_> = of.keys().filter(|partition| !partitions.contains(partition)).collect();
    if missing.is_empty() && extra.is_empty() {
        return Ok(());
    }
    let mut parts = Vec::new();
    if !missing.is_empty() {
        parts.push(format!("{} {} missing", some_of(&missing), crate::plan::topics::are(missing.len())));
    }
    if !extra.is_empty() {
        parts.push(format!("{} {} not read", some_of(&extra), crate::plan::topics::are(extra.len())));
    }
    Err(Error::argument(format!(
        "kbat: JSON of {name} {what} must name every partition that is read, and no other: {} ({unset})",
        parts.join("; ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_partition(values: &[(&str, i32, i64)]) -> ByPartition {
        values.iter().map(|(topic, partition, value)| (PartitionName::new(topic, *partition), *value)).collect()
    }

    #[test]
    fn offsets_have_three_forms() {
        assert_eq!(parse_offsets(" Earliest "), Ok(Bound::Earliest));
        assert_eq!(parse_offsets("LATEST"), Ok(Bound::Latest));
        let offsets = by_partition(&[("a", 0, -2), ("a", 1, -1), ("b", 0, 5)]);
        assert_eq!(parse_offsets(r#"{"b": {"0": 5}, "a": {"1": -1, "0": -2}}"#), Ok(Bound::Offsets(offsets)));
    }

    #[test]
    fn wrong_offsets_are_refused_with_the_forms() {
        for text in [
            "first",
            "",
            "5",
            "{}",
            r#"{"a": {}}"#,
            r#"{"a": 5}"#,
            r#"{"a": {"x": 5}}"#,
            r#"{"a": {"0": -3}}"#,
            r#"{"a": {"0": true}}"#,
            r#"{"a": {"0": "5"}}"#,
            r#"{"a": {"0": 1.5}}"#,
            r#"{"a": {"0": 9223372036854775808}}"#,
        ] {
            let form = parse_offsets(text).unwrap_err();
            assert!(
                form.starts_with(r#"must be earliest, latest, or JSON like {"orders": {"0": 23, "1": -2}}"#),
                "{text}"
            );
        }
    }

    #[test]
    fn times_are_milliseconds_or_text_with_a_zone() {
        let at = |value: &str| parse_timestamps(&format!(r#"{{"a": {{"0": {value}}}}}"#));
        for (value, milliseconds) in [
            ("0", 0),
            ("100000000000", 100_000_000_000),
            (r#""2026-11-22T00:00:00Z""#, 1_795_305_600_000),
            (r#""2026-11-22T01:00:00.250+01:00""#, 1_795_305_600_250),
            (r#"" 2026-11-22 00:00:00+00:00 ""#, 1_795_305_600_000),
            (r#""1970-01-01T00:00:01Z""#, 1000),
        ] {
            assert_eq!(at(value), Ok(Bound::Timestamps(by_partition(&[("a", 0, milliseconds)]))), "{value}");
        }
        for wrong in ["-1", "true", "1.5", "null", "{}"] {
            assert!(at(wrong).unwrap_err().starts_with("must be JSON like"), "{wrong}");
        }
        assert!(at("1700000000").unwrap_err().contains("write 1700000000000"));
        assert!(at(r#""2026-11-22""#).unwrap_err().starts_with("has no time zone; write 2026-11-22T00:00:00Z if"));
        assert!(parse_timestamps("1700000000000").is_err() && parse_timestamps(r#"["a"]"#).is_err());
    }

    #[test]
    fn offsets_are_written_sorted_and_read_again() {
        let offsets = by_partition(&[("b", 0, 7), ("a", 1, 0), ("a", 0, 23)]);
        let written = offsets_json(&offsets);
        assert_eq!(written, r#"{"a":{"0":23,"1":0},"b":{"0":7}}"#);
        assert_eq!(offsets_of_json(&written).unwrap(), offsets);
        assert!(offsets_of_json(r#"{"a": {"x": 0}}"#).is_err() && offsets_of_json("[]").is_err());
    }

    #[test]
    fn json_names_all_partitions_that_are_read() {
        let (first, second) = (PartitionName::new("a", 0), PartitionName::new("a", 1));
        let check = |bound: &Bound| check_names_all("starting", bound, &[&first, &second]);
        let offsets = |values: &[(&str, i32, i64)]| Bound::Offsets(by_partition(values));
        assert!(check(&offsets(&[("a", 0, 0), ("a", 1, 0)])).is_ok() && check(&Bound::Latest).is_ok());
        let error = check(&offsets(&[("a", 0, 0), ("a", 2, 0)])).unwrap_err().to_string();
        assert!(error.ends_with("a-1 is missing; a-2 is not read (-2 is earliest and -1 latest)"), "{error}");
        let times = Bound::Timestamps(by_partition(&[("b", 0, 0), ("b", 1, 0)]));
        let error = check(&times).unwrap_err().to_string();
        assert!(error.ends_with("a-0, a-1 are missing; b-0, b-1 are not read (0 is before all records)"), "{error}");
    }
}
