//! [`choose`]: selects the segments of a partition to read, so that each offset is read once.
//!
//! Remote storage may contain more than one segment for an offset:
//! - unfinished copies, and segments that are being deleted;
//! - a second copy of a segment, made by the next leader because the first one did not report its copy;
//! - segments of different sizes for the same offsets, because replicas roll segments at different offsets;
//! - records of a deposed leader that the partition has lost (an unclean leader election).
//!
//! The first two are known from the states in `__remote_log_metadata`, if that topic is available, and from missing
//! manifests. The last is known from leader epochs: a record belongs to the partition if the leader of its epoch was
//! the leader at its offset. What remains is covered by as few segments as possible, from the lowest offset to the
//! highest, and if several reach equally far, by the one with the latest leader epoch, then by the one copied last.
//!
//! Nothing is omitted silently: see [`Omission`] and [`Chain::gaps`].
//!
//! Source: `RemoteLogMetadataCache` and `RemoteLogLeaderEpochState` of Kafka, which apply the same rules.

mod lineage;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use crate::log::checkpoint::{EpochEntry, LeaderEpochs};
use crate::slices::Slices;
use crate::tiered::metadata::SegmentState;
use lineage::{Lineage, Valid};

/// A segment that may be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Candidate {
    /// Offset of the first record, from the name.
    pub start_offset: i64,
    /// Offset of the last record. Segments whose last offset is unknown are assumed to reach up to the next segment: an
    /// orphan that starts inside a longer segment would then hide the rest of it.
    pub last_offset: Option<i64>,
    /// Leader epochs and their first offsets. Either those of the segment, or the partition's whole history up to the
    /// end of the segment, which is better. Empty if unknown.
    pub leader_epochs: Vec<EpochEntry>,
    /// State in `__remote_log_metadata`, if that topic is available.
    pub state: Option<SegmentState>,
    /// Whether `__remote_log_metadata` is complete for the partition and has no record of the segment.
    pub is_unrecorded: bool,
    /// Whether an object is missing that is written last, such as the manifest.
    pub is_incomplete: bool,
    /// Larger for segments to prefer if two are equal otherwise, such as the number of the copy, or a local file.
    pub preference: u64,
}

/// Why a segment, or a part of it, is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Its copy was started and not finished.
    CopyNotFinished,
    /// Its deletion was started.
    DeleteStarted,
    /// It was deleted.
    Deleted,
    /// `__remote_log_metadata` has no record of it: a broker never finds it.
    Unrecorded,
    /// An object that is written last is missing: the copy was not finished, or the deletion was started.
    Incomplete,
    /// It has no records: its last offset is below its first.
    Empty,
    /// All its records are below the start of the log.
    BeforeLogStart,
    /// A leader that was deposed wrote the records, and the partition has lost them.
    DeposedLeader {
        /// Epoch of that leader.
        epoch: i32,
    },
    /// A second copy of the same offsets.
    Duplicate {
        /// Index of the candidate that is read instead.
        of: usize,
    },
    /// Other segments have the same offsets, and more.
    Covered {
        /// Index of the first candidate that is read instead.
        by: usize,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CopyNotFinished => f.write_str("its copy was not finished"),
            Self::DeleteStarted => f.write_str("its deletion was started"),
            Self::Deleted => f.write_str("it was deleted"),
            Self::Unrecorded => f.write_str("__remote_log_metadata has no record of it"),
            Self::Incomplete => f.write_str("it is incomplete: not all of its objects exist"),
            Self::Empty => f.write_str("it has no records"),
            Self::BeforeLogStart => f.write_str("the log starts at a later offset"),
            Self::DeposedLeader { epoch } => write!(f, "a deposed leader, epoch {epoch}, wrote the records"),
            Self::Duplicate { .. } => f.write_str("another copy of it is read"),
            Self::Covered { .. } => f.write_str("other segments contain the same offsets"),
        }
    }
}

/// A segment to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// Index of the candidate.
    pub index: usize,
    /// The offsets to read from it. Other offsets in the segment must be skipped.
    pub offsets: Range<i64>,
    /// Whether the segment is known to reach the end of `offsets`. If not, `offsets` ends at the start of the next
    /// segment, or at `i64::MAX`, and only reading the segment shows whether it reaches that far.
    pub end_is_known: bool,
}

/// A segment, or a part of it, that is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omission {
    /// Index of the candidate.
    pub index: usize,
    /// The offsets that are not read; `None` for the whole segment.
    pub offsets: Option<Range<i64>>,
    /// The reason.
    pub reason: Reason,
}

/// The segments to read, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chain {
    /// The segments. Their offsets increase and do not overlap.
    pub links: Vec<Link>,
    /// All other segments, and the parts of segments that are not read, sorted by index.
    pub omitted: Vec<Omission>,
    /// Offsets before the end of the last link that no segment contains, from the start of the log on.
    pub gaps: Vec<Range<i64>>,
}

/// Selects the segments to read.
///
/// `lineage` are the leader epochs of the partition's current leader, such as its `leader-epoch-checkpoint`. Without
/// it, the epochs of the candidate with the latest leader count, completed from the others. `log_start_offset` is
/// the lowest offset to read; without it, that of the first segment.
#[must_use]
pub fn choose(candidates: &[Candidate], lineage: Option<&LeaderEpochs>, log_start_offset: Option<i64>) -> Chain {
    let mut chain = Chain::default();
    let mut usable: Vec<usize> = Vec::new();
    for (index, candidate) in candidates.iter().enumerate() {
        match unusable(candidate, log_start_offset) {
            Some(reason) => chain.omit(index, None, reason),
            None => usable.push(index),
        }
    }
    let of_usable = usable.iter().filter_map(|index| candidates.get(*index));
    let inferred = Lineage::infer(of_usable);
    let lineage = match lineage {
        Some(epochs) => Lineage::new(epochs).continued_by(inferred),
        None => inferred,
    };
    let mut spans = Vec::new();
    for index in usable {
        let Some(candidate) = candidates.get(index) else { continue };
        let Valid { end, deposed } = lineage.valid_part(candidate);
        let end_is_known = candidate.last_offset.is_some() || deposed.is_some();
        let preference = preference(candidate);
        let span = OffsetSpan { index, start: candidate.start_offset, end, end_is_known, preference };
        match (deposed, end) {
            (Some(epoch), Some(end)) if end <= span.start => {
                chain.omit(index, None, Reason::DeposedLeader { epoch });
                continue;
            }
            (Some(epoch), Some(end)) => {
                let rest = end..end_of(candidate).unwrap_or(i64::MAX);
                chain.omit(index, Some(rest), Reason::DeposedLeader { epoch });
            }
            _ => {}
        }
        spans.push(span);
    }
    chain.cover(spans, log_start_offset);
    chain.omitted.sort_by_key(|omission| omission.index);
    chain
}

/// The offset after the last record, if known.
fn end_of(candidate: &Candidate) -> Option<i64> {
    candidate.last_offset.map(|last| last.saturating_add(1))
}

/// Why a candidate is not considered at all.
fn unusable(candidate: &Candidate, log_start_offset: Option<i64>) -> Option<Reason> {
    match candidate.state {
        Some(SegmentState::CopyStarted) => return Some(Reason::CopyNotFinished),
        Some(SegmentState::DeleteStarted) => return Some(Reason::DeleteStarted),
        Some(SegmentState::DeleteFinished) => return Some(Reason::Deleted),
        Some(SegmentState::CopyFinished) | None => {}
    }
    let end = end_of(candidate);
    if candidate.is_unrecorded {
        Some(Reason::Unrecorded)
    } else if candidate.is_incomplete {
        Some(Reason::Incomplete)
    } else if end.is_some_and(|end| end <= candidate.start_offset) {
        Some(Reason::Empty)
    } else if log_start_offset.is_some_and(|start| end.is_some_and(|end| end <= start)) {
        Some(Reason::BeforeLogStart)
    } else {
        None
    }
}

/// Which of two candidates with the same end to read: the larger one.
fn preference(candidate: &Candidate) -> (i32, u64) {
    let epoch = candidate.leader_epochs.iter().map(|entry| entry.epoch).max().unwrap_or(-1);
    (epoch, candidate.preference)
}

/// The offsets of a candidate that belong to the partition.
#[derive(Debug, Clone)]
struct OffsetSpan {
    index: usize,
    start: i64,
    /// At most this, if the end is not known.
    end: Option<i64>,
    end_is_known: bool,
    preference: (i32, u64),
}

/// A span whose end is assumed if it is not known.
#[derive(Debug, Clone)]
struct Bounded {
    span: OffsetSpan,
    end: i64,
}

impl Bounded {
    /// The best of several spans that contain an offset has the largest key.
    fn key(&self) -> (i64, (i32, u64), bool) {
        (self.end, self.span.preference, self.span.end_is_known)
    }
}

/// Sorts spans by start. One with an unknown end reaches up to the next higher start.
fn bounded(mut spans: Vec<OffsetSpan>) -> Vec<Bounded> {
    spans.sort_by_key(|span| (span.start, span.index));
    let mut next_start = i64::MAX;
    let mut last_start = i64::MAX;
    let mut bounded: Vec<Bounded> = Vec::with_capacity(spans.len());
    for span in spans.into_iter().rev() {
        if span.start != last_start {
            next_start = last_start;
            last_start = span.start;
        }
        let end = span.end.unwrap_or(i64::MAX);
        let end = if span.end_is_known { end } else { end.min(next_start) };
        bounded.push(Bounded { span, end });
    }
    bounded.reverse();
    bounded
}

impl Chain {
    fn omit(&mut self, index: usize, offsets: Option<Range<i64>>, reason: Reason) {
        self.omitted.push(Omission { index, offsets, reason });
    }

    /// Covers the offsets of all spans with as few of them as possible.
    fn cover(&mut self, spans: Vec<OffsetSpan>, log_start_offset: Option<i64>) {
        let spans = bounded(spans);
        let Some(first) = spans.first() else { return };
        let mut next = log_start_offset.unwrap_or(first.span.start);
        let mut waiting = spans.iter().peekable();
        let mut chosen: Vec<&Bounded> = Vec::new();
        // the span that reaches farthest, of those that start at or below the next offset
        let mut best: Option<&Bounded> = None;
        loop {
            while let Some(span) = waiting.next_if(|span| span.span.start <= next) {
                if best.is_none_or(|best| span.key() > best.key()) {
                    best = Some(span);
                }
            }
            if let Some(span) = best.filter(|best| best.end > next) {
                self.link(span, next, chosen.last().copied());
                next = span.end;
                chosen.push(span);
            } else if let Some(span) = waiting.peek() {
                self.gaps.push(next..span.span.start);
                next = span.span.start;
            } else {
                break;
            }
        }
        let read: BTreeSet<usize> = chosen.iter().map(|link| link.span.index).collect();
        for span in &spans {
            if !read.contains(&span.span.index) {
                let reason = self.why_not(span, &chosen, log_start_offset);
                self.omit(span.span.index, None, reason);
            }
        }
    }

    /// Adds a segment, from an offset on.
    fn link(&mut self, span: &Bounded, next: i64, before: Option<&Bounded>) {
        let start = span.span.start.max(next);
        if let Some(before) = before.filter(|_| span.span.start < start) {
            let reason = Reason::Covered { by: before.span.index };
            self.omit(span.span.index, Some(span.span.start..start), reason);
        } else if span.span.start < start {
            self.omit(span.span.index, Some(span.span.start..start), Reason::BeforeLogStart);
        }
        let OffsetSpan { index, end_is_known, .. } = span.span;
        self.links.push(Link { index, offsets: start..span.end, end_is_known });
    }

    /// Why a span is not in the chain.
    fn why_not(&self, span: &Bounded, chosen: &[&Bounded], log_start_offset: Option<i64>) -> Reason {
        let (start, end) = (span.span.start, span.end);
        if log_start_offset.is_some_and(|log_start| end <= log_start) {
            return Reason::BeforeLogStart;
        }
        let first = log_start_offset.map_or(start, |log_start| log_start.max(start));
        let place = self.links.partition_point(|link| link.offsets.end <= first);
        // `chosen` and `links` have the same order
        let overlapping = chosen.part(place..);
        if let Some(same) = overlapping.iter().take(2).find(|link| link.span.start == start && link.end == end) {
            return Reason::Duplicate { of: same.span.index };
        }
        overlapping.first().map_or(Reason::Empty, |link| Reason::Covered { by: link.span.index })
    }
}

#[cfg(test)]
mod tests;
