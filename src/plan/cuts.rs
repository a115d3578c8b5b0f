//! Splits a segment into windows with a maximum number of offsets, for `maxRecordsPerPartition`.
//!
//! ```text
//! batches   [0 .. 9] [10 .. 19] [20 .. 99]                          at most 25 offsets
//! windows   0 ....... 19 │ 20 .. 44 │ 45 .. 69 │ 70 .. 94 │ 95 ..   the third batch is split, the others are not
//! ```
//!
//! A window is a range of bytes between two batch boundaries. A batch belongs to a window by its position, not by its
//! offset: a corrupt offset could otherwise put it into no window or into two. Only a batch with more offsets than a
//! window may have is split by its own offsets; each of its windows decodes it.

use crate::error::Result;
use crate::num::u64_of;
use crate::plan::interval::Interval;
use crate::plan::pieces::Piece;
use crate::plan::places::SegmentPlaces;

/// The end of one window and the start of the next: at a byte, or at an offset inside the batch there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    position: u64,
    end: u64,
    offset: Option<i64>,
    /// Approximate number of offsets of the window that ends here.
    count: i64,
}

impl Cut {
    /// The boundary between two batches.
    fn at(position: u64, count: i64) -> Self {
        Self { position, end: position, offset: None, count }
    }

    /// Boundaries inside a batch, `most` offsets apart; more if the batch is too small for so many records. No checksum
    /// covers the offset of a compressed set, and few records may have offsets far apart.
    fn inside(position: u64, end: u64, first: i64, last: i64, most: i64) -> impl Iterator<Item = Self> {
        let most_cuts = (end.saturating_sub(position) / BYTES_OF_CUT).max(FEW_CUTS);
        let most_cuts = i64::try_from(most_cuts).unwrap_or(i64::MAX);
        let distance = most.max(last.saturating_sub(first).checked_div(most_cuts).unwrap_or(0));
        let step = usize::try_from(distance).unwrap_or(usize::MAX);
        let edges = (first.saturating_add(distance)..=last).step_by(step);
        edges.map(move |edge| Self { position, end, offset: Some(edge), count: most })
    }
}

/// A batch has at most a boundary for so many of its bytes, or this number of them.
const BYTES_OF_CUT: u64 = 64;
const FEW_CUTS: u64 = 1024;

/// Splits a window of a segment into windows of at most `most` offsets.
pub(crate) struct Counter<'p, 'l> {
    pub(crate) places: &'p SegmentPlaces<'l>,
    pub(crate) most: i64,
    /// Whether batches with more offsets are split; otherwise each of them is a window of its own.
    pub(crate) splits: bool,
}

impl Counter<'_, '_> {
    /// The pieces of `piece`, in order; `first_offset` is the first offset that is read.
    pub(crate) fn pieces(&self, piece: &Piece, first_offset: i64) -> Result<Vec<Piece>> {
        let cuts = match self.by_search(piece, first_offset)? {
            Some(cuts) => cuts,
            None => self.by_list(piece)?,
        };
        let mut before = Cut::at(piece.start, 0);
        let mut pieces = Vec::new();
        for cut in cuts.into_iter().chain([Cut::at(piece.end, self.most)]) {
            // the first piece has the count of the window, so that all of them go into one task
            let mut count = cut.count;
            for found in between(piece, before, cut) {
                pieces.push(Piece { offset_count: std::mem::take(&mut count), ..found });
            }
            before = cut;
        }
        Ok(pieces)
    }

    /// The boundaries of windows, found by a few searches; `None` if a batch is out of order or corrupt.
    fn by_search(&self, piece: &Piece, first_offset: i64) -> Result<Option<Vec<Cut>>> {
        let (mut start, mut at) = (first_offset, piece.start);
        let mut cuts = Vec::new();
        loop {
            let edge = start.saturating_add(self.most);
            let place = match self.places.find(edge) {
                Ok(Some(found)) if self.places.is_right(&found).unwrap_or(false) => found.place,
                Ok(None) => return Ok(self.places.is_whole()?.then_some(cuts)),
                _ => return Ok(None),
            };
            if place.position >= piece.end {
                return Ok(Some(cuts));
            }
            if place.position < at {
                return Ok(None);
            }
            let end = place.position.saturating_add(u64_of(place.size));
            if place.base_offset >= edge || place.last_offset.saturating_sub(place.base_offset) < self.most {
                cuts.push(Cut::at(place.position, place.base_offset.saturating_sub(start).min(self.most)));
                (start, at) = (place.base_offset, place.position);
            } else if !self.splits {
                cuts.push(Cut::at(end, self.most));
                (start, at) = (place.last_offset.saturating_add(1), end);
            } else if self.places.is_intact_at(place.position)? {
                cuts.extend(Cut::inside(place.position, end, start, place.last_offset, self.most));
                (start, at) = (cuts.last().and_then(|cut| cut.offset).unwrap_or(edge), place.position);
            } else {
                return Ok(None);
            }
        }
    }

    /// The boundaries of windows by the number of offsets of each batch, even if offsets are out of order.
    fn by_list(&self, piece: &Piece) -> Result<Vec<Cut>> {
        let mut cuts = Vec::new();
        let (mut count, mut previous) = (0_i64, 0_i64);
        for batch in self.places.batches()? {
            let size = if let Some(base) = batch.base_offset {
                batch.last_offset.saturating_sub(base).saturating_add(1).max(1)
            } else {
                let size = batch.last_offset.saturating_sub(previous).max(1);
                if previous != 0 && size <= self.most { size } else { 1 }
            };
            previous = batch.last_offset;
            if batch.position < piece.start || batch.position >= piece.end {
                continue;
            }
            if size > self.most && self.splits && batch.crc_ok {
                if count > 0 {
                    cuts.push(Cut::at(batch.position, count));
                }
                let first = batch.last_offset.saturating_add(1).saturating_sub(size);
                cuts.extend(Cut::inside(batch.position, batch.end(), first, batch.last_offset, self.most));
                let edge = cuts.last().and_then(|cut| cut.offset).unwrap_or(first);
                count = batch.last_offset.saturating_add(1).saturating_sub(edge);
                continue;
            }
            if count > 0 && count.saturating_add(size) > self.most {
                cuts.push(Cut::at(batch.position, count));
                count = 0;
            }
            count = count.saturating_add(size).min(self.most);
        }
        Ok(cuts)
    }
}

/// The pieces of the window between two boundaries: parts of split batches, and the batches between them.
fn between(piece: &Piece, first: Cut, after: Cut) -> Vec<Piece> {
    let window = |start, end, part| Piece { start, end, part, ..piece.clone() };
    if first.offset.is_some() && first.position == after.position {
        return vec![window(first.position, first.end, Interval::new(first.offset, after.offset))];
    }
    let mut pieces = Vec::new();
    if first.offset.is_some() {
        pieces.push(window(first.position, first.end, Interval::new(first.offset, None)));
    }
    if first.end < after.position {
        pieces.push(window(first.end, after.position, Interval::EVERYTHING));
    }
    if after.offset.is_some() {
        pieces.push(window(after.position, after.end, Interval::new(None, after.offset)));
    }
    pieces
}
