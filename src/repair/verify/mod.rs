//! [`verify`]: reports problems of a segment, a partition or a log directory, and their consequences.
//!
//! ```text
//! directory.rs  meta.properties, checkpoints, names of directories
//! partition.rs  order of segments, snapshots, leader epochs, names of files
//! segment.rs    batches, records, markers compared with the transaction index
//! indexes.rs    offset and time indexes compared with the batches
//! ```
//!
//! Checks everything that a broker's recovery and `kafka-dump-log` check, and more. Each `.log` is read once from
//! front to back, continuing after corruption. Memory use is one batch and the producers.

mod checkpoints;
mod directory;
mod indexes;
mod partition;
mod report;
mod segment;

pub use report::{Finding, Report, Severity};

use crate::error::{Error, Result};
use crate::io::{Location, Progress};
use crate::limits::Limits;
use crate::log::inventory::{files_of, name_of};
use crate::store::listing::next_segment_base;
use crate::store::names::{
    LogFile, LogFileKind, LogFileState, TopicPartition, parse_base_offset, parse_partition_directory,
};
use crate::store::{refuse_foreign_directory, refuse_foreign_file};
use segment::{LogState, SegmentPlace};

/// Verifies a `.log` file with its indexes, a partition directory, or a log directory with all its partitions.
///
/// Nothing is changed. The report lists all problems, including any corruption.
///
/// # Errors
/// I/O errors; [`ErrorKind::Limit`](crate::ErrorKind::Limit) for a batch over [`Limits::batch_len`] with a correct
/// checksum; the error of a caller that stops the operation.
pub fn verify(path: impl Into<Location>, limits: &Limits, progress: &mut Progress<'_>) -> Result<Report> {
    verify_selected(&path.into(), &|_| true, limits, progress)
}

/// Like [`verify`], for some partitions of a log directory.
///
/// # Errors
/// The errors of [`verify`].
pub(crate) fn verify_selected(
    path: &Location,
    wanted: &dyn Fn(&TopicPartition) -> bool,
    limits: &Limits,
    progress: &mut Progress<'_>,
) -> Result<Report> {
    let mut report = Report::new(path);
    progress.expect(total_len(path)?)?;
    if !path.is_dir() {
        verify_file(path, limits, progress, &mut report)?;
    } else if is_partition(path)? {
        partition::check_partition(path, limits, progress, &mut report)?;
    } else {
        directory::check_directory(path, wanted, limits, progress, &mut report)?;
    }
    progress.finish()?;
    let is_refused = report.findings.iter().any(|finding| finding.kind == "duplicate_segment");
    if report.segment_count == 0 && path.is_dir() && !path.is_layout() && !is_refused {
        refuse_foreign_directory(path)?;
    }
    Ok(report)
}

fn verify_file(path: &Location, limits: &Limits, progress: &mut Progress<'_>, report: &mut Report) -> Result<()> {
    let file = LogFile::parse(&name_of(path));
    if file.is_some_and(|file| file.kind != LogFileKind::Log) {
        let message = format!("{} is verified together with its log: name the .log file", path.display());
        return Err(Error::argument(message));
    }
    if file.is_none() {
        refuse_foreign_file(path)?;
    }
    let base_offset = file.filter(|file| file.state == LogFileState::Live).map(|file| file.base_offset);
    let mut log = LogState { end_offset: base_offset, replayed: base_offset == Some(0), ..LogState::default() };
    partition::count(path, report)?;
    // if the directory cannot be listed, no next segment is known
    let is_last =
        base_offset.is_none_or(|base_offset| !next_segment_base(path, base_offset).is_ok_and(|next| next.is_some()));
    segment::check(SegmentPlace { path, base_offset, is_last }, &mut log, limits, progress, report)?;
    log.judge(report);
    Ok(())
}

/// Whether a directory is a partition directory rather than a log directory.
fn is_partition(path: &Location) -> Result<bool> {
    let is_named_so = parse_partition_directory(path.absolute().name()).is_some();
    if is_named_so && path.is_layout() {
        return Ok(true);
    }
    if files_of(path)?.iter().any(|file| LogFile::parse(&name_of(file)).is_some()) {
        return Ok(true);
    }
    Ok(is_named_so && directory::directories(path)?.is_empty())
}

/// Total size in bytes of the `.log` files to read.
fn total_len(path: &Location) -> Result<u64> {
    if !path.is_dir() {
        return path.len();
    }
    let mut total = 0_u64;
    let mut folders = match directory::directories(path) {
        // what describes the segments of tiered storage is corrupt
        Err(error) if path.may_omit() && !error.is_of_reading() => Vec::new(),
        folders => folders?,
    };
    folders.push(path.clone());
    // directories and files that cannot be read are reported later
    for file in folders.iter().flat_map(|folder| files_of(folder).unwrap_or_default()) {
        if parse_base_offset(&name_of(&file)).is_some() {
            total = total.saturating_add(file.len().unwrap_or(0));
        }
    }
    Ok(total)
}
