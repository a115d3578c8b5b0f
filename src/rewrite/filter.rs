//! [`filter`]: removes the records of a partition that a predicate rejects.
//!
//! Retained records keep their offset, timestamp, headers, producer and sequence. Batches that lose records are rebuilt
//! in their own format and codec; the others are copied unchanged. Control records are kept and not passed to the
//! predicate. A batch without remaining records is removed, unless its header is needed because it has the last
//! sequence of its producer, belongs to an open transaction, or ends the log.

use std::path::Path;

use super::output::RewriteOutput;
use super::source::RewriteSource;
use super::survey::{LastBatches, Survey};
use super::{Counts, IndexOptions, keep_end};
use crate::broker::retain::{BatchRetention, RetainOptions, Retained, retain_records};
use crate::compression::Scratch;
use crate::error::Result;
use crate::format::batch::Batch;
use crate::format::frame::batches;
use crate::format::record::Record;
use crate::io::{Location, Progress};
use crate::limits::Limits;
use crate::log::producer::ProducerStates;

/// Settings of [`filter`].
#[derive(Debug, Clone)]
pub struct FilterOptions {
    /// Settings for indexes.
    pub index: IndexOptions,
    /// Whether to verify checksums. Default yes.
    pub check_crc: bool,
    /// Bounds on untrusted input.
    pub limits: Limits,
}

impl Default for FilterOptions {
    fn default() -> Self {
        Self { index: IndexOptions::default(), check_crc: true, limits: Limits::default() }
    }
}

/// Counts of what [`filter`] read, wrote and dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FilterReport {
    /// Read from the source.
    pub read: Counts,
    /// Written to the target.
    pub written: Counts,
    /// Records that the predicate rejected.
    pub dropped_records: u64,
    /// Batches removed because they had no remaining records.
    pub dropped_batches: u64,
    /// Batches reduced to their header.
    pub emptied_batches: u64,
    /// Batches that lost some of their records.
    pub rebuilt_batches: u64,
    /// The offset after the last batch, in source and target.
    pub end_offset: i64,
    /// Bytes at the ends of segments that are not complete batches, such as a truncated batch. They are not copied.
    pub tail_bytes: u64,
}

/// Copies the partition in the directory `source` to a new one, with only the records for which `keep` returns true.
///
/// # Errors
/// If `target` is not empty, the source has no segments, reading or writing fails, a batch, record or checksum is
/// invalid, or `keep` returns an error. No target is left after an error.
pub fn filter(
    source: impl Into<Location>,
    target: impl AsRef<Path>,
    options: &FilterOptions,
    keep: &mut dyn FnMut(&Record<'_>) -> Result<bool>,
    progress: &mut Progress<'_>,
) -> Result<FilterReport> {
    let (source, target): (&Location, &Path) = (&source.into(), target.as_ref());
    let source = RewriteSource::open(source, &options.limits, options.check_crc)?;
    let output = RewriteOutput::create(&source, target, options.index)?;
    progress.expect(source.bytes().saturating_mul(2))?;
    let survey = Survey::make(&source, progress)?;
    let mut sieve = Sieve {
        last_batches: LastBatches::new(&survey, 0, None),
        survey: &survey,
        limits: &options.limits,
        states: ProducerStates::new(),
        output,
        report: FilterReport {
            end_offset: survey.end_offset,
            tail_bytes: survey.tail_bytes,
            ..FilterReport::default()
        },
        scratch: Scratch::new(),
        retained: Vec::new(),
    };
    for segment in &source.segments {
        sieve.output.begin_segment(segment.base_offset, segment.modified)?;
        sieve.report.read.segments = sieve.report.read.segments.saturating_add(1);
        source.each_batch(segment, progress, &mut |batch| sieve.pass(batch, keep).map(|()| true))?;
    }
    let Sieve { output, mut report, .. } = sieve;
    report.written = Counts { records: report.written.records, ..output.written };
    output.finish(&source, &survey, true, progress)?;
    Ok(report)
}

struct Sieve<'a> {
    last_batches: LastBatches,
    survey: &'a Survey,
    limits: &'a Limits,
    /// Producer states of the target's batches, for its transaction indexes.
    states: ProducerStates,
    output: RewriteOutput,
    report: FilterReport,
    scratch: Scratch,
    /// The rebuilt batch.
    retained: Vec<u8>,
}

impl Sieve<'_> {
    fn pass(&mut self, batch: &Batch<'_>, keep: &mut dyn FnMut(&Record<'_>) -> Result<bool>) -> Result<()> {
        self.retained.clear();
        let stays_as_it_is = batch.is_control() || (batch.magic() == 2 && batch.record_count() == Some(0));
        if stays_as_it_is {
            let records = u64::try_from(batch.record_count().unwrap_or(0)).unwrap_or(0);
            self.retained.extend_from_slice(batch.bytes());
            self.count(batch, records, records, Retained::Unchanged);
        } else {
            let options = RetainOptions { retention: self.retention(batch), ..RetainOptions::default() };
            let (scratch, limits) = (&mut self.scratch, self.limits);
            let outcome = retain_records(batch, &options, keep, scratch, limits, &mut self.retained)?;
            self.count(batch, outcome.records_read, outcome.records_retained, outcome.batch);
        }
        if batch.next_offset() == self.survey.end_offset {
            keep_end(batch, &mut self.retained)?;
        }
        for left in batches(&self.retained) {
            let aborted = self.states.update(&left?, &mut self.scratch, self.limits)?;
            if let Some(transaction) = &aborted {
                self.output.append_aborted(transaction);
            }
        }
        self.output.append(&self.retained)
    }

    fn retention(&self, batch: &Batch<'_>) -> BatchRetention {
        let is_open = batch.is_transactional() && batch.last_offset() >= self.survey.last_stable_offset();
        if is_open || self.last_batches.is_last(batch) || batch.next_offset() == self.survey.end_offset {
            BatchRetention::RetainEmpty
        } else {
            BatchRetention::DeleteEmpty
        }
    }

    fn count(&mut self, batch: &Batch<'_>, read: u64, retained: u64, outcome: Retained) {
        let report = &mut self.report;
        report.read.add_batch(read, batch.size());
        report.written.records = report.written.records.saturating_add(retained);
        report.dropped_records = report.dropped_records.saturating_add(read.saturating_sub(retained));
        let count = match outcome {
            Retained::Unchanged => return,
            Retained::Rebuilt => &mut report.rebuilt_batches,
            Retained::Emptied => &mut report.emptied_batches,
            Retained::Dropped => &mut report.dropped_batches,
        };
        *count = count.saturating_add(1);
    }
}
