//! Conversions between integer types that lose nothing on the targets kbat builds for (pointers of 32 or 64 bits).

/// A length as a file position.
#[expect(clippy::as_conversions, reason = "usize is at most 64 bits on every target of rustc")]
pub(crate) const fn u64_of(length: usize) -> u64 {
    length as u64
}

/// A `u32` as a length.
#[expect(clippy::as_conversions, reason = "usize is at least 32 bits: kbat reads i32 lengths and needs no less")]
pub(crate) const fn usize_of(value: u32) -> usize {
    value as usize
}

/// The low bits of a value, as Kafka narrows them.
#[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "the narrowing is what is wanted")]
pub(crate) const fn low_u32(value: u64) -> u32 {
    value as u32
}

/// The low byte of a value.
#[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "the narrowing is what is wanted")]
pub(crate) const fn low_u8(value: u64) -> u8 {
    value as u8
}

/// A file position or length that came from the file system as a length in memory; saturates where it can't fit.
pub(crate) fn usize_from_u64(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

#[cfg(not(any(target_pointer_width = "32", target_pointer_width = "64")))]
compile_error!("kbat needs pointers of 32 or 64 bits");
