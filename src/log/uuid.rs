//! [`Uuid`]: 16 bytes, written by Kafka as 22 characters of base64 without padding.
//!
//! Source: `Uuid` of Kafka; RFC 4648, section 5.

use std::fmt;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// Number of characters of an encoded id.
const TEXT_LEN: usize = 22;

/// The id of a topic or a directory.
///
/// ```
/// let id = kbat::log::Uuid::parse("bAmibu5sR86NaVa0PfqQXA").unwrap();
/// assert_eq!(id.to_string(), "bAmibu5sR86NaVa0PfqQXA");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid(pub [u8; 16]);

impl Uuid {
    /// Parses 22 characters of URL-safe base64, with or without padding. Returns `None` for any other text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim_end_matches('=');
        if text.len() != TEXT_LEN {
            return None;
        }
        let (mut bits, mut bit_count) = (0_u32, 0_u32);
        let mut bytes = Vec::with_capacity(16);
        for character in text.bytes() {
            let sextet = ALPHABET.iter().position(|known| *known == character)?;
            bits = (bits << 6) | u32::try_from(sextet).ok()?;
            bit_count = bit_count.saturating_add(6);
            if let Some(left) = bit_count.checked_sub(8) {
                bytes.push(crate::num::low_u8(u64::from(bits >> left)));
                bit_count = left;
            }
        }
        bytes.try_into().ok().map(Self)
    }

    /// Whether all bytes are zero, which is Kafka's "no id".
    #[must_use]
    pub fn is_zero(self) -> bool {
        self.0 == [0; 16]
    }
}

impl fmt::Display for Uuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bits = u128::from_be_bytes(self.0);
        (0..TEXT_LEN).try_for_each(|place| {
            // 128 bits are 21 characters with 6 bits each, and one whose upper 2 bits are used
            let sextet = match 122_usize.checked_sub(place.saturating_mul(6)) {
                Some(shift) => (bits >> shift) & 63,
                None => (bits << 4) & 63,
            };
            let place = usize::try_from(sextet).unwrap_or(0);
            write!(f, "{}", char::from(ALPHABET.get(place).copied().unwrap_or(b'A')))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    #[test]
    fn uuid_is_base64_for_urls() {
        for seed in 0..=255_u8 {
            let bytes = std::array::from_fn(|place| {
                crate::num::low_u8(crate::num::u64_of(place)).wrapping_mul(37).wrapping_add(seed)
            });
            let text = URL_SAFE_NO_PAD.encode(bytes);
            assert_eq!(Uuid(bytes).to_string(), text);
            assert_eq!(Uuid::parse(&text), Some(Uuid(bytes)));
            assert_eq!(Uuid::parse(&format!("{text}==")), Some(Uuid(bytes)));
        }
    }

    #[test]
    fn uuid_other_texts_are_none() {
        for text in ["", "AAAA", "bAmibu5sR86NaVa0PfqQX", "bAmibu5sR86NaVa0PfqQXAA", "bAmibu5sR86NaVa0PfqQX+"] {
            assert_eq!(Uuid::parse(text), None, "{text}");
        }
    }
}
