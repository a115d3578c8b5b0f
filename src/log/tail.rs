//! [`SegmentTail`]: what follows the last batch of a segment. The one place that decides whether a segment ends cleanly.

use crate::error::Result;
use crate::format::frame::is_zeros;
use crate::format::header::HEADER_LEN_UP_TO_MAGIC;
use crate::io::ReadAt;
use crate::log::resync::Resync;

/// What follows the last batch that a walk returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentTail {
    /// Nothing.
    Clean,
    /// Zeros up to the end, as in a preallocated file.
    Zeros,
    /// The start of a batch, or bytes that are none. No complete batch follows.
    Partial,
    /// Bytes that are not a batch, and a complete batch at this position after them.
    Corrupt { next: u64 },
}

impl SegmentTail {
    /// Classifies the bytes from a position on at which a walk over all batches ended. [`SegmentTail::Corrupt`] is not searched.
    ///
    /// # Errors
    /// Reading fails.
    pub(crate) fn at(source: &dyn ReadAt, position: u64) -> Result<Self> {
        let mut head = [0; HEADER_LEN_UP_TO_MAGIC];
        Ok(match source.read_bytes_at(&mut head, position)? {
            0 => Self::Clean,
            // a walk ends at a size of 0 only if zeros reach up to the end
            count if is_zeros(head.get(..count).unwrap_or_default()) => Self::Zeros,
            _ => Self::Partial,
        })
    }

    /// Like [`SegmentTail::at`], and searches for complete batches. `next_offset` is the least offset that they can have.
    ///
    /// # Errors
    /// Reading fails.
    pub(crate) fn search(
        source: &dyn ReadAt,
        position: u64,
        next_offset: Option<i64>,
        resync: &mut Resync,
    ) -> Result<Self> {
        match Self::at(source, position)? {
            Self::Partial => {
                let next = resync.find_batch(source, position, next_offset)?;
                Ok(next.map_or(Self::Partial, |next| Self::Corrupt { next }))
            }
            tail => Ok(tail),
        }
    }
}
