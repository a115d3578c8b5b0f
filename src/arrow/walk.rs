//! [`Walk`]: finds the batches of some sources that a scan returns, and handles corruption between them.

use std::sync::Arc;

use crate::arrow::columns::Origin;
use crate::arrow::fault::Fault;
use crate::arrow::options::{Bounds, Isolation, OnCorrupt, ScanOptions};
use crate::arrow::source::ScanSource;
use crate::arrow::stats::ScanStats;
use crate::arrow::transactions::Transactions;
use crate::arrow::watch::{Look, Watch, go_on, interrupted};
use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Batch;
use crate::format::header::BatchHeader;
use crate::log::committed::Committed;
use crate::log::resync::{Floor, Next, Resync};
use crate::log::tail::SegmentTail;
use crate::log::{Lender, SegmentReader};
use crate::num::u64_of;
use crate::store::listing::next_segment_base;

/// Walks sources in order, with one open at a time.
pub(crate) struct Walk {
    sources: std::vec::IntoIter<ScanSource>,
    current: Option<Current>,
    transactions: Transactions,
    stats: ScanStats,
    watch: Watch,
    /// Whether batches with a wrong checksum are returned, unless their length is corrupt.
    returns_bad_payloads: bool,
}

/// The open source.
struct Current {
    source: ScanSource,
    reader: SegmentReader,
    bounds: Bounds,
    committed: Option<Arc<Committed>>,
    resync: Resync,
    /// The offset after the last batch, and the least offset that can follow it.
    floor: Floor,
    /// Bytes of the source; 0 if the scan has no callback.
    len: u64,
    /// The last batch, if it was skipped by its header.
    unverified: Option<BatchHeader>,
}

/// The context of a batch that is returned.
pub(crate) struct Given<'w> {
    pub(crate) origin: &'w Origin,
    pub(crate) bounds: &'w Bounds,
    /// The memory that has the batch.
    pub(crate) lender: Lender<'w>,
}

/// The result of a step.
pub(crate) enum Step {
    /// A batch was returned or skipped.
    Batch,
    /// Corrupt bytes were skipped.
    Fault(Fault),
    /// There are no more sources.
    End,
}

/// The next item of a source.
enum Found {
    Given,
    /// The callback has ended the walk.
    Stopped,
    /// This batch and all later ones of the source are after the bounds.
    Enough,
    End,
    /// A damaged batch whose size is reliable: its position, size, and the offsets before and after it.
    Bad {
        position: u64,
        size: usize,
        offsets: (Option<i64>, Option<i64>),
        error: Error,
    },
    /// Corruption from a position on, of unknown length.
    Damage {
        position: u64,
        error: Error,
    },
}

impl Walk {
    pub(crate) fn new(sources: Vec<ScanSource>, look: Option<Look>) -> Self {
        let (sources, watch) = (sources.into_iter(), Watch::new(look));
        Self {
            sources,
            current: None,
            transactions: Transactions::default(),
            stats: ScanStats::default(),
            watch,
            returns_bad_payloads: false,
        }
    }

    /// Returns batches with a wrong checksum, unless their length is corrupt.
    pub(crate) fn with_bad_payloads(self) -> Self {
        Self { returns_bad_payloads: true, ..self }
    }

    /// Counts of what was read and lost so far, without rows, which the walk does not count.
    pub(crate) fn stats(&self) -> ScanStats {
        let reading = self.current.as_ref().map_or(0, |current| current.reader.bytes_read());
        ScanStats { bytes_read: self.stats.bytes_read.saturating_add(reading), ..self.stats }
    }

    /// Bytes read so far, if the scan has a callback.
    #[cfg(feature = "python")]
    pub(crate) fn walked(&self) -> u64 {
        self.watch.walked.saturating_add(self.current.as_ref().map_or(0, Current::walked))
    }

    /// Passes the next batch to `take` if it is within the bounds.
    pub(crate) fn step(
        &mut self,
        options: &ScanOptions,
        take: impl FnMut(&Batch<'_>, &Given<'_>) -> Result<()>,
    ) -> Result<Step> {
        let returns_bad_payloads = self.returns_bad_payloads;
        self.step_by(options, |current, watch| current.find(options, returns_bad_payloads, watch, take))
    }

    /// Passes the header of the next batch to `take` if it is within the bounds. Payloads are not read.
    pub(crate) fn step_header(
        &mut self,
        options: &ScanOptions,
        take: impl FnMut(&BatchHeader, &Origin),
    ) -> Result<Step> {
        self.step_by(options, |current, _| current.find_header(take))
    }

    fn step_by(&mut self, options: &ScanOptions, find: impl FnOnce(&mut Current, &mut Watch) -> Found) -> Result<Step> {
        if self.current.is_none() {
            let Some(source) = self.sources.next() else { return Ok(Step::End) };
            let len = if self.watch.is_kept() { source.byte_len() } else { 0 };
            self.current = self.open(source, options)?;
            match &mut self.current {
                Some(current) => current.len = len,
                None => self.watch.walked = self.watch.walked.saturating_add(len),
            }
        }
        let Some(current) = &mut self.current else { return Ok(Step::Batch) };
        go_on(self.watch.goes_on(current.walked()))?;
        let fault = match find(current, &mut self.watch) {
            Found::Stopped => return Err(interrupted()),
            Found::Given => {
                self.stats.batches = self.stats.batches.saturating_add(1);
                None
            }
            Found::Enough => {
                self.close();
                None
            }
            Found::End => {
                let fault = if options.on_corrupt == OnCorrupt::Fail {
                    if options.check_crc {
                        current.verify_last()?;
                    }
                    current.check_end()?;
                    None
                } else {
                    current.cut_end()?
                };
                if fault.is_none() {
                    self.close();
                }
                fault
            }
            Found::Bad { error, .. } | Found::Damage { error, .. } if is_final(&error, options) => {
                return Err(current.source.locate(error));
            }
            Found::Bad { position, size, offsets, error } => {
                Some(current.fault(position, u64_of(size), offsets, error))
            }
            Found::Damage { position, error } => Some(current.pass_over(position, error)?),
        };
        Ok(fault.and_then(|fault| self.count(fault)).map_or(Step::Batch, Step::Fault))
    }

    /// Counts corruption that begins in the source's window, and drops it otherwise.
    fn count(&mut self, fault: Fault) -> Option<Fault> {
        if self.current.as_ref().is_some_and(|current| fault.position < current.source.window.0) {
            return None;
        }
        let stats = &mut self.stats;
        stats.batches_skipped = stats.batches_skipped.saturating_add(u64::from(!fault.is_cut));
        stats.bytes_lost = stats.bytes_lost.saturating_add(fault.length);
        stats.offsets_lost = stats.offsets_lost.saturating_add(fault.offsets_lost());
        Some(fault)
    }

    fn close(&mut self) {
        self.stats = self.stats();
        let len = self.current.take().map_or(0, |current| current.len);
        self.watch.walked = self.watch.walked.saturating_add(len);
    }

    /// Opens a source at the position of the first batch to read; `None` if nothing in it is within the bounds.
    fn open(&mut self, source: ScanSource, options: &ScanOptions) -> Result<Option<Current>> {
        let mut bounds = options.bounds();
        if bounds.pass_over_segment(source.base_offset, source.next_base) {
            return Ok(None);
        }
        let mut committed = None;
        if options.isolation == Isolation::ReadCommitted {
            let transactions = match &source.committed {
                Some(known) => Arc::clone(known),
                None => self.transactions.around(&source, self.sources.as_slice(), options)?,
            };
            let stable = transactions.last_stable_offset();
            bounds.end_offset = Some(bounds.end_offset.map_or(stable, |end| end.min(stable)));
            committed = Some(transactions);
        }
        let Some(position) = start_position(&source, &bounds, options)? else { return Ok(None) };
        let mut reader = source.open(position, options)?;
        reader.stop_at(source.window.1);
        let floor = Floor::at(source.base_offset.filter(|_| position == 0));
        let resync = Resync::new(&options.limits);
        Ok(Some(Current { source, reader, bounds, committed, resync, floor, len: 0, unverified: None }))
    }
}

/// The position to begin reading a source at; `None` if nothing in it is within the bounds. An unreadable index only
/// makes reading slower.
fn start_position(source: &ScanSource, bounds: &Bounds, options: &ScanOptions) -> Result<Option<u64>> {
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

/// Whether an error ends the scan.
fn is_final(error: &Error, options: &ScanOptions) -> bool {
    options.on_corrupt == OnCorrupt::Fail || matches!(error.kind(), ErrorKind::Io(_) | ErrorKind::InvalidArgument(_))
}

impl Current {
    /// Bytes of the source read so far.
    fn walked(&self) -> u64 {
        self.reader.position().saturating_sub(self.source.window.0)
    }

    /// Whether the batches of the source are ordered by offset. Those of a segment are; other files and buffers need
    /// not be.
    fn is_sorted(&self) -> bool {
        self.source.base_offset.is_some()
    }

    /// The least offset of a batch after corruption. Outside a segment offsets may decrease: each produce request
    /// begins with 0.
    fn least_offset(&self) -> Option<i64> {
        self.floor.least().filter(|_| self.is_sorted())
    }

    fn find(
        &mut self,
        options: &ScanOptions,
        returns_bad_payloads: bool,
        watch: &mut Watch,
        mut take: impl FnMut(&Batch<'_>, &Given<'_>) -> Result<()>,
    ) -> Found {
        // if corruption is skipped, a length is only trusted after the checksum is verified
        let is_trusted = options.on_corrupt == OnCorrupt::Fail;
        let header = match self.next_wanted(is_trusted, watch) {
            Ok(header) => header,
            Err(found) => return found,
        };
        if returns_bad_payloads && let Err(error) = self.check_length_of_bad(&header) {
            return Found::Damage { position: header.position(), error };
        }
        let is_sorted = self.is_sorted();
        let Self { source, reader, bounds, committed, floor, .. } = self;
        let (batch, lender) = reader.last(header);
        let position = batch.position();
        let is_enough = is_sorted && bounds.end_before(&batch);
        if options.check_crc
            && !(is_enough && is_trusted)
            && let Err(error) = batch.verify_crc()
        {
            return Found::Damage { position, error };
        }
        if is_enough {
            return match self.damaged_offset(&header) {
                Ok(None) => Found::Enough,
                Ok(Some(bad)) => bad,
                Err(error) => Found::Damage { position: header.position(), error },
            };
        }
        let is_aborted = !is_trusted && committed.as_ref().is_some_and(|committed| committed.is_aborted(&batch));
        let is_passed_over = position < source.window.0 || bounds.pass_over(&batch) || is_aborted;
        let taken =
            if is_passed_over { Ok(()) } else { take(&batch, &Given { origin: &source.origin, bounds, lender }) };
        let offsets = (batch.base_offset().or(floor.next()), Some(batch.next_offset()));
        match taken {
            Ok(()) => {
                floor.pass(&header);
                Found::Given
            }
            Err(error) if options.check_crc => {
                floor.pass(&header);
                Found::Bad { position, size: batch.size(), offsets, error }
            }
            Err(error) => Found::Damage { position, error },
        }
    }

    /// Finds a damaged offset, which no checksum covers, in a batch that seems to be after the bounds: it is after a
    /// gap, and the next batch has a lower offset.
    fn damaged_offset(&self, header: &BatchHeader) -> Result<Option<Found>> {
        let base_offset = header.base_offset;
        let Some(next) = self.floor.next().filter(|next| base_offset > *next) else { return Ok(None) };
        let behind = match self.reader.header_at(header.position().saturating_add(u64_of(header.size()))) {
            Ok(behind) => behind,
            Err(error) if matches!(error.kind(), ErrorKind::Io(_)) => return Err(error),
            Err(_) => return Ok(None),
        };
        // zeros are not a batch
        if behind.crc == 0 || !(next..base_offset).contains(&behind.base_offset) {
            return Ok(None);
        }
        let kind = ErrorKind::InvalidValue { value: base_offset, expected: "an offset below that of the next batch" };
        let error = Error::new(kind).at(header.position()).in_batch(base_offset).in_field("base_offset");
        let offsets = (Some(next), Some(behind.base_offset));
        Ok(Some(Found::Bad { position: header.position(), size: header.size(), offsets, error }))
    }

    /// The header of the next batch to read. Batches whose trusted header excludes them are skipped. The error is the
    /// reason why there is no such batch.
    fn next_wanted(&mut self, is_trusted: bool, watch: &mut Watch) -> std::result::Result<BatchHeader, Found> {
        let is_sorted = self.is_sorted();
        let Self { source, reader, bounds, committed, floor, unverified, .. } = self;
        let from = source.window.0;
        let mut goes_on = true;
        let next = if is_trusted && (bounds.are_any() || committed.is_some() || from > 0) {
            reader.next_wanted(|header| {
                if header.is_control() || is_sorted && bounds.end_before(header) {
                    return true; // a control batch to verify its checksum, the other to end the source
                }
                let is_before = header.position() < from;
                let is_aborted = committed.as_ref().is_some_and(|committed| committed.is_aborted(header));
                let passes_over = is_before || is_aborted || bounds.pass_over(header);
                if passes_over {
                    floor.pass(header);
                    *unverified = Some(*header);
                    goes_on = watch.goes_on(header.position().saturating_sub(from));
                }
                !(passes_over && goes_on)
            })
        } else {
            reader.next_batch()
        };
        match next {
            _ if !goes_on => Err(Found::Stopped),
            None => Err(Found::End),
            Some(Err(error)) => Err(Found::Damage { position: reader.position(), error }),
            Some(Ok(batch)) => {
                *unverified = None;
                Ok(*batch.header())
            }
        }
    }

    /// Verifies the last batch if only its header was read: a corrupt length may lead past good batches to the end.
    fn verify_last(&mut self) -> Result<()> {
        let Some(header) = self.unverified.take().filter(|_| self.is_sorted()) else { return Ok(()) };
        let position = self.reader.position();
        let verified = self.verify(&header);
        self.reader.seek(position);
        verified.map_err(|error| self.source.locate(error))
    }

    fn find_header(&mut self, mut take: impl FnMut(&BatchHeader, &Origin)) -> Found {
        let header = match self.reader.next_header() {
            None => return Found::End,
            Some(Err(error)) => return Found::Damage { position: self.reader.position(), error },
            Some(Ok(header)) => header,
        };
        if let Err(error) = self.check_length(&header) {
            return Found::Damage { position: header.position(), error };
        }
        if self.is_sorted() && self.bounds.end_before(&header) {
            return Found::Enough;
        }
        if header.position() >= self.source.window.0 && !self.bounds.pass_over(&header) {
            take(&header, &self.source.origin);
        }
        self.floor.pass(&header);
        Found::Given
    }

    /// Like [`Current::check_length`], for the last batch, which was read completely and stays readable.
    fn check_length_of_bad(&mut self, header: &BatchHeader) -> Result<()> {
        if self.reader.last(*header).0.verify_crc().is_ok() {
            return Ok(());
        }
        self.check_length(header)?;
        self.reader.seek(header.position());
        self.reader.next_batch().transpose().map(|_| ())
    }

    /// Fails if the length of the last batch seems corrupt: its checksum is wrong, and it leads neither to another batch
    /// nor to the end, or past complete batches into zeros.
    fn check_length(&mut self, header: &BatchHeader) -> Result<()> {
        if self.reader.has_next() {
            return Ok(());
        }
        let position = self.reader.position();
        let tail = SegmentTail::at(self.reader.source(), position)?;
        if tail == SegmentTail::Clean {
            return Ok(());
        }
        let checked = self.verify(header);
        self.reader.seek(position);
        if checked.is_err() && tail == SegmentTail::Zeros {
            let least = header.base_offset().or(self.least_offset());
            if self.resync.find_batch(self.reader.source(), header.position(), least)?.is_none() {
                return Ok(()); // only the payload is corrupt
            }
        }
        checked
    }

    /// Reads a batch and verifies its checksum.
    fn verify(&mut self, header: &BatchHeader) -> Result<()> {
        self.reader.seek(header.position());
        self.reader.next_batch().map_or(Ok(()), |batch| batch?.verify_crc())
    }

    /// Resumes at the next batch after corruption.
    fn pass_over(&mut self, position: u64, error: Error) -> Result<Fault> {
        let least = self.least_offset();
        let next = self.resync.find(self.reader.source(), position, least);
        let (to, next_offset) = match next.map_err(|error| self.source.locate(error))? {
            // a file that was truncated while it was read may now end before the header
            Next::Batch(to) => (to, self.reader.header_at(to).ok().and_then(|header| header.base_offset())),
            Next::End(to) => (to, None),
        };
        self.reader.resume(to);
        let length = to.saturating_sub(position);
        let is_end = next_offset.is_none() && self.reader.tail()? != SegmentTail::Partial;
        let next_offset = if is_end { self.next_base()? } else { next_offset };
        Ok(self.fault(position, length, (self.floor.next(), next_offset), error))
    }

    /// A truncated batch at the end of the source. If only its size is wrong, other batches may follow it.
    fn cut_end(&mut self) -> Result<Option<Fault>> {
        match self.reader.tail()? {
            SegmentTail::Clean => return Ok(None),
            SegmentTail::Zeros => return self.zero_end(),
            SegmentTail::Partial | SegmentTail::Corrupt { .. } => {}
        }
        let cut_len = self.reader.remainder_len();
        if self.reader.is_written_since()? {
            return Ok(None);
        }
        let position = self.reader.position();
        let error = self.cut_error(ErrorKind::Truncated, position);
        let least = self.least_offset();
        let next = self.resync.find(self.reader.source(), position, least);
        if let Next::Batch(_) = next.map_err(|error| self.source.locate(error))? {
            return self.pass_over(position, error).map(Some);
        }
        self.reader.seek(position.saturating_add(cut_len));
        let next_base = self.next_base()?;
        let mut fault = self.fault(position, cut_len, (self.floor.next(), next_base), error);
        fault.is_cut = true;
        Ok(Some(fault))
    }

    /// Zeros at the end of a segment whose log continues at a later offset. At the end of a log, zeros belong to a
    /// preallocated file.
    fn zero_end(&mut self) -> Result<Option<Fault>> {
        let (position, len) = (self.reader.position(), self.reader.remainder_len());
        let next_base = self.next_base()?;
        if next_base.is_none() || next_base == self.floor.next() || !self.reader.is_unchanged()? {
            return Ok(None);
        }
        self.reader.seek(position.saturating_add(len));
        let error = self.cut_error(ErrorKind::ZeroTail, position);
        let mut fault = self.fault(position, len, (self.floor.next(), next_base), error);
        fault.is_cut = true;
        Ok(Some(fault))
    }

    /// Rejects a segment that ends inside a batch if complete batches or other segments follow. The last segment of a
    /// growing log may end anywhere. So may a buffer, as in Kafka: a broker truncates fetch responses at any byte.
    fn check_end(&mut self) -> Result<()> {
        if self.source.base_offset.is_none() || self.source.path().is_none() {
            return Ok(());
        }
        match self.cut_end()? {
            Some(fault) if !fault.is_cut || self.next_base()?.is_some() || self.hides_a_batch(&fault)? => {
                let is_zeros = fault.kind == ErrorKind::ZeroTail.name();
                Err(self.cut_error(if is_zeros { ErrorKind::ZeroTail } else { ErrorKind::CutBatch }, fault.position))
            }
            _ => Ok(()),
        }
    }

    /// Whether a complete batch is in what seems to be an incomplete last batch.
    fn hides_a_batch(&self, fault: &Fault) -> Result<bool> {
        let next = SegmentTail::any_batch(self.reader.source(), fault.position);
        Ok(next.map_err(|error| self.source.locate(error))?.is_some())
    }

    /// The error of a source that ends inside a batch.
    fn cut_error(&self, kind: ErrorKind, position: u64) -> Error {
        let error = Error::new(kind).at(position).in_field("size");
        self.source.locate(match self.floor.next() {
            Some(offset) => error.in_batch(offset),
            None => error,
        })
    }

    /// The base offset of the segment after the source. `None` for the last segment, which may end inside a batch
    /// because a broker is still writing it or was killed.
    fn next_base(&self) -> Result<Option<i64>> {
        let (Some(path), Some(base_offset)) = (self.source.path(), self.source.base_offset) else { return Ok(None) };
        if self.reader.has_grown()? {
            return Ok(None);
        }
        self.source.next_base.map_or_else(|| next_segment_base(path, base_offset), |base| Ok(Some(base)))
    }

    fn fault(&self, position: u64, length: u64, offsets: (Option<i64>, Option<i64>), error: Error) -> Fault {
        let (kind, origin) = (error.kind().name(), self.source.origin.clone());
        let message = self.source.locate(error).to_string();
        Fault { kind, message, origin, position, length, offsets, is_cut: false }
    }
}
