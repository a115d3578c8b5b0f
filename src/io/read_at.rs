//! [`ReadAt`]: the trait through which kbat reads bytes at a position. [`ChunkCache`]: reads them in chunks.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::format::frame::is_zeros;
use crate::io::waiting::InterruptTimer;
use crate::num::{u64_of, usize_from_u64};
use crate::slices::Slices;

/// A buffer or file that is read by position.
pub(crate) trait ReadAt {
    /// Current length in bytes.
    ///
    /// # Errors
    /// I/O errors.
    fn byte_len(&self) -> Result<u64>;

    /// Reads at a position until `out` is full or the bytes end. Returns how many bytes were read.
    ///
    /// # Errors
    /// I/O errors.
    fn read_bytes_at(&self, out: &mut [u8], position: u64) -> Result<usize>;

    /// Returns the first position at or after `position` whose byte may be nonzero, or the length if there is none.
    /// Skips holes of sparse files without reading them.
    ///
    /// # Errors
    /// I/O errors.
    fn next_data(&self, position: u64) -> Result<u64> {
        Ok(position)
    }

    /// Sets the position after which nothing needs to be read in advance.
    fn limit_ahead(&self, _end: u64) {}

    /// Announces that everything from a position up to the limit will be read, so that the first bytes can be requested
    /// in advance.
    fn expect_reads(&self, _position: u64) {}

    /// Number of requests that this reader leaves to the files after it, because everything up to the limit was requested.
    fn spare_requests(&self) -> usize {
        0
    }

    /// Requests everything from a position up to the limit in advance, until `count` requests are under way. Returns how
    /// many of them are left for the files after it, as [`ReadAt::spare_requests`] does.
    fn request_ahead(&self, _position: u64, _count: usize) -> usize {
        0
    }

    /// From now on, bytes that are stored but cannot be decoded are read as 0xff instead of an error. Their
    /// error is kept for [`ReadAt::damage_in`].
    fn read_over_damage(&self) {}

    /// The error of the first bytes of a range that could not be decoded since [`ReadAt::read_over_damage`].
    fn damage_in(&self, _range: Range<u64>) -> Option<Error> {
        None
    }
}

/// The value of bytes that cannot be decoded: no batch, no magic and no zeros of a preallocated file.
pub(crate) const DAMAGED_BYTE: u8 = 0xff;

impl ReadAt for &[u8] {
    fn byte_len(&self) -> Result<u64> {
        Ok(u64_of(self.len()))
    }

    fn read_bytes_at(&self, out: &mut [u8], position: u64) -> Result<usize> {
        let rest = self.get(usize_from_u64(position)..).unwrap_or_default();
        let count = rest.len().min(out.len());
        if let (Some(to), Some(from)) = (out.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        Ok(count)
    }
}

/// An open file of a `Store`.
pub(crate) trait StoredFile: ReadAt + std::fmt::Debug + Send + Sync {}

impl<T: ReadAt + std::fmt::Debug + Send + Sync> StoredFile for T {}

/// Number of bytes to check for zeros per read.
const ZERO_CHUNK_LEN: usize = 1 << 18;

/// Whether all bytes from `position` up to `end` are zero. True for an empty range.
///
/// # Errors
/// I/O errors.
pub(crate) fn is_zero_to_the_end(source: &dyn ReadAt, position: u64, end: u64) -> Result<bool> {
    first_not_zero(source, position, end).map(|found| found.is_none())
}

/// Returns the start of the part that was read and contains the first nonzero byte, not the position of that byte.
///
/// # Errors
/// I/O errors.
pub(crate) fn first_not_zero(source: &dyn ReadAt, mut position: u64, end: u64) -> Result<Option<u64>> {
    let (mut chunk, mut timer) = (Vec::new(), InterruptTimer::default());
    while position < end {
        timer.check()?;
        position = source.next_data(position)?;
        let wanted = usize_from_u64(end.saturating_sub(position)).min(ZERO_CHUNK_LEN);
        chunk.resize(wanted, 0);
        let count = source.read_bytes_at(&mut chunk, position)?;
        if count == 0 {
            break;
        }
        if !is_zeros(chunk.part(..count)) {
            return Ok(Some(position));
        }
        position = position.saturating_add(u64_of(count));
    }
    Ok(None)
}

/// Keeps the chunk of a [`ReadAt`] that was read last.
#[derive(Debug)]
pub(crate) struct ChunkCache {
    chunk: Vec<u8>,
    position: u64,
    /// Bytes to read per chunk.
    read_len: usize,
    timer: InterruptTimer,
}

impl ChunkCache {
    pub(crate) fn new(read_len: usize) -> Self {
        Self { chunk: Vec::new(), position: 0, read_len, timer: InterruptTimer::default() }
    }

    /// Returns the bytes from a position on: at least `wanted`, or all up to the end of the source if fewer.
    ///
    /// # Errors
    /// I/O errors; the reason if the user stopped the operation.
    pub(crate) fn bytes_from(&mut self, source: &dyn ReadAt, position: u64, wanted: usize) -> Result<&[u8]> {
        if !self.has(position, wanted) {
            self.timer.check()?;
            self.chunk.resize(self.read_len.max(wanted), 0);
            let count = source.read_bytes_at(&mut self.chunk, position)?;
            self.chunk.truncate(count);
            self.position = position;
            return Ok(&self.chunk);
        }
        Ok(self.chunk.part(self.start_of(position)..))
    }

    /// Whether the chunk holds at least `wanted` bytes from a position on.
    pub(crate) fn has(&self, position: u64, wanted: usize) -> bool {
        self.start_of(position).checked_add(wanted).is_some_and(|end| end <= self.chunk.len())
    }

    fn start_of(&self, position: u64) -> usize {
        position.checked_sub(self.position).map_or(usize::MAX, usize_from_u64)
    }
}
