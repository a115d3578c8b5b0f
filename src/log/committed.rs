//! What a `read_committed` consumer sees of a partition, without a broker.
//!
//! A broker answers such a consumer with the aborted transactions of the range and the last stable offset; here they come
//!
//! * from one pass over the headers of the batches, and the markers, of the first segment of the range and of those after it,
//!   until all that began in the range is decided;
//! * and from the `.txnindex` beside each, which may know of markers that can't be read. It adds to what the log says: one that
//!   is cut, empty or missing, as after a crash, makes no aborted record a committed one;
//! * and the last stable offset from the last producer snapshot that can be read and the headers after it: the first offset of
//!   the earliest transaction still open at the end, else the end offset. A broker also stops at its high watermark, which no
//!   file beside the log holds exactly.
//!
//! The passes go on after damage where the next batch is found; a marker that can't be read ends nothing.
//!
//! Source: `LogSegment.collectAbortedTxns`, `CompletedFetch` and `ProducerStateManager` of Kafka.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use crate::compression::Scratch;
use crate::error::{ErrorKind, Result};
use crate::format::frame::batches;
use crate::format::header::{BatchHeader, NO_PRODUCER_ID};
use crate::limits::Limits;
use crate::log::headers::HeaderReader;
use crate::log::index::AbortedTransaction;
use crate::log::producer::{ProducerSnapshot, ProducerStates};
use crate::log::resync::{Floor, Resync};
use crate::log::segment::Segment;
use crate::store::names::LogFileKind;

/// The aborted transactions that a reader of offsets from `start_offset` up to but excluding `end_offset` must know, in the
/// order of their markers. `segments` are all of a partition, by base offset.
///
/// # Errors
/// Those of reading.
pub(crate) fn aborted_transactions(
    segments: &[Segment],
    start_offset: i64,
    end_offset: i64,
) -> Result<Vec<AbortedTransaction>> {
    let mut replay = Replay { segments, states: None };
    let first = segments.partition_point(|segment| segment.base_offset() <= start_offset).saturating_sub(1);
    let (mut found, mut is_decided) = (Vec::new(), false);
    for (index, segment) in segments.iter().enumerate().skip(first) {
        let indexed = indexed_in(segment)?;
        let (_, is_complete) = AbortedTransaction::collect(&indexed, start_offset, end_offset);
        // once what began in the range is decided, only indexes know of more: of data that compaction removed
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

/// The offset up to which a `read_committed` consumer may read. `segments` are all of a partition, by base offset.
///
/// # Errors
/// Those of reading.
pub(crate) fn last_stable_offset(segments: &[Segment]) -> Result<i64> {
    let states = producer_states(segments)?;
    Ok(states.last_stable_offset(states.end_offset()))
}

/// What a broker knows of the producers at the end of a partition. `segments` are all of it, by base offset.
///
/// # Errors
/// Those of reading.
pub(crate) fn producer_states(segments: &[Segment]) -> Result<ProducerStates> {
    let Some(last) = segments.len().checked_sub(1) else { return Ok(ProducerStates::new()) };
    let mut replay = Replay { segments, states: None };
    let mut states = replay.states_at(last)?;
    if let Some(segment) = segments.last() {
        states.set_end_offset(states.end_offset().max(segment.base_offset()));
        pass_over(segment.path(), segment.limits(), &mut states)?;
    }
    Ok(states)
}

/// What the transaction index of a segment holds, as far as it can be read.
fn indexed_in(segment: &Segment) -> Result<Vec<AbortedTransaction>> {
    match segment.transaction_index().and_then(|index| index.map(|index| index.entries()).transpose()) {
        Err(error) if matches!(error.kind(), ErrorKind::Io(_)) => Err(error),
        found => Ok(found.unwrap_or_default().unwrap_or_default()),
    }
}

/// What the index and the markers say, by the offsets of the markers, each transaction from its first batch that either knows.
fn joined(indexed: Vec<AbortedTransaction>, marked: Vec<AbortedTransaction>) -> Vec<AbortedTransaction> {
    let mut all: BTreeMap<(i64, i64), AbortedTransaction> = BTreeMap::new();
    for one in indexed.into_iter().chain(marked) {
        let known = all.entry((one.last_offset, one.producer_id)).or_insert(one);
        known.first_offset = known.first_offset.min(one.first_offset);
    }
    all.into_values().collect()
}

/// Replays the segments of a partition in order, each once.
struct Replay<'a> {
    segments: &'a [Segment],
    /// The states at the start of a segment, by its index.
    states: Option<(usize, ProducerStates)>,
}

impl Replay<'_> {
    /// The transactions that the markers of a segment abort, as its transaction index should have them, and the last stable offset
    /// at its end.
    fn aborted_in(&mut self, index: usize, segment: &Segment) -> Result<(Vec<AbortedTransaction>, i64)> {
        let mut states = self.states_at(index)?;
        let aborted = pass_over(segment.path(), segment.limits(), &mut states)?;
        let stable = states.last_stable_offset(states.end_offset());
        self.states = Some((index.saturating_add(1), states));
        Ok((aborted, stable))
    }

    /// What is known of producers at the start of a segment.
    fn states_at(&mut self, index: usize) -> Result<ProducerStates> {
        let (mut from, mut states) = match self.states.take() {
            Some((at, states)) if at == index => return Ok(states),
            _ => self.last_snapshot(index),
        };
        while let Some(segment) = self.segments.get(from).filter(|_| from < index) {
            pass_over(segment.path(), segment.limits(), &mut states)?;
            from = from.saturating_add(1);
        }
        Ok(states)
    }

    /// The last segment up to `index` whose snapshot can be read, and what that says.
    fn last_snapshot(&self, index: usize) -> (usize, ProducerStates) {
        for (at, segment) in self.segments.iter().enumerate().take(index.saturating_add(1)).rev() {
            if let Ok(snapshot) = ProducerSnapshot::read(segment.file(LogFileKind::ProducerSnapshot)) {
                return (at, ProducerStates::from_snapshot(&snapshot, segment.base_offset()));
            }
        }
        (0, ProducerStates::new())
    }
}

/// Takes in a file's batches by their headers, and its markers. Returns what was aborted. A batch over the limit counts, if it ends
/// where another one begins or the file ends: of its header no memory is made, and without it the log would seem to end before it.
fn pass_over(path: &Path, limits: &Limits, states: &mut ProducerStates) -> Result<Vec<AbortedTransaction>> {
    let mut reader = HeaderReader::open(path, &Limits { batch_len: usize::MAX, ..limits.clone() })?;
    let (mut aborted, mut bytes, mut scratch) = (Vec::new(), Vec::new(), Scratch::new());
    let mut resync = Resync::new(limits);
    let mut floor = Floor::default();
    while let Some(header) = reader.next_header() {
        let header = match header {
            Ok(header) if header.size() <= limits.batch_len || reader.is_followed() => header,
            Err(error) if matches!(error.kind(), ErrorKind::Io(_)) => return Err(error),
            damaged => {
                let position = damaged.map_or_else(|_| reader.position(), |header| header.position());
                let Some(next) = resync.find_batch(reader.file(), position, floor.least())? else { break };
                reader.seek(next);
                continue;
            }
        };
        floor.pass(&header);
        let is_marker = header.is_control() && header.producer_id() > NO_PRODUCER_ID;
        if !is_marker || header.size() > limits.batch_len {
            states.update_by_header(&header);
            continue;
        }
        let batch = reader.read_batch(&header, &mut bytes)?;
        if batch.verify_crc().is_ok()
            && let Ok(found) = states.update(&batch, &mut scratch, limits)
        {
            aborted.extend(found);
        }
    }
    Ok(aborted)
}

/// Tells which batches a `read_committed` consumer sees.
#[derive(Debug, Clone, Default)]
pub(crate) struct Committed {
    /// First and last offset of each aborted transaction, by producer, in order.
    aborted: HashMap<i64, Vec<(i64, i64)>>,
    last_stable_offset: i64,
}

#[cfg_attr(not(feature = "arrow"), expect(dead_code, reason = "only scans look at batches through it"))]
impl Committed {
    /// For offsets from `start_offset` up to but excluding `end_offset` of a partition.
    pub(crate) fn of_segments(segments: &[Segment], start_offset: i64, end_offset: i64) -> Result<Self> {
        let aborted = aborted_transactions(segments, start_offset, end_offset)?;
        Ok(Self::new(&aborted, last_stable_offset(segments)?))
    }

    /// For a file that belongs to no partition: what it says itself.
    pub(crate) fn of_file(path: &Path, limits: &Limits) -> Result<Self> {
        let mut states = ProducerStates::new();
        let aborted = pass_over(path, limits, &mut states)?;
        Ok(Self::new(&aborted, states.last_stable_offset(i64::MAX)))
    }

    /// For a buffer: what it says itself.
    pub(crate) fn of_bytes(bytes: &[u8], limits: &Limits) -> Self {
        let (mut states, mut aborted, mut scratch) = (ProducerStates::new(), Vec::new(), Scratch::new());
        let mut walk = batches(bytes).with_limits(limits);
        loop {
            match walk.next() {
                Some(Ok(batch)) => aborted.extend(states.update(&batch, &mut scratch, limits).ok().flatten()),
                Some(Err(_)) if walk.skip_batch() => {}
                _ => break,
            }
        }
        Self::new(&aborted, states.last_stable_offset(i64::MAX))
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

    /// The first offset that is not decided yet.
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
        ranges.get(..before).unwrap_or_default().last().is_some_and(|(_, marker)| header.last_offset() < *marker)
    }
}
