//! [`SegmentReader`]: the batches of a file, read by windows.
//!
//! Files are read, not mapped: a broker may truncate a mapped file, which kills the process. Memory is one window, which grows
//! to the largest batch that is really there and within [`Limits::batch_len`].

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::error::{ErrorKind, Result};
use crate::format::batch::Batch;
use crate::format::frame::{Frame, frame, is_zeros, limit_error, trusted_len, unbelievable};
use crate::format::header::{BATCH_HEADER_LEN, BatchHeader, HEADER_LEN_UP_TO_MAGIC, LOG_OVERHEAD};
use crate::io::{ByteSource, PositionedFile, ReadAt, SharedBytes, is_zero_to_the_end};
use crate::limits::Limits;
#[cfg(feature = "arrow")]
use crate::log::tail::SegmentTail;
use crate::num::{u64_of, usize_from_u64};

/// Bytes read at a time in a walk that is under way: stays in a second-level cache and makes system calls rare.
const WINDOW_LEN: usize = 1 << 20;
/// Bytes of the first read: who wants one batch of a large file reads little.
const FIRST_WINDOW_LEN: usize = 1 << 16;
/// Bytes read at a time while batches are passed over by their headers.
const HEADER_WINDOW_LEN: usize = 128;
/// Batches of no more bytes than this are cheaper to read than to read around.
const SMALL_BATCH_LEN: usize = 4096;

/// Batches of no more bytes than this are looked at whatever came before.
const BELIEVED_LEN: usize = 1 << 16;
/// Bytes of damaged batches that are walked again: some of the largest, and so many for each byte walked over. Lengths
/// that all lead to the end of the file would make the walk quadratic.
const AGAIN_FREE: u64 = 1 << 30;
const AGAIN_PER_BYTE: u64 = 16;

/// Walks the batches of a segment file, or of any file of batches back to back, front to back.
///
/// As [`batches`](crate::batches) for a buffer: headers only, no checksum; a partial batch or zeros at the end are no error.
/// The length is that of the file when it was opened; a file that got shorter since ends there.
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
    /// Bytes of the file that will be looked at.
    len: u64,
    /// Batches that begin here or later are not given.
    stop: u64,
    /// Place in the file of the next batch.
    position: u64,
    /// Held by others too where they show its bytes: then the next bytes are read into another one.
    window: Window,
    /// Windows that others held, used again once they are free.
    lent: Vec<Arc<Vec<u8>>>,
    /// Bytes to read next, if no more are needed.
    read_len: usize,
    bytes_read: u64,
    /// Whether the file became shorter since it was opened.
    is_shorter: bool,
    /// Bytes of batches that were given and found damaged, and that are walked again.
    again: u64,
    /// The unread part of the window.
    start: usize,
    end: usize,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Walking,
    Ended,
    Failed { skip: Option<usize> },
}

/// What [`SegmentReader::frame`] found.
enum Found {
    Batch(usize),
    End,
}

impl SegmentReader {
    /// Opens a file with the default limits.
    ///
    /// # Errors
    /// Those of opening a file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::open_with(path, &Limits::default())
    }

    /// Opens a file.
    ///
    /// # Errors
    /// Those of opening a file.
    pub fn open_with(path: impl AsRef<Path>, limits: &Limits) -> Result<Self> {
        let path = path.as_ref();
        let file = PositionedFile::open(path)?;
        let len = file.len()?;
        Ok(Self::new(ByteSource::File(file), len, Window::Read(Arc::default()), limits))
    }

    /// A reader of a buffer. Nothing is copied.
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
            bytes_read: 0,
            is_shorter: false,
            again: 0,
            start: 0,
            end: 0,
            state: State::Walking,
        }
    }

    /// Starts at the batch that begins at this byte.
    #[must_use]
    pub fn starting_at(mut self, position: u64) -> Self {
        self.seek(position);
        self
    }

    /// Drops pages from the page cache that reading brought there, and only those: what a broker has cached stays. Reads are
    /// not ahead of what is asked for, so it is slower. On systems other than Linux without effect.
    #[must_use]
    pub fn leaving_page_cache(mut self) -> Self {
        if let ByteSource::File(file) = &mut self.source {
            file.leave_page_cache();
        }
        self
    }

    /// Gives no batch that begins at this byte or later. A batch that begins before is given whole.
    pub fn stop_at(&mut self, position: u64) {
        self.stop = position;
    }

    /// Goes on after damage, perhaps inside a batch that was given: lengths that lead far ahead are believed so often only.
    pub(crate) fn resume(&mut self, position: u64) {
        self.again = self.again.saturating_add(self.position.saturating_sub(position));
        self.seek(position);
    }

    /// Goes on at the batch that begins at this byte, whatever happened before.
    pub fn seek(&mut self, position: u64) {
        let window = self.position.saturating_sub(u64_of(self.start)); // what was walked over is in it still
        let start = position.checked_sub(window).map_or(usize::MAX, usize_from_u64);
        if let Window::Whole(_) = self.window {
            (self.start, self.end) = (usize_from_u64(position.min(self.len)), usize_from_u64(self.len));
        } else if start <= self.end {
            self.start = start;
        } else {
            (self.start, self.end) = (0, 0);
        }
        self.position = position;
        self.state = State::Walking;
    }

    /// Bytes read from the file so far.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        if self.is_memory() { self.position } else { self.bytes_read }
    }

    /// Whether it reads a buffer.
    pub(crate) fn is_memory(&self) -> bool {
        matches!(self.source, ByteSource::Memory(_))
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.source.path()
    }

    /// The file, to be read by position.
    pub(crate) fn source(&self) -> &ByteSource {
        &self.source
    }

    /// Where the next batch begins, in bytes.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Bytes up to the end of the file that no batch was made of yet: after the walk, a batch that is cut, zeros, or nothing; with
    /// [`SegmentReader::stop_at`], what was not walked over too.
    #[must_use]
    pub fn remainder_len(&self) -> u64 {
        self.len.saturating_sub(self.position)
    }

    /// After the walk: what follows the last batch, up to where the reader stops. Corruption is not told from half a batch.
    #[cfg(feature = "arrow")]
    pub(crate) fn tail(&self) -> Result<SegmentTail> {
        if self.remainder_len() == 0 || self.position >= self.stop {
            return Ok(SegmentTail::Clean);
        }
        SegmentTail::at(&self.source, self.position)
    }

    /// After the end: whether a whole batch lies there by now, in place of the zeros of a preallocated file.
    #[cfg_attr(not(feature = "arrow"), expect(dead_code, reason = "only scans ask"))]
    pub(crate) fn is_written_since(&self) -> Result<bool> {
        if self.is_memory() {
            return Ok(false);
        }
        let mut head = [0; LOG_OVERHEAD];
        let count = self.source.read_bytes_at(&mut head, self.position)?;
        let [.., l0, l1, l2, l3] = head;
        let size = u64::from(u32::from_be_bytes([l0, l1, l2, l3])).saturating_add(u64_of(LOG_OVERHEAD));
        Ok(count == LOG_OVERHEAD && !is_zeros(&head) && size <= self.remainder_len())
    }

    /// After an error: steps over the batch that caused it. `false` where its size can't be trusted, or nothing failed.
    ///
    /// # Errors
    /// Those of reading.
    pub fn skip_batch(&mut self) -> Result<bool> {
        let State::Failed { skip: Some(len) } = self.state else { return Ok(false) };
        self.seek(self.position.saturating_add(u64_of(len)).min(self.len));
        self.state = State::Walking;
        Ok(true)
    }

    /// The next batch; `None` at the end and after an error.
    ///
    /// # Errors
    /// A size or magic that no batch has, a batch over [`Limits::batch_len`], reading the file.
    pub fn next_batch(&mut self) -> Option<Result<Batch<'_>>> {
        if self.state != State::Walking {
            return None;
        }
        let position = self.position;
        match self.frame() {
            Ok(Found::Batch(len)) => {
                let start = self.start;
                self.consume(len);
                let bytes = self.window.bytes().get(start..start.saturating_add(len)).unwrap_or_default();
                Some(Batch::parse(bytes, position).map_err(|error| self.source.locate(error)))
            }
            Ok(Found::End) => {
                self.state = State::Ended;
                None
            }
            Err(error) => Some(Err(self.fail(error))),
        }
    }

    /// The next batch that is wanted by its header. Payloads of the others are not read, but for what a window holds.
    ///
    /// # Errors
    /// Those of [`SegmentReader::next_batch`].
    pub fn next_wanted(&mut self, mut wants: impl FnMut(&BatchHeader) -> bool) -> Option<Result<Batch<'_>>> {
        while self.state == State::Walking && self.position < self.stop {
            match self.header() {
                Ok(Some(header)) if !wants(&header) => self.pass_over(&header),
                Ok(_) => break,
                Err(error) => return Some(Err(self.fail(error))),
            }
        }
        self.next_batch()
    }

    /// The next batch's header; its payload is not read, but for what a window holds.
    #[cfg(feature = "arrow")]
    pub(crate) fn next_header(&mut self) -> Option<Result<BatchHeader>> {
        if self.bytes_read == 0 {
            self.read_len = HEADER_WINDOW_LEN;
        }
        if self.state == State::Walking && self.position < self.stop {
            match self.header() {
                Ok(Some(header)) => {
                    self.pass_over(&header);
                    return Some(Ok(header));
                }
                Ok(None) => {} // what is there is known to the walk over batches
                Err(error) => return Some(Err(self.fail(error))),
            }
        }
        self.next_batch().map(|batch| batch.map(|batch| *batch))
    }

    fn pass_over(&mut self, header: &BatchHeader) {
        if header.size() > self.end.saturating_sub(self.start).max(SMALL_BATCH_LEN) {
            self.read_len = HEADER_WINDOW_LEN;
        }
        self.seek(header.position().saturating_add(u64_of(header.size())));
    }

    /// The next batch's header, if it is a batch that is there whole and within the limits.
    fn header(&mut self) -> Result<Option<BatchHeader>> {
        self.fill(BATCH_HEADER_LEN)?;
        let rest = self.window.bytes().get(self.start..self.end).unwrap_or_default();
        match frame(rest, self.position, self.remainder_len()) {
            Ok(Frame::Whole(len)) if len <= self.batch_len_limit => {
                let bytes = rest.get(..len.min(rest.len())).unwrap_or_default();
                BatchHeader::parse(bytes, self.position, len).map(Some)
            }
            _ => Ok(None),
        }
    }

    #[cold]
    fn fail(&mut self, error: crate::Error) -> crate::Error {
        let rest = self.window.bytes().get(self.start..self.end).unwrap_or_default();
        let skip = trusted_len(&error, rest, self.remainder_len());
        self.state = State::Failed { skip };
        self.source.locate(error)
    }

    /// Gets the whole next batch into the window.
    fn frame(&mut self) -> Result<Found> {
        if self.position >= self.stop {
            return Ok(Found::End);
        }
        loop {
            let have = self.fill(HEADER_LEN_UP_TO_MAGIC)?;
            let rest = self.window.bytes().get(self.start..self.end).unwrap_or_default();
            match frame(rest, self.position, self.remainder_len()) {
                Ok(Frame::Whole(len)) => {
                    if len > self.batch_len_limit {
                        return Err(limit_error(rest, len, self.position, self.batch_len_limit));
                    }
                    if len > BELIEVED_LEN && self.has_walked_too_often() {
                        return Err(unbelievable(rest, self.position));
                    }
                    if len <= have {
                        return Ok(Found::Batch(len));
                    }
                    // a file that got shorter makes it a partial batch in the next round
                    self.fill(len)?;
                }
                Ok(Frame::End | Frame::Partial) => {
                    if self.is_shorter {
                        self.check_not_truncated()?;
                    }
                    return Ok(Found::End);
                }
                Err(error) if matches!(error.kind(), ErrorKind::BatchLength { length: 0, .. }) => {
                    // a broker may write to what was zeros when it was read
                    let read_to = self.position.saturating_add(u64_of(rest.len()));
                    let is_end = is_zeros(rest) && is_zero_to_the_end(&self.source, read_to, self.len)?;
                    return if is_end { Ok(Found::End) } else { Err(error) };
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

    fn has_walked_too_often(&self) -> bool {
        self.again > AGAIN_FREE.saturating_add(self.position.saturating_mul(AGAIN_PER_BYTE))
    }

    fn consume(&mut self, len: usize) {
        self.start = self.start.saturating_add(len).min(self.end);
        self.position = self.position.saturating_add(u64_of(len));
    }

    /// Makes `wanted` unread bytes available, or as many as the file has. Returns how many there are.
    fn fill(&mut self, wanted: usize) -> Result<usize> {
        let have = self.end.saturating_sub(self.start);
        let wanted = wanted.min(usize_from_u64(self.remainder_len()));
        if have >= wanted {
            return Ok(have);
        }
        // the window of a buffer has all there is
        let Window::Read(window) = &mut self.window else { return Ok(have) };
        let window = own_window(window, &mut self.lent, self.start..self.end);
        (self.start, self.end) = (0, have);
        let read_len = wanted.max(self.read_len);
        self.read_len = self.read_len.saturating_mul(4).clamp(HEADER_WINDOW_LEN, WINDOW_LEN);
        if window.len() < read_len {
            window.resize(read_len, 0);
        }
        let end = usize_from_u64(self.len.saturating_sub(self.position)).min(read_len);
        let room = window.get_mut(have..end).unwrap_or_default();
        let count = self.source.read_bytes_at(room, self.position.saturating_add(u64_of(have)))?;
        self.bytes_read = self.bytes_read.saturating_add(u64_of(count));
        if count < room.len() {
            self.len = self.position.saturating_add(u64_of(have)).saturating_add(u64_of(count));
            self.is_shorter = true;
        }
        self.end = have.saturating_add(count);
        Ok(self.end)
    }

    /// The last batch that was returned, by its header, and where it lies.
    #[cfg(feature = "arrow")]
    pub(crate) fn last(&self, header: BatchHeader) -> (Batch<'_>, Lender<'_>) {
        let bytes = self.window.bytes().get(self.start.saturating_sub(header.size())..self.start).unwrap_or_default();
        let lender = match &self.window {
            Window::Read(window) => Lender::Window(window),
            Window::Whole(bytes) => Lender::Buffer(bytes),
        };
        (Batch::of(bytes, header), lender)
    }

    /// The header of the batch at a position.
    #[cfg(feature = "arrow")]
    pub(crate) fn header_at(&self, position: u64) -> Result<BatchHeader> {
        let mut bytes = [0; BATCH_HEADER_LEN];
        let len = self.source.read_bytes_at(&mut bytes, position)?;
        BatchHeader::parse(bytes.get(..len).unwrap_or_default(), position, 0)
    }

    /// Whether what is left of a file is as it was. A broker that rolls a segment in the meantime writes to it and truncates it.
    #[cfg(feature = "arrow")]
    pub(crate) fn is_unchanged(&self) -> Result<bool> {
        Ok(self.source.byte_len()? == self.len && self.tail()? != SegmentTail::Partial)
    }

    /// Whether a file has more bytes than when it was opened.
    #[cfg(feature = "arrow")]
    pub(crate) fn has_grown(&self) -> Result<bool> {
        Ok(self.source.byte_len()? > self.len)
    }

    /// The next batch with its bytes: those of a buffer are shared, those of a file copied.
    #[cfg(feature = "python")]
    pub(crate) fn next_shared(&mut self) -> Option<Result<SharedBatch>> {
        let (position, start) = (self.position, self.start);
        let copied = match self.next_batch()? {
            Err(error) => return Some(Err(error)),
            Ok(batch) => batch.bytes().len(),
        };
        let range = start..start.saturating_add(copied);
        Some(Ok(match &self.window {
            Window::Whole(bytes) => SharedBatch { bytes: Arc::clone(bytes), range, position },
            // the window may have moved to its front
            Window::Read(window) => {
                let bytes = window.get(self.start.saturating_sub(copied)..self.start).unwrap_or_default().to_vec();
                SharedBatch { range: 0..bytes.len(), bytes: Arc::new(bytes), position }
            }
        }))
    }

    /// The bytes that are not part of a batch so far.
    #[cfg(feature = "python")]
    pub(crate) fn remainder(&self) -> Result<Vec<u8>> {
        let mut rest = vec![0; usize_from_u64(self.remainder_len())];
        let count = self.source.read_bytes_at(&mut rest, self.position)?;
        rest.truncate(count);
        Ok(rest)
    }
}

/// The bytes that a reader looks at.
enum Window {
    /// A piece of a file.
    Read(Arc<Vec<u8>>),
    /// All of a buffer.
    Whole(SharedBytes),
}

impl Window {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Read(window) => window,
            Self::Whole(bytes) => (**bytes).as_ref(),
        }
    }
}

impl std::fmt::Debug for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.bytes().len())
    }
}

/// Memory in which a batch lies.
#[cfg(feature = "arrow")]
#[derive(Clone, Copy)]
pub(crate) enum Lender<'b> {
    /// The window of a file.
    Window(&'b Arc<Vec<u8>>),
    /// A buffer with other owners.
    Buffer(&'b SharedBytes),
}

/// A batch whose bytes are held, and where they are.
#[cfg(feature = "python")]
pub(crate) struct SharedBatch {
    pub(crate) bytes: SharedBytes,
    pub(crate) range: Range<usize>,
    pub(crate) position: u64,
}

/// Windows that are kept to be used again.
const LENT_WINDOWS: usize = 8;

/// Puts the unread bytes to the front of a window that nobody else holds.
fn own_window<'w>(window: &'w mut Arc<Vec<u8>>, lent: &mut Vec<Arc<Vec<u8>>>, unread: Range<usize>) -> &'w mut Vec<u8> {
    if Arc::get_mut(window).is_some() {
        let own = Arc::make_mut(window);
        own.copy_within(unread, 0);
        return own;
    }
    let free = lent.iter_mut().position(|window| Arc::get_mut(window).is_some());
    let other = free.map_or_else(Arc::default, |index| lent.swap_remove(index));
    let held = std::mem::replace(window, other);
    let (own, bytes) = (Arc::make_mut(window), held.get(unread).unwrap_or_default());
    if own.len() < bytes.len() {
        own.resize(bytes.len(), 0);
    }
    if let Some(front) = own.get_mut(..bytes.len()) {
        front.copy_from_slice(bytes);
    }
    if lent.len() < LENT_WINDOWS {
        lent.push(held);
    }
    own
}
