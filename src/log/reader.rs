//! [`SegmentReader`]: the batches of a file, read by windows.
//!
//! Files are read, not mapped: a broker may truncate a mapped file, which kills the process. Memory is one window, which grows
//! to the largest batch that is really there and within [`Limits::batch_len`].

use std::fs::File;
use std::io::{ErrorKind as IoErrorKind, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Batch;
use crate::format::frame::{Frame, frame, is_zeros, limit_error, trusted_len};
use crate::format::header::HEADER_LEN_UP_TO_MAGIC;
use crate::limits::Limits;
use crate::num::{u64_of, usize_from_u64};

/// Bytes read at a time: stays in a second-level cache and makes system calls rare.
const WINDOW_LEN: usize = 1 << 20;

/// Walks the batches of a segment file, or of any file of batches back to back, front to back.
///
/// As [`batches`](crate::batches) for a buffer: headers only, no checksum; a partial batch or zeros at the end are no error.
/// The length is that of the file when it was opened; a file that got shorter since ends there.
///
/// ```no_run
/// # fn main() -> kbat::Result<()> {
/// let mut reader = kbat::SegmentReader::open("topic-0/00000000000000000000.log".as_ref())?;
/// while let Some(batch) = reader.next_batch() {
///     println!("{:?}", batch?.record_count());
/// }
/// println!("{} bytes after the last batch", reader.remainder_len());
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct SegmentReader {
    file: File,
    path: PathBuf,
    batch_len_limit: usize,
    /// Bytes of the file that will be looked at.
    len: u64,
    /// Place in the file of the next batch.
    position: u64,
    window: Vec<u8>,
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
    pub fn open(path: &Path) -> Result<Self> {
        Self::open_with(path, &Limits::default())
    }

    /// Opens a file.
    ///
    /// # Errors
    /// Those of opening a file.
    pub fn open_with(path: &Path, limits: &Limits) -> Result<Self> {
        let open = || {
            let file = File::open(path)?;
            let metadata = file.metadata()?;
            if metadata.is_dir() {
                return Err(std::io::Error::from(IoErrorKind::IsADirectory));
            }
            Ok((file, metadata.len()))
        };
        let (file, len) = open().map_err(|error| Error::from(error).with_path(path))?;
        Ok(Self {
            file,
            path: path.to_path_buf(),
            batch_len_limit: limits.batch_len,
            len,
            position: 0,
            window: Vec::new(),
            start: 0,
            end: 0,
            state: State::Walking,
        })
    }

    /// Starts at the batch that begins at this byte, not at the first one.
    ///
    /// # Errors
    /// Those of seeking in the file.
    pub fn starting_at(mut self, position: u64) -> Result<Self> {
        self.file.seek(SeekFrom::Start(position)).map_err(|error| Error::from(error).with_path(&self.path))?;
        (self.start, self.end) = (0, 0);
        self.position = position;
        self.state = State::Walking;
        Ok(self)
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where the next batch begins, in bytes.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Bytes that no batch was made of yet: after the walk, a batch that is cut, zeros, or nothing.
    #[must_use]
    pub fn remainder_len(&self) -> u64 {
        self.len.saturating_sub(self.position)
    }

    /// After an error: steps over the batch that caused it. `false` where its size can't be trusted, or nothing failed.
    ///
    /// # Errors
    /// Those of reading.
    pub fn skip_batch(&mut self) -> Result<bool> {
        let State::Failed { skip: Some(len) } = self.state else { return Ok(false) };
        let mut left = len;
        while left > 0 {
            let have = self.fill(1)?.min(left);
            if have == 0 {
                break;
            }
            self.consume(have);
            left = left.saturating_sub(have);
        }
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
                let bytes = self.window.get(start..start.saturating_add(len)).unwrap_or_default();
                Some(Batch::parse(bytes, position).map_err(|error| error.with_path(&self.path)))
            }
            Ok(Found::End) => {
                self.state = State::Ended;
                None
            }
            Err(error) => {
                let rest = self.window.get(self.start..self.end).unwrap_or_default();
                let limit = matches!(error.kind(), ErrorKind::Limit { .. });
                let skip = if limit { skippable(rest) } else { trusted_len(&error, rest) };
                self.state = State::Failed { skip };
                Some(Err(error.with_path(&self.path)))
            }
        }
    }

    /// Gets the whole next batch into the window.
    fn frame(&mut self) -> Result<Found> {
        loop {
            let have = self.fill(HEADER_LEN_UP_TO_MAGIC)?;
            let rest = self.window.get(self.start..self.end).unwrap_or_default();
            match frame(rest, self.position, self.remainder_len()) {
                Ok(Frame::Whole(len)) => {
                    if len > self.batch_len_limit {
                        return Err(limit_error(rest, len, self.position, self.batch_len_limit));
                    }
                    if len <= have {
                        return Ok(Found::Batch(len));
                    }
                    // a file that got shorter makes it a partial batch in the next round
                    self.fill(len)?;
                }
                Ok(Frame::End | Frame::Partial) => return Ok(Found::End),
                Err(error) if matches!(error.kind(), ErrorKind::BatchLength { length: 0, .. }) => {
                    return if self.is_zero_to_the_end()? { Ok(Found::End) } else { Err(error) };
                }
                Err(error) => return Err(error),
            }
        }
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
        self.window.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, have);
        if self.window.len() < wanted.max(WINDOW_LEN) {
            self.window.resize(wanted.max(WINDOW_LEN), 0);
        }
        while self.end < wanted {
            let end = usize_from_u64(self.remainder_len()).min(self.window.len());
            let room = self.window.get_mut(self.end..end).unwrap_or_default();
            match self.file.read(room) {
                Ok(0) => {
                    self.len = self.position.saturating_add(u64_of(self.end));
                    break;
                }
                Ok(count) => self.end = self.end.saturating_add(count),
                Err(error) if error.kind() == IoErrorKind::Interrupted => {}
                Err(error) => return Err(Error::from(error).at(self.position)),
            }
        }
        Ok(self.end)
    }

    /// Looks at all that is left of the file, without moving on.
    fn is_zero_to_the_end(&mut self) -> Result<bool> {
        if !is_zeros(self.window.get(self.start..self.end).unwrap_or_default()) {
            return Ok(false);
        }
        let mut left = self.remainder_len().saturating_sub(u64_of(self.end.saturating_sub(self.start)));
        let mut chunk = vec![0_u8; usize_from_u64(left).min(WINDOW_LEN)];
        while left > 0 {
            let want = usize_from_u64(left).min(chunk.len());
            let room = chunk.get_mut(..want).unwrap_or_default();
            let count = self.file.read(room).map_err(|error| Error::from(error).at(self.position))?;
            if count == 0 {
                break;
            }
            if !is_zeros(room.get(..count).unwrap_or_default()) {
                return Ok(false);
            }
            left = left.saturating_sub(u64_of(count));
        }
        Ok(true)
    }
}

/// The size of a batch that passed framing and is only too large.
fn skippable(rest: &[u8]) -> Option<usize> {
    let length = i32::from_be_bytes(*rest.get(8..)?.first_chunk()?);
    usize::try_from(length.checked_add(12)?).ok()
}
