//! The topics and partitions of a read: `subscribe`, `subscribePattern` and `assign`, with the meaning that they have in
//! Spark's Kafka source.
//!
//! Differences from that source: a topic or partition that is named and not found is an error, and a pattern may not use
//! what only Java's regular expressions have.

use std::collections::BTreeSet;
use std::fmt;

use fancy_regex::Regex;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::plan::options::values::{Parsed, parse_names};

/// Kafka's own topics, which a pattern never matches; to read them, name them.
const INTERNAL_TOPICS: [&str; 4] =
    ["__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"];

/// A topic and a partition; both `None` for files outside a `<topic>-<partition>` directory.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionName {
    /// The topic.
    pub topic: Option<String>,
    /// The partition.
    pub partition: Option<i32>,
}

impl PartitionName {
    pub(crate) fn new(topic: &str, partition: i32) -> Self {
        Self { topic: Some(topic.to_owned()), partition: Some(partition) }
    }
}

impl fmt::Display for PartitionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.topic, self.partition) {
            (Some(topic), Some(partition)) => write!(f, "{topic}-{partition}"),
            (Some(topic), None) => write!(f, "{topic}"),
            _ => f.write_str("files without a topic"),
        }
    }
}

/// Names for a message: the first ten, and the number of the others.
pub(crate) fn some_of<T: fmt::Display>(names: &[T]) -> String {
    const MOST: usize = 10;
    let shown: Vec<String> = names.iter().take(MOST).map(ToString::to_string).collect();
    let more = names.len().saturating_sub(MOST);
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}

/// "is" or "are".
pub(crate) fn are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// A regular expression over names of topics.
#[derive(Debug, Clone)]
pub(crate) struct TopicPattern(Regex);

impl PartialEq for TopicPattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl TopicPattern {
    /// Parses a Java expression that matches anywhere in the topic's name, as in Spark's source.
    pub(crate) fn parse(text: &str) -> Parsed<Self> {
        if text.trim().is_empty() {
            return Err("is empty; must be a regular expression, like orders-.*".to_owned());
        }
        Regex::new(&from_java(text.trim())).map(Self).map_err(|error| {
            let reason = error.to_string().replace('\n', " ");
            format!("is not a regular expression that kbat supports: {reason}")
        })
    }

    /// Whether a topic matches. Kafka's own topics never do.
    fn matches(&self, topic: &str) -> bool {
        !INTERNAL_TOPICS.contains(&topic) && self.0.is_match(topic).unwrap_or(false)
    }
}

/// Rewrites what Java writes in another way: quotes `\Q...\E`, and the end `\Z`.
fn from_java(pattern: &str) -> String {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once(r"\Q") {
        out.push_str(before);
        let (quoted, behind) = after.split_once(r"\E").unwrap_or((after, ""));
        out.push_str(&fancy_regex::escape(quoted));
        rest = behind;
    }
    out.push_str(rest);
    out.replace(r"\Z", r"\z")
}

/// The partitions that `subscribe`, `subscribePattern` or `assign` selects; all if none of them is set.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Subscription {
    /// All partitions.
    #[default]
    All,
    /// The partitions of these topics.
    Topics(Vec<String>),
    /// The partitions of the topics that match.
    Pattern(TopicPattern),
    /// These partitions.
    Partitions(Vec<PartitionName>),
}

impl Subscription {
    /// Whether a partition is selected.
    pub(crate) fn includes(&self, partition: &PartitionName) -> bool {
        match self {
            Self::All => true,
            Self::Topics(topics) => partition.topic.as_ref().is_some_and(|topic| topics.contains(topic)),
            Self::Pattern(pattern) => partition.topic.as_ref().is_some_and(|topic| pattern.matches(topic)),
            Self::Partitions(partitions) => partitions.contains(partition),
        }
    }

    /// Refuses a topic or partition that is named and not among those found.
    pub(crate) fn check(&self, found: &BTreeSet<PartitionName>) -> Result<()> {
        let topics: BTreeSet<&String> = found.iter().filter_map(|partition| partition.topic.as_ref()).collect();
        let missing: Vec<String> = match self {
            Self::Partitions(partitions) => {
                partitions.iter().filter(|partition| !found.contains(*partition)).map(ToString::to_string).collect()
            }
            Self::Topics(names) => names.iter().filter(|topic| !topics.contains(topic)).cloned().collect(),
            Self::All | Self::Pattern(_) => Vec::new(),
        };
        if missing.is_empty() {
            return Ok(());
        }
        let topics: Vec<&String> = topics.into_iter().collect();
        let names = if topics.is_empty() { "none".to_owned() } else { some_of(&topics) };
        Err(Error::argument(format!(
            "kbat: {} {} not under the path; topics found: {names}; a partition is a directory <topic>-<partition>, \
             which may be on another broker or disk",
            some_of(&missing),
            are(missing.len())
        )))
    }
}

/// Parses `subscribe`: topics separated by commas.
pub(crate) fn parse_topics(text: &str) -> Parsed<Vec<String>> {
    let mut topics = parse_names(text)?;
    let mut seen = BTreeSet::new();
    topics.retain(|topic| seen.insert(topic.clone()));
    Ok(topics)
}

/// Parses `assign`: `{"topic": [0, 1]}`.
pub(crate) fn parse_assign(text: &str) -> Parsed<Vec<PartitionName>> {
    let form = || r#"must be JSON like {"orders": [0, 1], "payments": [0]}"#.to_owned();
    let Ok(Value::Object(topics)) = serde_json::from_str(text) else { return Err(form()) };
    let mut partitions = Vec::new();
    for (topic, numbers) in topics {
        let numbers = numbers.as_array().filter(|numbers| !numbers.is_empty()).ok_or_else(form)?;
        for number in numbers {
            let number = number.as_i64().and_then(|number| i32::try_from(number).ok()).filter(|number| *number >= 0);
            let partition = PartitionName::new(&topic, number.ok_or_else(form)?);
            if !partitions.contains(&partition) {
                partitions.push(partition);
            }
        }
    }
    if partitions.is_empty() { Err(form()) } else { Ok(partitions) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, topic: &str) -> bool {
        TopicPattern::parse(pattern).unwrap().matches(topic)
    }

    #[test]
    fn patterns_match_anywhere_and_never_internal_topics() {
        assert!(matches("orders-.*", "my-orders-eu") && !matches("^orders", "my-orders"));
        assert!(matches(r"\Qa.b\E$", "a.b") && !matches(r"\Qa.b\E", "axb"));
        assert!(matches(r"(?<x>a)\k<x>", "aa") && matches(r"^(?!test)", "orders") && !matches("^(?!test)", "test"));
        assert!(!matches(".*", "__consumer_offsets") && matches(".*", "__mine"));
        assert!(TopicPattern::parse("(").is_err() && TopicPattern::parse(" ").is_err());
    }

    #[test]
    fn assign_names_partitions() {
        let partitions = parse_assign(r#"{"a": [1, 0, 1]}"#).unwrap();
        assert_eq!(partitions, [PartitionName::new("a", 1), PartitionName::new("a", 0)]);
        for wrong in ["", "[]", "{}", r#"{"a": []}"#, r#"{"a": [-1]}"#, r#"{"a": [true]}"#, r#"{"a": 0}"#] {
            assert!(parse_assign(wrong).is_err(), "{wrong}");
        }
    }
}
