//! [`ScanSource`]: a file or buffer to scan.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::sync::Arc;

use crate::arrow::decoded::is_internal;
use crate::arrow::options::{OnCorrupt, RecordBounds, ScanOptions};
use crate::arrow::origin::Origin;
use crate::error::{Error, Result};
use crate::format::frame::batches;
use crate::format::header::{BatchHeader, HEADER_LEN_UP_TO_MAGIC};
use crate::io::{Location, OpenedFile, PositionedFile};
use crate::limits::Limits;
use crate::log::committed::Committed;
use crate::log::resync::Floor;
use crate::log::{Segment, SegmentReader, split_points};
use crate::num::u64_of;
use crate::store::listing::segment_bases;
use crate::store::{SegmentFile, foreign_file};

/// A file or buffer to scan, with its topic and partition if they are known.
#[derive(Clone)]
pub struct ScanSource {
    pub(crate) place: SourceBytes,
    pub(crate) origin: Origin,
    /// The base offset from the file's name, and the base offset of the next segment in the directory.
    pub(crate) base_offset: Option<i64>,
    pub(crate) next_base: Option<i64>,
    /// Positions between which a batch must begin, in bytes.
    pub(crate) window: (u64, u64),
    /// Whether a plan decides which read has the corruption here.
    pub(crate) is_planned: bool,
    /// Whether a batch is known to begin at the start of the window.
    pub(crate) begins_with_batch: bool,
    /// The end of the batches before the window, if they were read.
    pub(crate) before: Option<Floor>,
    /// Which batches are committed, if already determined.
    pub(crate) committed: Option<Arc<Committed>>,
}

#[derive(Clone)]
pub(crate) enum SourceBytes {
    File(Location),
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
            place: SourceBytes::File(segment.path.clone()),
            origin,
            base_offset: segment.base_offset,
            next_base: None,
            window: (0, u64::MAX),
            is_planned: false,
            begins_with_batch: true,
            before: None,
            committed: None,
        }
    }

    /// Segment files in the order of [`find_segments`](crate::find_segments). As each knows the next one, a scan skips
    /// segments that end before its start offset.
    #[must_use]
    pub fn files(segments: &[SegmentFile]) -> Vec<Self> {
        let mut sources: Vec<Self> = segments.iter().map(Self::file).collect();
        let next: Vec<_> = sources.iter().skip(1).map(|source| (source.directory(), source.base_offset)).collect();
        for (source, (directory, base)) in sources.iter_mut().zip(next) {
            let is_neighbour = source.base_offset < base && source.directory() == directory;
            source.next_base = base.filter(|_| is_neighbour);
        }
        sources
    }

    /// Gives segments the base offset of the next one in their directory, if several are from there. So a scan of a list
    /// of segments skips those before its start offset, as that of a directory does. A directory in a store, whose listing
    /// costs a request, is taken to have the segments of the list.
    pub(crate) fn find_neighbours(sources: &mut [Self]) {
        let mut bases: HashMap<OsString, Vec<i64>> = HashMap::new();
        let place = |source: &Self| {
            let directory = source.directory().filter(|_| source.next_base.is_none())?;
            Some((directory.as_os_str().to_owned(), directory, source.base_offset?))
        };
        for (name, _, base) in sources.iter().filter_map(place) {
            bases.entry(name).or_default().push(base);
        }
        bases.retain(|_, bases| bases.len() > 1);
        for bases in bases.values_mut() {
            bases.sort_unstable();
        }
        let mut listed = HashSet::new();
        for source in sources {
            let Some((name, directory, base)) = place(source) else { continue };
            let Some(bases) = bases.get_mut(&name) else { continue };
            // a directory that can't be listed is taken like one in a store
            if directory.is_local()
                && listed.insert(name)
                && let Ok(all) = segment_bases(&directory)
            {
                *bases = all;
            }
            source.next_base = bases.get(bases.partition_point(|other| *other <= base)).copied();
        }
    }

    /// A buffer of batches.
    #[must_use]
    pub fn memory(bytes: Arc<dyn AsRef<[u8]> + Send + Sync>) -> Self {
        Self {
            place: SourceBytes::Memory(bytes),
            origin: Origin::default(),
            base_offset: None,
            next_base: None,
            window: (0, u64::MAX),
            is_planned: false,
            begins_with_batch: true,
            before: None,
            committed: None,
        }
    }

    /// Sets topic and partition, unless the directory's name has them.
    #[must_use]
    pub fn or_topic_partition(mut self, topic: Option<&str>, partition: Option<i32>) -> Self {
        self.origin.topic = self.origin.topic.or_else(|| topic.map(Into::into));
        self.origin.partition = self.origin.partition.or(partition);
        self
    }

    /// Restricts the source to batches that begin at or after `start_position` and before `end_position`, in bytes.
    /// Neither has to be the start of a batch: adjacent windows return each batch exactly once.
    #[must_use]
    pub fn within(mut self, start_position: u64, end_position: u64) -> Self {
        self.window = (start_position, end_position);
        self.begins_with_batch = start_position == 0;
        self
    }

    /// Splits the source at batch boundaries into parts of about `max_bytes`, up to the first batch after the bounds, where
    /// the last part ends the scan of the source. Returns the source itself if it can't be split.
    pub(crate) fn parts(&self, max_bytes: u64, options: &ScanOptions) -> Vec<Self> {
        let (limits, end_offset) = (&options.limits, options.end_offset.filter(|_| self.base_offset.is_some()));
        let mut points = match (&self.place, self.window) {
            (SourceBytes::File(path), (0, u64::MAX)) if self.byte_len() > max_bytes => {
                let has_index = self.base_offset.is_some() && path.with_extension("index").exists();
                let points = if has_index {
                    indexed_points(path, max_bytes, limits)
                } else {
                    points(path, self.base_offset, max_bytes, limits)
                };
                points.unwrap_or_default()
            }
            (SourceBytes::Memory(bytes), (0, u64::MAX)) => memory_points((**bytes).as_ref(), max_bytes, limits),
            _ => Vec::new(),
        };
        let is_after = |before: Floor| end_offset.zip(before.next()).is_some_and(|(end, next)| next >= end);
        points.retain(|&(start, before)| start == 0 || !is_after(before));
        if points.is_empty() {
            return vec![self.clone()];
        }
        let ends = points.iter().skip(1).map(|&(start, _)| start).chain([u64::MAX]);
        let part = |(&(start, before), end)| Self { window: (start, end), before: Some(before), ..self.clone() };
        points.iter().zip(ends).map(part).collect()
    }

    /// Bytes in the window; 0 if the file's size is unknown.
    pub(crate) fn byte_len(&self) -> u64 {
        let len = match &self.place {
            SourceBytes::File(path) => path.len().unwrap_or(0),
            SourceBytes::Memory(bytes) => u64_of((**bytes).as_ref().len()),
        };
        len.min(self.window.1).saturating_sub(self.window.0)
    }

    /// Whether the source is a buffer or a file of the file system.
    pub(crate) fn is_local(&self) -> bool {
        self.path().is_none_or(Location::is_local)
    }

    /// The file; `None` for a buffer.
    #[must_use]
    pub fn path(&self) -> Option<&Location> {
        match &self.place {
            SourceBytes::File(path) => Some(path),
            SourceBytes::Memory(_) => None,
        }
    }

    /// Whether its topic, or the kind of file, is internal: see [`Decoder::ByTopic`](crate::arrow::Decoder::ByTopic).
    /// `false` if the topic is unknown.
    #[must_use]
    pub fn is_internal(&self) -> bool {
        is_internal(&self.origin)
    }

    /// The directory of a segment.
    pub(crate) fn directory(&self) -> Option<Location> {
        self.base_offset.and_then(|_| self.path().map(Location::directory))
    }

    /// Whether a scan probably reads the whole source, so that it can be requested in advance. Windows are planned for bounds.
    pub(crate) fn is_read_whole(&self, bounds: &RecordBounds) -> bool {
        let is_planned = self.window.1 < u64::MAX && bounds.start_timestamp.is_none();
        is_planned || bounds.need_all(self.base_offset, self.next_base)
    }

    /// Opens a file in a store before it is read. `None` for others, and after an error, which opening the file again
    /// reports.
    pub(crate) fn open_ahead(&self) -> Option<PositionedFile> {
        let path = self.path()?;
        if path.is_local() || !self.begins_with_batch {
            return None;
        }
        let file = path.open().ok()?;
        file.limit_ahead(self.window.1);
        Some(file)
    }

    /// Opens the source. `opened` is its file, if that is open.
    pub(crate) fn open(
        &self,
        position: u64,
        options: &ScanOptions,
        opened: Option<OpenedFile>,
    ) -> Result<SegmentReader> {
        let limits = &options.limits;
        // only checksums tell which batches have bytes that cannot be decoded
        let is_over_damage = options.check_crc && options.on_corrupt != OnCorrupt::Fail;
        let reader = match &self.place {
            SourceBytes::File(path) if options.leave_page_cache => {
                SegmentReader::open_with(path, limits)?.leaving_page_cache().starting_at(position)
            }
            SourceBytes::File(path) => {
                let OpenedFile { file, bytes } = opened.map_or_else(|| path.open().map(OpenedFile::from), Ok)?;
                let reader = SegmentReader::of_file(file, limits)?.starting_at(position);
                if position == self.window.0 { reader.with_bytes(bytes) } else { reader }
            }
            SourceBytes::Memory(bytes) => SegmentReader::from_bytes(Arc::clone(bytes), limits).starting_at(position),
        };
        Ok(if is_over_damage { reader.over_damage() } else { reader })
    }

    /// Adds the path to an error. If the error is at the start of a file of another known format, adds the name of the
    /// format.
    pub(crate) fn locate(&self, error: Error) -> Error {
        let SourceBytes::File(path) = &self.place else { return error };
        let is_at_start = error.position().byte.is_some_and(|byte| byte < u64_of(HEADER_LEN_UP_TO_MAGIC));
        match is_at_start.then(|| foreign_file(path)) {
            Some(Ok(Some(what))) => {
                error.with_path(path).with_note(format!("the file is {what}, not a Kafka log segment"))
            }
            _ => path.locate(error),
        }
    }
}

/// Where a part of a source starts, and the end of the batches before it.
type PartStart = (u64, Floor);

/// Where to split a segment with an offset index into parts of about `max_bytes`.
fn indexed_points(path: &Location, max_bytes: u64, limits: &Limits) -> Result<Vec<PartStart>> {
    let points = split_points(path, 0..u64::MAX, max_bytes, limits)?;
    let segment = Segment::open_with(path, limits)?;
    points.into_iter().map(|point| Ok((point, segment.floor_before(point)?))).collect()
}

/// Where to split a file without an index into parts of about `max_bytes`. If batches are small, complete windows are
/// read instead of headers.
fn points(path: &Location, base_offset: Option<i64>, max_bytes: u64, limits: &Limits) -> Result<Vec<PartStart>> {
    let mut reader = SegmentReader::open_with(path, limits)?;
    let headers = std::iter::from_fn(|| reader.next_header()).map_while(Result::ok);
    Ok(points_of(headers, base_offset, max_bytes))
}

/// Where to split a buffer into parts of about `max_bytes`.
fn memory_points(bytes: &[u8], max_bytes: u64, limits: &Limits) -> Vec<PartStart> {
    let batches = batches(bytes).with_limits(limits).map_while(Result::ok);
    points_of(batches.map(|batch| *batch.header()), None, max_bytes)
}

fn points_of(headers: impl Iterator<Item = BatchHeader>, base_offset: Option<i64>, max_bytes: u64) -> Vec<PartStart> {
    let mut floor = Floor::at(base_offset);
    let mut points = vec![(0, floor)];
    let mut start = 0;
    for header in headers {
        if header.position().saturating_sub(start) >= max_bytes.max(1) {
            start = header.position();
            points.push((start, floor));
        }
        floor.pass(&header);
    }
    points
}
