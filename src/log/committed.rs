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
//! transaction.
//!
//! Source: `LogSegment.collectAbortedTxns`, `CompletedFetch` and `ProducerStateManager` of Kafka.

mod replay;

use std::collections::{BTreeMap, HashMap};

use crate::error::{ErrorKind, Result};
use crate::format::header::BatchHeader;
use crate::limits::Limits;
use crate::log::SegmentReader;
use crate::log::index::AbortedTransaction;
use crate::log::producer::{ProducerSnapshot, ProducerStates};
use crate::log::segment::Segment;
use crate::store::names::LogFileKind;
use replay::replay;

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
    let mut replay = SegmentReplay { segments, states: None };
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
        if is_decided && is_complete {
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
    let states = producer_states(segments)?;
    Ok(states.last_stable_offset(states.end_offset()))
}

/// Returns a broker's state of the producers at the end of a partition. `segments` are all its segments, by base
/// offset.
///
/// # Errors
/// I/O errors.
pub(crate) fn producer_states(segments: &[Segment]) -> Result<ProducerStates> {
    let Some(last) = segments.len().checked_sub(1) else { return Ok(ProducerStates::new()) };
    let mut replay = SegmentReplay { segments, states: None };
    let mut states = replay.states_at(last)?;
    if let Some(segment) = segments.last() {
        states.set_end_offset(states.end_offset().max(segment.base_offset()));
        pass_segment(segment, &mut states)?;
    }
    Ok(states)
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
}

impl SegmentReplay<'_> {
    /// Returns the transactions that the markers of a segment abort, as its transaction index should list them, and
    /// the last stable offset at the end of the segment.
    fn aborted_in(&mut self, index: usize, segment: &Segment) -> Result<(Vec<AbortedTransaction>, i64)> {
        let mut states = self.states_at(index)?;
        let aborted = pass_segment(segment, &mut states)?;
        let stable = states.last_stable_offset(states.end_offset());
        self.states = Some((index.saturating_add(1), states));
        Ok((aborted, stable))
    }

    /// Returns the state of the producers at the start of a segment.
    fn states_at(&mut self, index: usize) -> Result<ProducerStates> {
        let (mut from, mut states) = match self.states.take() {
            Some((at, states)) if at == index => return Ok(states),
            _ => self.last_snapshot(index),
        };
        while let Some(segment) = self.segments.get(from).filter(|_| from < index) {
            pass_segment(segment, &mut states)?;
            from = from.saturating_add(1);
        }
        Ok(states)
    }

    /// Finds the last segment up to `index` whose snapshot can be read. Returns its index and the state in the
    /// snapshot.
    fn last_snapshot(&self, index: usize) -> (usize, ProducerStates) {
        for (at, segment) in self.segments.iter().enumerate().take(index.saturating_add(1)).rev() {
            if let Ok(snapshot) = ProducerSnapshot::read(segment.file(LogFileKind::ProducerSnapshot)) {
                return (at, ProducerStates::from_snapshot(&snapshot, segment.base_offset()));
            }
        }
        (0, ProducerStates::new())
    }
}

/// Updates `states` with the batches of a segment. Returns the aborted transactions.
fn pass_segment(segment: &Segment, states: &mut ProducerStates) -> Result<Vec<AbortedTransaction>> {
    let open = |limits: &Limits| SegmentReader::open_with(segment.location(), limits);
    replay(open, Some(segment.base_offset()), segment.limits(), states)
}

/// Decides which batches a `read_committed` consumer sees.
#[derive(Debug, Clone, Default)]
pub(crate) struct Committed {
    /// First and last offset of each aborted transaction, sorted, by producer.
    aborted: HashMap<i64, Vec<(i64, i64)>>,
    last_stable_offset: i64,
}

impl Committed {
    /// For offsets from `start_offset` up to but excluding `end_offset` of a partition.
    pub(crate) fn of_segments(segments: &[Segment], start_offset: i64, end_offset: i64) -> Result<Self> {
        let aborted = aborted_transactions(segments, start_offset, end_offset)?;
        Ok(Self::new(&aborted, last_stable_offset(segments)?))
    }

    /// For a file outside a partition or a buffer, based on the markers in it.
    pub(crate) fn of_source(open: impl Fn(&Limits) -> Result<SegmentReader>, limits: &Limits) -> Result<Self> {
        let mut states = ProducerStates::new();
        let aborted = replay(open, None, limits, &mut states)?;
        Ok(Self::new(&aborted, states.last_stable_offset(i64::MAX)))
    }

    fn new(aborted: &[AbortedTransaction], last_stable_offset: i64) -> Self {
        let mut by_producer: HashMap<i64, Vec<(i64, i64)>> = HashMap::new();
        for transaction in aborted {
            let range = (transaction.first_offset, transaction.last_offset);
            by_producer.entry(transaction.producer_id).or_default().push(range);
        }
        for ranges in by_producer.values_mut() {
            ranges.sort_unstable();
        }
        Self { aborted: by_producer, last_stable_offset }
    }

    /// The first offset whose transaction has not ended.
    pub(crate) fn last_stable_offset(&self) -> i64 {
        self.last_stable_offset
    }

    /// Whether a batch belongs to an aborted transaction.
    pub(crate) fn is_aborted(&self, header: &BatchHeader) -> bool {
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
