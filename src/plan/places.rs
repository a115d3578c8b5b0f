//! Finds the positions of offsets in a segment, even if it is corrupt.
//!
//! The indexes of the segment are used first, because they make a search cheap. Three things can make the result wrong:
//!
//! - The search ends at the first corrupt header, and a corrupt length that extends past the end of the file looks like
//!   an incomplete batch at the end.
//! - A corrupt length leads past good batches, or into one, whose bytes may look like a header.
//! - The base offset of a batch is outside its checksum. A flipped bit moves the batch far forward or back, and a search
//!   by offset stops there.
//!
//! So a result is only accepted if the sizes of the batch and of the one before it are proven, and if the batch and the
//! next one are in order; and "there is no such offset" only if nothing can follow. Otherwise the batches are listed in
//! one pass that skips corruption as the tasks do, and batches out of order are ignored. With `onCorrupt=fail`, sizes
//! need no proof: the task that reads the batch verifies its checksum.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{Array, RecordBatch};

use crate::arrow::{BatchColumn, BatchScan, OnCorrupt, ScanOptions, ScanSource};
use crate::error::{Error, ErrorKind, Result};
use crate::format::header::BatchHeader;
use crate::log::resync::is_crc_right;
use crate::log::tail::SegmentTail;
use crate::log::{FoundBatch, OffsetPlace, Segment};
use crate::num::u64_of;
use crate::plan::logs::Log;
use crate::plan::options::ReadOptions;
use crate::store::SegmentFile;
use crate::store::names::MAX_SEGMENT_OFFSETS;

/// A batch whose header is valid, except perhaps for its offset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ListedBatch {
    pub(crate) position: u64,
    size: u64,
    pub(crate) base_offset: Option<i64>,
    pub(crate) last_offset: i64,
    pub(crate) crc_ok: bool,
}

impl ListedBatch {
    /// The position after the batch.
    pub(crate) fn end(&self) -> u64 {
        self.position.saturating_add(self.size)
    }

    /// The base offset; for a compressed message set of v0 or v1, whose header has none, the last offset.
    fn first_offset(&self) -> i64 {
        self.base_offset.unwrap_or(self.last_offset)
    }
}

/// The end of the headers: the offset and the position after the last batch, and whether nothing can follow.
#[derive(Clone, Copy)]
struct HeadersEnd {
    end_offset: i64,
    position: u64,
    is_whole: bool,
}

/// Finds offsets in a segment.
pub(crate) struct SegmentPlaces<'l> {
    log: &'l Log,
    file: &'l SegmentFile,
    size: u64,
    next_base: Option<i64>,
    options: &'l ReadOptions,
    segment: Segment,
    end: OnceCell<Option<HeadersEnd>>,
    batches: OnceCell<Vec<ListedBatch>>,
    sound: OnceCell<Vec<ListedBatch>>,
    known: RefCell<HashMap<i64, bool>>,
}

impl<'l> SegmentPlaces<'l> {
    /// `number` is that of the segment in its log.
    pub(crate) fn open(log: &'l Log, number: usize, file: &'l SegmentFile, options: &'l ReadOptions) -> Result<Self> {
        Ok(Self {
            log,
            file,
            size: file.size,
            next_base: log.next_base(number),
            options,
            segment: log.open(file)?,
            end: OnceCell::new(),
            batches: OnceCell::new(),
            sound: OnceCell::new(),
            known: RefCell::default(),
        })
    }

    /// The position of the first batch whose last offset is `offset` or larger.
    ///
    /// The result depends only on the offset, so a read that ends at an offset and one that starts there are adjacent.
    ///
    /// # Errors
    /// Corruption that hides the offset, with `onCorrupt=fail`.
    pub(crate) fn start_of(&self, offset: i64) -> Result<u64> {
        if !self.knows(offset)? {
            if self.impossible()? > 0 && offset >= self.end_offset()? {
                return Ok(self.size);
            }
            let number = self.number_of(offset)?;
            let before = number.checked_sub(1).and_then(|before| self.sound().ok()?.get(before));
            return Ok(before.map_or(0, ListedBatch::end));
        }
        if let Some(place) = self.segment.find_offset(offset)? {
            return Ok(place.position.min(self.size));
        }
        Ok(match self.headers_end()? {
            Some(end) if offset <= end.end_offset => end.position.min(self.size),
            _ => self.size,
        })
    }

    /// The end of the last batch that begins before an offset, or any position up to the next batch.
    ///
    /// # Errors
    /// Those of [`start_of`](Self::start_of).
    pub(crate) fn end_of(&self, offset: i64) -> Result<u64> {
        if !self.knows(offset)? {
            let number = self.number_of(offset)?;
            return Ok(self.sound()?.get(number).map_or(self.size, |batch| {
                if batch.base_offset.is_none_or(|base| base < offset) { batch.end() } else { batch.position }
            }));
        }
        Ok(self.segment.find_offset(offset)?.map_or(self.size, |place| {
            let own = if place.base_offset < offset { end_of_place(&place) } else { place.position };
            own.min(self.size)
        }))
    }

    /// The offset after the last batch.
    ///
    /// # Errors
    /// Corruption that hides it.
    pub(crate) fn end_offset(&self) -> Result<i64> {
        let end = self.headers_end()?;
        if end.is_none() && self.options.fails() {
            return self.segment.end_offset();
        }
        if let Some(end) = end.filter(|end| end.is_whole || self.options.fails()) {
            return Ok(end.end_offset);
        }
        let certain =
            self.sound()?.last().map_or(self.segment.base_offset(), |batch| batch.last_offset.saturating_add(1));
        // an incomplete batch at the end does not change the offsets of the batches before it
        Ok(end.map_or(certain, |end| certain.max(end.end_offset)).saturating_add(self.impossible()?))
    }

    /// Number of offsets of the batches at the end of a log whose offsets no segment can contain. They count as those after
    /// the others, so that a read reports them.
    fn impossible(&self) -> Result<i64> {
        if self.next_base.is_some() {
            return Ok(0);
        }
        let high = self.high();
        let last = self.batches()?.iter().rev().take_while(|batch| batch.last_offset >= high);
        Ok(last.fold(0, |sum: i64, batch| {
            sum.saturating_add(batch.last_offset.saturating_sub(batch.first_offset()).saturating_add(1))
        }))
    }

    /// The offset after those that the segment can contain.
    fn high(&self) -> i64 {
        let most = self.segment.base_offset().saturating_add(MAX_SEGMENT_OFFSETS);
        self.next_base.map_or(most, |next| next.min(most))
    }

    /// Whether only zeros are at a position and after it, or nothing.
    pub(crate) fn ends_at(&self, position: u64) -> Result<bool> {
        let tail = SegmentTail::at(&self.segment.location().open()?, position)?;
        Ok(matches!(tail, SegmentTail::Clean | SegmentTail::Zeros))
    }

    /// Whether headers lead to the end of the segment.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn is_whole(&self) -> Result<bool> {
        Ok(self.headers_end()?.is_some_and(|end| end.is_whole))
    }

    /// The first batch whose last offset is `offset` or larger, by the indexes.
    pub(crate) fn find(&self, offset: i64) -> Result<Option<FoundBatch>> {
        self.segment.find_batch(offset)
    }

    /// The offset of a record in the batch at `position`, corrected if the batch's stored offset is corrupt: the batches
    /// before such a batch show which offset it had, the one after theirs.
    pub(crate) fn sound_offset(&self, position: u64, offset: i64) -> Result<i64> {
        if let Ok(Some(found)) = self.find(offset)
            && found.place.position == position
            && self.is_right(&found).unwrap_or(false)
        {
            return Ok(offset);
        }
        Ok(match self.sound()?.iter().rfind(|batch| batch.position <= position) {
            None => self.segment.base_offset(),
            Some(batch) if batch.position == position => offset,
            Some(batch) => batch.last_offset.saturating_add(1),
        })
    }

    /// Whether the offsets of a batch are before those of the next batch, or of the next segment after the last.
    fn is_in_order(&self, place: &OffsetPlace) -> Result<bool> {
        // with `onCorrupt=fail`, the end offset is an error
        let high = if self.options.fails() { self.next_base.unwrap_or(i64::MAX) } else { self.high() };
        if place.base_offset < self.segment.base_offset() || place.last_offset >= high {
            return Ok(false);
        }
        match self.header_at(end_of_place(place)) {
            Ok(following) => {
                let base = following.map(|header| header.base_offset().unwrap_or(header.last_offset()));
                Ok(base.is_none_or(|base| base > place.last_offset))
            }
            Err(error) if matches!(error.kind(), ErrorKind::Io(_)) => Err(error),
            Err(_) => Ok(self.options.fails()), // the task raises the error
        }
    }

    /// Whether the result of a search can be trusted.
    ///
    /// Most corruption is in the records, and then the header still leads to the next batch.
    pub(crate) fn is_right(&self, found: &FoundBatch) -> Result<bool> {
        if !self.is_in_order(&found.place)? {
            return Ok(false);
        }
        if self.options.fails() {
            // offsets are missing before the batch: the one before it may have a corrupt last offset
            let before = found.before.filter(|before| self.options.check_crc && !found.header.continues(before));
            if let Some(before) = before
                && !self.has_right_crc(&before)?
            {
                self.segment.verify_crc(&before)?;
            }
            return Ok(true);
        }
        if !found.is_rising {
            return Ok(false);
        }
        let FoundBatch { header, before, .. } = found;
        let Some(before) = before else { return self.has_right_size(header) };
        let leads_here = header.continues(before) || self.has_right_crc(before)?;
        Ok(leads_here && self.has_right_size(header)?)
    }

    /// Whether a batch ends where its header says: its checksum is right, or only its records are corrupt and an intact
    /// batch with the next offset follows.
    fn has_right_size(&self, header: &BatchHeader) -> Result<bool> {
        if self.has_right_crc(header)? {
            return Ok(true);
        }
        let offsets = header.next_offset().saturating_sub(header.stored_base_offset);
        if header.magic() < 2 || header.record_count().map(i64::from) != Some(offsets) {
            return Ok(false);
        }
        match self.header_at(header.end()) {
            Ok(Some(next)) => Ok(next.continues(header) && self.has_right_crc(&next)?),
            Err(error) if matches!(error.kind(), ErrorKind::Io(_)) => Err(error),
            Ok(None) | Err(_) => Ok(false),
        }
    }

    /// Whether the checksum of the batch at a position is right.
    pub(crate) fn is_intact_at(&self, position: u64) -> Result<bool> {
        match self.header_at(position)? {
            Some(header) => self.has_right_crc(&header),
            None => Ok(false),
        }
    }

    fn header_at(&self, position: u64) -> Result<Option<BatchHeader>> {
        self.segment.headers()?.starting_at(position).next_header().transpose()
    }

    fn has_right_crc(&self, header: &BatchHeader) -> Result<bool> {
        is_crc_right(&self.segment.location().open()?, header)
    }

    /// The batches with valid headers, in the order of the file; some may have a corrupt offset.
    pub(crate) fn batches(&self) -> Result<&[ListedBatch]> {
        if let Some(batches) = self.batches.get() {
            return Ok(batches);
        }
        let columns = [
            BatchColumn::Position,
            BatchColumn::Size,
            BatchColumn::BaseOffset,
            BatchColumn::LastOffset,
            BatchColumn::CrcOk,
            BatchColumn::RecordCount,
        ];
        let options = ScanOptions {
            on_corrupt: OnCorrupt::Skip,
            limits: self.options.limits.clone(),
            leave_page_cache: self.options.leave_page_cache,
            ..ScanOptions::default()
        };
        let source = ScanSource::file(self.file).within(0, self.size);
        let mut listed = Vec::new();
        for rows in BatchScan::new(vec![source], columns.to_vec(), options) {
            listed.extend(batches_of(&rows?));
        }
        let starts: Vec<Option<u64>> =
            listed.iter().skip(1).map(|(batch, _)| Some(batch.position)).chain([None]).collect();
        if let Some((last, _)) = listed.last().filter(|(last, _)| !last.crc_ok && self.next_base.is_none()) {
            let (file, place) = (self.segment.location().open()?, last.position..last.end());
            if SegmentTail::is_being_written(&file, place, last.first_offset(), &self.options.limits)? {
                listed.pop();
            }
        }
        let kept = listed.into_iter().zip(starts).filter(|((batch, count), next_start)| {
            // if only the records are corrupt, the header has their number and leads to the next batch, if there is one
            let leads_on = next_start.is_none_or(|start| start == batch.end());
            let offsets = batch.last_offset.saturating_sub(batch.base_offset.unwrap_or(0)).saturating_add(1);
            batch.crc_ok || (leads_on && *count == Some(offsets))
        });
        let kept = kept.map(|((batch, _), _)| batch).collect();
        Ok(self.batches.get_or_init(|| kept))
    }

    /// The largest subset of [`batches`](Self::batches) with increasing offsets, within the range of the segment.
    fn sound(&self) -> Result<&[ListedBatch]> {
        if let Some(batches) = self.sound.get() {
            return Ok(batches);
        }
        let (low, high) = (self.segment.base_offset(), self.high());
        let is_inside = |batch: &&ListedBatch| {
            let (first, last) = (batch.first_offset(), batch.last_offset);
            low <= first && first <= last && last < high
        };
        let inside: Vec<ListedBatch> = self.batches()?.iter().filter(is_inside).copied().collect();
        let rises = inside.iter().zip(inside.iter().skip(1)).all(|(one, next)| one.last_offset < next.first_offset());
        let sound = if rises { inside } else { longest_rising(&inside) };
        Ok(self.sound.get_or_init(|| sound))
    }

    /// The number of the first sound batch whose last offset is `offset` or larger.
    fn number_of(&self, offset: i64) -> Result<usize> {
        Ok(self.sound()?.partition_point(|batch| batch.last_offset < offset))
    }

    /// Whether the index's result for an offset is reliable.
    ///
    /// # Errors
    /// Corruption, with `onCorrupt=fail`; I/O errors.
    fn knows(&self, offset: i64) -> Result<bool> {
        if let Some(known) = self.known.borrow().get(&offset) {
            return Ok(*known);
        }
        let known = match self.can_answer(offset) {
            Err(error) if self.options.fails() || matches!(error.kind(), ErrorKind::Io(_)) => return Err(error),
            Err(_) => false,
            Ok(known) => known,
        };
        self.known.borrow_mut().insert(offset, known);
        Ok(known)
    }

    fn can_answer(&self, offset: i64) -> Result<bool> {
        if let Some(found) = self.find(offset)? {
            return self.is_right(&found);
        }
        if offset >= self.segment.end_offset()?
            && let Some(end) = self.headers_end()?
        {
            let is_end = if self.options.fails() { self.next_base.is_none() } else { offset == end.end_offset };
            if end.is_whole || is_end {
                return Ok(true);
            }
        }
        if self.options.fails() {
            let error = match self.headers_end()? {
                Some(end) if self.ends_at(end.position)? => {
                    Error::new(ErrorKind::ZeroTail).at(end.position).in_batch(end.end_offset)
                }
                Some(end) => Error::new(ErrorKind::CutBatch).at(end.position).in_batch(end.end_offset),
                None => Error::new(ErrorKind::CutBatch),
            };
            let error = error.in_field("size");
            return Err(error.with_path(self.log.directory.join(self.file.path.name()).path()));
        }
        Ok(false)
    }

    /// The end of the headers; `None` if it is unreliable.
    ///
    /// # Errors
    /// I/O errors.
    fn headers_end(&self) -> Result<Option<HeadersEnd>> {
        if let Some(end) = self.end.get() {
            return Ok(*end);
        }
        let end = match self.find_headers_end() {
            Err(error) if matches!(error.kind(), ErrorKind::Io(_)) => return Err(error),
            found => found.ok().flatten(),
        };
        Ok(*self.end.get_or_init(|| end))
    }

    fn find_headers_end(&self) -> Result<Option<HeadersEnd>> {
        let end_offset = self.segment.end_offset()?;
        let last =
            if end_offset > self.segment.base_offset() { self.find(end_offset.saturating_sub(1))? } else { None };
        if let Some(last) = &last
            && !self.is_right(last)?
        {
            return Ok(None);
        }
        let position = last.as_ref().map_or(0, |last| end_of_place(&last.place));
        let reaches_next = self.next_base.is_none_or(|base| base == end_offset);
        let is_whole = position >= self.size || (reaches_next && self.ends_at(position)?);
        Ok(Some(HeadersEnd { end_offset, position, is_whole }))
    }
}

fn end_of_place(place: &OffsetPlace) -> u64 {
    place.position.saturating_add(u64_of(place.size))
}

/// The rows of an Arrow batch, each with its record count.
fn batches_of(rows: &RecordBatch) -> Vec<(ListedBatch, Option<i64>)> {
    let [position, size, base_offset, last_offset, crc_ok, count] = rows.columns() else { return Vec::new() };
    let (positions, lasts) = (position.as_primitive::<Int64Type>(), last_offset.as_primitive::<Int64Type>());
    let (sizes, counts) = (size.as_primitive::<Int32Type>(), count.as_primitive::<Int32Type>());
    let (bases, oks) = (base_offset.as_primitive::<Int64Type>(), crc_ok.as_boolean());
    let row = |number: usize| {
        let batch = ListedBatch {
            position: positions.value(number).unsigned_abs(),
            size: u64::from(sizes.value(number).unsigned_abs()),
            base_offset: bases.is_valid(number).then(|| bases.value(number)),
            last_offset: lasts.value(number),
            crc_ok: oks.is_valid(number) && oks.value(number),
        };
        (batch, counts.is_valid(number).then(|| i64::from(counts.value(number))))
    };
    (0..rows.num_rows()).map(row).collect()
}

/// The longest run of batches, in their order, in which each begins after the one before it ends.
///
/// `ends` has for each length the smallest last offset of such a run, as in patience sorting.
fn longest_rising(batches: &[ListedBatch]) -> Vec<ListedBatch> {
    let mut ends: Vec<i64> = Vec::new();
    let mut tails: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::new();
    for (number, batch) in batches.iter().enumerate() {
        let length = ends.partition_point(|end| *end < batch.first_offset());
        before.push(length.checked_sub(1).and_then(|last| tails.get(last).copied()));
        match ends.get_mut(length) {
            None => {
                ends.push(batch.last_offset);
                tails.push(number);
            }
            Some(end) if batch.last_offset < *end => {
                *end = batch.last_offset;
                if let Some(tail) = tails.get_mut(length) {
                    *tail = number;
                }
            }
            Some(_) => {}
        }
    }
    let mut run = Vec::new();
    let mut at = tails.last().copied();
    while let Some(number) = at {
        run.extend(batches.get(number));
        at = before.get(number).copied().flatten();
    }
    run.reverse();
    run
}
