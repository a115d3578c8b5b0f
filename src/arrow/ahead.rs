//! Files in stores that are read before a scan needs them: [`NextFiles`] and [`Splitter`].

use std::collections::VecDeque;

use crate::arrow::options::RecordBounds;
use crate::arrow::source::ScanSource;
use crate::format::frame::batches;
use crate::io::{OpenedFile, PositionedFile};
use crate::limits::Limits;
use crate::log::resync::Floor;
use crate::num::{u64_of, usize_from_u64};
use crate::slices::Slices;

/// How many times as long as wanted a part may become so that it has a complete batch.
const MAX_GROWTH: u64 = 4;

/// The files of the next sources of a walk, opened and requested in advance.
#[derive(Default)]
pub(crate) struct NextFiles {
    files: VecDeque<PositionedFile>,
    /// Whether the source after these cannot be requested in advance.
    is_complete: bool,
}

impl NextFiles {
    /// Requests the next sources in advance. `spare` is the number of requests that the current source leaves to them.
    pub(crate) fn request(&mut self, spare: usize, sources: &[ScanSource], bounds: &RecordBounds) {
        let mut spare = spare;
        for (number, source) in sources.iter().enumerate() {
            if spare == 0 {
                return;
            }
            if number == self.files.len() && !self.is_complete {
                match source.is_read_whole(bounds).then(|| source.open_ahead()).flatten() {
                    Some(file) => self.files.push_back(file),
                    None => self.is_complete = true,
                }
            }
            let Some(file) = self.files.get(number) else { return };
            // an empty file needs no request, but the number of open files is limited too
            spare = file.request_ahead(source.window.0, spare).min(spare.saturating_sub(1));
        }
    }

    /// The file of the next source, which is read from now on, if it is open.
    pub(crate) fn take(&mut self) -> Option<PositionedFile> {
        let file = self.files.pop_front();
        self.is_complete &= file.is_some() && !self.files.is_empty();
        file
    }
}

/// A source of a store that is read once, from front to back, and split into parts for threads. If each thread requested
/// its parts itself, it would wait for each of them.
pub(crate) struct Splitter {
    source: ScanSource,
    file: PositionedFile,
    /// The end of the source.
    end: u64,
    /// The position of the next part, bytes from there on that were read, and the end of the batches before it.
    position: u64,
    bytes: Vec<u8>,
    floor: Floor,
}

impl Splitter {
    /// Begins to split a source. `file` is its file, if that is open. `None` if it is not in a store, is empty, or cannot be
    /// opened.
    pub(crate) fn new(source: &ScanSource, file: Option<PositionedFile>) -> Option<Self> {
        let file = file.map_or_else(|| source.open_ahead(), Some)?;
        let (position, end) = (source.window.0, source.window.1.min(file.len().ok()?));
        file.expect_reads(position);
        let floor = source.before.unwrap_or_else(|| Floor::at(source.base_offset.filter(|_| position == 0)));
        (position < end).then(|| Self { source: source.clone(), file, end, position, bytes: Vec::new(), floor })
    }

    /// Number of requests that this source leaves to those after it.
    pub(crate) fn spare_requests(&self) -> usize {
        self.file.spare_requests()
    }

    /// The next part, of about `max_bytes`, with its bytes. `None` at the end. The part after which no batch can be found is
    /// the last one: whoever reads it reports the error.
    pub(crate) fn next(&mut self, max_bytes: u64, limits: &Limits) -> Option<(ScanSource, Option<OpenedFile>)> {
        if self.position >= self.end {
            return None;
        }
        let (start, before) = (self.position, Some(self.floor));
        let mut bytes = std::mem::take(&mut self.bytes);
        let is_filled = self.fill(&mut bytes, max_bytes, limits);
        let opened = if is_filled { self.source.open_ahead() } else { None };
        let end = start.saturating_add(u64_of(bytes.len()));
        let has_more = opened.is_some() && end < self.end;
        let window_end = if has_more { end } else { self.source.window.1 };
        self.position = if has_more { end } else { self.end };
        let part = ScanSource { window: (start, window_end), before, ..self.source.clone() };
        Some((part, opened.map(|file| OpenedFile { file, bytes })))
    }

    /// Reads until `bytes` has about `max_bytes`, and keeps what is after the last complete batch for the next part.
    /// Returns whether `bytes` is a part.
    fn fill(&mut self, bytes: &mut Vec<u8>, max_bytes: u64, limits: &Limits) -> bool {
        let mut wanted = max_bytes.max(1);
        while wanted <= max_bytes.saturating_mul(MAX_GROWTH) {
            let have = bytes.len();
            let len = usize_from_u64(wanted.min(self.end.saturating_sub(self.position)));
            if have < len {
                bytes.resize(len, 0);
                let count = self.file.read_at(bytes.part_mut(have..), self.position.saturating_add(u64_of(have)));
                bytes.truncate(have.saturating_add(*count.as_ref().unwrap_or(&0)));
                if bytes.len() < len {
                    return false;
                }
            }
            if self.position.saturating_add(u64_of(bytes.len())) >= self.end {
                return true;
            }
            let mut walk = batches(bytes).with_limits(limits);
            for batch in walk.by_ref() {
                let Ok(batch) = batch else { return false };
                self.floor.pass(batch.header());
            }
            let cut = usize_from_u64(walk.position());
            if cut > 0 {
                self.bytes = bytes.part(cut..).to_vec();
                bytes.truncate(cut);
                return true;
            }
            wanted = wanted.saturating_mul(2);
        }
        false
    }
}

#[cfg(all(test, feature = "object-store"))]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::arithmetic_side_effects, reason = "tests")]
mod tests;
