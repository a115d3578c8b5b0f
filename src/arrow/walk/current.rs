//! [`CurrentSource`]: the batches of one source that a scan returns.

use std::sync::Arc;

use super::BatchContext;
use crate::arrow::interrupt::InterruptCheck;
use crate::arrow::options::{OnCorrupt, RecordBounds, ScanOptions};
use crate::arrow::source::ScanSource;
use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Batch;
use crate::format::header::BatchHeader;
use crate::log::committed::{Committed, offset_fault};
use crate::log::resync::Floor;
use crate::log::walk::{BatchWalk, Follower};
use crate::store::names::MAX_SEGMENT_OFFSETS;

/// The open source.
pub(super) struct CurrentSource {
    pub(super) source: ScanSource,
    pub(super) walk: BatchWalk,
    pub(super) bounds: RecordBounds,
    pub(super) committed: Option<Arc<Committed>>,
    /// The offset after the last batch, and the least offset that can follow it.
    pub(super) floor: Floor,
    /// The offset after the batches before the window, if it is known.
    pub(super) begun_at: Option<i64>,
    /// Whether the header of the last batch can be trusted, and not only its length.
    pub(super) is_header_trusted: bool,
    /// Bytes of the source; 0 if the scan has no callback.
    pub(super) len: u64,
    /// The last batch, if it was skipped by its header.
    pub(super) unverified: Option<BatchHeader>,
    /// At the last report: the offset after the last batch, and the offset after those that were reported as lost.
    pub(super) reported: (Option<i64>, Option<i64>),
}

/// The next item of a source.
pub(super) enum NextBatch {
    /// A batch to return.
    Batch(BatchHeader),
    /// A batch that was skipped.
    Skipped,
    /// The callback has ended the walk.
    Stopped,
    /// This batch and all later ones of the source are after the bounds.
    Enough,
    End,
    /// A corrupt batch whose size is reliable: its position, size, and the offsets before and after it.
    CorruptBatch {
        position: u64,
        size: usize,
        offsets: (Option<i64>, Option<i64>),
        error: Error,
    },
    /// Corrupt bytes from a position on, of unknown length.
    CorruptBytes {
        position: u64,
        error: Error,
    },
}

/// Which batches of a source are skipped by their headers.
pub(super) struct HeaderPass {
    from: u64,
    bounds: RecordBounds,
    is_sorted: bool,
    is_gap_checked: bool,
}

impl HeaderPass {
    pub(super) fn of(current: &CurrentSource, options: &ScanOptions) -> Self {
        let (is_sorted, bounds) = (current.is_sorted(), current.bounds);
        // the length of a batch before a gap may be corrupt and lead past batches with other times
        let is_gap_checked = options.check_crc && is_sorted && bounds.has_times();
        Self { from: current.source.window.0, bounds, is_sorted, is_gap_checked }
    }

    /// Whether a batch is skipped. `floor` is the end of the batches before it.
    pub(super) fn over(&self, header: &BatchHeader, floor: Floor) -> bool {
        if header.is_control() || self.is_sorted && self.bounds.end_before(header) {
            return false; // a control batch to verify its checksum, the other to end the source
        }
        if self.is_gap_checked && floor.next().is_some_and(|next| next != header.stored_base_offset) {
            return false; // verified too, because often another gap follows
        }
        header.position() < self.from || self.bounds.pass_over(header)
    }
}

impl CurrentSource {
    /// Whether the batches that were read reach into the next segment. Of a segment that is read in parts,
    /// only one does if the end of those before it is known.
    pub(super) fn reaches_next(&self) -> bool {
        let (Some(next_base), Some(end)) = (self.source.next_base, self.floor.next()) else { return false };
        end > next_base && self.begun_at.is_none_or(|begun_at| begun_at <= next_base)
    }

    /// Bytes of the source read so far.
    pub(super) fn walked(&self) -> u64 {
        self.walk.reader.position().saturating_sub(self.source.window.0)
    }

    /// Whether the batches of the source are ordered by offset. Those of a segment are; other files and buffers need
    /// not be.
    pub(super) fn is_sorted(&self) -> bool {
        self.source.base_offset.is_some()
    }

    /// The least offset of a batch after corruption. Outside a segment offsets may decrease: each produce request
    /// begins with 0.
    pub(super) fn least_offset(&self) -> Option<i64> {
        self.floor.least().filter(|_| self.is_sorted())
    }

    /// Finds the next batch within the bounds. [`CurrentSource::give`] returns it.
    pub(super) fn find(
        &mut self,
        options: &ScanOptions,
        bad_payloads: Option<Follower>,
        watch: &mut InterruptCheck,
    ) -> NextBatch {
        let header = match self.next_wanted(options, watch) {
            Ok(header) => header,
            Err(found) => return found,
        };
        let position = header.position();
        self.is_header_trusted = true;
        if let Some(follower) = bad_payloads {
            match self.check_length_of_bad(&header, follower) {
                Ok(is_trusted) => self.is_header_trusted = is_trusted,
                Err(error) => return NextBatch::CorruptBytes { position, error },
            }
        }
        let is_after_gap = self.is_sorted() && self.floor.next() != Some(header.stored_base_offset);
        if let Some(before) = self.unverified.take().filter(|_| options.check_crc && is_after_gap)
            && let Err(error) = self.walk.verify(&before)
        {
            // a corrupt length may lead past good batches
            return NextBatch::CorruptBytes { position: before.position(), error };
        }
        let is_enough = self.is_sorted() && self.is_header_trusted && self.bounds.end_before(&header);
        // a batch after the bounds need not be intact, but what seems to be one after a gap may be anything
        if options.check_crc
            && !(is_enough && options.on_corrupt == OnCorrupt::Fail && !is_after_gap)
            && let Err(error) = self.walk.reader.last(header).0.verify_crc()
        {
            return NextBatch::CorruptBytes { position, error };
        }
        if is_enough {
            return match self.damaged_offset(&header) {
                Ok(None) => NextBatch::Enough,
                Ok(Some(corrupt)) => corrupt,
                Err(error) => NextBatch::CorruptBytes { position, error },
            };
        }
        if self.committed.is_some() && self.is_sorted() {
            // a batch with a damaged offset would be outside its transaction
            if let Some(error) = offset_fault(self.floor, &header) {
                let next = self.floor.next();
                let count = header.next_offset().saturating_sub(header.stored_base_offset);
                let end = next.map(|next| next.saturating_add(count));
                return NextBatch::CorruptBatch { position, size: header.size(), offsets: (next, end), error };
            }
            match self.damaged_offset(&header) {
                Ok(None) => {}
                Ok(Some(corrupt)) => return corrupt,
                Err(error) => return NextBatch::CorruptBytes { position, error },
            }
        }
        let is_hidden = self.committed.as_ref().is_some_and(|committed| committed.is_hidden(&header));
        if position < self.source.window.0 || self.bounds.pass_over(&header) || is_hidden {
            self.floor.pass(&header);
            return NextBatch::Skipped;
        }
        NextBatch::Batch(header)
    }

    /// Passes a batch that was found to `take`. If that fails although the checksum was verified, only this batch is
    /// damaged.
    pub(super) fn give(
        &mut self,
        header: BatchHeader,
        is_verified: bool,
        take: impl FnOnce(&Batch<'_>, &BatchContext<'_>) -> Result<()>,
    ) -> NextBatch {
        let (batch, memory) = self.walk.reader.last(header);
        let (position, size) = (batch.position(), batch.size());
        let offsets = (batch.base_offset().or(self.floor.next()), Some(batch.next_offset()));
        let taken = take(&batch, &BatchContext { origin: &self.source.origin, bounds: &self.bounds, memory });
        if self.is_header_trusted && (taken.is_ok() || is_verified) {
            self.floor.pass(&header);
        }
        match taken {
            Ok(()) => NextBatch::Batch(header),
            Err(error) if is_verified => NextBatch::CorruptBatch { position, size, offsets, error },
            Err(error) => NextBatch::CorruptBytes { position, error },
        }
    }

    /// Finds a damaged offset, which no checksum covers, in a batch that seems to be after the bounds: it is after a
    /// gap, and the next batch or segment has a lower offset, or no segment can contain it.
    pub(super) fn damaged_offset(&self, header: &BatchHeader) -> Result<Option<NextBatch>> {
        let base_offset = header.stored_base_offset;
        let Some(next) = self.floor.next().filter(|next| base_offset > *next) else { return Ok(None) };
        let behind = match self.walk.reader.header_at(header.end()) {
            Ok(behind) => Some(behind).filter(|behind| behind.crc != 0), // zeros are not a batch
            Err(error) if matches!(error.kind(), ErrorKind::Io(_)) => return Err(error),
            Err(_) => None,
        };
        let (end, last, expected) = match (behind, self.source.next_base, self.source.base_offset) {
            (Some(behind), ..) => {
                let offset = behind.stored_base_offset;
                (offset, offset, "an offset below that of the next batch")
            }
            (None, Some(offset), _) => (offset, offset.saturating_sub(1), "an offset below that of the next segment"),
            (None, None, Some(base)) if base_offset.saturating_sub(base) >= MAX_SEGMENT_OFFSETS => {
                let count = header.next_offset().saturating_sub(base_offset);
                (next.saturating_add(count), next, "an offset within 2^31 of the segment's")
            }
            (None, None, _) => return Ok(None),
        };
        if self.floor.damaged_gap(base_offset, last).is_none() {
            return Ok(None);
        }
        let kind = ErrorKind::InvalidValue { value: base_offset, expected };
        let error = Error::new(kind).at(header.position()).in_batch(base_offset).in_field("base_offset");
        let offsets = (Some(next), Some(end));
        Ok(Some(NextBatch::CorruptBatch { position: header.position(), size: header.size(), offsets, error }))
    }

    /// The header of the next batch to read. Batches whose trusted header excludes them are skipped. The error is the
    /// reason why there is no such batch.
    pub(super) fn next_wanted(
        &mut self,
        options: &ScanOptions,
        watch: &mut InterruptCheck,
    ) -> std::result::Result<BatchHeader, NextBatch> {
        let passes = HeaderPass::of(self, options);
        let Self { source, walk: BatchWalk { reader, .. }, bounds, floor, unverified, .. } = self;
        let from = source.window.0;
        let mut should_continue = true;
        // if corruption is skipped, a length is only trusted after the checksum is verified
        let is_trusted = options.on_corrupt == OnCorrupt::Fail;
        let next = if is_trusted && (bounds.are_any() || from > 0) {
            reader.next_wanted(|header| {
                let passes_over = passes.over(header, *floor);
                if passes_over {
                    floor.pass(header);
                    *unverified = Some(*header);
                    should_continue = watch.should_continue(header.position().saturating_sub(from));
                }
                !(passes_over && should_continue)
            })
        } else {
            reader.next_batch()
        };
        match next {
            _ if !should_continue => Err(NextBatch::Stopped),
            None => Err(NextBatch::End),
            Some(Err(error)) => Err(NextBatch::CorruptBytes { position: reader.position(), error }),
            Some(Ok(batch)) => Ok(*batch.header()),
        }
    }

    /// Finds the header of the next batch within the bounds. A payload is only read if no `follower` confirms its
    /// length.
    pub(super) fn find_header(&mut self, follower: Follower) -> NextBatch {
        let header = match self.walk.reader.next_header() {
            None => return NextBatch::End,
            Some(Err(error)) => return NextBatch::CorruptBytes { position: self.walk.reader.position(), error },
            Some(Ok(header)) => header,
        };
        let is_trusted = match self.check_length(&header, follower) {
            Ok(is_trusted) => is_trusted,
            Err(error) => return NextBatch::CorruptBytes { position: header.position(), error },
        };
        if is_trusted && self.is_sorted() && self.bounds.end_before(&header) {
            return NextBatch::Enough;
        }
        if is_trusted {
            self.floor.pass(&header);
        }
        if header.position() < self.source.window.0 || self.bounds.pass_over(&header) {
            return NextBatch::Skipped;
        }
        NextBatch::Batch(header)
    }
}
