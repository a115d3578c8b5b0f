//! Reading and writing single fields in the bytes of a row or array.

use crate::error::{Error, Result};
use crate::jvm::unsafe_rows::{WORD, null_bit};
use crate::num::{low_u32, u64_of, usize_from_u64, usize_of};

#[cold]
pub(super) fn malformed() -> Error {
    Error::other("the bytes of a row are not in Spark's form")
}

/// The bytes of a number at a position.
pub(super) fn number_at<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N]> {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).copied().ok_or_else(malformed)
}

/// A length or count at a position.
pub(super) fn count_at(bytes: &[u8], at: usize) -> Result<usize> {
    let count = i64::from_ne_bytes(number_at(bytes, at)?);
    usize::try_from(count).map_err(|_| malformed())
}

/// The value of variable length whose field is at a position.
pub(super) fn value_at(bytes: &[u8], at: usize) -> Result<&[u8]> {
    let word = u64::from_ne_bytes(number_at(bytes, at)?);
    let (start, len) = (usize_from_u64(word.wrapping_shr(32)), usize_of(low_u32(word)));
    bytes.get(start..start.saturating_add(len)).ok_or_else(malformed)
}

/// Whether a field or element is null; `bits` is the position of the null bits.
pub(super) fn is_null_at(bytes: &[u8], bits: usize, number: usize) -> Result<bool> {
    let (word, mask) = null_bit(number);
    let word = u64::from_ne_bytes(number_at(bytes, bits.saturating_add(word))?);
    Ok(word & mask != 0)
}

/// Bytes under construction.
#[derive(Default)]
pub(super) struct RowBytes {
    pub(super) bytes: Vec<u8>,
}

impl RowBytes {
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    pub(super) fn push_count(&mut self, count: usize) {
        self.bytes.extend_from_slice(&u64_of(count).to_ne_bytes());
    }

    /// Appends zeros up to a multiple of 8 bytes, at least `len`.
    pub(super) fn push_zeros(&mut self, len: usize) {
        let end = self.bytes.len().saturating_add(len).checked_next_multiple_of(WORD).unwrap_or(usize::MAX);
        self.bytes.resize(end, 0);
    }

    /// Appends a value of variable length, and returns its field; `base` is the start of its row or array.
    pub(super) fn push_value(&mut self, value: &[u8], base: usize) -> u64 {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.push_zeros(0);
        field_of(start, value.len(), base)
    }

    pub(super) fn set(&mut self, at: usize, value: &[u8]) {
        if let Some(place) = self.bytes.get_mut(at..at.saturating_add(value.len())) {
            place.copy_from_slice(value);
        }
    }

    pub(super) fn set_null(&mut self, bits: usize, number: usize) {
        let (word, mask) = null_bit(number);
        let at = bits.saturating_add(word);
        if let Ok(word) = number_at(&self.bytes, at).map(u64::from_ne_bytes) {
            self.set(at, &(word | mask).to_ne_bytes());
        }
    }
}

/// The field of a value of variable length.
pub(super) fn field_of(start: usize, len: usize, base: usize) -> u64 {
    u64_of(start.saturating_sub(base)).wrapping_shl(32) | u64_of(len)
}
