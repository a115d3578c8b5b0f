//! Checksums: CRC-32C (Castagnoli) of a v2 batch from its attributes on, CRC-32 (IEEE) of a v0 or v1 message from its
//! magic on.

use crate::num::low_u32;

/// CRC-32C, like `java.util.zip.CRC32C`.
#[inline]
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// CRC-32, like `java.util.zip.CRC32`.
#[inline]
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// A checksum that is computed in parts.
pub(crate) enum Digest {
    /// CRC-32C.
    Crc32c(Box<crc_fast::Digest>),
    /// CRC-32.
    Crc32(crc32fast::Hasher),
}

impl Digest {
    /// The checksum for batches of a magic.
    pub(crate) fn of_magic(magic: u8) -> Self {
        if magic < 2 {
            Self::Crc32(crc32fast::Hasher::new())
        } else {
            Self::Crc32c(Box::new(crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi)))
        }
    }

    /// Adds bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Crc32c(digest) => digest.update(bytes),
            Self::Crc32(hasher) => hasher.update(bytes),
        }
    }

    /// The checksum of all bytes so far.
    pub(crate) fn value(&self) -> u32 {
        match self {
            Self::Crc32c(digest) => low_u32(digest.finalize()),
            Self::Crc32(hasher) => hasher.clone().finalize(),
        }
    }
}
