//! [`compact`]: log compaction, as done by a broker's log cleaner.
//!
//! | record | kept |
//! |---|---|
//! | not the last with its key | no |
//! | null key | no |
//! | tombstone (null value), the last with its key | until the delete horizon, set by the first compaction |
//! | of an aborted transaction | no |
//! | transaction marker | while data of its transaction exists, then until a delete horizon |
//! | other control records | yes |
//!
//! A batch without remaining records is removed. Its header stays if it has the last sequence of a producer or ends the
//! compacted part. The active segment, which is the last one, and everything from the first open transaction on are
//! copied without changes. Small adjacent segments are merged. Messages of magic 0 and 1 become batches of magic 2.
//!
//! Follows `Cleaner` of Kafka 4, with these differences: keys are compared, not their hashes; aborted transactions come
//! from the markers in the log, not from index files; a batch of magic 0 or 1 at the end of the compacted part leaves a
//! header of magic 2, whereas Kafka fails.

use std::ops::Range;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::keys::{KeyedRecord, RecordReceiver};
use super::latest::LatestKeys;
use super::output::RewriteOutput;
use super::source::{RewriteSource, SourceSegment};
use super::survey::{LastBatches, Survey};
use super::transactions::{CleanedTransactions, MarkerRole};
use super::{Counts, IndexOptions, keep_end};
use crate::broker::retain::{BatchRetention, RetainOptions, Retained, retain_records};
use crate::compression::Scratch;
use crate::error::Result;
use crate::format::batch::Batch;
use crate::format::frame::batches;
use crate::format::record::Record;
use crate::io::{Location, Progress};
use crate::limits::Limits;
use crate::num::u64_of;
use crate::slices::Slices;

/// Settings of [`compact`], named like the topic configurations that they correspond to.
#[derive(Debug, Clone)]
pub struct CompactOptions {
    /// How long to keep tombstones, and markers without data, after their first compaction, in milliseconds. Default
    /// one day.
    pub delete_retention_ms: i64,
    /// The current time in milliseconds since the epoch. Default: the system clock.
    pub now_ms: Option<i64>,
    /// First offset that has not been compacted before. Records before it can only be superseded. Default: the start of
    /// the log.
    pub first_dirty_offset: Option<i64>,
    /// Does not compact segments with a record younger than this many milliseconds, nor the segments after them.
    /// Default 0.
    pub min_compaction_lag_ms: i64,
    /// Whether to compact the last segment. Default no.
    pub include_active: bool,
    /// Merges adjacent segments up to this size, in bytes. Default 1 GiB.
    pub segment_bytes: u64,
    /// Settings for indexes.
    pub index: IndexOptions,
    /// Removes the empty batches of producers that have been idle for this many milliseconds, Kafka's
    /// `producer.id.expiration.ms`. Default: keeps those of all producers.
    pub producer_expiration_ms: Option<i64>,
    /// Approximate bytes of memory for keys. If there are more, keys are written to temporary files in the output
    /// directory. Default 128 MiB.
    pub max_map_bytes: usize,
    /// Whether to verify checksums. Default yes.
    pub check_crc: bool,
    /// Bounds on untrusted input.
    pub limits: Limits,
}

impl Default for CompactOptions {
    fn default() -> Self {
        Self {
            delete_retention_ms: 86_400_000,
            now_ms: None,
            first_dirty_offset: None,
            min_compaction_lag_ms: 0,
            include_active: false,
            segment_bytes: 1 << 30,
            index: IndexOptions::default(),
            producer_expiration_ms: None,
            max_map_bytes: 128 << 20,
            check_crc: true,
            limits: Limits::default(),
        }
    }
}

/// Records that compaction dropped, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactDropped {
    /// Records whose key a later record has.
    pub superseded: u64,
    /// Tombstones past their delete horizon.
    pub tombstones: u64,
    /// Records without a key.
    pub null_keys: u64,
    /// Records of aborted transactions.
    pub aborted: u64,
    /// Markers past their delete horizon whose transactions have no data left.
    pub markers: u64,
}

/// Counts of what [`compact`] read, wrote and dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactReport {
    /// Read from the compacted part.
    pub read: Counts,
    /// Written for the compacted part.
    pub written: Counts,
    /// Number of segments after the compacted part, which were copied.
    pub untouched_segments: u64,
    /// Records dropped.
    pub dropped: CompactDropped,
    /// Tombstones kept.
    pub tombstones_retained: u64,
    /// Batches that got a delete horizon.
    pub delete_horizons_set: u64,
    /// Batches reduced to their header.
    pub emptied_batches: u64,
    /// First offset that had not been compacted before.
    pub first_dirty_offset: i64,
    /// End of the compacted part: the `first_dirty_offset` for the next run.
    pub first_uncleanable_offset: i64,
    /// First offset of the earliest open transaction, or the end offset if there is none.
    pub last_stable_offset: i64,
    /// The offset after the last batch.
    pub end_offset: i64,
    /// Number of parts that the keys were split into; 1 if they fit in memory.
    pub key_parts: u64,
    /// Bytes at the ends of segments that are not complete batches, such as a truncated batch. They are not copied.
    pub tail_bytes: u64,
}

/// Compacts the partition in the directory `source` into a new one.
///
/// # Errors
/// If `target` is not empty, the source has no segments, or reading or writing fails; if a batch, record or checksum
/// that is read is invalid; if the keys exceed 256 times `max_map_bytes`. No target is left after an error.
pub fn compact(
    source: impl Into<Location>,
    target: impl AsRef<Path>,
    options: &CompactOptions,
    progress: &mut Progress<'_>,
) -> Result<CompactReport> {
    let (source, target): (&Location, &Path) = (&source.into(), target.as_ref());
    let source = RewriteSource::open(source, &options.limits, options.check_crc)?;
    let mut output = RewriteOutput::create(&source, target, options.index)?;
    progress.expect(source.bytes().saturating_mul(2))?;
    let survey = Survey::make(&source, progress)?;
    let now_ms = options.now_ms.unwrap_or_else(|| millis(SystemTime::now()));
    let part = CompactedPart::choose(&source, &survey, options, now_ms);
    let mut report = CompactReport {
        first_dirty_offset: part.first_dirty_offset,
        first_uncleanable_offset: part.end_offset,
        last_stable_offset: survey.last_stable_offset(),
        end_offset: survey.end_offset,
        tail_bytes: survey.tail_bytes,
        ..CompactReport::default()
    };
    let mut walk = |sink: RecordReceiver<'_>| walk_keys(&source, &survey, &part, progress, sink);
    let keys = LatestKeys::build(&mut walk, options.max_map_bytes, output.work_directory())?;
    report.key_parts = u64_of(keys.part_count());
    let mut cleaner = Cleaner {
        keys,
        transactions: CleanedTransactions::new(&survey.aborted),
        survey: &survey,
        last_batches: LastBatches::new(&survey, now_ms, options.producer_expiration_ms),
        part: &part,
        options,
        now_ms,
        report,
        scratch: Scratch::new(),
        retained: Vec::new(),
    };
    for group in part.groups(&source, options) {
        cleaner.clean_group(&source, group, &mut output, progress)?;
    }
    let mut report = cleaner.report;
    drop(cleaner.keys); // deletes their files in the output directory
    (report.written.segments, report.written.batches) = (output.written.segments, output.written.batches);
    report.written.bytes = output.written.bytes;
    for index in part.segment_count..source.segments.len() {
        output.copy_segment(&source, index, &survey, progress)?;
        report.untouched_segments = report.untouched_segments.saturating_add(1);
    }
    output.finish(&source, &survey, true, progress)?;
    Ok(report)
}

/// The part of the log that is compacted.
#[derive(Debug)]
struct CompactedPart {
    /// Number of segments.
    segment_count: usize,
    first_dirty_offset: i64,
    end_offset: i64,
    /// Segments of magic 0 and 1 that were last modified up to this time lose their tombstones; `None` if none do.
    legacy_horizon_ms: Option<i64>,
}

impl CompactedPart {
    fn choose(source: &RewriteSource, survey: &Survey, options: &CompactOptions, now_ms: i64) -> Self {
        let start = source.segments.first().map_or(0, |segment| segment.base_offset);
        let first_dirty_offset = options.first_dirty_offset.unwrap_or(start).max(start);
        let end_offset = uncleanable_offset(source, survey, options, now_ms).unwrap_or(start);
        let before = |offset: i64| source.segments.iter().take_while(move |segment| segment.base_offset < offset);
        let segment_count = if first_dirty_offset < end_offset { before(end_offset).count() } else { 0 };
        let clean = options.first_dirty_offset.and_then(|_| before(first_dirty_offset).last());
        let legacy_horizon_ms = clean.map(|last| millis(last.modified).saturating_sub(options.delete_retention_ms));
        Self { segment_count, first_dirty_offset, end_offset, legacy_horizon_ms }
    }

    /// The source segments of each new segment.
    fn groups(&self, source: &RewriteSource, options: &CompactOptions) -> Vec<Range<usize>> {
        let index_len =
            |segment: &SourceSegment, extension: &str| segment.path.with_extension(extension).len().unwrap_or(0);
        let mut groups: Vec<Range<usize>> = Vec::new();
        let (mut sizes, mut base) = ([0_u64; 3], 0);
        let segments = source.segments.part(..self.segment_count);
        for (index, segment) in segments.iter().enumerate() {
            let own = [segment.size, index_len(segment, "index"), index_len(segment, "timeindex")];
            let limits = [options.segment_bytes, options.index.max_index_bytes, options.index.max_index_bytes];
            let next_base = segments.get(index.saturating_add(1)).map_or(self.end_offset, |next| next.base_offset);
            let span = next_base.saturating_sub(1).saturating_sub(base);
            let joins =
                own.iter().zip(&sizes).zip(&limits).all(|((own, size), limit)| own.saturating_add(*size) <= *limit)
                    && (segment.size == 0 || span <= i64::from(i32::MAX));
            match groups.last_mut() {
                Some(group) if joins => group.end = index.saturating_add(1),
                _ => {
                    groups.push(index..index.saturating_add(1));
                    (sizes, base) = ([0; 3], segment.base_offset);
                }
            }
            sizes.iter_mut().zip(own).for_each(|(size, own)| *size = size.saturating_add(own));
        }
        groups
    }
}

/// Base offset of the segment with the first record that must not be compacted.
fn uncleanable_offset(source: &RewriteSource, survey: &Survey, options: &CompactOptions, now_ms: i64) -> Option<i64> {
    let mut bound = survey.last_stable_offset();
    if !options.include_active {
        bound = bound.min(source.segments.last()?.base_offset);
    }
    if options.min_compaction_lag_ms > 0 {
        let youngest_ms = now_ms.saturating_sub(options.min_compaction_lag_ms);
        let first_dirty = options.first_dirty_offset.and_then(|offset| source.floor_base(offset)).unwrap_or(i64::MIN);
        let is_young = |(segment, timestamp): &(&SourceSegment, &i64)| {
            let time = if **timestamp >= 0 { **timestamp } else { millis(segment.modified) };
            segment.base_offset >= first_dirty && time > youngest_ms
        };
        let young = source.segments.iter().zip(&survey.largest_timestamps).find(is_young);
        bound = young.map_or(bound, |(segment, _)| segment.base_offset.min(bound));
    }
    if bound >= survey.end_offset { Some(survey.end_offset) } else { source.floor_base(bound) }
}

/// Passes each record that compaction decides on by its key to a sink.
fn walk_keys(
    source: &RewriteSource,
    survey: &Survey,
    part: &CompactedPart,
    progress: &mut Progress<'_>,
    sink: RecordReceiver<'_>,
) -> Result<u64> {
    let segments = source.segments.part(..part.segment_count);
    let total = segments.iter().fold(0_u64, |sum, segment| sum.saturating_add(segment.size));
    progress.expect_more(total);
    let mut transactions = CleanedTransactions::new(&survey.aborted);
    let (mut scratch, mut walked, mut wants_more) = (Scratch::new(), 0_u64, true);
    for segment in segments {
        source.each_batch(segment, progress, &mut |batch| {
            walked = walked.saturating_add(u64_of(batch.size()));
            if batch.is_control() {
                transactions.read_marker(batch, &mut scratch, &source.limits)?;
            } else if !transactions.is_aborted(batch) {
                for record in batch.records(&mut scratch, &source.limits)? {
                    let record = record?;
                    let Some(key) = record.key() else { continue };
                    let is_dirty = record.offset() >= part.first_dirty_offset;
                    wants_more = sink(KeyedRecord { key, offset: record.offset(), is_dirty })?;
                    if !wants_more {
                        break;
                    }
                }
            }
            Ok(wants_more)
        })?;
        if !wants_more {
            break;
        }
    }
    Ok(walked.saturating_mul(1000).checked_div(total).unwrap_or(1000))
}

/// The pass that writes the compacted segments.
struct Cleaner<'a> {
    keys: LatestKeys,
    transactions: CleanedTransactions,
    survey: &'a Survey,
    last_batches: LastBatches,
    part: &'a CompactedPart,
    options: &'a CompactOptions,
    now_ms: i64,
    report: CompactReport,
    scratch: Scratch,
    /// The rebuilt batch.
    retained: Vec<u8>,
}

impl Cleaner<'_> {
    fn clean_group(
        &mut self,
        source: &RewriteSource,
        group: Range<usize>,
        output: &mut RewriteOutput,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let segments = source.segments.part(group);
        let (Some(first), Some(last)) = (segments.first(), segments.last()) else { return Ok(()) };
        output.begin_segment(first.base_offset, last.modified)?;
        for segment in segments {
            let horizon = self.part.legacy_horizon_ms;
            let keep_old_tombstones = horizon.is_none_or(|horizon| millis(segment.modified) > horizon);
            self.report.read.segments = self.report.read.segments.saturating_add(1);
            source.each_batch(segment, progress, &mut |batch| {
                self.clean_batch(batch, keep_old_tombstones, output)?;
                Ok(true)
            })?;
        }
        Ok(())
    }

    fn clean_batch(&mut self, batch: &Batch<'_>, keep_old_tombstones: bool, output: &mut RewriteOutput) -> Result<()> {
        let verdict = self.judge(batch, output)?;
        let options = RetainOptions {
            retention: verdict.retention,
            delete_horizon_ms: Some(self.now_ms.saturating_add(self.options.delete_retention_ms)),
            is_marker_of_empty_transaction: verdict.is_idle_marker,
            upgrade: true,
        };
        let mut choice = RecordChoice {
            keys: &mut self.keys,
            dropped: self.report.dropped,
            tombstones_retained: 0,
            end_offset: self.part.end_offset,
            keep_tombstones: if batch.magic() < 2 {
                keep_old_tombstones
            } else {
                batch.delete_horizon_ms().is_none_or(|horizon| self.now_ms < horizon)
            },
            discards: verdict.discards,
            is_control: batch.is_control(),
        };
        self.retained.clear();
        let outcome = retain_records(
            batch,
            &options,
            &mut |record| choice.keep(record),
            &mut self.scratch,
            &self.options.limits,
            &mut self.retained,
        )?;
        let mut dropped = choice.dropped;
        let tombstones = choice.tombstones_retained;
        let mut records = outcome.records_read;
        if options.retention == BatchRetention::Delete {
            records = u64::try_from(batch.record_count().unwrap_or(0)).unwrap_or(0);
            dropped.discard(batch.is_control(), records);
        }
        let report = &mut self.report;
        report.dropped = dropped;
        report.read.add_batch(records, batch.size());
        report.written.records = report.written.records.saturating_add(outcome.records_retained);
        report.tombstones_retained = report.tombstones_retained.saturating_add(tombstones);
        report.emptied_batches = report.emptied_batches.saturating_add(u64::from(outcome.batch == Retained::Emptied));
        if batch.delete_horizon_ms().is_none() && has_delete_horizon(&self.retained) {
            report.delete_horizons_set = report.delete_horizons_set.saturating_add(1);
        }
        if batch.next_offset() == self.survey.end_offset {
            keep_end(batch, &mut self.retained)?;
        }
        output.append(&self.retained)
    }

    fn judge(&mut self, batch: &Batch<'_>, output: &mut RewriteOutput) -> Result<BatchVerdict> {
        let (discards, is_idle_marker) = if batch.is_control() {
            let marker = self.transactions.read_marker(batch, &mut self.scratch, &self.options.limits)?;
            if let MarkerRole::Aborts(transaction) = marker {
                output.append_aborted(self.survey.as_indexed(&transaction));
            }
            let is_idle = marker == MarkerRole::Idle;
            (is_idle && batch.delete_horizon_ms().is_some_and(|horizon| horizon <= self.now_ms), is_idle)
        } else {
            (self.transactions.is_aborted(batch), false)
        };
        let stays = self.last_batches.is_last(batch) || batch.next_offset() == self.part.end_offset;
        let retention = match (stays, discards) {
            (true, _) => BatchRetention::RetainEmpty,
            (false, true) => BatchRetention::Delete,
            (false, false) => BatchRetention::DeleteEmpty,
        };
        Ok(BatchVerdict { retention, discards, is_idle_marker })
    }
}

/// How to treat a batch.
struct BatchVerdict {
    retention: BatchRetention,
    /// Whether to drop its records, whatever their keys.
    discards: bool,
    is_idle_marker: bool,
}

/// Decides for each record whether to keep it, and counts.
struct RecordChoice<'a> {
    keys: &'a mut LatestKeys,
    dropped: CompactDropped,
    tombstones_retained: u64,
    end_offset: i64,
    keep_tombstones: bool,
    discards: bool,
    is_control: bool,
}

impl RecordChoice<'_> {
    fn keep(&mut self, record: &Record<'_>) -> Result<bool> {
        if self.discards {
            self.dropped.discard(self.is_control, 1);
            return Ok(false);
        }
        if self.is_control {
            return Ok(true);
        }
        let is_tombstone = record.value().is_none();
        let is_latest = record.key().map(|key| self.keys.is_latest(key, record.offset())).transpose()?;
        let dropped = match is_latest {
            _ if record.offset() >= self.end_offset => None,
            None => Some(&mut self.dropped.null_keys),
            Some(false) => Some(&mut self.dropped.superseded),
            Some(true) if is_tombstone && !self.keep_tombstones => Some(&mut self.dropped.tombstones),
            Some(true) => None,
        };
        let kept = dropped.is_none();
        if let Some(count) = dropped {
            *count = count.saturating_add(1);
        }
        self.tombstones_retained = self.tombstones_retained.saturating_add(u64::from(kept && is_tombstone));
        Ok(kept)
    }
}

impl CompactDropped {
    /// Counts records that were dropped with their batch.
    fn discard(&mut self, is_control: bool, records: u64) {
        let count = if is_control { &mut self.markers } else { &mut self.aborted };
        *count = count.saturating_add(records);
    }
}

fn has_delete_horizon(bytes: &[u8]) -> bool {
    batches(bytes).next().is_some_and(|batch| batch.is_ok_and(|batch| batch.delete_horizon_ms().is_some()))
}

/// Milliseconds since the epoch.
fn millis(time: SystemTime) -> i64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
