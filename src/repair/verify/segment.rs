//! One segment: every batch and record, and the indexes beside it.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use crate::compression::Scratch;
use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Batch;
use crate::format::header::{BatchHeader, NO_PARTITION_LEADER_EPOCH, NO_TIMESTAMP};
use crate::io::Progress;
use crate::limits::Limits;
use crate::log::index::{AbortedTransaction, TransactionIndex};
use crate::log::producer::ProducerStates;
use crate::log::resync::Floor;
use crate::num::u64_of;
use crate::repair::verify::indexes::{Before, IndexChecks, TimeCheck};
use crate::repair::verify::report::{Finding, Report, Severity};
use crate::repair::{Fault, Visitor, read_record, walk};

/// What a partition knows when it comes to a segment, and what the segment adds.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// The offset after the last batch.
    pub(crate) end_offset: Option<i64>,
    /// What a replay knows of the producers.
    pub(crate) states: ProducerStates,
    /// Whether the replay saw all: it began at the log's start or at a snapshot, and nothing was damaged since.
    pub(crate) replayed: bool,
    /// Whether something says that the log was compacted.
    pub(crate) compacted: bool,
    /// First offset of each leader epoch.
    pub(crate) epochs: Vec<(i32, i64)>,
    /// Producers of whose transaction data was met, and no marker since.
    pub(crate) with_data: HashSet<i64>,
}

impl Log {
    /// Takes note of transactional data; of a marker, whether there was any before it.
    fn met_data(&mut self, header: &BatchHeader) -> bool {
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
    pub(crate) path: &'a Path,
    /// `None` for a file with another name: its indexes are not looked for.
    pub(crate) base_offset: Option<i64>,
    /// Whether it is the log's last, which a broker may be writing.
    pub(crate) is_last: bool,
}

/// Checks a segment.
pub(crate) fn check(
    place: SegmentPlace<'_>,
    log: &mut Log,
    limits: &Limits,
    progress: &mut Progress<'_>,
    report: &mut Report,
) -> Result<()> {
    let indexes = match place.base_offset {
        Some(base_offset) => IndexChecks::open(place.path, base_offset, report)?,
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
        len: fs::metadata(place.path).map_err(|error| Error::from(error).with_path(place.path))?.len(),
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
    log: &'a mut Log,
    limits: &'a Limits,
    progress: &'a mut Progress<'p>,
    report: &'a mut Report,
    indexes: IndexChecks,
    scratch: Scratch,
    /// Bytes of the file.
    len: u64,
    /// Largest timestamp by now.
    max_timestamp: i64,
    /// Largest last offset by now.
    last_offset: Option<i64>,
    /// Where the last batch or damage ends.
    end: u64,
    /// A batch after a gap, and the offset that was expected there: the next batch tells whether its offset is wrong.
    suspect: Option<(u64, i64)>,
    /// The first gap between batches: the expected offset, the offset of the next batch and its position.
    gap: Option<(i64, i64, u64)>,
    gap_count: u64,
    /// What markers abort, and whether data of the transaction was met.
    aborted: Vec<(AbortedTransaction, bool)>,
    /// Whether the bytes before the next batch are damaged.
    after_damage: bool,
    /// The least offset of the next batch, for where damage is passed over.
    floor: Floor,
}

impl SegmentCheck<'_, '_> {
    fn add(&mut self, severity: Severity, kind: &'static str, place: (u64, Option<i64>), message: impl Into<String>) {
        let (position, offset) = place;
        let (path, message) = (self.place.path.to_path_buf(), message.into());
        self.report.add(Finding { severity, kind, path, position: Some(position), offset, message });
    }

    /// Offsets within the segment and after the batch before.
    fn check_offsets(&mut self, batch: &Batch<'_>, first: i64) {
        let (position, last) = (batch.position(), batch.last_offset());
        let place = (position, Some(first));
        if last < first {
            let message = format!("the batch ends at offset {last}, before its first: no reader gets past it");
            self.add(Severity::Error, "offset_order", place, message);
        }
        if let Some(base) = self.place.base_offset {
            let relative = last.checked_sub(base).unwrap_or(i64::MAX);
            if !(0..=i64::from(i32::MAX)).contains(&relative) {
                let message = format!(
                    "the batch ends at offset {last}, which the indexes of a segment with base offset {base} can't say: a \
                     broker splits the segment when it recovers, or does not start; salvage keeps the batches"
                );
                self.add(Severity::Error, "offset_overflow", place, message);
            } else if first < base {
                self.add(Severity::Warning, "offset_below_base", place, format!("the segment's name says {base}"));
            }
        }
        let Some(expected) = self.log.end_offset else { return };
        if first < expected {
            let (at, offset) = match self.suspect {
                Some((at, before)) if first >= before => (at, None), // the batch before is the one that is out of place
                _ => (position, Some(first)),
            };
            let message = format!(
                "a batch begins at offset {first}, the one before it ends at {}: consumers get offsets twice or not at \
                 all; salvage keeps the batches that are in order",
                expected.saturating_sub(1)
            );
            self.add(Severity::Error, "offset_order", (at, offset), message);
            self.suspect = None;
        } else if first > expected && self.last_offset.is_some() {
            // a gap after corruption is what was lost
            if !self.after_damage {
                self.gap.get_or_insert((expected, first, position));
                self.gap_count = self.gap_count.saturating_add(1);
            }
            self.suspect = Some((position, expected));
        } else {
            self.suspect = None;
        }
    }

    /// Every record. Returns their largest timestamp.
    fn check_records(&mut self, batch: &Batch<'_>, first: i64) -> i64 {
        let position = batch.position();
        let mut records = Records { max_timestamp: NO_TIMESTAMP, count: 0, last: None, outside: None, unordered: None };
        if let Err(error) = records.read(batch, first, &mut self.scratch, self.limits) {
            let (severity, advice) = match error.kind() {
                ErrorKind::Limit { .. } => (Severity::Warning, "brokers and consumers know no such limit"),
                _ => (Severity::Error, "the checksum is right, so a broker keeps the batch and consumers stop here"),
            };
            let kind = error.kind().name();
            let message = format!("record {} can't be read: {}; {advice}", records.count, error.kind());
            self.add(severity, kind, (error.position().byte.unwrap_or(position), Some(first)), message);
        }
        self.report.record_count = self.report.record_count.saturating_add(records.count);
        if let Some(offset) = records.outside {
            let message = format!("the record's offset is outside the batch's, {first} to {}", batch.last_offset());
            self.add(Severity::Error, "record_offset", (position, Some(offset)), message);
        }
        if let Some(offset) = records.unordered {
            let message = "the record's offset is not above that of the record before it";
            self.add(Severity::Warning, "record_offset_order", (position, Some(offset)), message);
        }
        if records.max_timestamp > batch.max_timestamp() && batch.magic() > 0 {
            let message = format!(
                "a record has timestamp {}, the batch says that the largest is {}: lookups by time pass it by",
                records.max_timestamp,
                batch.max_timestamp()
            );
            self.add(Severity::Warning, "record_timestamp", (position, Some(first)), message);
        }
        records.max_timestamp
    }

    /// Leader epochs, producers and transactions.
    fn replay(&mut self, batch: &Batch<'_>, first: i64) {
        let (place, epoch) = ((batch.position(), Some(first)), batch.partition_leader_epoch());
        let latest = self.log.epochs.last().map_or(NO_PARTITION_LEADER_EPOCH, |(epoch, _)| *epoch);
        if epoch > latest {
            self.log.epochs.push((epoch, first));
        } else if epoch < latest && batch.magic() >= 2 {
            let message = format!("leader epoch {epoch} after epoch {latest}");
            self.add(Severity::Warning, "leader_epoch_order", place, message);
        }
        match self.log.states.update(batch, &mut self.scratch, self.limits) {
            Ok(aborted) => {
                let has_data = self.log.met_data(batch.header());
                self.aborted.extend(aborted.map(|aborted| (aborted, has_data)));
            }
            Err(error) => {
                let message =
                    format!("the transaction marker can't be read: {}; a broker cuts the log after it", error.kind());
                self.add(Severity::Error, "control_record", place, message);
            }
        }
    }

    fn finish(mut self) -> Result<()> {
        if let Some((expected, first, position)) = self.gap {
            self.log.compacted = true;
            let last = first.saturating_sub(1);
            let message = match self.gap_count {
                1 => format!("offsets {expected} to {last} are missing between batches: normal in a compacted log"),
                count => format!(
                    "{count} gaps between batches, the first from offset {expected} to {last}: normal in a compacted log"
                ),
            };
            self.add(Severity::Info, "offset_gap", (position, Some(expected)), message);
        }
        if let Some(check) = self.indexes.offset.take() {
            check.finish(self.end, self.report)?;
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

    /// The transaction index against the markers.
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
            let message = "entries are out of order or below the segment: a broker recovers the segment when it starts";
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
        // without data, as where it was filtered out, nobody gets anything
        let with_data = self.aborted.iter().filter(|(_, has_data)| *has_data).map(|(one, _)| one);
        let is_missing =
            |one: &&AbortedTransaction| indexed.get(&key(one)).is_none_or(|&first| first > one.first_offset);
        for missing in with_data.filter(is_missing) {
            let (producer, first) = (missing.producer_id, missing.first_offset);
            let message = format!(
                "the transaction of producer {producer} that began at offset {first} was aborted, and no entry says so: \
                 consumers of committed records get it; rebuild_indexes makes the index anew"
            );
            let (path, offset) = (path.clone(), Some(missing.last_offset));
            let (severity, kind) = (Severity::Error, "aborted_transaction_missing");
            self.report.add(Finding { severity, kind, path, position: None, offset, message });
        }
        let severity = if self.log.compacted { Severity::Info } else { Severity::Warning };
        let is_unknown =
            |entry: &&AbortedTransaction| marked.get(&key(entry)).is_none_or(|&first| first < entry.first_offset);
        for unknown in entries.iter().filter(is_unknown) {
            let message = "no marker aborts this transaction: normal where compaction removed it".to_owned();
            let (path, offset, kind) = (path.clone(), Some(unknown.last_offset), "aborted_transaction_unknown");
            self.report.add(Finding { severity, kind, path, position: None, offset, message });
        }
    }

    fn before(&self) -> Before {
        Before { last_offset: self.last_offset, max_timestamp: self.max_timestamp }
    }
}

impl Visitor for SegmentCheck<'_, '_> {
    fn batch(&mut self, batch: &Batch<'_>) -> Result<()> {
        self.report.batch_count = self.report.batch_count.saturating_add(1);
        let stored = batch.header().base_offset;
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
        if batch.delete_horizon_ms().is_some() || (batch.magic() >= 2 && batch.record_count() == Some(0)) {
            self.log.compacted = true;
        }
        self.max_timestamp = self.max_timestamp.max(batch.max_timestamp());
        self.last_offset = self.last_offset.max(Some(batch.last_offset()));
        self.log.end_offset = Some(batch.next_offset());
        self.floor.pass(batch.header());
        self.end = batch.position().saturating_add(u64_of(batch.size()));
        self.progress.advance(u64_of(batch.size()))
    }

    fn damage(&mut self, fault: Fault, length: u64) -> Result<()> {
        let end = fault.position.saturating_add(length);
        // what follows a cut is deleted, whatever was cut
        let (severity, advice) = match fault.reason {
            "zero_tail" if self.place.is_last => {
                (Severity::Info, "a broker that runs or was killed leaves it, and cuts it when it recovers")
            }
            "partial_batch" if self.place.is_last && end >= self.len => {
                (Severity::Error, "a broker cuts the log here when it recovers, nothing before it is lost")
            }
            _ => (
                Severity::Error,
                "a broker that recovers cuts the log here and deletes all later segments; salvage keeps what is whole",
            ),
        };
        let message = format!("{length} bytes are no batch: {}; {advice}", fault.message);
        self.add(severity, fault.reason, (fault.position, self.log.end_offset), message);
        if fault.reason != "zero_tail" {
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

/// What the records of a batch show.
struct Records {
    max_timestamp: i64,
    count: u64,
    last: Option<i64>,
    /// The first offset that is not within the batch's.
    outside: Option<i64>,
    /// The first offset that is not above the one before.
    unordered: Option<i64>,
}

impl Records {
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
