//! [`Printer`]: the records of batches into a buffer.

use crate::arrow::{BatchContext, Origin, ScanOptions, SkippedBytes};
use crate::compression::Scratch;
use crate::error::Result;
use crate::format::attributes::TimestampType::LogAppendTime;
use crate::format::batch::Batch;
use crate::format::record::Record;
use crate::text::options::{Format, TextOptions};
use crate::text::people::{self, Clock};
use crate::text::{csv, fields, json};

pub(super) struct Printer<'o> {
    pub(super) scan: &'o ScanOptions,
    pub(super) text: &'o TextOptions,
    /// Records that may still be written.
    pub(super) left: u64,
    pub(super) records: u64,
    pub(super) next_offset: Option<i64>,
    scratch: Scratch,
    line: Line,
}

impl<'o> Printer<'o> {
    pub(super) fn new(scan: &'o ScanOptions, text: &'o TextOptions) -> Self {
        let left = text.limit.unwrap_or(u64::MAX);
        Self { scan, text, left, records: 0, next_offset: None, scratch: Scratch::new(), line: Line::default() }
    }

    /// Appends the records of a batch that are wanted; of a corrupt batch, none.
    pub(super) fn batch(&mut self, out: &mut Vec<u8>, batch: &Batch<'_>, context: &BatchContext<'_>) -> Result<()> {
        let (start, left, records) = (out.len(), self.left, self.records);
        let printed = self.records(out, batch, context);
        if printed.is_ok() {
            self.next_offset = Some(batch.next_offset());
        } else {
            out.truncate(start);
            (self.left, self.records) = (left, records);
        }
        printed
    }

    fn records(&mut self, out: &mut Vec<u8>, batch: &Batch<'_>, context: &BatchContext<'_>) -> Result<()> {
        let (scan, text) = (self.scan, self.text);
        let Self { left, records, scratch, line, .. } = self;
        let checks_records = scan.check_crc && batch.is_legacy_wrapper();
        let is_bounded = context.bounds.are_any();
        line.begin(context.origin, text);
        let (start, records_before, mut count_position) = (out.len(), *records, None);
        if text.batches {
            out.extend_from_slice(&line.start);
            json::batch(out, batch, batch.first_offset(scratch, &scan.limits)?);
            count_position = Some(out.len());
        }
        // the batch stores the producers' timestamps too
        let appended = (text.batches && batch.magic() == 2 && batch.timestamp_type() == Some(LogAppendTime))
            .then_some(batch.max_timestamp());
        let stored = if appended.is_some() { batch.with_create_times() } else { *batch };
        let mut is_empty = true;
        for record in stored.records(scratch, &scan.limits)? {
            let mut record = record?;
            let create_time = appended.is_some().then_some(record.timestamp);
            if let Some(appended) = appended {
                (record.timestamp, record.timestamp_type) = (appended, Some(LogAppendTime));
            }
            is_empty = false;
            if checks_records {
                record.verify_crc()?;
            }
            // after the last one, the rest is only checked
            if *left > 0 && (!is_bounded || context.bounds.want(&record)) && text.want(&record)? {
                line.record(out, context.origin, &record, create_time, text)?;
                *left = left.saturating_sub(1);
                *records = records.saturating_add(1);
            }
        }
        let written = records.saturating_sub(records_before);
        if let Some(position) = count_position {
            if !is_empty && written == 0 {
                out.truncate(start);
            } else {
                json::insert_record_count(out, position, written);
            }
        }
        Ok(())
    }

    /// Appends the line of a corruption.
    pub(super) fn skipped(&self, out: &mut Vec<u8>, skipped: &SkippedBytes) {
        match self.text.format {
            Format::Text => people::skipped(out, skipped),
            _ => json::skipped(out, skipped, self.text.is_terminal),
        }
    }
}

/// What lines have in common, and memory for their parts.
#[derive(Default)]
struct Line {
    origin: Option<Origin>,
    /// The start of the line of a record of `origin`.
    start: Vec<u8>,
    cell: Vec<u8>,
    clock: Clock,
}

impl Line {
    /// Prepares for records of a file.
    fn begin(&mut self, origin: &Origin, text: &TextOptions) {
        if self.origin.as_ref() == Some(origin) {
            return;
        }
        self.start.clear();
        match &text.format {
            Format::Jsonl => json::start(&mut self.start, origin, text.is_terminal),
            Format::Csv => csv::start(&mut self.start, origin, text),
            Format::Text => people::start(&mut self.start, origin),
            Format::Raw | Format::Template(_) => {}
        }
        self.origin = Some(origin.clone());
    }

    #[inline]
    fn record(
        &mut self,
        out: &mut Vec<u8>,
        origin: &Origin,
        record: &Record<'_>,
        create_time: Option<i64>,
        text: &TextOptions,
    ) -> Result<()> {
        out.extend_from_slice(&self.start);
        match &text.format {
            Format::Jsonl => json::record(out, record, create_time, text),
            Format::Csv => csv::record(out, &mut self.cell, record, text),
            Format::Text => people::record(out, &mut self.clock, record, text),
            Format::Template(template) => template.record(out, origin, record, text),
            Format::Raw => {
                fields::as_bytes(out, record.value(), text.value, text);
                Ok(())
            }
        }
    }
}
