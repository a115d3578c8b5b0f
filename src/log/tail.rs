//! [`SegmentTail`]: the bytes after the last batch of a segment. Only this module decides whether a segment ends
//! cleanly.

use std::ops::Range;

use crate::error::{Error, ErrorKind, Result};
use crate::format::frame::is_zeros;
use crate::format::header::HEADER_LEN_UP_TO_MAGIC;
use crate::io::{ReadAt, is_zero_to_the_end};
use crate::limits::Limits;
use crate::log::resync::Resync;
use crate::slices::Slices;

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
            count if is_zeros(head.part(..count)) => {
                if is_zero_to_the_end(source, position, source.byte_len()?)? {
                    Self::Zeros
                } else {
                    Self::Partial
                }
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
                let next = Self::batch_after(source, position, next_offset, limits)?;
                Ok(next.map_or(Self::Partial, |next| Self::Corrupt { next }))
            }
            tail => Ok(tail),
        }
    }

    /// The position of a complete batch after an incomplete or corrupt one at `position`. `next_offset` is the
    /// smallest offset that it should have; if there is no such batch, one of any offset and size counts.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn batch_after(
        source: &dyn ReadAt,
        position: u64,
        next_offset: Option<i64>,
        limits: &Limits,
    ) -> Result<Option<u64>> {
        match Resync::new(limits).find_batch(source, position, next_offset)? {
            None => Self::any_batch(source, position),
            next => Ok(next),
        }
    }

    /// Whether a batch with a wrong checksum, at some positions and with an offset, ends a segment as while a broker writes
    /// to a preallocated file: only zeros follow it. A corrupt length may lead into these, past complete batches.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn is_being_written(
        source: &dyn ReadAt,
        batch: Range<u64>,
        offset: i64,
        limits: &Limits,
    ) -> Result<bool> {
        Ok(Self::at(source, batch.end)? == Self::Zeros
            && Self::batch_after(source, batch.start, Some(offset), limits)?.is_none())
    }

    /// The position of the first complete batch after `position`, whatever its offset and size.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn any_batch(source: &dyn ReadAt, position: u64) -> Result<Option<u64>> {
        Resync::new(&Limits::default()).any_batch(source, position, u64::MAX)
    }

    /// Fails unless a segment may end like this. The last segment of a log may end inside a batch or in zeros, because
    /// a broker is still writing it or was killed. `position` and `next_offset` are those after the last batch, and
    /// `next_base` is the base offset of the next segment.
    ///
    /// # Errors
    /// [`ErrorKind::CutBatch`] if a batch extends past the end although batches or another segment follow;
    /// [`ErrorKind::ZeroTail`] if zeros replace the offsets up to the next segment.
    pub(crate) fn check(self, position: u64, next_offset: Option<i64>, next_base: Option<i64>) -> Result<()> {
        let kind = match self {
            Self::Clean => return Ok(()),
            Self::Zeros if next_base.is_none() || next_base == next_offset => return Ok(()),
            Self::Zeros => ErrorKind::ZeroTail,
            Self::Partial if next_base.is_none() => return Ok(()),
            Self::Partial | Self::Corrupt { .. } => ErrorKind::CutBatch,
        };
        let error = Error::new(kind).at(position).in_field("size");
        Err(match next_offset {
            Some(offset) => error.in_batch(offset),
            None => error,
        })
    }
}
