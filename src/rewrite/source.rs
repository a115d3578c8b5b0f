//! [`RewriteSource`]: the partition to rewrite, read batch by batch.

use std::time::SystemTime;

use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Batch;
use crate::io::{Location, Progress};
use crate::limits::Limits;
use crate::log::reader::SegmentReader;
use crate::log::tail::SegmentTail;
use crate::num::u64_of;
use crate::store::listing::{list_location, refuse_log_directory};

/// The directory of the partition to rewrite.
#[derive(Debug)]
pub(crate) struct RewriteSource {
    pub(crate) directory: Location,
    /// Segments, ordered by base offset.
    pub(crate) segments: Vec<SourceSegment>,
    pub(crate) limits: Limits,
    check_crc: bool,
}

/// A segment of the source.
#[derive(Debug)]
pub(crate) struct SourceSegment {
    pub(crate) path: Location,
    pub(crate) base_offset: i64,
    pub(crate) size: u64,
    pub(crate) modified: SystemTime,
}

impl RewriteSource {
    /// Lists the segments of a directory.
    ///
    /// # Errors
    /// If the directory can't be read; [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if it has no
    /// segments.
    pub(crate) fn open(directory: &Location, limits: &Limits, check_crc: bool) -> Result<Self> {
        refuse_log_directory(directory)?;
        let mut segments = Vec::new();
        for found in list_location(directory, &|_| true)?.segments {
            let Some(base_offset) = found.base_offset.filter(|_| found.path.directory() == *directory) else {
                break;
            };
            let modified = found.path.status()?.modified.unwrap_or(SystemTime::UNIX_EPOCH);
            segments.push(SourceSegment { path: found.path, base_offset, size: found.size, modified });
        }
        if segments.is_empty() {
            let what = "the path is not a partition directory: it contains no segments";
            return Err(Error::argument(what).with_path(directory));
        }
        Ok(Self { directory: directory.clone(), segments, limits: limits.clone(), check_crc })
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.segments.iter().fold(0, |sum, segment| sum.saturating_add(segment.size))
    }

    /// The base offset of the next segment, or the end offset of the log for the last one.
    pub(crate) fn next_base(&self, index: usize, end_offset: i64) -> i64 {
        self.segments.get(index.saturating_add(1)).map_or(end_offset, |next| next.base_offset)
    }

    /// The base offset of the segment for an offset, as in Kafka: the last base offset that is not above it.
    pub(crate) fn floor_base(&self, offset: i64) -> Option<i64> {
        self.segments.iter().rev().map(|segment| segment.base_offset).find(|&base| base <= offset)
    }

    /// Visits the batches of a segment until the visitor returns `false`, and verifies their checksums if enabled.
    /// Returns the number of bytes not visited, such as zeros, or a truncated batch at the end of the log.
    ///
    /// # Errors
    /// If reading fails or the visitor returns an error; those of [`SegmentTail::check`].
    pub(crate) fn each_batch(
        &self,
        segment: &SourceSegment,
        progress: &mut Progress<'_>,
        visit: &mut dyn FnMut(&Batch<'_>) -> Result<bool>,
    ) -> Result<u64> {
        let mut reader = SegmentReader::open_with(&segment.path, &self.limits)?;
        let (mut visited, mut next_offset) = (0, None);
        loop {
            let Some(batch) = reader.next_batch() else {
                self.check_end(segment, &reader, next_offset).map_err(|error| error.with_path(&segment.path))?;
                break;
            };
            let batch = batch?;
            // batches appended after the segments were listed are ignored, so that all passes see the same ones
            let end = batch.position().saturating_add(u64_of(batch.size()));
            if end > segment.size {
                break;
            }
            let is_misplaced = is_misplaced(&batch, segment.base_offset, next_offset);
            (visited, next_offset) = (end, Some(batch.next_offset()));
            progress.advance(u64_of(batch.size()))?;
            let checked = if self.check_crc { batch.verify_crc() } else { Ok(()) };
            let goes_on = checked.and_then(|()| visit(&batch)).map_err(|error| {
                // the target refuses what the source contains: the caller can't choose other offsets
                let is_of_source = is_misplaced || error.position().record.is_some();
                let error = if is_of_source { error.of_file() } else { error };
                let is_unplaced = matches!(error.kind(), ErrorKind::InvalidFile(_)) && error.position().byte.is_none();
                let error = if is_unplaced { error.at(batch.position()) } else { error };
                error.with_path(&segment.path)
            });
            if !goes_on? {
                break;
            }
        }
        Ok(segment.size.saturating_sub(visited))
    }

    /// Rejects a segment that ends inside a batch, or in zeros instead of batches, although the log continues in a
    /// later segment or the same file.
    fn check_end(&self, segment: &SourceSegment, reader: &SegmentReader, next_offset: Option<i64>) -> Result<()> {
        let position = reader.position();
        let next_base = self.segments.iter().map(|other| other.base_offset).find(|&base| base > segment.base_offset);
        let tail = SegmentTail::search(reader.source(), position, next_offset, &self.limits)?;
        tail.check(position, Some(next_offset.unwrap_or(segment.base_offset)), next_base)
    }
}

/// Whether the offsets of a batch do not follow those before it, or are too far from those of its segment.
fn is_misplaced(batch: &Batch<'_>, segment_base: i64, next_offset: Option<i64>) -> bool {
    let (last, floor) = (batch.last_offset(), next_offset.unwrap_or(segment_base).max(segment_base));
    last < floor || last.saturating_sub(segment_base) > i64::from(i32::MAX)
}
