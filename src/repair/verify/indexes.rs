//! Checks the offset and time indexes of a segment while its batches are read.
//!
//! `kafka-dump-log` reports an offset entry as a mismatch unless its offset is the last one of the batch at its
//! position. Brokers before 3.0 wrote other entries, which work as well. An entry is an error if a lookup that uses it
//! would miss a batch: if no batch starts at its position, or if an earlier batch has its offset or a larger one. The
//! same applies to a time index entry, if an earlier batch has its timestamp or a larger one.

use std::path::Path;

use crate::error::{Error, Result};
use crate::format::header::{BatchHeader, NO_TIMESTAMP};
use crate::io::Location;
use crate::log::index::{OffsetEntry, OffsetIndex, TimeEntry, TimeIndex};
use crate::repair::verify::report::{Finding, Report, Severity};

/// An index is reported as sparse if two entries are more than this many bytes apart. A broker's default is 4096.
const SPARSE_LEN: u64 = 1 << 20;
const OFFSET_ENTRY_LEN: u64 = 8;
const TIME_ENTRY_LEN: u64 = 12;

const REBUILD: &str = "rebuild_indexes writes a new one";

/// The state of the log before a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Before {
    /// Last offset of the earlier batches.
    pub(crate) last_offset: Option<i64>,
    /// Largest timestamp of the earlier batches.
    pub(crate) max_timestamp: i64,
}

/// Checks an offset index while the batches are read.
pub(crate) struct OffsetCheck {
    index: OffsetIndex,
    slot: u64,
    current: Option<OffsetEntry>,
    previous: Option<OffsetEntry>,
    largest_gap: u64,
}

impl OffsetCheck {
    /// Opens the index. Reports a missing one. A broker creates that of an empty log with the first batch.
    pub(crate) fn open(
        path: &Location,
        base_offset: i64,
        is_of_empty_log: bool,
        report: &mut Report,
    ) -> Result<Option<Self>> {
        let index = match OffsetIndex::open(path, Some(base_offset)) {
            Ok(index) => index,
            Err(error) if error.is_not_found() && is_of_empty_log => {
                note_missing(Severity::Info, path, report);
                return Ok(None);
            }
            Err(error) => {
                missing(&error, path, report);
                return Ok(None);
            }
        };
        let (slots, entries) = (index.slot_count(), index.entry_count());
        check_len(path, OFFSET_ENTRY_LEN, slots, entries, report)?;
        let current = index.entry(0)?;
        Ok(Some(Self { index, slot: 0, current, previous: None, largest_gap: 0 }))
    }

    /// Whether an entry after the batches that were checked points to a position before `end`.
    pub(crate) fn points_before(&self, end: u64) -> bool {
        self.current.is_some_and(|entry| position_of(entry) < end)
    }

    fn advance(&mut self, entry: OffsetEntry, report: &mut Report) -> Result<()> {
        if self.previous.is_some_and(|previous| previous.offset >= entry.offset) {
            let message =
                format!("the entry's offset is not above that of the previous entry, so lookups fail; {REBUILD}");
            self.add(Severity::Error, "index_order", entry, message, report);
        }
        let last = self.previous.map_or(0, position_of);
        self.largest_gap = self.largest_gap.max(position_of(entry).saturating_sub(last));
        self.previous = Some(entry);
        self.slot = self.slot.saturating_add(1);
        self.current = self.index.entry(self.slot)?;
        Ok(())
    }

    fn add(&self, severity: Severity, kind: &'static str, entry: OffsetEntry, message: String, report: &mut Report) {
        let path = self.index.path().to_path_buf();
        let position = Some(self.slot.saturating_mul(OFFSET_ENTRY_LEN));
        report.add(Finding { severity, kind, path, position, offset: Some(entry.offset), message });
    }

    /// Checks the entries up to a batch.
    pub(crate) fn batch(&mut self, batch: &BatchHeader, before: Before, report: &mut Report) -> Result<()> {
        while let Some(entry) = self.current.filter(|entry| position_of(*entry) <= batch.position()) {
            let (position, last_offset) = (entry.position, batch.last_offset());
            if position_of(entry) < batch.position() {
                let message = format!("no batch starts at byte {position}, to which the entry points; {REBUILD}");
                self.add(Severity::Error, "index_position", entry, message, report);
            } else if before.last_offset.is_some_and(|last| last >= entry.offset) {
                let message = format!(
                    "a batch before byte {position} has this offset or a larger one, so lookups miss it; {REBUILD}"
                );
                self.add(Severity::Error, "index_mismatch", entry, message, report);
            } else if entry.offset != last_offset {
                let message = format!(
                    "the batch at byte {position} ends at offset {last_offset}; lookups work, but kafka-dump-log \
                     reports a mismatch: normal after brokers before 3.0 and appends of several batches"
                );
                self.add(Severity::Info, "index_offset", entry, message, report);
            }
            self.advance(entry, report)?;
        }
        Ok(())
    }

    /// Skips the entries that point to corruption before `end`.
    pub(crate) fn skip(&mut self, end: u64, report: &mut Report) -> Result<()> {
        while let Some(entry) = self.current.filter(|entry| position_of(*entry) < end) {
            self.advance(entry, report)?;
        }
        Ok(())
    }

    /// Checks the remaining entries. The log ends at `end`. Returns the last entry of a batch that the log must have had,
    /// with an offset after `last_offset`. That of the log's last segment need not have been on the disk: for it, entries
    /// are only wrong, and `last_offset` is `i64::MAX`.
    pub(crate) fn finish(mut self, end: u64, last_offset: i64, report: &mut Report) -> Result<Option<OffsetEntry>> {
        let mut missing = None;
        while let Some(entry) = self.current {
            if entry.offset > last_offset {
                missing = Some(entry);
                self.advance(entry, report)?;
                continue;
            }
            let message = format!("the entry points to byte {}, but the log ends at {end}; {REBUILD}", entry.position);
            self.add(Severity::Error, "index_position", entry, message, report);
            self.advance(entry, report)?;
        }
        let last = self.previous.map_or(0, position_of);
        let gap = self.largest_gap.max(end.saturating_sub(last));
        if gap > SPARSE_LEN {
            let message = format!("two entries are {gap} bytes apart, so a lookup may read that many bytes; {REBUILD}");
            report.about(Severity::Info, "index_sparse", self.index.path(), message);
        }
        Ok(missing)
    }
}

fn position_of(entry: OffsetEntry) -> u64 {
    u64::from(entry.position.cast_unsigned())
}

/// Checks a time index while the batches are read.
pub(crate) struct TimeCheck {
    index: TimeIndex,
    slot: u64,
    current: Option<TimeEntry>,
    previous: Option<TimeEntry>,
}

impl TimeCheck {
    /// Opens the index. A missing one is reported later, because a log without timestamps needs none.
    pub(crate) fn open(path: &Location, base_offset: i64, report: &mut Report) -> Result<Option<Self>> {
        let index = match TimeIndex::open(path, Some(base_offset)) {
            Ok(index) => index,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => {
                missing(&error, path, report);
                return Ok(None);
            }
        };
        check_len(path, TIME_ENTRY_LEN, index.slot_count(), index.entry_count(), report)?;
        let current = index.entry(0)?;
        Ok(Some(Self { index, slot: 0, current, previous: None }))
    }

    fn advance(&mut self, entry: TimeEntry, report: &mut Report) -> Result<()> {
        if self.previous.is_some_and(|before| before.timestamp >= entry.timestamp || before.offset > entry.offset) {
            let message = format!("the entry is not after the previous entry, so lookups fail; {REBUILD}");
            self.add(Severity::Error, "time_index_order", entry, message, report);
        }
        self.previous = Some(entry);
        self.slot = self.slot.saturating_add(1);
        self.current = self.index.entry(self.slot)?;
        Ok(())
    }

    fn add(&self, severity: Severity, kind: &'static str, entry: TimeEntry, message: String, report: &mut Report) {
        let path = self.index.path().to_path_buf();
        let position = Some(self.slot.saturating_mul(TIME_ENTRY_LEN));
        report.add(Finding { severity, kind, path, position, offset: Some(entry.offset), message });
    }

    /// Checks the entries up to a batch. `max_timestamp` is the largest timestamp of its records that could be
    /// decoded.
    pub(crate) fn batch(
        &mut self,
        batch: &BatchHeader,
        max_timestamp: i64,
        before: Before,
        report: &mut Report,
    ) -> Result<()> {
        while let Some(entry) = self.current.filter(|entry| entry.offset <= batch.last_offset()) {
            let (timestamp, last_offset) = (entry.timestamp, batch.last_offset());
            if before.max_timestamp >= timestamp {
                let message = format!(
                    "a batch before the entry's has timestamp {timestamp} or a larger one, so lookups miss it; \
                     {REBUILD}"
                );
                self.add(Severity::Error, "time_index_mismatch", entry, message, report);
            } else if before.max_timestamp.max(max_timestamp).max(batch.max_timestamp()) < timestamp {
                let message = format!("no record up to here has timestamp {timestamp}; {REBUILD}");
                self.add(Severity::Warning, "time_index_timestamp", entry, message, report);
            } else if entry.offset != last_offset {
                let message = format!(
                    "the entry's batch ends at offset {last_offset}; lookups work, but kafka-dump-log does not \
                     find the batch: normal after brokers before 3.0"
                );
                self.add(Severity::Info, "time_index_offset", entry, message, report);
            } else if max_timestamp != timestamp {
                let message = format!(
                    "the batch's largest timestamp is {max_timestamp}, the entry's is {timestamp}; lookups work, but \
                        kafka-dump-log reports a mismatch"
                );
                self.add(Severity::Info, "time_index_value", entry, message, report);
            }
            self.advance(entry, report)?;
        }
        Ok(())
    }

    /// Reports a missing time index.
    pub(crate) fn missing(log: &Location, max_timestamp: i64, report: &mut Report) {
        let path = log.with_extension("timeindex");
        let severity = if max_timestamp == NO_TIMESTAMP { Severity::Info } else { Severity::Warning };
        if !path.exists() {
            note_missing(severity, &path, report);
        }
    }

    /// Skips the entries that point to corrupt batches below an offset.
    pub(crate) fn skip(&mut self, below: i64, report: &mut Report) -> Result<()> {
        while let Some(entry) = self.current.filter(|entry| entry.offset < below) {
            self.advance(entry, report)?;
        }
        Ok(())
    }

    /// Checks the remaining entries. `max_timestamp` is the log's largest timestamp.
    pub(crate) fn finish(mut self, max_timestamp: i64, is_last: bool, report: &mut Report) -> Result<()> {
        while let Some(entry) = self.current {
            let message = format!("no batch has the entry's offset or a larger one; {REBUILD}");
            self.add(Severity::Error, "time_index_mismatch", entry, message, report);
            self.advance(entry, report)?;
        }
        let last = self.previous.map_or(NO_TIMESTAMP, |entry| entry.timestamp);
        if last < max_timestamp {
            let severity = if is_last { Severity::Info } else { Severity::Warning };
            let message = format!(
                "the index ends at timestamp {last}, but the log's largest is {max_timestamp}: normal for the last \
                 segment of a running broker, otherwise lookups by time skip this segment; {REBUILD}"
            );
            report.about(severity, "time_index_incomplete", self.index.path(), message);
        }
        Ok(())
    }
}

/// Reports an index that cannot be opened.
fn missing(error: &Error, path: &Path, report: &mut Report) {
    if error.is_not_found() {
        note_missing(Severity::Warning, path, report);
    } else {
        report.about(Severity::Error, "unreadable", path, error.kind().to_string());
    }
}

fn note_missing(severity: Severity, path: &Path, report: &mut Report) {
    let message = format!("the index does not exist; a broker creates it when it starts, or {REBUILD}");
    report.about(severity, "index_missing", path, message);
}

/// Reports incomplete entries, and zeros after the last entry.
fn check_len(path: &Location, entry_len: u64, slots: u64, entries: u64, report: &mut Report) -> Result<()> {
    let len = path.len()?;
    if len != slots.saturating_mul(entry_len) {
        let message =
            format!("the length of {len} bytes is not a multiple of the entry size of {entry_len} bytes; {REBUILD}");
        report.about(Severity::Warning, "index_len", path, message);
    }
    if entries < slots {
        let message = "zeros follow the last entry: normal for a running or killed broker".to_owned();
        report.about(Severity::Info, "index_zero_tail", path, message);
    }
    Ok(())
}

/// The indexes of one segment.
#[derive(Default)]
pub(crate) struct IndexChecks {
    pub(crate) offset: Option<OffsetCheck>,
    pub(crate) time: Option<TimeCheck>,
}

impl IndexChecks {
    pub(crate) fn open(log: &Location, base_offset: i64, is_last: bool, report: &mut Report) -> Result<Self> {
        let is_empty = is_last && log.len()? == 0;
        let beside = |extension: &str| log.with_extension(extension);
        Ok(Self {
            offset: OffsetCheck::open(&beside("index"), base_offset, is_empty, report)?,
            time: TimeCheck::open(&beside("timeindex"), base_offset, report)?,
        })
    }
}
