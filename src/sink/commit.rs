//! [`Commit`]: the segments of the tasks become segments of the partitions.
//!
//! ```text
//! <job>/<task>/orders-0/00…00.log .index .timeindex …   offsets from 0
//!                       │ sets base offsets and leader epochs in place, and names
//!                       ▼
//! <job>/made/orders-0/00…1250.log .index .timeindex …   offsets after the existing ones
//!                       │ moves, by `plan`
//!                       ▼
//! <path>/orders-0/00…1250.log .index .timeindex …
//! ```
//!
//! The directory of a new partition is moved as a whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use crate::error::{Error, Result};
use crate::format::header::LOG_OVERHEAD;
use crate::io::Location;
use crate::io::atomic::sync_directory;
use crate::io::lock::DirectoryLock;
use crate::log::checkpoint::PartitionMetadata;
use crate::log::running_broker::refuse_running_broker;
use crate::log::{LogDirectory, LogWriter, LogWriterOptions, Uuid};
use crate::num::u64_of;
use crate::sink::existing::Existing;
use crate::sink::files::{TargetLock, at, file_names, names_taken, rename, step};
use crate::sink::ids::new_topic_id;
use crate::sink::options::WriteOptions;
use crate::sink::plan::{CommitPlan, Epoch, MADE, carry_out, finish_dead};
use crate::sink::written::Fragment;
use crate::store::names::PARTITION_METADATA;
use crate::store::{LogFile, LogFileKind, LogFileState, TopicPartition};

/// The commit of one write.
pub(super) struct Commit<'a> {
    pub(super) path: &'a Path,
    pub(super) job: &'a Path,
    pub(super) options: &'a WriteOptions,
    pub(super) overwrite: bool,
    /// The number of partitions that topics must have after the write.
    pub(super) partition_counts: BTreeMap<String, u32>,
}

impl Commit<'_> {
    /// Moves fragments into the partitions, in their order, after the segments of earlier writes. Does nothing for an
    /// epoch that the target has already.
    pub(super) fn run(&self, fragments: &[&Fragment], epoch: Option<Epoch>) -> Result<()> {
        let _lock = TargetLock::acquire(self.path)?;
        finish_dead(self.path)?;
        if let Some(epoch) = &epoch
            && epoch.is_there(self.path)?
        {
            return Ok(());
        }
        let plan = CommitPlan { epoch, ..self.prepare(fragments)? };
        plan.check_ends(self.path, self.job)?;
        plan.write(self.path, self.job)?;
        carry_out(self.path, self.job)
    }

    /// Builds the new partitions and segments in the job's directory, and returns the plan of the moves.
    fn prepare(&self, fragments: &[&Fragment]) -> Result<CommitPlan> {
        let mut by_partition: BTreeMap<TopicPartition, Vec<&Fragment>> = BTreeMap::new();
        for fragment in fragments {
            by_partition.entry(fragment.name()).or_default().push(fragment);
        }
        let topics: BTreeSet<String> = by_partition.keys().map(|partition| partition.topic.clone()).collect();
        for partition in self.without_rows(&by_partition) {
            by_partition.insert(partition, Vec::new());
        }
        let listed = LogDirectory::open_target(&Location::local(self.path))?;
        let ids = self.topic_ids(&topics, &listed)?;
        let mut existing = Vec::new();
        for partition in by_partition.keys() {
            let directory = self.path.join(partition.directory_name());
            existing.push(if self.overwrite { Existing::default() } else { Existing::of(&directory)? });
        }
        let made = self.job.join(MADE);
        at(&made, fs::create_dir_all(&made))?;
        for ((partition, parts), existing) in by_partition.iter().zip(&existing) {
            self.make(partition, parts, existing, ids.get(&partition.topic))?;
        }
        let remove = if self.overwrite { replaced(&listed, &topics)? } else { Vec::new() };
        let moves: Vec<String> = by_partition.keys().map(TopicPartition::directory_name).collect();
        for name in moves.iter().filter(|name| !remove.contains(name)) {
            names_taken(&made.join(name), &self.path.join(name))?;
        }
        // the plan, which is written next, must not outlive what it moves
        for directory in moves.iter().map(|name| made.join(name)).chain([made.clone()]) {
            at(&directory, sync_directory(&directory))?;
        }
        let ends = moves.iter().cloned().zip(&existing).filter(|(_, existing)| existing.is_there);
        let ends = ends.map(|(name, existing)| (name, existing.end_offset)).collect();
        Ok(CommitPlan { remove, moves, ends, epoch: None })
    }

    /// Builds the new files of a partition.
    fn make(
        &self,
        partition: &TopicPartition,
        parts: &[&Fragment],
        existing: &Existing,
        id: Option<&Uuid>,
    ) -> Result<()> {
        let name = partition.directory_name();
        let epoch = existing.next_epoch(&name, self.options)?;
        let made = self.job.join(MADE).join(&name);
        if parts.is_empty() {
            LogWriter::open(&made, LogWriterOptions::default())?.close()?;
        } else {
            at(&made, fs::create_dir(&made))?;
            assemble(parts, &made, existing, epoch)?;
        }
        at(&made, step("epochs"))?;
        existing.write_epochs(&made, epoch)?;
        match id {
            Some(id) if !existing.is_there => PartitionMetadata::new(*id).write(made.join(PARTITION_METADATA)),
            _ => Ok(()),
        }
    }

    /// The partitions that topics must have and that neither exist nor were written.
    fn without_rows(&self, written: &BTreeMap<TopicPartition, Vec<&Fragment>>) -> Vec<TopicPartition> {
        let wanted = self.partition_counts.iter().flat_map(|(topic, count)| {
            let count = i32::try_from(*count).unwrap_or(i32::MAX);
            (0..count).map(move |partition| TopicPartition { topic: topic.clone(), partition })
        });
        let is_there = |partition: &TopicPartition| self.path.join(partition.directory_name()).exists();
        wanted
            .filter(|partition| !written.contains_key(partition) && (self.overwrite || !is_there(partition)))
            .collect()
    }

    /// The id of each topic for its new partitions, as in its existing ones; empty if ids are not enabled.
    fn topic_ids(&self, topics: &BTreeSet<String>, listed: &LogDirectory) -> Result<BTreeMap<String, Uuid>> {
        if !self.options.has_metadata {
            return Ok(BTreeMap::new());
        }
        let mut ids: BTreeMap<String, Uuid> = topics.iter().map(|topic| (topic.clone(), new_topic_id())).collect();
        for log in listed.partitions().iter().filter(|_| !self.overwrite) {
            let id = log.topic_partition().and_then(|partition| ids.get_mut(&partition.topic));
            let Some(id) = id else { continue };
            if let Some(metadata) = log.metadata()? {
                *id = metadata.topic_id;
            }
        }
        Ok(ids)
    }
}

/// The names of the directories of topics. Changes nothing in them: the write may still fail.
///
/// # Errors
/// A writer or a running broker uses one.
fn replaced(listed: &LogDirectory, topics: &BTreeSet<String>) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for log in listed.partitions() {
        let Some(partition) = log.topic_partition().filter(|partition| topics.contains(&partition.topic)) else {
            continue;
        };
        let directory = log.directory();
        DirectoryLock::acquire(directory)?;
        refuse_running_broker(directory)?;
        names.push(partition.directory_name());
    }
    Ok(names)
}

/// Sets the offsets and names of the segments of some fragments, and collects them in one directory. The fragments
/// have no producers, so the producers of the partition do not change.
fn assemble(parts: &[&Fragment], made: &Path, existing: &Existing, epoch: i32) -> Result<()> {
    let mut offset = existing.end_offset;
    for part in parts {
        let directory = Path::new(&part.directory);
        for name in file_names(directory)? {
            let Some(LogFile { base_offset, kind, state: LogFileState::Live }) = LogFile::parse(&name) else {
                continue;
            };
            let file = directory.join(&name);
            let base_offset = base_offset.checked_add(offset).ok_or_else(|| no_offset(&file))?;
            let target = made.join(LogFile::live(base_offset, kind).to_string());
            match (kind, &existing.producers) {
                (LogFileKind::ProducerSnapshot, Some(producers)) => {
                    if base_offset > existing.end_offset {
                        at(&target, fs::write(&target, producers))?;
                    }
                    continue;
                }
                (LogFileKind::Log, _) => renumber(&file, offset, epoch)?,
                _ => {}
            }
            rename(&file, &target)?;
        }
        offset = offset.checked_add(part.record_count).ok_or_else(|| no_offset(directory))?;
    }
    Ok(())
}

#[cold]
fn no_offset(path: &Path) -> Error {
    Error::argument("kbat: the partition has no offsets left for these records").with_path(path)
}

/// Bytes of a batch up to the leader epoch: base offset, length, leader epoch.
const HEAD_LEN: usize = 16;

/// Adds to each batch's base offset, and sets its leader epoch; neither is covered by the checksum.
fn renumber(log: &Path, offset: i64, epoch: i32) -> Result<()> {
    let mut file = at(log, OpenOptions::new().read(true).write(true).open(log))?;
    let end = at(log, file.metadata())?.len();
    let mut position = 0;
    while position < end {
        position = renumber_batch(&mut file, position, offset, epoch).map_err(|error| error.with_path(log))?;
    }
    at(log, file.sync_all())
}

/// Renumbers the batch at a position, and returns the position of the next one.
fn renumber_batch(file: &mut File, position: u64, offset: i64, epoch: i32) -> Result<u64> {
    let mut head = [0; HEAD_LEN];
    file.seek(SeekFrom::Start(position))?;
    file.read_exact(&mut head)?;
    let ([base_offset, length_and_epoch], _) = head.as_chunks_mut::<8>() else { return Err(malformed(position)) };
    let base = i64::from_be_bytes(*base_offset).checked_add(offset).ok_or_else(|| malformed(position))?;
    *base_offset = base.to_be_bytes();
    let ([length, leader_epoch], _) = length_and_epoch.as_chunks_mut::<4>() else { return Err(malformed(position)) };
    let length = u64::try_from(i32::from_be_bytes(*length)).map_err(|_| malformed(position))?;
    *leader_epoch = epoch.to_be_bytes();
    file.seek(SeekFrom::Start(position))?;
    file.write_all(&head)?;
    position
        .checked_add(length)
        .and_then(|end| end.checked_add(u64_of(LOG_OVERHEAD)))
        .ok_or_else(|| malformed(position))
}

#[cold]
fn malformed(position: u64) -> Error {
    Error::argument("kbat: a task of this write left a batch that is not complete").at(position)
}
