//! [`ObjectFile`]: an object that is read by position, with large requests ahead of a sequential reader.

use std::collections::VecDeque;
use std::io::{Error as IoError, ErrorKind as IoErrorKind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::{GetOptions, GetRange, ObjectMeta, ObjectStore};

use super::error::converted;
use super::runtime::{Process, Running};
use crate::error::{Error, Result};
use crate::io::ReadAt;
use crate::num::{u64_of, usize_from_u64};
use crate::slices::Slices;

/// Bytes of the first request at a position, and of the largest one. Stores take some tens of milliseconds for a
/// request, and a connection transfers some tens of megabytes per second.
const FIRST_LEN: u64 = 64 << 10;
const LARGEST_LEN: u64 = 8 << 20;
/// Bytes of the first request of a reader that is known to be sequential. The next ones, which are requested at the same
/// time, are longer.
const FIRST_EXPECTED_LEN: u64 = 256 << 10;
/// How much longer each request is than the one before, while a reader is sequential.
const GROWTH: u64 = 4;
/// A reader that continues at most this many bytes later is sequential. Batches of this size are read completely even
/// if only their headers are needed: a request takes as long as the transfer of some megabytes.
const NEAR_LEN: u64 = 64 << 10;
/// Objects up to this size, such as indexes, are requested at once.
const WHOLE_LEN: u64 = 256 << 10;
/// Requests ahead of one reader until it has used up the first of them, and after that. Each time that it has to wait for
/// a request then, their number doubles. Sixteen of the largest hide a latency of 50 ms on a line of two gigabytes per second.
const FIRST_AHEAD_COUNT: usize = 4;
const AHEAD_COUNT: usize = 8;
const LARGEST_AHEAD_COUNT: usize = 16;
/// Bytes that all readers of the process may have requested in advance. Beyond it, a reader requests what it needs.
const BUDGET: u64 = 256 << 20;

/// Bytes that are requested or waiting to be read.
static HELD: AtomicU64 = AtomicU64::new(0);

/// An object. If it is replaced while it is read, reading fails.
pub(super) struct ObjectFile {
    store: Arc<dyn ObjectStore>,
    process: Process,
    object: ObjectMeta,
    ahead: Mutex<Ahead>,
}

/// The requests around the position of the last read.
#[derive(Default)]
struct Ahead {
    /// Adjacent ranges in order.
    ranges: VecDeque<Requested>,
    /// Length of the next request in bytes.
    next_len: u64,
    /// Whether the reader is sequential.
    is_sequential: bool,
    /// Requests ahead of a sequential reader.
    count: usize,
    /// The end of the last read.
    last_end: u64,
    /// The position after which nothing is requested in advance.
    limit: Option<u64>,
    /// The position from which on a sequential reader was announced.
    expected: Option<u64>,
}

/// A range of the object.
struct Requested {
    start: u64,
    end: u64,
    bytes: RangeBytes,
}

enum RangeBytes {
    Running(Running<object_store::Result<Vec<Bytes>>>),
    Here(Pieces),
    Failed,
}

/// The bytes of a range in the pieces in which they arrived. Joining them would copy each byte once more.
struct Pieces {
    /// Each piece and the place in the range where it begins.
    pieces: Vec<(usize, Bytes)>,
    len: usize,
}

impl Pieces {
    fn new(arrived: Vec<Bytes>) -> Self {
        let mut len = 0_usize;
        let mut pieces = Vec::with_capacity(arrived.len());
        for piece in arrived {
            let start = len;
            len = len.saturating_add(piece.len());
            pieces.push((start, piece));
        }
        Self { pieces, len }
    }

    /// Copies the bytes from a place in the range on, until `out` is full or the range ends. Returns the number of bytes.
    fn copy_to(&self, from: usize, out: &mut [u8]) -> usize {
        let first = self.pieces.partition_point(|(start, piece)| start.saturating_add(piece.len()) <= from);
        let mut done = 0_usize;
        for (start, piece) in self.pieces.part(first..) {
            let bytes = piece.part(from.saturating_add(done).saturating_sub(*start)..);
            let room = out.part_mut(done..);
            let count = bytes.len().min(room.len());
            room.part_mut(..count).copy_from_slice(bytes.part(..count));
            done = done.saturating_add(count);
            if done == out.len() {
                break;
            }
        }
        done
    }
}

impl Drop for Requested {
    fn drop(&mut self) {
        HELD.fetch_sub(self.end.saturating_sub(self.start), Ordering::Relaxed);
    }
}

impl std::fmt::Debug for ObjectFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({} bytes)", self.object.location, self.object.size)
    }
}

impl ObjectFile {
    pub(super) fn new(store: Arc<dyn ObjectStore>, object: ObjectMeta) -> Self {
        Self { store, process: Process::current(), object, ahead: Mutex::default() }
    }

    fn request(&self, start: u64, len: u64) -> Result<Requested> {
        self.process.check()?;
        let end = start.saturating_add(len).min(self.object.size);
        let options = GetOptions {
            range: Some(GetRange::Bounded(start..end)),
            if_match: self.object.e_tag.clone(),
            version: self.object.version.clone(),
            ..GetOptions::default()
        };
        let (store, key) = (Arc::clone(&self.store), self.object.location.clone());
        let running = Running::start(async move {
            let body = store.get_opts(&key, options).await?.into_stream();
            body.try_collect::<Vec<Bytes>>().await
        })?;
        HELD.fetch_add(end.saturating_sub(start), Ordering::Relaxed);
        Ok(Requested { start, end, bytes: RangeBytes::Running(running) })
    }

    /// Requests what a read needs, and more if the reader is sequential.
    fn prepare(&self, ahead: &mut Ahead, position: u64, end: u64) -> Result<()> {
        let known_end = ahead.ranges.back().map(|range| range.end);
        let is_in = ahead.ranges.front().is_some_and(|front| front.start <= position)
            && known_end.is_some_and(|known| position < known);
        let continues = (ahead.last_end..=ahead.last_end.saturating_add(NEAR_LEN)).contains(&position);
        let mut next = position;
        if is_in {
            ahead.is_sequential |= continues && known_end.is_some_and(|known| end > known);
            while ahead.ranges.front().is_some_and(|front| front.end <= position) {
                ahead.ranges.pop_front();
                ahead.count = ahead.count.max(AHEAD_COUNT);
            }
            next = ahead.ranges.back().map_or(position, |range| range.end);
        } else {
            let is_expected = ahead.expected.take() == Some(position);
            ahead.is_sequential = is_expected || continues && known_end.is_some();
            ahead.count = FIRST_AHEAD_COUNT;
            ahead.ranges.clear();
            if self.object.size <= WHOLE_LEN {
                (next, ahead.next_len) = (0, WHOLE_LEN);
            } else if is_expected {
                ahead.next_len = FIRST_EXPECTED_LEN;
            } else if !ahead.is_sequential {
                ahead.next_len = FIRST_LEN;
            }
        }
        let count = if ahead.is_sequential { ahead.count } else { 1 };
        self.extend(ahead, next, end, count)
    }

    /// Requests ranges from a position on: those that a read up to `end` needs, and more up to the limit, until there are
    /// `count` of them.
    fn extend(&self, ahead: &mut Ahead, from: u64, end: u64, count: usize) -> Result<()> {
        let limit = self.limit(ahead).max(end).min(self.object.size);
        let mut next = from;
        while next < limit && (next < end || ahead.ranges.len() < count && HELD.load(Ordering::Relaxed) < BUDGET) {
            let needed = end.saturating_sub(next).min(LARGEST_LEN);
            let len = ahead.next_len.min(limit.saturating_sub(next)).max(needed).max(1);
            ahead.ranges.push_back(self.request(next, len)?);
            next = next.saturating_add(len).min(self.object.size);
            if ahead.is_sequential {
                ahead.next_len = ahead.next_len.saturating_mul(GROWTH).min(LARGEST_LEN);
            }
        }
        Ok(())
    }

    /// The position after which nothing is requested in advance.
    fn limit(&self, ahead: &Ahead) -> u64 {
        ahead.limit.unwrap_or(u64::MAX).min(self.object.size)
    }

    /// Number of `count` requests that are left, if everything up to the limit was requested for a sequential reader. One
    /// that jumps from header to header does not need all bytes of the next file either.
    fn spare(&self, ahead: &Ahead, count: usize) -> usize {
        let is_complete = ahead.ranges.back().is_some_and(|range| range.end >= self.limit(ahead));
        if is_complete && ahead.is_sequential { count.saturating_sub(ahead.ranges.len()) } else { 0 }
    }

    fn ahead(&self) -> MutexGuard<'_, Ahead> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Requested {
    /// Whether the bytes are not here yet.
    fn has_to_wait(&self) -> bool {
        matches!(&self.bytes, RangeBytes::Running(running) if !running.is_done())
    }

    /// The bytes, once they are here.
    fn pieces(&mut self) -> Result<&Pieces> {
        if let RangeBytes::Running(_) = self.bytes
            && let RangeBytes::Running(running) = std::mem::replace(&mut self.bytes, RangeBytes::Failed)
        {
            let pieces = Pieces::new(running.wait()?.map_err(converted)?);
            let wanted = self.end.saturating_sub(self.start);
            if u64_of(pieces.len) != wanted {
                let message = format!("the store returned {} bytes instead of {wanted}", pieces.len);
                return Err(IoError::new(IoErrorKind::UnexpectedEof, message).into());
            }
            self.bytes = RangeBytes::Here(pieces);
        }
        match &self.bytes {
            RangeBytes::Here(pieces) => Ok(pieces),
            _ => Err(Error::from(std::io::Error::other("an earlier request for these bytes failed"))),
        }
    }
}

impl ReadAt for ObjectFile {
    fn byte_len(&self) -> Result<u64> {
        Ok(self.object.size)
    }

    fn read_bytes_at(&self, out: &mut [u8], position: u64) -> Result<usize> {
        let end = position.saturating_add(u64_of(out.len())).min(self.object.size);
        if position >= end {
            return Ok(0);
        }
        let mut ahead = self.ahead();
        let mut done = 0_usize;
        let mut at = position;
        while at < end {
            let copied = self.prepare(&mut ahead, at, end).and_then(|()| {
                let Ahead { ranges, count, .. } = &mut *ahead;
                let Some(range) = ranges.front_mut() else { return Ok(0) };
                if *count >= AHEAD_COUNT && range.has_to_wait() {
                    *count = count.saturating_mul(2).min(LARGEST_AHEAD_COUNT);
                }
                let from = usize_from_u64(at.saturating_sub(range.start));
                Ok(range.pieces()?.copy_to(from, out.part_mut(done..)))
            });
            match copied {
                Ok(0) => break,
                Ok(count) => {
                    done = done.saturating_add(count);
                    at = at.saturating_add(u64_of(count));
                }
                Err(error) => {
                    ahead.ranges.clear(); // so that another try requests them again
                    return Err(error);
                }
            }
        }
        ahead.last_end = end;
        Ok(done)
    }

    fn limit_ahead(&self, end: u64) {
        self.ahead().limit = Some(end);
    }

    fn expect_reads(&self, position: u64) {
        let mut ahead = self.ahead();
        if !ahead.ranges.is_empty() || position >= self.object.size {
            return;
        }
        ahead.expected = Some(position);
        if self.prepare(&mut ahead, position, position.saturating_add(1)).is_err() {
            ahead.ranges.clear(); // the read fails in the same way, and reports it
        }
    }

    fn spare_requests(&self) -> usize {
        let ahead = self.ahead();
        self.spare(&ahead, ahead.count)
    }

    fn request_ahead(&self, position: u64, count: usize) -> usize {
        let mut ahead = self.ahead();
        if position >= self.limit(&ahead) {
            return count;
        }
        if ahead.ranges.is_empty() {
            (ahead.is_sequential, ahead.next_len) = (true, LARGEST_LEN);
        }
        ahead.count = ahead.count.max(count);
        let next = ahead.ranges.back().map_or(position, |range| range.end);
        if self.extend(&mut ahead, next, next, count).is_err() {
            ahead.ranges.clear(); // the read fails in the same way, and reports it
        }
        self.spare(&ahead, count)
    }
}
