//! [`Interval`]: ranges of offsets and timestamps.

use serde::{Deserialize, Serialize};

/// The whole numbers from `start` up to but not including `end`; `None` if there is no bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Interval {
    /// The smallest number.
    pub start: Option<i64>,
    /// The number after the largest one.
    pub end: Option<i64>,
}

impl Interval {
    /// All numbers.
    pub const EVERYTHING: Self = Self { start: None, end: None };

    /// The numbers from `start` up to but not including `end`.
    #[must_use]
    pub const fn new(start: Option<i64>, end: Option<i64>) -> Self {
        Self { start, end }
    }

    /// The numbers that are in both.
    #[must_use]
    pub fn intersect(self, other: Self) -> Self {
        let start = self.start.max(other.start); // None is less than any number
        let end = [self.end, other.end].into_iter().flatten().min();
        Self { start, end }
    }

    /// Whether no number is in it.
    #[must_use]
    pub fn is_empty(self) -> bool {
        matches!((self.start, self.end), (Some(start), Some(end)) if start >= end)
    }
}
