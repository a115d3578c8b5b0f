//! Spark's own form of rows, arrays and maps: `UnsafeRow`, `UnsafeArrayData` and `UnsafeMapData`, as bytes.
//!
//! ```text
//! row    null bits, 8 bytes per 64 fields │ 8 bytes per field             │ values of variable length
//! array  count of elements, 8 bytes │ null bits │ elements, of their own width │ values of variable length
//! map    bytes of the keys, 8 bytes │ keys, an array │ values, an array
//! ```
//!
//! Each part begins at a multiple of 8 bytes. The field of a value of variable length is a number of 64 bits: the upper
//! 32 are the position of the value, from the start of its row or array, the lower 32 its length in bytes. All numbers
//! have the byte order of the machine. The form is that of every Spark from 2.1 on.

mod cells;
mod key;
mod read;
mod types;
mod write;

#[cfg(test)]
mod tests;

pub(super) use key::LogKey;
pub(super) use read::{batch_of_array, batch_of_rows, batches_of_runs};
pub(super) use types::RecordType;
pub(super) use write::{Cell, array_of_rows, row_of};

/// Bytes of a field, and of an element of variable length.
const WORD: usize = 8;

/// Bytes of the null bits of some fields or elements.
fn bits_len(count: usize) -> usize {
    count.div_ceil(64).saturating_mul(WORD)
}

/// The word and the mask of the null bit of a field or element.
fn null_bit(number: usize) -> (usize, u64) {
    let word = (number / 64).saturating_mul(WORD);
    let bit = u32::try_from(number % 64).unwrap_or_default();
    (word, 1_u64.wrapping_shl(bit))
}
