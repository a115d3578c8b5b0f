//! Names of the directories and files of a log directory.
//!
//! ```text
//! <topic>-<partition>                          partition directory; the topic may contain dashes and dots
//! <topic>-<partition>.<32 hex>-delete          to be deleted; the topic may be truncated to limit the name to 255
//! bytes
//! <topic>-<partition>.<32 hex>-future, -stray  a copy for another disk; a copy that does not belong to this broker
//! 00000000000000000042.log                     segment with base offset 42; also .index .timeindex .txnindex
//! 00000000000000000042.snapshot                state of the producers before offset 42
//! 00000000000000000042.log.deleted             one of these files, not in use; also .cleaned .swap
//! 00000000000000000042-0000000003.checkpoint   KRaft snapshot up to but excluding offset 42, epoch 3
//! ```
//!
//! A broker writes 20 digits, in the digits of its locale. kbat writes ASCII digits and reads any number of them.
//!
//! Source: `LocalLog.parseTopicPartitionName`, `LogFileUtils` and `Snapshots` of Kafka.

use std::fmt;

/// The file of a partition's leader epochs.
pub(crate) const LEADER_EPOCHS: &str = "leader-epoch-checkpoint";
/// The file of a partition's topic id.
pub(crate) const PARTITION_METADATA: &str = "partition.metadata";
/// Size limit of Kafka's segments in bytes: positions in an index are `i32`.
pub(crate) const MAX_SEGMENT_LEN: u64 = 0x7fff_ffff;
/// Largest number of offsets in a segment: indexes have them relative to its base offset, in four bytes.
pub(crate) const MAX_SEGMENT_OFFSETS: i64 = 1 << 31;

/// Directories beside those of partitions that are not partitions.
const OTHER_DIRECTORIES: [&str; 2] = ["remote-log-index-cache", "lost+found"];

/// The ending of a segment's name.
const LOG_ENDING: &str = ".log";

/// Longest topic name that Kafka accepts, in characters.
const MAX_TOPIC_LEN: usize = 249;

/// A topic and one of its partitions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// Name of the topic.
    pub topic: String,
    /// Number of the partition, from 0.
    pub partition: i32,
}

impl TopicPartition {
    /// The name of the partition's directory.
    pub(crate) fn directory_name(&self) -> String {
        format!("{}-{}", self.topic, self.partition)
    }
}

/// Whether a text has the length and the characters of a topic's name.
fn is_topic_text(text: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    !text.is_empty() && text.len() <= MAX_TOPIC_LEN && text.chars().all(legal)
}

/// Whether a broker accepts a topic of this name. Source: `Topic.validate` of Kafka.
pub(crate) fn is_topic(name: &str) -> bool {
    is_topic_text(name) && name != "." && name != ".."
}

/// Parses the name of a partition directory. Returns `None` for any other name, and for directories that are not live,
/// such as those marked for deletion.
///
/// ```
/// let parsed = kbat::store::parse_partition_directory("page-views.v2-11").unwrap();
/// assert_eq!((parsed.topic.as_str(), parsed.partition), ("page-views.v2", 11));
/// assert!(kbat::store::parse_partition_directory("page-views-0.0123456789abcdef0123456789abcdef-delete").is_none());
/// ```
#[must_use]
pub fn parse_partition_directory(name: &str) -> Option<TopicPartition> {
    let (topic, digits) = name.rsplit_once('-')?;
    if !is_topic_text(topic) {
        return None;
    }
    if digits.is_empty() || !digits.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    Some(TopicPartition { topic: topic.to_owned(), partition: digits.parse().ok()? })
}

/// Begins the name of the directory in which desktops keep deleted files, before the number of a user.
const TRASH: &str = ".Trash-";

/// Whether a directory is hidden: its name begins with a dot. Those of partitions are not, because the name of a topic may
/// begin with a dot.
pub(crate) fn is_hidden(name: &str) -> bool {
    name.starts_with('.') && (PartitionDirectory::parse(name).is_none() || name.starts_with(TRASH))
}

/// Whether a directory with this name may be beside those of partitions, and contains no partition.
pub(crate) fn is_beside_partitions(name: &str) -> bool {
    OTHER_DIRECTORIES.contains(&name)
}

/// The purpose of a partition directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DirectoryState {
    /// The broker serves the partition from this directory.
    Live,
    /// `-delete`: the partition was deleted, and its files are about to be.
    Delete,
    /// `-future`: a copy that will replace the partition's directory on another disk.
    Future,
    /// `-stray`: the broker found the partition here, but it is not assigned to this broker.
    Stray,
}

/// The parsed name of a partition directory.
///
/// ```
/// use kbat::store::{DirectoryState, PartitionDirectory};
/// let parsed = PartitionDirectory::parse("page-views-11.0123456789abcdef0123456789abcdef-delete").unwrap();
/// assert_eq!((parsed.topic.as_str(), parsed.partition, parsed.state), ("page-views", 11, DirectoryState::Delete));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PartitionDirectory {
    /// Name of the topic. Possibly truncated if the directory is marked for deletion or as stray.
    pub topic: String,
    /// Number of the partition, from 0.
    pub partition: i32,
    /// Purpose of the directory.
    pub state: DirectoryState,
}

impl PartitionDirectory {
    /// Parses the name of a directory. Returns `None` for a name that no broker gives to a partition directory.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let suffixes = [
            ("-delete", DirectoryState::Delete),
            ("-future", DirectoryState::Future),
            ("-stray", DirectoryState::Stray),
        ];
        let (name, state) = match suffixes.into_iter().find(|(suffix, _)| name.ends_with(suffix)) {
            None => (name, DirectoryState::Live),
            Some((suffix, state)) => {
                let (name, unique) = name.strip_suffix(suffix)?.rsplit_once('.')?;
                if unique.is_empty() || unique.contains(char::is_whitespace) {
                    return None;
                }
                (name, state)
            }
        };
        let TopicPartition { topic, partition } = parse_partition_directory(name)?;
        Some(Self { topic, partition, state })
    }
}

/// The contents of a file in a partition directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LogFileKind {
    /// `.log`: record batches.
    Log,
    /// `.index`: offset index.
    OffsetIndex,
    /// `.timeindex`: time index.
    TimeIndex,
    /// `.txnindex`: aborted transactions.
    TransactionIndex,
    /// `.snapshot`: the state of producers before the offset in the name.
    ProducerSnapshot,
}

impl LogFileKind {
    /// Every kind, `.log` first.
    pub const ALL: [Self; 5] =
        [Self::Log, Self::OffsetIndex, Self::TimeIndex, Self::TransactionIndex, Self::ProducerSnapshot];

    /// The part of the file name after the base offset, including the dot.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Log => ".log",
            Self::OffsetIndex => ".index",
            Self::TimeIndex => ".timeindex",
            Self::TransactionIndex => ".txnindex",
            Self::ProducerSnapshot => ".snapshot",
        }
    }
}

/// Whether a file of a partition is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LogFileState {
    /// In use.
    Live,
    /// `.deleted`: to be deleted.
    Deleted,
    /// `.cleaned`: output of an unfinished compaction.
    Cleaned,
    /// `.swap`: output of a finished compaction, which will replace its source segments.
    Swap,
}

impl LogFileState {
    /// Every state.
    pub const ALL: [Self; 4] = [Self::Live, Self::Deleted, Self::Cleaned, Self::Swap];

    /// Name in lower case.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Deleted => "deleted",
            Self::Cleaned => "cleaned",
            Self::Swap => "swap",
        }
    }

    /// The suffix of the file name, including the dot.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Live => "",
            Self::Deleted => ".deleted",
            Self::Cleaned => ".cleaned",
            Self::Swap => ".swap",
        }
    }
}

/// The parsed name of a segment's file. Its `Display` is the name as a broker writes it.
///
/// ```
/// use kbat::store::{LogFile, LogFileKind, LogFileState};
/// let parsed = LogFile::parse("00000000000000000042.timeindex.swap").unwrap();
/// assert_eq!(parsed, LogFile { base_offset: 42, kind: LogFileKind::TimeIndex, state: LogFileState::Swap });
/// assert_eq!(LogFile::live(7, LogFileKind::Log).to_string(), "00000000000000000007.log");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogFile {
    /// Base offset of the segment. After compaction, the first batch may have a larger one.
    pub base_offset: i64,
    /// Contents of the file.
    pub kind: LogFileKind,
    /// Whether the file is in use.
    pub state: LogFileState,
}

impl LogFile {
    /// Creates the name of a file in use.
    #[must_use]
    pub fn live(base_offset: i64, kind: LogFileKind) -> Self {
        Self { base_offset, kind, state: LogFileState::Live }
    }

    /// Parses a file name. Returns `None` if it is not the name of a segment's file.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let (digits, suffix) = name.split_at_checked(name.find('.')?)?;
        for kind in LogFileKind::ALL {
            let Some(rest) = suffix.strip_prefix(kind.suffix()) else { continue };
            if let Some(state) = LogFileState::ALL.into_iter().find(|state| state.suffix() == rest) {
                return Some(Self { base_offset: parse_digits(digits)?, kind, state });
            }
        }
        None
    }
}

/// Whether a file name prevents a broker from starting: its suffix is that of a segment's file, but the part up to the
/// first dot is not a number.
///
/// Source: `LogLoader.loadSegmentFiles`, `removeTempFilesAndCollectSwapFiles`, `ProducerStateManager.listSnapshotFiles` and
/// `LogFileUtils.offsetFromFileName` of Kafka.
pub(crate) fn stops_a_broker(name: &str) -> bool {
    let bare = [".swap", ".cleaned"].into_iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
    let is_number = name.split('.').next().is_some_and(|number| number.parse::<i64>().is_ok());
    !is_number && LogFileKind::ALL.into_iter().any(|kind| bare.ends_with(kind.suffix()))
}

impl fmt::Display for LogFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:020}{}{}", self.base_offset, self.kind.suffix(), self.state.suffix())
    }
}

/// The parsed name of a KRaft snapshot. Its `Display` is the name as a controller writes it.
///
/// ```
/// let parsed = kbat::store::SnapshotFile::parse("00000000000000000445-0000000002.checkpoint").unwrap();
/// assert_eq!((parsed.end_offset, parsed.epoch, parsed.deleted), (445, 2, false));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SnapshotFile {
    /// The snapshot contains the state of the log before this offset.
    pub end_offset: i64,
    /// Epoch of the last record before `end_offset`.
    pub epoch: i32,
    /// `.deleted`: the file is about to be deleted.
    pub deleted: bool,
}

impl SnapshotFile {
    /// Parses a file name. Returns `None` if it is not the name of a KRaft snapshot.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let (name, deleted) = name.strip_suffix(".deleted").map_or((name, false), |name| (name, true));
        let (offset, epoch) = name.strip_suffix(".checkpoint")?.split_once('-')?;
        Some(Self { end_offset: parse_digits(offset)?, epoch: i32::try_from(parse_digits(epoch)?).ok()?, deleted })
    }
}

impl fmt::Display for SnapshotFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let deleted = if self.deleted { ".deleted" } else { "" };
        write!(f, "{:020}-{:010}.checkpoint{deleted}", self.end_offset, self.epoch)
    }
}

/// Parses the base offset from the name of a segment's `.log` file. Returns `None` for any other name.
///
/// ```
/// assert_eq!(kbat::store::parse_base_offset("00000000000000000042.log"), Some(42));
/// assert_eq!(kbat::store::parse_base_offset("00000000000000000042.log.deleted"), None);
/// ```
#[must_use]
pub fn parse_base_offset(name: &str) -> Option<i64> {
    parse_digits(name.strip_suffix(LOG_ENDING)?)
}

/// Whether a file is a log by the ending of its name.
pub(crate) fn is_log_of_any_name(name: &str) -> bool {
    name.strip_suffix(LOG_ENDING).is_some_and(|stem| !stem.is_empty())
}

/// Parses the base offset at the beginning of any segment file's name, including `<offset>_<uuid>.index` in the cache
/// of remote indexes.
pub(crate) fn base_offset_of_name(name: &str) -> Option<i64> {
    let (digits, _) = name.split_at_checked(name.find(['.', '_'])?)?;
    parse_digits(digits)
}

fn parse_digits(digits: &str) -> Option<i64> {
    let legal = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
    if legal { digits.parse().ok() } else { None }
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

    #[test]
    fn log_file_every_kind_and_state_round_trips() {
        for kind in LogFileKind::ALL {
            for state in LogFileState::ALL {
                let file = LogFile { base_offset: 9_223_372_036_854_775_807, kind, state };
                assert_eq!(LogFile::parse(&file.to_string()), Some(file));
                assert_eq!(base_offset_of_name(&file.to_string()), Some(i64::MAX));
            }
        }
        assert_eq!(LogFile::parse("5.index").map(|file| file.base_offset), Some(5));
    }

    #[test]
    fn log_file_other_names_are_none() {
        let names = [
            "",
            ".log",
            "1",
            "1.logs",
            "1.log.old",
            "1.log.swap.swap",
            "1.checkpoint",
            "-1.log",
            "x.index",
            "leader-epoch-checkpoint",
            "partition.metadata",
            "99999999999999999999.log",
            "\u{661}.log",
        ];
        for name in names {
            assert_eq!(LogFile::parse(name), None, "{name}");
        }
        assert_eq!(base_offset_of_name("42_dGVzdA.timeindex"), Some(42));
        assert_eq!(base_offset_of_name("index"), None);
    }

    #[test]
    fn snapshot_file_round_trips() {
        for name in ["00000000000000000445-0000000002.checkpoint", "00000000000000000000-0000000000.checkpoint.deleted"]
        {
            assert_eq!(SnapshotFile::parse(name).unwrap().to_string(), name);
        }
        for name in ["bootstrap.checkpoint", "1-99999999999.checkpoint", "1-2.checkpoint.part", "1-2.snapshot"] {
            assert_eq!(SnapshotFile::parse(name), None, "{name}");
        }
    }

    #[test]
    fn partition_directory_states_are_told() {
        let unique = "0123456789abcdef0123456789abcdef";
        let states =
            [("delete", DirectoryState::Delete), ("future", DirectoryState::Future), ("stray", DirectoryState::Stray)];
        for (word, state) in states {
            let parsed = PartitionDirectory::parse(&format!("a.b-c-12.{unique}-{word}")).unwrap();
            assert_eq!((parsed.topic.as_str(), parsed.partition, parsed.state), ("a.b-c", 12, state));
            assert_eq!(PartitionDirectory::parse(&format!("topic-{word}")), None);
            assert_eq!(PartitionDirectory::parse(&format!("topic-0.-{word}")), None);
            let live = PartitionDirectory::parse(&format!("topic-{word}-0")).unwrap();
            assert_eq!((live.topic, live.state), (format!("topic-{word}"), DirectoryState::Live));
        }
        assert_eq!(PartitionDirectory::parse("a-0.part"), None);
    }
}
