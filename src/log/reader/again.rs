//! Reads batches whose headers were read before.

use super::SegmentReader;
use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Batch;
use crate::format::header::{BATCH_HEADER_LEN, BatchHeader};
use crate::io::ReadAt;
use crate::log::window::{BatchMemory, Window};
use crate::num::{u64_of, usize_from_u64};
use crate::slices::Slices;

impl SegmentReader {
    /// The bytes of a header's batch, if they are in the window.
    pub(crate) fn in_window(&self, header: &BatchHeader) -> Option<&[u8]> {
        self.bytes_in_window(header.position(), header.size())
    }

    fn bytes_in_window(&self, position: u64, len: usize) -> Option<&[u8]> {
        let window_position = self.position.saturating_sub(u64_of(self.start));
        let start = usize_from_u64(position.checked_sub(window_position)?);
        let end = start.saturating_add(len);
        (end <= self.end).then(|| self.window.bytes().part(start..end))
    }

    /// Reads the complete batch of a header that this reader returned, and stays at its position. `out` is for its
    /// bytes if they are not in the window.
    ///
    /// # Errors
    /// I/O errors; [`ErrorKind::Truncated`] if the file has become shorter.
    pub(crate) fn read_batch<'a>(&'a self, header: &BatchHeader, out: &'a mut Vec<u8>) -> Result<Batch<'a>> {
        if let Some(bytes) = self.in_window(header) {
            return Batch::parse(bytes, header.position()).map_err(|error| self.source.locate(error));
        }
        out.clear();
        out.resize(header.size(), 0);
        if self.source.read_bytes_at(out, header.position())? < header.size() {
            let error = Error::new(ErrorKind::Truncated).at(header.position()).in_batch(header.stored_base_offset);
            return Err(self.source.locate(error));
        }
        Batch::parse(out, header.position()).map_err(|error| self.source.locate(error))
    }

    /// Returns the last batch, whose header was returned, and the memory that contains it.
    pub(crate) fn last(&self, header: BatchHeader) -> (Batch<'_>, BatchMemory<'_>) {
        // wraps if the bytes are not in the window, so that the range is outside
        let bytes = self.window.bytes().part(self.start.wrapping_sub(header.size())..self.start);
        let memory = match &self.window {
            Window::Read(window) => BatchMemory::Window(window),
            Window::Whole(bytes) => BatchMemory::Buffer(bytes),
        };
        (Batch::of(bytes, header), memory)
    }

    /// Whether the batch at a position is complete and intact, because the file has grown since it was opened. One of
    /// more than `batch_len` bytes is not read.
    pub(crate) fn is_complete_now(&self, position: u64, batch_len: usize) -> Result<bool> {
        let len = self.source.byte_len()?;
        let size = self.stored_size_at(position)?.filter(|size| position.saturating_add(*size) <= len);
        let size = size.map(usize_from_u64).filter(|size| *size <= batch_len && len > self.len);
        let Some(size) = size else { return Ok(false) };
        let mut bytes = vec![0; size];
        let count = self.source.read_bytes_at(&mut bytes, position)?;
        Ok(count == size && Batch::parse(&bytes, position).is_ok_and(|batch| batch.verify_crc().is_ok()))
    }

    /// Reads the header of the batch at a position.
    pub(crate) fn header_at(&self, position: u64) -> Result<BatchHeader> {
        if let Some(bytes) = self.bytes_in_window(position, BATCH_HEADER_LEN) {
            return BatchHeader::parse(bytes, position, 0);
        }
        let mut bytes = [0; BATCH_HEADER_LEN];
        let len = self.source.read_bytes_at(&mut bytes, position)?;
        BatchHeader::parse(bytes.part(..len), position, 0)
    }
}
