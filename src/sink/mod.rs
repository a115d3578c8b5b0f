//! Writes rows to partition directories that a broker can serve (feature `plan`): Spark's `df.write.format("kbat")`.
//!
//! ```text
//! each task    rows ──► those of each partition ──► batches from offset 0 ──► <path>/.kbat-<job>/<task>/<partition>/
//! commit       the segments of the tasks, in order, get the offsets after the existing ones and move to the partitions
//! abort        removes <path>/.kbat-<job>/
//! ```
//!
//! Offsets in indexes are relative to the base offset of the segment, so changing it takes a few bytes per batch and a
//! rename: no record is written twice, and the commit copies no data. Each task writes at least one segment for each
//! partition of its rows.
//!
//! A job and what a task has written are data: they can be sent anywhere as bytes.

mod commit;
mod existing;
mod files;
mod ids;
mod job;
mod open_logs;
mod options;
mod plan;
mod rows;
mod task;
#[cfg(test)]
mod tests;
mod written;

pub use job::WriteJob;
pub use options::{WriteOptions, write_option_rows};
pub use task::TaskWriter;
pub use written::{Fragment, WriteCounts, Written};
