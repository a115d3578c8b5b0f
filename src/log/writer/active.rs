//! [`ActiveSegment`]: the segment that a writer appends to.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::options::LogWriterOptions;
use crate::error::{Error, Result};
use crate::format::batch::Batch;
use crate::io::same_file::is_same_file;
use crate::log::index::{AbortedTransaction, SegmentIndexer};
use crate::num::u64_of;
use crate::store::names::{LogFile, LogFileKind};

/// A segment's files, open for appending. Batches are written to the `.log` immediately. Index entries are buffered in
/// memory, because the indexes are rebuilt after an unclean end anyway.
#[derive(Debug)]
pub(super) struct ActiveSegment {
    base_offset: i64,
    path: PathBuf,
    log: File,
    /// Length of the `.log` in bytes.
    len: u64,
    indexer: SegmentIndexer,
    offset_index: IndexFile,
    time_index: IndexFile,
    transaction_index: IndexFile,
    /// Largest timestamp of the first batch, the start of `segment.ms`.
    first_timestamp: Option<i64>,
    /// The start of `segment.ms` if the first batch has no timestamp.
    opened: Instant,
}

impl ActiveSegment {
    /// Creates a segment. Its `.log` is created last, because only that makes it a segment.
    pub(super) fn create(directory: &Path, base_offset: i64, options: &LogWriterOptions) -> Result<Self> {
        let mut indexes = index_files(directory, base_offset);
        indexes.iter_mut().try_for_each(IndexFile::start)?;
        Self::with(directory, base_offset, indexes, options)
    }

    /// Opens the `.log` of a segment to note its batches. [`ActiveSegment::restart_indexes`] must be called
    /// afterwards.
    pub(super) fn reopen(directory: &Path, base_offset: i64, options: &LogWriterOptions) -> Result<Self> {
        let mut segment = Self::with(directory, base_offset, index_files(directory, base_offset), options)?;
        segment.indexer.resize(u64::MAX); // the broker that wrote it may have had a larger limit
        Ok(segment)
    }

    fn with(
        directory: &Path,
        base_offset: i64,
        [offset_index, time_index, transaction_index]: [IndexFile; 3],
        options: &LogWriterOptions,
    ) -> Result<Self> {
        let path = directory.join(LogFile::live(base_offset, LogFileKind::Log).to_string());
        let log = OpenOptions::new().create(true).append(true).open(&path);
        let log = log.map_err(|error| Error::from(error).with_path(&path))?;
        Ok(Self {
            base_offset,
            path,
            log,
            len: 0,
            indexer: SegmentIndexer::new(base_offset, options.index_interval_bytes, options.segment_index_bytes),
            offset_index,
            time_index,
            transaction_index,
            first_timestamp: None,
            opened: Instant::now(),
        })
    }

    /// Replaces the indexes with entries for the noted batches.
    pub(super) fn restart_indexes(&mut self, options: &LogWriterOptions) -> Result<()> {
        self.indexer.resize(options.segment_index_bytes);
        self.indexes().into_iter().try_for_each(IndexFile::start)?;
        self.write_indexes()
    }

    pub(super) fn base_offset(&self) -> i64 {
        self.base_offset
    }

    /// Size of the noted batches in bytes.
    pub(super) fn size(&self) -> u64 {
        self.len
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Kafka's `LogSegment.shouldRoll` for the next batch.
    pub(super) fn should_roll(&self, batch: &Batch<'_>, options: &LogWriterOptions) -> bool {
        let len = self.len.saturating_add(u64_of(batch.size()));
        let relative = batch.last_offset().saturating_sub(self.base_offset);
        let is_old = || options.segment_ms.is_some_and(|segment_ms| self.age_ms(batch) > i128::from(segment_ms));
        len > options.segment_bytes
            || (!self.is_empty() && is_old())
            || self.indexer.is_full()
            || i32::try_from(relative).is_err()
    }

    /// Time in milliseconds between the largest timestamps of the first batch and of `batch`. If the first has none,
    /// the time since the segment was opened.
    fn age_ms(&self, batch: &Batch<'_>) -> i128 {
        match self.first_timestamp.filter(|timestamp| *timestamp >= 0) {
            Some(first) => i128::from(batch.max_timestamp()).saturating_sub(i128::from(first)),
            None => i128::try_from(self.opened.elapsed().as_millis()).unwrap_or(i128::MAX),
        }
    }

    /// Appends a batch.
    pub(super) fn append(&mut self, batch: &Batch<'_>, aborted: Option<AbortedTransaction>) -> Result<()> {
        let end = self.len;
        self.note(batch, aborted)?;
        self.log.write_all(batch.bytes()).map_err(|error| Error::from(error).at(end).with_path(&self.path))
    }

    /// Notes a batch that is in the `.log`: updates the length and the index entries.
    pub(super) fn note(&mut self, batch: &Batch<'_>, aborted: Option<AbortedTransaction>) -> Result<()> {
        let mut header = *batch.header();
        header.position = self.len;
        let entries = self.indexer.observe(&header).map_err(|error| error.with_path(&self.path))?;
        if let Some(entry) = entries.offset {
            self.offset_index.push(&entry.encode(self.base_offset)?)?;
        }
        if let Some(entry) = entries.time {
            self.time_index.push(&entry.encode(self.base_offset)?)?;
        }
        if let Some(aborted) = aborted {
            self.transaction_index.push(&aborted.encode())?;
        }
        self.first_timestamp.get_or_insert(batch.max_timestamp());
        self.len = self.len.saturating_add(u64_of(batch.size()));
        Ok(())
    }

    /// Truncates the `.log` after the noted batches. Returns the number of bytes removed.
    pub(super) fn cut(&mut self) -> Result<u64> {
        let cut = || {
            let dropped = self.log.metadata()?.len().saturating_sub(self.len);
            if dropped > 0 {
                self.log.set_len(self.len)?;
            }
            self.log.sync_all()?;
            Ok(dropped)
        };
        cut().map_err(|error: io::Error| Error::from(error).with_path(&self.path))
    }

    /// Flushes batches to disk.
    pub(super) fn sync_log(&self) -> Result<()> {
        self.log.sync_data().map_err(|error| Error::from(error).with_path(&self.path))?;
        self.check_place()
    }

    /// Refuses a `.log` that is no longer at its path: what was written would be lost, or in another directory.
    fn check_place(&self) -> Result<()> {
        let is_there = || match fs::metadata(&self.path) {
            Ok(found) => Ok(!cfg!(unix) || is_same_file(&found, &self.log.metadata()?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        };
        if is_there().map_err(|error| Error::from(error).with_path(&self.path))? {
            return Ok(());
        }
        let message = "the segment was moved, replaced or deleted while the writer had it open: open a new writer, and \
                       append again what this path must contain";
        Err(Error::from(io::Error::new(io::ErrorKind::NotFound, message)).with_path(&self.path))
    }

    /// Writes the buffered index entries.
    pub(super) fn write_indexes(&mut self) -> Result<()> {
        self.indexes().into_iter().try_for_each(IndexFile::write)
    }

    /// Ends the segment: writes the last entry of the time index and flushes everything to disk.
    pub(super) fn finish(&mut self) -> Result<()> {
        if let Some(entry) = self.indexer.finish() {
            self.time_index.push(&entry.encode(self.base_offset)?)?;
        }
        self.log.sync_all().map_err(|error| Error::from(error).with_path(&self.path))?;
        self.check_place()?;
        self.write_indexes()?;
        self.indexes().into_iter().try_for_each(|index| index.sync())
    }

    fn indexes(&mut self) -> [&mut IndexFile; 3] {
        [&mut self.offset_index, &mut self.time_index, &mut self.transaction_index]
    }
}

/// Largest number of bytes of entries to buffer.
const MAX_WAITING_LEN: usize = 1 << 16;

/// An index that is written incrementally.
#[derive(Debug)]
struct IndexFile {
    path: PathBuf,
    /// Whether the file exists even if it has no entry.
    always: bool,
    /// The file, if it was created.
    file: Option<File>,
    /// Entries that are not written yet.
    waiting: Vec<u8>,
}

/// The offset, time and transaction indexes of a segment.
fn index_files(directory: &Path, base_offset: i64) -> [IndexFile; 3] {
    let kinds =
        [(LogFileKind::OffsetIndex, true), (LogFileKind::TimeIndex, true), (LogFileKind::TransactionIndex, false)];
    kinds.map(|(kind, always)| {
        let path = directory.join(LogFile::live(base_offset, kind).to_string());
        IndexFile { path, always, file: None, waiting: Vec::new() }
    })
}

impl IndexFile {
    /// Creates an empty file in place of any existing one, or removes it if the index needs no file yet.
    fn start(&mut self) -> Result<()> {
        let start = || {
            if self.always {
                return File::create(&self.path).map(Some);
            }
            match fs::remove_file(&self.path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
                _ => Ok(None),
            }
        };
        self.file = start().map_err(|error| Error::from(error).with_path(&self.path))?;
        Ok(())
    }

    fn push(&mut self, entry: &[u8]) -> Result<()> {
        self.waiting.extend_from_slice(entry);
        // entries of a reopened segment are buffered until the file is created
        if self.waiting.len() >= MAX_WAITING_LEN && self.file.is_some() { self.write() } else { Ok(()) }
    }

    fn write(&mut self) -> Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(File::create(&self.path).map_err(|error| Error::from(error).with_path(&self.path))?),
        };
        file.write_all(&self.waiting).map_err(|error| Error::from(error).with_path(&self.path))?;
        self.waiting.clear();
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        file.sync_all().map_err(|error| Error::from(error).with_path(&self.path))
    }
}
