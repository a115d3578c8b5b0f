//! Corruption in a source: what a scan reports of it, and which ends of a source it accepts.

use super::current::{CurrentSource, HeaderPass};
use crate::arrow::corruption::SkippedBytes;
use crate::arrow::options::ScanOptions;
use crate::error::{Error, ErrorKind, Result};
use crate::format::header::BatchHeader;
use crate::log::tail::SegmentTail;
use crate::log::walk::Follower;
use crate::store::listing::next_segment_base;

impl CurrentSource {
    /// Verifies the last batch if only its header was read: a corrupt length may lead past good batches to the end of the
    /// file, or of the window unless the next batch starts there.
    pub(super) fn verify_last(&mut self, options: &ScanOptions) -> Result<()> {
        let Some(header) = self.unverified.take().filter(|_| self.is_sorted()) else { return Ok(()) };
        if let Some(following) = self.walk.reader.following_header() {
            let continues = self.floor.next() == Some(following.stored_base_offset);
            if continues || HeaderPass::of(self, options).over(&following, self.floor) {
                return Ok(());
            }
        }
        self.walk.verify(&header).map_err(|error| self.source.locate(error))
    }

    /// Fails if the length of the last batch seems corrupt. Returns whether the rest of the header can be trusted.
    pub(super) fn check_length(&mut self, header: &BatchHeader, follower: Follower) -> Result<bool> {
        let follower = if self.is_sorted() { follower } else { Follower::Any };
        let floor = self.least_offset();
        let own = header.base_offset().filter(|own| floor.is_none_or(|floor| Follower::can_reach(floor, *own)));
        self.walk.check_length(header, own.or(floor), follower)
    }

    /// Like [`CurrentSource::check_length`], for a batch that was read completely and stays readable.
    pub(super) fn check_length_of_bad(&mut self, header: &BatchHeader, follower: Follower) -> Result<bool> {
        if self.walk.reader.last(*header).0.verify_crc().is_ok() {
            return Ok(true);
        }
        let is_trusted = self.check_length(header, follower)?;
        self.walk.reader.seek(header.position());
        self.walk.reader.next_batch().transpose().map(|_| is_trusted)
    }

    /// Skips corrupt bytes from a position on. `is_tail` if they seem to be an incomplete batch at the end: other
    /// batches follow it if only its size is wrong.
    pub(super) fn skip(&mut self, position: u64, error: Error, is_tail: bool) -> Result<SkippedBytes> {
        let least_offset = self.least_offset();
        let skipped = self.walk.skip(position, least_offset).map_err(|error| self.source.locate(error))?;
        let reader = &self.walk.reader;
        // a file that was truncated while it was read may now end before the header
        let header = if skipped.is_followed { reader.header_at(reader.position()).ok() } else { None };
        let next_offset = header.and_then(|header| header.base_offset());
        let is_end = !skipped.is_followed && reader.tail()? != SegmentTail::Partial;
        let next_offset = if is_end { self.next_base()? } else { next_offset };
        let reported = self.skipped_bytes(position, skipped.length, (self.floor.next(), next_offset), error);
        let may_be_cut = is_tail && !skipped.is_followed && self.next_base()?.is_none();
        Ok(SkippedBytes { is_cut: may_be_cut, ..reported })
    }

    /// Skips the bytes after the last batch if they are corruption: an incomplete batch within the bounds, or zeros
    /// that replace batches.
    pub(super) fn skip_tail(&mut self, options: &ScanOptions) -> Result<Option<SkippedBytes>> {
        let position = self.walk.reader.position();
        match self.walk.reader.tail()? {
            SegmentTail::Clean => Ok(None),
            tail @ SegmentTail::Zeros => {
                let Some(error) = self.tail_error(tail)? else { return Ok(None) };
                let (length, next_base) = (self.walk.reader.remainder_len(), self.next_base()?);
                self.walk.reader.seek(position.saturating_add(length));
                Ok(Some(self.skipped_bytes(position, length, (self.floor.next(), next_base), error)))
            }
            SegmentTail::Partial | SegmentTail::Corrupt { .. } if self.walk.reader.is_written_since()? => Ok(None),
            SegmentTail::Partial | SegmentTail::Corrupt { .. } => {
                let error = Error::new(ErrorKind::Truncated).at(position).in_field("size");
                let error = match self.floor.next() {
                    Some(offset) => error.in_batch(offset),
                    None => error,
                };
                let is_wanted = !self.is_sorted() || self.is_tail_wanted(options);
                let skipped = self.skip(position, error, true)?;
                Ok(Some(skipped).filter(|skipped| is_wanted || !skipped.is_cut))
            }
        }
    }

    /// Fails if a file ends inside a batch, or in zeros, although its log continues. The last segment of a growing log
    /// may end anywhere. So may a buffer, as in Kafka: a broker truncates fetch responses at any byte. Returns how many
    /// bytes of an incomplete batch are at such an end, 0 if its records are outside the bounds.
    pub(super) fn check_end(&self, options: &ScanOptions) -> Result<u64> {
        let reader = &self.walk.reader;
        let (tail, is_file) = (reader.tail()?, self.source.path().is_some());
        let tail = match tail {
            SegmentTail::Clean => return Ok(0),
            SegmentTail::Partial | SegmentTail::Corrupt { .. } if is_file => {
                SegmentTail::search(reader.source(), reader.position(), self.least_offset(), &options.limits)
                    .map_err(|error| self.source.locate(error))?
            }
            SegmentTail::Zeros | SegmentTail::Partial | SegmentTail::Corrupt { .. } => tail,
        };
        // after the search, which may find what was written in the meantime
        if tail != SegmentTail::Zeros && reader.is_written_since()? {
            return Ok(0);
        }
        if is_file && let Some(error) = self.tail_error(tail)? {
            return Err(self.source.locate(error));
        }
        let is_lost = self.is_tail_wanted(options) && tail != SegmentTail::Zeros;
        Ok(if is_lost && reader.position() >= self.source.window.0 { reader.remainder_len() } else { 0 })
    }

    /// Whether an incomplete batch at the end may have records within the bounds.
    fn is_tail_wanted(&self, options: &ScanOptions) -> bool {
        let (next, reader) = (self.floor.next(), &self.walk.reader);
        // if offsets are missing before it, its header has its offset
        let header = reader.header_at(reader.position()).ok();
        let own = header.and_then(|header| header.base_offset());
        let own = own.filter(|own| next.is_some_and(|next| Follower::can_reach(next, *own)));
        options.bounds().end_offset.is_none_or(|end| own.or(next).is_none_or(|first| first < end))
    }

    /// The error of a source that ends in these bytes, unless it may. A broker that rolls a preallocated segment fills
    /// and truncates it, so zeros must still be there.
    fn tail_error(&self, tail: SegmentTail) -> Result<Option<Error>> {
        let reader = &self.walk.reader;
        let error = tail.check(reader.position(), self.floor.next(), self.next_base()?).err();
        let is_rolled = error.is_some() && tail == SegmentTail::Zeros && !reader.is_unchanged()?;
        Ok(error.filter(|_| !is_rolled))
    }

    /// The base offset of the segment after the source. `None` for the last segment, which may end inside a batch
    /// because a broker is still writing it or was killed.
    fn next_base(&self) -> Result<Option<i64>> {
        let (Some(path), Some(base_offset)) = (self.source.path(), self.source.base_offset) else { return Ok(None) };
        if self.walk.reader.has_grown()? {
            return Ok(None);
        }
        self.source.next_base.map_or_else(|| next_segment_base(path, base_offset), |base| Ok(Some(base)))
    }

    /// Describes corruption. Offsets that were reported before are not reported again.
    pub(super) fn skipped_bytes(
        &mut self,
        position: u64,
        length: u64,
        offsets: (Option<i64>, Option<i64>),
        error: Error,
    ) -> SkippedBytes {
        // with a batch since the last report, these are other offsets
        let (before, end) = self.reported;
        let is_same = self.is_sorted() && before == self.floor.next();
        let offsets = if is_same { (offsets.0.max(end), offsets.1) } else { offsets };
        self.reported = (self.floor.next(), offsets.1);
        let error = self.walk.storage_error(position, length).unwrap_or(error);
        let (kind, origin) = (error.kind().name(), self.source.origin.clone());
        let message = self.source.locate(error).to_string();
        SkippedBytes { kind, message, origin, position, length, offsets, is_cut: false }
    }
}
