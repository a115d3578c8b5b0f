//! Plans reads: expands the locations of a caller to partitions, segments, and one of several replicas; and with the
//! feature `plan`, divides a read with bounds into tasks that other threads, processes or machines run.
//!
//! ```text
//! options ──► logs ──► ranges of offsets ──► windows of segments ──► tasks ──► Arrow batches
//! `options`   `logs`   `ranges`, `places`    `tasks`, `cuts`          bytes     `rows`
//! ```
//!
//! A plan is data: a task can be written to bytes and read elsewhere. `stream` divides a growing log into micro-batches.

mod discover;

#[cfg(feature = "plan")]
mod advice;
#[cfg(feature = "plan")]
mod arrow_error;
#[cfg(feature = "plan")]
mod bounds;
#[cfg(feature = "plan")]
mod columns;
#[cfg(feature = "plan")]
mod cuts;
#[cfg(feature = "plan")]
mod filters;
#[cfg(feature = "plan")]
mod interval;
#[cfg(feature = "plan")]
mod logs;
#[cfg(feature = "plan")]
mod options;
#[cfg(feature = "plan")]
mod packing;
#[cfg(feature = "plan")]
pub(crate) mod paths;
#[cfg(feature = "plan")]
mod pieces;
#[cfg(feature = "plan")]
mod places;
#[cfg(feature = "plan")]
mod ranges;
#[cfg(feature = "plan")]
mod rows;
#[cfg(feature = "plan")]
mod stream;
#[cfg(feature = "plan")]
mod tasks;
#[cfg(feature = "plan")]
mod topics;
#[cfg(feature = "plan")]
mod totals;
#[cfg(feature = "plan")]
pub(crate) mod transfer;
#[cfg(feature = "plan")]
pub(crate) mod values;
#[cfg(feature = "plan")]
mod wanted;
#[cfg(feature = "plan")]
mod windows;

#[cfg(feature = "plan")]
pub(crate) use advice::is_of_format;
#[cfg(feature = "python")]
pub(crate) use discover::warning_of_unlisted;
pub use discover::{Discovery, Replicas, Selection, discover, find_segments};

#[cfg(feature = "plan")]
pub(crate) use self::options::{OptionParser, OptionTable, narrowed, row, set, warning_of_ignored};
#[cfg(feature = "plan")]
pub use self::{
    columns::{PlanColumn, PlanView, error_column, view_columns},
    filters::{Condition, Literal, Operator, RowFilter},
    interval::Interval,
    options::{OptionRow, Pairs, ReadOptions, option_rows},
    pieces::Piece,
    rows::TaskReader,
    stream::{ReadLimit, Stream},
    tasks::{Read, ReadTask},
    topics::PartitionName,
    totals::{GroupColumn, Total},
    wanted::{WantedColumn, columns_of_schema},
};
