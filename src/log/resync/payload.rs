//! Whether a position is inside a key or value of the damaged batch. Values may contain copies of segments.

use crate::error::Result;
use crate::format::header::{BATCH_HEADER_LEN, HEADER_LEN_UP_TO_MAGIC, MAGIC_POSITION};
use crate::io::{ChunkCache, ReadAt};
use crate::num::{u64_of, usize_from_u64};
use crate::wire::varint::{MAX_VARINT_LEN, read_varint, read_varlong, write_unsigned_varint, write_varint};

/// Number of bytes that contain the lengths at the start of a record.
const RECORD_HEAD_LEN: usize = 32;

/// The records of a damaged batch, followed by their lengths from the end of its header.
pub(super) struct DamagedRecords {
    damaged: u64,
    /// Position of the first record that was not followed yet. `None` if the records cannot be followed.
    record: Option<u64>,
}

impl DamagedRecords {
    pub(super) fn new(damaged: u64) -> Self {
        Self { damaged, record: Some(damaged.saturating_add(u64_of(BATCH_HEADER_LEN))) }
    }

    /// Whether a record of the damaged batch contains the candidate from `position` to `candidate_end` (rule R10).
    /// `position` must not decrease between calls.
    pub(super) fn holds(
        &mut self,
        source: &dyn ReadAt,
        window: &mut ChunkCache,
        (position, candidate_end): (u64, u64),
    ) -> Result<bool> {
        let magic = window.bytes_from(source, self.damaged, HEADER_LEN_UP_TO_MAGIC)?.get(MAGIC_POSITION).copied();
        // a damaged magic may have been any
        let may_be = |known: u8| magic.is_none_or(|magic| magic == known || magic > 2);
        let key_of = |known: u8, key: u64| may_be(known).then(|| self.damaged.saturating_add(key));
        for key in [key_of(0, 18), key_of(1, 26)].into_iter().flatten() {
            if self.message_holds(source, window, key, (position, candidate_end))? {
                return Ok(true);
            }
        }
        if !may_be(2) {
            return Ok(false);
        }
        while let Some(start) = self.record.filter(|record| *record < position) {
            let record = PlausibleRecord::parse(window.bytes_from(source, start, RECORD_HEAD_LEN)?, start);
            if let Some(record) = &record
                && record.end > position
            {
                return Ok(record.end >= candidate_end && record.is_whole(source, window)?);
            }
            self.record = record.map(|record| record.end);
        }
        Ok(false)
    }

    /// Whether a v0 or v1 message with its key length at position `key` contains the candidate.
    fn message_holds(
        &self,
        source: &dyn ReadAt,
        window: &mut ChunkCache,
        key: u64,
        (position, candidate_end): (u64, u64),
    ) -> Result<bool> {
        let Some(key_length) = length_at(window.bytes_from(source, key, 4)?) else { return Ok(false) };
        let Ok(key_len) = u64::try_from(key_length.max(0)) else { return Ok(false) };
        let value = key.saturating_add(4).saturating_add(key_len);
        if key_length < -1 || value.saturating_add(4) > position {
            return Ok(false);
        }
        let Some(value_length) = length_at(window.bytes_from(source, value, 4)?) else { return Ok(false) };
        let end = value.saturating_add(4).saturating_add(u64::try_from(value_length).unwrap_or(0));
        let size = length_at(window.bytes_from(source, self.damaged.saturating_add(8), 4)?).unwrap_or(0);
        let frame_end = self.damaged.saturating_add(12).saturating_add(u64::try_from(size).unwrap_or(0));
        Ok(end > position && end >= candidate_end && (end <= source.byte_len()? || end == frame_end))
    }
}

fn length_at(bytes: &[u8]) -> Option<i32> {
    bytes.first_chunk().map(|length| i32::from_be_bytes(*length))
}

/// A v2 record whose first fields have values that a writer writes.
struct PlausibleRecord {
    /// Position of the value's length.
    value: u64,
    end: u64,
}

impl PlausibleRecord {
    fn parse(bytes: &[u8], position: u64) -> Option<Self> {
        let at = |rest: &[u8]| position.saturating_add(u64_of(bytes.len().saturating_sub(rest.len())));
        let mut rest = bytes;
        let len = u64::try_from(read_varint(&mut rest).ok()?).ok()?;
        let start = at(rest);
        let (attributes, mut rest) = rest.split_first()?;
        read_varlong(&mut rest).ok()?;
        let offset_delta = read_varint(&mut rest).ok()?;
        let key_length = read_varint(&mut rest).ok()?;
        let key_len = u64::try_from(key_length.max(0)).ok()?;
        let (value, end) = (at(rest).saturating_add(key_len), start.saturating_add(len));
        (*attributes == 0 && offset_delta >= 0 && key_length >= -1 && value < end).then_some(Self { value, end })
    }

    /// Whether the value and the number of headers fit into the record's length.
    fn is_whole(&self, source: &dyn ReadAt, window: &mut ChunkCache) -> Result<bool> {
        let Some((length, value)) = varint_at(window.bytes_from(source, self.value, MAX_VARINT_LEN)?, self.value)
        else {
            return Ok(false);
        };
        let headers = value.saturating_add(u64::try_from(length).unwrap_or(0));
        if length < -1 || headers >= self.end {
            return Ok(false);
        }
        let rest = window.bytes_from(source, headers, MAX_VARINT_LEN)?;
        if rest.is_empty() {
            return Ok(true); // the input ends inside the value
        }
        Ok(match varint_at(rest, headers) {
            Some((0, after)) => after == self.end,
            Some((count, after)) => {
                count > 0 && self.end.saturating_sub(after) >= u64::from(count.cast_unsigned()).saturating_mul(2)
            }
            None => false,
        })
    }
}

/// Reads the varint at the start of `bytes`. Returns it and the position after it.
fn varint_at(bytes: &[u8], position: u64) -> Option<(i32, u64)> {
    let mut rest = bytes;
    let value = read_varint(&mut rest).ok()?;
    Some((value, position.saturating_add(u64_of(bytes.len().saturating_sub(rest.len())))))
}

/// Whether the bytes before `position` are the length of the range up to `end`, so that the range is a value (rule
/// R5). The length may be a zigzag varint (a v2 record, Avro), a varint (protobuf) or an `i32` (a v0 or v1 message).
pub(super) fn is_counted(source: &dyn ReadAt, window: &mut ChunkCache, position: u64, end: u64) -> Result<bool> {
    let Ok(len) = i32::try_from(end.saturating_sub(position)) else { return Ok(false) };
    let mut zigzag = Vec::new();
    write_varint(&mut zigzag, len);
    let mut plain = Vec::new();
    write_unsigned_varint(&mut plain, len.cast_unsigned());
    for encoded in [zigzag.as_slice(), plain.as_slice(), &len.to_be_bytes()] {
        // a single byte has the right value by chance too often
        if let Some(at) = position.checked_sub(u64_of(encoded.len())).filter(|_| encoded.len() > 1)
            && window.bytes_from(source, at, encoded.len())?.starts_with(encoded)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The distance between two positions, as a length in memory.
pub(super) fn len_between(from: u64, to: u64) -> usize {
    usize_from_u64(to.saturating_sub(from))
}
