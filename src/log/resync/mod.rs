//! Finds the next batch after corruption.
//!
//! Record values may themselves contain batches, so a correct checksum does not prove that a batch belongs to the log.
//! The rules below decide. They use these terms:
//!
//! * A header is *plausible* if brokers write such values: magic 0 to 2, a size within [`Limits::batch_len`], counts, ids
//!   and attributes in their ranges. Its offset must not be below the *floor*, which is the offset after the last good
//!   batch (see [`Floor`]), and must be less than 2³¹ above it.
//! * A *candidate* has a plausible header and a correct checksum, and ends within the input.
//! * The *chain* of a candidate consists of the batches that sizes lead to, from one plausible header to the next. It ends
//!   *exactly* if it reaches the end of the input, zeros, the result of R1, or a position more than
//!   [`Limits::batch_len`] after the damaged batch. It ends *truncated* in a batch or header that extends past the end
//!   of the input, and *broken* everywhere else.
//!
//! The search first follows sizes from the damaged batch:
//!
//! * **R1** Sizes lead from the damaged batch, over at most 15 more batches with plausible headers, to a batch with a
//!   correct checksum, to a truncated batch, to zeros up to the end, or to the end of the input: that is the result,
//!   unless R2, R3 or R4 accepts a candidate before it. This is the usual case after a flipped bit in a payload. R1 does
//!   not apply if R10 refuses one of these positions.
//! * **R2** The damaged batch's checksum is correct if the batch ends at the candidate: accept. Only its size, or a
//!   field outside the checksum, is damaged.
//! * **R3** The chain of a v2 candidate leads exactly to the result of R1: accept, unless R5 or R10 refuses the
//!   candidate. The damaged batch's size led to a later batch by chance.
//! * **R4** R1 leads into zeros that extend to the end, the chain of a v2 candidate ends at the start of these zeros, and
//!   its offset is after those of the damaged batch: accept, unless R5 refuses the candidate. The damaged batch lost
//!   bytes.
//!
//! If R1 does not apply, every byte after the start of the damaged batch is searched. R2 and then R5 to R14 are applied
//! to each candidate in the order of this list, and the first one that matches decides:
//!
//! * **R5** The bytes before the candidate are the length of its chain: refuse, because the chain is a value.
//! * **R6** The candidate has magic 0 or 1 and an offset above 2⁴⁸, and the floor is unknown: refuse. A part of a
//!   compressed message set can look like a message with any offset.
//! * **R7** The caller wants any batch ([`Resync::any_batch`]): accept.
//! * **R14** The candidate has magic 0 or 1, and is inside a compressed set that does not end before its offset: refuse. It
//!   may be one message of the set, with its offset in the set: codecs store bytes without compression if that is
//!   shorter. Such sets are, by their headers, the damaged batch and those that sizes lead to from it.
//! * **R8** The chain ends exactly: accept. If the damaged batch extends past the end of the input, the candidate must
//!   also have an offset after those of the damaged batch.
//! * **R9** The chain ends truncated, and the candidate has exactly the next offset after the damaged batch: accept. The
//!   damaged batch lost bytes, and the last batch is incomplete. Only for this rule, a chain also ends truncated in what
//!   may be a v0 or v1 message with the next offset.
//! * **R10** A record of the damaged batch, followed by its lengths, contains the candidate: refuse.
//! * **R11** The chain is broken, the candidate has magic 0 or 1, and the floor is unknown: refuse. It may be one
//!   message of a compressed set.
//! * **R12** The chain ends exactly or truncated: accept.
//! * **R13** The chain is broken: hold the candidate until another one is accepted or the search ends. If the search
//!   ends, accept the last held candidate. Then go back through the held candidates: each one replaces the accepted one
//!   if a batch fits between its chain and the accepted candidate, both in bytes and in offsets; or if it has exactly the
//!   next offset after the damaged batch, and the accepted candidate the next one after its chain. Bytes were inserted
//!   between the two.
//!
//! | rule | a test in `tests.rs` or `rule_tests.rs` that fails without it |
//! |---|---|
//! | R1 | `next_batch_is_found_after_damage_in_any_field`, `sizes_are_followed_over_a_second_damaged_batch` |
//! | R2 | `next_batch_is_found_after_damage_in_any_field` |
//! | R3 | `a_size_that_skips_a_good_batch_does_not_hide_it`, `a_message_at_the_end_of_a_value_is_not_taken` |
//! | R4 | `a_good_batch_after_missing_bytes_is_found_before_any_tail` |
//! | R5 | `batches_in_the_value_of_the_last_batch_are_never_taken` |
//! | R6 | `messages_that_may_be_parts_of_a_compressed_set_are_not_taken` |
//! | R7 | `any_batch_is_found_whatever_comes_before_it` |
//! | R8 | `a_good_batch_after_missing_bytes_is_found`, `a_batch_in_an_incomplete_batch_is_not_taken_for_its_successor` |
//! | R9 | `a_good_batch_after_missing_bytes_is_found_before_any_tail`, `a_good_message_after_missing_bytes_is_found` |
//! | R10 | `a_size_that_leads_into_the_value_is_not_followed`, `a_batch_at_the_end_of_the_last_header_is_not_taken` |
//! | R11 | `messages_that_may_be_parts_of_a_compressed_set_are_not_taken` |
//! | R12 | `a_good_batch_before_an_incomplete_one_is_found` |
//! | R13 | `batches_in_a_value_are_never_taken`, `a_good_batch_between_two_holes_is_found`, `good_batches_before_inserted_bytes_are_found` |
//! | R14 | `messages_of_an_incomplete_set_are_not_taken` |
//! | chain | `a_chain_continues_after_an_offset_that_is_too_high` |
//! | span | `an_offset_far_above_the_floor_is_not_plausible` |
//! | floor | `offsets_that_came_before_are_not_taken_again`, `an_offset_that_is_too_high_does_not_hide_what_follows` |
//! | budgets | `work_is_bounded_by_the_bytes` |
//!
//! These rules lose batches whose stored offset is below the floor (the offset is not part of the checksum), batches
//! with field values that brokers do not write, batches whose offset is 2³¹ or more above the floor, and batches
//! between two damaged ones that look like a value of the first.
//!
//! Time is linear in the number of bytes searched: checksums and chains have budgets that grow with it. If a crafted
//! input exhausts them, candidates whose checksum would exceed the budget are skipped, and a chain that cannot be
//! followed further counts as ending exactly.

mod candidate;
mod chain;
mod checksum;
mod floor;
mod payload;
mod sets;

use crate::error::Result;
use crate::format::frame::is_zeros;
use crate::format::header::{BatchHeader, HEADER_LEN_UP_TO_MAGIC, LOG_OVERHEAD};
use crate::io::{ChunkCache, ReadAt, first_not_zero};
use crate::limits::Limits;
use crate::num::u64_of;

use candidate::{CandidateBounds, HEAD_LEN, after_hole, candidate, first_sane, offset_after_message};
use chain::{CandidateChain, ChainEnd, HeldCandidate, choose};
use checksum::Proof;
pub(crate) use checksum::is_crc_right;
pub(crate) use floor::Floor;
use payload::{DamagedRecords, is_counted, len_between};
use sets::CompressedSets;

/// Size in bytes of a message without key and value, which is the smallest batch.
const SMALLEST_BATCH_LEN: u64 = 26;
/// Number of bytes to search per read.
const SEARCH_LEN: usize = 1 << 18;
/// Number of bytes to read at a time when following headers.
const HOP_LEN: usize = 1 << 12;
/// Largest number of headers that R1 checks.
const HOPS: usize = 16;
/// Work allowed per byte searched, and work of following one header.
const WORK_PER_BYTE: u64 = 16;
const HOP_WORK: u64 = 64;
/// Largest offset of a v0 or v1 message that is plausible if the offset before it is unknown (R6).
const MAX_GUESSED_OFFSET: i64 = 1 << 48;
/// Largest number of candidates to hold (R13).
const HELD_COUNT: usize = 64;

/// The result of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// A batch with a correct checksum starts at this position.
    Batch(u64),
    /// No batch follows. Batches, all damaged, extend up to this position. After it there is a truncated batch, zeros,
    /// or nothing.
    End(u64),
}

/// Finds the next batch after corruption. It holds the budgets, so one instance must serve all searches of an input.
#[derive(Debug)]
pub(crate) struct Resync {
    batch_len: usize,
    passed: u64,
    spent: u64,
    /// Work that is always allowed: that of two batches of the largest size.
    free: u64,
    /// A position from which not all bytes up to the end are zero, if one is known.
    not_zero: Option<u64>,
}

impl Resync {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { batch_len: limits.batch_len, passed: 0, spent: 0, free: 1 << 20, not_zero: None }
    }

    /// Finds the next batch after the damaged one at `damaged`. `next_offset` is the smallest offset that it can have,
    /// if a good batch came before: see [`Floor`].
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn find(&mut self, source: &dyn ReadAt, damaged: u64, next_offset: Option<i64>) -> Result<Next> {
        let mut search = self.search(source, damaged, next_offset)?;
        match search.by_length()? {
            Some(next) => search.or_before(next),
            None => search.byte_by_byte(),
        }
    }

    fn search<'s>(
        &'s mut self,
        source: &'s dyn ReadAt,
        damaged: u64,
        next_offset: Option<i64>,
    ) -> Result<BatchSearch<'s>> {
        let end = source.byte_len()?;
        let batch_len = self.batch_len;
        self.free = self.free.max(end.min(u64_of(batch_len)).saturating_mul(2));
        Ok(BatchSearch {
            budget: self,
            batch_len,
            source,
            damaged,
            end,
            until: end,
            floor: next_offset.unwrap_or(0).max(0),
            is_floor_known: next_offset.is_some(),
            goal: None,
            pieces: ChunkCache::new(SEARCH_LEN),
            hops: ChunkCache::new(HOP_LEN),
            payload: DamagedRecords::new(damaged),
            next_of_damaged: None,
            cut: None,
            sets: CompressedSets::default(),
            is_cautious: false,
        })
    }

    /// Like [`Resync::find`], but continues after a batch that only seems truncated because its size is damaged too.
    /// Returns `None` if no batch follows.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn find_batch(
        &mut self,
        source: &dyn ReadAt,
        damaged: u64,
        next_offset: Option<i64>,
    ) -> Result<Option<u64>> {
        let mut at = damaged;
        loop {
            let mut head = [0; HEADER_LEN_UP_TO_MAGIC];
            match self.find(source, at, next_offset)? {
                Next::Batch(position) => return Ok(Some(position)),
                Next::End(end) if end > at && source.read_bytes_at(&mut head, end)? > 0 && !is_zeros(&head) => at = end,
                Next::End(_) => return Ok(None),
            }
        }
    }

    /// Finds the first batch with a correct checksum between `damaged` and `until`, except one that R5 or R6 refuses.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn any_batch(&mut self, source: &dyn ReadAt, damaged: u64, until: u64) -> Result<Option<u64>> {
        let mut search = self.search(source, damaged, None)?;
        search.batch_len = usize::MAX;
        search.until = until.min(search.end);
        let span = len_between(damaged, search.until).saturating_add(HEAD_LEN);
        search.pieces = ChunkCache::new(span.min(SEARCH_LEN));
        search.is_cautious = true;
        match search.byte_by_byte()? {
            Next::Batch(position) => Ok(Some(position)),
            Next::End(_) => Ok(None),
        }
    }

    fn has_budget(&mut self, work: u64) -> bool {
        let spent = self.spent.saturating_add(work);
        let has_budget = spent <= self.passed.saturating_mul(WORK_PER_BYTE).saturating_add(self.free);
        if has_budget {
            self.spent = spent;
        }
        has_budget
    }
}

/// One search.
struct BatchSearch<'a> {
    budget: &'a mut Resync,
    /// Largest size in bytes of a batch.
    batch_len: usize,
    source: &'a dyn ReadAt,
    damaged: u64,
    end: u64,
    /// Where the search byte by byte stops.
    until: u64,
    /// The smallest offset that the next batch can have.
    floor: i64,
    /// Whether `floor` is known from the batch before.
    is_floor_known: bool,
    /// The result of R1, if it is known: a chain may end there.
    goal: Option<u64>,
    pieces: ChunkCache,
    hops: ChunkCache,
    payload: DamagedRecords,
    /// The damaged batch, if its header is plausible and it extends past the end of the input.
    cut: Option<BatchHeader>,
    /// The compressed sets of magic 0 or 1 that begin with the damaged batch (R14).
    sets: CompressedSets,
    /// The offset after the damaged batch according to its header, if that is plausible or a message's.
    next_of_damaged: Option<i64>,
    /// Whether to accept batches that may be in a value of the damaged batch (R7).
    is_cautious: bool,
}

enum Verdict {
    Take,
    Refuse { go_on: u64 },
    Hold(CandidateChain),
}

impl BatchSearch<'_> {
    fn bounds(&self, floor: i64, cut: bool) -> CandidateBounds {
        // the offsets of a segment span less than 2³¹
        let span = if self.is_floor_known || floor > self.floor { i64::from(i32::MAX) } else { i64::MAX };
        CandidateBounds { floor, span, batch_len: self.batch_len, end: self.end, cut }
    }

    /// R1: follows sizes from the damaged batch. Returns `None` if they lead nowhere.
    fn by_length(&mut self) -> Result<Option<Next>> {
        let head = self.hops.bytes_from(self.source, self.damaged, HEADER_LEN_UP_TO_MAGIC)?;
        let Some(length) = head.get(8..).and_then(|rest| rest.first_chunk()) else { return Ok(None) };
        let Ok(length) = u64::try_from(i32::from_be_bytes(*length)) else { return Ok(None) };
        if length.saturating_add(u64_of(LOG_OVERHEAD)) < SMALLEST_BATCH_LEN {
            return Ok(None);
        }
        let mut at = self.damaged.saturating_add(u64_of(LOG_OVERHEAD)).saturating_add(length);
        for _ in 0..HOPS {
            if at > self.end {
                return Ok(None);
            }
            if at == self.end || self.is_zero_to_the_end(at)? {
                return Ok(Some(Next::End(at)));
            }
            let bounds = self.bounds(self.floor, true);
            let Some(header) = candidate(self.hops.bytes_from(self.source, at, HEAD_LEN)?, at, &bounds) else {
                return Ok(None);
            };
            let after = at.saturating_add(u64_of(header.size));
            let is_cut = after > self.end;
            // R10: the size leads into a value
            if self.payload.holds(self.source, &mut self.hops, (at, after))? {
                return Ok(None);
            }
            if is_cut || (self.budget.has_budget(u64_of(header.size)) && is_crc_right(self.source, &header)?) {
                return Ok(Some(if is_cut { Next::End(at) } else { Next::Batch(at) }));
            }
            at = after;
        }
        Ok(None)
    }

    /// Applies R2 to R4: returns a batch before `next`, the result of R1, if the damaged batch's size may have led too
    /// far.
    fn or_before(&mut self, next: Next) -> Result<Next> {
        let (Next::Batch(goal) | Next::End(goal)) = next;
        let until = if let Next::Batch(position) = next { position } else { self.end };
        let mut proof = Proof::new(self.source, self.damaged)?;
        self.payload = DamagedRecords::new(self.damaged);
        self.goal = Some(goal);
        let mut at = self.damaged.saturating_add(1);
        while let Some(header) = self.next_candidate(&mut at, until, false)? {
            // R2
            if let Some(proof) = &mut proof
                && proof.ends_at(self.source, header.position)?
            {
                return Ok(Next::Batch(header.position));
            }
            let chain = self.follow(&header)?;
            // R3, v2 only: no length before a message in a message's value distinguishes it from one of the log
            let leads = header.magic == 2 && chain.end == ChainEnd::Exact && chain.position == goal;
            if leads
                && !is_counted(self.source, &mut self.hops, header.position, goal)?
                && !self.payload.holds(self.source, &mut self.hops, extent(&header))?
            {
                return Ok(Next::Batch(header.position));
            }
            // R4
            if matches!(next, Next::End(_)) && chain.position < goal && self.precedes_zeros(&header, &chain)? {
                return Ok(Next::Batch(header.position));
            }
            at = chain.position.max(at.saturating_add(1));
        }
        Ok(next)
    }

    /// Whether R4 accepts a candidate: batches after the missing bytes lead to the zeros of a preallocated file, and so does
    /// the damaged batch's size.
    fn precedes_zeros(&mut self, header: &BatchHeader, chain: &CandidateChain) -> Result<bool> {
        let bounds = self.bounds(self.floor, true);
        let damaged = candidate(self.hops.bytes_from(self.source, self.damaged, HEAD_LEN)?, self.damaged, &bounds);
        let follows = damaged.is_some_and(|damaged| header.stored_base_offset >= damaged.next_offset());
        Ok(header.magic == 2
            && chain.end == ChainEnd::Exact
            && follows
            && !is_counted(self.source, &mut self.hops, header.position, chain.position)?
            && self.is_zero_to_the_end(chain.position)?)
    }

    /// Applies R2 and R5 to R14 to every byte after the first of the damaged batch.
    fn byte_by_byte(&mut self) -> Result<Next> {
        let mut held: Vec<HeldCandidate> = Vec::new();
        let mut proof = Proof::new(self.source, self.damaged)?;
        let mut at = self.damaged.saturating_add(1);
        self.payload = DamagedRecords::new(self.damaged);
        let bounds = self.bounds(self.floor, true);
        let bytes = self.hops.bytes_from(self.source, self.damaged, HEAD_LEN)?;
        let damaged = candidate(bytes, self.damaged, &bounds);
        self.next_of_damaged = damaged.as_ref().map(BatchHeader::next_offset).or_else(|| offset_after_message(bytes));
        self.cut = damaged.filter(|header| u64_of(header.size) > self.end.saturating_sub(self.damaged));
        self.sets = CompressedSets::find(self.source, &mut self.hops, self.damaged..self.end, &bounds)?;
        while let Some(header) = self.next_candidate(&mut at, self.until, !held.is_empty())? {
            match self.judge(&header, &mut proof)? {
                Verdict::Take => {
                    let chosen = choose(&held, Some(&header), self.next_of_damaged);
                    return Ok(Next::Batch(chosen.unwrap_or(header.position)));
                }
                Verdict::Refuse { go_on } => at = go_on.max(at.saturating_add(1)),
                Verdict::Hold(chain) => {
                    at = chain.sure.0.max(at.saturating_add(1));
                    held.push(HeldCandidate { header, chain });
                    if held.len() >= HELD_COUNT {
                        break;
                    }
                }
            }
        }
        Ok(choose(&held, None, self.next_of_damaged).map_or(Next::End(self.end), Next::Batch))
    }

    /// Returns the next candidate at or after `at` and before `until`, and moves `at` to it.
    fn next_candidate(&mut self, at: &mut u64, until: u64, is_ahead: bool) -> Result<Option<BatchHeader>> {
        let bounds = self.bounds(self.floor, false);
        let furthest = self.damaged.saturating_add(u64_of(self.batch_len));
        loop {
            if *at >= until || is_ahead && (*at > furthest || !self.budget.has_budget(u64_of(SEARCH_LEN))) {
                return Ok(None);
            }
            if !self.pieces.has(*at, HEAD_LEN.saturating_add(1)) {
                *at = after_hole(self.source, *at)?.min(until);
            }
            // one more than the bytes that are kept, so that each piece contains a position to check
            let piece = self.pieces.bytes_from(self.source, *at, HEAD_LEN.saturating_add(1))?;
            let is_last = at.saturating_add(u64_of(piece.len())) >= self.end;
            let keep = if is_last { 0 } else { HEAD_LEN };
            let starts = piece.len().saturating_sub(keep).min(len_between(*at, until));
            let (found, passed) = first_sane(piece, starts, *at, &bounds);
            if !is_ahead {
                self.budget.passed = self.budget.passed.saturating_add(u64_of(passed));
            }
            *at = at.saturating_add(u64_of(passed));
            match found {
                Some(header) if self.budget.has_budget(u64_of(header.size)) && is_crc_right(self.source, &header)? => {
                    return Ok(Some(header));
                }
                Some(_) => *at = at.saturating_add(1),
                None if is_last || passed == 0 => return Ok(None),
                None => {}
            }
        }
    }

    fn judge(&mut self, header: &BatchHeader, proof: &mut Option<Proof>) -> Result<Verdict> {
        // R2
        if let Some(proof) = proof
            && proof.ends_at(self.source, header.position)?
        {
            return Ok(Verdict::Take);
        }
        let chain = self.follow(header)?;
        // R5
        if is_counted(self.source, &mut self.hops, header.position, chain.position)? {
            return Ok(Verdict::Refuse { go_on: chain.position });
        }
        // R6: a part of a compressed set that looks like a message may have any offset
        if header.magic < 2 && !self.is_floor_known && header.stored_base_offset > MAX_GUESSED_OFFSET {
            return Ok(Verdict::Refuse { go_on: chain.sure.0 });
        }
        // R7
        if self.is_cautious {
            return Ok(Verdict::Take);
        }
        // R14
        if self.sets.may_have(header) {
            return Ok(Verdict::Refuse { go_on: extent(header).1 });
        }
        // R8
        if chain.end == ChainEnd::Exact && self.continues_log(header) {
            return Ok(Verdict::Take);
        }
        // R9: the first of two incomplete batches lost bytes
        if matches!(chain.end, ChainEnd::Cut | ChainEnd::CutMessage)
            && self.next_of_damaged == Some(header.stored_base_offset)
        {
            return Ok(Verdict::Take);
        }
        // R10
        if self.payload.holds(self.source, &mut self.hops, extent(header))? {
            return Ok(Verdict::Refuse { go_on: chain.sure.0 });
        }
        // R11: the message may be one of a compressed set, and there is no floor to rule that out
        if chain.end.is_broken() && header.magic < 2 && !self.is_floor_known {
            return Ok(Verdict::Refuse { go_on: chain.sure.0 });
        }
        // R13, R12
        Ok(if chain.end.is_broken() { Verdict::Hold(chain) } else { Verdict::Take })
    }

    /// Whether the batches of an exact chain may belong to the log (R8). If the damaged batch extends past the end of
    /// the input, it may be incomplete and contain copies of batches in a value. Or some of its bytes are missing;
    /// then the next batch has a later offset.
    fn continues_log(&self, header: &BatchHeader) -> bool {
        self.cut.is_none_or(|cut| header.stored_base_offset >= cut.next_offset())
    }

    fn is_zero_to_the_end(&mut self, position: u64) -> Result<bool> {
        if self.budget.not_zero.is_some_and(|known| position <= known) {
            return Ok(false);
        }
        let found = first_not_zero(self.source, position, self.end)?;
        self.budget.not_zero = self.budget.not_zero.max(found);
        Ok(found.is_none() && position < self.end)
    }
}

/// The positions at which a batch starts and ends.
fn extent(header: &BatchHeader) -> (u64, u64) {
    (header.position, header.end())
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::similar_names, reason = "tests")]
mod rule_tests;
#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::similar_names, reason = "tests")]
mod tests;
