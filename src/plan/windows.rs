//! [`Cutter`]: the windows of segments that the tasks of a read have.

use crate::error::{ErrorKind, Result};
use crate::log::split_points;
use crate::plan::columns::PlanView;
use crate::plan::cuts::Counter;
use crate::plan::interval::Interval;
use crate::plan::options::ReadOptions;
use crate::plan::paths::text_of;
use crate::plan::pieces::Piece;
use crate::plan::places::SegmentPlaces;
use crate::plan::ranges::LogRange;
use crate::store::SegmentFile;

/// The segments whose names show that they overlap a range, each with its number in the log. So does the segment before
/// it, if the bytes after its last batch belong to the range.
pub(super) fn segments_within<'l>(range: &LogRange<'l>, options: &ReadOptions) -> Vec<(usize, &'l SegmentFile)> {
    let log = range.log;
    let begins_after_tail = tail_is_later(range, options);
    let is_within = |(number, segment): &(usize, &SegmentFile)| {
        let is_before = range
            .start
            .zip(log.next_base(*number))
            .is_some_and(|(start, next)| next < start || next == start && !begins_after_tail);
        let is_after = range.end.zip(segment.base_offset).is_some_and(|(end, base)| base >= end);
        !is_before && !is_after
    };
    log.segments.iter().enumerate().filter(is_within).collect()
}

/// Whether bytes after the last batch of a segment belong to the micro-batch that begins with the next segment, if no
/// offsets are lost by them. The one before it may have ended while a broker still wrote to the segment.
fn tail_is_later(range: &LogRange<'_>, options: &ReadOptions) -> bool {
    range.continues && !options.fails()
}

pub(super) fn piece_of(range: &LogRange<'_>, number: usize, segment: &SegmentFile) -> Result<Piece> {
    let log = range.log;
    Ok(Piece {
        path: text_of(segment.path.path())?,
        end: segment.size,
        topic: log.partition.topic.clone(),
        partition: log.partition.partition,
        is_labelled: log.is_labelled,
        start_offset: range.start,
        end_offset: range.end,
        next_base: log.next_base(number),
        ..Piece::default()
    })
}

/// Splits segments into windows of at most `max_len` bytes and at most `maxRecordsPerPartition` offsets.
pub(super) struct Cutter<'o> {
    pub(super) max_len: u64,
    pub(super) options: &'o ReadOptions,
    pub(super) splits: bool,
}

impl Cutter<'_> {
    /// Limits a segment to the offsets that are read, then splits it. Each batch and corruption is in one window.
    ///
    /// # Errors
    /// With `onCorrupt=fail`, if another read has the rest of the segment and corruption hides the boundary.
    pub(super) fn cut(
        &self,
        range: &LogRange<'_>,
        number: usize,
        segment: &SegmentFile,
        pieces: &mut Vec<Piece>,
    ) -> Result<()> {
        let mut piece = piece_of(range, number, segment)?;
        if piece.is_idle() {
            return Ok(());
        }
        let Some(base) = segment.base_offset else {
            self.by_size(piece, segment, pieces);
            return Ok(());
        };
        let log = range.log;
        let first = base.max(piece.start_offset.unwrap_or(0));
        let next_base = log.next_base(number);
        if next_base.is_some() && next_base == range.start {
            return match self.tail(piece, range, number, segment) {
                Err(error) if error.is_not_found() => Ok(()), // its records were read before it was deleted
                tail => tail.map(|tail| pieces.extend(tail)),
            };
        }
        let ends_segment = tail_is_later(range, self.options) && next_base.is_some() && next_base == range.end;
        let is_inside = |offset: i64| base < offset && next_base.is_none_or(|next| offset < next);
        let is_narrowed = ends_segment || range.start.is_some_and(is_inside) || range.end.is_some_and(is_inside);
        let most = self.options.max_records_per_partition;
        if is_narrowed || most.is_some() {
            let places = match SegmentPlaces::open(log, number, segment, self.options) {
                Ok(places) => places,
                Err(error) if range.continues || matches!(error.kind(), ErrorKind::Io(_)) => return Err(error),
                Err(_) => {
                    self.by_size(piece, segment, pieces);
                    return Ok(());
                }
            };
            let leaves_tail = ends_segment && places.end_offset().is_ok_and(|end| Some(end) == next_base);
            let has_inside = |offset: i64| is_inside(offset) || leaves_tail && next_base == Some(offset);
            match Self::narrow(&piece, range, &has_inside, &places) {
                Ok(narrowed) => piece = narrowed,
                Err(error) if range.continues || matches!(error.kind(), ErrorKind::Io(_)) => return Err(error),
                Err(_) => {} // the task raises the error, unless the offsets that it reads are sound
            }
            if let Some(most) = most.filter(|_| piece.size() > 0) {
                self.in_view(&mut piece);
                for part in (Counter { places: &places, most, splits: self.splits }).pieces(&piece, first)? {
                    self.by_size(part, segment, pieces);
                }
                return Ok(());
            }
        }
        self.in_view(&mut piece);
        self.by_size(piece, segment, pieces);
        Ok(())
    }

    /// The bytes after the last sound batch of a segment, if they are not zeros. Only their corruption is reported: the
    /// records of a batch in them have wrong offsets.
    fn tail(&self, piece: Piece, range: &LogRange<'_>, number: usize, segment: &SegmentFile) -> Result<Option<Piece>> {
        let places = SegmentPlaces::open(range.log, number, segment, self.options)?;
        let Some(next) = piece.next_base else { return Ok(None) };
        if places.end_offset()? != next {
            return Ok(None);
        }
        let start = places.start_of(next)?;
        if start >= piece.end || places.ends_at(start)? {
            return Ok(None);
        }
        let none = Interval::new(Some(i64::MAX), None);
        Ok(Some(Piece { start, start_offset: None, end_offset: None, part: none, ..piece }))
    }

    /// In the view `batches`, the window alone decides which rows there are.
    fn in_view(&self, piece: &mut Piece) {
        if self.options.view == PlanView::Batches {
            piece.end = piece.own_end.take().unwrap_or(piece.end);
            (piece.start_offset, piece.end_offset) = (None, None);
        }
    }

    /// The window from the batch with the first offset to the batch with the last.
    ///
    /// If the range continues in another read, the batch at its end belongs to that one.
    fn narrow(
        piece: &Piece,
        range: &LogRange<'_>,
        has_inside: &dyn Fn(i64) -> bool,
        places: &SegmentPlaces<'_>,
    ) -> Result<Piece> {
        let mut piece = piece.clone();
        if let Some(first) = range.start.filter(|first| has_inside(*first)) {
            piece.start = places.start_of(first)?;
        }
        if let Some(after) = range.end.filter(|after| has_inside(*after)) {
            piece.own_end = if range.continues { Some(places.start_of(after)?) } else { None };
            piece.end = places.end_of(after)?;
        }
        Ok(piece)
    }

    fn by_size(&self, piece: Piece, segment: &SegmentFile, pieces: &mut Vec<Piece>) {
        if piece.size() == 0 {
            return;
        }
        if piece.size() <= self.max_len || piece.part != Interval::EVERYTHING {
            pieces.push(piece);
            return;
        }
        let window = piece.start..piece.end;
        match split_points(segment.path.clone(), window, self.max_len, &self.options.limits) {
            Ok(points) if points.len() > 1 => {
                let ends: Vec<u64> = points.iter().skip(1).copied().chain([piece.end]).collect();
                for (number, (start, end)) in points.into_iter().zip(ends).enumerate() {
                    let offset_count = if number == 0 { piece.offset_count } else { 0 };
                    pieces.push(Piece { start, end, offset_count, ..piece.clone() });
                }
            }
            _ => pieces.push(piece), // the task that reads it raises the error
        }
    }
}
