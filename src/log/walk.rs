//! [`BatchWalk`]: reads a file or buffer and continues after corruption. Only this module decides where to continue.
//!
//! ```text
//! next_batch, next_header ──► Batch              a batch, in file order
//!                         ├─► Corrupt ──► skip   the next batch, or the truncated one at the end
//!                         └─► End ──► tail       nothing, zeros, or an incomplete batch, which `skip` searches too
//! ```
//!
//! A caller that stops at the first corruption, as a broker does, does not call [`BatchWalk::skip`]. What the bytes
//! at the end are, [`SegmentTail`](crate::log::tail::SegmentTail) decides.

use std::cmp::Ordering;

use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Batch;
use crate::format::header::BatchHeader;
use crate::io::ReadAt;
use crate::limits::Limits;
use crate::log::reader::SegmentReader;
use crate::log::resync::{Next, Resync};
use crate::log::tail::SegmentTail;
use crate::num::u64_of;
use crate::store::names::MAX_SEGMENT_OFFSETS;

/// The batches of one file or buffer.
#[derive(Debug)]
pub(crate) struct BatchWalk {
    pub(crate) reader: SegmentReader,
    resync: Resync,
    /// The batch that was verified last, if the reader's window did not have it.
    verified: Vec<u8>,
    /// Number of bytes read to verify batches, beside those of the reader.
    verified_len: u64,
}

/// What a walk finds at its position.
#[derive(Debug)]
pub(crate) enum WalkEvent<B> {
    /// A batch. The walk is after it.
    Batch(B),
    /// Bytes from `position` on that are not a batch. [`BatchWalk::skip`] continues after them.
    Corrupt { position: u64, error: Error },
    /// No batch follows: see [`SegmentReader::tail`].
    End,
}

/// Which header after a batch confirms the batch's length. A corrupt length may lead to a later batch, or into one, whose
/// bytes may look like the header of an old format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Follower {
    /// Any header: offsets may decrease.
    Any,
    /// One of the same or a newer format, with an offset that can follow.
    Later,
    /// One with the next offset.
    Next,
}

impl Follower {
    /// Whether a batch at `offset` can follow one that ends before `least`.
    pub(crate) fn can_reach(least: i64, offset: i64) -> bool {
        (0..=MAX_SEGMENT_OFFSETS).contains(&offset.saturating_sub(least))
    }

    pub(crate) fn accepts(self, header: &BatchHeader, following: &BatchHeader) -> bool {
        match self {
            Self::Any => true,
            Self::Later => {
                following.magic() >= header.magic()
                    && Self::can_reach(header.next_offset(), following.stored_base_offset)
            }
            Self::Next => following.continues(header),
        }
    }

    /// Whether a header may be that of the next batch, with or without missing offsets.
    fn may_accept(self, header: &BatchHeader, following: &BatchHeader) -> bool {
        self == Self::Any || Self::Later.accepts(header, following)
    }

    /// Whether the length of a batch with a wrong checksum is corrupt, and not only the payload: it leads past a
    /// complete batch, or to the header `following`, which is not that of a later batch, unless a batch with a correct
    /// checksum starts there. `least_offset` is the smallest offset that the complete batch can have.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn is_length_corrupt(
        self,
        resync: &mut Resync,
        source: &dyn ReadAt,
        header: &BatchHeader,
        following: Option<&BatchHeader>,
        least_offset: Option<i64>,
    ) -> Result<bool> {
        let end = header.end();
        // the bytes after a later batch need not be searched: that would take quadratic time if many batches are corrupt
        if !following.is_some_and(|following| self.may_accept(header, following)) {
            match resync.find_batch(source, header.position(), least_offset)?.map(|next| next.cmp(&end)) {
                Some(Ordering::Less | Ordering::Greater) => return Ok(true),
                None if following.is_some() => return Ok(true),
                Some(Ordering::Equal) | None if self == Self::Any => return Ok(false),
                Some(Ordering::Equal) | None => {}
            }
        }
        Ok(resync.any_batch(source, header.position(), end)?.is_some())
    }
}

/// The bytes that [`BatchWalk::skip`] skipped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Skipped {
    /// Number of bytes. 0 only if the file became shorter while it was read.
    pub(crate) length: u64,
    /// Whether a batch with a correct checksum follows. Otherwise, the walk is at the end, at zeros, or at an
    /// incomplete batch.
    pub(crate) is_followed: bool,
}

impl BatchWalk {
    /// Reads the batches of `reader`, from its position on.
    pub(crate) fn new(reader: SegmentReader, limits: &Limits) -> Self {
        Self { reader, resync: Resync::new(limits), verified: Vec::new(), verified_len: 0 }
    }

    /// Reads the next batch and verifies its checksum.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn next_batch(&mut self) -> Result<WalkEvent<Batch<'_>>> {
        let position = self.reader.position();
        match self.reader.next_batch() {
            Some(Ok(batch)) => Ok(match batch.verify_crc() {
                Ok(()) => WalkEvent::Batch(batch),
                Err(error) => WalkEvent::Corrupt { position, error },
            }),
            Some(Err(error)) => corrupt(position, error),
            None => Ok(WalkEvent::End),
        }
    }

    /// Reads the header of the next batch. Does not verify its checksum.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn next_header(&mut self) -> Result<WalkEvent<BatchHeader>> {
        let position = self.reader.position();
        match self.reader.next_header() {
            Some(Ok(header)) => Ok(WalkEvent::Batch(header)),
            Some(Err(error)) => corrupt(position, error),
            None => Ok(WalkEvent::End),
        }
    }

    /// Skips corrupt bytes from `position` on: continues at the next batch that is not inside a record. `least_offset`
    /// is the smallest offset that this batch can have, if the batches before determine it.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn skip(&mut self, position: u64, least_offset: Option<i64>) -> Result<Skipped> {
        let next = self.resync.find(self.reader.source(), position, least_offset)?;
        let (to, is_followed) = match next {
            Next::Batch(to) => (to, true),
            // bytes that were appended after the file was opened are not read
            Next::End(to) => (to.min(self.reader.position().saturating_add(self.reader.remainder_len())), false),
        };
        self.reader.resume(to);
        Ok(Skipped { length: to.saturating_sub(position), is_followed })
    }

    /// Why the storage could not decode `length` bytes from `position` on, if it could not: see
    /// [`SegmentReader::over_damage`].
    pub(crate) fn storage_error(&self, position: u64, length: u64) -> Option<Error> {
        self.reader.source().damage_in(position..position.saturating_add(length))
    }

    /// Whether the input ends or another batch starts at the position of the walk, which confirms the length of the
    /// last batch.
    pub(crate) fn is_followed(&mut self) -> bool {
        self.reader.remainder_len() == 0 || self.reader.following_header().is_some()
    }

    /// Fails if the length of the last batch, of which only the header was read, seems corrupt: no batch follows that
    /// `follower` accepts, the checksum is wrong, and [`Follower::is_length_corrupt`]. Returns whether the header can be
    /// trusted; otherwise only the length can.
    ///
    /// # Errors
    /// The wrong checksum; I/O errors.
    pub(crate) fn check_length(
        &mut self,
        header: &BatchHeader,
        least_offset: Option<i64>,
        follower: Follower,
    ) -> Result<bool> {
        let following = self.reader.following_header();
        if following.is_some_and(|following| follower.accepts(header, &following)) {
            return Ok(true);
        }
        let Err(error) = self.verify(header) else { return Ok(true) };
        let source = self.reader.source();
        let is_at_end = SegmentTail::at(source, header.end())? == SegmentTail::Clean;
        let is_corrupt =
            follower.is_length_corrupt(&mut self.resync, source, header, following.as_ref(), least_offset)?;
        // otherwise only the payload is corrupt
        if is_corrupt { Err(error) } else { Ok(is_at_end) }
    }

    /// Whether the input ends inside a batch that was complete.
    fn is_shorter_than(&self, header: &BatchHeader) -> Result<bool> {
        Ok(self.reader.source().byte_len()? < header.end())
    }

    /// Number of bytes read so far.
    pub(crate) fn bytes_read(&self) -> u64 {
        self.reader.bytes_read().saturating_add(self.verified_len)
    }

    /// Verifies the checksum of a batch whose header was read. The walk stays at its position, and the last batch
    /// readable. A file that has become shorter ends there.
    ///
    /// # Errors
    /// A wrong checksum; I/O errors.
    pub(crate) fn verify(&mut self, header: &BatchHeader) -> Result<()> {
        if self.reader.in_window(header).is_none() {
            self.verified_len = self.verified_len.saturating_add(u64_of(header.size()));
        }
        let verified = self.reader.read_batch(header, &mut self.verified).and_then(|batch| batch.verify_crc());
        match verified {
            Err(error) if matches!(error.kind(), ErrorKind::Truncated) && self.is_shorter_than(header)? => Ok(()),
            verified => verified,
        }
    }
}

/// The event of an error at a position.
fn corrupt<B>(position: u64, error: Error) -> Result<WalkEvent<B>> {
    match error.kind() {
        ErrorKind::Io(_) => Err(error),
        _ => Ok(WalkEvent::Corrupt { position, error }),
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "tests")]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::{BatchWalk, Follower, Skipped, WalkEvent};
    use crate::error::Result;
    use crate::format::builder::BatchBuilder;
    use crate::io::ReadAt;
    use crate::limits::Limits;
    use crate::log::reader::SegmentReader;
    use crate::log::resync::Resync;
    use crate::log::tail::SegmentTail;
    use crate::num::u64_of;

    /// The bytes of one batch per offset, and the position of each.
    fn log(offsets: std::ops::Range<i64>) -> (Vec<u8>, Vec<usize>) {
        let (mut bytes, mut positions) = (Vec::new(), Vec::new());
        for offset in offsets {
            positions.push(bytes.len());
            let mut builder = BatchBuilder::new().base_offset(offset);
            builder.append(1_700_000_000_000, None, Some(&[b'v'; 100])).unwrap();
            builder.finish_into(&mut bytes).unwrap();
        }
        (bytes, positions)
    }

    /// The offsets of the batches, and the position and length of each corruption.
    fn walk(bytes: Vec<u8>) -> (Vec<i64>, Vec<(u64, u64)>) {
        let limits = Limits::default();
        let mut walk = BatchWalk::new(SegmentReader::from_bytes(Arc::new(bytes), &limits), &limits);
        let (mut offsets, mut skipped) = (Vec::new(), Vec::new());
        loop {
            let position = match walk.next_batch().unwrap() {
                WalkEvent::Batch(batch) => {
                    offsets.push(batch.last_offset());
                    continue;
                }
                WalkEvent::Corrupt { position, .. } => position,
                WalkEvent::End => match walk.reader.tail().unwrap() {
                    SegmentTail::Partial => walk.reader.position(),
                    _ => return (offsets, skipped),
                },
            };
            let Skipped { length, .. } = walk.skip(position, offsets.last().map(|last| last + 1)).unwrap();
            skipped.push((position, length));
        }
    }

    #[test]
    fn walk_over_a_corrupt_payload_returns_all_other_batches() {
        let (mut bytes, positions) = log(0..4);
        bytes[positions[1] + 80] ^= 1;
        let (start, end) = (u64_of(positions[1]), u64_of(positions[2]));
        assert_eq!(walk(bytes), (vec![0, 2, 3], vec![(start, end - start)]));
    }

    #[test]
    fn walk_over_a_length_past_the_end_returns_all_other_batches() {
        let (mut bytes, positions) = log(0..4);
        bytes[positions[1] + 9] = 1;
        let (start, end) = (u64_of(positions[1]), u64_of(positions[2]));
        assert_eq!(walk(bytes), (vec![0, 2, 3], vec![(start, end - start)]));
    }

    #[test]
    fn walk_skips_an_incomplete_batch_at_the_end() {
        let (mut bytes, positions) = log(0..3);
        bytes.pop();
        let (start, end) = (u64_of(positions[2]), u64_of(bytes.len()));
        assert_eq!(walk(bytes), (vec![0, 1], vec![(start, end - start)]));
    }

    #[test]
    fn walk_does_not_skip_zeros_at_the_end() {
        let (mut bytes, _) = log(0..3);
        bytes.extend_from_slice(&[0; 100]);
        assert_eq!(walk(bytes), (vec![0, 1, 2], vec![]));
    }

    #[test]
    fn length_of_a_message_that_leads_to_the_end_is_corrupt_if_it_hides_batches() {
        let mut bytes = Vec::new();
        let mut builder = BatchBuilder::new().magic(1);
        builder.append(1, Some(b"key"), Some(b"value")).unwrap();
        builder.finish_into(&mut bytes).unwrap();
        bytes.extend(log(1..4).0);
        let size = u32::try_from(bytes.len() - 12).unwrap();
        bytes[8..12].copy_from_slice(&size.to_be_bytes());
        let limits = Limits::default();
        let mut walk = BatchWalk::new(SegmentReader::from_bytes(Arc::new(bytes), &limits), &limits);
        let WalkEvent::Batch(header) = walk.next_header().unwrap() else { panic!("a batch was expected") };
        assert!(walk.check_length(&header, Some(0), Follower::Next).is_err());
    }

    /// A source that counts the bytes that are read from it.
    #[derive(Debug)]
    struct Counted {
        bytes: Vec<u8>,
        read: AtomicU64,
    }

    impl ReadAt for Counted {
        fn byte_len(&self) -> Result<u64> {
            self.bytes.as_slice().byte_len()
        }

        fn read_bytes_at(&self, out: &mut [u8], position: u64) -> Result<usize> {
            let count = self.bytes.as_slice().read_bytes_at(out, position)?;
            self.read.fetch_add(u64_of(count), Ordering::Relaxed);
            Ok(count)
        }
    }

    #[test]
    fn many_wrong_checksums_between_missing_offsets_take_linear_time() {
        let mut bytes = Vec::new();
        for offset in 0..1_000 {
            let (mut batch, _) = log(offset * 2..offset * 2 + 1);
            let end = batch.len() - 3;
            batch[end] ^= 1;
            bytes.extend(batch);
        }
        let (limits, len) = (Limits::default(), u64_of(bytes.len()));
        let mut reader = SegmentReader::from_bytes(Arc::new(bytes.clone()), &limits);
        let headers: Vec<_> = std::iter::from_fn(|| reader.next_header()).collect::<Result<_>>().unwrap();
        let (source, mut resync) = (Counted { bytes, read: AtomicU64::new(0) }, Resync::new(&limits));
        for pair in headers.windows(2) {
            let (header, following) = (&pair[0], Some(&pair[1]));
            let own = header.base_offset();
            assert!(!Follower::Next.is_length_corrupt(&mut resync, &source, header, following, own).unwrap());
        }
        assert_eq!(headers.len(), 1_000);
        let read = source.read.load(Ordering::Relaxed);
        assert!(read < 50 * len, "{read} bytes were read of a log of {len}");
    }

    #[test]
    fn walk_stays_at_its_position_when_it_verifies_or_reads_a_batch_again() {
        let (bytes, positions) = log(0..3);
        let limits = Limits::default();
        let mut walk = BatchWalk::new(SegmentReader::from_bytes(Arc::new(bytes), &limits), &limits);
        let WalkEvent::Batch(header) = walk.next_header().unwrap() else { panic!("a batch was expected") };
        let mut out = Vec::new();
        assert_eq!(walk.reader.read_batch(&header, &mut out).unwrap().last_offset(), 0);
        walk.verify(&header).unwrap();
        assert_eq!(walk.reader.position(), u64_of(positions[1]));
    }
}
