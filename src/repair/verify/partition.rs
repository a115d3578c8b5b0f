//! Checks a partition directory: the order of its segments, and the files that do not belong to a segment.

use std::collections::HashMap;
use std::io::{Error as IoError, ErrorKind as IoErrorKind};
use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::io::unfinished::unfinished_write;
use crate::io::{Location, Progress};
use crate::limits::Limits;
use crate::log::checkpoint::{LeaderEpochs, PartitionMetadata};
use crate::log::inventory::{Inventory, name_of};
use crate::log::producer::{ProducerEntry, ProducerSnapshot, ProducerStates};
use crate::plural::offsets_are;
use crate::repair::holes::HOLES;
use crate::repair::verify::report::{Finding, Report, Severity};
use crate::repair::verify::segment::{LogState, SegmentPlace, check};
use crate::store::listing::{COMPRESSED, MISSING_SWAP, NO_FILE, compressed_alone, settled};
use crate::store::names::{
    LEADER_EPOCHS, LogFile, LogFileKind, LogFileState, PARTITION_METADATA, SnapshotFile, parse_base_offset,
    stops_a_broker,
};

/// Files of a partition directory that do not belong to a segment.
const KNOWN: [&str; 4] = [LEADER_EPOCHS, PARTITION_METADATA, "quorum-state", HOLES];

/// Checks a partition. Returns its start and end offsets, which are 0 without a segment, or `None` if the segments are
/// unknown. The end of a log whose last segment can't be read is `i64::MAX`.
pub(crate) fn check_partition(
    directory: &Location,
    limits: &Limits,
    progress: &mut Progress<'_>,
    report: &mut Report,
) -> Result<Option<(i64, i64)>> {
    let inventory = match Inventory::live(directory) {
        // what describes the segments of tiered storage is corrupt
        Err(error) if directory.may_omit() && !error.is_of_reading() => {
            report.about(Severity::Error, "unreadable", directory, error.to_string());
            return Ok(None);
        }
        Err(error) if matches!(error.kind(), ErrorKind::InvalidFile(_)) => {
            report.about(
                Severity::Error,
                "duplicate_segment",
                error.path().unwrap_or(directory),
                error.kind().to_string(),
            );
            return Ok(None);
        }
        inventory => inventory?,
    };
    for omission in directory.warnings()? {
        report.about(Severity::Warning, "omitted_segment", directory, omission);
    }
    check_names(&inventory, report);
    check_unread(directory, report)?;
    check_swap(directory, &inventory, limits, report)?;
    let logs: Vec<(i64, Location)> =
        inventory.of_kind(LogFileKind::Log).map(|(base, path)| (base, path.clone())).collect();
    let Some((start_offset, _)) = logs.first().cloned() else {
        report.about(Severity::Info, "no_segment", directory, "the directory contains no segment");
        return Ok(Some((0, 0)));
    };
    let mut log = LogState { states: ProducerStates::new(), replayed: start_offset == 0, ..LogState::default() };
    let last_base = logs.last().map(|(base, _)| *base);
    for (base_offset, path) in &logs {
        between(*base_offset, path, &mut log, report);
        check_snapshot(&inventory, *base_offset, &mut log, report);
        log.states.set_end_offset(*base_offset);
        log.end_offset = log.end_offset.max(Some(*base_offset));
        let place = SegmentPlace { path, base_offset: Some(*base_offset), is_last: Some(*base_offset) == last_base };
        let checked = count(path, report).and_then(|()| check(place, &mut log, limits, progress, report));
        if let Err(error) = checked {
            unreadable(error, path, report)?;
            (log.replayed, log.end_offset) = (false, None);
        }
    }
    // the end is unknown if the last segment can't be read
    let end_offset = log.end_offset.unwrap_or(i64::MAX);
    check_snapshot(&inventory, end_offset, &mut log, report);
    log.judge(report);
    check_stray_snapshots(&inventory, &logs, end_offset, report);
    check_epochs(directory, &log, end_offset, report);
    check_metadata(directory, report);
    Ok(Some((start_offset, end_offset)))
}

/// Reports a file that cannot be read, so that others are still checked.
pub(crate) fn unreadable(error: Error, path: &Path, report: &mut Report) -> Result<()> {
    if is_unreadable(&error, path, report) { Ok(()) } else { Err(error) }
}

/// Reports a file that can't be read, whose content may be right. Returns whether the error is of this kind.
pub(crate) fn is_unreadable(error: &Error, path: &Path, report: &mut Report) -> bool {
    let is_of_reading = matches!(error.kind(), ErrorKind::Io(io) if is_of_one_file(io));
    if is_of_reading {
        report.about(Severity::Error, "unreadable", path, error.kind().to_string());
    }
    is_of_reading
}

/// Whether other files may be readable: not if the network, or memory or file descriptors of this process, failed.
fn is_of_one_file(error: &IoError) -> bool {
    /// ENOMEM, ENFILE and EMFILE.
    const OF_PROCESS: [i32; 3] = [12, 23, 24];
    match error.raw_os_error() {
        Some(code) => !OF_PROCESS.contains(&code),
        None => matches!(error.kind(), IoErrorKind::PermissionDenied | IoErrorKind::NotFound),
    }
}

/// Counts a segment and its size.
pub(crate) fn count(path: &Location, report: &mut Report) -> Result<()> {
    let len = path.len()?;
    report.segment_count = report.segment_count.saturating_add(1);
    report.byte_count = report.byte_count.saturating_add(len);
    if len > i32::MAX.cast_unsigned().into() {
        let message = format!("the segment has {len} bytes, but a broker opens at most 2^31 - 1; salvage splits it");
        report.about(Severity::Error, "segment_len", path, message);
    }
    Ok(())
}

/// Reports segments that only exist under a name that readers do not read, so that they refuse the directory.
fn check_unread(directory: &Location, report: &mut Report) -> Result<()> {
    let (listed, swap) = settled(directory)?;
    if let Some(swap) = swap {
        report.about(Severity::Error, "interrupted_compaction", &directory.join(swap.to_string()), MISSING_SWAP);
    }
    for path in listed.iter().filter(|path| parse_base_offset(path.name()).is_some()) {
        if path.status_if_there().is_ok_and(|status| status.is_some_and(|status| !status.is_file())) {
            report.about(Severity::Error, "unreadable", path, NO_FILE);
        }
    }
    for path in compressed_alone(&listed) {
        report.about(Severity::Error, "compressed_segment", path, COMPRESSED);
    }
    check_unfinished(directory, &listed, report);
    Ok(())
}

/// Reports a write that has not completed the directory.
pub(crate) fn check_unfinished(directory: &Path, listed: &[Location], report: &mut Report) {
    if let Some(message) = unfinished_write(listed) {
        report.about(Severity::Error, "unfinished_write", directory, message);
    }
}

/// Reports the corrupt output of a compaction, with which a broker would replace complete segments.
fn check_swap(directory: &Location, inventory: &Inventory, limits: &Limits, report: &mut Report) -> Result<()> {
    let is_swap = |file: LogFile| file.state == LogFileState::Swap && file.kind == LogFileKind::Log;
    let Some(swap) = inventory.others.iter().find(|path| LogFile::parse(path.name()).is_some_and(is_swap)) else {
        return Ok(());
    };
    match Inventory::read(directory, limits).and_then(|settled| settled.refuse_damaged_swap()) {
        Err(error) if matches!(error.kind(), ErrorKind::InvalidFile(_)) => {
            let path = error.path().unwrap_or(swap);
            report.about(Severity::Error, "corrupt_swap", path, error.kind().to_string());
            Ok(())
        }
        Err(error) => unreadable(error, swap, report),
        Ok(()) => Ok(()),
    }
}

/// Reports files with unexpected names.
fn check_names(inventory: &Inventory, report: &mut Report) {
    for path in &inventory.others {
        let name = name_of(path);
        if KNOWN.contains(&name.as_str()) || SnapshotFile::parse(&name).is_some() {
            continue;
        }
        if LogFile::parse(&name).is_some_and(|file| file.state != LogFileState::Live) || name.ends_with(".deleted") {
            let message = "left by an interrupted deletion or compaction: a broker cleans up when it starts";
            report.about(Severity::Info, "leftover_file", path, message);
        } else if stops_a_broker(&name) {
            let message = "a broker treats this as a file of a segment, finds no offset in the name and does not \
                start: move the file away";
            report.about(Severity::Error, "file_name", path, message);
        } else {
            report.about(Severity::Info, "unknown_file", path, "not the name of a file that Kafka writes");
        }
    }
    for (file, path) in &inventory.files {
        if name_of(path) != file.to_string() {
            let (severity, consequence) = match file.kind {
                LogFileKind::Log => (Severity::Error, ", so that its records are missing: rename it"),
                _ => (Severity::Warning, ""),
            };
            let message =
                format!("a broker expects a name of 20 digits, {file}, and does not find this file{consequence}");
            report.about(severity, "file_name", path, message);
        }
        let of_segment = !matches!(file.kind, LogFileKind::Log | LogFileKind::ProducerSnapshot);
        if of_segment && !inventory.files.contains_key(&LogFile::live(file.base_offset, LogFileKind::Log)) {
            report.about(
                Severity::Warning,
                "orphan_index",
                path,
                "its .log does not exist: a broker deletes this file when it starts",
            );
        }
    }
}

/// Compares a segment's base offset with the end of the previous segment. A gap is added to the findings that are normal
/// in a compacted log.
fn between(base_offset: i64, path: &Path, log: &mut LogState, report: &mut Report) {
    let Some(expected) = log.end_offset.filter(|expected| *expected != base_offset) else { return };
    let (path, offset) = (path.to_path_buf(), Some(base_offset));
    if expected > base_offset {
        let (severity, kind) = (Severity::Error, "segments_overlap");
        let before = expected.saturating_sub(1);
        let message =
            format!("the previous segment ends at offset {before}: readers of the files return some records twice");
        report.add(Finding { severity, kind, path, position: None, offset, message });
        return;
    }
    let (severity, kind) = (Severity::Warning, "segment_gap");
    let lost = base_offset.saturating_sub(1);
    let offsets = offsets_are(expected, lost);
    let message = format!("{offsets} in no segment: normal after compaction or salvage, otherwise a file is missing");
    log.of_compaction.push(Finding { severity, kind, path, position: None, offset, message });
}

/// Compares the snapshot at an offset with the replayed producers. If these are unknown, the replay starts with the
/// snapshot. A difference is added to the findings that are normal in a compacted log.
fn check_snapshot(inventory: &Inventory, offset: i64, log: &mut LogState, report: &mut Report) {
    let Some(path) = inventory.files.get(&LogFile::live(offset, LogFileKind::ProducerSnapshot)) else { return };
    let snapshot = match ProducerSnapshot::read(path) {
        Ok(snapshot) => snapshot,
        Err(error) if is_unreadable(&error, path, report) => return,
        Err(error) => {
            let message = format!("{}; a broker deletes the file and uses an older snapshot and the log", error.kind());
            report.about(Severity::Warning, "snapshot", path, message);
            return;
        }
    };
    if !log.replayed {
        log.states = ProducerStates::from_snapshot(&snapshot, offset);
        log.replayed = true;
        return;
    }
    let known = log.states.to_snapshot();
    // a snapshot omits producers that were idle for a day
    let known: HashMap<i64, &ProducerEntry> = known.entries.iter().map(|entry| (entry.producer_id, entry)).collect();
    let different = snapshot.entries.iter().find(|entry| known.get(&entry.producer_id) != Some(entry));
    if let Some(entry) = different {
        let producer = entry.producer_id;
        let message = format!("the state of producer {producer} differs from the log: normal in a compacted log");
        let (severity, kind, path) = (Severity::Warning, "snapshot_mismatch", path.to_path_buf());
        log.of_compaction.push(Finding { severity, kind, path, position: None, offset: None, message });
    }
}

fn check_stray_snapshots(inventory: &Inventory, logs: &[(i64, Location)], end_offset: i64, report: &mut Report) {
    for (offset, path) in inventory.of_kind(LogFileKind::ProducerSnapshot) {
        if offset > end_offset {
            let message =
                format!("the snapshot is for offset {offset}, but the log ends at {end_offset}: a broker deletes it");
            report.about(Severity::Warning, "snapshot_beyond_end", path, message);
        } else if offset != end_offset && !logs.iter().any(|(base, _)| *base == offset) {
            report.about(
                Severity::Info,
                "snapshot_stray",
                path,
                "no segment starts at the snapshot's offset: a broker deletes it",
            );
        }
    }
}

/// Compares the file of leader epochs with the batches.
fn check_epochs(directory: &Location, log: &LogState, end_offset: i64, report: &mut Report) {
    let path = directory.join(LEADER_EPOCHS);
    let epochs = match LeaderEpochs::read(&path) {
        Ok(epochs) => epochs,
        Err(error) if error.is_not_found() => {
            report.about(
                Severity::Info,
                "leader_epochs_missing",
                &path,
                "the file does not exist: normal for brokers before 0.11",
            );
            return;
        }
        Err(error) if is_unreadable(&error, &path, report) => return,
        Err(error) => {
            let message = format!("{}; a broker does not start with it: recover rewrites the file", error.kind());
            report.about(Severity::Error, "leader_epochs", &path, message);
            return;
        }
    };
    // the oldest entry moves with the start of the log, and older ones are removed
    let oldest = epochs.entries().first().map_or(-1, |entry| entry.epoch);
    for (epoch, first) in log.epochs.iter().filter(|(epoch, _)| *epoch > oldest) {
        let entry = epochs.entries().iter().find(|entry| entry.epoch == *epoch);
        if entry.is_none_or(|entry| entry.start_offset > *first) {
            let message = format!("a batch of leader epoch {epoch} starts at offset {first}, but no entry lists it");
            let (severity, kind, path) = (Severity::Warning, "leader_epochs_mismatch", path.to_path_buf());
            report.add(Finding { severity, kind, path, position: None, offset: Some(*first), message });
        }
    }
    if let Some(entry) = epochs.latest().filter(|entry| entry.start_offset > end_offset) {
        let message =
            format!("epoch {} starts at offset {}, but the log ends at {end_offset}", entry.epoch, entry.start_offset);
        report.about(Severity::Warning, "leader_epochs_mismatch", &path, message);
    }
}

fn check_metadata(directory: &Location, report: &mut Report) {
    let path = directory.join(PARTITION_METADATA);
    match PartitionMetadata::read(&path) {
        Ok(_) => {}
        Err(error) if error.is_not_found() => {
            report.about(
                Severity::Info,
                "partition_metadata_missing",
                &path,
                "the file does not exist: normal for brokers before 2.8",
            );
        }
        Err(error) if is_unreadable(&error, &path, report) => {}
        Err(error) => {
            let message = format!(
                "{}; a broker does not start with it: remove the file, and the broker creates a new one",
                error.kind()
            );
            report.about(Severity::Error, "partition_metadata", &path, message);
        }
    }
}
