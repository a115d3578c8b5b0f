//! Names of partition directories and segment files.
//!
//! ```text
//! <topic>-<partition>                      partition directory; the topic may hold dashes and dots
//! <topic>-<partition>.<32 hex>-delete      to be deleted, likewise -future and -stray
//! 00000000000000000042.log                 segment whose base offset is 42
//! ```
//!
//! Source: `LocalLog.parseTopicPartitionName` and `LogFileUtils` of Kafka.

/// Longest topic name that Kafka takes.
const MAX_TOPIC_LEN: usize = 249;

/// A topic and one of its partitions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// Name of the topic.
    pub topic: String,
    /// Number of the partition, from 0.
    pub partition: i32,
}

/// Topic and partition of a partition directory's name; `None` for any other name, and for directories that are about to be
/// deleted, moved or were left behind.
///
/// ```
/// let parsed = kbat::parse_partition_directory("page-views.v2-11").unwrap();
/// assert_eq!((parsed.topic.as_str(), parsed.partition), ("page-views.v2", 11));
/// assert!(kbat::parse_partition_directory("page-views-0.0123456789abcdef0123456789abcdef-delete").is_none());
/// ```
#[must_use]
pub fn parse_partition_directory(name: &str) -> Option<TopicPartition> {
    let (topic, digits) = name.rsplit_once('-')?;
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if topic.is_empty() || topic.len() > MAX_TOPIC_LEN || !topic.chars().all(legal) {
        return None;
    }
    if digits.is_empty() || !digits.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    Some(TopicPartition { topic: topic.to_owned(), partition: digits.parse().ok()? })
}

/// Base offset of a segment's `.log` file from its name; `None` for any other name.
///
/// ```
/// assert_eq!(kbat::parse_base_offset("00000000000000000042.log"), Some(42));
/// assert_eq!(kbat::parse_base_offset("00000000000000000042.log.deleted"), None);
/// ```
#[must_use]
pub fn parse_base_offset(name: &str) -> Option<i64> {
    let digits = name.strip_suffix(".log")?;
    if digits.is_empty() || !digits.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partition_directory_topic_may_have_dashes_and_dots() {
        for (name, topic, partition) in
            [("a-0", "a", 0), ("a-b.c-12", "a-b.c", 12), ("__consumer_offsets-49", "__consumer_offsets", 49)]
        {
            let parsed = parse_partition_directory(name).unwrap();
            assert_eq!((parsed.topic.as_str(), parsed.partition), (topic, partition));
        }
    }

    #[test]
    fn partition_directory_other_names_are_none() {
        for name in ["", "-", "topic", "-0", "topic-", "topic-x", "topic--", "t\u{fc}pic-0", "a-99999999999"] {
            assert_eq!(parse_partition_directory(name), None, "{name}");
        }
    }

    #[test]
    fn base_offset_other_names_are_none() {
        for name in
            ["", ".log", "x.log", "0.index", "-1.log", "00000000000000000000.log.swap", "99999999999999999999.log"]
        {
            assert_eq!(parse_base_offset(name), None, "{name}");
        }
    }
}
