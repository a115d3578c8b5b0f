//! [`ScanSource`]: something to scan.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::arrow::columns::Origin;
use crate::arrow::options::ScanOptions;
use crate::error::{Error, Result};
use crate::log::{Input, SegmentFile};

/// Something to scan: a file or a buffer, and what is known of it.
#[derive(Clone)]
pub struct ScanSource {
    pub(crate) place: Place,
    pub(crate) origin: Origin,
    /// The segment's base offset, if the file is named after one, and that of the next segment in its directory.
    pub(crate) base_offset: Option<i64>,
    pub(crate) next_base: Option<i64>,
    /// Bytes in which a batch must begin.
    pub(crate) window: (u64, u64),
}

#[derive(Clone)]
pub(crate) enum Place {
    File(PathBuf),
    Memory(Arc<dyn AsRef<[u8]> + Send + Sync>),
}

impl ScanSource {
    /// A segment file.
    #[must_use]
    pub fn file(segment: &SegmentFile) -> Self {
        let partition = segment.partition.as_ref();
        let origin = Origin {
            topic: partition.map(|partition| partition.topic.as_str().into()),
            partition: partition.map(|partition| partition.partition),
            segment: Some(segment.path.to_string_lossy().into()),
        };
        Self {
            place: Place::File(segment.path.clone()),
            origin,
            base_offset: segment.base_offset,
            next_base: None,
            window: (0, u64::MAX),
        }
    }

    /// Segment files in the order of [`find_segments`](crate::find_segments). That they are neighbours lets a scan leave out
    /// those that end before its first offset.
    #[must_use]
    pub fn files(segments: &[SegmentFile]) -> Vec<Self> {
        let mut sources: Vec<Self> = segments.iter().map(Self::file).collect();
        let next = sources.iter().skip(1).map(|source| (source.directory(), source.base_offset)).collect::<Vec<_>>();
        let next: Vec<_> = next.into_iter().map(|(directory, base)| (directory.map(Path::to_path_buf), base)).collect();
        for (source, (directory, base)) in sources.iter_mut().zip(next) {
            let is_neighbour = source.base_offset < base && source.directory() == directory.as_deref();
            source.next_base = base.filter(|_| is_neighbour);
        }
        sources
    }

    /// A buffer of batches.
    #[must_use]
    pub fn memory(bytes: Arc<dyn AsRef<[u8]> + Send + Sync>) -> Self {
        let window = (0, u64::MAX);
        Self { place: Place::Memory(bytes), origin: Origin::default(), base_offset: None, next_base: None, window }
    }

    /// Sets topic and partition where the directory's name does not tell them.
    #[must_use]
    pub fn or_topic_partition(mut self, topic: Option<&str>, partition: Option<i32>) -> Self {
        self.origin.topic = self.origin.topic.or_else(|| topic.map(Into::into));
        self.origin.partition = self.origin.partition.or(partition);
        self
    }

    /// Only the batches that begin at `start_position` or later and before `end_position`, in bytes. Neither has to be where a
    /// batch begins: windows that lie side by side give each batch once.
    #[must_use]
    pub fn within(mut self, start_position: u64, end_position: u64) -> Self {
        self.window = (start_position, end_position);
        self
    }

    /// The file; `None` for a buffer.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.place {
            Place::File(path) => Some(path),
            Place::Memory(_) => None,
        }
    }

    /// The directory of a segment.
    pub(crate) fn directory(&self) -> Option<&Path> {
        self.base_offset.and_then(|_| self.path()?.parent())
    }

    pub(crate) fn open(&self, position: u64, options: &ScanOptions) -> Result<Input> {
        let limits = &options.limits;
        match &self.place {
            Place::File(path) if options.leave_page_cache => {
                Input::open_at(path, position, limits).map(Input::leaving_page_cache)
            }
            Place::File(path) => Input::open_at(path, position, limits),
            Place::Memory(bytes) => Ok(Input::memory(Arc::clone(bytes), limits)),
        }
    }

    pub(crate) fn locate(&self, error: Error) -> Error {
        match &self.place {
            Place::File(path) => error.with_path(path),
            Place::Memory(_) => error,
        }
    }
}
