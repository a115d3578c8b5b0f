//! Damaged partitions: what a broker would make of one, and what can be saved beyond that.
//!
//! ```text
//! recover          what a broker does on an unclean start: cuts the log at the first fault
//! salvage          every whole batch, before and after faults, with a list of the holes
//! rebuild_indexes  indexes and snapshots made anew, the log's bytes untouched
//! ```
//!
//! All three feed batches to a `PartitionOutput`, which makes the files. Source: `LogLoader`, `LogSegment.recover` and
//! `UnifiedLog.rebuildProducerState` of Kafka.

mod fault;
mod output;
mod rebuild;
mod recover;
mod report;
mod salvage;
mod verify;
mod walk;

pub use crate::log::inventory::{FileAction, FileChange};
pub use rebuild::{RebuildOptions, rebuild_indexes};
pub use recover::{RecoverOptions, recover};
pub use report::{DroppedRange, RepairReport, RepairedSegment};
pub(crate) use salvage::read_record;
pub use salvage::{SalvageOptions, salvage};
#[cfg(feature = "python")]
pub(crate) use verify::verify_selected;
pub use verify::{Finding, Report, Severity, verify};

pub(crate) use fault::Fault;
pub(crate) use walk::{Visitor, walk};
