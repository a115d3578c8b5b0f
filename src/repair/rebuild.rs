//! [`rebuild_indexes`]: rebuilds the indexes and producer snapshots of a log.

use std::fs;
use std::path::PathBuf;

use crate::compression::Scratch;
use crate::error::{Error, Result};
use crate::io::lock::DirectoryLock;
use crate::io::staged::StagedDirectory;
use crate::io::{Location, Progress};
use crate::limits::Limits;
use crate::log::checkpoint::LeaderEpochs;
use crate::log::index::DEFAULT_INDEX_INTERVAL_BYTES;
use crate::log::inventory::{FileAction, FileChange, Inventory, name_of};
use crate::log::producer::{ProducerSnapshot, ProducerStates, states_at};
use crate::log::reader::SegmentReader;
use crate::log::running_broker::refuse_running_broker;
use crate::log::walk::{BatchWalk, WalkEvent};
use crate::num::u64_of;
use crate::repair::corruption::Corruption;
use crate::repair::output::{OutputSettings, PartitionOutput};
use crate::repair::report::{DroppedRange, RepairReport, RepairedSegment};
use crate::repair::walk::walk_to_corruption;
use crate::store::listing::{listed_with_unread, refuse_special_files};
use crate::store::names::{LogFile, LogFileKind};

/// Options of [`rebuild_indexes`].
#[derive(Debug, Clone)]
pub struct RebuildOptions {
    /// Directory for the new files. It must be empty or not exist. If `None`, they replace the existing ones.
    pub out: Option<PathBuf>,
    /// Kafka's `index.interval.bytes`. The default of a broker is 4096.
    pub index_interval_bytes: u64,
    /// Limits on the input.
    pub limits: Limits,
}

impl Default for RebuildOptions {
    fn default() -> Self {
        Self { out: None, index_interval_bytes: DEFAULT_INDEX_INTERVAL_BYTES, limits: Limits::default() }
    }
}

/// Rebuilds `.index`, `.timeindex`, `.txnindex` and producer snapshots, for a partition directory or a single segment.
/// No byte of a `.log` file is changed. Each file is replaced atomically.
///
/// Indexes cover a segment up to its first corruption; [`RepairReport::dropped`] lists the bytes after it. A snapshot
/// that can be read is kept, because after compaction it contains more than the log. A transaction index without
/// entries is removed.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if there is no segment, if `out` is not empty, or
/// if files would be replaced while a broker holds the log directory's `.lock` or a
/// [`LogWriter`](crate::log::LogWriter) uses the directory. I/O errors.
pub fn rebuild_indexes(
    path: impl Into<Location>,
    options: &RebuildOptions,
    progress: &mut Progress<'_>,
) -> Result<RepairReport> {
    let path: &Location = &path.into();
    let RebuildSources { directory, logs, inventory } = sources(path)?;
    let Some((start_offset, _)) = logs.first().cloned() else {
        return Err(Error::argument(format!("{} holds no segment", path.display())));
    };
    if options.out.is_none() {
        refuse_running_broker(directory.local_path()?)?;
    }
    let _lock = options.out.is_none().then(|| DirectoryLock::acquire(&directory)).transpose()?;
    let staged = options.out.as_deref().map(|out| StagedDirectory::create(path, out)).transpose()?;
    let settings = OutputSettings {
        directory: Some(staged.as_ref().map_or(directory.path(), StagedDirectory::directory).to_path_buf()),
        write_log: false,
        index_interval_bytes: options.index_interval_bytes,
        limits: options.limits.clone(),
    };
    let states = states_before(start_offset, &inventory, &options.limits)?;
    let mut rebuild = Rebuild {
        output: PartitionOutput::new(settings, states, LeaderEpochs::default()),
        report: RepairReport { path: path.to_path_buf(), start_offset, is_of_indexes: true, ..RepairReport::default() },
        inventory: &inventory,
    };
    let whole = path.is_dir();
    rebuild.segments(&logs, whole, progress)?;
    let mut report = rebuild.finish(options.out.is_none())?;
    progress.finish()?;
    if let Some(staged) = staged {
        staged.commit()?;
        report.out.clone_from(&options.out);
    }
    Ok(report)
}

/// The segments to rebuild, and the files around them.
struct RebuildSources {
    directory: Location,
    /// Segments to rebuild, by base offset.
    logs: Vec<(i64, Location)>,
    /// All files of the directory.
    inventory: Inventory,
}

fn sources(path: &Location) -> Result<RebuildSources> {
    if path.is_dir() {
        let (listed, unread) = listed_with_unread(path)?;
        if let Some(unread) = unread {
            return Err(unread.error());
        }
        refuse_special_files(&listed)?;
        let inventory = Inventory::live(path)?;
        let logs = inventory.of_kind(LogFileKind::Log).map(|(offset, path)| (offset, path.clone())).collect();
        return Ok(RebuildSources { directory: path.clone(), logs, inventory });
    }
    path.status()?;
    let Some(file) =
        LogFile::parse(&name_of(path)).filter(|file| *file == LogFile::live(file.base_offset, LogFileKind::Log))
    else {
        let message = format!("{} is not named like a segment: <20 digits of the base offset>.log", path.display());
        return Err(Error::argument(message));
    };
    let directory = path.directory();
    let inventory = Inventory::live(&directory)?;
    Ok(RebuildSources { directory, logs: vec![(file.base_offset, path.clone())], inventory })
}

/// Returns the state of the producers at an offset. Batches after corruption in a segment are not part of it.
pub(crate) fn states_before(offset: i64, inventory: &Inventory, limits: &Limits) -> Result<ProducerStates> {
    let snapshots: Vec<_> = inventory.of_kind(LogFileKind::ProducerSnapshot).collect();
    let segments: Vec<_> = inventory.of_kind(LogFileKind::Log).collect();
    let mut scratch = Scratch::new();
    let found = states_at(offset, &snapshots, &segments, |states, path, from| {
        let mut walk = BatchWalk::new(SegmentReader::open_with(path, limits)?, limits);
        loop {
            match walk.next_batch()? {
                WalkEvent::Batch(batch) if batch.last_offset() < from => {}
                WalkEvent::Batch(batch) if states.update(&batch, &mut scratch, limits).is_ok() => {}
                WalkEvent::Corrupt { error, .. } if error.is_of_reading() => return Err(error),
                _ => return Ok(()), // a broker would truncate the log here
            }
        }
    })?;
    Ok(found.states)
}

struct Rebuild<'a> {
    output: PartitionOutput,
    report: RepairReport,
    inventory: &'a Inventory,
}

impl Rebuild<'_> {
    fn segments(&mut self, logs: &[(i64, Location)], whole: bool, progress: &mut Progress<'_>) -> Result<()> {
        let mut sizes = Vec::new();
        for (_, path) in logs {
            sizes.push(path.len()?);
        }
        progress.expect(sizes.iter().fold(0, |sum, size| size.saturating_add(sum)))?;
        for ((base_offset, path), size) in logs.iter().zip(sizes) {
            if *base_offset > self.report.start_offset {
                self.snapshot(*base_offset)?;
            }
            self.report.end_offset = *base_offset;
            let mut segment = self.output.begin_segment(*base_offset, path)?;
            let limits = self.output.limits().clone();
            let corruption = walk_to_corruption(path, &limits, &mut |batch| {
                let corruption = Corruption::of_refusal(self.output.append(&mut segment, batch), batch)?;
                if corruption.is_none() {
                    self.report.end_offset = batch.next_offset();
                    progress.advance(u64_of(batch.size()))?;
                }
                Ok(corruption)
            })?;
            if let Some(corruption) = corruption.filter(|corruption| corruption.position < size) {
                self.report.dropped.push(DroppedRange {
                    path: path.to_path_buf(),
                    position: corruption.position,
                    length: size.saturating_sub(corruption.position),
                    first_offset: None,
                    last_offset: None,
                    reason: corruption.reason,
                    message: format!("{}; no index covers the bytes from here on", corruption.message),
                    open_transactions: Vec::new(),
                });
            }
            self.report.segments.push(RepairedSegment {
                base_offset: *base_offset,
                path: path.to_path_buf(),
                bytes_before: size,
                bytes_after: segment.len,
                batch_count: segment.batch_count,
            });
            self.output.finish_segment(segment)?;
        }
        if whole && self.report.end_offset > self.report.start_offset {
            self.snapshot(self.report.end_offset)
        } else {
            Ok(())
        }
    }

    /// Loads the snapshot at an offset, or writes it if it is missing or corrupt.
    fn snapshot(&mut self, offset: i64) -> Result<()> {
        let file = LogFile::live(offset, LogFileKind::ProducerSnapshot);
        if let Some(Ok(snapshot)) = self.inventory.files.get(&file).map(ProducerSnapshot::read) {
            self.output.states = ProducerStates::from_snapshot(&snapshot, offset);
            return Ok(());
        }
        self.output.states.set_end_offset(offset);
        self.output.write_snapshot(offset)
    }

    /// Removes transaction indexes that have no entries anymore.
    fn finish(self, in_place: bool) -> Result<RepairReport> {
        let mut report = self.report;
        report.files.clone_from(&self.output.changes);
        for (base_offset, path) in self.inventory.of_kind(LogFileKind::TransactionIndex) {
            let rebuilt = report.segments.iter().any(|segment| segment.base_offset == base_offset);
            if rebuilt && !self.output.has_written(&LogFile::live(base_offset, LogFileKind::TransactionIndex)) {
                report.files.push(FileChange { name: name_of(path), action: FileAction::Deleted });
                if in_place {
                    fs::remove_file(path).map_err(|error| Error::from(error).with_path(path))?;
                }
            }
        }
        Ok(report)
    }
}
