//! [`restore`]: turns backups and tiered storage into the log directory of a new broker, with unchanged offsets.
//!
//! ```text
//! SOURCE                          OUT
//! any layout, any store    ─►       <topic>-<partition>/   segments, indexes, producer snapshots, leader epochs,
//!                                                          partition.metadata
//!                                   log-start-offset-checkpoint, recovery-point-offset-checkpoint
//! __consumer_offsets       ─►     <group>.csv              for kafka-consumer-groups --reset-offsets --from-file
//! ```
//!
//! Batches are copied byte for byte. Everything else is computed from them, except the snapshots of producers, which
//! contain producers whose batches the log has lost: those of the source are used if they can be read, and have the same
//! open transactions as the log.
//!
//! A restored log is a prefix of the source. It may end at an offset, or before the first record that is as new as a
//! point in time, even if later records are older. If that is inside a batch, the batch is written again in its own
//! format and codec, with the records before it. A marker after that point is lost too, so that its transaction
//! is open in the result.
//!
//! | finding | effect |
//! |---|---|
//! | offsets between two segments are missing | restored with the gap, reported |
//! | a segment repeats offsets of the one before it | read once, reported |
//! | an object of tiered storage is incomplete or of a deposed leader | omitted, reported |
//! | the new cluster may not serve the partition, or may have lower leader epochs | restored, reported |
//! | the last segment ends inside a batch or in zeros | restored without these bytes, reported |
//! | any other corruption | an error with file and position; nothing is written |
//!
//! `sources` finds the partitions, `plan` describes a restore without reading everything, `partition` writes one
//! partition, `cut` finds its end, `target` has the ids and checkpoints of the new broker, and `offsets` the committed
//! offsets.

mod cut;
mod offsets;
mod options;
mod overlap;
mod partition;
mod plan;
mod report;
mod sources;
mod target;

pub use options::{OpenTransactions, RestoreOptions};
pub use report::{
    OpenTransaction, RestoreCut, RestoreReport, RestoredOffset, RestoredPartition, RestoredSegment, SkippedPartition,
};

use std::path::Path;

use crate::error::{Error, Result};
use crate::io::staged::StagedDirectory;
use crate::io::waiting::map_waiting;
use crate::io::{Location, Progress};
use crate::rewrite::source::RewriteSource;
use offsets::CommittedOffsets;
use partition::PartitionRestore;
use sources::{PartitionSource, Sources};
use target::RestoreTarget;

/// Restores the partitions of a location to a new log directory.
///
/// The location is a log directory or a partition directory, in any layout and store, or a directory that contains log
/// directories at any depth. Internal topics are only restored if [`RestoreOptions::selection`] names them, and
/// `__cluster_metadata` never is. The result appears under its name once it is complete. With
/// [`RestoreOptions::dry_run`], nothing is written, and the report describes the plan: it comes from names, indexes,
/// and a few batches of each segment.
///
/// # Errors
/// - [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if `out` is not empty or inside the source, if
///   there is no partition, if a partition is in several directories, and for wrong options.
/// - Corruption in a segment, with file and position. [`salvage`](crate::repair::salvage) keeps the intact batches of
///   one partition.
/// - I/O errors.
pub fn restore(
    source: impl Into<Location>,
    out: impl AsRef<Path>,
    options: &RestoreOptions,
    progress: &mut Progress<'_>,
) -> Result<RestoreReport> {
    let (source, out): (&Location, &Path) = (&source.into(), out.as_ref());
    options.check(out)?;
    let sources = Sources::find(source, &options.selection)?;
    options.check_partitions(&sources.partitions.iter().map(|one| &one.partition))?;
    let target = RestoreTarget::read(options)?;
    let committed = CommittedOffsets::read(&sources.offsets, options)?;
    let mut report = RestoreReport {
        source: source.to_path_buf(),
        out: out.to_path_buf(),
        dry_run: options.dry_run,
        skipped: sources.skipped,
        warnings: target.warnings(),
        ..RestoreReport::default()
    };
    if options.dry_run {
        progress.advance(0)?;
        // of a store, several at a time, because each waits for requests
        let is_waiting = sources.partitions.iter().any(|one| !one.directory.is_local());
        report.partitions = map_waiting(&sources.partitions, is_waiting, |one| plan::plan(one, options))?;
        target.identify(&mut report);
        target.warn_of_epochs(&mut report, options);
        committed.add_to(&mut report);
        return Ok(report);
    }
    let staged = StagedDirectory::create(source, out)?;
    let csv = options.committed_offsets.as_deref().map(|directory| StagedDirectory::create(source, directory));
    let csv = csv.transpose()?;
    report.partitions = partitions(&sources.partitions, staged.directory(), options, progress)?;
    target.identify(&mut report);
    target.warn_of_epochs(&mut report, options);
    target.write(staged.directory(), &report)?;
    committed.add_to(&mut report);
    if let Some(csv) = &csv {
        offsets::write(csv.directory(), &report.committed_offsets)?;
    }
    progress.finish()?;
    staged.commit()?;
    csv.map_or(Ok(()), StagedDirectory::commit)?;
    Ok(report)
}

/// Writes the partitions to a directory.
fn partitions(
    sources: &[PartitionSource],
    directory: &Path,
    options: &RestoreOptions,
    progress: &mut Progress<'_>,
) -> Result<Vec<RestoredPartition>> {
    let mut opened = Vec::new();
    for one in sources {
        opened.push(RewriteSource::open(&one.directory, &options.limits, true)?);
    }
    progress.expect(opened.iter().fold(0, |sum, source| source.bytes().saturating_add(sum)))?;
    let mut restored = Vec::new();
    for (one, source) in sources.iter().zip(&opened) {
        let target = directory.join(one.partition.directory_name());
        std::fs::create_dir(&target).map_err(|error| Error::from(error).with_path(&target))?;
        restored.push(PartitionRestore::new(one, source, &target, options)?.run(source, progress)?);
    }
    Ok(restored)
}
