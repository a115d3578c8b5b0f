//! The state of the producers at an offset: that of a snapshot, and the batches after it.

use super::{ProducerSnapshot, ProducerStates};
use crate::compression::Scratch;
use crate::error::Result;
use crate::io::Location;
use crate::limits::Limits;
use crate::log::headers::HeaderReader;

/// The state of the producers at an offset.
pub(crate) struct StatesAt {
    pub(crate) states: ProducerStates,
    /// The offset of the snapshot that they begin with, if there is one.
    pub(crate) snapshot_offset: Option<i64>,
}

/// Determines the state of the producers at an offset, as a broker does that finds no snapshot there: from the latest
/// snapshot before it that can be read, and the batches after that. Snapshots and segments are sorted by offset, and
/// `replay` updates the states with the batches of a segment that end at or after an offset.
///
/// # Errors
/// Those of `replay`.
pub(crate) fn states_at(
    offset: i64,
    snapshots: &[(i64, &Location)],
    segments: &[(i64, &Location)],
    mut replay: impl FnMut(&mut ProducerStates, &Location, i64) -> Result<()>,
) -> Result<StatesAt> {
    let mut before = snapshots.iter().rev().filter(|(at, _)| *at <= offset);
    let latest = before.find_map(|(at, path)| Some((*at, ProducerSnapshot::read(*path).ok()?)));
    let snapshot_offset = latest.as_ref().map(|(at, _)| *at);
    let mut states = latest.map_or_else(ProducerStates::new, |(at, found)| ProducerStates::from_snapshot(&found, at));
    let from = snapshot_offset.unwrap_or(i64::MIN);
    for (place, (_, path)) in segments.iter().enumerate().filter(|(_, (base_offset, _))| *base_offset < offset) {
        // a segment ends at the base offset of the next one
        let end = segments.get(place.saturating_add(1)).map_or(offset, |(next_base, _)| *next_base);
        if end > from {
            replay(&mut states, path, from)?;
        }
    }
    states.set_end_offset(offset);
    Ok(StatesAt { states, snapshot_offset })
}

/// Updates the states with the batches of a segment that end at or after an offset. Checksums are not verified.
///
/// # Errors
/// Corruption, also of a control batch; I/O errors.
pub(crate) fn replay_segment(states: &mut ProducerStates, path: &Location, from: i64, limits: &Limits) -> Result<()> {
    let (mut headers, mut bytes, mut scratch) = (HeaderReader::open(path, limits)?, Vec::new(), Scratch::new());
    while let Some(header) = headers.next_header() {
        let header = header?;
        if header.last_offset() < from {
            continue;
        }
        if header.is_control() {
            let batch = headers.read_batch(&header, &mut bytes)?;
            states.update(&batch, &mut scratch, limits).map_err(|error| error.with_path(path))?;
        } else {
            states.update_by_header(&header);
        }
    }
    Ok(())
}
