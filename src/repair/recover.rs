//! [`recover`]: performs a broker's recovery of a partition after an unclean shutdown.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::compression::Scratch;
use crate::error::{Error, Result};
use crate::format::batch::Batch;
use crate::format::header::HEADER_LEN_UP_TO_MAGIC;
use crate::io::atomic::sync_directory;
use crate::io::location::directory_of;
use crate::io::lock::DirectoryLock;
use crate::io::staged::StagedDirectory;
use crate::io::{Location, PositionedFile, Progress};
use crate::limits::Limits;
use crate::log::checkpoint::LeaderEpochs;
use crate::log::headers::HeaderReader;
use crate::log::index::DEFAULT_INDEX_INTERVAL_BYTES;
use crate::log::inventory::{FileAction, FileChange, Inventory, name_of};
use crate::log::producer::MAX_SNAPSHOT_LEN;
use crate::log::running_broker::refuse_running_broker;
use crate::log::tail::SegmentTail;
use crate::num::u64_of;
use crate::repair::corruption::Corruption;
use crate::repair::output::{BatchRefusal, OutputSettings, PartitionOutput, SegmentOutput};
use crate::repair::rebuild::states_before;
use crate::repair::report::{DroppedRange, RepairReport, RepairedSegment, refuse_nothing_kept};
use crate::repair::walk::walk_to_corruption;
use crate::slices::Slices;
use crate::store::listing::{refuse_compressed, refuse_log_directory, refuse_special_files};
use crate::store::names::{LEADER_EPOCHS, LogFile, LogFileKind, MAX_SEGMENT_LEN, stops_a_broker};
use crate::store::{refuse_foreign_directory, refuse_foreign_file};

/// Options of [`recover`].
#[derive(Debug, Clone)]
pub struct RecoverOptions {
    /// Directory for the recovered copy. It must be empty or not exist.
    pub out: Option<PathBuf>,
    /// Whether to change the partition directory itself.
    pub in_place: bool,
    /// Whether to change nothing and only report what would be done.
    pub dry_run: bool,
    /// Kafka's `index.interval.bytes`. The default of a broker is 4096.
    pub index_interval_bytes: u64,
    /// Limits on the input.
    pub limits: Limits,
}

impl Default for RecoverOptions {
    fn default() -> Self {
        Self {
            out: None,
            in_place: false,
            dry_run: false,
            index_interval_bytes: DEFAULT_INDEX_INTERVAL_BYTES,
            limits: Limits::default(),
        }
    }
}

/// Recovers a partition directory like a broker that starts after an unclean shutdown with a recovery point of 0. The
/// result equals the files that this broker leaves after a clean shutdown.
///
/// Interrupted compactions and deletions are completed. Each segment is read batch by batch. The log is truncated at
/// the first batch that is incomplete or has a wrong size, magic or checksum, and all later segments are deleted.
/// Indexes, transaction indexes, producer snapshots and leader epochs are rebuilt from the remaining batches. A
/// segment is split if its batches span more than 2³¹ − 1 offsets from its base. Like in a broker, the records of
/// batches with a correct checksum are not checked.
///
/// With [`RecoverOptions::out`], the result is a copy that appears under its name once it is complete. With
/// [`RecoverOptions::in_place`], the directory itself is changed: each index is replaced atomically, and the log is
/// truncated last, so that a second run completes one that was killed.
///
/// Differences from a broker: a file that cannot be read is an error, not the end of the log. Producers that were idle
/// for a day are kept in the snapshots (a broker drops them when it loads one). Checkpoints of the log directory are
/// ignored.
///
/// # Errors
/// - [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if neither or both of `out` and `in_place` are
///   set, if `out` is not empty, if the directory has no segment, or if a segment is larger than 2³¹ − 1 bytes. In
///   place, also if a broker holds the log directory's `.lock` (detected on Linux only), or if a
///   [`LogWriter`](crate::log::LogWriter) or another repair uses the directory.
/// - [`ErrorKind::InvalidFile`](crate::ErrorKind::InvalidFile) if there is no complete batch, so that nothing would be
///   kept. Also if the `.swap` file of a compaction is damaged, but the segments that it replaces are complete: a broker
///   would remove them. Also if a segment exists only as a compressed copy.
/// - [`ErrorKind::Limit`](crate::ErrorKind::Limit) for a batch over [`Limits::batch_len`].
/// - I/O errors.
pub fn recover(
    path: impl Into<Location>,
    options: &RecoverOptions,
    progress: &mut Progress<'_>,
) -> Result<RepairReport> {
    let path: &Location = &path.into();
    check(path, options)?;
    // before the files are listed, which a writer may change
    let lock = || path.local_path().and_then(DirectoryLock::acquire);
    let _lock = (options.in_place && !options.dry_run).then(lock).transpose()?;
    let listed = path.entries()?;
    refuse_special_files(&listed)?;
    let mut inventory = Inventory::read(path, &options.limits)?;
    inventory.refuse_damaged_swap()?;
    let Some((start_offset, _)) = inventory.of_kind(LogFileKind::Log).next() else {
        refuse_log_directory(path)?;
        refuse_foreign_directory(path)?;
        return Err(Error::argument(format!("{} holds no segment", path.display())));
    };
    refuse_compressed(&listed)?;
    let staged = options.out.as_deref().filter(|_| !options.dry_run);
    let staged = staged.map(|out| StagedDirectory::create(path, out)).transpose()?;
    let changes = inventory.changes();
    let in_place = options.in_place && !options.dry_run;
    if in_place {
        inventory.apply()?;
    }
    let directory = staged.as_ref().map(StagedDirectory::directory).or(in_place.then_some(path.path()));
    let settings = OutputSettings {
        directory: directory.map(Path::to_path_buf),
        write_log: staged.is_some(),
        index_interval_bytes: options.index_interval_bytes,
        limits: options.limits.clone(),
    };
    let states = states_before(start_offset, &inventory, &options.limits)?;
    let mut recovery = Recovery {
        output: PartitionOutput::new(settings, states, read_epochs(path)),
        report: RepairReport {
            path: path.to_path_buf(),
            dry_run: options.dry_run,
            start_offset,
            ..RepairReport::default()
        },
        source: path.clone(),
        split: staged.is_some() || options.dry_run,
        end_offset: start_offset,
        snapshots: BTreeSet::new(),
    };
    recovery.segments(&inventory, progress)?;
    recovery.refuse_no_log(options.in_place)?;
    let mut report = recovery.finish(&inventory, in_place)?;
    report.files.splice(0..0, changes);
    progress.finish()?;
    if let Some(staged) = staged {
        report.files.extend(copy_others(&inventory, staged.directory())?);
        staged.commit()?;
        report.out.clone_from(&options.out);
    }
    Ok(report)
}

fn check(path: &Location, options: &RecoverOptions) -> Result<()> {
    if !path.status()?.is_directory() {
        let message = format!(
            "{} is not a partition directory: to repair a single segment, use rebuild_indexes or salvage",
            path.display()
        );
        return Err(Error::argument(message));
    }
    if !options.dry_run && options.out.is_some() == options.in_place {
        let message =
            "set out to the directory for the recovered copy, or in_place to change the partition directory itself";
        return Err(Error::argument(message));
    }
    if options.in_place && !options.dry_run { path.local_path().and_then(refuse_running_broker) } else { Ok(()) }
}

/// Reads the leader epochs of a partition. Returns none if the file is missing or corrupt, because the batches contain
/// them too.
pub(crate) fn read_epochs(directory: &Location) -> LeaderEpochs {
    LeaderEpochs::read(directory.join(LEADER_EPOCHS)).unwrap_or_default()
}

/// Copies files that are not segment files and were not rewritten, except those that would prevent a broker from
/// starting. Returns those that are not copied because they are larger than any file that Kafka keeps beside segments.
pub(crate) fn copy_others(inventory: &Inventory, to: &Path) -> Result<Vec<FileChange>> {
    let mut omitted = Vec::new();
    for path in &inventory.others {
        let copy = to.join(name_of(path));
        if copy.exists() || stops_a_broker(&name_of(path)) {
            continue;
        }
        if path.len()? > u64_of(MAX_SNAPSHOT_LEN) {
            omitted.push(FileChange { name: name_of(path), action: FileAction::Deleted });
        } else {
            copy_file(path, &copy)?;
        }
    }
    Ok(omitted)
}

fn copy_file(from: &Location, to: &Path) -> Result<()> {
    if from.is_local() {
        let copy = || fs::copy(from, to).and_then(|_| File::open(to)?.sync_all());
        return copy().map_err(|error| Error::from(error).with_path(from));
    }
    let (from, mut position) = (from.open()?, 0);
    let mut to = File::create_new(to)?;
    let mut chunk = vec![0; COPY_CHUNK_LEN];
    loop {
        let count = from.read_at(&mut chunk, position)?;
        to.write_all(chunk.part(..count))?;
        position = position.saturating_add(u64_of(count));
        if count < chunk.len() {
            return Ok(to.sync_all()?);
        }
    }
}

/// Number of bytes to copy at a time.
const COPY_CHUNK_LEN: usize = 1 << 20;

/// A segment's base offset, file and length.
type SegmentRef<'a> = (i64, &'a Location, u64);

struct Recovery {
    /// The partition directory.
    source: Location,
    output: PartitionOutput,
    report: RepairReport,
    /// Whether a segment may be split.
    split: bool,
    end_offset: i64,
    /// Offsets of the snapshots that were written.
    snapshots: BTreeSet<i64>,
}

impl Recovery {
    fn segments(&mut self, inventory: &Inventory, progress: &mut Progress<'_>) -> Result<()> {
        let mut sizes = Vec::new();
        for (base_offset, path) in inventory.of_kind(LogFileKind::Log) {
            let size = path.len()?;
            if size > MAX_SEGMENT_LEN {
                let message = format!(
                    "{} has {size} bytes, but a broker accepts at most {MAX_SEGMENT_LEN}: use salvage",
                    path.display()
                );
                return Err(Error::argument(message));
            }
            sizes.push((base_offset, path, size));
        }
        progress.expect(sizes.iter().fold(0, |sum, (.., size)| size.saturating_add(sum)))?;
        let mut faulty = false;
        for (base_offset, path, size) in sizes {
            if faulty {
                self.drop_segment(base_offset, path, size);
                continue;
            }
            self.snapshot(base_offset)?;
            let index = LogFile::live(base_offset, LogFileKind::TransactionIndex);
            let has_index = inventory.files.contains_key(&index);
            faulty = self.segment((base_offset, path, size), has_index, progress)?;
        }
        self.snapshot(self.end_offset)
    }

    /// Refuses files that do not begin like a log, such as texts. In place, refuses to truncate everything, or because
    /// of such a file. A broker would do both.
    fn refuse_no_log(&self, in_place: bool) -> Result<()> {
        for dropped in &self.report.dropped {
            let path = self.source.join(name_of(&dropped.path));
            if in_place && dropped.position == 0 {
                refuse_foreign_file(&path)?;
            } else if !in_place && begins_like_a_batch(&path.open()?)? {
                return Ok(());
            }
        }
        let Err(error) = refuse_nothing_kept(&self.source, &self.report) else { return Ok(()) };
        match (self.drops_a_batch()?, in_place) {
            (true, true) => Err(error.with_note("salvage keeps the complete batches after it")),
            (true, false) => Ok(()),
            (false, _) => Err(error),
        }
    }

    /// Whether there is a complete batch in what is dropped.
    fn drops_a_batch(&self) -> Result<bool> {
        for dropped in &self.report.dropped {
            let file = self.source.join(name_of(&dropped.path)).open()?;
            if SegmentTail::any_batch(&file, dropped.position)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Writes the snapshot that a broker writes at a new offset.
    fn snapshot(&mut self, offset: i64) -> Result<()> {
        self.output.states.set_end_offset(offset);
        let last = self.snapshots.last().copied().unwrap_or(self.report.start_offset);
        if offset > last {
            self.output.write_snapshot(offset)?;
            self.snapshots.insert(offset);
        }
        Ok(())
    }

    /// Recovers a segment. Returns whether it was truncated.
    fn segment(&mut self, place: SegmentRef<'_>, has_index: bool, progress: &mut Progress<'_>) -> Result<bool> {
        let (base_offset, path, size) = place;
        let before = (self.output.states.clone(), self.output.epochs.clone());
        let mut segment = self.output.begin_segment(base_offset, path)?;
        if has_index {
            self.output.keep_transaction_index(&mut segment)?;
        }
        self.end_offset = base_offset;
        let limits = self.output.limits().clone();
        let corruption = walk_to_corruption(path, &limits, &mut |batch| {
            let corruption = self.append(batch, &mut segment, (path, size))?;
            if corruption.is_none() {
                progress.advance(u64_of(batch.size()))?;
            }
            Ok(corruption)
        })?;
        let mut cut_at = corruption.as_ref().map_or(size, |corruption| corruption.position);
        if corruption.as_ref().is_some_and(|corruption| corruption.reason == "offset_order") {
            // like a broker, keeps no batch of such a segment
            (self.output.states, self.output.epochs) = before;
            self.end_offset = base_offset;
            let indexed = segment.has_transaction_index;
            drop(segment); // the next one has the same temporary name
            segment = self.output.begin_segment(base_offset, path)?;
            if indexed {
                self.output.keep_transaction_index(&mut segment)?;
            }
            cut_at = 0;
        }
        self.finish_segment(segment, path, size)?;
        let Some(corruption) = corruption.filter(|_| cut_at < size) else { return Ok(false) };
        self.report.dropped.push(DroppedRange {
            path: path.to_path_buf(),
            position: cut_at,
            length: size.saturating_sub(cut_at),
            first_offset: Some(self.end_offset),
            last_offset: last_offset(path, cut_at, self.output.limits()).filter(|last| *last >= self.end_offset),
            reason: corruption.reason,
            message: corruption.message,
            open_transactions: Vec::new(),
        });
        Ok(true)
    }

    fn finish_segment(&mut self, segment: SegmentOutput, path: &Location, size: u64) -> Result<()> {
        self.report.segments.push(RepairedSegment {
            base_offset: segment.base_offset,
            path: path.to_path_buf(),
            bytes_before: size,
            bytes_after: segment.len,
            batch_count: segment.batch_count,
        });
        self.output.finish_segment(segment)
    }

    /// Appends a batch. Returns why the log ends before or after it, if it does.
    fn append(
        &mut self,
        batch: &Batch<'_>,
        segment: &mut SegmentOutput,
        (path, size): (&Location, u64),
    ) -> Result<Option<Corruption>> {
        let mut refusal = self.output.append(segment, batch);
        if matches!(refusal, Err(BatchRefusal::Overflow)) && self.split {
            let base_offset = batch.first_offset(&mut Scratch::new(), self.output.limits())?;
            if base_offset > segment.base_offset {
                let next = self.output.begin_segment(base_offset, path)?;
                self.finish_segment(std::mem::replace(segment, next), path, size)?;
                self.snapshot(base_offset)?;
                refusal = self.output.append(segment, batch);
            }
        }
        let corruption = Corruption::of_refusal(refusal, batch)?;
        if corruption.as_ref().is_none_or(|corruption| corruption.reason == "control_record") {
            self.end_offset = batch.next_offset();
        }
        Ok(corruption)
    }

    /// Drops a segment after the corruption.
    fn drop_segment(&mut self, base_offset: i64, path: &Location, size: u64) {
        self.report.dropped.push(DroppedRange {
            path: path.to_path_buf(),
            position: 0,
            length: size,
            first_offset: Some(base_offset),
            last_offset: last_offset(path, 0, self.output.limits()).filter(|last| *last >= base_offset),
            reason: "after_fault",
            message: "the segment is after the position at which the log is truncated".to_owned(),
            open_transactions: Vec::new(),
        });
    }

    /// Completes the recovery: writes the leader epochs, deletes files, and truncates the log.
    fn finish(mut self, inventory: &Inventory, in_place: bool) -> Result<RepairReport> {
        self.output.epochs.truncate_from_end(self.end_offset);
        let has_file = inventory.others.iter().any(|path| name_of(path) == LEADER_EPOCHS);
        let before = LeaderEpochs::read(self.source.join(LEADER_EPOCHS)).ok();
        // a file with the same content is not rewritten
        if before.map_or(has_file, |before| before != self.output.epochs)
            || (!has_file && !self.output.epochs.entries().is_empty())
        {
            self.output.write_epochs()?;
        }
        let mut report = self.report;
        report.files.clone_from(&self.output.changes);
        report.end_offset = self.end_offset;
        let kept: BTreeSet<&Path> = report.segments.iter().map(|segment| segment.path.as_path()).collect();
        let stale = |(file, path): &(&LogFile, &Location)| match file.kind {
            LogFileKind::Log => !kept.contains(path.path()),
            _ => !self.output.has_written(file),
        };
        // the last segment first, so that the log has no gap at any time
        for (_, path) in inventory.files.iter().filter(stale).rev() {
            report.files.push(FileChange { name: name_of(path), action: FileAction::Deleted });
            if in_place {
                fs::remove_file(path).map_err(|error| Error::from(error).with_path(path))?;
            }
        }
        if let Some(segment) = report.segments.last().filter(|segment| segment.bytes_after < segment.bytes_before) {
            report.files.push(FileChange { name: name_of(&segment.path), action: FileAction::Truncated });
            if in_place {
                let cut = || {
                    // a segment after the end that comes back after a crash would leave a gap
                    sync_directory(directory_of(&segment.path))?;
                    let file = OpenOptions::new().write(true).open(&segment.path)?;
                    file.set_len(segment.bytes_after)?;
                    file.sync_all()
                };
                cut().map_err(|error| Error::from(error).with_path(&segment.path))?;
            }
        }
        Ok(report)
    }
}

/// Whether a file begins with the offset or the magic of a batch, even if the other one is corrupt.
fn begins_like_a_batch(file: &PositionedFile) -> Result<bool> {
    let mut head = [0; HEADER_LEN_UP_TO_MAGIC];
    let is_whole = file.read_at(&mut head, 0)? == head.len();
    let has_offset = head.first_chunk().is_some_and(|offset| (0..1 << 48).contains(&i64::from_be_bytes(*offset)));
    Ok(is_whole && (has_offset || head.last().is_some_and(|magic| *magic <= 2)))
}

/// Returns the last offset of a file whose batches are readable from a position to the end.
pub(crate) fn last_offset(path: &Location, position: u64, limits: &Limits) -> Option<i64> {
    let mut reader = HeaderReader::open(path, limits).ok()?.starting_at(position);
    let mut last = None;
    while let Some(Ok(header)) = reader.next_header() {
        last = Some(header.last_offset()).max(last);
    }
    last.filter(|_| reader.remainder_len() == 0)
}
