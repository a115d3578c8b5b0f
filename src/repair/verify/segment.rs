//! Checks one segment: every batch and record, and its indexes.

use std::collections::{HashMap, HashSet};

use crate::compression::Scratch;
use crate::error::{ErrorKind, Result};
use crate::format::batch::Batch;
use crate::format::header::{BatchHeader, NO_PARTITION_LEADER_EPOCH, NO_TIMESTAMP};
use crate::io::{Location, Progress};
use crate::limits::Limits;
use crate::log::index::{AbortedTransaction, OffsetEntry, TransactionIndex};
use crate::log::producer::ProducerStates;
use crate::log::resync::Floor;
use crate::num::u64_of;
use crate::plural::offsets_are;
use crate::repair::verify::indexes::{Before, IndexChecks, TimeCheck};
use crate::repair::verify::report::{Finding, Report, Severity};
use crate::repair::{Corruption, Visitor, read_record, walk};

/// The state of a partition before a segment, updated by the segment.
#[derive(Debug, Default)]
pub(crate) struct LogState {
    /// The offset after the last batch.
    pub(crate) end_offset: Option<i64>,
    /// The producers according to the replay.
    pub(crate) states: ProducerStates,
    /// Whether the replay is complete: it started at the start of the log or at a snapshot, and met no corruption
    /// since.
    pub(crate) replayed: bool,
    /// Whether there is evidence that the log was compacted.
    pub(crate) compacted: bool,
    /// First offset of each leader epoch.
    pub(crate) epochs: Vec<(i32, i64)>,
    /// Producers with transactional data after their last marker.
    pub(crate) with_data: HashSet<i64>,
    /// Findings that are normal in a compacted log.
    pub(crate) of_compaction: Vec<Finding>,
}

impl LogState {
    /// Adds the findings that are normal in a compacted log to the report. The evidence of compaction may be in any
    /// segment, so all must have been read.
    pub(crate) fn judge(&mut self, report: &mut Report) {
        for finding in std::mem::take(&mut self.of_compaction) {
            let severity = if self.compacted { Severity::Info } else { finding.severity };
            report.add(Finding { severity, ..finding });
        }
    }

    /// Notes the transactional data of a batch. For a marker, returns whether there was any data before it.
    fn note_data(&mut self, header: &BatchHeader) -> bool {
        if header.is_control() {
            return self.with_data.remove(&header.producer_id());
        }
        if header.is_transactional() && header.record_count().is_none_or(|count| count > 0) {
            self.with_data.insert(header.producer_id());
        }
        false
    }
}

/// A segment to check.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SegmentPlace<'a> {
    pub(crate) path: &'a Location,
    /// `None` for a file not named after an offset, whose indexes are not checked.
    pub(crate) base_offset: Option<i64>,
    /// Whether it is the last segment of the log, to which a broker may be writing.
    pub(crate) is_last: bool,
}

/// Checks a segment.
pub(crate) fn check(
    place: SegmentPlace<'_>,
    log: &mut LogState,
    limits: &Limits,
    progress: &mut Progress<'_>,
    report: &mut Report,
) -> Result<()> {
    let indexes = match place.base_offset {
        Some(base_offset) => IndexChecks::open(place.path, base_offset, place.is_last, report)?,
        None => IndexChecks::default(),
    };
    let floor = Floor::at(log.end_offset);
    let mut check = SegmentCheck {
        place,
        log,
        limits,
        progress,
        report,
        indexes,
        scratch: Scratch::new(),
        len: place.path.len()?,
        max_timestamp: NO_TIMESTAMP,
        last_offset: None,
        end: 0,
        suspect: None,
        gap: None,
        gap_count: 0,
        aborted: Vec::new(),
        after_damage: false,
        floor,
    };
    walk(place.path, limits, &mut check)?;
    check.finish()
}

struct SegmentCheck<'a, 'p> {
    place: SegmentPlace<'a>,
    log: &'a mut LogState,
    limits: &'a Limits,
    progress: &'a mut Progress<'p>,
    report: &'a mut Report,
    indexes: IndexChecks,
    scratch: Scratch,
    /// Length of the file in bytes.
    len: u64,
    /// Largest timestamp so far.
    max_timestamp: i64,
    /// Largest last offset so far.
    last_offset: Option<i64>,
    /// End position of the last batch or corruption.
    end: u64,
    /// Position of a batch after a gap, and the offset expected there. The next batch shows whether the batch's offset
    /// is corrupt.
    suspect: Option<(u64, i64)>,
    /// The first gap between batches: the expected offset, the offset of the next batch and its position.
    gap: Option<(i64, i64, u64)>,
    gap_count: u64,
    /// The transactions that markers abort, and whether they have data.
    aborted: Vec<(AbortedTransaction, bool)>,
    /// Whether the bytes before the next batch are corrupt.
    after_damage: bool,
    /// The smallest offset that a batch after corruption can have.
    floor: Floor,
}

impl SegmentCheck<'_, '_> {
    fn add(&mut self, severity: Severity, kind: &'static str, place: (u64, Option<i64>), message: impl Into<String>) {
        let (position, offset) = place;
        let (path, message) = (self.place.path.to_path_buf(), message.into());
        self.report.add(Finding { severity, kind, path, position: Some(position), offset, message });
    }

    /// Checks that the offsets of a batch are in the range of the segment and after those of the previous batch.
    fn check_offsets(&mut self, batch: &Batch<'_>, first: i64) {
        let (position, last) = (batch.position(), batch.last_offset());
        let place = (position, Some(first));
        if last < first {
            let message = format!("the batch ends at offset {last}, before its first offset: readers stop here");
            self.add(Severity::Error, "offset_order", place, message);
        }
        if let Some(base) = self.place.base_offset {
            let relative = last.checked_sub(base).unwrap_or(i64::MAX);
            if !(0..=i64::from(i32::MAX)).contains(&relative) {
                let message = format!(
                    "the batch ends at offset {last}, which is outside the range of the indexes of a segment with \
                     base offset {base}: a broker splits the segment when it recovers, or does not start; salvage \
                     keeps the batches"
                );
                self.add(Severity::Error, "offset_overflow", place, message);
            } else if first < base {
                self.add(
                    Severity::Warning,
                    "offset_below_base",
                    place,
                    format!("the batch is below the offset in the segment's name, {base}"),
                );
            }
        }
        let Some(expected) = self.log.end_offset else { return };
        if first < expected {
            let (at, offset) = match self.suspect {
                Some((at, before)) if first >= before => (at, None), // the previous offset is the wrong one
                _ => (position, Some(first)),
            };
            let message = format!(
                "the batch starts at offset {first}, but the previous one ends at {}: consumers receive some records \
                 twice or not at all; salvage keeps the batches that are in order",
                expected.saturating_sub(1)
            );
            self.add(Severity::Error, "offset_order", (at, offset), message);
            self.suspect = None;
        } else if first > expected && self.last_offset.is_some() {
            // a gap after corruption consists of lost offsets
            if !self.after_damage {
                self.gap.get_or_insert((expected, first, position));
                self.gap_count = self.gap_count.saturating_add(1);
            }
            self.suspect = Some((position, expected));
        } else {
            self.suspect = None;
        }
    }

    /// Checks every record. Returns their largest timestamp.
    fn check_records(&mut self, batch: &Batch<'_>, first: i64) -> i64 {
        let position = batch.position();
        let mut records =
            RecordSummary { max_timestamp: NO_TIMESTAMP, count: 0, last: None, outside: None, unordered: None };
        if let Err(error) = records.read(batch, first, &mut self.scratch, self.limits) {
            let (severity, advice) = match error.kind() {
                ErrorKind::Limit { .. } => (Severity::Warning, "brokers and consumers do not have this limit"),
                _ => (Severity::Error, "the checksum is correct, so a broker keeps the batch, but consumers stop here"),
            };
            let kind = error.kind().name();
            let message = format!("record {} cannot be decoded: {}; {advice}", records.count, error.kind());
            self.add(severity, kind, (error.position().byte.unwrap_or(position), Some(first)), message);
        }
        self.report.record_count = self.report.record_count.saturating_add(records.count);
        if let Some(offset) = records.outside {
            let message =
                format!("the record's offset is outside the range of its batch, {first} to {}", batch.last_offset());
            self.add(Severity::Error, "record_offset", (position, Some(offset)), message);
        }
        if let Some(offset) = records.unordered {
            let message = "the record's offset is not above that of the previous record";
            self.add(Severity::Warning, "record_offset_order", (position, Some(offset)), message);
        }
        if records.max_timestamp > batch.max_timestamp() && batch.magic() > 0 {
            let message = format!(
                "a record has timestamp {}, but the largest in the batch header is {}: lookups by time miss the record",
                records.max_timestamp,
                batch.max_timestamp()
            );
            self.add(Severity::Warning, "record_timestamp", (position, Some(first)), message);
        }
        records.max_timestamp
    }

    /// Updates leader epochs, producers and transactions with a batch.
    fn replay(&mut self, batch: &Batch<'_>, first: i64) {
        let (place, epoch) = ((batch.position(), Some(first)), batch.partition_leader_epoch());
        let latest = self.log.epochs.last().map_or(NO_PARTITION_LEADER_EPOCH, |(epoch, _)| *epoch);
        if epoch > latest {
            self.log.epochs.push((epoch, first));
        } else if (0..latest).contains(&epoch) && batch.magic() >= 2 {
            let message = format!("the batch has leader epoch {epoch}, but an earlier batch has epoch {latest}");
            self.add(Severity::Warning, "leader_epoch_order", place, message);
        }
        match self.log.states.update(batch, &mut self.scratch, self.limits) {
            Ok(aborted) => {
                let has_data = self.log.note_data(batch.header());
                self.aborted.extend(aborted.map(|aborted| (aborted, has_data)));
            }
            Err(error) => {
                let message = format!(
                    "the transaction marker cannot be decoded: {}; a broker truncates the log after it",
                    error.kind()
                );
                self.add(Severity::Error, "control_record", place, message);
            }
        }
    }

    fn finish(mut self) -> Result<()> {
        if let Some((expected, first, position)) = self.gap {
            self.log.compacted = true;
            let last = first.saturating_sub(1);
            let message = match self.gap_count {
                1 => {
                    let offsets = offsets_are(expected, last);
                    format!("{offsets} missing between batches: normal after compaction or salvage")
                }
                count => format!(
                    "{count} gaps between batches, the first from offset {expected} to {last}: normal after \
                     compaction or salvage"
                ),
            };
            self.add(Severity::Info, "offset_gap", (position, Some(expected)), message);
        }
        if let Some(check) = self.indexes.offset.take() {
            let last_offset = if self.place.is_last { i64::MAX } else { self.last_offset.unwrap_or(-1) };
            if let Some(entry) = check.finish(self.end, last_offset, self.report)? {
                self.add_missing_end(entry);
            }
        }
        if let Some(mut check) = self.indexes.time.take() {
            if self.after_damage {
                check.skip(i64::MAX, self.report)?;
            }
            check.finish(self.max_timestamp, self.place.is_last, self.report)?;
        } else if self.place.base_offset.is_some() {
            TimeCheck::missing(self.place.path, self.max_timestamp, self.report);
        }
        if self.place.base_offset.is_some() {
            self.check_transactions();
        }
        Ok(())
    }

    /// Reports a segment that ends before a batch of its index. The index is all that shows it.
    fn add_missing_end(&mut self, entry: OffsetEntry) {
        let message = format!(
            "the offset index has a batch with offset {} at byte {}, but the segment ends at byte {}: its end is missing; \
             copy the segment again from a replica or a backup before an index is rebuilt",
            entry.offset, entry.position, self.end
        );
        self.add(Severity::Error, "segment_end_missing", (self.end, Some(entry.offset)), message);
        self.after_damage = true; // the remaining entries of the time index are right
    }

    /// Compares the transaction index with the markers.
    fn check_transactions(&mut self) {
        let path = self.place.path.with_extension("txnindex");
        let entries = match TransactionIndex::open(&path).and_then(|index| index.entries()) {
            Ok(entries) => entries,
            Err(error) if error.is_not_found() => Vec::new(),
            Err(error) => {
                let message = format!("{}; a broker recovers the segment when it starts", error.kind());
                self.report.about(Severity::Warning, "transaction_index", &path, message);
                return;
            }
        };
        let base_offset = self.place.base_offset.unwrap_or(0);
        if entries.iter().any(|entry| entry.last_offset < base_offset)
            || entries.iter().zip(entries.iter().skip(1)).any(|(one, next)| one.last_offset >= next.last_offset)
        {
            let message =
                "entries are out of order or below the base offset: a broker recovers the segment when it starts";
            self.report.about(Severity::Warning, "transaction_index", &path, message);
        }
        if !self.log.replayed {
            return;
        }
        // compaction may have removed the transaction's first batches, which the entry still names
        let key = |one: &AbortedTransaction| (one.producer_id, one.last_offset);
        let (mut indexed, mut marked) = (HashMap::new(), HashMap::new());
        for entry in &entries {
            let least: &mut i64 = indexed.entry(key(entry)).or_insert(entry.first_offset);
            *least = entry.first_offset.min(*least);
        }
        for (one, _) in &self.aborted {
            let largest: &mut i64 = marked.entry(key(one)).or_insert(one.first_offset);
            *largest = one.first_offset.max(*largest);
        }
        // a transaction without data, for instance after filtering, affects no consumer
        let with_data = self.aborted.iter().filter(|(_, has_data)| *has_data).map(|(one, _)| one);
        let is_missing =
            |one: &&AbortedTransaction| indexed.get(&key(one)).is_none_or(|&first| first > one.first_offset);
        for missing in with_data.filter(is_missing) {
            let (producer, first) = (missing.producer_id, missing.first_offset);
            let message = format!(
                "the transaction of producer {producer} that started at offset {first} was aborted, but no entry \
                 lists it: read_committed consumers receive its records; rebuild_indexes replaces the index"
            );
            let (path, offset) = (path.to_path_buf(), Some(missing.last_offset));
            let (severity, kind) = (Severity::Error, "aborted_transaction_missing");
            self.report.add(Finding { severity, kind, path, position: None, offset, message });
        }
        let is_unknown =
            |entry: &&AbortedTransaction| marked.get(&key(entry)).is_none_or(|&first| first < entry.first_offset);
        for unknown in entries.iter().filter(is_unknown) {
            let message = "no marker aborts this transaction: normal if compaction removed the marker".to_owned();
            let (path, offset) = (path.to_path_buf(), Some(unknown.last_offset));
            let (severity, kind) = (Severity::Warning, "aborted_transaction_unknown");
            self.log.of_compaction.push(Finding { severity, kind, path, position: None, offset, message });
        }
    }

    fn before(&self) -> Before {
        Before { last_offset: self.last_offset, max_timestamp: self.max_timestamp }
    }
}

impl Visitor for SegmentCheck<'_, '_> {
    fn batch(&mut self, batch: &Batch<'_>) -> Result<()> {
        self.report.batch_count = self.report.batch_count.saturating_add(1);
        let stored = batch.header().stored_base_offset;
        let first = batch.first_offset(&mut self.scratch, self.limits).unwrap_or(stored);
        self.check_offsets(batch, first);
        let max_timestamp = self.check_records(batch, first);
        self.replay(batch, first);
        let before = self.before();
        if let Some(check) = &mut self.indexes.offset {
            check.batch(batch, before, self.report)?;
        }
        let after_damage = std::mem::take(&mut self.after_damage);
        if let Some(check) = &mut self.indexes.time {
            if after_damage {
                check.skip(first, self.report)?;
            }
            check.batch(batch, max_timestamp, before, self.report)?;
        }
        self.log.compacted |= is_compacted(batch);
        self.max_timestamp = self.max_timestamp.max(batch.max_timestamp());
        self.last_offset = self.last_offset.max(Some(batch.last_offset()));
        self.log.end_offset = Some(batch.next_offset());
        self.floor.pass(batch.header());
        self.end = batch.position().saturating_add(u64_of(batch.size()));
        self.progress.advance(u64_of(batch.size()))
    }

    fn corrupt_bytes(&mut self, corruption: Corruption, length: u64) -> Result<()> {
        let end = corruption.position.saturating_add(length);
        // everything after the truncation is deleted, whatever the corruption is
        let is_tail = matches!(corruption.reason, "zero_tail" | "partial_batch") && end >= self.len;
        let (severity, advice) = match corruption.reason {
            _ if is_tail && self.place.path.is_finished() => (
                Severity::Error,
                "brokers copy only complete segments, so the copy is corrupt, and records may be missing",
            ),
            "zero_tail" if self.indexes.offset.as_ref().is_some_and(|check| check.points_before(end)) => {
                (Severity::Error, "but the index points to batches there: they are lost")
            }
            "zero_tail" if self.place.is_last => {
                (Severity::Info, "normal for a running or killed broker, which removes them when it recovers")
            }
            "partial_batch" if self.place.is_last && end >= self.len => {
                (Severity::Error, "a broker truncates the log here when it recovers; nothing before it is lost")
            }
            _ => (
                Severity::Error,
                "a broker that recovers truncates the log here and deletes all later segments; salvage keeps all \
                 complete batches",
            ),
        };
        let place = self.place.path.place_in_whole(corruption.position).map(|place| format!("; {place}"));
        let place = place.unwrap_or_default();
        let message = format!("{length} bytes are not a batch: {}; {advice}{place}", corruption.message);
        self.add(severity, corruption.reason, (corruption.position, self.log.end_offset), message);
        if corruption.reason != "zero_tail" {
            (self.log.replayed, self.after_damage) = (false, true);
            if let Some(check) = &mut self.indexes.offset {
                check.skip(end, self.report)?;
            }
            self.end = end;
        }
        self.progress.advance(length)
    }

    fn next_offset(&self) -> Option<i64> {
        self.floor.least()
    }
}

/// Whether compaction removed records of a batch: producers write one for each of its offsets.
fn is_compacted(batch: &Batch<'_>) -> bool {
    let offsets = batch.next_offset().saturating_sub(batch.header().stored_base_offset);
    let is_sparse = batch.record_count().is_some_and(|count| i64::from(count) < offsets);
    batch.delete_horizon_ms().is_some() || (batch.magic() >= 2 && is_sparse)
}

/// Properties of the records of a batch.
struct RecordSummary {
    max_timestamp: i64,
    count: u64,
    last: Option<i64>,
    /// The first offset that is outside the range of the batch.
    outside: Option<i64>,
    /// The first offset that is not above the previous one.
    unordered: Option<i64>,
}

impl RecordSummary {
    fn read(&mut self, batch: &Batch<'_>, first: i64, scratch: &mut Scratch, limits: &Limits) -> Result<()> {
        for record in batch.records(scratch, limits)? {
            let record = record?;
            read_record(batch, &record)?;
            let offset = record.offset();
            if !(first..=batch.last_offset()).contains(&offset) {
                self.outside.get_or_insert(offset);
            }
            if self.last.is_some_and(|last| offset <= last) {
                self.unordered.get_or_insert(offset);
            }
            self.last = Some(offset);
            self.max_timestamp = self.max_timestamp.max(record.timestamp());
            self.count = self.count.saturating_add(1);
        }
        Ok(())
    }
}
