//! Where codecs write: a buffer that is reused from batch to batch, grows by what was produced, and ends at a bound.

use crate::compression::StreamFault;

/// First size of the buffer.
const INITIAL_LEN: usize = 64 << 10;
/// Up to here the buffer doubles. A larger one grows by leaps: while it is copied there are two, and what is freed the allocator
/// may keep for a while.
const LARGE_LEN: usize = 16 << 20;
const LEAP: usize = 64;
/// What codecs lay beside their output, at most, so that a buffer of the bound's length need not be copied for it.
const BESIDE_LEN: usize = 128 << 10;

/// Decompressed bytes under a bound. The buffer keeps its length between uses, so that only its first growth zeroes memory.
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

    /// Forgets what was produced after the first `len` bytes.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.filled = self.filled.min(len);
    }

    /// Room for `len` bytes at least, as far as the bound allows; possibly more, never more than the bound.
    /// The bytes before it come along.
    ///
    /// Callers ask for what their input can really become, not for what it claims.
    pub(crate) fn room(&mut self, len: usize) -> (&[u8], &mut [u8]) {
        let wanted = self.filled.saturating_add(len).min(self.limit);
        if self.buffer.len() < wanted {
            self.lengthen(wanted, self.limit);
        }
        let end = self.buffer.len().min(self.limit);
        let (before, room) = self.buffer.split_at_mut(self.filled.min(end));
        let len = end.saturating_sub(before.len());
        (before, room.get_mut(..len).unwrap_or_default())
    }

    /// Room for one step: `len` bytes, or what the bound leaves of them.
    pub(crate) fn step(&mut self, len: usize) -> &mut [u8] {
        let (_, room) = self.room(len);
        let len = room.len().min(len);
        room.get_mut(..len).unwrap_or_default()
    }

    /// Bytes that may still be produced.
    pub(crate) fn left(&self) -> usize {
        self.limit.saturating_sub(self.filled)
    }

    /// `len` bytes to work in, of which the first become output when they are committed. They may reach past the bound: what
    /// a codec lays beside its output is no output.
    pub(crate) fn workspace(&mut self, len: usize) -> &mut [u8] {
        let end = self.filled.saturating_add(len);
        if self.buffer.len() < end {
            self.lengthen(end, self.limit.saturating_add(BESIDE_LEN));
        }
        self.buffer.get_mut(self.filled..end).unwrap_or_default()
    }

    /// Doubles the buffer. `Full` when the bound is reached.
    pub(crate) fn grow(&mut self) -> Result<(), StreamFault> {
        let len = self.buffer.len().max(self.filled);
        if len >= self.limit {
            return Err(StreamFault::Full);
        }
        self.lengthen(len, self.limit);
        Ok(())
    }

    /// Makes the buffer `wanted` bytes long at least, and longer by a factor as far as the bound and `most` allow.
    fn lengthen(&mut self, wanted: usize, most: usize) {
        let doubled = self.buffer.len().saturating_mul(2).max(INITIAL_LEN).min(self.limit).max(wanted);
        let leap = self.buffer.len().saturating_mul(LEAP).min(most);
        let len = if doubled > LARGE_LEN { doubled.max(leap) } else { doubled };
        // zeroed by the system, page by page as they are written; to the byte, where a vector left to itself takes up to twice
        let mut longer = vec![0; len];
        let filled = self.filled.min(self.buffer.len());
        if let (Some(to), Some(from)) = (longer.get_mut(..filled), self.buffer.get(..filled)) {
            to.copy_from_slice(from);
        }
        *self.buffer = longer;
    }

    /// Counts `len` bytes of the room as produced.
    pub(crate) fn commit(&mut self, len: usize) {
        self.filled = self.filled.saturating_add(len).min(self.buffer.len());
    }

    /// Appends bytes as they are.
    pub(crate) fn extend(&mut self, bytes: &[u8]) -> Result<(), StreamFault> {
        let (_, room) = self.room(bytes.len());
        let Some(room) = room.get_mut(..bytes.len()) else { return Err(StreamFault::Full) };
        room.copy_from_slice(bytes);
        self.commit(bytes.len());
        Ok(())
    }
}
