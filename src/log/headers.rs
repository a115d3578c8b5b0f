//! [`HeaderReader`]: reads the batch headers of a file, without the payloads.

use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Batch;
use crate::format::frame::{Frame, frame, limit_error, trusted_len};
use crate::format::header::{BATCH_HEADER_LEN, BatchHeader, HEADER_LEN_UP_TO_MAGIC};
use crate::io::{ChunkCache, Location, PositionedFile, is_zero_to_the_end};
use crate::limits::Limits;
use crate::num::{u64_of, usize_from_u64};

/// Number of bytes to read at a time for batches larger than this: a header and little more.
const SMALL_READ: usize = 256;
/// Number of bytes to read at a time for small batches.
const LARGE_READ: usize = 1 << 18;

/// Iterates over the batch headers of a file with small positioned reads. Payloads are not read: for a segment of 16
/// KB batches, this reads about 1.6 % of the bytes.
///
/// Ends and fails like [`SegmentReader`](crate::log::SegmentReader). Checksums are not verified.
#[derive(Debug)]
pub struct HeaderReader {
    file: PositionedFile,
    limits: Limits,
    /// Length of the file in bytes when it was opened.
    len: u64,
    /// Position of the next batch.
    position: u64,
    chunk: ChunkCache,
    read_len: usize,
    /// Number of bytes read as complete batches.
    batch_bytes_read: u64,
    ended: bool,
    /// After an error, the size of the batch, if it can be trusted.
    failed: Option<usize>,
}

impl HeaderReader {
    /// Opens a file. Bytes appended to it later are not read.
    ///
    /// # Errors
    /// I/O errors.
    pub fn open(path: impl Into<Location>, limits: &Limits) -> Result<Self> {
        let path: &Location = &path.into();
        let file = path.open()?;
        let len = file.len()?;
        Ok(Self {
            file,
            limits: limits.clone(),
            len,
            position: 0,
            chunk: ChunkCache::new(SMALL_READ),
            read_len: SMALL_READ,
            batch_bytes_read: 0,
            ended: false,
            failed: None,
        })
    }

    /// Starts at the batch at this byte position.
    #[must_use]
    pub fn starting_at(mut self, position: u64) -> Self {
        self.seek(position);
        self
    }

    /// Drops pages that reading adds to the page cache, and only those: pages that a broker has cached stay. Has no
    /// effect on systems other than Linux.
    #[must_use]
    pub fn leaving_page_cache(mut self) -> Self {
        self.file.leave_page_cache();
        self
    }

    /// Continues at the batch at this byte position, even after an error or the end.
    pub fn seek(&mut self, position: u64) {
        self.position = position;
        (self.ended, self.failed) = (false, None);
    }

    /// Path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The file, for reading by position.
    pub(crate) fn file(&self) -> &PositionedFile {
        &self.file
    }

    /// Position of the next batch in bytes.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Length of the file in bytes when it was opened.
    #[must_use]
    pub fn file_len(&self) -> u64 {
        self.len
    }

    /// Number of bytes after the last batch returned. At the end of the iteration these are an incomplete batch,
    /// zeros, or none.
    #[must_use]
    pub fn remainder_len(&self) -> u64 {
        self.len.saturating_sub(self.position)
    }

    /// Number of bytes read from the file so far.
    #[must_use]
    pub fn bytes_read(&self) -> u64 {
        self.chunk.bytes_read().saturating_add(self.batch_bytes_read)
    }

    /// Returns the header of the next batch, or `None` at the end and after an error.
    ///
    /// # Errors
    /// An invalid size or magic, a batch over [`Limits::batch_len`], I/O errors.
    pub fn next_header(&mut self) -> Option<Result<BatchHeader>> {
        if self.ended {
            return None;
        }
        match self.read_header() {
            Ok(Some(header)) => {
                self.position = self.position.saturating_add(u64_of(header.size()));
                Some(Ok(header))
            }
            Ok(None) => {
                self.ended = true;
                None
            }
            Err(error) => {
                self.ended = true;
                let (position, available) = (self.position, self.remainder_len());
                self.failed = self
                    .bytes_at(position, HEADER_LEN_UP_TO_MAGIC)
                    .ok()
                    .and_then(|head| trusted_len(&error, head, available));
                Some(Err(error.with_path(self.file.path())))
            }
        }
    }

    /// After an error, skips the batch that caused it. Returns `false` if its size cannot be trusted, or if there was
    /// no error.
    pub fn skip_batch(&mut self) -> bool {
        let Some(len) = self.failed.take() else { return false };
        self.seek(self.position.saturating_add(u64_of(len)));
        true
    }

    /// Whether the file ends or another batch starts at the current position, which confirms the size of the last
    /// batch.
    pub(crate) fn is_followed(&mut self) -> bool {
        let position = self.position;
        let followed = self.remainder_len() == 0 || matches!(self.next_header(), Some(Ok(_)));
        self.seek(position);
        followed
    }

    /// Reads the complete batch of a header that this reader returned.
    ///
    /// # Errors
    /// I/O errors; [`ErrorKind::Truncated`] if the file has become shorter.
    pub fn read_batch<'a>(&mut self, header: &BatchHeader, out: &'a mut Vec<u8>) -> Result<Batch<'a>> {
        out.clear();
        out.resize(header.size(), 0);
        let count = self.file.read_at(out, header.position())?;
        self.batch_bytes_read = self.batch_bytes_read.saturating_add(u64_of(count));
        if count < header.size() {
            let error = Error::new(ErrorKind::Truncated).at(header.position()).in_batch(header.base_offset);
            return Err(error.with_path(self.file.path()));
        }
        Batch::parse(out, header.position()).map_err(|error| error.with_path(self.file.path()))
    }

    fn read_header(&mut self) -> Result<Option<BatchHeader>> {
        let position = self.position;
        let available = self.remainder_len();
        let limit = self.limits.batch_len;
        let wanted = usize_from_u64(available).min(BATCH_HEADER_LEN);
        let bytes = self.bytes_at(position, wanted)?;
        if bytes.len() < wanted {
            self.file.check_not_truncated(position)?;
            return Ok(None);
        }
        match frame(bytes, position, available) {
            Ok(Frame::Whole(len)) if len > limit => Err(limit_error(bytes, len, position, limit)),
            Ok(Frame::Whole(len)) => {
                // a v0 or v1 message may be shorter than the bytes read
                let bytes = bytes.get(..len.min(bytes.len())).unwrap_or_default();
                BatchHeader::parse(bytes, position, len).map(Some)
            }
            Ok(Frame::End | Frame::Partial) => Ok(None),
            Err(error) if matches!(error.kind(), ErrorKind::BatchLength { length: 0, .. }) => {
                if is_zero_to_the_end(&self.file, position, self.len)? { Ok(None) } else { Err(error) }
            }
            Err(error) => Err(error),
        }
    }

    /// Reads up to `wanted` bytes at a position.
    fn bytes_at(&mut self, position: u64, wanted: usize) -> Result<&[u8]> {
        if !self.chunk.has(position, wanted) {
            let is_near = self.chunk.is_near(position);
            self.read_len = if is_near { self.read_len.saturating_mul(4).min(LARGE_READ) } else { SMALL_READ };
            // not past the length at opening: bytes written since then are left to other readers
            self.chunk.set_read_len(self.read_len.min(usize_from_u64(self.len.saturating_sub(position))));
        }
        let bytes = self.chunk.bytes_from(&self.file, position, wanted)?;
        Ok(bytes.get(..wanted.min(bytes.len())).unwrap_or_default())
    }
}
