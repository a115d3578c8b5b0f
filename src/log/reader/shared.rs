//! Batches that own their bytes, for Python's iterator.

use std::ops::Range;
use std::sync::Arc;

use super::SegmentReader;
use crate::error::Result;
use crate::io::{ReadAt, SharedBytes};
use crate::log::window::Window;
use crate::num::usize_from_u64;
use crate::slices::Slices;

/// A batch with shared ownership of its bytes, and its position.
pub(crate) struct SharedBatch {
    pub(crate) bytes: SharedBytes,
    pub(crate) range: Range<usize>,
    pub(crate) position: u64,
}

impl SegmentReader {
    /// Returns the next batch with its bytes, which are shared for a buffer and copied for a file.
    pub(crate) fn next_shared(&mut self) -> Option<Result<SharedBatch>> {
        let (position, start) = (self.position, self.start);
        let copied = match self.next_batch()? {
            Err(error) => return Some(Err(error)),
            Ok(batch) => batch.bytes().len(),
        };
        let range = start..start.saturating_add(copied);
        Some(Ok(match &self.window {
            Window::Whole(bytes) => SharedBatch { bytes: Arc::clone(bytes), range, position },
            // reading may have moved the unread bytes to the front of the window
            Window::Read(window) => {
                let bytes = window.part(self.start.wrapping_sub(copied)..self.start).to_vec();
                SharedBatch { range: 0..bytes.len(), bytes: Arc::new(bytes), position }
            }
        }))
    }

    /// The bytes after the last batch returned.
    pub(crate) fn remainder(&self) -> Result<Vec<u8>> {
        let mut rest = vec![0; usize_from_u64(self.remainder_len())];
        let count = self.source.read_bytes_at(&mut rest, self.position)?;
        rest.truncate(count);
        Ok(rest)
    }
}
