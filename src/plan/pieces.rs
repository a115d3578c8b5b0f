//! [`Piece`]: a window of a segment.

use serde::{Deserialize, Serialize};

use crate::log::committed::Committed;
use crate::plan::interval::Interval;

/// A window of a segment, in bytes, and the offsets to read of it; `None` if there is no bound.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// The file.
    pub path: String,
    /// The first byte.
    pub start: u64,
    /// The byte after the last one.
    pub end: u64,
    /// The topic.
    pub topic: Option<String>,
    /// The partition.
    pub partition: Option<i32>,
    /// Whether topic and partition are those of options, not of the directory's name.
    pub is_labelled: bool,
    /// Whether the complete file is read, however long it is then.
    pub is_whole: bool,
    /// The first offset to read.
    pub start_offset: Option<i64>,
    /// The offset after the last one to read.
    pub end_offset: Option<i64>,
    /// Batches and corruption from here on belong to the next window; `None` if everything is in this one.
    pub own_end: Option<u64>,
    /// Limits a window of one batch to some of its records; other pieces read the rest. The piece with the last part
    /// reports the corruption of the window.
    pub part: Interval,
    /// Which of its batches are committed, if the plan has determined it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) committed: Option<Committed>,
    /// The base offset of the next segment of the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) next_base: Option<i64>,
    /// Approximate number of offsets, to fill tasks by; 0 if unknown.
    #[serde(skip)]
    pub offset_count: i64,
}

impl Piece {
    /// Bytes of the window.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Whether there is nothing to read of it.
    pub(crate) fn is_idle(&self) -> bool {
        self.end_offset.is_some_and(|end| self.start_offset.unwrap_or(0) >= end)
    }
}
