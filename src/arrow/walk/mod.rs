//! [`SourceWalk`]: finds the batches of some sources that a scan returns, and handles corruption between them.

mod corruption;
mod current;

use std::sync::Arc;

use current::{CurrentSource, NextBatch};

use crate::arrow::ahead::NextFiles;
use crate::arrow::corruption::SkippedBytes;
use crate::arrow::deleted::DeletedSegment;
use crate::arrow::interrupt::{InterruptCheck, ProgressCallback, go_on, interrupted};
use crate::arrow::options::{Isolation, OnCorrupt, RecordBounds, ScanOptions};
use crate::arrow::origin::Origin;
use crate::arrow::source::ScanSource;
use crate::arrow::stats::ScanStats;
use crate::arrow::transactions::Transactions;
use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Batch;
use crate::format::header::BatchHeader;
use crate::io::OpenedFile;
use crate::log::BatchMemory;
use crate::log::resync::Floor;
use crate::log::walk::{BatchWalk, Follower};
use crate::num::u64_of;

/// Walks sources in order, with one open at a time.
pub(crate) struct SourceWalk {
    sources: std::vec::IntoIter<ScanSource>,
    current: Option<CurrentSource>,
    /// The file of the first source, if it is open.
    opened: Option<OpenedFile>,
    next_files: NextFiles,
    transactions: Transactions,
    stats: ScanStats,
    watch: InterruptCheck,
    /// If batches with a wrong checksum are returned: the header after a batch that confirms its length.
    bad_payloads: Option<Follower>,
}

/// The context of a batch that is returned.
pub(crate) struct BatchContext<'w> {
    pub(crate) origin: &'w Origin,
    pub(crate) bounds: &'w RecordBounds,
    /// The memory that has the batch.
    pub(crate) memory: BatchMemory<'w>,
}

/// The result of a step.
pub(crate) enum Step {
    /// A batch was returned or skipped.
    Batch,
    /// Corrupt bytes were skipped.
    SkippedBytes(SkippedBytes),
    /// There are no more sources.
    End,
}

impl SourceWalk {
    pub(crate) fn new(sources: Vec<ScanSource>, callback: Option<ProgressCallback>) -> Self {
        let (sources, watch) = (sources.into_iter(), InterruptCheck::new(callback));
        Self {
            sources,
            current: None,
            opened: None,
            next_files: NextFiles::default(),
            transactions: Transactions::default(),
            stats: ScanStats::default(),
            watch,
            bad_payloads: None,
        }
    }

    /// Returns batches with a wrong checksum, unless their length is corrupt. A batch is verified if no other continues
    /// its offsets; if corruption is an error and checksums are not wanted, only if nothing valid follows.
    pub(crate) fn with_bad_payloads(self, options: &ScanOptions) -> Self {
        let believes_gaps = options.on_corrupt == OnCorrupt::Fail && !options.check_crc;
        Self { bad_payloads: Some(if believes_gaps { Follower::Later } else { Follower::Next }), ..self }
    }

    /// Uses the file of the first source, which is open.
    pub(crate) fn with_opened(self, opened: Option<OpenedFile>) -> Self {
        Self { opened, ..self }
    }

    /// Counts of what was read and lost so far, without rows, which the walk does not count.
    pub(crate) fn stats(&self) -> ScanStats {
        let reading = self.current.as_ref().map_or(0, |current| current.walk.bytes_read());
        ScanStats { bytes_read: self.stats.bytes_read.saturating_add(reading), ..self.stats }
    }

    /// Bytes read so far, if the scan has a callback.
    #[cfg(feature = "python")]
    pub(crate) fn walked(&self) -> u64 {
        self.watch.walked.saturating_add(self.current.as_ref().map_or(0, CurrentSource::walked))
    }

    /// Passes the next batch to `take` if it is within the bounds.
    pub(crate) fn step(
        &mut self,
        options: &ScanOptions,
        take: impl FnOnce(&Batch<'_>, &BatchContext<'_>) -> Result<()>,
    ) -> Result<Step> {
        if let Some(step) = self.open_next(options, true)? {
            return Ok(step);
        }
        self.request_next(options);
        let Some(current) = &mut self.current else { return Ok(Step::Batch) };
        let found = match current.find(options, self.bad_payloads, &mut self.watch) {
            NextBatch::Batch(header) => current.give(header, options.check_crc, take),
            found => found,
        };
        self.settle(found, options)
    }

    /// Requests the next sources when nothing of the current one remains to be requested.
    fn request_next(&mut self, options: &ScanOptions) {
        let spare = self.current.as_ref().map_or(0, |current| current.walk.reader.spare_requests());
        if spare > 0 {
            self.next_files.request(spare, self.sources.as_slice(), &options.bounds());
        }
    }

    /// Passes the header of the next batch to `take` if it is within the bounds. Few payloads are read: see
    /// [`SourceWalk::with_bad_payloads`].
    pub(crate) fn step_header(
        &mut self,
        options: &ScanOptions,
        take: impl FnOnce(&BatchHeader, &Origin),
    ) -> Result<Step> {
        if let Some(step) = self.open_next(options, false)? {
            return Ok(step);
        }
        self.request_next(options);
        let Some(current) = &mut self.current else { return Ok(Step::Batch) };
        let found = current.find_header(self.bad_payloads.unwrap_or(Follower::Next));
        if let NextBatch::Batch(header) = &found {
            take(header, &current.source.origin);
        }
        self.settle(found, options)
    }

    /// Opens the next source if none is open. Returns the result of the step if there is no batch to find in it. Without
    /// `reads_payloads`, only headers are read.
    fn open_next(&mut self, options: &ScanOptions, reads_payloads: bool) -> Result<Option<Step>> {
        if self.current.is_none() {
            let Some(source) = self.sources.next() else { return Ok(Some(Step::End)) };
            let len = if self.watch.is_kept() { source.byte_len() } else { 0 };
            let opened = self.opened.take().or_else(|| self.next_files.take().map(OpenedFile::from));
            self.current = self.open_listed(&source, options, opened)?;
            if reads_payloads && let Some(current) = &self.current {
                // the first records of a range may be all that the caller takes, but this one has taken a source
                let (bounds, is_under_way) = (options.bounds(), self.stats.batches > 0);
                if current.source.is_read_whole(&bounds) || is_under_way && bounds.reach_end(current.source.next_base) {
                    current.walk.reader.expect_reads();
                }
            }
            match &mut self.current {
                Some(current) => current.len = len,
                None => self.watch.walked = self.watch.walked.saturating_add(len),
            }
        }
        let Some(current) = &self.current else { return Ok(Some(Step::Batch)) };
        go_on(self.watch.should_continue(current.walked()))?;
        Ok(None)
    }

    /// Counts what was found, and skips corruption.
    fn settle(&mut self, found: NextBatch, options: &ScanOptions) -> Result<Step> {
        let Some(current) = &mut self.current else { return Ok(Step::Batch) };
        let skipped = match found {
            NextBatch::Stopped => return Err(interrupted()),
            NextBatch::Batch(_) | NextBatch::Skipped => {
                self.stats.batches = self.stats.batches.saturating_add(1);
                None
            }
            NextBatch::Enough => {
                self.close();
                None
            }
            NextBatch::End => {
                let skipped = if options.on_corrupt == OnCorrupt::Fail {
                    if options.check_crc {
                        current.verify_last(options)?;
                    }
                    self.stats.bytes_lost = self.stats.bytes_lost.saturating_add(current.check_end(options)?);
                    None
                } else {
                    current.skip_tail(options)?
                };
                if skipped.is_none() {
                    self.close();
                }
                skipped
            }
            NextBatch::CorruptBatch { error, .. } | NextBatch::CorruptBytes { error, .. }
                if is_final(&error, options) =>
            {
                return Err(current.source.locate(error));
            }
            NextBatch::CorruptBatch { position, size, offsets, error } => {
                Some(current.skipped_bytes(position, u64_of(size), offsets, error))
            }
            NextBatch::CorruptBytes { position, error } => Some(current.skip(position, error, false)?),
        };
        Ok(skipped.and_then(|skipped| self.count(skipped)).map_or(Step::Batch, Step::SkippedBytes))
    }

    /// Counts corruption that begins in the source's window, and drops it otherwise. Without a plan, by which one read has
    /// it, it is dropped if its offsets are outside the bounds.
    fn count(&mut self, skipped: SkippedBytes) -> Option<SkippedBytes> {
        let is_wanted = |current: &CurrentSource| match current.source.window {
            (0, u64::MAX) if !current.source.is_planned => {
                !(current.is_sorted() && current.bounds.pass_over_offsets(skipped.offsets))
            }
            (start, _) => skipped.position >= start,
        };
        if !self.current.as_ref().is_some_and(is_wanted) {
            return None;
        }
        let stats = &mut self.stats;
        stats.batches_skipped = stats.batches_skipped.saturating_add(u64::from(!skipped.is_cut));
        stats.bytes_lost = stats.bytes_lost.saturating_add(skipped.length);
        stats.offsets_lost = stats.offsets_lost.saturating_add(skipped.offsets_lost());
        Some(skipped)
    }

    fn close(&mut self) {
        self.stats = self.stats();
        if self.current.as_ref().is_some_and(CurrentSource::reaches_next) {
            self.stats.segments_overlapping = self.stats.segments_overlapping.saturating_add(1);
        }
        let len = self.current.take().map_or(0, |current| current.len);
        self.watch.walked = self.watch.walked.saturating_add(len);
    }

    /// Opens a source that retention may have deleted in the meantime.
    fn open_listed(
        &mut self,
        source: &ScanSource,
        options: &ScanOptions,
        opened: Option<OpenedFile>,
    ) -> Result<Option<CurrentSource>> {
        let error = match self.open(source.clone(), options, opened) {
            Err(error) if error.is_not_found() => error,
            opened => return opened,
        };
        match DeletedSegment::of(source, error)? {
            // the transaction index has another name, too
            DeletedSegment::Renamed(renamed) if options.isolation == Isolation::ReadUncommitted => {
                self.open(*renamed, options, None)
            }
            DeletedSegment::Renamed(_) | DeletedSegment::Removed => {
                self.stats.segments_deleted = self.stats.segments_deleted.saturating_add(1);
                Ok(None)
            }
        }
    }

    /// Opens a source at the position of the first batch to read; `None` if nothing in it is within the bounds.
    fn open(
        &mut self,
        source: ScanSource,
        options: &ScanOptions,
        opened: Option<OpenedFile>,
    ) -> Result<Option<CurrentSource>> {
        let mut bounds = options.bounds();
        bounds.is_segment = source.base_offset.is_some();
        if bounds.pass_over_segment(source.base_offset, source.next_base) {
            return Ok(None);
        }
        let mut committed = None;
        if options.isolation == Isolation::ReadCommitted {
            let transactions = match &source.committed {
                Some(known) => Arc::clone(known),
                None => self.transactions.around(&source, self.sources.as_slice(), options)?,
            };
            if options.on_corrupt == OnCorrupt::Fail {
                let stable = transactions.last_stable_offset();
                bounds.end_offset = Some(bounds.end_offset.map_or(stable, |end| end.min(stable)));
            }
            if bounds.pass_over_segment(source.base_offset, source.next_base) {
                return Ok(None);
            }
            committed = Some(transactions);
        }
        let Some(position) = start_position(&source, &bounds, options)? else { return Ok(None) };
        let mut reader = source.open(position, options, opened)?;
        reader.stop_at(source.window.1);
        let floor = floor_at(&source, position, options)?;
        let walk = BatchWalk::new(reader, &options.limits);
        Ok(Some(CurrentSource {
            source,
            walk,
            bounds,
            committed,
            floor,
            begun_at: floor.next(),
            is_header_trusted: true,
            len: 0,
            unverified: None,
            reported: (None, None),
        }))
    }
}

/// The position to begin reading a source at; `None` if nothing in it is within the bounds. An unreadable index only
/// makes reading slower.
fn start_position(source: &ScanSource, bounds: &RecordBounds, options: &ScanOptions) -> Result<Option<u64>> {
    let known = if source.begins_with_batch { source.window.0 } else { 0 };
    let Some(path) = source.path() else { return Ok(Some(known)) };
    let is_bounded = bounds.start_offset.is_some() || bounds.start_timestamp.is_some();
    if source.base_offset.is_none() || !(is_bounded || source.window.0 > known) {
        return Ok(Some(known));
    }
    let segment = match options.open_segment(path) {
        Ok(segment) => segment,
        Err(error) if matches!(error.kind(), ErrorKind::Io(_)) => return Err(error),
        Err(_) => return Ok(Some(known)),
    };
    if bounds.start_timestamp.is_some_and(|start| segment.is_older(start).unwrap_or(false)) {
        return Ok(None);
    }
    let mut position = known;
    if is_bounded {
        position = segment.start_position(bounds.start_offset, bounds.start_timestamp).unwrap_or(0).max(known);
    }
    if source.window.0 > known {
        position = position.max(segment.floor_position(source.window.0).unwrap_or(0));
    }
    Ok(Some(position))
}

/// The end of the batches before a position at which a source is read. Unknown in stores, where it takes requests, unless it
/// was determined before.
fn floor_at(source: &ScanSource, position: u64, options: &ScanOptions) -> Result<Floor> {
    match (source.before, source.path()) {
        (Some(before), _) if position == source.window.0 => Ok(before),
        (_, Some(path)) if position > 0 && source.base_offset.is_some() && path.is_local() => {
            options.open_segment(path)?.floor_before(position)
        }
        _ => Ok(Floor::at(source.base_offset.filter(|_| position == 0))),
    }
}

/// Whether an error ends the scan.
fn is_final(error: &Error, options: &ScanOptions) -> bool {
    options.on_corrupt == OnCorrupt::Fail || matches!(error.kind(), ErrorKind::Io(_) | ErrorKind::InvalidArgument(_))
}
