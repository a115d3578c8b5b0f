//! Sizes of records and batches, computed without building them.

use crate::compression::Compression;
use crate::format::header::{BATCH_HEADER_LEN, LOG_OVERHEAD};
use crate::format::legacy;
use crate::format::record::NewHeader;
use crate::num::usize_from_u64;
use crate::wire::varint::{varint_len, varlong_len};

/// Bytes of one uncompressed v2 record, including its length field. Lengths above 2³¹ − 1 saturate.
///
/// ```
/// assert_eq!(kbat::format::record_len(0, 0, None, Some(b"value7"), &[]), 13);
/// ```
#[must_use]
pub fn record_len(
    offset_delta: i32,
    timestamp_delta: i64,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: &[NewHeader<'_>],
) -> usize {
    let body = body_len(offset_delta, timestamp_delta, key, value, headers);
    body.saturating_add(varint_len(i32::try_from(body).unwrap_or(i32::MAX)))
}

/// Bytes of a v2 record after its length field.
#[inline]
pub(crate) fn body_len(
    offset_delta: i32,
    timestamp_delta: i64,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: &[NewHeader<'_>],
) -> usize {
    let attributes = 1_usize;
    let mut len = attributes
        .saturating_add(varlong_len(timestamp_delta))
        .saturating_add(varint_len(offset_delta))
        .saturating_add(field_len(key))
        .saturating_add(field_len(value))
        .saturating_add(varint_len(i32::try_from(headers.len()).unwrap_or(i32::MAX)));
    for (key, value) in headers {
        len = len.saturating_add(field_len(Some(key))).saturating_add(field_len(*value));
    }
    len
}

#[inline]
fn field_len(bytes: Option<&[u8]>) -> usize {
    match bytes {
        None => 1,
        Some(bytes) => bytes.len().saturating_add(varint_len(i32::try_from(bytes.len()).unwrap_or(i32::MAX))),
    }
}

/// Bytes of one v0 or v1 message, including its 12 bytes of log overhead.
///
/// ```
/// assert_eq!(kbat::format::message_len(0, Some(b"key"), Some(b"value")), 34);
/// assert_eq!(kbat::format::message_len(1, Some(b"key"), Some(b"value")), 42);
/// ```
#[must_use]
pub fn message_len(magic: u8, key: Option<&[u8]>, value: Option<&[u8]>) -> usize {
    usize_from_u64(legacy::message_len(magic, key, value)).saturating_add(LOG_OVERHEAD)
}

/// Bytes of a batch whose records take `records_len` bytes before compression: exact without compression, an upper
/// bound with it.
///
/// `records_len` is the sum of [`record_len`] for magic 2 and of [`message_len`] for magic 0 and 1.
///
/// ```
/// let records_len = kbat::format::record_len(0, 0, Some(b"key"), Some(b"value"), &[]);
/// assert_eq!(kbat::format::batch_len_bound(2, kbat::Compression::None, records_len), 76);
/// ```
#[must_use]
pub fn batch_len_bound(magic: u8, compression: Compression, records_len: usize) -> usize {
    let overhead = match (magic, compression) {
        (2, _) => BATCH_HEADER_LEN,
        (_, Compression::None) => 0,
        _ => message_len(magic, None, None),
    };
    records_len.saturating_add(compression.overhead(records_len)).saturating_add(overhead)
}
