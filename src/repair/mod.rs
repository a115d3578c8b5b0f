//! Checks and repairs partitions.
//!
//! ```text
//! verify           reports the corruption in a partition, and files that disagree with each other
//! recover          does what a broker does on an unclean start: truncates the log at the first corruption
//! salvage          keeps every complete batch, before and after corruption, and lists the holes
//! rebuild_indexes  rebuilds indexes and snapshots without changing the logs
//! ```
//!
//! The last three pass batches to a `PartitionOutput`, which writes the files. Source: `LogLoader`,
//! `LogSegment.recover` and `UnifiedLog.rebuildProducerState` of Kafka.

mod corruption;
mod holes;
pub(crate) mod output;
mod rebuild;
mod recover;
mod report;
mod salvage;
mod sources;
mod verify;
pub(crate) mod walk;

pub use crate::log::inventory::{FileAction, FileChange};
pub use rebuild::{RebuildOptions, rebuild_indexes};
pub use recover::{RecoverOptions, recover};
pub use report::{DroppedRange, OpenTransaction, RepairReport, RepairedSegment};
pub(crate) use salvage::read_record;
pub use salvage::{SalvageOptions, salvage};
pub(crate) use verify::verify_selected;
pub use verify::{Finding, Report, Severity, verify};

pub(crate) use corruption::Corruption;
pub(crate) use walk::{Visitor, walk};
