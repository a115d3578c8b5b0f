//! [`Floor`]: the smallest offset that a batch after corruption can have, derived from the batches before it.

use crate::format::header::BatchHeader;

/// The offset after the last batch, and the smallest offset that the next batch can have.
///
/// A batch's offset is not part of its checksum. If it is above the expected offset, either offsets are missing or the
/// stored offset is damaged. In the second case all later batches would seem to be below the floor. Only the next
/// batch shows which case it is, so until then the floor is the expected offset before the gap.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Floor {
    next: Option<i64>,
    least: Option<i64>,
}

impl Floor {
    /// Starts before the first batch, whose offset may be known.
    pub(crate) fn at(next: Option<i64>) -> Self {
        Self { next, least: next }
    }

    /// Updates the floor for a batch that was read.
    pub(crate) fn pass(&mut self, header: &BatchHeader) {
        let next = header.next_offset();
        let before_gap = self.next.filter(|expected| header.stored_base_offset > *expected);
        (self.next, self.least) = (Some(next), Some(before_gap.unwrap_or(next)));
    }

    /// The offset before the gap, if a batch at `offset` is after a gap and `behind`, which follows the batch, shows that
    /// the offset is damaged instead: it is one of the gap.
    pub(crate) fn damaged_gap(self, offset: i64, behind: i64) -> Option<i64> {
        self.next.filter(|expected| (*expected..offset).contains(&behind))
    }

    /// The offset after the last batch, according to its header.
    pub(crate) fn next(self) -> Option<i64> {
        self.next
    }

    /// The smallest offset that the next batch can have.
    pub(crate) fn least(self) -> Option<i64> {
        self.least
    }
}
