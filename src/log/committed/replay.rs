//! Replays the batches of a file or buffer to find its transactions.
//!
//! Reading headers suffices while nothing is corrupt: a length is trusted if it leads to a batch with exactly the next
//! offset, and otherwise if the checksum is correct. After the first sign of corruption, the input is read again with
//! all its checksums, so that the batches are those that a scan finds: see [`BatchWalk`].

use std::collections::HashMap;

use crate::compression::Scratch;
use crate::error::{ErrorKind, Result};
use crate::format::header::{BatchHeader, NO_PRODUCER_ID};
use crate::limits::Limits;
use crate::log::SegmentReader;
use crate::log::index::AbortedTransaction;
use crate::log::producer::ProducerStates;
use crate::log::resync::Floor;
use crate::log::tail::SegmentTail;
use crate::log::walk::{BatchWalk, WalkEvent};

/// A batch over the limit counts by its header, for which no memory is allocated.
pub(super) fn unbounded(limits: &Limits) -> Limits {
    Limits { batch_len: usize::MAX, ..limits.clone() }
}

/// Updates `states` with the batches of a file or buffer. Returns the aborted transactions.
///
/// `open` opens the input with the given limits, and `base_offset` is that of a segment. A batch over the limit counts
/// if the file ends or another batch starts directly after it: without it, the log would seem to end earlier.
pub(super) fn replay(
    open: impl Fn(&Limits) -> Result<SegmentReader>,
    base_offset: Option<i64>,
    limits: &Limits,
    states: &mut ProducerStates,
) -> Result<Vec<AbortedTransaction>> {
    let mut replay = Replay::new(open(&unbounded(limits))?, base_offset, limits, states.clone());
    if !replay.read_headers()? {
        replay = Replay::new(open(&unbounded(limits))?, base_offset, limits, std::mem::take(states));
        replay.read_batches()?;
    }
    *states = replay.states;
    Ok(replay.aborted)
}

struct Replay<'a> {
    walk: BatchWalk,
    limits: &'a Limits,
    floor: Floor,
    is_sorted: bool,
    states: ProducerStates,
    aborted: Vec<AbortedTransaction>,
    bytes: Vec<u8>,
    scratch: Scratch,
}

impl<'a> Replay<'a> {
    fn new(reader: SegmentReader, base_offset: Option<i64>, limits: &'a Limits, states: ProducerStates) -> Self {
        Self {
            walk: BatchWalk::new(reader.reading_headers(), limits),
            limits,
            floor: Floor::at(base_offset),
            is_sorted: base_offset.is_some(),
            states,
            aborted: Vec::new(),
            bytes: Vec::new(),
            scratch: Scratch::new(),
        }
    }

    /// Reads headers, and of batches only those that are markers, or whose length is in doubt. Returns whether nothing
    /// seems corrupt.
    fn read_headers(&mut self) -> Result<bool> {
        let mut last: Option<BatchHeader> = None;
        let mut open: HashMap<i64, BatchHeader> = HashMap::new();
        loop {
            let header = match self.walk.next_header()? {
                WalkEvent::Batch(header) if !self.is_over_limit(&header) || self.walk.is_followed() => header,
                WalkEvent::End => {
                    // a transaction that stays open hides everything after it, so its first batch must be correct
                    let doubted: Vec<BatchHeader> = open.into_values().chain(last).collect();
                    for header in &doubted {
                        if !self.is_verified(header)? {
                            return Ok(false);
                        }
                    }
                    return Ok(self.walk.reader.tail()? != SegmentTail::Partial || !self.skip_damage(None)?);
                }
                WalkEvent::Batch(_) | WalkEvent::Corrupt { .. } => return Ok(false),
            };
            if let Some(last) = last
                && header.base_offset() != Some(last.next_offset())
                && !self.is_verified(&last)?
            {
                return Ok(false);
            }
            last = Some(header);
            let producer_id = header.producer_id();
            if header.is_control() {
                open.remove(&producer_id);
            } else if header.is_transactional() && self.states.entry(producer_id).current_txn_first_offset.is_none() {
                open.insert(producer_id, header);
            }
            if !self.pass(&header, false)? {
                return Ok(false);
            }
        }
    }

    /// Reads all batches and continues after corruption, as a scan does.
    fn read_batches(&mut self) -> Result<()> {
        loop {
            let damaged = match self.walk.next_header()? {
                WalkEvent::Batch(header) => {
                    let is_found = if self.is_over_limit(&header) {
                        self.walk.is_followed() && self.pass(&header, false)?
                    } else {
                        self.pass(&header, true)?
                    };
                    if is_found {
                        continue;
                    }
                    header.position()
                }
                WalkEvent::Corrupt { position, .. } => position,
                WalkEvent::End if self.walk.reader.tail()? != SegmentTail::Partial => return Ok(()),
                // a corrupt length may lead past the end
                WalkEvent::End => self.walk.reader.position(),
            };
            self.skip_damage(Some(damaged))?;
        }
    }

    /// Updates the states with a batch, of which `verifies` reads more than the header. Returns `false` if its checksum
    /// is wrong.
    fn pass(&mut self, header: &BatchHeader, verifies: bool) -> Result<bool> {
        let is_marker = header.is_control() && header.producer_id() > NO_PRODUCER_ID && !self.is_over_limit(header);
        if !is_marker && !verifies {
            self.states.update_by_header(header);
            self.floor.pass(header);
            return Ok(true);
        }
        let batch = match self.walk.reader.read_batch(header, &mut self.bytes) {
            Err(error) if matches!(error.kind(), ErrorKind::Io(_)) => return Err(error),
            Err(_) => return Ok(false),
            Ok(batch) => batch,
        };
        if batch.verify_crc().is_err() {
            return Ok(false);
        }
        self.floor.pass(header);
        if !is_marker {
            self.states.update_by_header(header);
        } else if let Ok(found) = self.states.update(&batch, &mut self.scratch, self.limits) {
            self.aborted.extend(found);
        }
        Ok(true)
    }

    /// Whether a batch has a correct checksum. One over the limit is not read.
    fn is_verified(&mut self, header: &BatchHeader) -> Result<bool> {
        if self.is_over_limit(header) {
            return Ok(true);
        }
        match self.walk.reader.read_batch(header, &mut self.bytes) {
            Err(error) if matches!(error.kind(), ErrorKind::Io(_)) => Err(error),
            found => Ok(found.is_ok_and(|batch| batch.verify_crc().is_ok())),
        }
    }

    /// Continues after corrupt bytes from a position on, or from that of the walk on. Returns whether a batch follows.
    fn skip_damage(&mut self, position: Option<u64>) -> Result<bool> {
        let position = position.unwrap_or_else(|| self.walk.reader.position());
        let least_offset = self.floor.least().filter(|_| self.is_sorted);
        self.walk.skip(position, least_offset).map(|skipped| skipped.is_followed)
    }

    fn is_over_limit(&self, header: &BatchHeader) -> bool {
        header.size() > self.limits.batch_len
    }
}
