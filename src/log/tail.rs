//! [`SegmentTail`]: the bytes after the last batch of a segment. Only this module decides whether a segment ends
//! cleanly.

use crate::error::Result;
use crate::format::frame::is_zeros;
use crate::format::header::HEADER_LEN_UP_TO_MAGIC;
use crate::io::{ReadAt, is_zero_to_the_end};
use crate::limits::Limits;
use crate::log::resync::Resync;

/// The bytes after the last batch that a reader returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentTail {
    /// There are none.
    Clean,
    /// Zeros up to the end, as in a preallocated file.
    Zeros,
    /// The start of a batch, or other bytes. No complete batch follows.
    Partial,
    /// Corruption, followed by a complete batch at position `next`.
    Corrupt { next: u64 },
}

impl SegmentTail {
    /// Classifies the bytes from the position at which a reader of all batches ended. Never returns
    /// [`SegmentTail::Corrupt`].
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn at(source: &dyn ReadAt, position: u64) -> Result<Self> {
        let mut head = [0; HEADER_LEN_UP_TO_MAGIC];
        Ok(match source.read_bytes_at(&mut head, position)? {
            0 => Self::Clean,
            count if is_zeros(head.get(..count).unwrap_or_default()) => {
                if is_zero_to_the_end(source, position, source.byte_len()?)? { Self::Zeros } else { Self::Partial }
            }
            _ => Self::Partial,
        })
    }

    /// Like [`SegmentTail::at`], but also searches for complete batches. `next_offset` is the smallest offset that
    /// they can have. A batch that may be in a value of an incomplete batch counts too: the callers fail rather than
    /// lose it.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn search(
        source: &dyn ReadAt,
        position: u64,
        next_offset: Option<i64>,
        limits: &Limits,
    ) -> Result<Self> {
        match Self::at(source, position)? {
            Self::Partial => {
                let next = match Resync::new(limits).find_batch(source, position, next_offset)? {
                    None => Self::any_batch(source, position)?,
                    next => next,
                };
                Ok(next.map_or(Self::Partial, |next| Self::Corrupt { next }))
            }
            tail => Ok(tail),
        }
    }

    /// The position of the first complete batch after `position`, whatever its offset and size.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn any_batch(source: &dyn ReadAt, position: u64) -> Result<Option<u64>> {
        Resync::new(&Limits { batch_len: usize::MAX, ..Limits::default() }).any_batch(source, position)
    }
}
