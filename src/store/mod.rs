//! The partitions, segments and other files under a location, and their names.

mod contents;
pub(crate) mod listing;
pub(crate) mod names;
#[cfg(test)]
mod tests;

pub(crate) use contents::{
    foreign_file, is_tiered_segment, refuse_archive, refuse_foreign_directory, refuse_foreign_file,
    refuse_misplaced_logs,
};
pub use listing::SegmentFile;
pub use names::{
    DirectoryState, LogFile, LogFileKind, LogFileState, PartitionDirectory, SnapshotFile, TopicPartition,
    parse_base_offset, parse_partition_directory,
};
