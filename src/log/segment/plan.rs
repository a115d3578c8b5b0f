//! Start positions of reads, and split points for parallel reads of a segment.

use std::ops::Range;

use crate::error::{ErrorKind, Result};
use crate::format::header::BatchHeader;
use crate::io::Location;
use crate::limits::Limits;
use crate::log::headers::HeaderReader;
use crate::log::index::OffsetIndex;
use crate::log::resync::{Floor, is_crc_right};
use crate::log::segment::Segment;
use crate::log::segment::lookup::usable;
use crate::store::names::LogFileState;

/// Largest number of headers to read in order to know the end of the batches before a position.
const MAX_HEADERS_BEFORE: usize = 1 << 12;

impl Segment {
    /// Returns the position at which to start reading in order to see every record from an offset and from a timestamp
    /// on: a batch found through the indexes, or 0. The timestamp is ignored if the segment does not start with a v2
    /// batch.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn start_position(&self, offset: Option<i64>, timestamp: Option<i64>) -> Result<u64> {
        let offset = offset.unwrap_or(self.base_offset()).max(self.base_offset());
        let timestamp = timestamp.filter(|_| self.begins_with_v2().unwrap_or(false));
        let mut reader = self.headers()?;
        let start = match timestamp {
            Some(timestamp) => self.start_at_timestamp(&mut reader, timestamp, offset)?,
            None if offset > self.base_offset() => self.start_at(&mut reader, offset)?,
            None => return Ok(0),
        };
        Ok(start.position)
    }

    /// Returns the last batch position in the offset index that is at or before `position`, or 0.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn floor_position(&self, position: u64) -> Result<u64> {
        let Ok(index) = usable(self.offset_index())? else { return Ok(0) };
        let mut reader = self.headers()?;
        self.floor_in(&index, &mut reader, position)
    }

    fn floor_in(&self, index: &OffsetIndex, reader: &mut HeaderReader, position: u64) -> Result<u64> {
        match entry_by(index, position)? {
            Some((_, at, offset)) if self.begins_by(reader, at, offset)? => Ok(at),
            _ => Ok(0),
        }
    }

    /// The end of the batches before the one at `position`, according to the headers of the last ones. Unknown if neither
    /// the offset index nor the start of the segment leads to `position` within few batches, or if the last offset may be
    /// corrupt: that of a batch with a wrong checksum which the batch at `position` does not continue.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn floor_before(&self, position: u64) -> Result<Floor> {
        let mut reader = self.headers()?;
        let mut floor = Floor::at(Some(self.base_offset()));
        if let Ok(index) = usable(self.offset_index())?
            && let Some((slot, ..)) = position.checked_sub(1).map_or(Ok(None), |before| entry_by(&index, before))?
            // the last batch but one shows whether offsets are missing before the last one
            && let Some(entry) = slot.checked_sub(1).map_or(Ok(None), |slot| index.entry(slot))?
        {
            reader.seek(u64::try_from(entry.position).unwrap_or(0));
            floor = Floor::default();
        }
        let mut highest: Option<BatchHeader> = None;
        for _ in 0..MAX_HEADERS_BEFORE {
            if reader.position() >= position {
                break;
            }
            match reader.next_header() {
                Some(Ok(header)) => {
                    floor.pass(&header);
                    highest = highest.filter(|highest| highest.next_offset() > header.next_offset()).or(Some(header));
                }
                Some(Err(error)) if error.is_of_reading() => return Err(error),
                Some(Err(_)) | None => break,
            }
        }
        if reader.position() != position {
            return Ok(Floor::default());
        }
        let is_right = match (highest, reader.next_header()) {
            (None, _) => true,
            (Some(highest), Some(Ok(next))) if next.continues(&highest) => true,
            (Some(highest), _) => is_crc_right(&self.location().open()?, &highest)?,
        };
        Ok(if is_right { floor } else { Floor::default() })
    }
}

/// The last entry of an offset index whose position is at or before `position`: its slot, position and offset.
fn entry_by(index: &OffsetIndex, position: u64) -> Result<Option<(u64, u64, i64)>> {
    let (mut low, mut high) = (0, index.entry_count());
    let mut found = None;
    while low < high {
        let middle = low.midpoint(high);
        let Some(entry) = index.entry(middle)? else { break };
        match u64::try_from(entry.position) {
            Ok(at) if at <= position => {
                found = Some((middle, at, entry.offset));
                low = middle.saturating_add(1);
            }
            _ => high = middle,
        }
    }
    Ok(found)
}

/// Splits a file of batches, or a window of it, into parts of about equal size and of at most `max_bytes` bytes.
/// Returns the start positions of the parts. The first is the start of the window; every other part starts at a batch.
///
/// A part is larger than `max_bytes` only if it is a single batch, or after corruption that the index does not skip,
/// because everything after it stays in one part. Only reads the payloads of batches that the offset index points to.
///
/// # Errors
/// I/O errors.
pub fn split_points(
    path: impl Into<Location>,
    window: Range<u64>,
    max_bytes: u64,
    limits: &Limits,
) -> Result<Vec<u64>> {
    let path: &Location = &path.into();
    let segment = Segment::open_with(path, limits).ok().filter(|segment| segment.state() == LogFileState::Live);
    let index = segment.as_ref().map_or(Ok(None), Segment::offset_index)?;
    let mut reader = HeaderReader::open(path, limits)?;
    let end = window.end.min(reader.file_len());
    let mut points = vec![window.start];
    let mut start = window.start;
    // a window may start anywhere, so the only known batch positions are the start of the file and the points found so
    // far
    let mut known = 0;
    loop {
        let left = end.saturating_sub(start);
        if left <= max_bytes.max(1) {
            return Ok(points);
        }
        let target = start.saturating_add(left.div_ceil(left.div_ceil(max_bytes.max(1))));
        let floor = match (&segment, &index) {
            (Some(segment), Some(index)) => segment.floor_in(index, &mut reader, target)?,
            _ => 0,
        };
        reader.seek(floor.max(known));
        let Some(next) = next_point(&mut reader, start, target)?.filter(|&next| next < end) else { return Ok(points) };
        points.push(next);
        start = next;
        known = next;
    }
}

/// Finds the last batch that starts after `start` and at or before `target`, or else the first one after `target`.
fn next_point(reader: &mut HeaderReader, start: u64, target: u64) -> Result<Option<u64>> {
    let mut point = None;
    while let Some(header) = reader.next_header() {
        let position = match header {
            Ok(header) => header.position(),
            Err(error) if matches!(error.kind(), ErrorKind::Io(_)) => return Err(error),
            Err(_) => break,
        };
        if position > start && (position <= target || point.is_none()) {
            point = Some(position);
        }
        if position > target {
            break;
        }
    }
    Ok(point)
}
