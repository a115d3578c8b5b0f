//! Where to begin reading, and where to cut a segment into parts that are read apart.

use std::ops::Range;
use std::path::Path;

use crate::error::Result;
use crate::limits::Limits;
use crate::log::headers::HeaderReader;
use crate::log::index::OffsetIndex;
use crate::log::segment::Segment;
use crate::store::names::LogFileState;

#[cfg_attr(not(feature = "arrow"), expect(dead_code, reason = "only scans begin in the middle of a segment"))]
impl Segment {
    /// Where a walk has to begin that is to see every record from an offset and from a timestamp on: at a batch that the indexes
    /// point to, else at 0. A segment that does not begin with v2 is not asked for the timestamp.
    ///
    /// # Errors
    /// Those of reading.
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

    /// A place, not after a byte, at which a batch begins: the last one that the offset index knows, else 0.
    ///
    /// # Errors
    /// Those of reading.
    pub(crate) fn floor_position(&self, position: u64) -> Result<u64> {
        let Some(index) = self.offset_index()? else { return Ok(0) };
        let mut reader = self.headers()?;
        self.floor_in(&index, &mut reader, position)
    }

    fn floor_in(&self, index: &OffsetIndex, reader: &mut HeaderReader, position: u64) -> Result<u64> {
        let (mut low, mut high) = (0, index.entry_count());
        let mut floor = None;
        while low < high {
            let middle = low.midpoint(high);
            let Some(entry) = index.entry(middle)? else { break };
            match u64::try_from(entry.position) {
                Ok(at) if at <= position => {
                    floor = Some((at, entry.offset));
                    low = middle.saturating_add(1);
                }
                _ => high = middle,
            }
        }
        match floor {
            Some((at, offset)) if self.begins_by(reader, at, offset)? => Ok(at),
            _ => Ok(0),
        }
    }
}

/// Places at which to cut a file of batches, or a window of it, into parts of about equal size and of at most `max_bytes`: where
/// each part begins, the first where the window does. Every other part begins with a batch, and holds more than `max_bytes`
/// only where a single batch does. No payload is read but those of batches that the offset index points to. What lies behind
/// damage that the index does not lead over stays in one part.
///
/// # Errors
/// Those of reading.
pub fn split_points(path: impl AsRef<Path>, window: Range<u64>, max_bytes: u64, limits: &Limits) -> Result<Vec<u64>> {
    let path = path.as_ref();
    let segment = Segment::open_with(path, limits).ok().filter(|segment| segment.state() == LogFileState::Live);
    let index = segment.as_ref().map_or(Ok(None), Segment::offset_index)?;
    let mut reader = HeaderReader::open(path, limits)?;
    let end = window.end.min(reader.file_len());
    let mut points = vec![window.start];
    let mut start = window.start;
    // a window may begin anywhere: a batch is known to begin where the file does, and at the points that are found
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

/// The last batch that begins after `start` and not after `target`; without one, the first after `target`.
fn next_point(reader: &mut HeaderReader, start: u64, target: u64) -> Result<Option<u64>> {
    let mut point = None;
    while let Some(header) = reader.next_header() {
        let position = match header {
            Ok(header) => header.position(),
            Err(error) if matches!(error.kind(), crate::ErrorKind::Io(_)) => return Err(error),
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
