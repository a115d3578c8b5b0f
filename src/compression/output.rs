//! The output of codecs: a buffer that is reused for every batch, grows with the decompressed bytes, and has a limit.

use std::ops::Range;

use crate::compression::StreamFault;
use crate::slices::Slices;

/// Initial size of the buffer.
const INITIAL_LEN: usize = 64 << 10;
/// The buffer doubles up to this size. A larger buffer grows by a higher factor, because copying needs both the old and
/// the new one, and the allocator may keep the freed memory for some time. All of it may be written: an allocator that
/// reuses memory zeroes it.
const LARGE_LEN: usize = 16 << 20;
const LEAP: usize = 4;
/// Maximum bytes that codecs store after their output, so that a buffer of the limit's size need not grow for them.
const BESIDE_LEN: usize = 128 << 10;

/// Decompressed bytes with a limit. The buffer keeps its length between uses, so that only its first growth zeroes
/// memory.
#[derive(Debug)]
pub(crate) struct Output<'b> {
    buffer: &'b mut Vec<u8>,
    filled: usize,
    limit: usize,
}

impl<'b> Output<'b> {
    pub(crate) fn new(buffer: &'b mut Vec<u8>, limit: usize) -> Self {
        Self { buffer, filled: 0, limit }
    }

    pub(crate) fn filled(&self) -> usize {
        self.filled
    }

    /// Discards the output after the first `len` bytes.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.filled = self.filled.min(len);
    }

    /// Free space for at least `len` bytes if the limit allows; possibly more, but never past the limit. Also returns
    /// the bytes before it.
    ///
    /// Callers request the size that their input can really decompress to, not the size that it declares.
    pub(crate) fn room(&mut self, len: usize) -> (&[u8], &mut [u8]) {
        let wanted = self.filled.saturating_add(len).min(self.limit);
        if self.buffer.len() < wanted {
            self.lengthen(wanted, self.limit);
        }
        let end = self.buffer.len().min(self.limit);
        let (before, room) = self.buffer.split_at_mut(self.filled.min(end));
        let len = end.saturating_sub(before.len());
        (before, room.part_mut(..len))
    }

    /// Free space as from [`Output::room`], after up to `window` bytes of the output so far, and the position at which it
    /// begins.
    pub(crate) fn room_after(&mut self, window: usize, len: usize) -> (&mut [u8], usize) {
        let (before, room) = self.room(len);
        let (filled, end) = (before.len(), before.len().saturating_add(room.len()));
        let start = filled.saturating_sub(window);
        (self.buffer.part_mut(start..end), filled.saturating_sub(start))
    }

    /// Free space for one step: `len` bytes, or fewer at the limit.
    pub(crate) fn step(&mut self, len: usize) -> &mut [u8] {
        let (_, room) = self.room(len);
        let len = room.len().min(len);
        room.part_mut(..len)
    }

    /// Bytes left up to the limit.
    pub(crate) fn left(&self) -> usize {
        self.limit.saturating_sub(self.filled)
    }

    /// A buffer of `len` bytes, of which the first become output by a commit. It may exceed the limit, because bytes
    /// that a codec stores after its output are not output.
    pub(crate) fn workspace(&mut self, len: usize) -> &mut [u8] {
        let end = self.filled.saturating_add(len);
        if self.buffer.len() < end {
            self.lengthen(end, self.limit.saturating_add(BESIDE_LEN));
        }
        self.buffer.part_mut(self.filled..end)
    }

    /// Doubles the buffer. Returns `Full` at the limit.
    pub(crate) fn grow(&mut self) -> Result<(), StreamFault> {
        let len = self.buffer.len().max(self.filled);
        if len >= self.limit {
            return Err(StreamFault::Full);
        }
        self.lengthen(len, self.limit);
        Ok(())
    }

    /// Grows the buffer to at least `wanted` bytes, and by a factor as far as the limit and `most` allow.
    fn lengthen(&mut self, wanted: usize, most: usize) {
        let doubled = self.buffer.len().saturating_mul(2).max(INITIAL_LEN).min(self.limit).max(wanted);
        let leap = self.buffer.len().saturating_mul(LEAP).min(most);
        let len = if doubled > LARGE_LEN { doubled.max(leap) } else { doubled };
        // a new vector has the exact size, while growing a vector may allocate twice as much
        let mut longer = vec![0; len];
        let filled = self.filled.min(self.buffer.len());
        if let (Some(to), Some(from)) = (longer.get_mut(..filled), self.buffer.get(..filled)) {
            to.copy_from_slice(from);
        }
        *self.buffer = longer;
    }

    /// Marks `len` bytes of the free space as output.
    pub(crate) fn commit(&mut self, len: usize) {
        self.filled = self.filled.saturating_add(len).min(self.buffer.len());
    }

    /// Appends bytes.
    pub(crate) fn extend(&mut self, bytes: &[u8]) -> Result<(), StreamFault> {
        let (_, room) = self.room(bytes.len());
        let Some(room) = room.get_mut(..bytes.len()) else { return Err(StreamFault::Full) };
        room.copy_from_slice(bytes);
        self.commit(bytes.len());
        Ok(())
    }
}

/// Fills a range with the bytes from `source` on, which is before it. The bytes between the two are repeated if the range
/// is longer. Both must be within the buffer.
pub(super) fn repeat_bytes(buffer: &mut [u8], source: usize, range: Range<usize>) {
    let mut done = range.start;
    while done < range.end {
        // the bytes written so far repeat the pattern, so each round can copy more
        let most = done.wrapping_sub(source).min(range.end.wrapping_sub(done));
        buffer.copy_within(source..source.wrapping_add(most), done);
        done = done.wrapping_add(most);
    }
}
