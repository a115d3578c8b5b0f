//! [`Key`]: the names of objects.
//!
//! ```text
//! <prefix><topic>-<topic id>/<partition>/<offset>-<segment id>.log
//!                                                             .indexes
//!                                                             .rsm-manifest
//! ```
//!
//! The prefix is the plugin's `key.prefix`, to which it adds no slash. Without a slash at its end, the prefix cannot
//! be distinguished from the topic. Ids may contain and begin with dashes, so keys are parsed from the right.
//!
//! Source: `ObjectKeyFactory` of the plugin.

use std::fmt;

use crate::io::Location;
use crate::log::Uuid;
use crate::store::TopicPartition;
use crate::tiered::name::{SegmentName, parse_id, split_id};

/// One of the three objects of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ObjectKind {
    /// `.log`: chunks of the segment.
    Log,
    /// `.indexes`: all its indexes.
    Indexes,
    /// `.rsm-manifest`: the description of the two others.
    Manifest,
}

impl ObjectKind {
    /// Every kind, in the order in which they are uploaded.
    pub const ALL: [Self; 3] = [Self::Log, Self::Indexes, Self::Manifest];

    /// The end of the key, including the dot.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Log => ".log",
            Self::Indexes => ".indexes",
            Self::Manifest => ".rsm-manifest",
        }
    }
}

/// A parsed key. Its `Display` is the key as the plugin writes it.
///
/// ```
/// use kbat::tiered::aiven::{Key, ObjectKind};
/// let text = "pre/fix/txn-lz4-3YgtfXGd5689qpzaf1ptwQ/0/00000000000000000004-ZZT7r_uYRUG-FHhH8m0_-w.log";
/// let key = Key::parse(text).unwrap();
/// assert_eq!((key.prefix.as_str(), key.topic.as_str(), key.partition), ("pre/fix/", "txn-lz4", 0));
/// assert_eq!(key.with_kind(ObjectKind::Log).to_string(), text);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The plugin's `key.prefix` up to its last slash, inclusive. If the setting does not end in a slash, its rest is
    /// at the start of `topic`.
    pub prefix: String,
    /// Name of the topic.
    pub topic: String,
    /// Id of the topic.
    pub topic_id: Uuid,
    /// Number of the partition.
    pub partition: i32,
    /// Start offset and id of the segment.
    pub segment: SegmentName,
    /// The object.
    pub kind: ObjectKind,
}

impl Key {
    /// Parses a key. Returns `None` for a key of another structure.
    #[must_use]
    pub fn parse(key: &str) -> Option<Self> {
        let (main, kind) =
            ObjectKind::ALL.into_iter().find_map(|kind| Some((key.strip_suffix(kind.suffix())?, kind)))?;
        let (directory, segment) = main.rsplit_once('/')?;
        let (directory, partition) = directory.rsplit_once('/')?;
        let (prefix, topic) = match directory.rfind('/').and_then(|slash| slash.checked_add(1)) {
            Some(start) => directory.split_at_checked(start)?,
            None => ("", directory),
        };
        let (topic, topic_id) = split_id(topic)?;
        let is_number = !partition.is_empty() && partition.bytes().all(|byte| byte.is_ascii_digit());
        Some(Self {
            prefix: prefix.to_owned(),
            topic: topic.to_owned(),
            topic_id,
            partition: partition.parse().ok().filter(|_| is_number)?,
            segment: SegmentName::parse(segment)?,
            kind,
        })
    }

    /// The key of another object of the same segment.
    #[must_use]
    pub fn with_kind(mut self, kind: ObjectKind) -> Self {
        self.kind = kind;
        self
    }

    /// Whether a key is that of a segment in Iceberg's format: `<segment id>.puffin` in the metadata of a table.
    #[must_use]
    pub fn is_iceberg(key: &str) -> bool {
        let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
        name.strip_suffix(".puffin").is_some_and(|id| parse_id(id).is_some())
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { prefix, topic, topic_id, partition, segment, kind } = self;
        write!(f, "{prefix}{topic}-{topic_id}/{partition}/{segment}{}", kind.suffix())
    }
}

/// The partition of a directory `<topic>-<topic id>/<partition>`.
pub(crate) fn aiven_partition(directory: &Location) -> Option<(TopicPartition, Uuid)> {
    let number = directory.name();
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let partition = number.parse().ok().filter(|_| is_number)?;
    let parent = directory.directory();
    let (topic, id) = split_id(parent.name())?;
    Some((TopicPartition { topic: topic.to_owned(), partition }, id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_round_trips() {
        for key in [
            "codec-none--R97PjuLacHABxEyAo4mAQ/0/00000000000000000000-L2DUrmbNS-6GwsU4tjMh0Q.rsm-manifest",
            "/t-R97PjuLacHABxEyAo4mAQA/12/00000000000000000000-L2DUrmbNS-6GwsU4tjMh0Q.indexes",
            "pre/fix/a-b-R97PjuLacHABxEyAo4mAQA/2147483647/09223372036854775807-_-DUrmbNS-6GwsU4tjMh0Q.log",
        ] {
            assert_eq!(Key::parse(key).unwrap().to_string(), key);
        }
    }

    #[test]
    fn key_of_another_structure_is_none() {
        let segment = "00000000000000000000-L2DUrmbNS-6GwsU4tjMh0Q";
        for key in [
            String::new(),
            format!("{segment}.log"),
            format!("0/{segment}.log"),
            format!("t/0/{segment}.log"),
            format!("t-R97PjuLacHABxEyAo4mAQA/x/{segment}.log"),
            format!("t-R97PjuLacHABxEyAo4mAQA/-1/{segment}.log"),
            format!("t-R97PjuLacHABxEyAo4mAQA/+1/{segment}.log"),
            format!("t-R97PjuLacHABxEyAo4mAQA/2147483648/{segment}.log"),
            format!("t-R97PjuLacHABxEyAo4mAQA/0/{segment}.timeindex"),
            format!("t-R97PjuLacHABxEyAo4mAQA/0/{segment}"),
            "t-R97PjuLacHABxEyAo4mAQA/0/00000000000000000000.log".to_owned(),
        ] {
            assert_eq!(Key::parse(&key), None, "{key}");
        }
    }

    #[test]
    fn key_of_an_iceberg_segment_is_recognized() {
        assert!(Key::is_iceberg("warehouse/db/topic/metadata/L2DUrmbNS-6GwsU4tjMh0Q.puffin"));
        assert!(Key::is_iceberg("L2DUrmbNS-6GwsU4tjMh0Q.puffin"));
        assert!(!Key::is_iceberg("warehouse/db/topic/metadata/stats.puffin"));
        assert!(!Key::is_iceberg("L2DUrmbNS-6GwsU4tjMh0Q.log"));
    }
}
