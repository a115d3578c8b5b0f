//! [`PartitionState`]: the producers and leader epochs at the end of a partition.

use std::fs;
use std::path::{Path, PathBuf};

use crate::compression::Scratch;
use crate::error::{Error, Result};
use crate::format::batch::Batch;
use crate::io::Location;
use crate::limits::Limits;
use crate::log::checkpoint::LeaderEpochs;
use crate::log::headers::HeaderReader;
use crate::log::index::AbortedTransaction;
use crate::log::producer::{ProducerStates, StatesAt, replay_segment, states_at};
use crate::store::names::{LEADER_EPOCHS, LogFile, LogFileKind};

/// The producers and leader epochs of a partition, and their files.
#[derive(Debug)]
pub(super) struct PartitionState {
    directory: PathBuf,
    producers: ProducerStates,
    epochs: LeaderEpochs,
    /// The leader epochs in the file.
    written_epochs: Option<LeaderEpochs>,
    /// Offset of the latest snapshot.
    snapshot_offset: Option<i64>,
    scratch: Scratch,
    limits: Limits,
}

impl PartitionState {
    /// Reads the leader epochs. The producers are still unknown.
    pub(super) fn read(directory: &Path, limits: &Limits) -> Result<Self> {
        let written_epochs = LeaderEpochs::read_existing(directory.join(LEADER_EPOCHS))?;
        Ok(Self {
            directory: directory.to_path_buf(),
            producers: ProducerStates::new(),
            epochs: written_epochs.clone().unwrap_or_default(),
            written_epochs,
            snapshot_offset: None,
            scratch: Scratch::new(),
            limits: limits.clone(),
        })
    }

    /// Restores the producers at an offset. `segments` are the ones before it.
    pub(super) fn load_producers(
        &mut self,
        snapshots: &[(i64, &Location)],
        segments: &[(i64, &Location)],
        up_to: i64,
    ) -> Result<()> {
        let StatesAt { states, snapshot_offset } = states_at(up_to, snapshots, segments, |states, path, from| {
            replay_segment(states, path, from, &self.limits)
        })?;
        (self.producers, self.snapshot_offset) = (states, snapshot_offset);
        Ok(())
    }

    /// Reads the leader epochs of the segments before the last one from their batches if there is no file of them.
    pub(super) fn load_epochs(&mut self, segments: &[(i64, &Location)]) {
        if self.written_epochs.is_some() {
            return;
        }
        for (_, path) in segments {
            // as far as they can be read: corruption there does not prevent writing, either
            let Ok(mut reader) = HeaderReader::open(*path, &self.limits) else { continue };
            while let Some(Ok(header)) = reader.next_header() {
                if self.epochs.observe(&header).is_err() {
                    break;
                }
            }
        }
    }

    /// Notes the next batch. Returns the aborted transaction that it ends, to be written to the transaction index.
    ///
    /// # Errors
    /// A control batch that cannot be decoded. Nothing is noted then.
    pub(super) fn note(&mut self, batch: &Batch<'_>) -> Result<Option<AbortedTransaction>> {
        let aborted = self.producers.update(batch, &mut self.scratch, &self.limits)?;
        self.epochs.observe(batch)?;
        Ok(aborted)
    }

    /// Removes leader epochs that start at or after the end of the log. Removes snapshots as a broker does when it
    /// starts: those after the end, and those that are not at a segment's base offset, except the latest.
    pub(super) fn truncate(
        &mut self,
        snapshots: &[(i64, &Location)],
        segments: &[(i64, &Location)],
        end_offset: i64,
    ) -> Result<()> {
        self.epochs.truncate_from_end(end_offset);
        self.snapshot_offset = snapshots.iter().map(|(offset, _)| *offset).filter(|offset| *offset <= end_offset).max();
        let is_base = |offset: i64| segments.iter().any(|(base_offset, _)| *base_offset == offset);
        for (offset, path) in snapshots {
            if *offset > end_offset || (!is_base(*offset) && Some(*offset) != self.snapshot_offset) {
                fs::remove_file(path).map_err(|error| Error::from(error).with_path(path))?;
            }
        }
        Ok(())
    }

    /// The latest leader epoch.
    pub(super) fn latest_epoch(&self) -> Option<i32> {
        self.epochs.latest().map(|latest| latest.epoch)
    }

    /// Writes a snapshot of the producers, unless there is one of this offset or a later one. Writes nothing at offset
    /// 0.
    pub(super) fn write_snapshot(&mut self, end_offset: i64) -> Result<()> {
        self.producers.set_end_offset(end_offset);
        if end_offset > self.snapshot_offset.unwrap_or(0) {
            let name = LogFile::live(end_offset, LogFileKind::ProducerSnapshot).to_string();
            self.producers.to_snapshot().write(self.directory.join(name))?;
            self.snapshot_offset = Some(end_offset);
        }
        Ok(())
    }

    /// Writes the leader epochs if they differ from the file.
    pub(super) fn write_epochs(&mut self) -> Result<()> {
        if self.written_epochs.as_ref() != Some(&self.epochs) {
            self.epochs.write(self.directory.join(LEADER_EPOCHS))?;
            self.written_epochs = Some(self.epochs.clone());
        }
        Ok(())
    }

    pub(super) fn last_stable_offset(&self, end_offset: i64) -> i64 {
        self.producers.last_stable_offset(end_offset)
    }
}
