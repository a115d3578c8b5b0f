//! [`Input`]: bytes in memory or a file, walked alike and owned, for readers that outlive the call that made them.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::error::Result;
use crate::format::batch::Batch;
use crate::format::frame::{Batches, batches};
use crate::limits::Limits;
use crate::log::reader::SegmentReader;
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

/// A walk over a buffer.
pub(crate) struct Memory {
    bytes: SharedBytes,
    limits: Limits,
    /// Where the next batch begins.
    position: usize,
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
        if self.state != State::Walking {
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
        Self::Memory(Memory { bytes, limits: limits.clone(), position: 0, state: State::Walking })
    }

    pub(crate) fn open(path: &Path, limits: &Limits) -> Result<Self> {
        Self::open_at(path, 0, limits)
    }

    pub(crate) fn open_at(path: &Path, position: u64, limits: &Limits) -> Result<Self> {
        let reader = SegmentReader::open_with(path, limits)?.starting_at(position);
        Ok(Self::File(Box::new(reader)))
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

    /// Where the next batch begins.
    pub(crate) fn position(&self) -> u64 {
        match self {
            Self::Memory(memory) => u64_of(memory.position),
            Self::File(reader) => reader.position(),
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
