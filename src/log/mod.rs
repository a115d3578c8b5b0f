//! The files of a partition and of a log directory.

mod directory;
mod file;
mod headers;
mod index;
#[cfg(feature = "arrow")]
mod input;
mod names;
mod producer;
mod reader;

pub use directory::{SegmentFile, find_segments};
pub use headers::HeaderReader;
pub use index::AbortedTransaction;
#[cfg(feature = "arrow")]
pub(crate) use input::Input;
#[cfg(feature = "python")]
pub(crate) use input::{SharedBatch, SharedBytes};
pub use names::{TopicPartition, parse_base_offset, parse_partition_directory};
pub use producer::{ProducerEntry, ProducerSnapshot, ProducerStates};
pub use reader::SegmentReader;
