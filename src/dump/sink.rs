//! [`Sink`]: a large buffer before the output, and the pieces of its lines.

use std::io::Write;

use crate::error::Result;
use crate::num::low_u8;
use crate::slices::Slices;

/// Bytes that are written at once.
const WRITE_LEN: usize = 1 << 18;
/// Digits of the longest number.
const MAX_DIGITS: usize = 20;

pub(crate) struct Sink<'w> {
    pub(crate) buffer: Vec<u8>,
    out: &'w mut dyn Write,
}

impl<'w> Sink<'w> {
    pub(crate) fn new(out: &'w mut dyn Write) -> Self {
        Self { buffer: Vec::with_capacity(WRITE_LEN), out }
    }

    /// Writes the buffer if it is full.
    #[inline]
    pub(crate) fn end_line(&mut self) -> Result<()> {
        if self.buffer.len() < WRITE_LEN { Ok(()) } else { self.flush() }
    }

    /// Writes the buffer.
    pub(crate) fn flush(&mut self) -> Result<()> {
        let written = self.out.write_all(&self.buffer);
        self.buffer.clear();
        written?;
        Ok(())
    }
}

/// Appends text.
#[inline]
pub(crate) fn push(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
}

/// Appends a number. Half of the time of a dump would be spent in `write!`.
#[inline]
pub(crate) fn push_int(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    push_uint(out, value.unsigned_abs());
}

/// Appends a number.
#[inline]
pub(crate) fn push_uint(out: &mut Vec<u8>, value: u64) {
    let mut digits = [0_u8; MAX_DIGITS];
    let mut left = value;
    let mut start = MAX_DIGITS;
    for digit in digits.iter_mut().rev() {
        *digit = b'0'.wrapping_add(low_u8(left % 10));
        left /= 10;
        start = start.saturating_sub(1);
        if left == 0 {
            break;
        }
    }
    out.extend_from_slice(digits.part(start..));
}

/// Appends a label and a number.
#[inline]
pub(crate) fn push_field(out: &mut Vec<u8>, label: &str, value: i64) {
    push(out, label);
    push_int(out, value);
}

/// Appends a label and `true` or `false`.
#[inline]
pub(crate) fn push_flag(out: &mut Vec<u8>, label: &str, value: bool) {
    push(out, label);
    push(out, if value { "true" } else { "false" });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_decimal() {
        for value in [0, 7, 10, -1, 12_345, i64::MAX, i64::MIN] {
            let mut out = Vec::new();
            push_int(&mut out, value);
            assert_eq!(out, value.to_string().into_bytes());
        }
    }
}
