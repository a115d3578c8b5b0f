//! The topics and partitions of a read: `subscribe`, `subscribePattern` and `assign`, with the meaning that they have in
//! Spark's Kafka source.
//!
//! Differences from that source: a topic or partition that is named and not found is an error, and a pattern may not use
//! features that other regular expressions than Java's do not have.

use std::collections::BTreeSet;
use std::fmt;

use fancy_regex::Regex;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::plan::values::{Parsed, parse_names};
use crate::plural::some_of;

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
    ///
    /// # Errors
    /// An expression that takes too long.
    fn matches(&self, topic: &str) -> Result<bool> {
        if INTERNAL_TOPICS.contains(&topic) {
            return Ok(false);
        }
        self.0.is_match(topic).map_err(|error| {
            Error::argument(format!(
                "kbat: option subscribePattern='{}' can't be compared with the topic {topic}: {error}; write a simpler \
                 expression",
                self.0.as_str()
            ))
        })
    }
}

/// Classes of characters that only Java has, after their backslash, as sets.
const JAVA_CLASSES: [(&str, &str); 4] = [
    ("p{Alnum}", "[a-zA-Z0-9]"),
    ("P{Alnum}", "[^a-zA-Z0-9]"),
    ("p{XDigit}", "[a-fA-F0-9]"),
    ("P{XDigit}", "[^a-fA-F0-9]"),
];

/// Rewrites what Java writes in another way: quotes `\Q...\E`, the end `\Z`, and classes of characters.
fn from_java(pattern: &str) -> String {
    let mut out = String::new();
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let class = JAVA_CLASSES.iter().find(|(class, _)| after.starts_with(class));
        if let Some((class, set)) = class {
            out.push_str(set);
            rest = after.strip_prefix(class).unwrap_or(after);
        } else if let Some(after) = after.strip_prefix('Q') {
            let (quoted, unquoted) = after.split_once(r"\E").unwrap_or((after, ""));
            out.push_str(&fancy_regex::escape(quoted));
            rest = unquoted;
        } else if let Some(after) = after.strip_prefix('Z') {
            out.push_str(r"\z");
            rest = after;
        } else {
            let len = after.chars().next().map_or(0, char::len_utf8);
            let (escaped, unescaped) = after.split_at_checked(len).unwrap_or((after, ""));
            out.push('\\');
            out.push_str(escaped);
            rest = unescaped;
        }
    }
    out.push_str(rest);
    out
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
    ///
    /// # Errors
    /// A pattern that takes too long.
    pub(crate) fn includes(&self, partition: &PartitionName) -> Result<bool> {
        match (self, &partition.topic) {
            (Self::All, _) => Ok(true),
            (Self::Partitions(partitions), _) => Ok(partitions.contains(partition)),
            (Self::Topics(topics), Some(topic)) => Ok(topics.contains(topic)),
            (Self::Pattern(pattern), Some(topic)) => pattern.matches(topic),
            (Self::Topics(_) | Self::Pattern(_), None) => Ok(false),
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
        let names = some_of(&topics);
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

    fn a(partition: i32) -> PartitionName {
        PartitionName::new("a", partition)
    }

    /// The topics of some partitions that are selected.
    fn chosen(subscription: &Subscription, found: &[PartitionName]) -> Vec<PartitionName> {
        found.iter().filter(|partition| subscription.includes(partition).unwrap()).cloned().collect()
    }

    fn pattern(text: &str) -> Subscription {
        Subscription::Pattern(TopicPattern::parse(text).unwrap())
    }

    #[test]
    fn patterns_are_those_of_java() {
        let cases: &[(&str, &[&str], &[&str])] = &[
            ("orders", &["orders", "my-orders-2"], &["order"]), // anywhere, as in Spark's Kafka source
            ("^orders-.*", &["orders-1"], &["orders", "x-orders-1"]),
            (r"\Qa.b\E$", &["a.b", "xa.b"], &["axb"]),
            (r"^\Qa.b", &["a.bc"], &["axb"]),
            (r"^(?<first>.)\k<first>", &["aab"], &["aba"]),
            (r"^(?!test)", &["orders"], &["test"]),
            (r"^\p{Alpha}+$", &["abc"], &["a1"]),
            (r"^[\p{Digit}.]+$", &["1.2"], &["1a"]),
            (r"^[\p{Alnum}_]+$", &["a1_"], &["a-1"]),
            (r"^\P{Alnum}\p{XDigit}\P{XDigit}$", &["-ag"], &["aag", "-gg", "-aa"]),
            (r"^[\P{XDigit}]\p{Punct}$", &["g."], &["a.", "ga"]),
            (r"^\P{Upper}+\z", &["abc"], &["aBc"]),
            (r"^\p{Lower}+\Z", &["abc"], &["aBc"]),
            (r"^\p{IsAlphabetic}\p{Nd}$", &["a1"], &["1a"]),
            (r"^\p{L}\p{N}\p{Lu}\p{Ll}$", &["a1Bc"], &["a1bc"]),
            ("^[a-z&&[^b]]+$", &["ac"], &["ab"]),
            ("^[a[0-9]]+$", &["a1"], &["b1"]),
            ("^a|b$", &["ax", "xb"], &["xax"]),
            ("a{2}", &["aa"], &["a"]),
            ("^a++b$", &["aab"], &["ab-"]),
            (r"^\\Q|x", &["x"], &["Q"]),
        ];
        for (text, matching, other) in cases {
            let found: Vec<_> = matching.iter().chain(*other).map(|topic| PartitionName::new(topic, 0)).collect();
            let topics = chosen(&pattern(text), &found).into_iter().filter_map(|partition| partition.topic);
            assert_eq!(topics.collect::<Vec<_>>(), *matching, "{text}");
        }
        assert!(TopicPattern::parse("(").is_err() && TopicPattern::parse(" ").is_err());
    }

    #[test]
    fn patterns_never_match_internal_topics_or_files_without_a_topic() {
        let found = [PartitionName::new("__consumer_offsets", 0), PartitionName::default(), a(0)];
        assert_eq!(chosen(&pattern(".*"), &found), [a(0)]);
        assert_eq!(chosen(&pattern("^__"), &[PartitionName::new("__mine", 0)]).len(), 1);
    }

    #[test]
    fn patterns_that_take_too_long_are_errors() {
        let slow = pattern("(?i)(a|b|ab)*(?>c)");
        let error = slow.includes(&PartitionName::new(&"ab".repeat(100), 0)).unwrap_err().to_string();
        assert!(
            error.contains("can't be compared with the topic abab") && error.ends_with("write a simpler expression")
        );
    }

    #[test]
    fn subscriptions_select_partitions() {
        let b = PartitionName::new("b", 0);
        let internal = PartitionName::new("__consumer_offsets", 3);
        let found = [a(0), a(1), b.clone(), internal.clone(), PartitionName::default()];
        assert_eq!(chosen(&Subscription::All, &found), found);
        assert_eq!(chosen(&Subscription::Topics(vec!["a".to_owned()]), &found), [a(0), a(1)]);
        assert_eq!(chosen(&Subscription::Topics(vec!["__consumer_offsets".to_owned()]), &found), [internal]);
        let some = parse_assign(r#"{"a": [1], "b": [0]}"#).unwrap();
        assert_eq!(chosen(&Subscription::Partitions(some), &found), [a(1), b]);
    }

    #[test]
    fn what_is_named_and_not_found_is_an_error() {
        let found = BTreeSet::from([a(0), a(1), PartitionName::new("b", 0)]);
        let check = |subscription: Subscription| subscription.check(&found).unwrap_err().to_string();
        let topics = Subscription::Topics(["a", "c", "d"].map(str::to_owned).to_vec());
        assert!(check(topics).starts_with("kbat: c, d are not under the path; topics found: a, b;"));
        assert!(check(Subscription::Partitions(vec![a(0), a(2)])).starts_with("kbat: a-2 is not under the path"));
        let nothing = Subscription::Topics(vec!["a".to_owned()]).check(&BTreeSet::new()).unwrap_err();
        assert!(nothing.to_string().contains("topics found: none"));
        assert!(Subscription::All.check(&BTreeSet::new()).is_ok());
    }

    #[test]
    fn topics_are_named_once() {
        assert_eq!(parse_topics(" a, b,a").unwrap(), ["a", "b"]);
        assert!(parse_topics(",").unwrap_err().starts_with("is empty"));
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
