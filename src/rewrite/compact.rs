//! [`compact`]: log compaction, as a broker's cleaner does it.
//!
//! | record | kept |
//! |---|---|
//! | not the last with its key | no |
//! | null key | no |
//! | tombstone (null value), the last with its key | until its batch's delete horizon, which the first compaction sets |
//! | of an aborted transaction | no |
//! | transaction marker | while data of its transaction is there, then until a delete horizon |
//! | other control records | yes |
//!
//! A batch without records goes, unless it holds the last sequence of a producer, or ends where the cleaned part ends:
//! then its header stays. The active segment, which is the last one, and all from the first open transaction on are
//! copied unread. Small neighbours become one segment. Messages of magic 0 and 1 become batches of magic 2.
//!
//! Follows `Cleaner` of Kafka 4; what differs: keys are compared, not their hashes; aborted transactions come from the
//! markers in the log, not from index files; a batch of magic 0 or 1 at the end of the cleaned part leaves a header of
//! magic 2, where Kafka gives up.

use std::ops::Range;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use super::latest::{KeyedRecord, LatestKeys, Sink};
use super::output::Output;
use super::source::{Source, SourceSegment};
use super::survey::{LastBatches, Survey};
use super::transactions::{CleanedTransactions, Marker};
use super::{Counts, IndexOptions, keep_end};
use crate::compression::Scratch;
use crate::error::Result;
use crate::format::batch::Batch;
use crate::format::frame::batches;
use crate::format::record::Record;
use crate::format::retain::{BatchRetention, RetainOptions, Retained, retain_records};
use crate::io::Progress;
use crate::limits::Limits;
use crate::num::u64_of;

/// Settings of [`compact`], under the names of a topic's configuration where it has them.
#[derive(Debug, Clone)]
pub struct CompactOptions {
    /// How long tombstones and markers without data stay after their first compaction, milliseconds. Default a day.
    pub delete_retention_ms: i64,
    /// The time to go by, milliseconds since the epoch; `None`: now.
    pub now_ms: Option<i64>,
    /// Where the part begins that was not compacted before; records before it can only be superseded. `None`: the log's
    /// start.
    pub first_dirty_offset: Option<i64>,
    /// Segments with a record younger than this many milliseconds, and all after them, are not compacted. Default 0.
    pub min_compaction_lag_ms: i64,
    /// Whether the last segment is compacted too.
    pub include_active: bool,
    /// Neighbours become one segment up to this size. Default 1 GiB.
    pub segment_bytes: u64,
    /// How indexes are made.
    pub index: IndexOptions,
    /// Producers idle for this many milliseconds lose their empty batches, Kafka's `producer.id.expiration.ms`. `None`,
    /// the default: no producer does.
    pub producer_expiration_ms: Option<i64>,
    /// Bytes of memory for keys, about; past it, keys go through temporary files in the output's directory. Default 128
    /// MiB.
    pub max_map_bytes: usize,
    /// Whether checksums are checked. Default yes.
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
    /// A later record has the key.
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

/// What [`compact`] did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct CompactReport {
    /// What was read of the part that was compacted.
    pub read: Counts,
    /// What was written for it.
    pub written: Counts,
    /// Segments after that part, copied.
    pub untouched_segments: u64,
    /// Records dropped.
    pub dropped: CompactDropped,
    /// Tombstones that stay.
    pub tombstones_retained: u64,
    /// Batches that got a delete horizon.
    pub delete_horizons_set: u64,
    /// Batches of which the header stays.
    pub emptied_batches: u64,
    /// Where the part began that was not compacted before.
    pub first_dirty_offset: i64,
    /// Where the part ends that was compacted: the next run's `first_dirty_offset`.
    pub first_uncleanable_offset: i64,
    /// First offset that is not decided.
    pub last_stable_offset: i64,
    /// The offset after the last batch.
    pub end_offset: i64,
    /// How many parts the keys were spread over; 1 where they fit memory.
    pub key_parts: u64,
    /// Bytes at the ends of segments that are no batch, such as one that is cut; they are not copied.
    pub tail_bytes: u64,
}

/// Compacts the partition in the directory `source` into a new one.
///
/// # Errors
/// A `target` that is not empty, a source without segments; reading and writing; batches, records or checksums that are
/// wrong in what is read; keys that do not fit 256 times `max_map_bytes`. There is no target then.
pub fn compact(
    source: impl AsRef<Path>,
    target: impl AsRef<Path>,
    options: &CompactOptions,
    progress: &mut Progress<'_>,
) -> Result<CompactReport> {
    let (source, target) = (source.as_ref(), target.as_ref());
    let source = Source::open(source, &options.limits, options.check_crc)?;
    let mut output = Output::create(&source.directory, target, options.index)?;
    progress.expect(source.bytes().saturating_mul(2))?;
    let survey = Survey::make(&source, progress)?;
    let now_ms = options.now_ms.unwrap_or_else(|| millis(SystemTime::now()));
    let part = Part::choose(&source, &survey, options, now_ms);
    let mut report = CompactReport {
        first_dirty_offset: part.first_dirty_offset,
        first_uncleanable_offset: part.end_offset,
        last_stable_offset: survey.last_stable_offset(),
        end_offset: survey.end_offset,
        tail_bytes: survey.tail_bytes,
        ..CompactReport::default()
    };
    let mut walk = |sink: Sink<'_>| walk_keys(&source, &survey, &part, progress, sink);
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
    drop(cleaner.keys); // their files lie in the output
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
struct Part {
    /// How many segments it has.
    segment_count: usize,
    first_dirty_offset: i64,
    end_offset: i64,
    /// Up to which modification time segments of magic 0 and 1 lose their tombstones; `None` where none does.
    legacy_horizon_ms: Option<i64>,
}

impl Part {
    fn choose(source: &Source, survey: &Survey, options: &CompactOptions, now_ms: i64) -> Self {
        let start = source.segments.first().map_or(0, |segment| segment.base_offset);
        let first_dirty_offset = options.first_dirty_offset.unwrap_or(start).max(start);
        let end_offset = uncleanable_offset(source, survey, options, now_ms).unwrap_or(start);
        let before = |offset: i64| source.segments.iter().take_while(move |segment| segment.base_offset < offset);
        let segment_count = if first_dirty_offset < end_offset { before(end_offset).count() } else { 0 };
        let clean = options.first_dirty_offset.and_then(|_| before(first_dirty_offset).last());
        let legacy_horizon_ms = clean.map(|last| millis(last.modified).saturating_sub(options.delete_retention_ms));
        Self { segment_count, first_dirty_offset, end_offset, legacy_horizon_ms }
    }

    /// The segments by the segment that they become.
    fn groups(&self, source: &Source, options: &CompactOptions) -> Vec<Range<usize>> {
        let index_len = |segment: &SourceSegment, extension: &str| {
            std::fs::metadata(segment.path.with_extension(extension)).map_or(0, |metadata| metadata.len())
        };
        let mut groups: Vec<Range<usize>> = Vec::new();
        let (mut sizes, mut base) = ([0_u64; 3], 0);
        let segments = source.segments.get(..self.segment_count).unwrap_or_default();
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

/// Where the segment begins that holds the first record which may not be compacted.
fn uncleanable_offset(source: &Source, survey: &Survey, options: &CompactOptions, now_ms: i64) -> Option<i64> {
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

/// Hands all records with keys to a sink that compaction may keep or drop by their keys.
fn walk_keys(
    source: &Source,
    survey: &Survey,
    part: &Part,
    progress: &mut Progress<'_>,
    sink: Sink<'_>,
) -> Result<u64> {
    let segments = source.segments.get(..part.segment_count).unwrap_or_default();
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

/// The pass that writes.
struct Cleaner<'a> {
    keys: LatestKeys,
    transactions: CleanedTransactions,
    survey: &'a Survey,
    last_batches: LastBatches,
    part: &'a Part,
    options: &'a CompactOptions,
    now_ms: i64,
    report: CompactReport,
    scratch: Scratch,
    /// What is left of a batch.
    retained: Vec<u8>,
}

impl Cleaner<'_> {
    fn clean_group(
        &mut self,
        source: &Source,
        group: Range<usize>,
        output: &mut Output,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let segments = source.segments.get(group).unwrap_or_default();
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

    fn clean_batch(&mut self, batch: &Batch<'_>, keep_old_tombstones: bool, output: &mut Output) -> Result<()> {
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

    fn judge(&mut self, batch: &Batch<'_>, output: &mut Output) -> Result<Verdict> {
        let (discards, is_idle_marker) = if batch.is_control() {
            let marker = self.transactions.read_marker(batch, &mut self.scratch, &self.options.limits)?;
            if let Marker::Aborts(transaction) = marker {
                output.append_aborted(self.survey.as_indexed(&transaction));
            }
            let is_idle = marker == Marker::Idle;
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
        Ok(Verdict { retention, discards, is_idle_marker })
    }
}

/// What is to become of a batch.
struct Verdict {
    retention: BatchRetention,
    /// Whether its records go, whatever their keys are.
    discards: bool,
    is_idle_marker: bool,
}

/// Decides record by record, and counts.
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
    /// Counts records that went with their batch.
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
