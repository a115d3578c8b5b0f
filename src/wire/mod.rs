//! Numbers and checksums as bytes: varints, CRC-32 and CRC-32C. Imports only `num`, so that codecs, batches, indexes
//! and internal messages can use it.

pub(crate) mod crc;
pub(crate) mod varint;
