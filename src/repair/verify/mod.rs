//! [`verify`]: what is wrong with a segment, a partition or a log directory, and what that means.
//!
//! ```text
//! directory.rs  meta.properties, checkpoints, names of directories
//! partition.rs  segments in order, snapshots, leader epochs, names of files
//! segment.rs    batches, records, markers against the transaction index
//! indexes.rs    offset and time index against the batches
//! ```
//!
//! Everything that a broker's recovery and `kafka-dump-log` check, and more. Each `.log` is read once, front to back and over
//! damage; memory is one batch and the producers.

mod directory;
mod indexes;
mod partition;
mod report;
mod segment;

use std::fs;
use std::path::Path;

pub use report::{Finding, Report, Severity};

use crate::error::{Error, Result};
use crate::io::Progress;
use crate::limits::Limits;
use crate::log::inventory::{files_of, name_of};
use crate::store::listing::next_segment_base;
use crate::store::names::{
    LogFile, LogFileKind, LogFileState, TopicPartition, parse_base_offset, parse_partition_directory,
};
use crate::store::{refuse_foreign_directory, refuse_foreign_file};
use segment::{Log, SegmentPlace};

/// Verifies a `.log` file with the indexes beside it, a partition directory, or a log directory with all its partitions.
///
/// Nothing is changed. What is found stands in the report, damage of any kind included.
///
/// # Errors
/// A path that can't be read, a batch whose checksum is right but which is over [`Limits::batch_len`], an end by the caller.
pub fn verify(path: impl AsRef<Path>, limits: &Limits, progress: &mut Progress<'_>) -> Result<Report> {
    verify_selected(path.as_ref(), &|_| true, limits, progress)
}

/// Like [`verify`], for some partitions of a log directory.
///
/// # Errors
/// Those of [`verify`].
pub(crate) fn verify_selected(
    path: &Path,
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
    if report.segment_count == 0 && path.is_dir() {
        refuse_foreign_directory(path)?;
    }
    Ok(report)
}

fn verify_file(path: &Path, limits: &Limits, progress: &mut Progress<'_>, report: &mut Report) -> Result<()> {
    let file = LogFile::parse(&name_of(path));
    if file.is_some_and(|file| file.kind != LogFileKind::Log) {
        let message = format!("{} is checked together with its log: name the .log file", path.display());
        return Err(Error::argument(message));
    }
    if file.is_none() {
        refuse_foreign_file(path)?;
    }
    let base_offset = file.filter(|file| file.state == LogFileState::Live).map(|file| file.base_offset);
    let mut log = Log { end_offset: base_offset, replayed: base_offset == Some(0), ..Log::default() };
    partition::count(path, report)?;
    // a directory that can't be listed tells of none
    let is_last =
        base_offset.is_none_or(|base_offset| !next_segment_base(path, base_offset).is_ok_and(|next| next.is_some()));
    segment::check(SegmentPlace { path, base_offset, is_last }, &mut log, limits, progress, report)
}

/// Whether a directory is a partition's and not one of partitions.
fn is_partition(path: &Path) -> Result<bool> {
    if files_of(path)?.iter().any(|file| LogFile::parse(&name_of(file)).is_some()) {
        return Ok(true);
    }
    let absolute = std::path::absolute(path)?;
    Ok(parse_partition_directory(&name_of(&absolute)).is_some() && directory::directories(path)?.is_empty())
}

/// Bytes of all `.log` files that will be read.
fn total_len(path: &Path) -> Result<u64> {
    let len = |path: &Path| {
        fs::metadata(path).map(|metadata| metadata.len()).map_err(|error| Error::from(error).with_path(path))
    };
    if !path.is_dir() {
        return len(path);
    }
    let mut total = 0_u64;
    let mut folders = directory::directories(path)?;
    folders.push(path.to_path_buf());
    // one that can't be listed is told of where it is read
    for file in folders.iter().flat_map(|folder| files_of(folder).unwrap_or_default()) {
        if parse_base_offset(&name_of(&file)).is_some() {
            total = total.saturating_add(len(&file).unwrap_or(0)); // it is told of where it is read
        }
    }
    Ok(total)
}
