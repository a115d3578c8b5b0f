//! [`PartitionOutput`]: writes the files of a partition from its batches: segments, indexes, producer snapshots,
//! leader epochs.
//!
//! Recovery, salvage and the rebuild of indexes share it. A segment's files are written under temporary names, flushed
//! to disk and renamed, the indexes before the `.log`. Memory use is one batch and the producers.

use std::path::PathBuf;

use crate::compression::Scratch;
use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Batch;
use crate::io::Location;
use crate::io::atomic::sync_directory;
use crate::io::staged::StagedFile;
use crate::limits::Limits;
use crate::log::checkpoint::LeaderEpochs;
use crate::log::index::{DEFAULT_INDEX_INTERVAL_BYTES, SegmentIndexer};
use crate::log::inventory::{FileAction, FileChange};
use crate::log::producer::ProducerStates;
use crate::num::u64_of;
use crate::store::names::{LEADER_EPOCHS, LogFile, LogFileKind, MAX_SEGMENT_LEN};

/// Where and how to write a partition's files.
#[derive(Debug, Clone)]
pub(crate) struct OutputSettings {
    /// The output directory. If `None`, nothing is written.
    pub(crate) directory: Option<PathBuf>,
    /// Whether to write batches, or only the files derived from them.
    pub(crate) write_log: bool,
    /// Kafka's `index.interval.bytes`.
    pub(crate) index_interval_bytes: u64,
    /// Limits on the input.
    pub(crate) limits: Limits,
}

impl Default for OutputSettings {
    fn default() -> Self {
        Self {
            directory: None,
            write_log: false,
            index_interval_bytes: DEFAULT_INDEX_INTERVAL_BYTES,
            limits: Limits::default(),
        }
    }
}

/// Why a batch was not accepted.
#[derive(Debug)]
pub(crate) enum BatchRefusal {
    /// Its last offset or its bytes exceed the range of the segment's indexes: it needs a new segment.
    Overflow,
    /// Its last offset is below the segment's base offset.
    BelowBase,
    /// Its last offset is not above that of the last index entry.
    OffsetOrder,
    /// It was accepted, but it is not the transaction marker that it should be.
    Marker(Error),
    /// Writing failed.
    Failed(Error),
}

impl From<Error> for BatchRefusal {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// The state of a partition that is being written.
#[derive(Debug)]
pub(crate) struct PartitionOutput {
    settings: OutputSettings,
    /// A broker's state of the producers after the batches so far.
    pub(crate) states: ProducerStates,
    /// The leader epochs of the batches so far.
    pub(crate) epochs: LeaderEpochs,
    /// The files written.
    pub(crate) changes: Vec<FileChange>,
    scratch: Scratch,
}

/// A segment that is being written.
#[derive(Debug)]
pub(crate) struct SegmentOutput {
    pub(crate) base_offset: i64,
    indexer: SegmentIndexer,
    files: StagedFiles,
    /// Size in bytes of the batches so far.
    pub(crate) len: u64,
    pub(crate) batch_count: u64,
    /// Whether it has a transaction index.
    pub(crate) has_transaction_index: bool,
}

/// The staged files of a segment.
#[derive(Debug, Default)]
struct StagedFiles {
    log: Option<StagedFile>,
    offset_index: Option<StagedFile>,
    time_index: Option<StagedFile>,
    transaction_index: Option<StagedFile>,
}

impl PartitionOutput {
    pub(crate) fn new(settings: OutputSettings, states: ProducerStates, epochs: LeaderEpochs) -> Self {
        Self { settings, states, epochs, changes: Vec::new(), scratch: Scratch::new() }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.settings.limits
    }

    /// Starts a segment. Its `.log` gets the modification time of `source`. Its files have temporary names until
    /// [`PartitionOutput::finish_segment`].
    pub(crate) fn begin_segment(&self, base_offset: i64, source: &Location) -> Result<SegmentOutput> {
        let mut files = StagedFiles::default();
        if self.settings.directory.is_some() {
            if self.settings.write_log {
                files.log = self.stage(base_offset, LogFileKind::Log)?;
                if let (Some(log), Some(modified)) =
                    (&mut files.log, source.status().ok().and_then(|status| status.modified))
                {
                    log.set_modified(modified);
                }
            }
            files.offset_index = self.stage(base_offset, LogFileKind::OffsetIndex)?;
            files.time_index = self.stage(base_offset, LogFileKind::TimeIndex)?;
        }
        let interval = self.settings.index_interval_bytes;
        let indexer = SegmentIndexer::new(base_offset, interval, u64::MAX);
        Ok(SegmentOutput { base_offset, indexer, files, len: 0, batch_count: 0, has_transaction_index: false })
    }

    fn stage(&self, base_offset: i64, kind: LogFileKind) -> Result<Option<StagedFile>> {
        let name = LogFile::live(base_offset, kind).to_string();
        self.settings.directory.as_ref().map(|directory| StagedFile::create(&directory.join(name))).transpose()
    }

    /// Adds the next batch to a segment, like `LogSegment.recover`.
    pub(crate) fn append(
        &mut self,
        segment: &mut SegmentOutput,
        batch: &Batch<'_>,
    ) -> std::result::Result<(), BatchRefusal> {
        let mut header = *batch.header();
        header.position = segment.len;
        let relative = header.last_offset().checked_sub(segment.base_offset).unwrap_or(i64::MAX);
        if relative < 0 {
            return Err(BatchRefusal::BelowBase);
        }
        let end = segment.len.saturating_add(u64_of(batch.size()));
        if relative > i64::from(i32::MAX) || end > MAX_SEGMENT_LEN {
            return Err(BatchRefusal::Overflow);
        }
        let Ok(entries) = segment.indexer.observe(&header) else { return Err(BatchRefusal::OffsetOrder) };
        let base_offset = segment.base_offset;
        if let (Some(entry), Some(file)) = (entries.offset, &mut segment.files.offset_index) {
            file.write(&entry.encode(base_offset)?)?;
        }
        if let (Some(entry), Some(file)) = (entries.time, &mut segment.files.time_index) {
            file.write(&entry.encode(base_offset)?)?;
        }
        if let Some(log) = &mut segment.files.log {
            log.write(batch.bytes())?;
        }
        segment.len = end;
        segment.batch_count = segment.batch_count.saturating_add(1);
        self.replay(segment, batch)
    }

    /// Updates leader epochs and producers with a batch.
    fn replay(&mut self, segment: &mut SegmentOutput, batch: &Batch<'_>) -> std::result::Result<(), BatchRefusal> {
        self.epochs.observe(batch)?;
        let aborted = match self.states.update(batch, &mut self.scratch, &self.settings.limits) {
            Ok(None) => return Ok(()),
            Ok(Some(aborted)) => aborted,
            Err(error) if matches!(error.kind(), ErrorKind::Limit { .. }) => return Err(BatchRefusal::Failed(error)),
            Err(error) => return Err(BatchRefusal::Marker(error)),
        };
        if !segment.has_transaction_index {
            self.keep_transaction_index(segment)?;
        }
        match &mut segment.files.transaction_index {
            Some(file) => Ok(file.write(&aborted.encode())?),
            None => Ok(()),
        }
    }

    /// Renames a segment's files to their final names.
    pub(crate) fn finish_segment(&mut self, mut segment: SegmentOutput) -> Result<()> {
        let last = segment.indexer.finish();
        if let (Some(entry), Some(file)) = (last, &mut segment.files.time_index) {
            file.write(&entry.encode(segment.base_offset)?)?;
        }
        let files = segment.files;
        for file in [files.offset_index, files.time_index, files.transaction_index, files.log].into_iter().flatten() {
            file.commit()?;
        }
        let aborted = segment.has_transaction_index;
        let kinds = [
            (LogFileKind::OffsetIndex, true),
            (LogFileKind::TimeIndex, true),
            (LogFileKind::TransactionIndex, aborted),
        ];
        for (kind, _) in kinds.into_iter().filter(|(_, written)| *written) {
            self.written(LogFile::live(segment.base_offset, kind).to_string());
        }
        let Some(directory) = &self.settings.directory else { return Ok(()) };
        sync_directory(directory).map_err(|error| Error::from(error).with_path(directory))
    }

    fn written(&mut self, name: String) {
        self.changes.push(FileChange { name, action: FileAction::Written });
    }

    /// Whether a file was written, or would have been.
    pub(crate) fn has_written(&self, file: &LogFile) -> bool {
        let name = file.to_string();
        self.changes.iter().any(|change| change.name == name)
    }

    /// Gives a segment a transaction index even if none of its transactions was aborted: Kafka empties an index but
    /// keeps its file.
    pub(crate) fn keep_transaction_index(&self, segment: &mut SegmentOutput) -> Result<()> {
        segment.files.transaction_index = self.stage(segment.base_offset, LogFileKind::TransactionIndex)?;
        segment.has_transaction_index = true;
        Ok(())
    }

    /// Writes a snapshot of the producers.
    pub(crate) fn write_snapshot(&mut self, offset: i64) -> Result<()> {
        let file = LogFile::live(offset, LogFileKind::ProducerSnapshot);
        if let Some(directory) = &self.settings.directory {
            self.states.to_snapshot().write(directory.join(file.to_string()))?;
        }
        self.written(file.to_string());
        Ok(())
    }

    /// Writes the leader epochs.
    pub(crate) fn write_epochs(&mut self) -> Result<()> {
        if let Some(directory) = &self.settings.directory {
            self.epochs.write(directory.join(LEADER_EPOCHS))?;
        }
        self.written(LEADER_EPOCHS.to_owned());
        Ok(())
    }
}
