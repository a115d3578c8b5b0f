//! [`Input`]: bytes in memory or a file, walked alike and owned, for readers that outlive the call that made them.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::error::Result;
use crate::format::batch::Batch;
use crate::format::frame::{Batches, batches, is_zeros};
use crate::format::header::{BATCH_HEADER_LEN, BatchHeader, HEADER_LEN_UP_TO_MAGIC};
use crate::io::ReadAt;
use crate::limits::Limits;
use crate::log::reader::SegmentReader;
use crate::log::resync::{Next, Resync};
use crate::num::{u64_of, usize_from_u64};

/// Bytes that somebody else may own.
pub(crate) type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Where batches come from.
pub(crate) enum Input {
    /// A buffer.
    Memory(Memory),
    /// A file.
    File(Box<SegmentReader>),
}

/// Memory in which a batch lies.
#[derive(Clone, Copy)]
pub(crate) enum Lender<'b> {
    /// The window of a file.
    Window(&'b Arc<Vec<u8>>),
    /// A buffer of somebody else's.
    Buffer(&'b SharedBytes),
}

/// A walk over a buffer.
pub(crate) struct Memory {
    bytes: SharedBytes,
    limits: Limits,
    /// Where the next batch begins.
    position: usize,
    /// Batches that begin here or later are not given.
    stop: usize,
    state: State,
}

#[derive(Clone, Copy, PartialEq)]
enum State {
    Walking,
    Ended,
    /// Failed at a batch; its end, where that is known.
    Failed(Option<usize>),
}

/// A batch whose bytes are held, and where they are.
#[cfg_attr(not(feature = "python"), expect(dead_code, reason = "only Python's batches can't borrow"))]
pub(crate) struct SharedBatch {
    pub(crate) bytes: SharedBytes,
    pub(crate) range: Range<usize>,
    pub(crate) position: u64,
}

impl Memory {
    fn walk(&self) -> Batches<'_> {
        let rest = (*self.bytes).as_ref().get(self.position..).unwrap_or_default();
        batches(rest).starting_at(u64_of(self.position)).with_limits(&self.limits)
    }

    /// The range of the next batch.
    fn next(&mut self) -> Option<Result<Range<usize>>> {
        if self.state != State::Walking || self.position >= self.stop {
            return None;
        }
        let mut walk = self.walk();
        let next = walk.next().map(|next| next.map(|batch| batch.size()));
        let skipped = matches!(next, Some(Err(_))) && walk.skip_batch();
        let after = usize_from_u64(walk.position());
        Some(match next {
            Some(Ok(len)) => {
                let start = self.position;
                self.position = start.saturating_add(len);
                Ok(start..self.position)
            }
            Some(Err(error)) => {
                self.state = State::Failed(skipped.then_some(after));
                Err(error)
            }
            None => {
                self.state = State::Ended;
                return None;
            }
        })
    }
}

impl Input {
    pub(crate) fn memory(bytes: SharedBytes, limits: &Limits) -> Self {
        Self::Memory(Memory { bytes, limits: limits.clone(), position: 0, stop: usize::MAX, state: State::Walking })
    }

    #[cfg(feature = "python")]
    pub(crate) fn open(path: &Path, limits: &Limits) -> Result<Self> {
        Self::open_at(path, 0, limits)
    }

    pub(crate) fn open_at(path: &Path, position: u64, limits: &Limits) -> Result<Self> {
        let reader = SegmentReader::open_with(path, limits)?.starting_at(position);
        Ok(Self::File(Box::new(reader)))
    }

    /// Drops again what reading a file brings into the page cache.
    pub(crate) fn leaving_page_cache(self) -> Self {
        match self {
            Self::File(reader) => Self::File(Box::new(reader.leaving_page_cache())),
            memory @ Self::Memory(_) => memory,
        }
    }

    /// Gives no batch that begins at this byte or later.
    pub(crate) fn stop_at(&mut self, position: u64) {
        match self {
            Self::File(reader) => reader.stop_at(position),
            Self::Memory(memory) => memory.stop = usize_from_u64(position),
        }
    }

    /// Goes on at the batch that begins at this byte, whatever happened before.
    pub(crate) fn seek(&mut self, position: u64) {
        match self {
            Self::File(reader) => reader.seek(position),
            Self::Memory(memory) => (memory.position, memory.state) = (usize_from_u64(position), State::Walking),
        }
    }

    /// Goes on after damage at the batch that begins at this byte.
    pub(crate) fn resume(&mut self, position: u64) {
        match self {
            Self::File(reader) => reader.resume(position),
            Self::Memory(_) => self.seek(position),
        }
    }

    /// Where the next batch begins.
    pub(crate) fn position(&self) -> u64 {
        match self {
            Self::Memory(memory) => u64_of(memory.position),
            Self::File(reader) => reader.position(),
        }
    }

    /// Bytes read from a file, or walked over in a buffer.
    pub(crate) fn bytes_read(&self) -> u64 {
        match self {
            Self::Memory(memory) => u64_of(memory.position),
            Self::File(reader) => reader.bytes_read(),
        }
    }

    /// The next batch that is wanted by its header; `None` at the end and after an error.
    pub(crate) fn next_wanted(&mut self, mut wants: impl FnMut(&BatchHeader) -> bool) -> Option<Result<Batch<'_>>> {
        let memory = match self {
            Self::File(reader) => return reader.next_wanted(wants),
            Self::Memory(memory) => memory,
        };
        loop {
            let range = match memory.next()? {
                Ok(range) => range,
                Err(error) => return Some(Err(error)),
            };
            let (bytes, position) =
                ((*memory.bytes).as_ref().get(range.clone()).unwrap_or_default(), u64_of(range.start));
            match BatchHeader::parse(bytes, position, bytes.len()) {
                Ok(header) if !wants(&header) => {}
                _ => return Some(Batch::parse((*memory.bytes).as_ref().get(range).unwrap_or_default(), position)),
            }
        }
    }

    /// The batch that was given last, by its header, and where it lies.
    pub(crate) fn last(&self, header: BatchHeader) -> (Batch<'_>, Lender<'_>) {
        let len = header.size();
        let (bytes, lender) = match self {
            Self::File(reader) => {
                let (bytes, window) = reader.last(len);
                (bytes, Lender::Window(window))
            }
            Self::Memory(memory) => {
                let range = memory.position.saturating_sub(len)..memory.position;
                ((*memory.bytes).as_ref().get(range).unwrap_or_default(), Lender::Buffer(&memory.bytes))
            }
        };
        (Batch::of(bytes, header), lender)
    }

    /// The header of the next batch; `None` at the end and after an error.
    pub(crate) fn next_header(&mut self) -> Option<Result<BatchHeader>> {
        match self {
            Self::File(reader) => reader.next_header(),
            Self::Memory(_) => self.next_batch().map(|batch| batch.map(|batch| *batch)),
        }
    }

    /// The next batch after damage.
    pub(crate) fn resync(&self, resync: &mut Resync, damaged: u64, next_offset: Option<i64>) -> Result<Next> {
        match self {
            Self::File(reader) => resync.find(reader.file(), damaged, next_offset),
            Self::Memory(memory) => resync.find(&(*memory.bytes).as_ref(), damaged, next_offset),
        }
    }

    /// The header of the batch at a position.
    pub(crate) fn header_at(&self, position: u64) -> Result<BatchHeader> {
        let mut bytes = [0; BATCH_HEADER_LEN];
        let len = match self {
            Self::File(reader) => reader.file().read_bytes_at(&mut bytes, position)?,
            Self::Memory(memory) => (*memory.bytes).as_ref().read_bytes_at(&mut bytes, position)?,
        };
        BatchHeader::parse(bytes.get(..len).unwrap_or_default(), position, 0)
    }

    /// After the end: the bytes that are neither a batch nor zeros, nor after where the input was to stop.
    pub(crate) fn cut_len(&self) -> Result<u64> {
        match self {
            Self::File(reader) if reader.position() >= reader.stop() => Ok(0),
            Self::File(reader) => reader.cut_len(),
            Self::Memory(memory) => {
                let (position, bytes) = (usize_from_u64(self.position()), (*memory.bytes).as_ref());
                let left = bytes.get(position..).filter(|_| position < memory.stop).unwrap_or_default();
                let head = left.get(..HEADER_LEN_UP_TO_MAGIC).unwrap_or(left);
                Ok(if is_zeros(head) { 0 } else { u64_of(left.len()) })
            }
        }
    }

    /// Bytes that are left of a file, of which [`Input::cut_len`] says that they are zeros.
    pub(crate) fn zero_len(&self) -> u64 {
        match self {
            Self::File(reader) if reader.position() < reader.stop() => reader.remainder_len(),
            Self::File(_) | Self::Memory(_) => 0,
        }
    }

    /// Whether a broker has written to what was left of a file when it was read.
    pub(crate) fn is_written_since(&self) -> Result<bool> {
        match self {
            Self::File(reader) => reader.is_written_since(),
            Self::Memory(_) => Ok(false),
        }
    }

    /// Whether what is left of a file is as it was: a broker that rolls a segment meanwhile writes to it and cuts it.
    pub(crate) fn is_left_alone(&self) -> Result<bool> {
        match self {
            Self::File(reader) => {
                let known = reader.position().saturating_add(reader.remainder_len());
                Ok(reader.file().len()? == known && reader.cut_len()? == 0)
            }
            Self::Memory(_) => Ok(true),
        }
    }

    /// Whether a file has more bytes than when it was opened.
    pub(crate) fn has_grown(&self) -> Result<bool> {
        match self {
            Self::File(reader) => {
                let known = reader.position().saturating_add(reader.remainder_len());
                Ok(reader.file().len()? > known)
            }
            Self::Memory(_) => Ok(false),
        }
    }

    /// The next batch; `None` at the end and after an error.
    pub(crate) fn next_batch(&mut self) -> Option<Result<Batch<'_>>> {
        match self {
            Self::File(reader) => reader.next_batch(),
            Self::Memory(memory) => Some(memory.next()?.and_then(|range| {
                let position = u64_of(range.start);
                Batch::parse((*memory.bytes).as_ref().get(range).unwrap_or_default(), position)
            })),
        }
    }
}

#[cfg(feature = "python")]
impl Input {
    /// The next batch with its bytes: those of a buffer as they are, those of a file copied.
    pub(crate) fn next_shared(&mut self) -> Option<Result<SharedBatch>> {
        match self {
            Self::Memory(memory) => Some(memory.next()?.map(|range| {
                let position = u64_of(range.start);
                SharedBatch { bytes: Arc::clone(&memory.bytes), range, position }
            })),
            Self::File(reader) => Some(reader.next_batch()?.map(|batch| {
                let (bytes, position) = (batch.bytes().to_vec(), batch.position());
                let range = 0..bytes.len();
                SharedBatch { bytes: Arc::new(bytes), range, position }
            })),
        }
    }

    /// After an error: steps over the batch that caused it. `false` where its size can't be trusted, or nothing failed.
    pub(crate) fn skip_batch(&mut self) -> Result<bool> {
        match self {
            Self::File(reader) => reader.skip_batch(),
            Self::Memory(memory) => {
                let State::Failed(Some(end)) = memory.state else { return Ok(false) };
                (memory.position, memory.state) = (end, State::Walking);
                Ok(true)
            }
        }
    }

    /// The file, where it is one.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Memory(_) => None,
            Self::File(reader) => Some(reader.path()),
        }
    }

    /// The bytes that no batch was made of yet.
    pub(crate) fn remainder(&self) -> Result<Vec<u8>> {
        match self {
            Self::Memory(memory) => Ok(memory.walk().remainder().to_vec()),
            Self::File(reader) => {
                read_remainder(reader).map_err(|error| crate::Error::from(error).with_path(reader.path()))
            }
        }
    }
}

#[cfg(feature = "python")]
fn read_remainder(reader: &SegmentReader) -> std::io::Result<Vec<u8>> {
    use std::io::{Read, Seek, SeekFrom};

    let mut file = std::fs::File::open(reader.path())?;
    file.seek(SeekFrom::Start(reader.position()))?;
    let mut rest = Vec::new();
    file.take(reader.remainder_len()).read_to_end(&mut rest)?;
    Ok(rest)
}
