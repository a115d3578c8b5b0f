//! Checks the offset checkpoints of a log directory.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::Result;
use crate::io::Location;
use crate::log::checkpoint::{OffsetCheckpoint, PartitionOffset};
use crate::log::log_directory::OFFSET_CHECKPOINTS;
use crate::plural::some_of;
use crate::repair::verify::partition::is_unreadable;
use crate::repair::verify::report::{Finding, Report, Severity};
use crate::store::names::TopicPartition;

/// The checkpoint that has all partitions of a directory.
const RECOVERY_POINTS: &str = "recovery-point-offset-checkpoint";

/// The checkpoints of a log directory at one time.
pub(crate) struct Checkpoints(Vec<(&'static str, Location, Result<OffsetCheckpoint>)>);

impl Checkpoints {
    pub(crate) fn read(directory: &Location) -> Self {
        let read = |name: &&'static str| {
            let path = directory.join(*name);
            let checkpoint = OffsetCheckpoint::read(&path);
            (*name, path, checkpoint)
        };
        Self(OFFSET_CHECKPOINTS.iter().map(read).collect())
    }

    /// Compares the checkpoints with the ends of the logs, and with the partitions that have directories.
    pub(crate) fn check(
        self,
        wanted: &dyn Fn(&TopicPartition) -> bool,
        ends: &BTreeMap<(String, i32), i64>,
        named: &BTreeSet<TopicPartition>,
        report: &mut Report,
    ) {
        for (name, path, checkpoint) in self.0 {
            let Some(entries) = entries_of(checkpoint, &path, report) else { continue };
            check_offsets(&path, name, &entries, ends, report);
            if name == RECOVERY_POINTS {
                check_missing(&path, &entries, wanted, named, report);
            }
        }
    }
}

/// The entries of a checkpoint; `None` if there is none, or if it can't be read, which is reported.
fn entries_of(
    checkpoint: Result<OffsetCheckpoint>,
    path: &Location,
    report: &mut Report,
) -> Option<Vec<PartitionOffset>> {
    match checkpoint {
        Ok(checkpoint) => return Some(checkpoint.entries),
        Err(error) if error.is_not_found() || is_unreadable(&error, path, report) => {}
        Err(error) => {
            let message = format!("{}; a broker treats its offsets as 0, or does not start", error.kind());
            report.about(Severity::Error, "checkpoint", path, message);
        }
    }
    None
}

/// Reports the partitions in a checkpoint that have no directory.
fn check_missing(
    path: &Location,
    entries: &[PartitionOffset],
    wanted: &dyn Fn(&TopicPartition) -> bool,
    named: &BTreeSet<TopicPartition>,
    report: &mut Report,
) {
    let partitions = entries.iter().map(|one| TopicPartition { topic: one.topic.clone(), partition: one.partition });
    let missing: BTreeSet<String> =
        partitions.filter(|one| wanted(one) && !named.contains(one)).map(|one| one.directory_name()).collect();
    if !missing.is_empty() {
        let message = format!(
            "these partitions have no directory: {}; they were deleted after the checkpoint was written, or not \
             copied, or they are lost",
            some_of(&missing)
        );
        report.about(Severity::Info, "partition_missing", path, message);
    }
}

/// Compares a checkpoint with the ends of the logs.
fn check_offsets(
    path: &Location,
    name: &str,
    entries: &[PartitionOffset],
    ends: &BTreeMap<(String, i32), i64>,
    report: &mut Report,
) {
    for entry in entries {
        let Some(end) = ends.get(&(entry.topic.clone(), entry.partition)) else { continue };
        if entry.offset <= *end {
            continue;
        }
        let (severity, consequence) = match name {
            "log-start-offset-checkpoint" => (Severity::Error, "a broker deletes the entire log when it starts"),
            _ => (Severity::Warning, "the log was truncated after the checkpoint was written"),
        };
        let (topic, partition) = (&entry.topic, entry.partition);
        let message = format!("the log of {topic}-{partition} ends at offset {end}: {consequence}");
        let (path, kind) = (path.to_path_buf(), "checkpoint_beyond_end");
        report.add(Finding { severity, kind, path, position: None, offset: Some(entry.offset), message });
    }
}
