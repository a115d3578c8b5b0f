//! Determines what a `read_committed` consumer sees of a partition, without a broker.
//!
//! A broker answers such a consumer with the aborted transactions of the range and the last stable offset. Here they
//! are computed from:
//!
//! * **The log.** One read of the batch headers and the markers (see [`replay`]), from the first segment of the range
//!   until every transaction that began in the range has ended.
//! * **The `.txnindex` of each segment**, which may list transactions whose markers cannot be read. It only adds to
//!   the log: an index that is truncated, empty or missing, as after a crash, turns no aborted record into a committed
//!   one.
//! * **The last producer snapshot that can be read**, for the last stable offset, and the headers after it: the first
//!   offset of the earliest transaction that is open at the end, or else the end offset. A broker also stops at its
//!   high watermark, whose exact value is in no file.
//!
//! After corruption the passes resume at the next batch that is found. A marker that cannot be read ends no
//! transaction, unless the snapshot of the next segment shows that it ended. If the reader requests errors, corruption that
//! may change what it sees is an error: see [`Wanted`].
//!
//! Source: `LogSegment.collectAbortedTxns`, `CompletedFetch` and `ProducerStateManager` of Kafka.

mod replay;

use std::collections::BTreeMap;

use crate::error::{ErrorKind, Result};
use crate::format::header::BatchHeader;
use crate::limits::Limits;
use crate::log::SegmentReader;
use crate::log::index::AbortedTransaction;
use crate::log::producer::ProducerStates;
use crate::log::segment::Segment;
use crate::store::names::LogFileKind;
pub(crate) use replay::offset_fault;
use replay::{Passed, Place, replay};

/// The offsets that a reader wants, and what to do if corruption may change which of them it sees.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) start_offset: i64,
    /// Excluded.
    pub(crate) end_offset: i64,
    /// Whether such corruption is an error.
    pub(crate) fails: bool,
    /// Whether a batch with a wrong checksum is corrupt.
    pub(crate) check_crc: bool,
}

impl Wanted {
    /// All offsets; corruption is skipped.
    const ALL: Self = Self { start_offset: i64::MIN, end_offset: i64::MAX, fails: false, check_crc: true };
    /// The end of the log, which depends on open transactions and the last batches; corruption is an error.
    #[cfg(feature = "plan")]
    pub(crate) const END: Self = Self { start_offset: i64::MAX, end_offset: i64::MAX, fails: true, check_crc: true };

    /// Whether corruption after `expected` may change what the reader sees: it is in the range, or a transaction of the
    /// range was open before it, of which it may contain the marker.
    fn is_changed(&self, expected: Option<i64>, states: &ProducerStates) -> bool {
        let is_open = states.first_unstable_offset().is_some_and(|first| first < self.end_offset);
        is_open || expected.is_none_or(|offset| (self.start_offset..self.end_offset).contains(&offset))
    }
}

/// Returns the aborted transactions that matter to a reader of offsets from `start_offset` up to but excluding
/// `end_offset`, in the order of their markers. `segments` are all segments of a partition, by base offset.
///
/// # Errors
/// I/O errors.
pub(crate) fn aborted_transactions(
    segments: &[Segment],
    start_offset: i64,
    end_offset: i64,
) -> Result<Vec<AbortedTransaction>> {
    find_aborted(segments, &Wanted { start_offset, end_offset, ..Wanted::ALL }, true)
}

/// Like [`aborted_transactions`]. Unless `with_removed`, without transactions whose data compaction has removed.
fn find_aborted(segments: &[Segment], wanted: &Wanted, with_removed: bool) -> Result<Vec<AbortedTransaction>> {
    let Wanted { start_offset, end_offset, .. } = *wanted;
    let mut replay = SegmentReplay { segments, states: None, damaged_at: None, wanted };
    let first = segments.partition_point(|segment| segment.base_offset() <= start_offset).saturating_sub(1);
    let (mut found, mut is_decided) = (Vec::new(), false);
    for (index, segment) in segments.iter().enumerate().skip(first) {
        let indexed = indexed_in(segment)?;
        let (_, is_complete) = AbortedTransaction::collect(&indexed, start_offset, end_offset);
        // after every transaction of the range has ended, only indexes list more: those whose data compaction removed
        let (marked, stable) = if is_decided { (Vec::new(), end_offset) } else { replay.aborted_in(index, segment)? };
        is_decided = stable >= end_offset;
        let is_asked = |one: &AbortedTransaction| one.last_offset >= start_offset && one.first_offset < end_offset;
        found.extend(joined(indexed, marked).into_iter().filter(is_asked));
        if is_decided && (is_complete || !with_removed) {
            break;
        }
    }
    Ok(found)
}

/// Returns the offset up to which a `read_committed` consumer may read. `segments` are all segments of a partition, by
/// base offset.
///
/// # Errors
/// I/O errors.
pub(crate) fn last_stable_offset(segments: &[Segment]) -> Result<i64> {
    stable_end(segments, &Wanted::ALL).map(|end| end.offset)
}

/// The last stable offset of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StableEnd {
    pub(crate) offset: i64,
    /// The offset of corruption that may contain the marker of the transaction that begins at `offset`.
    pub(crate) damaged_at: Option<i64>,
}

/// Like [`last_stable_offset`].
///
/// # Errors
/// If corruption may change what the reader sees, and that is an error; I/O errors.
pub(crate) fn stable_end(segments: &[Segment], wanted: &Wanted) -> Result<StableEnd> {
    let (states, damaged_at) = states_of(segments, wanted)?;
    let offset = states.last_stable_offset(states.end_offset());
    let damaged_at = damaged_at.filter(|at| states.first_unstable_offset().is_some_and(|first| first < *at));
    Ok(StableEnd { offset, damaged_at })
}

/// Returns a broker's state of the producers at the end of a partition. `segments` are all its segments, by base
/// offset.
///
/// # Errors
/// I/O errors.
pub(crate) fn producer_states(segments: &[Segment]) -> Result<ProducerStates> {
    states_of(segments, &Wanted::ALL).map(|(states, _)| states)
}

/// The states at the end of a log, and the offset of the last corruption that may change them.
fn states_of(segments: &[Segment], wanted: &Wanted) -> Result<(ProducerStates, Option<i64>)> {
    let Some(last) = segments.len().checked_sub(1) else { return Ok((ProducerStates::new(), None)) };
    let mut replay = SegmentReplay { segments, states: None, damaged_at: None, wanted };
    let mut states = replay.states_at(last)?;
    let mut damaged_at = replay.damaged_at;
    if let Some(segment) = segments.last() {
        states.set_end_offset(states.end_offset().max(segment.base_offset()));
        damaged_at = damaged_at.max(pass_segment(segment, &mut states, wanted, None)?.damaged_at);
    }
    Ok((states, damaged_at))
}

/// Reads the transaction index of a segment. Returns no entries if it is corrupt or missing.
fn indexed_in(segment: &Segment) -> Result<Vec<AbortedTransaction>> {
    match segment.transaction_index().and_then(|index| index.map(|index| index.entries()).transpose()) {
        Err(error) if matches!(error.kind(), ErrorKind::Io(_)) => Err(error),
        found => Ok(found.unwrap_or_default().unwrap_or_default()),
    }
}

/// Merges the transactions from the index and the markers in marker order. Each starts at the smaller first offset of
/// the two.
fn joined(indexed: Vec<AbortedTransaction>, marked: Vec<AbortedTransaction>) -> Vec<AbortedTransaction> {
    let mut all: BTreeMap<(i64, i64), AbortedTransaction> = BTreeMap::new();
    for one in indexed.into_iter().chain(marked) {
        let known = all.entry((one.last_offset, one.producer_id)).or_insert(one);
        known.first_offset = known.first_offset.min(one.first_offset);
    }
    all.into_values().collect()
}

/// Replays the segments of a partition in order, each one once.
struct SegmentReplay<'a> {
    segments: &'a [Segment],
    /// The state at the start of a segment, with the segment's index.
    states: Option<(usize, ProducerStates)>,
    /// The offset of the last corruption in the segments that [`SegmentReplay::states_at`] has passed.
    damaged_at: Option<i64>,
    wanted: &'a Wanted,
}

impl SegmentReplay<'_> {
    /// Returns the transactions that the markers of a segment abort, as its transaction index should list them, and
    /// the last stable offset at the end of the segment.
    fn aborted_in(&mut self, index: usize, segment: &Segment) -> Result<(Vec<AbortedTransaction>, i64)> {
        let mut states = self.states_at(index)?;
        let next = index.saturating_add(1);
        let next_base = self.segments.get(next).map(Segment::base_offset);
        let Passed { aborted, damaged_at } = pass_segment(segment, &mut states, self.wanted, next_base)?;
        if damaged_at.is_some()
            && let Some(snapshot) = self.snapshot_at(next)
        {
            // it knows what the markers were that cannot be read
            states = snapshot;
        }
        // no checksum covers the offset of the last batch
        let stable = states.last_stable_offset(states.end_offset().min(next_base.unwrap_or(i64::MAX)));
        self.states = Some((next, states));
        Ok((aborted, stable))
    }

    /// Returns the state of the producers at the start of a segment.
    fn states_at(&mut self, index: usize) -> Result<ProducerStates> {
        let (mut from, mut states) = match self.states.take() {
            Some((at, states)) if at == index => return Ok(states),
            _ => self.last_snapshot(index),
        };
        while let Some(segment) = self.segments.get(from).filter(|_| from < index) {
            from = from.saturating_add(1);
            let next_base = self.segments.get(from).map(Segment::base_offset);
            let passed = pass_segment(segment, &mut states, self.wanted, next_base)?;
            self.damaged_at = self.damaged_at.max(passed.damaged_at);
        }
        Ok(states)
    }

    /// The state in the snapshot at the start of a segment, if that can be read.
    fn snapshot_at(&self, index: usize) -> Option<ProducerStates> {
        let segment = self.segments.get(index)?;
        ProducerStates::read(segment.file(LogFileKind::ProducerSnapshot), segment.base_offset()).ok()
    }

    /// Finds the last segment up to `index` whose snapshot can be read. Returns its index and the state in the
    /// snapshot.
    fn last_snapshot(&self, index: usize) -> (usize, ProducerStates) {
        let found = (0..=index).rev().find_map(|at| self.snapshot_at(at).map(|states| (at, states)));
        found.unwrap_or((0, ProducerStates::new()))
    }
}

/// Updates `states` with the batches of a segment. `next_base` is the base offset of the one after it.
fn pass_segment(
    segment: &Segment,
    states: &mut ProducerStates,
    wanted: &Wanted,
    next_base: Option<i64>,
) -> Result<Passed> {
    let open = |limits: &Limits| SegmentReader::open_with(segment.location(), limits);
    let place = Place { base_offset: Some(segment.base_offset()), next_base };
    replay(open, place, segment.limits(), states, wanted)
}

/// Decides which batches a `read_committed` consumer sees.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "plan", derive(serde::Serialize, serde::Deserialize))]
pub(crate) struct Committed {
    /// First and last offset of each aborted transaction, sorted, by producer. The last offset is the largest so far.
    aborted: BTreeMap<i64, Vec<(i64, i64)>>,
    last_stable_offset: i64,
}

impl Committed {
    /// For a reader of a partition.
    ///
    /// # Errors
    /// If corruption may change what it sees, and that is an error; I/O errors.
    pub(crate) fn of_segments(segments: &[Segment], wanted: &Wanted) -> Result<Self> {
        // the end first: the marker of a transaction before it, written in the meantime, is then among the aborted
        let stable_end = stable_end(segments, wanted)?.offset;
        Ok(Self::new(&find_aborted(segments, wanted, false)?, stable_end))
    }

    /// For a reader of a file outside a partition or of a buffer, based on the markers in it.
    ///
    /// # Errors
    /// Those of [`Committed::of_segments`].
    pub(crate) fn of_source(
        open: impl Fn(&Limits) -> Result<SegmentReader>,
        limits: &Limits,
        wanted: &Wanted,
    ) -> Result<Self> {
        let mut states = ProducerStates::new();
        let Passed { aborted, .. } = replay(open, Place::default(), limits, &mut states, wanted)?;
        Ok(Self::new(&aborted, states.last_stable_offset(i64::MAX)))
    }

    fn new(aborted: &[AbortedTransaction], last_stable_offset: i64) -> Self {
        let mut by_producer: BTreeMap<i64, Vec<(i64, i64)>> = BTreeMap::new();
        for transaction in aborted {
            let range = (transaction.first_offset, transaction.last_offset);
            by_producer.entry(transaction.producer_id).or_default().push(range);
        }
        for ranges in by_producer.values_mut() {
            ranges.sort_unstable();
            let mut largest = i64::MIN;
            for (_, last) in ranges {
                largest = largest.max(*last);
                *last = largest;
            }
        }
        Self { aborted: by_producer, last_stable_offset }
    }

    /// What concerns the batches of a range of offsets.
    #[cfg(feature = "plan")]
    pub(crate) fn part(&self, start_offset: i64, end_offset: i64) -> Self {
        let mut part = Self { aborted: BTreeMap::new(), last_stable_offset: self.last_stable_offset };
        for (producer_id, ranges) in &self.aborted {
            let within = |(first, last): &&(i64, i64)| *first < end_offset && *last >= start_offset;
            let ranges: Vec<(i64, i64)> = ranges.iter().filter(within).copied().collect();
            if !ranges.is_empty() {
                part.aborted.insert(*producer_id, ranges);
            }
        }
        part
    }

    /// The first offset whose transaction has not ended.
    pub(crate) fn last_stable_offset(&self) -> i64 {
        self.last_stable_offset
    }

    /// Whether a batch belongs to an aborted transaction, or is not before the last stable offset.
    pub(crate) fn is_hidden(&self, header: &BatchHeader) -> bool {
        header.base_offset().unwrap_or_else(|| header.last_offset()) >= self.last_stable_offset
            || self.is_aborted(header)
    }

    /// Whether a batch belongs to an aborted transaction.
    fn is_aborted(&self, header: &BatchHeader) -> bool {
        if !header.is_transactional() || header.is_control() {
            return false;
        }
        let Some(ranges) = self.aborted.get(&header.producer_id()) else { return false };
        let before = ranges.partition_point(|(first, _)| *first <= header.last_offset());
        before
            .checked_sub(1)
            .and_then(|last| ranges.get(last))
            .is_some_and(|(_, marker)| header.last_offset() < *marker)
    }
}
