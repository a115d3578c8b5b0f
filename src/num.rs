//! Lossless conversions between integer types on the targets that kbat supports (pointers of 32 or 64 bits).

/// A length as a file position.
#[expect(clippy::as_conversions, reason = "usize is at most 64 bits on every target of rustc")]
pub(crate) const fn u64_of(length: usize) -> u64 {
    length as u64
}

/// A `u32` as a length.
#[expect(clippy::as_conversions, reason = "usize is at least 32 bits on the supported targets")]
pub(crate) const fn usize_of(value: u32) -> usize {
    value as usize
}

/// The low 32 bits of a value, narrowed as Kafka does.
#[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "the narrowing is intended")]
pub(crate) const fn low_u32(value: u64) -> u32 {
    value as u32
}

/// The low byte of a value.
#[expect(clippy::as_conversions, clippy::cast_possible_truncation, reason = "the narrowing is intended")]
pub(crate) const fn low_u8(value: u64) -> u8 {
    value as u8
}

/// Converts a file position or length from the file system to a length in memory; saturates if it does not fit.
pub(crate) fn usize_from_u64(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

#[cfg(not(any(target_pointer_width = "32", target_pointer_width = "64")))]
compile_error!("kbat needs pointers of 32 or 64 bits");
