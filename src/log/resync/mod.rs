//! Finding the next batch after damage.
//!
//! A batch is found again in one of two ways:
//!
//! 1. **By length.** The damaged batch's own size leads to the end of the input, or to a batch whose checksum is right; batches
//!    in between may be damaged too, if their headers are sane. This is what a flipped bit in a payload leaves. A v2 batch
//!    that the size leads over is the next one if the rules below leave no doubt.
//! 2. **Byte by byte**, where that size can't be trusted. A candidate has a header as brokers write it (magic 0 to 2, size
//!    within the input and [`Limits::batch_len`], counts, ids and attributes in their ranges), an offset that is not below the
//!    offset after the last good batch, and a right checksum.
//!
//! A record's value may itself hold batches. Found byte by byte, a candidate counts as the next batch
//!
//! * at once, if the damaged batch's checksum is right when the batch ends there: only its size, epoch or offset was damaged;
//! * never, if the bytes before it say that a value begins that is exactly as long as the candidate and the batches after it;
//! * if the batches after it lead to the exact end of the input, to zeros there, or further than a batch can be long (unless
//!   the damaged batch looks like one that the end of the input cuts: then the next rule comes first);
//! * never, if the records of the damaged batch can be followed to one that goes on past the candidate;
//! * if the batches after it lead to a batch that the end of the input cuts;
//! * else, when the batches after it end in damage again (never a v0 or v1 message of which the offset before is not known),
//!   only if nothing speaks against it: the next such place must leave room for a batch between them, in bytes and in offsets.
//!
//! What is lost by that: batches whose stored offset is below what came before (the offset is outside the checksum), batches
//! with fields that brokers do not write, batches whose offset is 2³¹ or more above what came before, and batches between two
//! damages that look like a value of the first.
//!
//! Time is linear in the bytes passed: checksums and look-ahead have budgets that grow with the bytes passed. When a crafted
//! input has used them up, candidates that would cost more are passed over, and batches are believed without look-ahead.

mod candidate;
mod checksum;
mod floor;
mod payload;

use crate::error::Result;
use crate::format::crc::Digest;
use crate::format::frame::is_zeros;
use crate::format::header::{BatchHeader, HEADER_LEN_UP_TO_MAGIC, LOG_OVERHEAD};
use crate::io::{ChunkCache, ReadAt, is_zero_to_the_end};
use crate::limits::Limits;
use crate::num::u64_of;

use candidate::{Bounds, HEAD_LEN, candidate, crc_start};
use checksum::{Proof, update};
pub(crate) use floor::Floor;
use payload::{Payload, is_counted, len_between};

/// Bytes of a message without key and value, the least that a batch has.
const SMALLEST_BATCH_LEN: u64 = 26;
/// Bytes searched at a time.
const SEARCH_LEN: usize = 1 << 18;
/// Bytes read at a time to follow headers.
const HOP_LEN: usize = 1 << 12;
/// Damaged batches with a sane header that are stepped over by their size, at most.
const HOPS: usize = 16;
/// Work for each byte passed, and the work of following one header.
const WORK_PER_BYTE: u64 = 16;
const HOP_WORK: u64 = 64;
/// Largest offset of a v0 or v1 message that is believed where the offset before it is not known.
const MAX_GUESSED_OFFSET: i64 = 1 << 48;
/// Candidates that are remembered while a better one is looked for.
const HELD_COUNT: usize = 64;

/// Where a walk goes on after damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// A batch whose checksum is right begins here.
    Batch(u64),
    /// No batch follows. Batches, damaged ones, reach up to here; what is left is a batch that is cut, zeros, or nothing.
    End(u64),
}

/// Finds the next batch after damage; holds the budgets of work, so one is used for a whole pass over an input.
#[derive(Debug)]
pub(crate) struct Resync {
    batch_len: usize,
    passed: u64,
    spent: u64,
    /// Work that is free: two of the largest batches.
    free: u64,
    /// Where not all bytes from there on are zero, as far as that is known.
    not_zero: Option<u64>,
}

impl Resync {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { batch_len: limits.batch_len, passed: 0, spent: 0, free: 1 << 20, not_zero: None }
    }

    /// The next batch after the damaged one at `damaged`. `next_offset` is the least that it has, if there was a batch
    /// before: see [`Floor`].
    ///
    /// # Errors
    /// Those of reading.
    pub(crate) fn find(&mut self, source: &dyn ReadAt, damaged: u64, next_offset: Option<i64>) -> Result<Next> {
        let mut search = self.search(source, damaged, next_offset)?;
        match search.by_length()? {
            Some(next) => search.or_before(next),
            None => search.byte_by_byte(),
        }
    }

    fn search<'s>(&'s mut self, source: &'s dyn ReadAt, damaged: u64, next_offset: Option<i64>) -> Result<Search<'s>> {
        let end = source.byte_len()?;
        self.free = self.free.max(end.min(u64_of(self.batch_len)).saturating_mul(2));
        Ok(Search {
            budget: self,
            source,
            damaged,
            end,
            floor: next_offset.unwrap_or(0).max(0),
            is_floor_known: next_offset.is_some(),
            goal: None,
            pieces: ChunkCache::new(SEARCH_LEN),
            hops: ChunkCache::new(HOP_LEN),
            payload: Payload::new(damaged),
            cut: None,
            is_cautious: false,
        })
    }

    /// As [`Resync::find`], and on behind a batch that only seems to be cut by the end of the input, because its size is damaged
    /// too; `None` where no batch follows.
    ///
    /// # Errors
    /// Those of reading.
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

    /// Whether any batch with a correct checksum may follow at or after a position, whatever its offset; the first such batch. A batch
    /// counts unless the bytes before it say that a value of exactly its length begins there.
    ///
    /// # Errors
    /// Those of reading.
    pub(crate) fn any_batch(&mut self, source: &dyn ReadAt, damaged: u64) -> Result<Option<u64>> {
        let mut search = self.search(source, damaged, None)?;
        search.is_cautious = true;
        match search.byte_by_byte()? {
            Next::Batch(position) => Ok(Some(position)),
            Next::End(_) => Ok(None),
        }
    }

    fn affords(&mut self, work: u64) -> bool {
        let spent = self.spent.saturating_add(work);
        let affords = spent <= self.passed.saturating_mul(WORK_PER_BYTE).saturating_add(self.free);
        if affords {
            self.spent = spent;
        }
        affords
    }
}

/// One search.
struct Search<'a> {
    budget: &'a mut Resync,
    source: &'a dyn ReadAt,
    damaged: u64,
    end: u64,
    /// The least offset that the next batch may have.
    floor: i64,
    /// Whether that is known from the batch before.
    is_floor_known: bool,
    /// Where a chain may end, because it is known what follows.
    goal: Option<u64>,
    pieces: ChunkCache,
    hops: ChunkCache,
    payload: Payload,
    /// The damaged batch, if it may be a sane one that the end of the input cuts.
    cut: Option<BatchHeader>,
    /// Whether a batch counts although it may lie in a value of the damaged one.
    is_cautious: bool,
}

/// How the batches after a candidate end.
#[derive(Clone, Copy, PartialEq)]
enum ChainEnd {
    /// At the end of the input, in zeros, or further away than a batch can be long.
    Exact,
    /// In a batch that the end of the input cuts.
    Cut,
    /// In damage, or they never were batches.
    Broken,
}

/// The batches after a candidate.
struct Chain {
    end: ChainEnd,
    /// Where sizes lead.
    position: u64,
    /// Where the chain surely reaches, and the offset there: not over a last batch whose checksum is wrong, since then
    /// that batch's size may be what is damaged.
    sure: (u64, i64),
}

/// A candidate that is not sure.
struct Held {
    header: BatchHeader,
    chain: Chain,
}

enum Verdict {
    Take,
    Refuse { go_on: u64 },
    Hold(Chain),
}

impl Search<'_> {
    fn bounds(&self, floor: i64, cut: bool) -> Bounds {
        // the offsets of a segment lie within 2³¹
        let span = if self.is_floor_known || floor > self.floor { i64::from(i32::MAX) } else { i64::MAX };
        Bounds { floor, span, batch_len: self.budget.batch_len, end: self.end, cut }
    }

    /// Follows sizes from the damaged batch on; `None` where they lead to nothing.
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
            if self.payload.holds(self.source, &mut self.hops, at)? {
                return Ok(None);
            }
            if is_cut || (self.budget.affords(u64_of(header.size)) && self.is_crc_right(&header)?) {
                return Ok(Some(if is_cut { Next::End(at) } else { Next::Batch(at) }));
            }
            at = after;
        }
        Ok(None)
    }

    /// A damaged size may lead too far, to a batch's start by chance: a batch before `next` is taken if the damaged batch's
    /// checksum is right up to there, or if batches lead from there to `next` and are no value.
    fn or_before(&mut self, next: Next) -> Result<Next> {
        let (Next::Batch(goal) | Next::End(goal)) = next;
        let until = if let Next::Batch(position) = next { position } else { self.end };
        let mut proof = Proof::new(self.source, self.damaged)?;
        self.payload = Payload::new(self.damaged);
        self.goal = Some(goal);
        let mut at = self.damaged.saturating_add(1);
        while let Some(header) = self.next_candidate(&mut at, until, false)? {
            if let Some(proof) = &mut proof
                && proof.ends_at(self.source, header.position)?
            {
                return Ok(Next::Batch(header.position));
            }
            let chain = self.follow(&header)?;
            // a message in a message's value has nothing before it that tells a value's length from a damaged one
            let leads = header.magic == 2 && chain.end == ChainEnd::Exact && chain.position == goal;
            if leads
                && !is_counted(self.source, &mut self.hops, header.position, goal)?
                && !self.payload.holds(self.source, &mut self.hops, header.position)?
            {
                return Ok(Next::Batch(header.position));
            }
            at = chain.position.max(at.saturating_add(1));
        }
        Ok(next)
    }

    /// Looks at every byte after the damaged batch's first.
    fn byte_by_byte(&mut self) -> Result<Next> {
        let mut held: Vec<Held> = Vec::new();
        let mut proof = Proof::new(self.source, self.damaged)?;
        let mut at = self.damaged.saturating_add(1);
        self.payload = Payload::new(self.damaged);
        let bounds = self.bounds(self.floor, true);
        self.cut = candidate(self.hops.bytes_from(self.source, self.damaged, HEAD_LEN)?, self.damaged, &bounds)
            .filter(|header| u64_of(header.size) > self.end.saturating_sub(self.damaged));
        while let Some(header) = self.next_candidate(&mut at, self.end, !held.is_empty())? {
            match self.judge(&header, &mut proof)? {
                Verdict::Take => return Ok(Next::Batch(choose(&held, Some(&header)).unwrap_or(header.position))),
                Verdict::Refuse { go_on } => at = go_on.max(at.saturating_add(1)),
                Verdict::Hold(chain) => {
                    at = chain.sure.0.max(at.saturating_add(1));
                    held.push(Held { header, chain });
                    if held.len() >= HELD_COUNT {
                        break;
                    }
                }
            }
        }
        Ok(choose(&held, None).map_or(Next::End(self.end), Next::Batch))
    }

    /// The next header from `at` on and before `until` that is sane and whose checksum is right; `at` moves there.
    fn next_candidate(&mut self, at: &mut u64, until: u64, is_ahead: bool) -> Result<Option<BatchHeader>> {
        let bounds = self.bounds(self.floor, false);
        let furthest = self.damaged.saturating_add(u64_of(self.budget.batch_len));
        loop {
            if *at >= until || is_ahead && (*at > furthest || !self.budget.affords(u64_of(SEARCH_LEN))) {
                return Ok(None);
            }
            // one byte more than is kept, so that each piece has a place to look at
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
                Some(header) if self.budget.affords(u64_of(header.size)) && self.is_crc_right(&header)? => {
                    return Ok(Some(header));
                }
                Some(_) => *at = at.saturating_add(1),
                None if is_last || passed == 0 => return Ok(None),
                None => {}
            }
        }
    }

    fn judge(&mut self, header: &BatchHeader, proof: &mut Option<Proof>) -> Result<Verdict> {
        if let Some(proof) = proof
            && proof.ends_at(self.source, header.position)?
        {
            return Ok(Verdict::Take);
        }
        let chain = self.follow(header)?;
        if is_counted(self.source, &mut self.hops, header.position, chain.position)? {
            return Ok(Verdict::Refuse { go_on: chain.position });
        }
        // bytes of a compressed set that look like a message have any offset
        if header.magic < 2 && !self.is_floor_known && header.base_offset > MAX_GUESSED_OFFSET {
            return Ok(Verdict::Refuse { go_on: chain.position });
        }
        if self.is_cautious {
            return Ok(Verdict::Take);
        }
        if chain.end == ChainEnd::Exact && self.continues_log(header) {
            return Ok(Verdict::Take);
        }
        if self.payload.holds(self.source, &mut self.hops, header.position)? {
            return Ok(Verdict::Refuse { go_on: chain.position });
        }
        // a message alone may be one of a compressed set, where no offset says otherwise
        if chain.end == ChainEnd::Broken && header.magic < 2 && !self.is_floor_known {
            return Ok(Verdict::Refuse { go_on: chain.position });
        }
        Ok(if chain.end == ChainEnd::Broken { Verdict::Hold(chain) } else { Verdict::Take })
    }

    /// Whether batches that lead to the end of the input are the log's own. If the damaged batch claims more bytes than are left, it
    /// may be a batch that was never written completely, with copies of batches in a value; or bytes of it are missing, and then the
    /// next batch has a later offset.
    fn continues_log(&self, header: &BatchHeader) -> bool {
        self.cut.is_none_or(|cut| header.base_offset >= cut.next_offset())
    }

    /// Walks the headers after a candidate.
    fn follow(&mut self, first: &BatchHeader) -> Result<Chain> {
        let furthest = self.damaged.saturating_add(u64_of(self.budget.batch_len));
        let mut position = first.position.saturating_add(u64_of(first.size));
        // offsets are outside the checksum: one that is wrong must not end the chain, so the one before it bounds the next too
        let (mut next_offset, mut before) = (first.next_offset(), first.base_offset);
        // the last batch but the first, and the offset before it
        let mut last: Option<(BatchHeader, i64)> = None;
        let end = loop {
            if position == self.end
                || self.goal == Some(position)
                || position > furthest
                || !self.budget.affords(HOP_WORK)
            {
                break ChainEnd::Exact;
            }
            let (bounds, lower) = (self.bounds(next_offset, true), self.bounds(before, true));
            let head = self.hops.bytes_from(self.source, position, HEAD_LEN)?;
            let mut header = candidate(head, position, &bounds);
            if header.is_none() {
                header = candidate(head, position, &lower);
                // unless a value ends here, and what follows it has the offsets of its time
                if header.is_some() && is_counted(self.source, &mut self.hops, first.position, position)? {
                    break ChainEnd::Broken;
                }
            }
            let Some(header) = header else {
                break if self.is_zero_from(position)? { ChainEnd::Exact } else { ChainEnd::Broken };
            };
            let after = position.saturating_add(u64_of(header.size));
            if after > self.end {
                break ChainEnd::Cut;
            }
            last = Some((header, next_offset));
            before = next_offset.min(header.base_offset);
            (position, next_offset) = (after, header.next_offset());
        };
        let mut sure = (position, next_offset);
        if let Some((header, offset)) = last
            && end == ChainEnd::Broken
            && self.budget.affords(u64_of(header.size))
            && !self.is_crc_right(&header)?
        {
            sure = (header.position, offset);
        }
        Ok(Chain { end, position, sure })
    }

    /// Whether zeros begin at a position, more than the start of a header has. Not all up to the end are looked at.
    fn is_zero_from(&mut self, position: u64) -> Result<bool> {
        let left = len_between(position, self.end).min(HOP_LEN);
        let bytes = self.hops.bytes_from(self.source, position, left)?;
        let bytes = bytes.get(..left.min(bytes.len())).unwrap_or_default();
        Ok(bytes.len() > HEADER_LEN_UP_TO_MAGIC && is_zeros(bytes))
    }

    fn is_zero_to_the_end(&mut self, position: u64) -> Result<bool> {
        if self.budget.not_zero.is_some_and(|known| position <= known) {
            return Ok(false);
        }
        if !is_zero_to_the_end(self.source, position, self.end)? {
            self.budget.not_zero = self.budget.not_zero.max(Some(position));
            return Ok(false);
        }
        Ok(position < self.end)
    }

    fn is_crc_right(&mut self, header: &BatchHeader) -> Result<bool> {
        let mut digest = Digest::of_magic(header.magic);
        let start = header.position.saturating_add(u64_of(crc_start(header.magic)));
        let end = header.position.saturating_add(u64_of(header.size));
        update(&mut digest, self.source, start, end)?;
        Ok(digest.value() == header.crc)
    }
}

/// The first sane header that begins in the first `starts` bytes, and how many bytes come before it.
fn first_sane(piece: &[u8], starts: usize, position: u64, bounds: &Bounds) -> (Option<BatchHeader>, usize) {
    for start in 0..starts {
        let Some(rest) = piece.get(start..) else { break };
        if rest.get(16).is_some_and(|magic| *magic <= 2)
            && let Some(header) = candidate(rest, position.saturating_add(u64_of(start)), bounds)
        {
            return (Some(header), start);
        }
    }
    (None, starts)
}

/// The earliest place that agrees with all that follows it, `last` being the one that is sure.
fn choose(held: &[Held], last: Option<&BatchHeader>) -> Option<u64> {
    let mut chosen = last.copied();
    for earlier in held.iter().rev() {
        let agrees = chosen.is_none_or(|later| {
            let (position, next_offset) = earlier.chain.sure;
            later.base_offset > next_offset && later.position.saturating_sub(position) >= SMALLEST_BATCH_LEN
        });
        if agrees {
            chosen = Some(earlier.header);
        }
    }
    chosen.map(|header| header.position)
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, clippy::similar_names, reason = "tests")]
mod tests;
