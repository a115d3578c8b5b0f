//! Framing: splits a buffer into batches of any magic.
//!
//! Follows `ByteBufferLogInputStream` of Kafka. If fewer bytes remain than a header needs or the size field declares,
//! iteration ends without an error and these bytes are the *remainder*. A size below 14 or a magic other than 0, 1, 2
//! is an error. Two rules are kbat's own (docs/differences.md): zeros up to the end are the tail of a preallocated file
//! and also end the iteration, and a size near 2³¹ − 1, at which Kafka's sum overflows, is an error.

use std::iter::FusedIterator;

use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Batch;
use crate::format::header::{HEADER_LEN_UP_TO_MAGIC, LOG_OVERHEAD, MAGIC_POSITION, MIN_LENGTH, MIN_LENGTH_V2};
use crate::limits::Limits;
use crate::num::{u64_of, usize_from_u64};

/// Iterates over the batches of `bytes`, of any magic and in any order.
///
/// The iterator parses only headers: it does not read payloads or compute checksums. It ends before an incomplete batch
/// at the end, which is not an error: [`Batches::remainder`] returns its bytes. It also ends after its first error.
/// [`Batches::skip_batch`] then skips the batch that caused it, if its size can be trusted.
///
/// ```
/// # fn main() -> kbat::Result<()> {
/// let mut bytes = Vec::new();
/// let mut builder = kbat::BatchBuilder::new();
/// builder.append(1_700_000_000_000, Some(b"key"), Some(b"value"))?;
/// builder.finish_into(&mut bytes)?;
/// bytes.extend_from_slice(&[0; 5]); // a preallocated tail
///
/// let mut batches = kbat::batches(&bytes);
/// let batch = batches.next().unwrap()?;
/// assert_eq!((batch.size(), batch.base_offset(), batch.record_count()), (76, Some(0), Some(1)));
/// assert!(batches.next().is_none());
/// assert_eq!(batches.remainder(), [0; 5]);
/// # Ok(()) }
/// ```
#[must_use]
pub fn batches(bytes: &[u8]) -> Batches<'_> {
    Batches { rest: bytes, position: 0, batch_len_limit: usize::MAX, state: FrameState::Walking }
}

/// An iterator over the batches of a buffer; see [`batches`].
#[derive(Debug, Clone)]
pub struct Batches<'a> {
    rest: &'a [u8],
    position: u64,
    batch_len_limit: usize,
    state: FrameState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FrameState {
    Walking,
    Ended,
    /// The batch at `rest` failed; it is this many bytes long if its size field can be trusted.
    Failed(Option<usize>),
}

impl<'a> Batches<'a> {
    /// Sets the position of the buffer in a larger input. Positions of batches and errors count from there.
    #[must_use]
    pub fn starting_at(mut self, position: u64) -> Self {
        self.position = position;
        self
    }

    /// Rejects batches larger than [`Limits::batch_len`]. By default, a batch may be as long as the buffer.
    #[must_use]
    pub fn with_limits(mut self, limits: &Limits) -> Self {
        self.batch_len_limit = limits.batch_len;
        self
    }

    /// The bytes after the last batch: at the end of the iteration a truncated batch, zeros, or nothing.
    #[must_use]
    pub fn remainder(&self) -> &'a [u8] {
        self.rest
    }

    /// Position of the next batch, in bytes.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// After an error, skips the batch that caused it. Returns `false` if its size can't be trusted, or if no batch
    /// failed.
    pub fn skip_batch(&mut self) -> bool {
        let FrameState::Failed(Some(len)) = self.state else { return false };
        self.advance(len).is_some_and(|_| {
            self.state = FrameState::Walking;
            true
        })
    }

    fn advance(&mut self, len: usize) -> Option<&'a [u8]> {
        let (batch, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        self.position = self.position.saturating_add(u64_of(len));
        Some(batch)
    }
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<Batch<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.state != FrameState::Walking {
            return None;
        }
        let position = self.position;
        match frame(self.rest, position, u64_of(self.rest.len())) {
            Ok(Frame::Whole(len)) => {
                let bytes = self.rest.get(..len)?;
                match check_len(bytes, position, self.batch_len_limit).and_then(|()| Batch::parse(bytes, position)) {
                    Ok(batch) => {
                        self.advance(len)?;
                        Some(Ok(batch))
                    }
                    Err(error) => {
                        self.state = FrameState::Failed(Some(len));
                        Some(Err(error))
                    }
                }
            }
            Ok(Frame::End | Frame::Partial) => {
                self.state = FrameState::Ended;
                None
            }
            Err(error) if is_zero_tail(&error, self.rest) => {
                self.state = FrameState::Ended;
                None
            }
            Err(error) => {
                self.state = FrameState::Failed(trusted_len(&error, self.rest, u64_of(self.rest.len())));
                Some(Err(error))
            }
        }
    }
}

impl FusedIterator for Batches<'_> {}

/// The result of framing at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A whole batch of this many bytes.
    Whole(usize),
    /// Fewer bytes than a header needs.
    End,
    /// The input ends inside the batch.
    Partial,
}

/// Checks the size and magic at the start of `bytes`. `available` is the number of bytes left in the input; `bytes` may
/// be only the first of them, but 17 bytes are always enough.
#[inline]
pub(crate) fn frame(bytes: &[u8], position: u64, available: u64) -> Result<Frame> {
    let Some((head, rest)) = bytes.split_first_chunk::<LOG_OVERHEAD>() else { return Ok(Frame::End) };
    let [o0, o1, o2, o3, o4, o5, o6, o7, l0, l1, l2, l3] = *head;
    let length = i32::from_be_bytes([l0, l1, l2, l3]);
    let total = length.wrapping_add(12);
    if length < MIN_LENGTH || total < 0 {
        let base_offset = i64::from_be_bytes([o0, o1, o2, o3, o4, o5, o6, o7]);
        return Err(length_error(length, MIN_LENGTH, base_offset, position));
    }
    let Some(&magic) = rest.get(MAGIC_POSITION.wrapping_sub(LOG_OVERHEAD)) else { return Ok(Frame::End) };
    if magic > 2 {
        let base_offset = i64::from_be_bytes([o0, o1, o2, o3, o4, o5, o6, o7]);
        let place = position.saturating_add(u64_of(MAGIC_POSITION));
        let kind = ErrorKind::UnsupportedMagic(magic.cast_signed());
        return Err(Error::new(kind).at(place).in_batch(base_offset).in_field("magic"));
    }
    let total = u64::from(total.cast_unsigned());
    if total > available {
        return Ok(Frame::Partial);
    }
    if magic == 2 && length < MIN_LENGTH_V2 {
        let base_offset = i64::from_be_bytes([o0, o1, o2, o3, o4, o5, o6, o7]);
        return Err(length_error(length, MIN_LENGTH_V2, base_offset, position));
    }
    Ok(Frame::Whole(usize_from_u64(total)))
}

/// Checks that the size of a whole batch does not exceed a limit.
#[inline]
fn check_len(bytes: &[u8], position: u64, limit: usize) -> Result<()> {
    if bytes.len() <= limit { Ok(()) } else { Err(limit_error(bytes, bytes.len(), position, limit)) }
}

/// The error for a batch of `len` bytes that begins with `bytes`.
#[cold]
pub(crate) fn limit_error(bytes: &[u8], len: usize, position: u64, limit: usize) -> Error {
    let kind = ErrorKind::Limit { name: "batch_len", limit: u64_of(limit), actual: u64_of(len) };
    let error = Error::new(kind).at(position.saturating_add(8)).in_field("batch_length");
    match bytes.first_chunk() {
        Some(base_offset) => error.in_batch(i64::from_be_bytes(*base_offset)),
        None => error,
    }
}

/// The error for a batch whose length is not trusted, after many lengths that led to no batch. `bytes` are its first
/// bytes.
#[cold]
pub(crate) fn implausible_length_error(bytes: &[u8], position: u64) -> Error {
    let base_offset = bytes.first_chunk().map_or(0, |base_offset| i64::from_be_bytes(*base_offset));
    let length = bytes.get(8..).and_then(|rest| rest.first_chunk()).map_or(0, |length| i32::from_be_bytes(*length));
    length_error(length, MIN_LENGTH, base_offset, position)
}

#[cold]
fn length_error(length: i32, minimum: i32, base_offset: i64, position: u64) -> Error {
    Error::new(ErrorKind::BatchLength { length, minimum })
        .at(position.saturating_add(8))
        .in_batch(base_offset)
        .in_field("batch_length")
}

/// Whether the error is caused only by the zeros of a preallocated file, up to the end of `rest`.
pub(crate) fn is_zero_tail(error: &Error, rest: &[u8]) -> bool {
    matches!(error.kind(), ErrorKind::BatchLength { length: 0, .. }) && is_zeros(rest)
}

/// Whether every byte is zero.
pub(crate) fn is_zeros(bytes: &[u8]) -> bool {
    let (chunks, rest) = bytes.as_chunks::<64>();
    chunks.iter().all(|chunk| chunk.iter().fold(0, |all, byte| all | byte) == 0) && rest.iter().all(|&byte| byte == 0)
}

/// After a framing error, the bytes of the batch, if its size is plausible and the whole batch is within the
/// `available` bytes. `head` is the start of these bytes.
pub(crate) fn trusted_len(error: &Error, head: &[u8], available: u64) -> Option<usize> {
    let length = match error.kind() {
        ErrorKind::UnsupportedMagic(_) | ErrorKind::Limit { .. } => i32::from_be_bytes(*head.get(8..)?.first_chunk()?),
        ErrorKind::BatchLength { length, .. } if *length >= MIN_LENGTH => *length,
        _ => return None,
    };
    let len = usize::try_from(length).ok()?.checked_add(LOG_OVERHEAD)?;
    (u64_of(len) <= available && len >= HEADER_LEN_UP_TO_MAGIC).then_some(len)
}
