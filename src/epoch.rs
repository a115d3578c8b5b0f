//! Numbers of milliseconds since the epoch that are probably in another unit.

use std::ops::Range;

/// Numbers that are seconds since the epoch for times after 2001. As milliseconds they would be times before March
/// 1973, long before Kafka existed.
pub(crate) const SECONDS: Range<i64> = 1_000_000_000..100_000_000_000;
/// Milliseconds from 2001 to 2100.
const MILLISECONDS: Range<i64> = 1_000_000_000_000..4_102_444_800_000;

/// The smaller unit that a number probably has, with the same time in milliseconds.
pub(crate) fn smaller_unit(number: i64) -> Option<(&'static str, i64)> {
    [("microseconds", 1_000), ("nanoseconds", 1_000_000)].into_iter().find_map(|(unit, divisor)| {
        let milliseconds = number.checked_div(divisor)?;
        MILLISECONDS.contains(&milliseconds).then_some((unit, milliseconds))
    })
}
