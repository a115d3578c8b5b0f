//! Replays the batches of a file or buffer to find its transactions.
//!
//! Reading headers suffices while nothing is corrupt: a length is trusted if it leads to a batch with exactly the next
//! offset, and otherwise if the checksum is correct. After the first sign of corruption, the input is read again with
//! all its checksums, so that the batches are those that a scan finds: see [`BatchWalk`].

use std::collections::HashMap;

use super::Wanted;
use crate::compression::Scratch;
use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Batch;
use crate::format::header::{BatchHeader, NO_PRODUCER_ID};
use crate::limits::Limits;
use crate::log::SegmentReader;
use crate::log::index::AbortedTransaction;
use crate::log::producer::ProducerStates;
use crate::log::resync::Floor;
use crate::log::tail::SegmentTail;
use crate::log::walk::{BatchWalk, WalkEvent};

#[cfg(test)]
mod tests;

/// Size of a transaction marker in bytes, as brokers write it.
const MARKER_LEN: usize = 78;

/// A batch over the limit counts by its header, for which no memory is allocated.
pub(super) fn unbounded(limits: &Limits) -> Limits {
    Limits { batch_len: usize::MAX, ..limits.clone() }
}

/// What a replay found.
pub(super) struct Passed {
    pub(super) aborted: Vec<AbortedTransaction>,
    /// The offset before the last corruption in the range that is wanted, or before which a transaction was open.
    pub(super) damaged_at: Option<i64>,
}

/// Where an input is in a log.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Place {
    /// The base offset of a segment.
    pub(super) base_offset: Option<i64>,
    /// The base offset of the segment after it.
    pub(super) next_base: Option<i64>,
}

/// Updates `states` with the batches of a file or buffer.
///
/// `open` opens the input with the given limits. A batch over the limit counts
/// if the file ends or another batch starts directly after it: without it, the log would seem to end earlier.
///
/// # Errors
/// Corruption that may change what is wanted, if that is an error; I/O errors.
pub(super) fn replay(
    open: impl Fn(&Limits) -> Result<SegmentReader>,
    place: Place,
    limits: &Limits,
    states: &mut ProducerStates,
    wanted: &Wanted,
) -> Result<Passed> {
    states.begin();
    let mut replay = Replay::new(open(&unbounded(limits))?, place, limits, states, wanted);
    if replay.read_headers()? {
        let passed = replay.finish();
        states.commit();
        return Ok(passed);
    }
    states.roll_back();
    let mut replay = Replay::new(open(&unbounded(limits))?, place, limits, states, wanted);
    replay.read_batches()?;
    Ok(replay.finish())
}

fn is_marker(header: &BatchHeader) -> bool {
    header.is_control() && header.producer_id() > NO_PRODUCER_ID
}

/// Returns what is wrong with the offset of a batch of a transaction, which no checksum covers, if it is below those of
/// the batches before: the batch would be outside its transaction.
pub(crate) fn offset_fault(floor: Floor, header: &BatchHeader) -> Option<Error> {
    let value = header.stored_base_offset;
    floor.least().filter(|least| header.is_transactional() && value < *least)?;
    let kind = ErrorKind::InvalidValue { value, expected: "an offset above those of the batches before" };
    Some(Error::new(kind).at(header.position()).in_batch(value).in_field("base_offset"))
}

/// The error of a batch whose length leads past the end.
fn truncated(position: u64, expected: Option<i64>) -> Error {
    let error = Error::new(ErrorKind::Truncated).at(position).in_field("size");
    match expected {
        Some(offset) => error.in_batch(offset),
        None => error,
    }
}

/// A batch after a gap, whose offset may be damaged: no checksum covers it.
struct AfterGap {
    header: BatchHeader,
    /// The floor before it.
    floor: Floor,
    /// Where its transaction is in [`Replay::aborted`], if it is an abort marker; otherwise it began one.
    aborted: Option<usize>,
}

struct Replay<'a> {
    walk: BatchWalk,
    limits: &'a Limits,
    wanted: &'a Wanted,
    place: Place,
    floor: Floor,
    states: &'a mut ProducerStates,
    aborted: Vec<AbortedTransaction>,
    damaged_at: Option<i64>,
    /// The last batch, if it began or aborted a transaction after a gap.
    after_gap: Option<AfterGap>,
    bytes: Vec<u8>,
    scratch: Scratch,
}

impl<'a> Replay<'a> {
    fn new(
        reader: SegmentReader,
        place: Place,
        limits: &'a Limits,
        states: &'a mut ProducerStates,
        wanted: &'a Wanted,
    ) -> Self {
        Self {
            walk: BatchWalk::new(reader.reading_all_headers(), limits),
            limits,
            wanted,
            place,
            floor: Floor::at(place.base_offset),
            states,
            aborted: Vec::new(),
            damaged_at: None,
            after_gap: None,
            bytes: Vec::new(),
            scratch: Scratch::new(),
        }
    }

    fn finish(mut self) -> Passed {
        if let Some(next_base) = self.place.next_base {
            self.correct_offset(next_base.saturating_sub(1));
        }
        Passed { aborted: self.aborted, damaged_at: self.damaged_at }
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
                        if self.fault(header)?.is_some() {
                            return Ok(false);
                        }
                    }
                    let tail = self.walk.reader.tail()?;
                    let is_sound = tail.check(0, self.floor.next(), self.place.next_base).is_ok();
                    return Ok(is_sound && (tail != SegmentTail::Partial || !self.skip(None)?));
                }
                WalkEvent::Batch(_) | WalkEvent::Corrupt { .. } => return Ok(false),
            };
            if let Some(last) = last
                && !header.continues(&last)
                && self.fault(&last)?.is_some()
            {
                return Ok(false);
            }
            let may_be_marker = header.size() == MARKER_LEN || header.is_control();
            if may_be_marker && !is_marker(&header) && self.fault(&header)?.is_some() {
                return Ok(false); // it may be a marker whose attributes or producer are damaged
            }
            last = Some(header);
            let producer_id = header.producer_id();
            let begins = header.is_transactional() && !header.is_control() && !self.is_open(producer_id);
            if self.pass(&header, false)?.is_some() {
                return Ok(false);
            }
            if begins {
                open.insert(producer_id, header);
            } else if header.is_control() && !self.is_open(producer_id) {
                open.remove(&producer_id);
            }
        }
    }

    /// Reads all batches and continues after corruption, as a scan does.
    fn read_batches(&mut self) -> Result<()> {
        loop {
            let (damaged, error) = match self.walk.next_header()? {
                WalkEvent::Batch(header) => {
                    let is_over_limit = self.is_over_limit(&header);
                    if is_over_limit && !self.walk.is_followed() {
                        (header.position(), None)
                    } else {
                        match self.pass(&header, !is_over_limit)? {
                            None => continue,
                            Some(_) if self.is_being_written(&header)? => return Ok(()),
                            fault => (header.position(), fault),
                        }
                    }
                }
                WalkEvent::Corrupt { position, error } => (position, Some(error)),
                WalkEvent::End => {
                    let (position, tail) = (self.walk.reader.position(), self.walk.reader.tail()?);
                    let error = tail.check(position, self.floor.next(), self.place.next_base).err();
                    // a corrupt length may lead past the end
                    if tail != SegmentTail::Partial {
                        let is_changed = self.wanted.is_changed(self.floor.next(), self.states);
                        let expected = self.floor.next();
                        return error.map_or(Ok(()), |error| self.note(error, is_changed, expected));
                    }
                    (position, error)
                }
            };
            let expected = self.floor.next();
            let is_changed = self.wanted.is_changed(expected, self.states);
            let is_followed = self.skip(Some(damaged))?;
            if is_followed && error.is_none() && self.walk.reader.is_complete_now(damaged, self.limits.batch_len)? {
                return Ok(()); // a broker is writing
            }
            let error = error.or_else(|| is_followed.then(|| truncated(damaged, expected)));
            if let Some(error) = error {
                let is_end = !is_followed && self.wanted.end_offset == i64::MAX;
                self.note(error, is_changed || is_end, expected)?;
            }
        }
    }

    /// Whether a corrupt batch is the last one of a log: see [`SegmentTail::is_being_written`].
    fn is_being_written(&self, header: &BatchHeader) -> Result<bool> {
        let (place, offset) = (header.position()..header.end(), header.stored_base_offset);
        Ok(self.place.base_offset.is_some()
            && self.place.next_base.is_none()
            && SegmentTail::is_being_written(self.walk.reader.source(), place, offset, self.limits)?)
    }

    /// Records corruption after `expected` that may change what is wanted.
    fn note(&mut self, error: Error, is_changed: bool, expected: Option<i64>) -> Result<()> {
        if is_changed {
            self.damaged_at = self.damaged_at.max(Some(expected.unwrap_or(i64::MAX)));
        }
        if is_changed && self.wanted.fails { Err(self.walk.reader.source().locate(error)) } else { Ok(()) }
    }

    /// Updates the states with a batch, of which `verifies` reads more than the header. Returns what is wrong with it.
    fn pass(&mut self, header: &BatchHeader, verifies: bool) -> Result<Option<Error>> {
        if let Some(error) = self.place.base_offset.and_then(|_| offset_fault(self.floor, header)) {
            return Ok(Some(error));
        }
        let is_marker = is_marker(header) && !self.is_over_limit(header);
        self.correct_offset(header.stored_base_offset);
        let aborted_before = self.aborted.len();
        let (end_offset, was_open) = (self.states.end_offset(), self.is_open(header.producer_id()));
        if !is_marker && !verifies {
            self.states.update_by_header(header);
        } else {
            let batch = match self.walk.reader.read_batch(header, &mut self.bytes) {
                Err(error) if matches!(error.kind(), ErrorKind::Io(_)) => return Err(error),
                Err(error) => return Ok(Some(error)),
                Ok(batch) => batch,
            };
            if self.wanted.check_crc
                && let Err(error) = batch.verify_crc()
            {
                return Ok(Some(error));
            }
            if !is_marker {
                self.states.update_by_header(header);
            } else if let Ok(found) = self.states.update(&batch, &mut self.scratch, self.limits) {
                self.aborted.extend(found);
            }
        }
        // no checksum covers the offset of a batch: this one is below those of all batches before
        if self.place.base_offset.is_some() && self.floor.least().is_some_and(|least| header.stored_base_offset < least)
        {
            self.states.set_end_offset(end_offset);
        }
        let aborted = (self.aborted.len() > aborted_before).then_some(aborted_before);
        let is_begin = !was_open && self.is_open(header.producer_id());
        let is_after_gap = self.floor.next().is_some_and(|next| header.stored_base_offset > next);
        let matters = self.place.base_offset.is_some() && is_after_gap && (is_begin || aborted.is_some());
        self.after_gap = matters.then_some(AfterGap { header: *header, floor: self.floor, aborted });
        self.floor.pass(header);
        Ok(None)
    }

    /// Corrects the first or last offset of a transaction whose batch has a higher offset than `behind`, which that batch
    /// precedes: its offset is damaged.
    fn correct_offset(&mut self, behind: i64) {
        let Some(AfterGap { header, floor, aborted }) = self.after_gap.take() else { return };
        let Some(expected) = floor.damaged_gap(header.stored_base_offset, behind) else { return };
        match aborted {
            None => self.states.move_transaction(header.producer_id(), expected),
            Some(index) => {
                if let Some(transaction) = self.aborted.get_mut(index) {
                    transaction.last_offset = expected;
                }
            }
        }
    }

    /// Returns why a batch is corrupt, if it is. One over the limit is not read.
    fn fault(&mut self, header: &BatchHeader) -> Result<Option<Error>> {
        if self.is_over_limit(header) {
            return Ok(None);
        }
        let check_crc = self.wanted.check_crc;
        let verify = |batch: Batch<'_>| if check_crc { batch.verify_crc() } else { Ok(()) };
        match self.walk.reader.read_batch(header, &mut self.bytes).and_then(verify) {
            Ok(()) => Ok(None),
            Err(error) if matches!(error.kind(), ErrorKind::Io(_)) => Err(error),
            Err(error) => Ok(Some(error)),
        }
    }

    /// Continues after corrupt bytes from a position on, or from that of the walk on. Returns whether a batch follows.
    fn skip(&mut self, position: Option<u64>) -> Result<bool> {
        let position = position.unwrap_or_else(|| self.walk.reader.position());
        let least_offset = self.floor.least().filter(|_| self.place.base_offset.is_some());
        self.walk.skip(position, least_offset).map(|skipped| skipped.is_followed)
    }

    fn is_open(&self, producer_id: i64) -> bool {
        self.states.entry(producer_id).current_txn_first_offset.is_some()
    }

    fn is_over_limit(&self, header: &BatchHeader) -> bool {
        header.size() > self.limits.batch_len
    }
}
