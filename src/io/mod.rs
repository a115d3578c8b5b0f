//! Reading bytes by position from files and buffers through one trait, writing files and directories that appear
//! complete or not at all, locks, and progress. Independent of Kafka's formats.

pub(crate) mod atomic;
mod file;
pub(crate) mod location;
pub(crate) mod lock;
mod page_cache;
pub(crate) mod progress;
mod read_at;
mod source;
pub(crate) mod staged;
#[cfg(feature = "python")]
mod target;

pub(crate) use file::PositionedFile;
pub use location::Location;
#[cfg(any(test, feature = "object-store", feature = "tiered"))]
pub(crate) use location::{Status, StatusKind, Store};
pub use progress::Progress;
#[cfg(feature = "tiered")]
pub(crate) use read_at::DAMAGED_BYTE;
#[cfg(any(test, feature = "object-store", feature = "tiered"))]
pub(crate) use read_at::StoredFile;
pub(crate) use read_at::{ChunkCache, ReadAt, is_zero_to_the_end};
pub(crate) use source::{ByteSource, SharedBytes};
#[cfg(feature = "python")]
pub(crate) use target::Target;
