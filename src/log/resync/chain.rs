//! The chain of a candidate: the batches that sizes lead to, and how it ends.

use crate::error::Result;
use crate::format::frame::is_zeros;
use crate::format::header::{BatchHeader, HEADER_LEN_UP_TO_MAGIC};
use crate::log::resync::candidate::{HEAD_LEN, candidate, may_be_cut_message};
use crate::log::resync::payload::{is_counted, len_between};
use crate::log::resync::{BatchSearch, HOP_LEN, HOP_WORK, SMALLEST_BATCH_LEN, is_crc_right};
use crate::num::u64_of;
use crate::slices::Slices;

/// How the chain of a candidate ends.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum ChainEnd {
    /// At the end of the input, in zeros, at the result of R1, or farther away than a batch can be long.
    Exact,
    /// In a batch that extends past the end of the input.
    Cut,
    /// In what may be a v0 or v1 message that extends past the end of the input. Only R9 distinguishes it from `Broken`.
    CutMessage,
    /// Anywhere else.
    Broken,
}

impl ChainEnd {
    pub(super) fn is_broken(self) -> bool {
        matches!(self, Self::CutMessage | Self::Broken)
    }
}

/// The chain of a candidate.
pub(super) struct CandidateChain {
    pub(super) end: ChainEnd,
    /// The position that sizes lead to.
    pub(super) position: u64,
    /// The position and offset up to which the chain is certain. Excludes a last batch with a wrong checksum, because
    /// its size may be damaged.
    pub(super) sure: (u64, i64),
}

/// A candidate that R13 holds.
pub(super) struct HeldCandidate {
    pub(super) header: BatchHeader,
    pub(super) chain: CandidateChain,
}

impl BatchSearch<'_> {
    /// Follows the chain of a candidate.
    pub(super) fn follow(&mut self, first: &BatchHeader) -> Result<CandidateChain> {
        let furthest = self.damaged.saturating_add(u64_of(self.batch_len));
        let mut position = first.end();
        // offsets are not part of the checksum: a damaged one must not break the chain, so the one before it is a
        // lower bound too
        let (mut next_offset, mut before) = (first.next_offset(), first.stored_base_offset);
        // the last batch after the first, and the offset before it
        let mut last: Option<(BatchHeader, i64)> = None;
        let end = loop {
            if position == self.end
                || self.goal == Some(position)
                || position > furthest
                || !self.budget.has_budget(HOP_WORK)
            {
                break ChainEnd::Exact;
            }
            let (bounds, lower) = (self.bounds(next_offset, true), self.bounds(before, true));
            let head = self.hops.bytes_from(self.source, position, HEAD_LEN)?;
            let is_message = may_be_cut_message(head, position, &bounds);
            let mut header = candidate(head, position, &bounds);
            if header.is_none() {
                header = candidate(head, position, &lower);
                // unless the chain so far is a value: the log that continues after it may have earlier offsets
                if header.is_some() && is_counted(self.source, &mut self.hops, first.position, position)? {
                    break ChainEnd::Broken;
                }
            }
            let Some(header) = header else {
                let is_cut = self.end.saturating_sub(position) < u64_of(HEAD_LEN);
                break match self.is_zero_from(position)? {
                    true => ChainEnd::Exact,
                    false if is_cut => ChainEnd::Cut,
                    false if is_message => ChainEnd::CutMessage,
                    false => ChainEnd::Broken,
                };
            };
            let after = position.saturating_add(u64_of(header.size));
            if after > self.end {
                break ChainEnd::Cut;
            }
            last = Some((header, next_offset));
            before = next_offset.min(header.stored_base_offset);
            (position, next_offset) = (after, header.next_offset());
        };
        let mut sure = (position, next_offset);
        if let Some((header, offset)) = last
            && end.is_broken()
            && self.budget.has_budget(u64_of(header.size))
            && !is_crc_right(self.source, &header)?
        {
            sure = (header.position, offset);
        }
        Ok(CandidateChain { end, position, sure })
    }

    /// Whether zeros start at a position, more of them than a header could start with. Checks at most [`HOP_LEN`]
    /// bytes.
    fn is_zero_from(&mut self, position: u64) -> Result<bool> {
        let left = len_between(position, self.end).min(HOP_LEN);
        let bytes = self.hops.bytes_from(self.source, position, left)?;
        let bytes = bytes.part(..left.min(bytes.len()));
        Ok(bytes.len() > HEADER_LEN_UP_TO_MAGIC && is_zeros(bytes))
    }
}

/// R13: returns the position of the earliest held candidate that agrees with the ones after it. `last` is the accepted
/// one, and `next_of_damaged` the offset after the damaged batch, if that is known.
pub(super) fn choose(held: &[HeldCandidate], last: Option<&BatchHeader>, next_of_damaged: Option<i64>) -> Option<u64> {
    let mut chosen = last.copied();
    for earlier in held.iter().rev() {
        let agrees = chosen.is_none_or(|later| {
            let (position, next_offset) = earlier.chain.sure;
            let fits =
                later.stored_base_offset > next_offset && later.position.saturating_sub(position) >= SMALLEST_BATCH_LEN;
            let continues = next_of_damaged == Some(earlier.header.stored_base_offset)
                && later.stored_base_offset == next_offset
                && later.position > position;
            fits || continues
        });
        if agrees {
            chosen = Some(earlier.header);
        }
    }
    chosen.map(|header| header.position)
}
