//! Varints and varlongs: zigzag over little-endian base 128, like protobuf's `sint32` and `sint64`.
//!
//! Follows `ByteUtils` of Kafka: accepts encodings that are longer than necessary, drops bits that do not fit the last
//! byte, and rejects a continuation bit in byte 5 (varint) or byte 10 (varlong).

/// Longest varint in bytes.
pub(crate) const MAX_VARINT_LEN: usize = 5;
/// Longest varlong in bytes.
pub(crate) const MAX_VARLONG_LEN: usize = 10;

/// Why a varint could not be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VarintFault {
    /// The bytes end inside the varint.
    Truncated,
    /// The continuation bit of its last possible byte is set.
    TooLong,
}

/// Parses a varint and advances `bytes` past it.
#[inline]
pub(crate) fn read_varint(bytes: &mut &[u8]) -> Result<i32, VarintFault> {
    read_unsigned_varint(bytes).map(unzigzag32)
}

/// Parses a varint without the zigzag, as in flexible messages.
#[inline]
pub(crate) fn read_unsigned_varint(bytes: &mut &[u8]) -> Result<u32, VarintFault> {
    match *bytes {
        [first, rest @ ..] if *first < 0x80 => {
            *bytes = rest;
            Ok(u32::from(*first))
        }
        [first, second, rest @ ..] if *second < 0x80 => {
            *bytes = rest;
            Ok(u32::from(*first & 0x7f) | (u32::from(*second) << 7))
        }
        _ => read_base128(bytes, MAX_VARINT_LEN).map(crate::num::low_u32),
    }
}

/// Parses a varlong and advances `bytes` past it.
#[inline]
pub(crate) fn read_varlong(bytes: &mut &[u8]) -> Result<i64, VarintFault> {
    match *bytes {
        [first, rest @ ..] if *first < 0x80 => {
            *bytes = rest;
            Ok(unzigzag64(u64::from(*first)))
        }
        [first, second, rest @ ..] if *second < 0x80 => {
            *bytes = rest;
            Ok(unzigzag64(u64::from(*first & 0x7f) | (u64::from(*second) << 7)))
        }
        _ => read_base128(bytes, MAX_VARLONG_LEN).map(unzigzag64),
    }
}

/// The general case, not inlined: three bytes and more are rare.
#[inline(never)]
fn read_base128(bytes: &mut &[u8], max_len: usize) -> Result<u64, VarintFault> {
    let mut value = 0_u64;
    let mut shift = 0_u32;
    let mut rest = *bytes;
    for _ in 0..max_len {
        let Some((&byte, tail)) = rest.split_first() else { return Err(VarintFault::Truncated) };
        rest = tail;
        value |= u64::from(byte & 0x7f).wrapping_shl(shift);
        if byte < 0x80 {
            *bytes = rest;
            return Ok(value);
        }
        shift = shift.wrapping_add(7);
    }
    Err(VarintFault::TooLong)
}

#[inline]
pub(crate) fn unzigzag32(value: u32) -> i32 {
    ((value >> 1) ^ (value & 1).wrapping_neg()).cast_signed()
}

#[inline]
fn unzigzag64(value: u64) -> i64 {
    ((value >> 1) ^ (value & 1).wrapping_neg()).cast_signed()
}

#[inline]
fn zigzag32(value: i32) -> u32 {
    ((value << 1) ^ (value >> 31)).cast_unsigned()
}

#[inline]
fn zigzag64(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)).cast_unsigned()
}

/// Appends a varint.
#[inline]
pub(crate) fn write_varint(out: &mut Vec<u8>, value: i32) {
    write_base128(out, u64::from(zigzag32(value)));
}

/// Appends a varlong.
#[inline]
pub(crate) fn write_varlong(out: &mut Vec<u8>, value: i64) {
    write_base128(out, zigzag64(value));
}

/// Appends a varint without the zigzag.
#[inline]
pub(crate) fn write_unsigned_varint(out: &mut Vec<u8>, value: u32) {
    write_base128(out, u64::from(value));
}

#[inline]
fn write_base128(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(crate::num::low_u8(value) | 0x80);
        value >>= 7;
    }
    out.push(crate::num::low_u8(value));
}

/// Bytes of an encoded varint.
#[inline]
pub(crate) fn varint_len(value: i32) -> usize {
    base128_len(u64::from(zigzag32(value)))
}

/// Bytes of an encoded varlong.
#[inline]
pub(crate) fn varlong_len(value: i64) -> usize {
    base128_len(zigzag64(value))
}

#[inline]
fn base128_len(value: u64) -> usize {
    let bits = 64_u32.wrapping_sub((value | 1).leading_zeros());
    crate::num::usize_of(bits.div_ceil(7))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The golden values of Kafka's `ByteUtilsTest`.
    const VARINTS: &[(i32, &[u8])] = &[
        (0, &[0x00]),
        (-1, &[0x01]),
        (1, &[0x02]),
        (63, &[0x7e]),
        (-64, &[0x7f]),
        (64, &[0x80, 0x01]),
        (-65, &[0x81, 0x01]),
        (8191, &[0xfe, 0x7f]),
        (-8192, &[0xff, 0x7f]),
        (8192, &[0x80, 0x80, 0x01]),
        (-8193, &[0x81, 0x80, 0x01]),
        (1_048_575, &[0xfe, 0xff, 0x7f]),
        (1_048_576, &[0x80, 0x80, 0x80, 0x01]),
        (i32::MAX, &[0xfe, 0xff, 0xff, 0xff, 0x0f]),
        (i32::MIN, &[0xff, 0xff, 0xff, 0xff, 0x0f]),
    ];

    #[test]
    fn varint_golden_values_both_ways() {
        for &(value, bytes) in VARINTS {
            let mut out = Vec::new();
            write_varint(&mut out, value);
            assert_eq!(out, bytes, "{value}");
            assert_eq!(varint_len(value), bytes.len(), "{value}");
            let mut rest = bytes;
            assert_eq!(read_varint(&mut rest), Ok(value));
            assert!(rest.is_empty());
            let mut rest = bytes;
            assert_eq!(read_varlong(&mut rest), Ok(i64::from(value)));
            assert_eq!(varlong_len(i64::from(value)), bytes.len());
        }
    }

    #[test]
    fn varlong_extremes_both_ways() {
        for (value, last) in [(i64::MAX, 0xfe_u8), (i64::MIN, 0xff)] {
            let mut out = Vec::new();
            write_varlong(&mut out, value);
            let expected = [last, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
            assert_eq!(out, expected);
            assert_eq!(varlong_len(value), 10);
            assert_eq!(read_varlong(&mut out.as_slice()), Ok(value));
        }
    }

    #[test]
    fn varint_too_long_is_refused() {
        let bytes = [0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
        assert_eq!(read_varint(&mut bytes.as_slice()), Err(VarintFault::TooLong));
        let bytes = [0xff_u8; 11];
        assert_eq!(read_varlong(&mut bytes.as_slice()), Err(VarintFault::TooLong));
    }

    #[test]
    fn varint_cut_is_truncated() {
        for len in 0..5 {
            let bytes = vec![0x80_u8; len];
            assert_eq!(read_varint(&mut bytes.as_slice()), Err(VarintFault::Truncated));
        }
    }

    #[test]
    fn varint_longer_than_needed_is_read() {
        assert_eq!(read_varint(&mut [0x80, 0x00].as_slice()), Ok(0));
        assert_eq!(read_varint(&mut [0x80, 0x80, 0x00].as_slice()), Ok(0));
    }
}
