//! Codecs: one file each, with every variant that clients and brokers have written.
//!
//! Decompression writes into an [`Output`], which grows with the decompressed bytes, never by a number read from the
//! input, and which has a limit. A stream that fails in the middle keeps its output so far and reports a
//! [`CodecFault`].

mod compress;
#[cfg(feature = "gzip")]
mod gzip;
#[cfg(feature = "lz4")]
mod lz4;
#[cfg_attr(
    not(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd")),
    allow(dead_code, reason = "each codec uses only some of these")
)]
mod output;
mod scratch;
#[cfg(feature = "snappy")]
mod snappy;
#[cfg(feature = "zstd")]
mod zstd;

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, ErrorKind};

#[cfg(feature = "tiered")]
pub(crate) use self::zstd::decompress_bounded;
pub(crate) use compress::compress;
pub(crate) use output::Output;
pub use scratch::Scratch;

/// A codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Compression {
    /// No compression.
    #[default]
    None,
    /// Gzip, RFC 1952.
    Gzip,
    /// Snappy, raw or in the framing of xerial's snappy-java.
    Snappy,
    /// LZ4, Kafka's subset of the frame format.
    Lz4,
    /// Zstandard; message format 2 only.
    Zstd,
}

impl Compression {
    /// All codecs, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::None, Self::Gzip, Self::Snappy, Self::Lz4, Self::Zstd];

    /// Number in the attributes, 0 to 4.
    #[must_use]
    pub const fn id(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }

    /// The codec of a number.
    #[must_use]
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.id() == id)
    }

    /// Kafka's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
            Self::Snappy => "snappy",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }

    pub(crate) fn name_of(id: u8) -> Option<&'static str> {
        Self::from_id(id).map(Self::name)
    }

    /// The lowest and highest level that Kafka accepts (KIP-390); `None` for codecs without levels. Gzip and lz4 start
    /// at 1, zstd at −131072.
    #[must_use]
    pub const fn levels(self) -> Option<(i32, i32)> {
        match self {
            Self::None | Self::Snappy => None,
            Self::Gzip => Some((1, 9)),
            Self::Lz4 => Some((1, 17)),
            Self::Zstd => Some((-131_072, 22)),
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Compression {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|codec| codec.name() == name).ok_or_else(|| {
            Error::argument(format!("unknown compression {name:?}: use none, gzip, snappy, lz4 or zstd"))
        })
    }
}

/// The decompressed bytes of a batch's records, possibly incomplete.
#[derive(Debug)]
pub(crate) struct Payload<'s> {
    pub(crate) bytes: &'s [u8],
    /// The error that ended the stream early.
    pub(crate) fault: Option<CodecFault>,
}

impl<'s> Payload<'s> {
    pub(crate) fn borrowed(bytes: &'s [u8]) -> Self {
        Self { bytes, fault: None }
    }
}

/// Why a stream could not be fully decompressed.
#[derive(Debug, Clone)]
pub(crate) enum CodecFault {
    /// The codec rejected the bytes.
    Refused(Compression, String),
    /// A limit was reached.
    Limit { name: &'static str, limit: usize },
    /// The crate was built without this codec.
    #[cfg(not(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd")))]
    NotBuilt(Compression),
}

impl CodecFault {
    pub(crate) fn into_kind(self) -> ErrorKind {
        match self {
            Self::Refused(compression, message) => ErrorKind::Decompression { compression, message },
            Self::Limit { name, limit } => {
                let limit = crate::num::u64_of(limit);
                ErrorKind::Limit { name, limit, actual: limit.saturating_add(1) }
            }
            #[cfg(not(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd")))]
            Self::NotBuilt(compression) => ErrorKind::UnsupportedCodec { id: compression.id() },
        }
    }
}

/// An error of a codec that does not name the codec yet.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(
    not(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd")),
    allow(dead_code, reason = "each codec uses only some of these")
)]
pub(crate) enum StreamFault {
    /// The bytes break the codec's format.
    Invalid(String),
    /// The output has reached its limit.
    Full,
    /// The codec is not built in.
    #[cfg(not(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd")))]
    NotBuilt,
}

#[cfg_attr(
    not(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd")),
    allow(dead_code, reason = "each codec uses only some of these")
)]
impl StreamFault {
    #[cold]
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }
}
