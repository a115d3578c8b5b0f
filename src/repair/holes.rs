//! [`Holes`]: what salvage drops, and the offsets that are lost by it.

use std::fmt::Write as _;

use crate::repair::report::{DroppedRange, OpenTransaction};

/// The file that lists the dropped ranges.
pub(crate) const HOLES: &str = "holes.jsonl";

/// The dropped ranges, in the order of the files. The last offset that one has lost is known only when the next batch is
/// kept.
#[derive(Debug, Default)]
pub(super) struct Holes {
    ranges: Vec<DroppedRange>,
    /// Number of ranges since the last batch kept.
    open_count: usize,
    /// Number of ranges after these and after a batch that is held, of which it is not known yet whether it is kept.
    later_count: usize,
}

impl Holes {
    /// Adds a range after the last batch kept. `start` is the offset after that batch.
    pub(super) fn add(
        &mut self,
        mut range: DroppedRange,
        start: Option<i64>,
        open_transactions: impl FnOnce() -> Vec<OpenTransaction>,
    ) {
        range.first_offset = start;
        if self.open_count == 0 {
            range.open_transactions = open_transactions();
        }
        let place = self.ranges.len().saturating_sub(self.later_count);
        self.ranges.insert(place, range);
        self.open_count = self.open_count.saturating_add(1);
    }

    /// Adds a range after a batch that is held.
    pub(super) fn add_after_held(&mut self, range: DroppedRange) {
        self.ranges.push(range);
        self.later_count = self.later_count.saturating_add(1);
    }

    /// Ends the wait for the held batch, which was kept or dropped. `start` is the offset after the last batch kept.
    pub(super) fn release(&mut self, start: Option<i64>, open_transactions: impl FnOnce() -> Vec<OpenTransaction>) {
        let first = self.ranges.len().saturating_sub(self.later_count);
        let mut later = self.ranges.iter_mut().skip(first);
        if self.open_count == 0
            && let Some(range) = later.next()
        {
            (range.first_offset, range.open_transactions) = (start, open_transactions());
        }
        later.for_each(|range| range.first_offset = start);
        self.open_count = self.open_count.saturating_add(self.later_count);
        self.later_count = 0;
    }

    /// Ends the ranges before a batch that is kept. The first of them gets the range of all lost offsets.
    pub(super) fn close(&mut self, next_offset: i64) {
        let end = self.ranges.len().saturating_sub(self.later_count);
        let start = end.saturating_sub(self.open_count);
        for (number, range) in self.ranges.iter_mut().take(end).skip(start).enumerate() {
            if number == 0 && range.first_offset.is_some_and(|lost| lost < next_offset) {
                range.last_offset = Some(next_offset.saturating_sub(1));
            } else {
                range.first_offset = None;
            }
        }
        self.open_count = 0;
    }

    pub(super) fn into_ranges(self) -> Vec<DroppedRange> {
        self.ranges
    }
}

/// Formats dropped ranges as lines of JSON.
pub(super) fn lines_of(dropped: &[DroppedRange]) -> String {
    let mut text = String::new();
    let number = |offset: Option<i64>| offset.map_or_else(|| "null".to_owned(), |offset| offset.to_string());
    for hole in dropped {
        let name = hole.path.file_name().unwrap_or_default().to_string_lossy();
        let (first, last) = (number(hole.first_offset), number(hole.last_offset));
        let (position, length, reason) = (hole.position, hole.length, hole.reason);
        let open = hole.open_transactions.iter().map(|open| format!("[{}, {}]", open.producer_id, open.first_offset));
        let open = open.collect::<Vec<_>>().join(", ");
        // writing to a String cannot fail
        let _ = writeln!(
            text,
            "{{\"file\": {name:?}, \"position\": {position}, \"length\": {length}, \"first_offset\": {first}, \
             \"last_offset\": {last}, \"reason\": \"{reason}\", \"message\": {:?}, \
             \"open_transactions\": [{open}]}}",
            hole.message
        );
    }
    text
}
