//! The files of a partition and of a log directory: segments, indexes, checkpoints, snapshots, lookups, and a writer.

pub mod checkpoint;
pub(crate) mod committed;
pub(crate) mod headers;
pub mod index;
pub(crate) mod inventory;
pub(crate) mod log_directory;
pub(crate) mod partition;
pub mod producer;
pub(crate) mod reader;
pub(crate) mod resync;
pub(crate) mod running_broker;
pub(crate) mod segment;
pub(crate) mod tail;
mod uuid;
pub(crate) mod walk;
mod window;
mod writer;

pub use headers::HeaderReader;
pub use log_directory::{LogDirectory, OFFSET_CHECKPOINTS, StrayDirectory};
pub use partition::PartitionLog;
pub use reader::SegmentReader;
pub(crate) use reader::SharedBatch;
#[cfg(feature = "plan")]
pub(crate) use segment::FoundBatch;
pub use segment::{IndexUse, OffsetPlace, Segment, TimestampPlace, split_points};
pub use uuid::Uuid;
pub(crate) use window::BatchMemory;
#[cfg(feature = "plan")]
pub(crate) use writer::max_open_logs;
#[cfg(feature = "python")]
pub(crate) use writer::of_parent;
pub use writer::{LogWriter, LogWriterOptions, OffsetPolicy, PlacedRecord, RecordWriter, SyncPolicy};
