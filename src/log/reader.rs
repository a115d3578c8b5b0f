//! [`SegmentReader`]: the batches of a file or buffer, read in windows.
//!
//! Files are read, not mapped: a broker may truncate a mapped file, which kills the process. Memory use is one window.
//! It grows to the largest batch that exists within [`Limits::batch_len`].

mod again;
#[cfg(feature = "arrow")]
mod ahead;
mod shared;

use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Batch;
use crate::format::frame::{Frame, frame, implausible_length_error, is_zeros, limit_error, trusted_len};
use crate::format::header::{BATCH_HEADER_LEN, BatchHeader, HEADER_LEN_UP_TO_MAGIC, LOG_OVERHEAD};
use crate::io::{ByteSource, Location, PositionedFile, ReadAt, is_zero_to_the_end};
use crate::limits::Limits;
use crate::log::tail::SegmentTail;
use crate::log::window::{Window, own_window};
use crate::num::{u64_of, usize_from_u64};
use crate::slices::Slices;

pub(crate) use shared::SharedBatch;

/// Number of bytes per read once a read of many batches is under way: fits in the second-level cache and makes system
/// calls rare.
const WINDOW_LEN: usize = 1 << 20;
/// Number of bytes of the first read: small, for callers that want one batch of a large file.
const FIRST_WINDOW_LEN: usize = 1 << 16;
/// Number of bytes per read while batches are skipped by their headers.
const HEADER_WINDOW_LEN: usize = 128;
/// The same for an object in a store.
const STORE_HEADER_WINDOW_LEN: usize = 1 << 18;
/// Batches up to this size in bytes are cheaper to read than to skip.
const SMALL_BATCH_LEN: usize = 4096;

/// Batches up to this size in bytes are returned however many bytes were read again.
const BELIEVED_LEN: usize = 1 << 16;
/// Limits of the bytes of damaged batches that are read again: a fixed number, and some more per byte of progress.
/// Otherwise, lengths that all lead to the end of the file would make the read quadratic.
const AGAIN_FREE: u64 = 1 << 30;
const AGAIN_PER_BYTE: u64 = 16;

/// Iterates over the batches of a segment file, or of any file of consecutive batches, from front to back.
///
/// Like [`batches`](crate::batches) for a buffer: reads headers only and verifies no checksum. A partial batch or
/// zeros at the end are not an error. Bytes that are appended after the file was opened are not read, and a file that
/// becomes shorter ends there.
///
/// ```no_run
/// # fn main() -> kbat::Result<()> {
/// let mut reader = kbat::log::SegmentReader::open("topic-0/00000000000000000000.log")?;
/// while let Some(batch) = reader.next_batch() {
///     println!("{:?}", batch?.record_count());
/// }
/// println!("{} bytes after the last batch", reader.remainder_len());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct SegmentReader {
    source: ByteSource,
    batch_len_limit: usize,
    /// Length of the file in bytes when it was opened.
    len: u64,
    /// Batches that start at or after this position are not returned.
    stop: u64,
    /// Position of the next batch in the file.
    position: u64,
    /// Shared while others use its bytes. In that case, the next bytes are read into another window.
    window: Window,
    /// Windows that were shared, to be reused once they are free.
    lent: Vec<Arc<Vec<u8>>>,
    /// Number of bytes to read next, unless more are needed.
    read_len: usize,
    /// Number of bytes to read for a header.
    header_len: usize,
    bytes_read: u64,
    /// Whether the file became shorter after it was opened.
    is_shorter: bool,
    /// Bytes of batches that were returned, found to be corrupt, and are read again.
    again: u64,
    /// Start and end of the unread part of the window.
    start: usize,
    end: usize,
    state: ReadState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadState {
    Walking,
    Ended,
    Failed { skip: Option<usize> },
}

/// Result of [`SegmentReader::frame`].
enum Framed {
    Batch(usize),
    End,
}

impl SegmentReader {
    /// Opens a file with the default limits.
    ///
    /// # Errors
    /// I/O errors.
    pub fn open(path: impl Into<Location>) -> Result<Self> {
        let path: &Location = &path.into();
        Self::open_with(path, &Limits::default())
    }

    /// Opens a file.
    ///
    /// # Errors
    /// I/O errors.
    pub fn open_with(path: impl Into<Location>, limits: &Limits) -> Result<Self> {
        Self::of_file(path.into().open()?, limits)
    }

    pub(crate) fn of_file(file: PositionedFile, limits: &Limits) -> Result<Self> {
        let len = file.len()?;
        Ok(Self::new(ByteSource::File(file), len, Window::Read(Arc::default()), limits))
    }

    /// Creates a reader of a buffer, which is not copied.
    #[must_use]
    pub fn from_bytes(bytes: Arc<dyn AsRef<[u8]> + Send + Sync>, limits: &Limits) -> Self {
        let len = (*bytes).as_ref().len();
        let window = Window::Whole(Arc::clone(&bytes));
        Self { end: len, ..Self::new(ByteSource::Memory(bytes), u64_of(len), window, limits) }
    }

    fn new(source: ByteSource, len: u64, window: Window, limits: &Limits) -> Self {
        Self {
            source,
            batch_len_limit: limits.batch_len,
            len,
            stop: u64::MAX,
            position: 0,
            window,
            lent: Vec::new(),
            read_len: FIRST_WINDOW_LEN,
            header_len: HEADER_WINDOW_LEN,
            bytes_read: 0,
            is_shorter: false,
            again: 0,
            start: 0,
            end: 0,
            state: ReadState::Walking,
        }
    }

    /// Reads few bytes at a time, for callers that need only headers.
    pub(crate) fn reading_headers(mut self) -> Self {
        self.read_len = self.header_len;
        self
    }

    /// Reads the headers of all batches: from a store in larger parts, because a request takes as long as many bytes.
    pub(crate) fn reading_all_headers(mut self) -> Self {
        if self.source.is_stored() {
            self.header_len = STORE_HEADER_WINDOW_LEN;
        }
        self.reading_headers()
    }

    /// Starts at the batch at this byte position.
    #[must_use]
    pub fn starting_at(mut self, position: u64) -> Self {
        self.seek(position);
        self
    }

    /// Drops pages that reading adds to the page cache, and only those: pages that a broker has cached stay. Turns off
    /// read-ahead, which makes reading slower. Has no effect on systems other than Linux.
    #[must_use]
    pub fn leaving_page_cache(mut self) -> Self {
        if let ByteSource::File(file) = &mut self.source {
            file.leave_page_cache();
        }
        self
    }

    /// Reads bytes that are stored but cannot be decoded, such as a damaged chunk of tiered storage, as corrupt ones. The
    /// source keeps their errors.
    #[must_use]
    pub(crate) fn over_damage(self) -> Self {
        self.source.read_over_damage();
        self
    }

    /// Returns no batch that starts at or after this position. A batch that starts before is returned completely.
    pub fn stop_at(&mut self, position: u64) {
        self.stop = position;
        self.source.limit_ahead(position);
    }

    /// Resumes after corruption, possibly inside a batch already returned. Limits how many bytes may be read again, so
    /// that crafted lengths cannot make the read quadratic.
    pub(crate) fn resume(&mut self, position: u64) {
        self.again = self.again.saturating_add(self.position.saturating_sub(position));
        self.seek(position);
    }

    /// Continues at the batch at this byte position, even after an error or the end.
    pub fn seek(&mut self, position: u64) {
        let window = self.position.saturating_sub(u64_of(self.start)); // it may still contain earlier bytes
        let start = position.checked_sub(window).map_or(usize::MAX, usize_from_u64);
        if let Window::Whole(_) = self.window {
            (self.start, self.end) = (usize_from_u64(position.min(self.len)), usize_from_u64(self.len));
        } else if start <= self.end {
            self.start = start;
        } else {
            (self.start, self.end) = (0, 0);
        }
        self.position = position;
        self.state = ReadState::Walking;
    }

    /// Number of bytes read from the file so far.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        if self.is_memory() { self.position } else { self.bytes_read }
    }

    /// Whether this reads a buffer.
    pub(crate) fn is_memory(&self) -> bool {
        matches!(self.source, ByteSource::Memory(_))
    }

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.source.path()
    }

    /// The file or buffer, for reading by position.
    pub(crate) fn source(&self) -> &ByteSource {
        &self.source
    }

    /// Position of the next batch in bytes.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Number of bytes between the last batch returned and the end of the file. At the end of the iteration these are
    /// an incomplete batch, zeros, or none; with [`SegmentReader::stop_at`], also the batches that were not read.
    #[must_use]
    pub fn remainder_len(&self) -> u64 {
        self.len.saturating_sub(self.position)
    }

    /// After the end: classifies the bytes after the last batch, up to the stop position. Does not distinguish
    /// corruption from an incomplete batch.
    pub(crate) fn tail(&self) -> Result<SegmentTail> {
        if self.remainder_len() == 0 || self.position >= self.stop {
            return Ok(SegmentTail::Clean);
        }
        SegmentTail::at(&self.source, self.position)
    }

    /// After the end: whether a broker has written a complete batch there since the file was read, over the zeros of a
    /// preallocated file or in one that has grown.
    pub(crate) fn is_written_since(&self) -> Result<bool> {
        if self.is_memory() {
            return Ok(false);
        }
        let is_over_zeros = self.stored_size_at(self.position)?.is_some_and(|size| size <= self.remainder_len());
        Ok(is_over_zeros || self.is_complete_now(self.position, self.batch_len_limit)?)
    }

    /// The size in bytes of the batch at a position, as the file has it at this moment, also after the end. `None` if
    /// fewer bytes are there, or zeros.
    pub(crate) fn stored_size_at(&self, position: u64) -> Result<Option<u64>> {
        let mut head = [0; LOG_OVERHEAD];
        let count = self.source.read_bytes_at(&mut head, position)?;
        let [.., l0, l1, l2, l3] = head;
        let size = u64::from(u32::from_be_bytes([l0, l1, l2, l3])).saturating_add(u64_of(LOG_OVERHEAD));
        Ok(Some(size).filter(|_| count == LOG_OVERHEAD && !is_zeros(&head)))
    }

    /// After an error, skips the batch that caused it. Returns `false` if its size cannot be trusted, or if there was
    /// no error.
    ///
    /// # Errors
    /// I/O errors.
    pub fn skip_batch(&mut self) -> Result<bool> {
        let ReadState::Failed { skip: Some(len) } = self.state else { return Ok(false) };
        self.seek(self.position.saturating_add(u64_of(len)).min(self.len));
        self.state = ReadState::Walking;
        Ok(true)
    }

    /// Returns the next batch, or `None` at the end and after an error.
    ///
    /// # Errors
    /// An invalid size or magic, a batch over [`Limits::batch_len`], I/O errors.
    pub fn next_batch(&mut self) -> Option<Result<Batch<'_>>> {
        if self.state != ReadState::Walking {
            return None;
        }
        let position = self.position;
        match self.frame() {
            Ok(Framed::Batch(len)) => {
                let start = self.start;
                self.consume(len);
                let bytes = self.window.bytes().part(start..start.saturating_add(len));
                Some(Batch::parse(bytes, position).map_err(|error| self.source.locate(error)))
            }
            Ok(Framed::End) => {
                self.state = ReadState::Ended;
                None
            }
            Err(error) => Some(Err(self.fail(error))),
        }
    }

    /// Returns the next batch whose header `wants` accepts. The payloads of other batches are not read, unless they
    /// are in a window.
    ///
    /// # Errors
    /// The errors of [`SegmentReader::next_batch`].
    pub fn next_wanted(&mut self, mut wants: impl FnMut(&BatchHeader) -> bool) -> Option<Result<Batch<'_>>> {
        while self.state == ReadState::Walking && self.position < self.stop {
            match self.header() {
                Ok(Some(header)) if !wants(&header) => self.pass_over(&header),
                Ok(_) => break,
                Err(error) => return Some(Err(self.fail(error))),
            }
        }
        self.next_batch()
    }

    /// Returns the header of the next batch. Its payload is not read, unless it is in a window.
    pub(crate) fn next_header(&mut self) -> Option<Result<BatchHeader>> {
        if self.bytes_read == 0 {
            self.read_len = self.header_len;
        }
        if self.state == ReadState::Walking && self.position < self.stop {
            match self.header() {
                Ok(Some(header)) => {
                    self.pass_over(&header);
                    return Some(Ok(header));
                }
                Ok(None) => {} // `next_batch` handles these bytes
                Err(error) => return Some(Err(self.fail(error))),
            }
        }
        self.next_batch().map(|batch| batch.map(|batch| *batch))
    }

    /// The header of the complete batch within the limits that follows, if there is one, also after the stop position.
    pub(crate) fn following_header(&mut self) -> Option<BatchHeader> {
        self.header().ok().flatten()
    }

    fn pass_over(&mut self, header: &BatchHeader) {
        if header.size() > self.end.saturating_sub(self.start).max(SMALL_BATCH_LEN) {
            self.read_len = self.header_len;
        }
        self.seek(header.end());
    }

    /// Returns the header of the next batch, if that is complete and within the limits.
    fn header(&mut self) -> Result<Option<BatchHeader>> {
        self.fill(BATCH_HEADER_LEN)?;
        let rest = self.window.bytes().part(self.start..self.end);
        match frame(rest, self.position, self.remainder_len()) {
            Ok(Frame::Whole(len)) if len <= self.batch_len_limit => {
                let bytes = rest.part(..len.min(rest.len()));
                BatchHeader::parse(bytes, self.position, len).map(Some)
            }
            _ => Ok(None),
        }
    }

    #[cold]
    fn fail(&mut self, error: Error) -> Error {
        let rest = self.window.bytes().part(self.start..self.end);
        let skip = trusted_len(&error, rest, self.remainder_len());
        self.state = ReadState::Failed { skip };
        self.source.locate(error)
    }

    /// Reads the complete next batch into the window.
    fn frame(&mut self) -> Result<Framed> {
        if self.position >= self.stop {
            return Ok(Framed::End);
        }
        loop {
            let have = self.fill(HEADER_LEN_UP_TO_MAGIC)?;
            let rest = self.window.bytes().part(self.start..self.end);
            match frame(rest, self.position, self.remainder_len()) {
                Ok(Frame::Whole(len)) => {
                    if len > self.batch_len_limit {
                        return Err(limit_error(rest, len, self.position, self.batch_len_limit));
                    }
                    if len > BELIEVED_LEN && self.rescan_budget_exceeded() {
                        return Err(implausible_length_error(rest, self.position));
                    }
                    if len <= have {
                        return Ok(Framed::Batch(len));
                    }
                    // if the file became shorter, the next round sees a partial batch
                    self.fill(len)?;
                }
                Ok(Frame::End | Frame::Partial) => {
                    if self.is_shorter {
                        self.check_not_truncated()?;
                    }
                    return Ok(Framed::End);
                }
                Err(error) if matches!(error.kind(), ErrorKind::BatchLength { length: 0, .. }) => {
                    // a broker may have written to bytes that were zeros when they were read
                    let read_to = self.position.saturating_add(u64_of(rest.len()));
                    let is_end = is_zeros(rest) && is_zero_to_the_end(&self.source, read_to, self.len)?;
                    return if is_end { Ok(Framed::End) } else { Err(error) };
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn check_not_truncated(&self) -> Result<()> {
        match &self.source {
            ByteSource::File(file) => file.check_not_truncated(self.position),
            ByteSource::Memory(_) => Ok(()),
        }
    }

    fn rescan_budget_exceeded(&self) -> bool {
        self.again > AGAIN_FREE.saturating_add(self.position.saturating_mul(AGAIN_PER_BYTE))
    }

    fn consume(&mut self, len: usize) {
        self.start = self.start.saturating_add(len).min(self.end);
        self.position = self.position.saturating_add(u64_of(len));
    }

    /// Makes `wanted` unread bytes available, or as many as the file has. Returns the number of unread bytes.
    fn fill(&mut self, wanted: usize) -> Result<usize> {
        let have = self.end.saturating_sub(self.start);
        let wanted = wanted.min(usize_from_u64(self.remainder_len()));
        if have >= wanted {
            return Ok(have);
        }
        // the window of a buffer contains all bytes
        let Window::Read(window) = &mut self.window else { return Ok(have) };
        let window = own_window(window, &mut self.lent, self.start..self.end);
        (self.start, self.end) = (0, have);
        let read_len = wanted.max(self.read_len);
        self.read_len = self.read_len.saturating_mul(4).clamp(HEADER_WINDOW_LEN, WINDOW_LEN);
        if window.len() < read_len {
            window.resize(read_len, 0);
        }
        let stop = self.stop.max(self.position.saturating_add(u64_of(wanted)));
        let end = usize_from_u64(self.len.min(stop).saturating_sub(self.position)).min(read_len);
        let room = window.part_mut(have..end);
        let count = self.source.read_bytes_at(room, self.position.saturating_add(u64_of(have)))?;
        self.bytes_read = self.bytes_read.saturating_add(u64_of(count));
        if count < room.len() {
            self.len = self.position.saturating_add(u64_of(have)).saturating_add(u64_of(count));
            self.is_shorter = true;
        }
        self.end = have.saturating_add(count);
        Ok(self.end)
    }

    /// Whether the rest of a file is unchanged. A broker that rolls a preallocated segment fills and truncates it.
    pub(crate) fn is_unchanged(&self) -> Result<bool> {
        Ok(self.source.byte_len()? == self.len && self.tail()? != SegmentTail::Partial)
    }

    /// Whether a file is longer than when it was opened.
    pub(crate) fn has_grown(&self) -> Result<bool> {
        Ok(self.source.byte_len()? > self.len)
    }
}
