//! [`salvage`]: keeps every complete batch of a damaged file or partition.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use crate::compression::Scratch;
use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Batch;
use crate::format::control::ControlRecord;
use crate::format::record::Record;
use crate::io::atomic::write_atomically;
use crate::io::staged::StagedDirectory;
use crate::io::{Location, Progress};
use crate::limits::Limits;
use crate::log::checkpoint::LeaderEpochs;
use crate::log::checkpoint::PartitionMetadata;
use crate::log::index::DEFAULT_INDEX_INTERVAL_BYTES;
use crate::log::inventory::{FileAction, FileChange, Inventory};
use crate::log::reader::SegmentReader;
use crate::log::walk::{BatchWalk, WalkEvent};
use crate::num::u64_of;
use crate::repair::corruption::Corruption;
use crate::repair::output::{BatchRefusal, OutputSettings, PartitionOutput, SegmentOutput};
use crate::repair::rebuild::states_at;
use crate::repair::recover::{copy_others, read_epochs};
use crate::repair::report::{DroppedRange, OpenTransaction, RepairReport, RepairedSegment, refuse_nothing_kept};
use crate::repair::walk::{Visitor, walk};
use crate::store::listing::refuse_log_directory;
use crate::store::names::{LogFile, LogFileKind, PARTITION_METADATA};
use crate::store::{refuse_archive, refuse_foreign_directory};

/// Most open transactions to list for a dropped range.
const MAX_OPEN_TRANSACTIONS: usize = 100;

/// The file that lists the dropped ranges.
pub(crate) const HOLES: &str = "holes.jsonl";

/// Options of [`salvage`].
#[derive(Debug, Clone)]
pub struct SalvageOptions {
    /// Kafka's `index.interval.bytes`. The default of a broker is 4096.
    pub index_interval_bytes: u64,
    /// Limits on the input.
    pub limits: Limits,
}

impl Default for SalvageOptions {
    fn default() -> Self {
        Self { index_interval_bytes: DEFAULT_INDEX_INTERVAL_BYTES, limits: Limits::default() }
    }
}

/// Keeps every valid batch of a file of batches or of a partition directory, which a broker would truncate at the
/// first corruption.
///
/// A batch is valid if its size, magic and checksum are correct, if all its records can be decoded, and if its offsets
/// are after those of the previous batch and, after a gap, before those of the next segment. After corruption, the
/// next batch is searched; bytes inside a record are never treated as a batch. The result is a partition directory
/// with the original offsets, and with indexes, producer snapshots and leader epochs. It appears under its name once it is
/// complete. [`RepairReport::dropped`] lists the dropped bytes. If there are any, the file `holes.jsonl` of the result,
/// which a broker ignores, also lists them.
///
/// A compressed v0 set stores its last offset a second time, outside of its checksum. If it differs from that of the last
/// message, it is corrected.
///
/// A transaction whose marker is lost stays open: consumers with `read_committed` wait before it. If its producer has a later
/// transaction, the marker of that one decides about the records of both, also if the source's `.txnindex` knows better.
/// [`DroppedRange::open_transactions`] lists the transactions that this may concern.
///
/// # Errors
/// - [`ErrorKind::InvalidArgument`] if `out` is not empty or there is no segment.
/// - [`ErrorKind::InvalidFile`] if there is no complete batch, so that nothing would be kept.
/// - [`ErrorKind::Limit`] for a complete batch over the limits.
/// - I/O errors.
pub fn salvage(
    path: impl Into<Location>,
    out: impl AsRef<Path>,
    options: &SalvageOptions,
    progress: &mut Progress<'_>,
) -> Result<RepairReport> {
    let (path, out): (&Location, &Path) = (&path.into(), out.as_ref());
    let limits = &options.limits;
    refuse_archive(path)?;
    let inventory = if path.is_dir() { Inventory::read(path, limits)? } else { Inventory::default() };
    let sources = sources(path, &inventory, limits)?;
    let staged = StagedDirectory::create(path, out)?;
    let settings = OutputSettings {
        directory: Some(staged.directory().to_path_buf()),
        write_log: true,
        index_interval_bytes: options.index_interval_bytes,
        limits: limits.clone(),
    };
    let start_offset = sources.first().and_then(|source| source.base_offset);
    let states = states_at(&inventory, start_offset.unwrap_or(0), limits)?;
    let epochs = if path.is_dir() { read_epochs(path) } else { LeaderEpochs::default() };
    progress.expect(sources.iter().fold(0, |sum, source| source.size.saturating_add(sum)))?;
    let mut salvage = Salvage {
        output: PartitionOutput::new(settings, states, epochs),
        report: RepairReport { path: path.to_path_buf(), out: Some(out.to_path_buf()), ..RepairReport::default() },
        scratch: Scratch::new(),
        limits: limits.clone(),
        source: None,
        segment: None,
        held: None,
        end_offset: None,
        open_holes: 0,
        progress,
    };
    salvage.sources(&sources)?;
    let mut report = salvage.finish(path.is_dir())?;
    refuse_nothing_kept(path, &report)?;
    copy_others(&inventory, staged.directory())?;
    report.files.extend(remove_bad_metadata(staged.directory())?);
    if !report.dropped.is_empty() {
        write_atomically(&staged.directory().join(HOLES), holes(&report.dropped).as_bytes())?;
    }
    progress.finish()?;
    staged.commit()?;
    Ok(report)
}

/// Removes a copy of `partition.metadata` that can't be read: a broker would not start with it, but creates a missing one.
fn remove_bad_metadata(directory: &Path) -> Result<Option<FileChange>> {
    let path = directory.join(PARTITION_METADATA);
    if !path.exists() || PartitionMetadata::read(&path).is_ok() {
        return Ok(None);
    }
    fs::remove_file(&path).map_err(|error| Error::from(error).with_path(&path))?;
    Ok(Some(FileChange { name: PARTITION_METADATA.to_owned(), action: FileAction::Deleted }))
}

/// A source file.
#[derive(Debug, Clone)]
struct SourceFile {
    path: Location,
    /// Base offset from the name, or the offset of the first batch if that is valid and smaller.
    base_offset: Option<i64>,
    /// The offset of the first batch, if that is valid.
    first: Option<i64>,
    /// Base offset of the next segment that has a batch.
    bound: i64,
    size: u64,
}

fn sources(path: &Location, inventory: &Inventory, limits: &Limits) -> Result<Vec<SourceFile>> {
    let mut files: Vec<(Option<i64>, Location)> =
        inventory.of_kind(LogFileKind::Log).map(|(offset, path)| (Some(offset), path.clone())).collect();
    if files.is_empty() {
        if path.is_dir() {
            refuse_log_directory(path)?;
            refuse_foreign_directory(path)?;
            return Err(Error::argument(format!("{} holds no segment", path.display())));
        }
        files.push((LogFile::parse(path.name()).map(|file| file.base_offset), path.clone()));
    }
    let mut sources = Vec::new();
    let mut bound = i64::MAX;
    let count = files.len();
    for (index, (name, path)) in files.into_iter().enumerate().rev() {
        let size = path.len()?;
        let firsts = first_offsets(&path, limits)?;
        let is_only = index == 0 && count == 1;
        let base_offset = name.map(|name| believable_base(name, &firsts, is_only));
        let first = firsts.first().map(|(first, _)| *first);
        sources.push(SourceFile { path, base_offset, first, bound, size });
        // the name of an empty file does not bound the offsets of other batches
        let first = first.max(base_offset.filter(|_| !firsts.is_empty()));
        bound = first.or(base_offset.filter(|_| size > 0)).map_or(bound, |start| start.min(bound));
    }
    sources.reverse();
    Ok(sources)
}

/// Returns the offsets of a file's first two batches, or of fewer if one is not valid: the first, and the next one after it.
fn first_offsets(path: &Location, limits: &Limits) -> Result<Vec<(i64, i64)>> {
    let mut walk = BatchWalk::new(SegmentReader::open_with(path, limits)?, limits);
    let mut firsts = Vec::new();
    while firsts.len() < 2
        && let WalkEvent::Batch(batch) = walk.next_batch()?
        && let Ok(first) = batch.first_offset(&mut Scratch::new(), limits)
    {
        firsts.push((first, batch.next_offset()));
    }
    Ok(firsts)
}

/// Returns the base offset of a segment: the one in its name, or a smaller one if its first two batches agree on it. A
/// single batch may have a corrupt offset, which no checksum covers; but in the only file of a log, its offset is the
/// better guess.
fn believable_base(name: i64, firsts: &[(i64, i64)], is_only: bool) -> i64 {
    match firsts {
        [(first, _), (second, _)] if *first < name && *second < name && first < second => *first,
        [(first, next), (second, _)] if is_only && *first < name && next == second => *first,
        [(first, _)] if is_only => (*first).min(name).max(0),
        _ => name,
    }
}

struct Salvage<'a, 'p> {
    output: PartitionOutput,
    report: RepairReport,
    scratch: Scratch,
    limits: Limits,
    /// The file being read.
    source: Option<SourceFile>,
    segment: Option<SegmentOutput>,
    /// A batch after a gap. Its offset may be corrupt, which only the next batch shows.
    held: Option<HeldBytes>,
    /// The offset after the last batch kept.
    end_offset: Option<i64>,
    /// Number of holes since the last batch kept, whose last offsets are still unknown.
    open_holes: usize,
    progress: &'a mut Progress<'p>,
}

struct HeldBytes {
    bytes: Vec<u8>,
    position: u64,
}

impl Salvage<'_, '_> {
    fn sources(&mut self, sources: &[SourceFile]) -> Result<()> {
        for source in sources {
            self.source = Some(source.clone());
            if let Some(base_offset) = source.base_offset {
                // the name is not after the batches if they directly continue the log
                let continued = self.end_offset.filter(|end| source.first == Some(*end));
                self.begin(continued.unwrap_or_else(|| base_offset.max(self.end_offset.unwrap_or(0))))?;
            }
            let limits = self.limits.clone();
            walk(&source.path, &limits, self)?;
            self.keep_held()?;
            self.end_segment()?;
        }
        Ok(())
    }

    fn begin(&mut self, base_offset: i64) -> Result<()> {
        let Some(source) = &self.source else { return Ok(()) };
        self.segment = Some(self.output.begin_segment(base_offset, &source.path)?);
        if self.report.segments.is_empty() {
            self.report.start_offset = base_offset;
            self.output.states.set_end_offset(base_offset);
        } else {
            self.output.states.set_end_offset(base_offset);
            self.output.write_snapshot(base_offset)?;
        }
        Ok(())
    }

    fn end_segment(&mut self) -> Result<()> {
        if let (None, Some(source)) = (&self.segment, &self.source)
            && self.report.segments.is_empty()
            && source.base_offset.is_none()
        {
            self.begin(0)?; // the file has no batch
        }
        let (Some(segment), Some(source)) = (self.segment.take(), &self.source) else { return Ok(()) };
        self.report.segments.push(RepairedSegment {
            base_offset: segment.base_offset,
            path: source.path.to_path_buf(),
            bytes_before: source.size,
            bytes_after: segment.len,
            batch_count: segment.batch_count,
        });
        self.output.finish_segment(segment)
    }

    /// Keeps the batch that was held.
    fn keep_held(&mut self) -> Result<()> {
        let Some(held) = self.held.take() else { return Ok(()) };
        let batch = Batch::parse(&held.bytes, held.position)?;
        self.keep(&batch)
    }

    fn keep(&mut self, batch: &Batch<'_>) -> Result<()> {
        let last = last_offset(batch, &mut self.scratch, &self.limits)?;
        if last == batch.last_offset() {
            return self.append(batch);
        }
        let mut corrected = batch.bytes().to_vec();
        if let Some(stored) = corrected.first_chunk_mut() {
            *stored = last.to_be_bytes();
        }
        self.append(&Batch::parse(&corrected, batch.position())?)
    }

    fn append(&mut self, batch: &Batch<'_>) -> Result<()> {
        let first_offset = batch.first_offset(&mut self.scratch, &self.limits)?;
        if self.segment.is_none() {
            self.begin(first_offset)?;
        }
        let Some(mut segment) = self.segment.take() else { return Ok(()) };
        let mut outcome = self.output.append(&mut segment, batch);
        if matches!(outcome, Err(BatchRefusal::Overflow)) && first_offset > segment.base_offset {
            self.segment = Some(segment);
            self.end_segment()?;
            self.begin(first_offset)?;
            let Some(next) = self.segment.take() else { return Ok(()) };
            segment = next;
            outcome = self.output.append(&mut segment, batch);
        }
        self.segment = Some(segment);
        let corruption = match outcome {
            Err(BatchRefusal::Marker(_)) => None, // a valid control batch of another type
            outcome => Corruption::of_refusal(outcome, batch)?,
        };
        if let Some(corruption) = corruption {
            self.hole(corruption, u64_of(batch.size()));
            return Ok(());
        }
        self.close_holes(first_offset);
        let last_offset = last_offset(batch, &mut self.scratch, &self.limits)?;
        self.end_offset = Some(last_offset.saturating_add(1));
        Ok(())
    }

    fn hole(&mut self, corruption: Corruption, length: u64) {
        let Some(source) = &self.source else { return };
        let open = self.output.states.open_transactions().take(MAX_OPEN_TRANSACTIONS);
        let open_transactions = if self.open_holes > 0 {
            Vec::new()
        } else {
            open.map(|(first_offset, producer_id)| OpenTransaction::new(producer_id, first_offset)).collect()
        };
        self.report.dropped.push(DroppedRange {
            path: source.path.to_path_buf(),
            position: corruption.position,
            length,
            first_offset: self.end_offset.or(source.base_offset),
            last_offset: None,
            reason: corruption.reason,
            message: corruption.message,
            open_transactions,
        });
        self.open_holes = self.open_holes.saturating_add(1);
    }

    /// Ends the holes before a batch that is kept. The first of them gets the range of all lost offsets.
    fn close_holes(&mut self, first_offset: i64) {
        let start = self.report.dropped.len().saturating_sub(self.open_holes);
        for (number, hole) in self.report.dropped.iter_mut().skip(start).enumerate() {
            if number == 0 && hole.first_offset.is_some_and(|lost| lost < first_offset) {
                hole.last_offset = Some(first_offset.saturating_sub(1));
            } else {
                hole.first_offset = None;
            }
        }
        self.open_holes = 0;
    }

    fn finish(mut self, in_directory: bool) -> Result<RepairReport> {
        let last_base = self.report.segments.last().map_or(0, |segment| segment.base_offset);
        let end_offset = self.end_offset.unwrap_or(last_base).max(last_base);
        if end_offset > last_base {
            self.output.write_snapshot(end_offset)?;
        }
        self.output.epochs.truncate_from_end(end_offset);
        if in_directory || !self.output.epochs.entries().is_empty() {
            self.output.write_epochs()?;
        }
        self.report.end_offset = end_offset;
        self.report.files = self.output.changes;
        Ok(self.report)
    }

    /// The offset of the next batch if there is no gap before it. `None` before the first batch of a file not named
    /// after an offset.
    fn expected_offset(&self) -> Option<i64> {
        self.end_offset.or(self.source.as_ref().and_then(|source| source.base_offset))
    }

    /// Returns why the offsets of a batch are invalid, if they are.
    fn out_of_place(&self, first_offset: i64, last_offset: i64) -> Option<String> {
        let source = self.source.as_ref();
        let base_offset = source.and_then(|source| source.base_offset);
        let (least, bound) =
            (self.end_offset.or(base_offset).unwrap_or(0), source.map_or(i64::MAX, |source| source.bound));
        if last_offset < first_offset {
            return Some(format!("a batch ends at offset {last_offset}, before its first offset {first_offset}"));
        }
        if first_offset < least {
            return Some(format!("a batch starts at offset {first_offset}, but the previous one ends before {least}"));
        }
        if let Some(base) = base_offset.filter(|base| last_offset.saturating_sub(*base) > i64::from(i32::MAX)) {
            return Some(format!(
                "a batch ends at offset {last_offset}, too far from the segment's base offset {base}"
            ));
        }
        // a batch that directly continues the log is valid, and an overlap is the error of a later batch
        let follows = self.end_offset == Some(first_offset);
        (last_offset >= bound && !follows)
            .then(|| format!("a batch ends at offset {last_offset}, but the next segment starts at {bound}"))
    }
}

impl Visitor for Salvage<'_, '_> {
    fn batch(&mut self, batch: &Batch<'_>) -> Result<()> {
        self.progress.advance(u64_of(batch.size()))?;
        let size = u64_of(batch.size());
        if let Err(error) = read_whole(batch, &mut self.scratch, &self.limits) {
            if matches!(error.kind(), ErrorKind::Limit { .. }) {
                return Err(error);
            }
            self.hole(Corruption::of_error(&error, batch.position()), size);
            return Ok(());
        }
        let first = batch.first_offset(&mut self.scratch, &self.limits)?;
        let last = last_offset(batch, &mut self.scratch, &self.limits)?;
        if let Some(message) = self.out_of_place(first, last) {
            self.hole(Corruption::new(batch.position(), "offset_order", message), size);
            return Ok(());
        }
        if let Some(held) = self.held.take() {
            let before = Batch::parse(&held.bytes, held.position)?;
            if last_offset(&before, &mut self.scratch, &self.limits)? < first {
                self.keep(&before)?;
            } else {
                let message =
                    format!("a batch ends at offset {}, but the next one starts at {first}", before.last_offset());
                self.hole(Corruption::new(held.position, "offset_order", message), u64_of(held.bytes.len()));
            }
        }
        if self.expected_offset().is_none_or(|expected| first > expected) {
            self.held = Some(HeldBytes { bytes: batch.bytes().to_vec(), position: batch.position() });
            return Ok(());
        }
        self.keep(batch)
    }

    fn corrupt_bytes(&mut self, corruption: Corruption, length: u64) -> Result<()> {
        self.progress.advance(length)?;
        self.hole(corruption, length);
        Ok(())
    }

    fn next_offset(&self) -> Option<i64> {
        self.expected_offset()
    }
}

/// The offset of the last record. A compressed set of magic 0 stores it twice, and the wrapper's copy may be corrupt.
fn last_offset(batch: &Batch<'_>, scratch: &mut Scratch, limits: &Limits) -> Result<i64> {
    if batch.magic() > 0 || !batch.is_legacy_wrapper() {
        return Ok(batch.last_offset());
    }
    let last = batch.records(scratch, limits)?.last().transpose()?;
    Ok(last.map_or_else(|| batch.last_offset(), |record| record.offset()))
}

/// Decodes everything in a batch that a consumer would.
pub(crate) fn read_whole(batch: &Batch<'_>, scratch: &mut Scratch, limits: &Limits) -> Result<()> {
    for record in batch.records(scratch, limits)? {
        read_record(batch, &record?)?;
    }
    Ok(())
}

/// Decodes everything in a record that a consumer would.
pub(crate) fn read_record(batch: &Batch<'_>, record: &Record<'_>) -> Result<()> {
    record.verify_crc()?;
    record.headers().verify()?;
    if batch.is_control() {
        ControlRecord::parse(record)?;
    }
    Ok(())
}

/// Formats the holes as lines of JSON.
fn holes(dropped: &[DroppedRange]) -> String {
    let mut text = String::new();
    let number = |offset: Option<i64>| offset.map_or_else(|| "null".to_owned(), |offset| offset.to_string());
    for hole in dropped {
        let name = hole.path.file_name().unwrap_or_default().to_string_lossy();
        let (first, last) = (number(hole.first_offset), number(hole.last_offset));
        let (position, length, reason) = (hole.position, hole.length, hole.reason);
        let open = hole.open_transactions.iter().map(|open| format!("[{}, {}]", open.producer_id, open.first_offset));
        let open = open.collect::<Vec<_>>().join(", ");
        // writing to a String cannot fail
        let _ = writeln!(
            text,
            "{{\"file\": {name:?}, \"position\": {position}, \"length\": {length}, \"first_offset\": {first}, \
             \"last_offset\": {last}, \"reason\": \"{reason}\", \"message\": {:?}, \
             \"open_transactions\": [{open}]}}",
            hole.message
        );
    }
    text
}
