//! [`Input`]: bytes in memory or a file, walked alike and owned, for readers that outlive the call that made them.

use std::path::Path;
use std::sync::Arc;

use crate::error::Result;
use crate::format::batch::Batch;
use crate::format::frame::batches;
use crate::limits::Limits;
use crate::log::reader::SegmentReader;
use crate::num::{u64_of, usize_from_u64};

/// Bytes that somebody else may own.
pub(crate) type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Where batches come from.
pub(crate) enum Input {
    /// A buffer.
    Memory {
        /// The whole of it.
        bytes: SharedBytes,
        /// Where the next batch begins.
        position: u64,
        /// Whether the walk is over.
        ended: bool,
    },
    /// A file.
    File(Box<SegmentReader>),
}

impl Input {
    pub(crate) fn memory(bytes: SharedBytes) -> Self {
        Self::Memory { bytes, position: 0, ended: false }
    }

    pub(crate) fn open(path: &Path, limits: &Limits) -> Result<Self> {
        SegmentReader::open_with(path, limits).map(|reader| Self::File(Box::new(reader)))
    }

    /// The next batch; `None` at the end and after an error.
    pub(crate) fn next_batch(&mut self) -> Option<Result<Batch<'_>>> {
        match self {
            Self::File(reader) => reader.next_batch(),
            Self::Memory { ended: true, .. } => None,
            Self::Memory { bytes, position, ended } => {
                let rest = (**bytes).as_ref().get(usize_from_u64(*position)..).unwrap_or_default();
                let next = batches(rest).starting_at(*position).next();
                match &next {
                    Some(Ok(batch)) => *position = position.saturating_add(u64_of(batch.size())),
                    _ => *ended = true,
                }
                next
            }
        }
    }
}
