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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_both_are_those_within_all_bounds() {
        let interval = Interval::new;
        assert_eq!(interval(Some(1), None).intersect(interval(None, Some(5))), interval(Some(1), Some(5)));
        assert_eq!(interval(Some(1), Some(9)).intersect(interval(Some(3), Some(5))), interval(Some(3), Some(5)));
        assert_eq!(interval(Some(1), Some(9)).intersect(Interval::EVERYTHING), interval(Some(1), Some(9)));
        assert!(interval(Some(5), Some(5)).is_empty() && !interval(Some(5), Some(6)).is_empty());
        assert!(!interval(None, Some(0)).is_empty() && !Interval::EVERYTHING.is_empty());
    }
}
