//! [`RestoreReport`]: what was restored, what is missing, and why.

use std::fmt;
use std::path::PathBuf;

use crate::log::Uuid;
use crate::num::u64_of;
use crate::plural::{count_of, offsets_are};
use crate::store::TopicPartition;

/// The result of [`restore`](crate::restore::restore()).
///
/// Its `Display` is a text with one line per partition and finding.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreReport {
    /// The source.
    pub source: PathBuf,
    /// The new log directory.
    pub out: PathBuf,
    /// Whether nothing was written, so that the report describes the plan.
    pub dry_run: bool,
    /// The partitions, sorted by topic and number.
    pub partitions: Vec<RestoredPartition>,
    /// Partitions of the source that are not in the result.
    pub skipped: Vec<SkippedPartition>,
    /// The committed offsets of groups for these partitions, sorted by group, topic and partition.
    pub committed_offsets: Vec<RestoredOffset>,
    /// Findings that do not concern a single partition.
    pub warnings: Vec<String>,
}

impl RestoreReport {
    /// Total size in bytes of the batches in the result.
    #[must_use]
    pub fn byte_count(&self) -> u64 {
        self.partitions.iter().fold(0, |sum, partition| sum.saturating_add(partition.byte_count()))
    }

    /// The restored partition with this topic and number.
    pub(super) fn partition(&self, wanted: &TopicPartition) -> Option<&RestoredPartition> {
        self.partitions.iter().find(|restored| restored.partition == *wanted)
    }
}

/// A partition of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoredPartition {
    /// Topic and number.
    pub partition: TopicPartition,
    /// The source directory.
    pub path: PathBuf,
    /// Id of the topic in the new cluster; `None` if unknown, so that there is no `partition.metadata`.
    pub topic_id: Option<Uuid>,
    /// Id of the topic in the source's `partition.metadata`, if there is one.
    pub source_topic_id: Option<Uuid>,
    /// The segments, sorted by base offset.
    pub segments: Vec<RestoredSegment>,
    /// The first offset that consumers may read.
    pub start_offset: i64,
    /// The offset after the last batch.
    pub end_offset: i64,
    /// Timestamp of the first record, in milliseconds since the epoch. `None` if it has no timestamp or is unknown.
    pub first_timestamp: Option<i64>,
    /// Largest timestamp, in milliseconds since the epoch. `None` if no record has a timestamp.
    pub max_timestamp: Option<i64>,
    /// The latest leader epoch. `None` if unknown.
    pub leader_epoch: Option<i32>,
    /// Where the log ends because of the options; `None` if it is complete.
    pub cut: Option<RestoreCut>,
    /// First and last offsets that are in no segment, between two segments. Compaction leaves such gaps too.
    pub gaps: Vec<(i64, i64)>,
    /// First and last offsets that a segment repeats from the segment before it. They are in the result once.
    pub overlaps: Vec<(i64, i64)>,
    /// Bytes after the last batches of segments: an incomplete batch, or zeros.
    pub tail_bytes: u64,
    /// Transactions that are open at the end, in the order of their first offsets. Empty in a dry run.
    pub open_transactions: Vec<OpenTransaction>,
    /// What else is missing or remarkable, such as objects that were omitted.
    pub warnings: Vec<String>,
}

impl RestoredPartition {
    /// A partition without segments.
    pub(super) fn new(partition: TopicPartition, path: PathBuf, start_offset: i64) -> Self {
        Self {
            partition,
            path,
            topic_id: None,
            source_topic_id: None,
            segments: Vec::new(),
            start_offset,
            end_offset: start_offset,
            first_timestamp: None,
            max_timestamp: None,
            leader_epoch: None,
            cut: None,
            gaps: Vec::new(),
            overlaps: Vec::new(),
            tail_bytes: 0,
            open_transactions: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Total size in bytes of the batches in the result.
    #[must_use]
    pub fn byte_count(&self) -> u64 {
        self.segments.iter().fold(0, |sum, segment| sum.saturating_add(segment.bytes))
    }

    /// Adds the gap between an offset and the next segment, if there is one. It continues the last gap if the segment
    /// between them is empty.
    pub(super) fn add_gap(&mut self, end_offset: i64, next_base: i64) {
        if next_base <= end_offset {
            return;
        }
        let last = next_base.saturating_sub(1);
        match self.gaps.last_mut() {
            Some(gap) if gap.1.saturating_add(1) == end_offset => gap.1 = last,
            _ => self.gaps.push((end_offset, last)),
        }
    }

    /// Adds the offsets that a segment repeats, if there are any: those from its base up to its own end and to the end
    /// of the segments before it.
    pub(super) fn add_overlap(&mut self, base_offset: i64, own_end: i64, end_before: i64) {
        let end = own_end.min(end_before);
        if base_offset < end {
            self.overlaps.push((base_offset, end.saturating_sub(1)));
        }
    }
}

/// A segment of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoredSegment {
    /// Base offset in the name of the file.
    pub base_offset: i64,
    /// The offset after its last batch.
    pub end_offset: i64,
    /// The source file.
    pub path: PathBuf,
    /// Size of the source file in bytes.
    pub source_bytes: u64,
    /// Size of the batches in the result in bytes.
    pub bytes: u64,
}

/// Where a log ends because of the options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoreCut {
    /// The first offset that is not restored.
    pub offset: i64,
    /// Timestamp of the record at that offset in milliseconds since the epoch, if it ends the log.
    pub timestamp: Option<i64>,
}

/// A transaction that was open at the end of a restored log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenTransaction {
    /// Id of the producer.
    pub producer_id: i64,
    /// Epoch of the producer.
    pub producer_epoch: i16,
    /// First offset of the transaction.
    pub first_offset: i64,
    /// Whether an abort marker was appended.
    pub aborted: bool,
}

/// The committed offset of a group, adjusted to a restored partition.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RestoredOffset {
    /// Id of the group.
    pub group: String,
    /// The partition.
    pub partition: TopicPartition,
    /// The offset that the group committed.
    pub committed: i64,
    /// The same offset, but not before the start and not after the end of the restored log.
    pub offset: i64,
}

/// A partition of the source that is not in the result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkippedPartition {
    /// Topic and number.
    pub partition: TopicPartition,
    /// The source directory.
    pub path: PathBuf,
    /// The reason in words.
    pub reason: String,
}

impl fmt::Display for RestoreReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.dry_run { " (dry run: nothing was written)" } else { "" };
        let (partitions, bytes) = (u64_of(self.partitions.len()), self.byte_count());
        let (partitions, bytes) = (count_of(partitions, "partition"), count_of(bytes, "byte"));
        write!(f, "{} to {}: {partitions}, {bytes}{what}", self.source.display(), self.out.display())?;
        for partition in &self.partitions {
            write!(f, "\n{partition}")?;
        }
        for skipped in &self.skipped {
            write!(f, "\nskipped {}: {}", skipped.path.display(), skipped.reason)?;
        }
        if !self.committed_offsets.is_empty() {
            write!(f, "\n{}", count_of(u64_of(self.committed_offsets.len()), "committed offset"))?;
        }
        self.warnings.iter().try_for_each(|warning| write!(f, "\nwarning: {warning}"))
    }
}

impl fmt::Display for RestoredPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, start, end) = (self.partition.directory_name(), self.start_offset, self.end_offset);
        let segments = count_of(u64_of(self.segments.len()), "segment");
        let bytes = count_of(self.byte_count(), "byte");
        write!(f, "{name}: {segments}, start offset {start}, end offset {end}, {bytes}")?;
        match self.cut {
            Some(RestoreCut { offset, timestamp: None }) => write!(f, "\n  ends before offset {offset}")?,
            Some(RestoreCut { offset, timestamp: Some(timestamp) }) => {
                write!(f, "\n  ends before offset {offset}, whose timestamp is {timestamp}")?;
            }
            None => {}
        }
        for (first, last) in &self.gaps {
            write!(f, "\n  gap: {} in no segment", offsets_are(*first, *last))?;
        }
        for (first, last) in &self.overlaps {
            write!(f, "\n  overlap: {} in two segments, and restored once", offsets_are(*first, *last))?;
        }
        if self.tail_bytes > 0 {
            let bytes = count_of(self.tail_bytes, "byte");
            write!(f, "\n  not restored: {bytes} after the last complete batch")?;
        }
        for open in &self.open_transactions {
            let (id, first) = (open.producer_id, open.first_offset);
            let what = if open.aborted { "aborted" } else { "open" };
            write!(f, "\n  {what}: the transaction of producer {id} from offset {first} on")?;
        }
        self.warnings.iter().try_for_each(|warning| write!(f, "\n  warning: {warning}"))
    }
}
