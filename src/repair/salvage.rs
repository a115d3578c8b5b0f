//! [`salvage`]: keeps every complete batch of a damaged file or partition.

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
use crate::log::producer::ProducerStates;
use crate::num::u64_of;
use crate::repair::corruption::Corruption;
use crate::repair::holes::{HOLES, Holes, lines_of};
use crate::repair::output::{BatchRefusal, OutputSettings, PartitionOutput, SegmentOutput};
use crate::repair::rebuild::states_before;
use crate::repair::recover::{copy_others, read_epochs};
use crate::repair::report::{DroppedRange, OpenTransaction, RepairReport, RepairedSegment, refuse_nothing_kept};
use crate::repair::sources::{SourceFile, sources};
use crate::repair::walk::{Visitor, walk};
use crate::store::listing::{refuse_compressed, refuse_special_files};
use crate::store::names::PARTITION_METADATA;
use crate::store::refuse_archive;

/// Most open transactions to list for a dropped range.
const MAX_OPEN_TRANSACTIONS: usize = 100;

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
/// Segments are read in the order of their names. If the first two batches of a file show that its name is wrong, it is
/// read in the order of its offsets. If two files have the same offsets, the second adds nothing.
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
/// - [`ErrorKind::InvalidFile`] if there is no complete batch, so that nothing would be kept, and if a segment exists only
///   as a compressed copy.
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
    let inventory = if path.is_dir() {
        refuse_special_files(&path.entries()?)?;
        Inventory::read(path, limits)?
    } else {
        Inventory::default()
    };
    let sources = sources(path, &inventory, limits)?;
    if path.is_dir() {
        refuse_compressed(&path.entries()?)?;
    }
    let staged = StagedDirectory::create(path, out)?;
    let settings = OutputSettings {
        directory: Some(staged.directory().to_path_buf()),
        write_log: true,
        index_interval_bytes: options.index_interval_bytes,
        limits: limits.clone(),
    };
    let start_offset = sources.first().and_then(|source| source.base_offset);
    let states = states_before(start_offset.unwrap_or(0), &inventory, limits)?;
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
        holes: Holes::default(),
        progress,
    };
    salvage.sources(&sources)?;
    let mut report = salvage.finish(path.is_dir())?;
    refuse_nothing_kept(path, &report)?;
    report.files.extend(copy_others(&inventory, staged.directory())?);
    report.files.extend(remove_bad_metadata(staged.directory())?);
    if !report.dropped.is_empty() {
        write_atomically(&staged.directory().join(HOLES), lines_of(&report.dropped).as_bytes())?;
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
    holes: Holes,
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
        self.keep(&batch)?;
        self.release();
        Ok(())
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
        self.holes.close(first_offset);
        let last_offset = last_offset(batch, &mut self.scratch, &self.limits)?;
        self.end_offset = Some(last_offset.saturating_add(1));
        Ok(())
    }

    fn hole(&mut self, corruption: Corruption, length: u64) {
        let Some(source) = &self.source else { return };
        let hole = DroppedRange {
            path: source.path.to_path_buf(),
            position: corruption.position,
            length,
            first_offset: None,
            last_offset: None,
            reason: corruption.reason,
            message: corruption.message,
            open_transactions: Vec::new(),
        };
        if self.held.is_some() {
            self.holes.add_after_held(hole);
        } else {
            let start = self.expected_offset();
            self.holes.add(hole, start, || open_transactions(&self.output.states));
        }
    }

    /// Ends the wait for the batch after the held one, which was kept or dropped.
    fn release(&mut self) {
        let start = self.expected_offset();
        self.holes.release(start, || open_transactions(&self.output.states));
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
        self.report.dropped = self.holes.into_ranges();
        self.report.files = self.output.changes;
        Ok(self.report)
    }

    /// The offset of the next batch if no gap is before it, other than one before the segment. `None` before the first
    /// batch of a file not named after an offset.
    fn expected_offset(&self) -> Option<i64> {
        self.end_offset.max(self.source.as_ref().and_then(|source| source.base_offset))
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
            self.release();
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

/// The open transactions to list for a dropped range.
fn open_transactions(states: &ProducerStates) -> Vec<OpenTransaction> {
    let open = states.open_transactions().take(MAX_OPEN_TRANSACTIONS);
    open.map(|(first_offset, producer_id)| OpenTransaction::new(producer_id, first_offset)).collect()
}
