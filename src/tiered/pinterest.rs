//! The layout of Pinterest's segment uploader: a broker's own file names, and two more objects per partition.
//!
//! ```text
//! <prefix>/[<bits>/]<cluster>/<topic>-<partition>/<offset>.log .index .timeindex
//!                                                /offset.wm
//!                                                /_metadata
//! ```
//!
//! - `bits`: the first binary digits of a hash of cluster, topic and partition, as text (`111`). They spread the keys
//!   of a bucket. Their number is configurable, and may be 0.
//! - `offset.wm`: the base offset of the last segment that was uploaded completely. It is written after the segment's
//!   three files, so a segment above it may be incomplete.
//! - `_metadata`: the modification times of uploaded files. A hint that kbat does not need.
//!
//! There are no leader epochs, no transaction indexes and no snapshots of producers.
//!
//! Source: `Utils` and `S3StorageServiceEndpoint` of Pinterest's `tiered-storage`.

use crate::error::{Error, ErrorKind, Result};
use crate::slices::Slices;
use crate::store::{LogFile, LogFileState, TopicPartition, parse_partition_directory};

/// Name of the object with the last complete segment.
pub const WATERMARK: &str = "offset.wm";
/// Name of the object with the times of uploads.
pub const METADATA: &str = "_metadata";

/// Number of binary digits of the hash.
const HASH_BITS: usize = 128;
/// Largest size of a watermark in bytes. The uploader writes 20.
const MAX_WATERMARK_LEN: usize = 1024;

/// An object of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Object {
    /// A file of a segment, unchanged.
    Segment(LogFile),
    /// `offset.wm`.
    Watermark,
    /// `_metadata`.
    Metadata,
}

/// A parsed key.
///
/// ```
/// let key = kbat::tiered::pinterest::Key::parse("kafka/111/my-cluster/my-topic-0/offset.wm").unwrap();
/// assert_eq!((key.prefix, key.bits, key.cluster), ("kafka", Some("111"), "my-cluster"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key<'k> {
    /// The part before the bits or the cluster, without the slash at its end. May be empty.
    pub prefix: &'k str,
    /// The binary digits, if the key contains any.
    pub bits: Option<&'k str>,
    /// Name of the cluster.
    pub cluster: &'k str,
    /// The partition.
    pub partition: TopicPartition,
    /// The object.
    pub object: Object,
}

impl<'k> Key<'k> {
    /// Parses a key. Returns `None` for a key of another structure.
    ///
    /// A key without a watermark beside it may also be a plain copy of a log directory: the two have the same names.
    #[must_use]
    pub fn parse(key: &'k str) -> Option<Self> {
        let (directory, name) = key.rsplit_once('/')?;
        let object = match name {
            WATERMARK => Object::Watermark,
            METADATA => Object::Metadata,
            _ => Object::Segment(LogFile::parse(name).filter(|file| file.state == LogFileState::Live)?),
        };
        let (directory, partition) = directory.rsplit_once('/')?;
        let partition = parse_partition_directory(partition)?;
        let (directory, cluster) = directory.rsplit_once('/').unwrap_or(("", directory));
        let (prefix, last) = directory.rsplit_once('/').unwrap_or(("", directory));
        let (prefix, bits) = if is_bits(last) { (prefix, Some(last)) } else { (directory, None) };
        Some(Self { prefix, bits, cluster, partition, object })
    }
}

/// Whether the name of a directory consists of binary digits.
#[must_use]
pub fn is_bits(name: &str) -> bool {
    (1..=HASH_BITS).contains(&name.len()) && name.bytes().all(|byte| matches!(byte, b'0' | b'1'))
}

/// Parses the content of `offset.wm`: the base offset of the last segment that was uploaded completely.
///
/// # Errors
/// [`ErrorKind::InvalidFile`] if its first line is not an offset.
pub fn parse_watermark(content: &[u8]) -> Result<i64> {
    let text = content.part(..content.len().min(MAX_WATERMARK_LEN));
    let text = std::str::from_utf8(text).unwrap_or_default();
    let line = text.lines().next().unwrap_or_default().trim();
    let is_number = !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
    line.parse().ok().filter(|_| is_number).ok_or_else(|| {
        let shown: String = line.chars().take(40).collect();
        Error::new(ErrorKind::InvalidFile(format!("the watermark is {shown:?}: expected the 20 digits of an offset")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_with_and_without_bits() {
        let bits = Key::parse("a/b/10/c/t-x-3/00000000000000000042.timeindex").unwrap();
        assert_eq!((bits.prefix, bits.bits, bits.cluster), ("a/b", Some("10"), "c"));
        assert_eq!((bits.partition.topic.as_str(), bits.partition.partition), ("t-x", 3));
        assert!(matches!(bits.object, Object::Segment(file) if file.base_offset == 42));
        let none = Key::parse("a/b/c/t-0/_metadata").unwrap();
        assert_eq!((none.prefix, none.bits, none.cluster, none.object), ("a/b", None, "c", Object::Metadata));
        let top = Key::parse("c/t-0/offset.wm").unwrap();
        assert_eq!((top.prefix, top.bits, top.cluster, top.object), ("", None, "c", Object::Watermark));
        let first = Key::parse("0/c/t-0/offset.wm").unwrap();
        assert_eq!((first.prefix, first.bits, first.cluster), ("", Some("0"), "c"));
    }

    #[test]
    fn key_others_are_none() {
        for key in ["", "offset.wm", "t-0/offset.wm", "c/t/offset.wm", "c/t-0/x.log", "c/t-0/0.log.deleted"] {
            assert_eq!(Key::parse(key), None, "{key}");
        }
    }

    #[test]
    fn watermark_is_its_first_line() {
        for text in ["00000000000000000042", "42\n", " 00000000000000000042 \r\nmore"] {
            assert_eq!(parse_watermark(text.as_bytes()).unwrap(), 42);
        }
        for text in [&b""[..], b"\n42", b"-1", b"+1", b"99999999999999999999", b"\xff", b"x"] {
            assert!(matches!(parse_watermark(text).unwrap_err().kind(), ErrorKind::InvalidFile(_)));
        }
    }
}
