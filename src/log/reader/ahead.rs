//! Files of stores that are requested before a reader needs them.

use std::sync::Arc;

use super::SegmentReader;
use crate::io::ReadAt;
use crate::log::window::Window;
use crate::num::u64_of;

impl SegmentReader {
    /// Uses these bytes, which were read from the file at the position of the next batch, instead of reading them again.
    pub(crate) fn with_bytes(mut self, bytes: Vec<u8>) -> Self {
        (self.start, self.end) = (0, bytes.len());
        self.bytes_read = self.bytes_read.saturating_add(u64_of(bytes.len()));
        self.window = Window::Read(Arc::new(bytes));
        self
    }

    /// Announces that all batches up to the stop position will be read, so that the first ones can be requested in
    /// advance. Does nothing if the reader already has bytes.
    pub(crate) fn expect_reads(&self) {
        if self.start == self.end {
            self.source.expect_reads(self.position);
        }
    }

    /// Number of requests that this reader leaves to the files after it: see [`ReadAt::spare_requests`].
    pub(crate) fn spare_requests(&self) -> usize {
        self.source.spare_requests()
    }
}
