//! [`RestoreTarget`]: the topic ids and checkpoints of the broker that will get the partitions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::error::Result;
use crate::io::Location;
use crate::log::Uuid;
use crate::log::checkpoint::{LeaderEpochs, OffsetCheckpoint, PartitionMetadata, PartitionOffset};
use crate::log::running_broker::refuse_running_broker;
use crate::restore::{RestoreOptions, RestoreReport, RestoredPartition};
use crate::store::TopicPartition;
use crate::store::listing::partition_directories;
use crate::store::names::{LEADER_EPOCHS, PARTITION_METADATA};

/// The checkpoint of log start offsets. A broker uses it for logs with remote storage.
pub(super) const LOG_STARTS: &str = "log-start-offset-checkpoint";
/// The checkpoint of the offsets up to which logs are on disk: a broker does not recover the batches before them.
const RECOVERY_POINTS: &str = "recovery-point-offset-checkpoint";

/// Names in a warning; the others are only counted.
const MAX_NAMES: usize = 10;

/// The topic ids and checkpoints of the new broker.
#[derive(Debug, Default)]
pub(super) struct RestoreTarget {
    topic_ids: BTreeMap<String, Uuid>,
    /// The partitions of the log directory, with their latest leader epochs.
    partitions: BTreeMap<TopicPartition, Option<i32>>,
    /// Topics whose ids are those of the log directory.
    found_topics: BTreeSet<String>,
    log_starts: OffsetCheckpoint,
    recovery_points: OffsetCheckpoint,
    is_running: bool,
}

impl RestoreTarget {
    /// Reads the log directory of the new broker, if the options name it.
    ///
    /// # Errors
    /// Malformed checkpoints and `partition.metadata`; I/O errors.
    pub(super) fn read(options: &RestoreOptions) -> Result<Self> {
        let mut target = Self::default();
        if let Some(directory) = &options.log_directory {
            let directory = Location::local(directory.clone());
            for partition in partition_directories(&directory)? {
                let files = directory.join(partition.directory_name());
                match PartitionMetadata::read(files.join(PARTITION_METADATA)) {
                    Ok(metadata) => target.topic_ids.insert(partition.topic.clone(), metadata.topic_id),
                    Err(error) if error.is_not_found() => None,
                    Err(error) => return Err(error),
                };
                let epochs = LeaderEpochs::read_existing(files.join(LEADER_EPOCHS))?;
                let latest = epochs.and_then(|epochs| epochs.latest()).map(|latest| latest.epoch);
                target.partitions.insert(partition, latest);
            }
            target.found_topics = target.topic_ids.keys().cloned().collect();
            target.found_topics.retain(|topic| !options.topic_ids.contains_key(topic));
            target.log_starts = checkpoint(&directory, LOG_STARTS)?;
            target.recovery_points = checkpoint(&directory, RECOVERY_POINTS)?;
            // the lock is beside the partitions
            target.is_running = refuse_running_broker(&directory.join(RECOVERY_POINTS)).is_err();
        }
        target.topic_ids.extend(options.topic_ids.clone());
        Ok(target)
    }

    /// What a user should know before moving the partitions.
    pub(super) fn warnings(&self) -> Vec<String> {
        let warning = "a broker is running on the log directory: stop it before you move the partitions, and restore \
                       again if its other partitions have changed, because the new checkpoints contain them";
        self.is_running.then(|| warning.to_owned()).into_iter().collect()
    }

    /// Adds the topic ids to a report, and warns of topics without one.
    pub(super) fn identify(&self, report: &mut RestoreReport) {
        let mut unknown = BTreeSet::new();
        for restored in &mut report.partitions {
            restored.topic_id = self.topic_ids.get(&restored.partition.topic).copied();
            if restored.topic_id.is_none() {
                unknown.insert(restored.partition.topic.clone());
            }
        }
        if !unknown.is_empty() {
            report.warnings.push(format!(
                "the ids of these topics in the new cluster are unknown, so their partitions have no \
                 {PARTITION_METADATA}, and a KRaft broker would not accept them: {}",
                listed(unknown.into_iter().collect())
            ));
        }
        self.warn_of_strays(report);
    }

    /// Warns of partitions that the new broker does not have, although it has others of the topic.
    fn warn_of_strays(&self, report: &mut RestoreReport) {
        let is_stray =
            |one: &&TopicPartition| self.found_topics.contains(&one.topic) && !self.partitions.contains_key(*one);
        let restored = report.partitions.iter().map(|restored| &restored.partition);
        let strays: Vec<String> = restored.filter(is_stray).map(TopicPartition::directory_name).collect();
        if !strays.is_empty() {
            report.warnings.push(format!(
                "the log directory of the new broker does not contain these partitions, and the broker would set them \
                 aside as strays: {}",
                listed(strays)
            ));
        }
    }

    /// Warns of leader epochs that may be above those of the new cluster, unless the options replace them. Consumers
    /// commit the epoch of a batch with its offset, and wait for a leader with at least that epoch when they start
    /// again.
    pub(super) fn warn_of_epochs(&self, report: &mut RestoreReport, options: &RestoreOptions) {
        let is_above = |restored: &&RestoredPartition| {
            let known = self.partitions.get(&restored.partition).copied().flatten();
            restored.leader_epoch.is_some_and(|epoch| epoch > known.unwrap_or(0))
        };
        if options.leader_epoch.is_some() {
            return;
        }
        let above = report.partitions.iter().filter(is_above);
        let above: Vec<String> = above.map(|restored| restored.partition.directory_name()).collect();
        if !above.is_empty() {
            report.warnings.push(format!(
                "the leader epochs of these partitions may be above those of the new cluster, so that consumers would \
                 wait for a leader after their first commit: pass leader_epoch=0 to replace them: {}",
                listed(above)
            ));
        }
    }

    /// Writes the checkpoints, and the `partition.metadata` of each partition.
    ///
    /// # Errors
    /// I/O errors.
    pub(super) fn write(&self, directory: &Path, report: &RestoreReport) -> Result<()> {
        for restored in &report.partitions {
            if let Some(topic_id) = restored.topic_id {
                let partition = directory.join(restored.partition.directory_name());
                PartitionMetadata::new(topic_id).write(partition.join(PARTITION_METADATA))?;
            }
        }
        let starts = merged(&self.log_starts, report, |restored| restored.start_offset);
        starts.write(directory.join(LOG_STARTS))?;
        let ends = merged(&self.recovery_points, report, |restored| restored.end_offset);
        ends.write(directory.join(RECOVERY_POINTS))
    }
}

/// The names in a warning.
fn listed(mut names: Vec<String>) -> String {
    let others = names.len().saturating_sub(MAX_NAMES);
    names.truncate(MAX_NAMES);
    let more = if others > 0 { format!(" and {others} more") } else { String::new() };
    names.join(", ") + &more
}

fn checkpoint(directory: &Location, name: &str) -> Result<OffsetCheckpoint> {
    match OffsetCheckpoint::read(directory.join(name)) {
        Err(error) if error.is_not_found() => Ok(OffsetCheckpoint::default()),
        read => read,
    }
}

/// The entries of a checkpoint for all other partitions, and those of the restored ones.
fn merged(
    existing: &OffsetCheckpoint,
    report: &RestoreReport,
    offset: impl Fn(&RestoredPartition) -> i64,
) -> OffsetCheckpoint {
    let is_restored = |entry: &PartitionOffset| {
        let found = report.partitions.iter().map(|restored| &restored.partition);
        found.into_iter().any(|one| one.topic == entry.topic && one.partition == entry.partition)
    };
    let mut entries: Vec<PartitionOffset> =
        existing.entries.iter().filter(|entry| !is_restored(entry)).cloned().collect();
    entries.extend(report.partitions.iter().map(|restored| PartitionOffset {
        topic: restored.partition.topic.clone(),
        partition: restored.partition.partition,
        offset: offset(restored),
    }));
    OffsetCheckpoint { entries }
}
