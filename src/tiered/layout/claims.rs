//! Last offsets that a manifest or a record of `__remote_log_metadata` states: they are compared with the batches where a
//! segment would be omitted, or a gap be found, because of them.

use super::stored::Stored;
use crate::error::Result;
use crate::io::Location;
use crate::io::waiting::map_waiting;
use crate::tiered::Candidate;
use crate::tiered::metadata::SegmentState;

/// Reads the last offsets of segments that claim the first offset of another one, or end before the next one. Returns a
/// warning for each whose claim is wrong. Segments without records may claim to end before the next one.
///
/// # Errors
/// I/O errors.
pub(super) fn check_claims(stored: &mut [Stored], directory: &Location) -> Result<Vec<(i64, String)>> {
    let mut starts: Vec<i64> = stored.iter().filter(|segment| is_usable(&segment.candidate)).map(start).collect();
    starts.sort_unstable();
    let is_claiming = |segment: &&mut Stored| {
        let candidate = &segment.candidate;
        let next = starts.get(starts.partition_point(|start| *start <= candidate.start_offset));
        let Some(last) = candidate.last_offset else { return false };
        let is_adjacent = next.is_none_or(|next| last.checked_add(1) == Some(*next));
        (!is_adjacent || last < candidate.start_offset) && !segment.is_end_read && is_usable(candidate)
    };
    let mut claiming: Vec<&mut Stored> = stored.iter_mut().filter(is_claiming).collect();
    let ends = map_waiting(&claiming, !directory.is_local(), |segment| segment.end(directory))?;
    let mut warnings = Vec::new();
    for (segment, end) in claiming.iter_mut().zip(ends) {
        let claimed = segment.candidate.last_offset;
        let Some((last, claimed)) = end.map(|end| end.saturating_sub(1)).zip(claimed) else { continue };
        segment.is_end_read = true;
        let is_empty = last < segment.candidate.start_offset;
        if last != claimed && !(is_empty && claimed < segment.candidate.start_offset) {
            segment.candidate.last_offset = Some(last);
            let log = segment.log.display();
            let message = format!("{log} ends at offset {last}, and not at {claimed}, as its description says");
            warnings.push((segment.candidate.start_offset, message));
        }
    }
    Ok(warnings)
}

fn start(segment: &Stored) -> i64 {
    segment.candidate.start_offset
}

/// Whether nothing but other segments can be the reason to omit this one.
fn is_usable(candidate: &Candidate) -> bool {
    let is_finished = candidate.state.is_none_or(|state| state == SegmentState::CopyFinished);
    is_finished && !candidate.is_incomplete && !candidate.is_unrecorded
}
