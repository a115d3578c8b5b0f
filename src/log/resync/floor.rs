//! [`Floor`]: what the batches before a damage say of the offsets after it.

use crate::format::header::BatchHeader;

/// The offset after the last batch, and the least that the next one has.
///
/// A batch's offset is outside its checksum. Where one lies above what the batch before led to, that is a gap, or a damaged
/// offset, and then all that follows would seem to come before it: the batch after it tells. Until then the offset before the gap
/// is the least.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Floor {
    next: Option<i64>,
    least: Option<i64>,
}

impl Floor {
    /// Before the first batch, where its offset may be known.
    pub(crate) fn at(next: Option<i64>) -> Self {
        Self { next, least: next }
    }

    /// Takes a batch into account.
    pub(crate) fn pass(&mut self, header: &BatchHeader) {
        let next = header.next_offset();
        let before_gap = self.next.filter(|expected| header.base_offset > *expected);
        (self.next, self.least) = (Some(next), Some(before_gap.unwrap_or(next)));
    }

    /// The offset after the last batch, as it says.
    #[cfg_attr(not(feature = "arrow"), expect(dead_code, reason = "only scans ask"))]
    pub(crate) fn next(self) -> Option<i64> {
        self.next
    }

    /// The least offset that the next batch can have.
    pub(crate) fn least(self) -> Option<i64> {
        self.least
    }
}
