//! [`RepairReport`]: the result of a recovery, a salvage or a rebuild.

use std::fmt;
use std::path::PathBuf;

use crate::error::{Error, ErrorKind, Result};
use crate::io::Location;
use crate::log::inventory::{FileChange, name_of};
use crate::num::u64_of;
use crate::plural::{count_of, offsets_are};
use crate::store::foreign_file;

/// The result of [`recover`](crate::repair::recover), [`salvage`](crate::repair::salvage) or
/// [`rebuild_indexes`](crate::repair::rebuild_indexes).
///
/// Its `Display` is a text with one line per finding.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairReport {
    /// The input.
    pub path: PathBuf,
    /// Location of the result. `None` if the input was changed in place, or if nothing was written.
    pub out: Option<PathBuf>,
    /// Whether nothing was written, so that the report lists what would be done.
    pub dry_run: bool,
    /// The segments of the result, sorted by base offset.
    pub segments: Vec<RepairedSegment>,
    /// Bytes of the input that are not in the result. For a rebuild, bytes that no index covers.
    pub dropped: Vec<DroppedRange>,
    /// Files written, deleted or renamed, except the `.log` files of a copy.
    pub files: Vec<FileChange>,
    /// Base offset of the first segment.
    pub start_offset: i64,
    /// The offset after the last batch.
    pub end_offset: i64,
    /// Whether only indexes were written, so that dropped bytes are still in the log.
    pub(crate) is_of_indexes: bool,
}

impl RepairReport {
    /// Whether every byte of the input is in the result.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.dropped.is_empty()
    }

    /// Total number of bytes dropped.
    #[must_use]
    pub fn dropped_len(&self) -> u64 {
        self.dropped.iter().fold(0, |sum, range| sum.saturating_add(range.length))
    }
}

/// A segment of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairedSegment {
    /// Base offset in the file's name.
    pub base_offset: i64,
    /// The source file.
    pub path: PathBuf,
    /// Size of the source file in bytes.
    pub bytes_before: u64,
    /// Size of the batches in the result in bytes.
    pub bytes_after: u64,
    /// Number of batches in the result.
    pub batch_count: u64,
}

/// Bytes that are not in the result.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DroppedRange {
    /// The source file.
    pub path: PathBuf,
    /// Position of the first byte.
    pub position: u64,
    /// Length in bytes.
    pub length: u64,
    /// The first offset that may be lost: the one after the previous batch.
    pub first_offset: Option<i64>,
    /// The last offset that may be lost, if it is known from a batch after or inside the range.
    pub last_offset: Option<i64>,
    /// The reason as a stable name: that of an [`ErrorKind`](crate::ErrorKind), or `partial_batch`, `zero_tail`,
    /// `offset_order`, `offset_overflow`, `control_record`, `after_fault`.
    pub reason: &'static str,
    /// The reason in words.
    pub message: String,
    /// Transactions that were open before the range, by first offset, at most 100: their ends may be in it. Only
    /// [`salvage`](crate::repair::salvage) lists them, for the first range of several without a batch between them.
    pub open_transactions: Vec<OpenTransaction>,
}

/// A transaction without a known end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenTransaction {
    /// Id of its producer.
    pub producer_id: i64,
    /// Offset of its first record.
    pub first_offset: i64,
}

impl OpenTransaction {
    pub(crate) fn new(producer_id: i64, first_offset: i64) -> Self {
        Self { producer_id, first_offset }
    }
}

impl fmt::Display for RepairReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.dry_run { " (dry run: nothing was changed)" } else { "" };
        let segments = count_of(u64_of(self.segments.len()), "segment");
        let (start, end) = (self.start_offset, self.end_offset);
        writeln!(f, "{}: {segments}, offsets {start} to {end}{what}", self.path.display())?;
        for segment in &self.segments {
            let (before, after) = (segment.bytes_before, segment.bytes_after);
            let batches = count_of(segment.batch_count, "batch");
            writeln!(f, "  {:020}.log: {batches}, {after} of {before} bytes", segment.base_offset)?;
        }
        let dropped = if self.is_of_indexes { "not indexed:" } else { "dropped" };
        for range in &self.dropped {
            writeln!(f, "  {dropped} {range}")?;
        }
        for change in &self.files {
            writeln!(f, "  {} {}", change.action.name(), change.name)?;
        }
        if self.dropped.is_empty() {
            return write!(f, "nothing lost");
        }
        let what = if self.is_of_indexes { "not indexed; they are still in the log" } else { "dropped" };
        write!(f, "{} {what}", count_of(self.dropped_len(), "byte"))
    }
}

impl fmt::Display for DroppedRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        write!(f, "{} of {name} at byte {}: {}", count_of(self.length, "byte"), self.position, self.message)?;
        match (self.first_offset, self.last_offset) {
            (Some(first), Some(last)) => write!(f, "; {} lost", offsets_are(first, last))?,
            (Some(first), None) => write!(f, "; records from offset {first} on are lost")?,
            _ => {}
        }
        let Some(OpenTransaction { producer_id, first_offset }) = self.open_transactions.first() else { return Ok(()) };
        let others = match self.open_transactions.len().saturating_sub(1) {
            0 => String::new(),
            count => format!(", and those of {} more", count_of(u64_of(count), "transaction")),
        };
        write!(
            f,
            "; the end of the transaction of producer {producer_id} from offset {first_offset} on may be among \
             them{others}"
        )
    }
}

/// Refuses a result without batches, unless only zeros were dropped: the input is not a log, or no batch of it is
/// readable.
pub(crate) fn refuse_nothing_kept(source: &Location, report: &RepairReport) -> Result<()> {
    let lost = report.dropped.iter().find(|dropped| dropped.reason != "zero_tail");
    let Some(lost) = lost.filter(|_| report.segments.iter().all(|segment| segment.batch_count == 0)) else {
        return Ok(());
    };
    let file = if source.is_dir() { source.join(name_of(&lost.path)) } else { source.clone() };
    let what = foreign_file(&file)?.map_or_else(String::new, |what| format!("; the file is {what}"));
    let message = format!("no complete batch was found, so there is nothing to keep: {}{what}", lost.message);
    Err(Error::new(ErrorKind::InvalidFile(message)).at(lost.position).with_path(&lost.path))
}
