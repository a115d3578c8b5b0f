//! [`RewriteOutput`]: the new partition directory, built next to the target and renamed to it.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::source::RewriteSource;
use super::survey::Survey;
use super::{Counts, IndexOptions};
use crate::compression::Scratch;
use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Batch;
use crate::format::frame::batches;
use crate::format::header::BatchHeader;
use crate::io::Progress;
use crate::io::staged::StagedDirectory;
use crate::limits::Limits;
use crate::log::checkpoint::{LeaderEpochs, PartitionMetadata};
use crate::log::index::{AbortedTransaction, SegmentIndexer};
use crate::log::producer::MAX_SNAPSHOT_LEN;
use crate::num::u64_of;
use crate::store::names::{LEADER_EPOCHS, MAX_SEGMENT_LEN, PARTITION_METADATA};
use crate::store::{LogFile, LogFileKind};

/// Returns the error of reading a file, unless the file does not exist.
fn checked<T>(read: Result<T>) -> Result<()> {
    match read {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// A partition directory under construction. It is removed if dropped before [`RewriteOutput::finish`].
#[derive(Debug)]
pub(super) struct RewriteOutput {
    staged: StagedDirectory,
    options: IndexOptions,
    segment: Option<OpenSegment>,
    limits: Limits,
    scratch: Scratch,
    /// Aborted transactions whose markers are not written yet, by the offsets of the markers.
    aborted: VecDeque<AbortedTransaction>,
    /// Base offsets of the segments written.
    bases: Vec<i64>,
    /// The offset after what was written.
    end_offset: i64,
    /// Counts of what was written so far, without records, which the caller counts.
    pub(super) written: Counts,
}

impl RewriteOutput {
    /// Creates the directory next to the target.
    ///
    /// # Errors
    /// If the target exists and is not an empty directory, or the directory cannot be created.
    pub(super) fn create(source: &RewriteSource, target: &Path, options: IndexOptions) -> Result<Self> {
        Ok(Self {
            staged: StagedDirectory::create(&source.directory, target)?,
            options,
            segment: None,
            limits: source.limits.clone(),
            scratch: Scratch::new(),
            aborted: VecDeque::new(),
            bases: Vec::new(),
            end_offset: 0,
            written: Counts::default(),
        })
    }

    /// A directory for temporary files, which the caller must remove before [`RewriteOutput::finish`].
    pub(super) fn work_directory(&self) -> &Path {
        self.staged.directory()
    }

    /// Ends the current segment and begins a new one. `modified` will be its modification time.
    pub(super) fn begin_segment(&mut self, base_offset: i64, modified: SystemTime) -> Result<()> {
        self.add_aborted(i64::MAX);
        self.roll(base_offset, modified)
    }

    fn roll(&mut self, base_offset: i64, modified: SystemTime) -> Result<()> {
        self.end_segment()?;
        self.segment = Some(OpenSegment::create(self.work_directory(), base_offset, modified, &self.options)?);
        self.bases.push(base_offset);
        self.end_offset = self.end_offset.max(base_offset);
        self.written.segments = self.written.segments.saturating_add(1);
        Ok(())
    }

    /// Adds an empty segment at the end of the source's log if the last batches have a smaller end, as below message
    /// format 2, where only records have offsets. So a broker does not give out the offsets between again.
    pub(super) fn extend_to(&mut self, end_offset: i64) -> Result<()> {
        match &self.segment {
            Some(segment) if self.end_offset < end_offset => self.begin_segment(end_offset, segment.modified),
            _ => Ok(()),
        }
    }

    /// Appends batches. Begins a new segment if the batch or its index entries do not fit into the current one.
    pub(super) fn append(&mut self, bytes: &[u8]) -> Result<()> {
        for batch in batches(bytes) {
            self.append_batch(&batch?)?;
        }
        Ok(())
    }

    fn append_batch(&mut self, batch: &Batch<'_>) -> Result<()> {
        let Some(segment) = &self.segment else { return Err(Error::argument("no segment has been started")) };
        if !segment.has_room(batch) {
            let modified = segment.modified;
            let first_offset = batch.first_offset(&mut self.scratch, &self.limits)?;
            self.add_aborted(first_offset.saturating_sub(1)); // their markers were dropped
            self.roll(first_offset, modified)?;
        }
        self.written.add_batch(0, batch.size());
        self.segment.as_mut().map_or(Ok(()), |segment| segment.append(batch))?;
        self.end_offset = self.end_offset.max(batch.next_offset());
        self.add_aborted(batch.last_offset());
        Ok(())
    }

    /// Adds an aborted transaction to the transaction index of the segment in which its marker will be, or of the
    /// current one if the marker is not written. Call it in the order of the markers, before the marker's batch.
    pub(super) fn append_aborted(&mut self, transaction: &AbortedTransaction) {
        self.aborted.push_back(*transaction);
    }

    /// Adds the aborted transactions of a segment of the source, before its batches.
    pub(super) fn append_aborted_of(&mut self, source: &RewriteSource, index: usize, survey: &Survey) {
        let Some(segment) = source.segments.get(index) else { return };
        self.aborted.extend(survey.aborted_within(segment.base_offset, source.next_base(index, survey.end_offset)));
    }

    /// Adds the transactions whose markers are written, up to an offset, to the index of the current segment.
    fn add_aborted(&mut self, last_offset: i64) {
        while self.aborted.front().is_some_and(|transaction| transaction.last_offset <= last_offset) {
            let Some(transaction) = self.aborted.pop_front() else { return };
            if let Some(segment) = &mut self.segment {
                segment.aborted.extend_from_slice(&transaction.encode());
            }
        }
    }

    fn end_segment(&mut self) -> Result<()> {
        self.segment.take().map_or(Ok(()), OpenSegment::finish)
    }

    /// Copies a segment of the source without changing its batches.
    pub(super) fn copy_segment(
        &mut self,
        source: &RewriteSource,
        index: usize,
        survey: &Survey,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        let Some(segment) = source.segments.get(index) else { return Ok(()) };
        self.begin_segment(segment.base_offset, segment.modified)?;
        self.append_aborted_of(source, index, survey);
        source.each_batch(segment, progress, &mut |batch| self.append_batch(batch).map(|()| true))?;
        Ok(())
    }

    /// Adds the other files of a partition and renames the directory to the target. These are the leader epochs, the
    /// topic id, and, if producers are kept, their snapshots at the start of each segment and at the end of the log.
    pub(super) fn finish(
        mut self,
        source: &RewriteSource,
        survey: &Survey,
        keeps_producers: bool,
        progress: &mut Progress<'_>,
    ) -> Result<()> {
        self.add_aborted(i64::MAX);
        self.end_segment()?;
        // a broker does not start if one of these files is malformed
        LeaderEpochs::read_existing(source.directory.join(LEADER_EPOCHS))?;
        checked(PartitionMetadata::read(source.directory.join(PARTITION_METADATA)))?;
        for name in [LEADER_EPOCHS, PARTITION_METADATA] {
            self.copy_file(source, name)?;
        }
        if keeps_producers {
            for base in std::mem::take(&mut self.bases) {
                self.copy_file(source, &snapshot_name(base))?;
            }
            self.add_end_snapshot(source, survey)?;
        }
        progress.finish()?;
        self.staged.commit()
    }

    /// Copies a file that may be missing.
    fn copy_file(&self, source: &RewriteSource, name: &str) -> Result<()> {
        let (from, to) = (source.directory.join(name), self.work_directory().join(name));
        match from.read_small(MAX_SNAPSHOT_LEN) {
            Ok(content) => write_new(&to, &content).map_err(|error| Error::from(error).with_path(&from)),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Adds a producer snapshot at the end of the log. Without it, a broker that trusts the directory starts with no
    /// producers.
    fn add_end_snapshot(&self, source: &RewriteSource, survey: &Survey) -> Result<()> {
        let name = snapshot_name(survey.end_offset);
        let path = self.work_directory().join(&name);
        if !path.exists() {
            self.copy_file(source, &name)?;
        }
        if path.exists() || survey.states.is_empty() {
            return Ok(());
        }
        survey.states.to_snapshot().write(&path)
    }
}

/// The error of a batch whose offset does not follow those of the segment. Its own position is that in the target.
fn out_of_order(error: &Error) -> Error {
    let message =
        format!("{}; segments repeat offsets: salvage writes a copy in which they are in order", error.kind());
    Error::new(ErrorKind::InvalidFile(message))
}

fn snapshot_name(offset: i64) -> String {
    LogFile::live(offset, LogFileKind::ProducerSnapshot).to_string()
}

fn path_of(directory: &Path, base_offset: i64, kind: LogFileKind) -> PathBuf {
    directory.join(LogFile::live(base_offset, kind).to_string())
}

fn write_new(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// A segment that is being written.
#[derive(Debug)]
struct OpenSegment {
    directory: PathBuf,
    base_offset: i64,
    modified: SystemTime,
    log: BufWriter<File>,
    index: BufWriter<File>,
    time_index: BufWriter<File>,
    /// The transaction index; its file is only created if it has entries.
    aborted: Vec<u8>,
    indexer: SegmentIndexer,
    position: u64,
}

impl OpenSegment {
    fn create(directory: &Path, base_offset: i64, modified: SystemTime, options: &IndexOptions) -> Result<Self> {
        let create = |kind| {
            let path = path_of(directory, base_offset, kind);
            let file = File::create_new(&path).map_err(|error| Error::from(error).with_path(&path))?;
            Ok::<_, Error>(BufWriter::new(file))
        };
        Ok(Self {
            log: create(LogFileKind::Log)?,
            index: create(LogFileKind::OffsetIndex)?,
            time_index: create(LogFileKind::TimeIndex)?,
            directory: directory.to_path_buf(),
            base_offset,
            modified,
            aborted: Vec::new(),
            indexer: SegmentIndexer::new(base_offset, options.index_interval_bytes, options.max_index_bytes),
            position: 0,
        })
    }

    /// Whether positions and relative offsets of this batch fit in 31 bits, and its entries in the indexes.
    fn has_room(&self, batch: &BatchHeader) -> bool {
        let end = self.position.saturating_add(u64_of(batch.size()));
        let span = batch.last_offset().saturating_sub(self.base_offset);
        self.position == 0 || (end <= MAX_SEGMENT_LEN && span <= i64::from(i32::MAX) && !self.indexer.is_full())
    }

    fn append(&mut self, batch: &Batch<'_>) -> Result<()> {
        let header = BatchHeader { position: self.position, ..**batch };
        // a later batch has room in the index, so that only its offset can be wrong
        let is_first = self.position == 0;
        let entries =
            self.indexer.observe(&header).map_err(|error| if is_first { error } else { out_of_order(&error) })?;
        let mut write = || {
            self.log.write_all(batch.bytes())?;
            if let Some(entry) = entries.offset {
                self.index.write_all(&entry.encode(self.base_offset)?)?;
            }
            if let Some(entry) = entries.time {
                self.time_index.write_all(&entry.encode(self.base_offset)?)?;
            }
            Ok::<_, Error>(())
        };
        write().map_err(|error| error.with_path(&path_of(&self.directory, self.base_offset, LogFileKind::Log)))?;
        self.position = self.position.saturating_add(u64_of(batch.size()));
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        if let Some(entry) = self.indexer.finish() {
            self.time_index.write_all(&entry.encode(self.base_offset)?)?;
        }
        let path = |kind| path_of(&self.directory, self.base_offset, kind);
        let finish = || {
            for file in [self.log, self.index, self.time_index] {
                let file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
                file.sync_all()?;
                file.set_modified(self.modified)?;
            }
            if !self.aborted.is_empty() {
                write_new(&path(LogFileKind::TransactionIndex), &self.aborted)?;
            }
            Ok(())
        };
        finish().map_err(|error: std::io::Error| Error::from(error).with_path(&path(LogFileKind::Log)))
    }
}
