//! Checksums: CRC-32C (Castagnoli) of a v2 batch from its attributes on, CRC-32 (IEEE) of a v0 or v1 message from its
//! magic on.

/// CRC-32C, as `java.util.zip.CRC32C`.
#[inline]
pub(crate) fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}

/// CRC-32, as `java.util.zip.CRC32`.
#[inline]
pub(crate) fn crc32(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}
