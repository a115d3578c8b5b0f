//! Compression for writing.

use crate::compression::Compression;
use crate::error::{Error, ErrorKind, Result};

/// Appends `input` to `out`, compressed as Kafka compresses a batch of that magic.
///
/// # Errors
/// A codec that is not built in. `out` is then unchanged.
pub(crate) fn compress(
    compression: Compression,
    level: Option<i32>,
    magic: u8,
    input: &[u8],
    out: &mut Vec<u8>,
) -> Result<()> {
    let start = out.len();
    let result: std::result::Result<(), String> = match compression {
        Compression::None => {
            out.extend_from_slice(input);
            Ok(())
        }
        #[cfg(feature = "gzip")]
        Compression::Gzip => super::gzip::compress(level, input, out),
        #[cfg(feature = "snappy")]
        Compression::Snappy => super::snappy::compress(input, out),
        #[cfg(feature = "lz4")]
        Compression::Lz4 => super::lz4::compress(magic, level, input, out),
        #[cfg(feature = "zstd")]
        Compression::Zstd => super::zstd::compress(level, input, out),
        #[cfg(not(all(feature = "gzip", feature = "snappy", feature = "lz4", feature = "zstd")))]
        other => {
            let _ = (level, magic);
            return Err(Error::new(ErrorKind::UnsupportedCodec { id: other.id() }));
        }
    };
    result.map_err(|message| {
        out.truncate(start);
        Error::new(ErrorKind::InvalidArgument(format!("{compression} compression failed: {message}")))
    })
}
