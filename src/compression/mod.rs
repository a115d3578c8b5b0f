//! Codecs: one file each, with every variant that clients and brokers have written.
//!
//! The table in this file has one row per codec. A codec is added with its row, a file that implements [`Codec`], and a
//! feature in `Cargo.toml`.
//!
//! Decompression writes into an [`Output`], which grows with the decompressed bytes, never by a number read from the
//! input, and which has a limit. A stream that fails in the middle keeps its output so far and reports a
//! [`CodecFault`].

#[cfg(feature = "gzip")]
mod gzip;
#[cfg(feature = "lz4")]
mod lz4;
#[allow(dead_code, reason = "each codec uses only some methods")]
mod output;
mod scratch;
#[cfg(feature = "snappy")]
mod snappy;
#[cfg(feature = "zstd")]
mod zstd;

use std::fmt;

#[cfg(feature = "zstd")]
pub(crate) use self::zstd::decompress_bounded;
pub(crate) use output::Output;
pub use scratch::Scratch;

/// The decoder of a codec, which keeps memory from batch to batch, and its encoder.
pub(crate) trait Codec: Default {
    /// Whether the crate contains the codec.
    const IS_BUILT: bool = true;

    /// Decompresses all of `input`, which is from a batch of that magic.
    fn decompress(&mut self, magic: u8, input: &[u8], output: &mut Output<'_>) -> Result<(), StreamFault>;

    /// Appends `input`, compressed as Kafka compresses a batch of that magic. Codecs without levels get level 0.
    fn compress(magic: u8, level: i32, input: &[u8], out: &mut Vec<u8>) -> Result<(), String>;
}

/// Replaces a codec whose feature is off. Callers check [`Compression::is_built`] first.
#[allow(dead_code, reason = "a build with all codecs does not use it")]
#[derive(Default)]
struct NotBuilt;

impl Codec for NotBuilt {
    const IS_BUILT: bool = false;

    fn decompress(&mut self, _magic: u8, _input: &[u8], _output: &mut Output<'_>) -> Result<(), StreamFault> {
        Err(StreamFault::invalid("this build does not have the codec"))
    }

    fn compress(_magic: u8, _level: i32, _input: &[u8], _out: &mut Vec<u8>) -> Result<(), String> {
        Err("this build does not have the codec".to_owned())
    }
}

macro_rules! codecs {
    ($(
        $(#[$about:meta])*
        $codec:ident in $module:ident if $feature:tt {
            id: $id:literal,
            name: $name:literal,
            title: $title:literal,
            levels: $levels:expr,
            default_level: $default_level:expr,
            min_magic: $min_magic:literal,
            min_produce_version: $min_produce_version:literal,
            overhead: |$len:ident| $overhead:expr,
        }
    )*) => {
        $(
            #[cfg(feature = $feature)]
            use self::$module::$codec;
            #[cfg(not(feature = $feature))]
            use self::NotBuilt as $codec;
        )*

        /// A codec.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
        #[cfg_attr(feature = "plan", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
        #[non_exhaustive]
        pub enum Compression {
            /// No compression.
            #[default]
            None,
            $(
                $(#[$about])*
                $codec,
            )*
        }

        impl Compression {
            /// All codecs, in the order of their numbers.
            pub const ALL: [Self; [0, $($id),*].len()] = [Self::None, $(Self::$codec),*];

            /// Number in the attributes.
            #[must_use]
            pub const fn id(self) -> u8 {
                match self {
                    Self::None => 0,
                    $(Self::$codec => $id,)*
                }
            }

            /// Kafka's name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    Self::None => "none",
                    $(Self::$codec => $name,)*
                }
            }

            /// Name in the messages of brokers.
            pub(crate) const fn title(self) -> &'static str {
                match self {
                    Self::None => "no",
                    $(Self::$codec => $title,)*
                }
            }

            /// The lowest and highest level that Kafka accepts (KIP-390); `None` for codecs without levels.
            #[must_use]
            pub const fn levels(self) -> Option<(i32, i32)> {
                match self {
                    Self::None => None,
                    $(Self::$codec => $levels,)*
                }
            }

            /// The level that Kafka uses by default; `None` for codecs without levels.
            #[must_use]
            pub const fn default_level(self) -> Option<i32> {
                match self {
                    Self::None => None,
                    $(Self::$codec => $default_level,)*
                }
            }

            /// The oldest message format that may use the codec.
            #[must_use]
            pub const fn min_magic(self) -> u8 {
                match self {
                    Self::None => 0,
                    $(Self::$codec => $min_magic,)*
                }
            }

            /// The oldest version of produce requests that may use the codec.
            pub(crate) const fn min_produce_version(self) -> i16 {
                match self {
                    Self::None => 0,
                    $(Self::$codec => $min_produce_version,)*
                }
            }

            /// The largest difference between compressed and uncompressed size, for `len` incompressible bytes.
            pub(crate) fn overhead(self, len: usize) -> usize {
                match self {
                    Self::None => 0,
                    $(
                        Self::$codec => {
                            let $len = len;
                            $overhead
                        }
                    )*
                }
            }

            /// Whether the crate contains the codec.
            pub(crate) const fn is_built(self) -> bool {
                match self {
                    Self::None => true,
                    $(Self::$codec => <$codec as Codec>::IS_BUILT,)*
                }
            }
        }

        /// The decoders of all codecs. Each allocates on first use.
        #[derive(Default)]
        struct Decoders {
            $($module: $codec,)*
        }

        impl Decoders {
            fn decompress(
                &mut self,
                compression: Compression,
                magic: u8,
                input: &[u8],
                output: &mut Output<'_>,
            ) -> Result<(), StreamFault> {
                match compression {
                    Compression::None => output.extend(input),
                    $(Compression::$codec => self.$module.decompress(magic, input, output),)*
                }
            }
        }

        fn append_compressed(
            compression: Compression,
            level: Option<i32>,
            magic: u8,
            input: &[u8],
            out: &mut Vec<u8>,
        ) -> Result<(), String> {
            let level = level.or(compression.default_level()).unwrap_or_default();
            match compression {
                Compression::None => {
                    out.extend_from_slice(input);
                    Ok(())
                }
                $(Compression::$codec => <$codec as Codec>::compress(magic, level, input, out),)*
            }
        }
    };
}

// Each row: the type that implements `Codec`, its module and its feature; then number and name in Kafka, name in the
// messages of brokers, levels, Kafka's default level, the first message format, the first version of produce requests
// with the codec, and the bytes that it adds to incompressible data.
codecs! {
    /// Gzip, RFC 1952.
    Gzip in gzip if "gzip" {
        id: 1,
        name: "gzip",
        title: "gzip",
        levels: Some((1, 9)),
        // the JDK's default, which Kafka selects with −1
        default_level: Some(6),
        min_magic: 0,
        min_produce_version: 0,
        // header and trailer; 5 bytes per stored block of at least 5000
        overhead: |len| per(len / 5000, 5).saturating_add(32),
    }
    /// Snappy, raw or in the framing of xerial's snappy-java.
    Snappy in snappy if "snappy" {
        id: 2,
        name: "snappy",
        title: "snappy",
        levels: None,
        default_level: None,
        min_magic: 0,
        min_produce_version: 0,
        // header; per chunk of 32 KiB a length and snappy's own bound of 32 + n / 6
        overhead: |len| per(len / (32 << 10), 36).saturating_add(len / 6).saturating_add(16),
    }
    /// LZ4, Kafka's subset of the frame format.
    Lz4 in lz4 if "lz4" {
        id: 3,
        name: "lz4",
        title: "lz4",
        levels: Some((1, 17)),
        default_level: Some(9),
        min_magic: 0,
        min_produce_version: 0,
        // header and end mark; a length per block of 64 KiB, which is stored uncompressed if that is smaller
        overhead: |len| per(len / (64 << 10), 4).saturating_add(11),
    }
    /// Zstandard; message format 2 only.
    Zstd in zstd if "zstd" {
        id: 4,
        name: "zstd",
        title: "ZStandard",
        levels: Some((-131_072, 22)),
        default_level: Some(3),
        min_magic: 2,
        min_produce_version: 7,
        // ZSTD_COMPRESSBOUND
        overhead: |len| (len >> 8).saturating_add((128_usize << 10).saturating_sub(len) >> 11).saturating_add(64),
    }
}

/// The cost of `units` complete units and an incomplete one.
fn per(units: usize, cost: usize) -> usize {
    units.saturating_add(1).saturating_mul(cost)
}

impl Compression {
    /// The codec of a number.
    #[must_use]
    pub fn from_id(id: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| codec.id() == id)
    }

    pub(crate) fn name_of(id: u8) -> Option<&'static str> {
        Self::from_id(id).map(Self::name)
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Appends `input` to `out`, compressed as Kafka compresses a batch of that magic.
///
/// # Errors
/// A codec that is not built in, and errors of the codec. `out` is then unchanged.
pub(crate) fn compress(
    compression: Compression,
    level: Option<i32>,
    magic: u8,
    input: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), CodecFault> {
    if !compression.is_built() {
        return Err(CodecFault::NotBuilt(compression));
    }
    let start = out.len();
    append_compressed(compression, level, magic, input, out).map_err(|message| {
        out.truncate(start);
        CodecFault::NotCompressed(compression, message)
    })
}

/// The decompressed bytes of a batch's records, possibly incomplete.
#[derive(Debug)]
pub(crate) struct Payload<'s> {
    pub(crate) bytes: &'s [u8],
    /// The error that ended the stream early. On the heap, because every batch moves its payload, and few have one.
    pub(crate) fault: Option<Box<CodecFault>>,
}

impl<'s> Payload<'s> {
    pub(crate) fn borrowed(bytes: &'s [u8]) -> Self {
        Self { bytes, fault: None }
    }
}

/// Why bytes could not be fully decompressed, or not compressed.
#[derive(Debug, Clone)]
pub(crate) enum CodecFault {
    /// The codec rejected the bytes.
    Refused(Compression, String),
    /// A limit was reached.
    Limit { name: &'static str, limit: usize },
    /// The crate was built without this codec.
    NotBuilt(Compression),
    /// The codec failed to compress.
    NotCompressed(Compression, String),
}

/// An error of a codec that does not name the codec yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StreamFault {
    /// The bytes break the codec's format.
    Invalid(String),
    /// The output has reached its limit.
    Full,
}

impl StreamFault {
    #[cold]
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }
}
