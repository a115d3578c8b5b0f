//! The layout of Kafka's `LocalTieredStorage`, which Strimzi's backups and others follow.
//!
//! ```text
//! <topic>-<partition>-<topic id>/                     directory of a partition
//!     <offset>-<segment id>.log                       Kafka's segment, byte for byte
//!     <offset>-<segment id>.index .timeindex .txnindex
//!     <offset>-<segment id>.snapshot                  producers at the END of this segment
//!     <offset>-<segment id>.leader_epoch_checkpoint   leader epochs up to the end of this segment
//! ```
//!
//! Offsets have 20 digits, ids 22 characters. The `.txnindex` is missing if no transaction was aborted. A
//! `.snapshot` is the file that a broker names after the *next* segment's base offset.
//!
//! Source: `RemoteLogSegmentFileset` and `RemoteTopicPartitionDirectory` of Kafka.

use crate::log::Uuid;
use crate::store::{TopicPartition, parse_partition_directory};
use crate::tiered::name::{SegmentName, split_id};

/// A parsed directory name: the partition, and the topic's id.
///
/// ```
/// let directory = kbat::tiered::local::Directory::parse("orders-0-gZr7LNvRQaeTZzSyD2PJ2A").unwrap();
/// assert_eq!((directory.partition.topic.as_str(), directory.partition.partition), ("orders", 0));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Directory {
    /// The topic and the number of the partition.
    pub partition: TopicPartition,
    /// The id of the topic. Topics that were created again under the same name differ in it.
    pub topic_id: Uuid,
}

impl Directory {
    /// Parses `<topic>-<partition>-<topic id>`. Returns `None` for any other name, such as the name of a broker's
    /// partition directory.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let (partition, topic_id) = split_id(name)?;
        Some(Self { partition: parse_partition_directory(partition)?, topic_id })
    }
}

/// The contents of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum FileKind {
    /// `.log`: record batches.
    Log,
    /// `.index`: offset index.
    OffsetIndex,
    /// `.timeindex`: time index.
    TimeIndex,
    /// `.txnindex`: aborted transactions.
    TransactionIndex,
    /// `.snapshot`: the state of producers at the end of the segment.
    ProducerSnapshot,
    /// `.leader_epoch_checkpoint`: the leader epochs up to the end of the segment.
    LeaderEpochs,
}

impl FileKind {
    /// Every kind, `.log` first.
    pub const ALL: [Self; 6] = [
        Self::Log,
        Self::OffsetIndex,
        Self::TimeIndex,
        Self::TransactionIndex,
        Self::ProducerSnapshot,
        Self::LeaderEpochs,
    ];

    /// The part of the file name after the segment's name, including the dot.
    #[must_use]
    pub const fn suffix(self) -> &'static str {
        match self {
            Self::Log => ".log",
            Self::OffsetIndex => ".index",
            Self::TimeIndex => ".timeindex",
            Self::TransactionIndex => ".txnindex",
            Self::ProducerSnapshot => ".snapshot",
            Self::LeaderEpochs => ".leader_epoch_checkpoint",
        }
    }
}

/// Parses the name of a segment's file. Returns `None` for any other name.
///
/// ```
/// use kbat::tiered::local::{FileKind, parse_file};
/// let (name, kind) = parse_file("00000000000000000200-mVo54sbgQQuo3hYiBHTh5A.leader_epoch_checkpoint").unwrap();
/// assert_eq!((name.start_offset, kind), (200, FileKind::LeaderEpochs));
/// ```
#[must_use]
pub fn parse_file(name: &str) -> Option<(SegmentName, FileKind)> {
    // ids contain no dot
    let (segment, suffix) = name.split_at_checked(name.find('.')?)?;
    let kind = FileKind::ALL.into_iter().find(|kind| kind.suffix() == suffix)?;
    Some((SegmentName::parse(segment)?, kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_topic_and_id_may_have_dashes() {
        let parsed = Directory::parse("a-b.c-12--R97PjuLacHABxEyAo4mAQ").unwrap();
        assert_eq!((parsed.partition.topic.as_str(), parsed.partition.partition), ("a-b.c", 12));
        assert_eq!(parsed.topic_id.to_string(), "-R97PjuLacHABxEyAo4mAQ");
    }

    #[test]
    fn directory_other_names_are_none() {
        for name in ["", "orders-0", "orders-gZr7LNvRQaeTZzSyD2PJ2A", "orders-x-gZr7LNvRQaeTZzSyD2PJ2A", "0-a"] {
            assert_eq!(Directory::parse(name), None, "{name}");
        }
    }

    #[test]
    fn file_every_kind_is_parsed() {
        let segment = "00000000000000004404-Fz2pZ9lrSdOz-0nHWdhH1Q";
        for kind in FileKind::ALL {
            let (name, parsed) = parse_file(&format!("{segment}{}", kind.suffix())).unwrap();
            assert_eq!((name.to_string().as_str(), parsed), (segment, kind));
        }
        for suffix in ["", ".", ".log.deleted", ".rsm-manifest", ".indexes"] {
            assert_eq!(parse_file(&format!("{segment}{suffix}")), None, "{suffix}");
        }
        assert_eq!(parse_file("00000000000000004404.log"), None);
    }
}
