//! The files of a partition and of a log directory.

mod atomic;
mod checkpoint;
pub(crate) mod committed;
mod headers;
mod index;
#[cfg(feature = "arrow")]
mod input;
mod lock;
mod log_directory;
mod partition;
mod producer;
mod progress;
mod reader;
mod recovery;
pub(crate) mod resync;
pub mod rewrite;
mod segment;
mod staged;
mod uuid;
mod verify;
mod writer;

pub use checkpoint::{
    Checkpoint, CleanShutdown, EpochEntry, LeaderEpochs, MetaProperties, OffsetCheckpoint, PartitionMetadata,
    PartitionOffset,
};
pub use headers::HeaderReader;
pub use index::{
    AbortedTransaction, DEFAULT_INDEX_INTERVAL_BYTES, DEFAULT_MAX_INDEX_BYTES, IndexEntries, OffsetEntry, OffsetIndex,
    SegmentIndexer, TimeEntry, TimeIndex, TransactionIndex,
};
#[cfg(feature = "python")]
pub(crate) use input::SharedBatch;
#[cfg(feature = "arrow")]
pub(crate) use input::{Input, Lender, SharedBytes};
pub use log_directory::{LogDirectory, OFFSET_CHECKPOINTS, StrayDirectory};
pub use partition::PartitionLog;
pub use producer::{ProducerEntry, ProducerSnapshot, ProducerStates, validate_after};
pub use progress::Progress;
pub use reader::SegmentReader;
pub use recovery::{
    DroppedRange, FileAction, FileChange, RebuildOptions, RecoverOptions, RepairReport, RepairedSegment,
    SalvageOptions, rebuild_indexes, recover, salvage,
};
pub use segment::{IndexUse, OffsetPlace, Segment, TimestampPlace, split_points};
pub use uuid::Uuid;
#[cfg(feature = "python")]
pub(crate) use verify::verify_selected;
pub use verify::{Finding, Report, Severity, verify};
pub use writer::{LogWriter, LogWriterOptions, OffsetPolicy, SyncPolicy};
