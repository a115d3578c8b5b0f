//! A fast parser for the common shape of records: five small numbers in sixteen bytes, key, value, few headers.
//!
//! Returns `None` for any other shape, including broken records. The general parser then parses the record or reports
//! the error. Both parsers return the same result for records that this one accepts.

use crate::format::record::Body;
use crate::wire::varint::{read_varint, unzigzag32};

/// Maximum bytes of the numbers before the key: two windows.
const HEAD_LEN: usize = 16;

/// Splits one record off the front. Returns the record and the bytes after it.
#[inline(always)]
#[expect(
    clippy::inline_always,
    reason = "without inlining, the record is returned through memory, which is half of the cost of the general parser"
)]
pub(crate) fn quick_body(bytes: &[u8]) -> Option<(Body<'_>, &[u8])> {
    let window = bytes.first_chunk::<HEAD_LEN>()?;
    let mut head = Head::at(window, 0)?;
    let length = usize::try_from(unzigzag32(head.varint()?)).ok()?;
    let (record, after) = bytes.split_at_checked(head.used.wrapping_add(length))?;
    head.skip_byte(); // attributes
    let timestamp_delta = i64::from(unzigzag32(head.varint()?));
    let mut head = Head::at(window, head.used)?;
    let offset_delta = unzigzag32(head.varint()?);
    let key_len = unzigzag32(head.varint()?);
    let (key, rest) = nullable(record.get(head.used..)?, key_len)?;
    let (value_len, rest) = value_len(rest)?;
    let (value, rest) = nullable(rest, value_len)?;
    let (&count, headers) = rest.split_first()?;
    // one byte, not negative, and no more headers than bytes; bytes without headers are an error
    let header_count = u32::from(count >> 1);
    let fits = if count == 0 { headers.is_empty() } else { usize::from(count >> 1) <= headers.len() };
    (count & 0x81 == 0 && fits)
        .then_some((Body { timestamp_delta, offset_delta, key, value, header_count, headers }, after))
}

/// Splits off the length of the value, which has up to three bytes, or fewer than eight bytes follow the key.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a part of quick_body")]
fn value_len(mut bytes: &[u8]) -> Option<(i32, &[u8])> {
    if let Some(window) = bytes.first_chunk() {
        let mut head = Head { bits: u64::from_le_bytes(*window), used: 0 };
        let len = unzigzag32(head.varint()?);
        return Some((len, bytes.get(head.used..)?));
    }
    let len = read_varint(&mut bytes).ok()?;
    Some((len, bytes))
}

/// Splits off a field of `len` bytes, which is null if `len` is negative. Returns the field and the bytes after it.
#[inline(always)]
#[expect(clippy::inline_always, reason = "a part of quick_body")]
fn nullable(bytes: &[u8], len: i32) -> Option<(Option<&[u8]>, &[u8])> {
    match usize::try_from(len) {
        Ok(len) => bytes.split_at_checked(len).map(|(field, rest)| (Some(field), rest)),
        Err(_) => Some((None, bytes)),
    }
}

/// Eight bytes of a window, read from the front: enough for two varints and a byte.
struct Head {
    bits: u64,
    /// Bytes of the window that were read.
    used: usize,
}

impl Head {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of quick_body")]
    fn at(window: &[u8; HEAD_LEN], used: usize) -> Option<Self> {
        let bits = u64::from_le_bytes(*window.get(used..)?.first_chunk()?);
        Some(Self { bits, used })
    }

    /// An unsigned varint of up to three bytes.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of quick_body")]
    fn varint(&mut self) -> Option<u32> {
        let bits = self.bits;
        let value = if bits & 0x80 == 0 {
            self.skip_byte();
            bits & 0x7f
        } else if bits & 0x8000 == 0 {
            self.bits = bits >> 16;
            self.used = self.used.wrapping_add(2);
            bits & 0x7f | (bits >> 1) & 0x3f80
        } else if bits & 0x80_0000 == 0 {
            self.bits = bits >> 24;
            self.used = self.used.wrapping_add(3);
            bits & 0x7f | (bits >> 1) & 0x3f80 | (bits >> 2) & 0x1f_c000
        } else {
            return None;
        };
        Some(crate::num::low_u32(value))
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of quick_body")]
    fn skip_byte(&mut self) {
        self.bits >>= 8;
        self.used = self.used.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::quick_body;
    use crate::format::record::parse_body;
    use crate::wire::varint::read_varint;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn quick_body_gives_what_the_careful_parser_gives_or_nothing(
            mut bytes in prop::collection::vec(prop_oneof![3 => 0_u8..24, 1 => any::<u8>()], 0..80),
            length in 0_u8..80,
        ) {
            if let Some(first) = bytes.first_mut() {
                *first = length.wrapping_mul(2); // a length that may fit
            }
            if let Some((quick, after)) = quick_body(&bytes) {
                let mut rest = &bytes[..];
                let length = usize::try_from(read_varint(&mut rest).unwrap()).unwrap();
                prop_assert_eq!(after, &rest[length..]);
                let careful = parse_body(&rest[..length]).map_err(|fault| fault.field).unwrap();
                prop_assert_eq!((quick.timestamp_delta, quick.offset_delta), (careful.timestamp_delta, careful.offset_delta));
                prop_assert_eq!((quick.key, quick.value), (careful.key, careful.value));
                prop_assert_eq!((quick.header_count, quick.headers), (careful.header_count, careful.headers));
            }
        }
    }

    #[test]
    fn quick_body_takes_the_shapes_that_are_common() {
        let quick = |record: &[u8]| quick_body(&[record, &[0; 16]].concat()).is_some();
        assert!(quick(b"\x10\0\x02\x02\x02k\x02v\0"));
        assert!(quick(b"\x0c\0\x02\x02\x01\x01\0"));
        assert!(quick(b"\x18\0\xfe\xff\x7f\xfe\xff\x7f\x02k\x02v\0"), "numbers of three bytes");
        assert!(!quick(b"\x10\0\x02\x02\x02k\x02v\x02"), "a missing header");
        assert!(!quick(b"\x10\0\x02\x02\x16k\x02v\0"), "a key past the end");
        assert!(quick_body(b"\x10\0\x02\x02\x02k\x02v\0").is_none(), "fewer than 16 bytes up to the end");
    }
}
