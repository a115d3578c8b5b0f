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
mod inventory;
mod output;
mod rebuild;
mod recover;
mod report;
mod running;
mod salvage;
mod walk;

pub use rebuild::{RebuildOptions, rebuild_indexes};
pub use recover::{RecoverOptions, recover};
pub use report::{DroppedRange, FileAction, FileChange, RepairReport, RepairedSegment};
pub(crate) use running::refuse_running_broker;
pub(crate) use salvage::read_record;
pub use salvage::{SalvageOptions, salvage};

pub(crate) use fault::Fault;
pub(crate) use inventory::{Inventory, files_of, name_of};
pub(crate) use walk::{Visitor, walk};
