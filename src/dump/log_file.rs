//! [`DumpedLog`]: the batches of a file, framed as Kafka's `FileLogInputStream` frames them.
//!
//! A batch begins at each position from which more than 17 bytes are left, and ends the log if its size exceeds them.
//! So zeros are a size that is too small, and up to 17 bytes at the end are ignored. In contrast to
//! [`SegmentReader`](crate::log::SegmentReader), nothing else is checked.

use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Batch;
use crate::format::frame::limit_error;
use crate::format::header::{
    BATCH_HEADER_LEN, BatchHeader, HEADER_LEN_UP_TO_MAGIC, LOG_OVERHEAD, MAGIC_POSITION, MIN_LENGTH,
};
use crate::io::{ChunkCache, Location, PositionedFile};
use crate::limits::Limits;
use crate::num::{u64_of, usize_from_u64};

/// Number of bytes per read of a walk through a log.
pub(crate) const WALK_LEN: usize = 1 << 20;
/// Number of bytes per read of a single batch's header.
pub(crate) const HEADER_READ_LEN: usize = 128;
/// Position of the last offset delta in v2, and the position after it.
const LAST_OFFSET_DELTA_POSITION: usize = 23;
const LAST_OFFSET_END: usize = 27;

/// A batch as far as it could be parsed.
pub(crate) struct ParsedBatch<'b> {
    pub(crate) header: BatchHeader,
    /// The magic as stored. Kafka reads 3 to 127 as v2.
    pub(crate) magic: u8,
    pub(crate) is_valid: bool,
    /// The batch, unless it is shorter than its header.
    pub(crate) batch: Option<Batch<'b>>,
}

pub(crate) struct DumpedLog {
    file: PositionedFile,
    len: u64,
    batch_len_limit: usize,
    chunk: ChunkCache,
    /// A copy of a batch with an unknown magic.
    patched: Vec<u8>,
}

impl DumpedLog {
    pub(crate) fn open(path: &Location, read_len: usize, limits: &Limits) -> Result<Self> {
        let file = path.open()?;
        let (len, batch_len_limit) = (file.len()?, limits.batch_len);
        Ok(Self { file, len, batch_len_limit, chunk: ChunkCache::new(read_len), patched: Vec::new() })
    }

    /// Length of the file in bytes when it was opened.
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Returns the size of the batch at a position in a log that ends at `end`; `None` at the end.
    pub(crate) fn frame(&mut self, position: u64, end: u64) -> Result<Option<usize>> {
        if position.saturating_add(u64_of(HEADER_LEN_UP_TO_MAGIC)) >= end {
            return Ok(None);
        }
        let head = self.bytes(position, LOG_OVERHEAD)?;
        let length = head.get(8..).and_then(<[u8]>::first_chunk).copied().map_or(0, i32::from_be_bytes);
        let size = usize::try_from(length).ok().filter(|_| length >= MIN_LENGTH);
        let Some(size) = size else {
            let kind = ErrorKind::BatchLength { length, minimum: MIN_LENGTH };
            return Err(Error::new(kind).at(position.saturating_add(8)).with_path(self.file.path()));
        };
        let size = size.saturating_add(LOG_OVERHEAD);
        Ok((position.saturating_add(u64_of(size)) <= end).then_some(size))
    }

    /// Returns the last offset of the batch at a position.
    pub(crate) fn last_offset(&mut self, position: u64) -> Result<i64> {
        let available = usize_from_u64(self.len.saturating_sub(position));
        let head = self.bytes(position, LAST_OFFSET_END.min(available))?;
        let base_offset = head.first_chunk().copied().map_or(0, i64::from_be_bytes);
        let is_v2 = head.get(MAGIC_POSITION).is_some_and(|magic| magic.cast_signed() >= 2);
        let delta = head.get(LAST_OFFSET_DELTA_POSITION..).and_then(<[u8]>::first_chunk).copied();
        let delta = delta.map(i32::from_be_bytes).filter(|_| is_v2).unwrap_or_default();
        Ok(base_offset.wrapping_add(i64::from(delta)))
    }

    /// Reads and parses the batch at a position, whose size is known.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] for a batch over [`Limits::batch_len`]; an unknown magic; I/O errors.
    pub(crate) fn batch(&mut self, position: u64, size: usize) -> Result<ParsedBatch<'_>> {
        if size > self.batch_len_limit {
            let limit = self.batch_len_limit;
            let error = limit_error(self.bytes(position, LOG_OVERHEAD)?, size, position, limit);
            return Err(error.with_path(self.file.path()));
        }
        let path = self.file.path();
        let available = usize_from_u64(self.len.saturating_sub(position));
        let bytes = read(&self.file, &mut self.chunk, position, size.max(BATCH_HEADER_LEN).min(available))?;
        let magic = bytes.get(MAGIC_POSITION).copied().unwrap_or_default();
        let bytes = match magic {
            0..=2 => bytes,
            3..=127 => {
                self.patched.clear();
                self.patched.extend_from_slice(bytes);
                if let Some(byte) = self.patched.get_mut(MAGIC_POSITION) {
                    *byte = 2;
                }
                self.patched.as_slice()
            }
            _ => {
                let kind = ErrorKind::UnsupportedMagic(magic.cast_signed());
                let place = position.saturating_add(u64_of(MAGIC_POSITION));
                return Err(Error::new(kind).at(place).with_path(path));
            }
        };
        if magic >= 2 && size < BATCH_HEADER_LEN {
            let header = BatchHeader::parse(bytes, position, size).map_err(|error| error.with_path(path))?;
            return Ok(ParsedBatch { header, magic, is_valid: false, batch: None });
        }
        let batch = Batch::parse(bytes.get(..size).unwrap_or(bytes), position);
        let batch = batch.map_err(|error| error.with_path(path))?;
        let is_valid = batch.computed_crc() == batch.crc;
        Ok(ParsedBatch { header: *batch.header(), magic, is_valid, batch: Some(batch) })
    }

    fn bytes(&mut self, position: u64, len: usize) -> Result<&[u8]> {
        read(&self.file, &mut self.chunk, position, len)
    }
}

fn read<'c>(file: &PositionedFile, chunk: &'c mut ChunkCache, position: u64, len: usize) -> Result<&'c [u8]> {
    let found = chunk.bytes_from(file, position, len)?;
    found.get(..len).ok_or_else(|| {
        let message = format!("the file became shorter while it was read: {len} bytes are missing");
        Error::new(ErrorKind::InvalidFile(message)).at(position).with_path(file.path())
    })
}
