//! Checksums over ranges of a [`ReadAt`].

use crate::error::Result;
use crate::format::header::{BatchHeader, CRC_POSITION, LEGACY_CRC_POSITION, MAGIC_POSITION};
use crate::io::ReadAt;
use crate::log::resync::candidate::{HEAD_LEN, crc_start};
use crate::log::resync::payload::len_between;
use crate::log::resync::{SEARCH_LEN, SMALLEST_BATCH_LEN};
use crate::num::{u64_of, usize_from_u64};
use crate::slices::Slices;
use crate::wire::crc::Digest;

/// The checksum of the damaged batch over a growing range. If it is correct for a range, the batch ends there (rule
/// R2).
pub(super) struct Proof {
    digest: Digest,
    stored: u32,
    position: u64,
    least: u64,
}

impl Proof {
    pub(super) fn new(source: &dyn ReadAt, damaged: u64) -> Result<Option<Self>> {
        let mut head = [0; HEAD_LEN];
        if source.read_bytes_at(&mut head, damaged)? < HEAD_LEN {
            return Ok(None);
        }
        let magic = head.get(MAGIC_POSITION).copied().unwrap_or(2);
        let place = if magic < 2 { LEGACY_CRC_POSITION } else { CRC_POSITION };
        let Some(stored) = head.get(place..).and_then(|rest| rest.first_chunk()) else { return Ok(None) };
        Ok(Some(Self {
            digest: Digest::of_magic(magic),
            stored: u32::from_be_bytes(*stored),
            position: damaged.saturating_add(u64_of(crc_start(magic))),
            least: damaged.saturating_add(if magic < 2 { SMALLEST_BATCH_LEN } else { u64_of(HEAD_LEN) }),
        }))
    }

    /// Whether the damaged batch's checksum is correct if the batch ends at `end`. `end` must not decrease between
    /// calls.
    pub(super) fn ends_at(&mut self, source: &dyn ReadAt, end: u64) -> Result<bool> {
        if end < self.least {
            return Ok(false);
        }
        update(&mut self.digest, source, self.position, end)?;
        self.position = self.position.max(end);
        Ok(self.digest.value() == self.stored)
    }
}

/// Adds the bytes from `position` up to `end` to a checksum.
fn update(digest: &mut Digest, source: &dyn ReadAt, mut position: u64, end: u64) -> Result<()> {
    let mut chunk = vec![0; len_between(position, end).min(SEARCH_LEN)];
    while position < end {
        let wanted = usize_from_u64(end.saturating_sub(position)).min(chunk.len());
        let count = source.read_bytes_at(chunk.part_mut(..wanted), position)?;
        if count == 0 {
            break;
        }
        digest.update(chunk.part(..count));
        position = position.saturating_add(u64_of(count));
    }
    Ok(())
}

/// Whether a batch has the checksum in its header. Reads the batch in chunks.
pub(crate) fn is_crc_right(source: &dyn ReadAt, header: &BatchHeader) -> Result<bool> {
    let mut digest = Digest::of_magic(header.magic());
    let start = header.position().saturating_add(u64_of(crc_start(header.magic())));
    update(&mut digest, source, start, header.end())?;
    Ok(digest.value() == header.crc)
}
