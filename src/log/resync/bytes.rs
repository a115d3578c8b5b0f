//! Bytes by position, for a search that goes back and forth.

use crate::error::Result;
use crate::log::file::PositionedFile;
use crate::num::{u64_of, usize_from_u64};

/// A buffer or a file, read by position.
pub(crate) trait ReadAt {
    /// Bytes that there are by now.
    ///
    /// # Errors
    /// Those of the file system.
    fn byte_len(&self) -> Result<u64>;

    /// Reads at a position until `out` is full or the bytes end; how many that were.
    ///
    /// # Errors
    /// Those of the file system.
    fn read_bytes_at(&self, out: &mut [u8], position: u64) -> Result<usize>;
}

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

impl ReadAt for PositionedFile {
    fn byte_len(&self) -> Result<u64> {
        self.len()
    }

    fn read_bytes_at(&self, out: &mut [u8], position: u64) -> Result<usize> {
        self.read_at(out, position)
    }
}

/// A piece of a [`ReadAt`] that was read last.
pub(super) struct Window {
    chunk: Vec<u8>,
    position: u64,
    /// Bytes to read at a time.
    read_len: usize,
}

impl Window {
    pub(super) fn new(read_len: usize) -> Self {
        Self { chunk: Vec::new(), position: 0, read_len }
    }

    /// The bytes from a position on: at least `wanted`, or all that there are.
    pub(super) fn from(&mut self, source: &dyn ReadAt, position: u64, wanted: usize) -> Result<&[u8]> {
        let start = position.checked_sub(self.position).map_or(usize::MAX, usize_from_u64);
        if start.checked_add(wanted).is_none_or(|end| end > self.chunk.len()) {
            self.chunk.resize(self.read_len.max(wanted), 0);
            let count = source.read_bytes_at(&mut self.chunk, position)?;
            self.chunk.truncate(count);
            self.position = position;
            return Ok(&self.chunk);
        }
        Ok(self.chunk.get(start..).unwrap_or_default())
    }
}
