//! [`File`]: a file of a partition that is made of objects of tiered storage.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::SystemTime;

use crate::error::{Error, ErrorKind, Result};
use crate::io::{Location, PositionedFile, ReadAt, Status, StatusKind, StoredFile};
use crate::limits::Limits;
use crate::log::SegmentReader;
use crate::log::checkpoint::EpochEntry;
use crate::log::resync::Floor;
use crate::log::walk::{BatchWalk, WalkEvent};
use crate::num::{u64_of, usize_from_u64};
use crate::slices::Slices;
use crate::tiered::aiven::{DamagedChunks, EncryptionKeys, Indexes, Manifest, Segment};

/// Largest size of an `.indexes` object in bytes: more than the indexes of the largest segment.
const MAX_INDEXES_LEN: usize = 1 << 28;

/// A file.
#[derive(Debug)]
pub(super) enum File {
    /// An object with another name.
    Renamed(Location),
    /// Bytes that no object contains.
    Content(Arc<Vec<u8>>),
    /// A segment of Aiven's plugin.
    Log(Arc<Chunked>),
    /// One of the files in an `.indexes` object.
    Index(Arc<Chunked>, fn(&Indexes) -> &[u8]),
    /// A part of another file.
    Part(Box<File>, Range<u64>),
}

/// The error for a path without a file.
pub(super) fn no_file(path: &Path) -> Error {
    Error::from(std::io::Error::from(std::io::ErrorKind::NotFound)).with_path(path)
}

/// The files of a partition by name, and what a reader should know, each with the lowest offset that it is about.
#[derive(Default)]
pub(super) struct Loaded {
    pub(super) files: BTreeMap<String, File>,
    pub(super) warnings: Vec<(i64, String)>,
}

impl File {
    pub(super) fn status(&self) -> Result<Status> {
        let (len, modified) = match self {
            Self::Renamed(location) => return location.status(),
            Self::Content(bytes) => (u64_of(bytes.len()), None),
            Self::Log(segment) => segment.len_and_modified()?,
            Self::Index(segment, part) => (u64_of(part(segment.indexes()?).len()), None),
            Self::Part(file, range) => (range.end.saturating_sub(range.start), file.status()?.modified),
        };
        Ok(Status { kind: StatusKind::File, len, modified })
    }

    pub(super) fn open(&self) -> Result<Box<dyn StoredFile>> {
        Ok(match self {
            Self::Renamed(location) => Box::new(location.open()?),
            Self::Content(bytes) => Box::new(MemoryBytes(Arc::clone(bytes))),
            Self::Log(segment) => Box::new(OpenedSegment::new(segment.open()?)),
            Self::Index(segment, part) => Box::new(MemoryBytes(Arc::new(part(segment.indexes()?).to_vec()))),
            Self::Part(file, range) => Box::new(FileRange { file: file.open()?, range: range.clone() }),
        })
    }

    /// Whether this is a segment that was complete when it was stored. An object with another name is one if
    /// `are_objects`.
    pub(super) fn is_finished(&self, are_objects: bool) -> bool {
        match self {
            Self::Renamed(location) => are_objects || location.is_finished(),
            Self::Log(_) => true,
            Self::Part(file, _) => file.is_finished(are_objects),
            Self::Content(_) | Self::Index(..) => false,
        }
    }

    /// If this is a part of another file: the path of that file, and the position at which the part begins.
    pub(super) fn part_of(&self) -> Option<(PathBuf, u64)> {
        match self {
            Self::Renamed(location) => location.part_of(),
            Self::Part(file, range) => {
                let (path, start) = file.origin()?;
                Some((path, start.saturating_add(range.start)))
            }
            Self::Content(_) | Self::Log(_) | Self::Index(..) => None,
        }
    }

    /// The path of the object with the bytes of a segment, and the position at which they begin.
    fn origin(&self) -> Option<(PathBuf, u64)> {
        match self {
            Self::Renamed(location) => Some(location.part_of().unwrap_or_else(|| (location.to_path_buf(), 0))),
            Self::Log(segment) => Some((segment.log.to_path_buf(), 0)),
            Self::Part(..) => self.part_of(),
            Self::Content(_) | Self::Index(..) => None,
        }
    }

    /// The batches of a segment whose last offsets are in a range, as a file, with the corruption that may hide others of
    /// the range, so that its readers report it. `None` if there is nothing of the range.
    ///
    /// # Errors
    /// I/O errors.
    pub(super) fn part(self, path: &Path, offsets: &Range<i64>) -> Result<Option<Self>> {
        let limits = Limits::default();
        let opened = PositionedFile::stored(self.open()?, path);
        let mut walk = BatchWalk::new(SegmentReader::of_file(opened, &limits)?.reading_headers(), &limits);
        let mut floor = Floor::at(None);
        let (mut start, mut end) = (None, 0);
        // the offset after the last batch, and the position of corruption after it
        let (mut next, mut corrupt) = (i64::MIN, None);
        while next < offsets.end {
            let position = walk.reader.position();
            match walk.next_header()? {
                WalkEvent::Batch(header) => {
                    floor.pass(&header);
                    if let Some(corrupt) = corrupt.take().filter(|_| header.stored_base_offset > offsets.start) {
                        start.get_or_insert(corrupt);
                        end = position;
                    }
                    if offsets.contains(&header.last_offset()) {
                        start.get_or_insert(position);
                        end = walk.reader.position();
                    }
                    next = header.last_offset().saturating_add(1);
                }
                WalkEvent::End if walk.reader.remainder_len() == 0 => break,
                event => {
                    // a corrupt size may extend past the end, and batches may follow
                    if walk.skip(position, floor.least())?.is_followed {
                        corrupt.get_or_insert(position);
                        continue;
                    }
                    if matches!(event, WalkEvent::Corrupt { .. }) {
                        start.get_or_insert(corrupt.unwrap_or(position));
                    }
                    end = walk.reader.position().saturating_add(walk.reader.remainder_len());
                    break;
                }
            }
        }
        Ok(start.map(|start| Self::Part(Box::new(self), start..end)))
    }
}

/// The objects of a segment of Aiven's plugin.
pub(super) struct Chunked {
    pub(super) log: Location,
    pub(super) indexes: Option<Location>,
    pub(super) manifest_bytes: Vec<u8>,
    pub(super) manifest: Manifest,
    pub(super) keys: EncryptionKeys,
    /// The segment while it is open, so that its readers share decoded chunks.
    open: Mutex<Weak<Segment>>,
    split: OnceLock<Indexes>,
}

impl fmt::Debug for Chunked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunked").field("log", &self.log).finish_non_exhaustive()
    }
}

impl Chunked {
    pub(super) fn new(
        log: Location,
        indexes: Option<Location>,
        manifest_bytes: Vec<u8>,
        manifest: Manifest,
        keys: EncryptionKeys,
    ) -> Self {
        Self { log, indexes, manifest_bytes, manifest, keys, open: Mutex::default(), split: OnceLock::new() }
    }

    fn open(&self) -> Result<Arc<Segment>> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(segment) = open.upgrade() {
            return Ok(segment);
        }
        let log = Box::new(self.log.open()?);
        let limits = Limits::default();
        let segment = Arc::new(Segment::open(log, &self.manifest_bytes, &self.keys, &limits, self.log.path())?);
        *open = Arc::downgrade(&segment);
        Ok(segment)
    }

    /// The length of the open segment, and when its object was modified.
    fn len_and_modified(&self) -> Result<(u64, Option<SystemTime>)> {
        let object = self.log.status()?;
        let len = self.manifest.chunks.original_len().saturating_add(self.manifest.excess_len(object.len));
        Ok((len, object.modified))
    }

    pub(super) fn indexes(&self) -> Result<&Indexes> {
        if let Some(split) = self.split.get() {
            return Ok(split);
        }
        let Some(object) = &self.indexes else {
            let message = "the .indexes object of this segment is missing".to_owned();
            return Err(Error::new(ErrorKind::InvalidFile(message)).with_path(&self.log));
        };
        let split = self.open()?.indexes(&object.read_small(MAX_INDEXES_LEN)?)?;
        Ok(self.split.get_or_init(|| split))
    }

    /// The leader epochs in the `.indexes` object; none if they cannot be read, which readers of the segment report.
    ///
    /// # Errors
    /// I/O errors.
    pub(super) fn leader_epochs(&self) -> Result<Vec<EpochEntry>> {
        let parsed = self.indexes().and_then(Indexes::leader_epochs);
        match parsed {
            Ok(epochs) => Ok(epochs.entries().to_vec()),
            Err(error) if error.is_of_reading() => Err(error),
            Err(_) => Ok(Vec::new()),
        }
    }
}

/// Bytes in memory.
struct MemoryBytes(Arc<Vec<u8>>);

impl fmt::Debug for MemoryBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

impl ReadAt for MemoryBytes {
    fn byte_len(&self) -> Result<u64> {
        self.0.as_slice().byte_len()
    }

    fn read_bytes_at(&self, out: &mut [u8], position: u64) -> Result<usize> {
        self.0.as_slice().read_bytes_at(out, position)
    }
}

/// An open segment.
#[derive(Debug)]
struct OpenedSegment {
    segment: Arc<Segment>,
    /// The damaged chunks that were read over; `None` if a damaged chunk is an error.
    damaged: Mutex<Option<DamagedChunks>>,
}

impl OpenedSegment {
    fn new(segment: Arc<Segment>) -> Self {
        Self { segment, damaged: Mutex::default() }
    }
}

impl ReadAt for OpenedSegment {
    fn byte_len(&self) -> Result<u64> {
        self.segment.byte_len()
    }

    fn limit_ahead(&self, end: u64) {
        self.segment.limit_ahead(end);
    }

    fn read_bytes_at(&self, out: &mut [u8], position: u64) -> Result<usize> {
        let mut damaged = self.damaged.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(damaged) = &mut *damaged {
            return self.segment.read_over_damage(out, position, damaged);
        }
        drop(damaged);
        self.segment.read_bytes_at(out, position)
    }

    fn read_over_damage(&self) {
        self.damaged.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default();
    }

    fn damage_in(&self, range: Range<u64>) -> Option<Error> {
        let damaged = self.damaged.lock().unwrap_or_else(PoisonError::into_inner);
        damaged.as_ref().and_then(|damaged| self.segment.damage_in(&range, damaged))
    }
}

/// A range of an open file.
#[derive(Debug)]
struct FileRange {
    file: Box<dyn StoredFile>,
    range: Range<u64>,
}

impl ReadAt for FileRange {
    fn byte_len(&self) -> Result<u64> {
        Ok(self.range.end.saturating_sub(self.range.start))
    }

    fn read_bytes_at(&self, out: &mut [u8], position: u64) -> Result<usize> {
        let room = usize_from_u64(self.byte_len()?.saturating_sub(position)).min(out.len());
        self.file.read_bytes_at(out.part_mut(..room), self.range.start.saturating_add(position))
    }

    fn read_over_damage(&self) {
        self.file.read_over_damage();
    }

    fn damage_in(&self, range: Range<u64>) -> Option<Error> {
        let start = self.range.start;
        self.file.damage_in(range.start.saturating_add(start)..range.end.saturating_add(start))
    }
}
