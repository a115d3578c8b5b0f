//! Bytes as hexadecimal digits.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Appends two hexadecimal digits per byte.
pub(super) fn hex(out: &mut Vec<u8>, bytes: &[u8]) {
    let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or(b'0');
    out.extend(bytes.iter().flat_map(|byte| [digit(byte.wrapping_shr(4)), digit(byte & 0xf)]));
}
