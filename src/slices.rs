//! Parts of slices whose bounds the caller has computed from the slice.

use std::fmt::Debug;
use std::slice::SliceIndex;

/// Ranges that cannot be out of bounds unless kbat has a bug. A test or fuzzer panics then; otherwise, the part is
/// empty. Ranges that come from the input need `get`.
pub(crate) trait Slices<T> {
    /// The elements in a range.
    fn part<R>(&self, range: R) -> &[T]
    where
        R: SliceIndex<[T], Output = [T]> + Clone + Debug;

    /// The elements in a range, to be changed.
    fn part_mut<R>(&mut self, range: R) -> &mut [T]
    where
        R: SliceIndex<[T], Output = [T]> + Clone + Debug;
}

impl<T> Slices<T> for [T] {
    #[inline]
    #[track_caller]
    fn part<R>(&self, range: R) -> &[T]
    where
        R: SliceIndex<[T], Output = [T]> + Clone + Debug,
    {
        let part = self.get(range.clone());
        debug_assert!(part.is_some(), "{range:?} of {} elements", self.len());
        part.unwrap_or_default()
    }

    #[inline]
    #[track_caller]
    fn part_mut<R>(&mut self, range: R) -> &mut [T]
    where
        R: SliceIndex<[T], Output = [T]> + Clone + Debug,
    {
        let len = self.len();
        let part = self.get_mut(range.clone());
        debug_assert!(part.is_some(), "{range:?} of {len} elements");
        part.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_inside_is_returned() {
        let mut numbers = [1, 2, 3];
        assert_eq!(numbers.part(1..), [2, 3]);
        assert!(numbers.part(3..).is_empty());
        numbers.part_mut(..2).fill(0);
        assert_eq!(numbers, [0, 0, 3]);
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic(expected = "2..5 of 3 elements")]
    fn part_outside_panics_in_tests() {
        let _ = [1, 2, 3].part(2..5);
    }
}
