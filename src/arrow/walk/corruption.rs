//! Corruption in a source: what to skip, and how a source ends.

use super::current::Current;
use crate::arrow::fault::Fault;
use crate::error::{Error, ErrorKind, Result};
use crate::format::header::BatchHeader;
use crate::io::ReadAt;
use crate::log::resync::Next;
use crate::log::tail::SegmentTail;
use crate::store::listing::next_segment_base;

impl Current {
    /// Verifies the last batch if only its header was read: a corrupt length may lead past good batches to the end.
    pub(super) fn verify_last(&mut self) -> Result<()> {
        let Some(header) = self.unverified.take().filter(|_| self.is_sorted()) else { return Ok(()) };
        let position = self.reader.position();
        let verified = self.verify(&header);
        self.reader.seek(position);
        verified.map_err(|error| self.source.locate(error))
    }

    /// Like [`Current::check_length`], for the last batch, which was read completely and stays readable.
    pub(super) fn check_length_of_bad(&mut self, header: &BatchHeader) -> Result<()> {
        if self.reader.last(*header).0.verify_crc().is_ok() {
            return Ok(());
        }
        self.check_length(header)?;
        self.reader.seek(header.position());
        self.reader.next_batch().transpose().map(|_| ())
    }

    /// Fails if the length of the last batch seems corrupt: its checksum is wrong, it leads neither to another batch nor
    /// to the end, and it leads past a complete batch.
    pub(super) fn check_length(&mut self, header: &BatchHeader) -> Result<()> {
        if self.reader.has_next() {
            return Ok(());
        }
        let position = self.reader.position();
        if SegmentTail::at(self.reader.source(), position)? == SegmentTail::Clean {
            return Ok(());
        }
        let checked = self.verify(header);
        self.reader.seek(position);
        let Err(error) = checked else { return Ok(()) };
        let least = header.base_offset().or(self.least_offset());
        let next = self.resync.find_batch(self.reader.source(), header.position(), least)?;
        // otherwise only the payload is corrupt
        if next.is_some_and(|next| next < position) { Err(error) } else { Ok(()) }
    }

    /// Reads a batch and verifies its checksum.
    pub(super) fn verify(&mut self, header: &BatchHeader) -> Result<()> {
        self.reader.seek(header.position());
        self.reader.next_batch().map_or(Ok(()), |batch| batch?.verify_crc())
    }

    /// Resumes at the next batch after corruption.
    pub(super) fn pass_over(&mut self, position: u64, error: Error) -> Result<Fault> {
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
    pub(super) fn cut_end(&mut self) -> Result<Option<Fault>> {
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
    pub(super) fn zero_end(&mut self) -> Result<Option<Fault>> {
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

    /// Rejects a file that ends inside a batch if complete batches or other segments follow. The last segment of a
    /// growing log may end anywhere. So may a buffer, as in Kafka: a broker truncates fetch responses at any byte.
    pub(super) fn check_end(&mut self) -> Result<()> {
        if self.source.path().is_none() {
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
    pub(super) fn hides_a_batch(&self, fault: &Fault) -> Result<bool> {
        let next = SegmentTail::any_batch(self.reader.source(), fault.position);
        Ok(next.map_err(|error| self.source.locate(error))?.is_some())
    }

    /// The error of a source that ends inside a batch.
    pub(super) fn cut_error(&self, kind: ErrorKind, position: u64) -> Error {
        let error = Error::new(kind).at(position).in_field("size");
        self.source.locate(match self.floor.next() {
            Some(offset) => error.in_batch(offset),
            None => error,
        })
    }

    /// The base offset of the segment after the source. `None` for the last segment, which may end inside a batch
    /// because a broker is still writing it or was killed.
    pub(super) fn next_base(&self) -> Result<Option<i64>> {
        let (Some(path), Some(base_offset)) = (self.source.path(), self.source.base_offset) else { return Ok(None) };
        if self.reader.has_grown()? {
            return Ok(None);
        }
        self.source.next_base.map_or_else(|| next_segment_base(path, base_offset), |base| Ok(Some(base)))
    }

    pub(super) fn fault(&self, position: u64, length: u64, offsets: (Option<i64>, Option<i64>), error: Error) -> Fault {
        let damaged = position..position.saturating_add(length);
        let error = self.reader.source().damage_in(damaged).unwrap_or(error);
        let (kind, origin) = (error.kind().name(), self.source.origin.clone());
        let message = self.source.locate(error).to_string();
        Fault { kind, message, origin, position, length, offsets, is_cut: false }
    }
}
