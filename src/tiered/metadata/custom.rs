//! [`CustomMetadata`]: the bytes that Aiven's plugin adds to a segment's metadata.
//!
//! A section of tagged fields: an unsigned varint with their number, and for each an unsigned varint with the tag, one
//! with the length, and the bytes. The setting `custom.metadata.fields.include` selects the fields.
//!
//! | tag | field | type |
//! |---|---|---|
//! | 0 | `REMOTE_SIZE` | varlong: bytes of all three objects |
//! | 1 | `OBJECT_PREFIX` | compact string: the part of the keys before the topic |
//! | 2 | `OBJECT_KEY` | compact string: the part of the keys from the topic up to the suffix |
//!
//! Source: `SegmentCustomMetadataSerde`, `SegmentCustomMetadataField` of the plugin.

use super::flexible::Flexible;
use crate::error::{Error, Result};
use crate::wire::varint::read_varlong;

const REMOTE_SIZE: u32 = 0;
const OBJECT_PREFIX: u32 = 1;
const OBJECT_KEY: u32 = 2;

/// The fields that are present. Unknown fields are ignored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CustomMetadata {
    /// Bytes of all three objects of the segment.
    pub remote_size: Option<i64>,
    /// The part of the keys before the topic. It may differ from the plugin's current `key.prefix`.
    pub object_prefix: Option<String>,
    /// The part of the keys from the topic up to the suffix.
    pub object_key: Option<String>,
}

impl CustomMetadata {
    /// Parses the custom metadata of a segment.
    ///
    /// # Errors
    /// [`ErrorKind`](crate::ErrorKind) `Truncated`, `Varint`, `InvalidValue`, `InvalidFile` or `TrailingBytes`, if
    /// another plugin wrote the bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut message = Flexible::new(bytes);
        let mut metadata = Self::default();
        message.tags(|tag, mut bytes| {
            match tag {
                REMOTE_SIZE => {
                    let size = read_varlong(&mut bytes);
                    let size = size.map_err(|fault| Error::new(fault.into()).in_field("remote_size"))?;
                    metadata.remote_size = Some(size);
                }
                OBJECT_PREFIX => metadata.object_prefix = Some(Flexible::new(bytes).string("object_prefix")?),
                OBJECT_KEY => metadata.object_key = Some(Flexible::new(bytes).string("object_key")?),
                _ => {}
            }
            Ok(())
        })?;
        message.end()?;
        Ok(metadata)
    }

    /// Returns the keys' common part without a suffix. The parts that are not in the metadata are the ones passed.
    #[must_use]
    pub fn main_key(&self, prefix: &str, key: &str) -> String {
        let prefix = self.object_prefix.as_deref().unwrap_or(prefix);
        let key = self.object_key.as_deref().unwrap_or(key);
        format!("{prefix}{key}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_plugin_are_read() {
        let key = "t-R97PjuLacHABxEyAo4mAQA/0/00000000000000000000-L2DUrmbNS-6GwsU4tjMh0Q";
        let mut bytes = vec![3, 0, 3, 0xe2, 0xfe, 0x09, 1, 9, 9];
        bytes.extend(b"pre/fix/");
        let len = u8::try_from(key.len()).unwrap().saturating_add(1);
        bytes.extend([2, len, len]);
        bytes.extend(key.as_bytes());
        let metadata = CustomMetadata::parse(&bytes).unwrap();
        assert_eq!(metadata.remote_size, Some(81_841));
        assert_eq!(metadata.object_prefix.as_deref(), Some("pre/fix/"));
        assert_eq!(metadata.main_key("other/", "other"), format!("pre/fix/{key}"));
        for len in 0..bytes.len() {
            assert!(CustomMetadata::parse(&bytes[..len]).is_err(), "{len}");
        }
    }

    #[test]
    fn missing_and_unknown_fields_are_accepted() {
        assert_eq!(CustomMetadata::parse(&[0]).unwrap(), CustomMetadata::default());
        let metadata = CustomMetadata::parse(&[1, 9, 2, 0xff, 0xff]).unwrap();
        assert_eq!(metadata.main_key("p/", "k"), "p/k");
    }

    #[test]
    fn malformed_fields_are_refused() {
        for bytes in [&[][..], &[1, 1, 1, 0], &[1, 1, 2, 2, 0xff], &[1, 0, 0], &[0, 0]] {
            assert!(CustomMetadata::parse(bytes).is_err(), "{bytes:?}");
        }
    }
}
