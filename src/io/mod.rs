//! Bytes by position: files and buffers behind one trait. Knows nothing of Kafka.

mod file;
mod page_cache;
mod read_at;

pub(crate) use file::PositionedFile;
pub(crate) use read_at::{ChunkCache, ReadAt, is_zero_to_the_end};
