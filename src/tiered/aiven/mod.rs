//! Objects of Aiven's plugin: segments as chunks that may be compressed and encrypted.
//!
//! A segment is three objects with one name (see [`Key`]), uploaded in this order:
//!
//! | object | content |
//! |---|---|
//! | `.log` | the segment in chunks of a fixed number of original bytes, concatenated; each chunk is transformed alone |
//! | `.indexes` | the segment's indexes, concatenated; never compressed |
//! | `.rsm-manifest` | JSON: sizes of chunks and indexes, the wrapped data key ([`Manifest`]) |
//!
//! So a segment without a manifest is incomplete, or is being deleted.
//!
//! | settings | a chunk of `.log` | an index in `.indexes` |
//! |---|---|---|
//! | neither | the original bytes | the original bytes |
//! | compression | one zstd frame | the original bytes |
//! | encryption | IV (12), AES-256-GCM of the bytes, tag (16) | the same as a chunk; empty if the index is empty |
//! | both | IV, AES-256-GCM of a zstd frame, tag | the same as with encryption |
//!
//! Chunk borders have nothing to do with batches. [`Segment`] reads original bytes by position, and fetches only the
//! chunks that contain them. Encryption does not protect the order of chunks, and the zstd frames have no checksum:
//! such corruption is found by the checksums of batches.
//!
//! Segments in Iceberg's format are recognized by their Puffin manifest, and refused.
//!
//! Source: `tiered-storage-for-apache-kafka`, packages `manifest`, `security` and `transform`.

mod cache;
mod chunk_index;
mod crypto;
mod indexes;
mod json;
mod key;
mod keys;
mod manifest;
mod members;
mod segment;

pub use chunk_index::{Chunk, ChunkIndex};
pub use crypto::Encryption;
pub use indexes::{IndexExtents, Indexes};
pub(crate) use key::aiven_partition;
pub use key::{Key, ObjectKind};
pub use keys::EncryptionKeys;
pub use manifest::{Manifest, SegmentMetadata};
pub(crate) use segment::DamagedChunks;
pub use segment::Segment;
