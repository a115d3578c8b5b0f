//! Totals of batch headers.
//!
//! Only the headers are read, so a corrupt payload is not noticed. A header of format v2 has these totals:
//!
//! | total | exact |
//! |---|---|
//! | number of records | unless there are more than offsets; compaction writes the number of those that remain |
//! | first and last offset | if there are as many records as offsets; compaction keeps the old ones |
//! | largest timestamp | always; brokers and compaction compute it of the records, or set it for all of them |
//!
//! The smallest timestamp is not in a header: the base timestamp is that of the first record, or a delete horizon. In
//! formats v0 and v1, a header has no number of records, and a corrupt codec could hide a compressed set. Batches whose
//! header is not exact are decoded: one after the other, except those that other headers show to be within the extremes.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int8Type, Int32Type, Int64Type, TimestampMicrosecondType};
use arrow_array::{Array, RecordBatch};

use super::{Total, Totals, Wanted};
use crate::arrow::{BatchColumn, BatchScan, ScanOptions, ScanSource, ScanStats};
use crate::error::Result;
use crate::log::resync::Floor;

impl Totals {
    /// Adds the records of some sources, of which `options` excludes none by offset, time or transaction.
    ///
    /// # Errors
    /// Corrupt headers; corrupt batches among those that are decoded; I/O errors.
    pub(crate) fn add_headers(
        &mut self,
        sources: &[ScanSource],
        totals: &[Total],
        options: &ScanOptions,
    ) -> Result<()> {
        let wanted = Wanted(totals);
        for source in sources {
            let mut scan = BatchScan::new(vec![source.clone()], HeaderFields::COLUMNS.to_vec(), options.clone());
            let mut unclear = Unclear { source, options, wanted, window: None, last: None };
            for rows in scan.by_ref() {
                for header in headers_of(&rows?) {
                    if options.include_control || !header.is_control {
                        unclear.add(header, self)?;
                    }
                }
            }
            unclear.finish(self)?;
            // the rows of this scan are batches
            self.stats = self.stats.plus(&ScanStats { records: 0, ..scan.stats() });
        }
        Ok(())
    }
}

/// The batches of a source whose headers are not enough.
struct Unclear<'s> {
    source: &'s ScanSource,
    options: &'s ScanOptions,
    wanted: Wanted<'s>,
    /// Adjacent batches that one scan decodes.
    window: Option<Range<u64>>,
    /// A batch of which only the offsets are unknown, and that may have the largest one.
    last: Option<HeaderFields>,
}

impl Unclear<'_> {
    /// Adds a batch to the totals, or keeps it to be decoded.
    fn add(&mut self, header: HeaderFields, totals: &mut Totals) -> Result<()> {
        let Some(count) = header.count().filter(|_| header.magic == 2) else { return self.extend(&header, totals) };
        if count == 0 {
            return Ok(());
        }
        let timestamp = header.max_timestamp;
        let Some(base) = header.base_offset.filter(|base| !header.is_impossible(*base, count)) else {
            return self.extend(&header, totals);
        };
        if self.wanted.timestamps() && timestamp.is_none() {
            return self.extend(&header, totals);
        }
        totals.stats.records = totals.stats.records.saturating_add(count);
        if !self.wanted.offsets() || header.is_full(base, count) {
            totals.add(count, Some((base, header.last_offset)), timestamp);
            return Ok(());
        }
        totals.add(count, None, timestamp);
        // the offsets of the batch are within base and last_offset
        let is_first = totals.offsets.is_none_or(|(low, _)| base < low);
        if is_first || self.last.as_ref().is_some_and(|last| base <= last.last_offset) {
            return self.decode_offsets(header.start..header.end, totals);
        }
        self.last = Some(header);
        Ok(())
    }

    /// Decodes the batches that remain.
    fn finish(mut self, totals: &mut Totals) -> Result<()> {
        if let Some(window) = self.window.take() {
            totals.decode(vec![self.part(window)], self.wanted, self.options)?;
        }
        let Some(last) = self.last.take() else { return Ok(()) };
        if totals.offsets.is_some_and(|(_, high)| high >= last.last_offset) {
            return Ok(());
        }
        self.decode_offsets(last.start..last.end, totals)
    }

    /// The batches of a window, which begins with one. So they are read without a search for it.
    fn part(&self, window: Range<u64>) -> ScanSource {
        let part = self.source.clone().within(window.start, window.end);
        ScanSource { begins_with_batch: true, before: Some(Floor::default()), ..part }
    }

    /// Keeps a batch of which nothing is known.
    fn extend(&mut self, header: &HeaderFields, totals: &mut Totals) -> Result<()> {
        match &mut self.window {
            Some(window) if window.end == header.start => window.end = header.end,
            window => {
                if let Some(before) = window.replace(header.start..header.end) {
                    totals.decode(vec![self.part(before)], self.wanted, self.options)?;
                }
            }
        }
        Ok(())
    }

    /// Adds the offsets of a batch whose records are counted.
    fn decode_offsets(&self, window: Range<u64>, totals: &mut Totals) -> Result<()> {
        let mut decoded = Totals::default();
        let wanted = Wanted(&[Total::MinOffset]);
        decoded.decode(vec![self.part(window)], wanted, self.options)?;
        totals.add(0, decoded.offsets, None);
        totals.stats = totals.stats.plus(&ScanStats { batches: 0, records: 0, ..decoded.stats });
        Ok(())
    }
}

/// What is needed of a batch's header.
struct HeaderFields {
    start: u64,
    end: u64,
    base_offset: Option<i64>,
    last_offset: i64,
    record_count: Option<i32>,
    is_control: bool,
    magic: i8,
    /// In microseconds since the epoch; `None` if no record has a timestamp, or it does not fit.
    max_timestamp: Option<i64>,
}

impl HeaderFields {
    const COLUMNS: [BatchColumn; 8] = [
        BatchColumn::Position,
        BatchColumn::Size,
        BatchColumn::BaseOffset,
        BatchColumn::LastOffset,
        BatchColumn::RecordCount,
        BatchColumn::IsControl,
        BatchColumn::Magic,
        BatchColumn::MaxTimestamp,
    ];

    /// The number of records, if the header has it.
    fn count(&self) -> Option<u64> {
        self.record_count.and_then(|count| u64::try_from(count).ok())
    }

    /// The number of offsets, if the header has one that is possible.
    fn offset_count(&self, base: i64) -> Option<u64> {
        let difference = self.last_offset.checked_sub(base)?;
        u64::try_from(difference.checked_add(1)?).ok()
    }

    /// Whether there are as many records as offsets.
    fn is_full(&self, base: i64, count: u64) -> bool {
        self.offset_count(base) == Some(count)
    }

    /// Whether there are more records than offsets: the header is corrupt.
    fn is_impossible(&self, base: i64, count: u64) -> bool {
        self.offset_count(base).is_none_or(|offset_count| offset_count < count)
    }
}

fn headers_of(rows: &RecordBatch) -> Vec<HeaderFields> {
    let [position, size, base_offset, last_offset, count, is_control, magic, max_timestamp] = rows.columns() else {
        return Vec::new();
    };
    let (positions, sizes) = (position.as_primitive::<Int64Type>(), size.as_primitive::<Int32Type>());
    let (bases, lasts) = (base_offset.as_primitive::<Int64Type>(), last_offset.as_primitive::<Int64Type>());
    let (counts, controls) = (count.as_primitive::<Int32Type>(), is_control.as_boolean());
    let (magics, times) = (magic.as_primitive::<Int8Type>(), max_timestamp.as_primitive::<TimestampMicrosecondType>());
    let header = |row: usize| {
        let start = positions.value(row).unsigned_abs();
        HeaderFields {
            start,
            end: start.saturating_add(u64::from(sizes.value(row).unsigned_abs())),
            base_offset: bases.is_valid(row).then(|| bases.value(row)),
            last_offset: lasts.value(row),
            record_count: counts.is_valid(row).then(|| counts.value(row)),
            is_control: controls.value(row),
            magic: magics.value(row),
            max_timestamp: times.is_valid(row).then(|| times.value(row)),
        }
    };
    (0..rows.num_rows()).map(header).collect()
}
