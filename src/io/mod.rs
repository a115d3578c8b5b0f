//! Reading bytes by position from files and buffers through one trait, writing files and directories that appear
//! complete or not at all, locks, progress, and waiting. Independent of Kafka's formats.

pub(crate) mod atomic;
mod file;
pub(crate) mod location;
pub(crate) mod lock;
mod page_cache;
pub(crate) mod progress;
mod read_at;
pub(crate) mod same_file;
mod source;
pub(crate) mod staged;
mod store;
mod target;
pub(crate) mod unfinished;
pub(crate) mod unique;
pub(crate) mod waiting;

#[cfg(feature = "arrow")]
pub(crate) use file::OpenedFile;
pub(crate) use file::PositionedFile;
pub use location::Location;
pub use progress::Progress;
pub(crate) use read_at::{ChunkCache, DAMAGED_BYTE, ReadAt, StoredFile, first_not_zero, is_zero_to_the_end};
pub(crate) use source::{ByteSource, SharedBytes};
pub(crate) use store::{Status, StatusKind, Store};
pub(crate) use target::{Target, refuse_inside, refuse_inside_store, refuse_sources};
