//! Recognizes headers that may be those of a batch.

use crate::error::Result;
use crate::format::header::{
    BATCH_HEADER_LEN, BatchHeader, CRC_START, LEGACY_CRC_START, LOG_OVERHEAD, MAGIC_POSITION, MIN_LENGTH_V2,
};
use crate::io::ReadAt;
use crate::log::resync::SEARCH_LEN;
use crate::num::{u64_of, usize_of};

/// Position after the key length in a v0 and a v1 message.
const LEGACY_KEY_LENGTH_END: [usize; 2] = [22, 30];
/// Size in bytes of a v0 and a v1 message without key and value.
const LEGACY_OVERHEAD: [usize; 2] = [26, 34];
/// Size in bytes of the smallest message.
const SMALLEST: usize = 26;
/// Attribute bits that are never set in a v2 batch.
const UNUSED_ATTRIBUTES: u16 = 0xff80;
/// Largest attributes of a v0 or v1 message, and their position.
const LEGACY_ATTRIBUTES: u16 = 0x0f;
const LEGACY_ATTRIBUTES_POSITION: usize = 17;

/// Parses the header at the start of `bytes`. Returns `None` unless every field has a value that a broker writes.
pub(super) fn candidate(bytes: &[u8], position: u64, bounds: &CandidateBounds) -> Option<BatchHeader> {
    plausible(bytes, position, bounds).filter(|header| {
        let is_cut = u64_of(header.size) > bounds.end.saturating_sub(position);
        // a v0 or v1 header has too few fields to check: without a checksum it proves nothing
        !is_cut || bounds.cut && header.magic == 2
    })
}

/// The header of a compressed set of magic 0 or 1, which may extend past the end of the input.
pub(super) fn compressed_set(bytes: &[u8], position: u64, bounds: &CandidateBounds) -> Option<BatchHeader> {
    plausible(bytes, position, bounds).filter(|header| header.magic < 2 && header.attributes.is_compressed())
}

fn plausible(bytes: &[u8], position: u64, bounds: &CandidateBounds) -> Option<BatchHeader> {
    let length = u32::from_be_bytes(*bytes.get(8..)?.first_chunk()?);
    let size = usize_of(length).checked_add(LOG_OVERHEAD)?;
    let magic = *bytes.get(MAGIC_POSITION)?;
    if magic > 2 || length > i32::MAX.cast_unsigned() || size > bounds.batch_len || size < SMALLEST {
        return None;
    }
    let bytes = bytes.get(..size.min(bytes.len()))?;
    let header = BatchHeader::parse(bytes, position, size).ok()?;
    let ahead = header.stored_base_offset.checked_sub(bounds.floor)?;
    if ahead < 0 || ahead > bounds.span {
        return None;
    }
    let sane = if magic == 2 { is_sane_v2(&header) } else { is_sane_legacy(bytes, &header)? };
    sane.then_some(header)
}

/// The limits of a candidate.
#[derive(Debug, Clone, Copy)]
pub(super) struct CandidateBounds {
    /// Smallest base offset.
    pub(super) floor: i64,
    /// Largest difference between the base offset and `floor`.
    pub(super) span: i64,
    /// Largest size in bytes.
    pub(super) batch_len: usize,
    /// End of the input.
    pub(super) end: u64,
    /// Whether the batch may extend past `end`.
    pub(super) cut: bool,
}

/// Does not check the leader epoch, which no checksum covers: the batch is intact if only that is damaged.
fn is_sane_v2(header: &BatchHeader) -> bool {
    let least = usize_of(MIN_LENGTH_V2.cast_unsigned()).saturating_add(LOG_OVERHEAD);
    let delta = i64::from(header.last_offset_delta);
    header.size >= least
        && header.attributes.bits() & UNUSED_ATTRIBUTES == 0
        && header.compression().is_ok()
        && delta >= 0
        && header.stored_base_offset.checked_add(delta).is_some()
        && (0..=delta.saturating_add(1)).contains(&i64::from(header.stored_record_count))
        && header.producer_id >= -1
        && header.producer_epoch >= -1
        && header.base_sequence >= -1
}

/// Whether the key and value fill the message exactly, as every writer does it.
fn is_sane_legacy(bytes: &[u8], header: &BatchHeader) -> Option<bool> {
    let magic = usize::from(header.magic);
    let overhead = *LEGACY_OVERHEAD.get(magic)?;
    let key_end = *LEGACY_KEY_LENGTH_END.get(magic)?;
    if header.size < overhead || header.attributes.bits() > LEGACY_ATTRIBUTES || header.compression().is_err() {
        return Some(false);
    }
    let key_length = i32::from_be_bytes(*bytes.get(key_end.checked_sub(4)?..)?.first_chunk()?);
    let key_len = usize::try_from(key_length).unwrap_or(0);
    let data_len = header.size.saturating_sub(overhead);
    if key_length < -1 || key_len > data_len {
        return Some(false);
    }
    let value_length = bytes.get(key_end.saturating_add(key_len)..).and_then(|rest| rest.first_chunk());
    Some(value_length.is_none_or(|length| {
        let value_length = i32::from_be_bytes(*length);
        let value_len = usize::try_from(value_length).unwrap_or(0);
        value_length >= -1 && key_len.saturating_add(value_len) == data_len
    }))
}

/// Returns the first plausible header that starts in the first `starts` bytes, and the number of bytes before it.
pub(super) fn first_sane(
    piece: &[u8],
    starts: usize,
    position: u64,
    bounds: &CandidateBounds,
) -> (Option<BatchHeader>, usize) {
    for start in 0..starts {
        let Some(rest) = piece.get(start..) else { break };
        if rest.get(MAGIC_POSITION).is_some_and(|magic| *magic <= 2)
            && let Some(header) = candidate(rest, position.saturating_add(u64_of(start)), bounds)
        {
            return (Some(header), start);
        }
    }
    (None, starts)
}

/// The offset after a v0 or v1 message, whatever the rest of its header is. A compressed set has the offset of its last
/// message.
pub(super) fn offset_after_message(bytes: &[u8]) -> Option<i64> {
    let offset = i64::from_be_bytes(*bytes.first_chunk()?);
    bytes.get(MAGIC_POSITION).filter(|magic| **magic < 2)?;
    offset.checked_add(1)
}

/// Whether a v0 or v1 message with the smallest offset within the bounds may start here and extend past the end of the
/// input. Its header has too few fields to be sure.
pub(super) fn may_be_cut_message(bytes: &[u8], position: u64, bounds: &CandidateBounds) -> bool {
    let Some(length) = bytes.get(8..).and_then(|rest| rest.first_chunk()) else { return false };
    let size = usize_of(u32::from_be_bytes(*length)).saturating_add(LOG_OVERHEAD);
    bytes.starts_with(&bounds.floor.to_be_bytes())
        && bytes.get(MAGIC_POSITION).is_some_and(|magic| *magic < 2)
        && bytes.get(LEGACY_ATTRIBUTES_POSITION).is_some_and(|bits| u16::from(*bits) <= LEGACY_ATTRIBUTES)
        && size <= bounds.batch_len
        && u64_of(size) > bounds.end.saturating_sub(position)
}

/// Start of the bytes that the checksum covers, relative to the batch.
pub(super) fn crc_start(magic: u8) -> usize {
    if magic < 2 { LEGACY_CRC_START } else { CRC_START }
}

/// Number of bytes needed to check a header.
pub(super) const HEAD_LEN: usize = BATCH_HEADER_LEN;

/// The position at or after `at` where a batch may begin: not in a large hole of a sparse file.
pub(super) fn after_hole(source: &dyn ReadAt, at: u64) -> Result<u64> {
    let data = source.next_data(at)?;
    let is_large = data.saturating_sub(at) > u64_of(SEARCH_LEN);
    Ok(if is_large { data.saturating_sub(u64_of(HEAD_LEN)) } else { at })
}
