//! [`Lineage`]: which leader epoch wrote which offsets of the partition.
//!
//! ```text
//! epoch   0          3        4
//! offset  0 ────────▶120 ────▶150 ────▶
//! segment of epoch 3:    120..199          offsets 150..199 are lost: the leader of epoch 4 began at 150
//! segment of epoch 2:    100..140          all offsets are lost: the partition has no epoch 2
//! ```

use super::{Candidate, end_of};
use crate::log::checkpoint::{EpochEntry, LeaderEpochs};

/// The leader epochs of the partition, oldest first.
#[derive(Debug, Default)]
pub(super) struct Lineage(Vec<EpochEntry>);

/// The part of a segment that belongs to the partition.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Valid {
    /// The offset after the part. `None` if the end of the segment is unknown, and no leader epoch bounds it.
    pub(super) end: Option<i64>,
    /// The epoch of the first record that does not belong to the partition.
    pub(super) deposed: Option<i32>,
}

impl Lineage {
    pub(super) fn new(epochs: &LeaderEpochs) -> Self {
        Self(epochs.entries().to_vec())
    }

    /// Assembles the lineage from the epochs of segments: those of the segment with the latest leader, and older ones
    /// from the segments before it.
    ///
    /// If segments have only their own epochs, rather than the whole history, the records of a deposed leader whose
    /// epoch directly precedes the others' cannot be recognized.
    pub(super) fn infer<'c>(candidates: impl Iterator<Item = &'c Candidate>) -> Self {
        let last_epoch = |candidate: &Candidate| candidate.leader_epochs.iter().map(|entry| entry.epoch).max();
        let mut newest_first: Vec<&Candidate> = candidates.collect();
        newest_first.sort_by_key(|candidate| {
            let end = end_of(candidate).unwrap_or(candidate.start_offset);
            std::cmp::Reverse((last_epoch(candidate), end))
        });
        // newest first
        let mut entries: Vec<EpochEntry> = Vec::new();
        for candidate in newest_first {
            let mut own = candidate.leader_epochs.clone();
            own.sort_unstable();
            for entry in own.into_iter().rev() {
                match entries.last_mut() {
                    // a segment's first epoch may have begun before the segment
                    Some(oldest) if oldest.epoch == entry.epoch => {
                        oldest.start_offset = oldest.start_offset.min(entry.start_offset);
                    }
                    Some(oldest) if entry.epoch > oldest.epoch || entry.start_offset >= oldest.start_offset => {}
                    _ => entries.push(entry),
                }
            }
        }
        entries.reverse();
        Self(entries)
    }

    /// Adds the later epochs of another lineage: this one may be of an old copy.
    pub(super) fn continued_by(mut self, other: Self) -> Self {
        let last = self.0.last().copied();
        let is_later = |entry: &EpochEntry| {
            last.is_none_or(|last| entry.epoch > last.epoch && entry.start_offset >= last.start_offset)
        };
        self.0.extend(other.0.into_iter().filter(is_later));
        self
    }

    /// Compares the leader epochs of a segment with the lineage.
    pub(super) fn valid_part(&self, candidate: &Candidate) -> Valid {
        let end = end_of(candidate);
        let mut epochs = candidate.leader_epochs.clone();
        epochs.sort_unstable();
        for (place, entry) in epochs.iter().enumerate() {
            let next = place.checked_add(1).and_then(|next| epochs.get(next)).map(|next| next.start_offset);
            let piece_start = entry.start_offset.max(candidate.start_offset);
            // the history may begin before the segment, and a checkpoint may reach beyond it
            let piece_end = match (next, end) {
                (Some(next), Some(end)) => Some(next.min(end)),
                (next, end) => next.or(end),
            };
            if piece_end.is_some_and(|piece_end| piece_end <= piece_start) {
                continue;
            }
            match self.bound(entry.epoch, piece_start) {
                EpochBound::None => {}
                EpochBound::Until(bound) if piece_end.is_some_and(|piece_end| piece_end <= bound) => {}
                EpochBound::Until(bound) if piece_end.is_some() => {
                    return Valid { end: Some(bound.max(piece_start)), deposed: Some(entry.epoch) };
                }
                // whether the segment reaches the bound is unknown
                EpochBound::Until(bound) => return Valid { end: Some(bound.max(piece_start)), deposed: None },
                EpochBound::Deposed => return Valid { end: Some(piece_start), deposed: Some(entry.epoch) },
            }
        }
        Valid { end, deposed: None }
    }

    /// Up to which offset an epoch's records belong to the partition, if they begin at `start`.
    fn bound(&self, epoch: i32, start: i64) -> EpochBound {
        let higher = self.0.partition_point(|entry| entry.epoch <= epoch);
        let next = self.0.get(higher);
        let own = higher.checked_sub(1).and_then(|own| self.0.get(own));
        match (own, next) {
            // the partition's current epoch, or a later one that the lineage does not have yet
            (_, None) => EpochBound::None,
            // older than the lineage, whose start was truncated
            (None, Some(next)) if start < next.start_offset => EpochBound::Until(next.start_offset),
            (Some(own), Some(next)) if own.epoch == epoch && start < next.start_offset => {
                EpochBound::Until(next.start_offset)
            }
            _ => EpochBound::Deposed,
        }
    }
}

/// How far the records of an epoch belong to the partition.
enum EpochBound {
    /// No later epoch is known.
    None,
    /// Up to the start of the next epoch.
    Until(i64),
    /// None of them does.
    Deposed,
}
