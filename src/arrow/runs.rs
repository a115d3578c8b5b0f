//! Columns with one value per batch or file, repeated for each row.
//!
//! A value that all rows of an Arrow batch share, such as the topic, is built once as an array. The next Arrow batches
//! reuse its memory, as arrays are immutable.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Int8Array, Int16Array, Int32Array, Int64Array, StringArray};

use crate::compression::Compression;
use crate::error::{Error, Result};

/// A value type of such a column.
pub(crate) trait Repeated: Clone + PartialEq {
    /// Builds an array from values and the number of rows of each.
    fn array(runs: &[(Self, usize)]) -> Result<ArrayRef>;
}

/// A column under construction.
pub(crate) struct Runs<T> {
    runs: Vec<(T, usize)>,
    /// The value of all rows of an earlier Arrow batch, and its array.
    shared: Option<(T, ArrayRef)>,
}

impl<T: Repeated> Runs<T> {
    pub(crate) fn new() -> Self {
        Self { runs: Vec::new(), shared: None }
    }

    /// Adds a value for `rows` rows.
    pub(crate) fn push(&mut self, value: T, rows: usize) {
        match self.runs.last_mut() {
            Some((last, count)) if *last == value => *count = count.saturating_add(rows),
            _ => self.runs.push((value, rows)),
        }
    }

    /// Keeps only the first `rows` rows.
    pub(crate) fn truncate(&mut self, rows: usize) {
        let mut left = rows;
        for (_, count) in &mut self.runs {
            *count = left.min(*count);
            left = left.saturating_sub(*count);
        }
        self.runs.retain(|&(_, count)| count > 0);
    }

    pub(crate) fn finish(&mut self) -> Result<ArrayRef> {
        let runs = std::mem::take(&mut self.runs);
        let [(value, rows)] = runs.as_slice() else { return T::array(&runs) };
        if let Some((shared, array)) = &self.shared
            && shared == value
            && array.len() >= *rows
        {
            return Ok(array.slice(0, *rows));
        }
        let array = T::array(&runs)?;
        self.shared = Some((value.clone(), Arc::clone(&array)));
        Ok(array)
    }
}

/// All values, one per row.
fn rows<T: Clone>(runs: &[(T, usize)]) -> Vec<T> {
    let mut rows = Vec::with_capacity(runs.iter().map(|&(_, count)| count).sum());
    for (value, count) in runs {
        rows.resize(rows.len().saturating_add(*count), value.clone());
    }
    rows
}

macro_rules! repeated {
    ($($value:ty => $array:ty),*) => {$(
        impl Repeated for $value {
            fn array(runs: &[(Self, usize)]) -> Result<ArrayRef> {
                Ok(Arc::new(<$array>::from(rows(runs))))
            }
        }
    )*};
}

repeated! {
    i8 => Int8Array, i16 => Int16Array, i32 => Int32Array, i64 => Int64Array, bool => BooleanArray,
    Option<i32> => Int32Array
}

impl Repeated for Option<Arc<str>> {
    fn array(runs: &[(Self, usize)]) -> Result<ArrayRef> {
        texts(runs.iter().map(|(value, count)| (value.as_deref(), *count)))
    }
}

impl Repeated for Compression {
    fn array(runs: &[(Self, usize)]) -> Result<ArrayRef> {
        texts(runs.iter().map(|(value, count)| (Some(value.name()), *count)))
    }
}

fn texts<'t>(runs: impl Iterator<Item = (Option<&'t str>, usize)> + Clone) -> Result<ArrayRef> {
    let len = |(text, count): (Option<&str>, usize)| text.map_or(0, str::len).saturating_mul(count);
    if runs.clone().map(len).fold(0, usize::saturating_add) > 0x7fff_ffff {
        return Err(Error::argument("a text column of an Arrow batch would exceed 2 GiB; omit it or lower max_rows"));
    }
    Ok(Arc::new(runs.flat_map(|(text, count)| std::iter::repeat_n(text, count)).collect::<StringArray>()))
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;

    use super::*;

    fn values(runs: &mut Runs<Option<Arc<str>>>) -> Vec<Option<String>> {
        runs.finish().unwrap().as_string::<i32>().iter().map(|text| text.map(str::to_owned)).collect()
    }

    #[test]
    fn runs_share_the_memory_of_what_all_rows_share() {
        let mut runs = Runs::new();
        runs.push(7_i32, 3);
        let first = runs.finish().unwrap();
        runs.push(7, 1);
        runs.push(7, 1);
        let second = runs.finish().unwrap();
        let addresses = [&first, &second].map(|array| array.to_data().buffers()[0].as_ptr());
        assert_eq!((second.len(), addresses[0]), (2, addresses[1]));
        runs.push(8, 2);
        assert_eq!(runs.finish().unwrap().as_primitive::<arrow_array::types::Int32Type>().values(), &[8, 8]);
    }

    #[test]
    fn runs_of_several_values_and_nulls_come_in_their_order() {
        let (a, b): (Arc<str>, Arc<str>) = ("a".into(), "bb".into());
        let mut runs = Runs::new();
        for (value, rows) in [(Some(&a), 2), (None, 1), (Some(&b), 0), (Some(&b), 1)] {
            runs.push(value.cloned(), rows);
        }
        assert_eq!(values(&mut runs), [Some("a"), Some("a"), None, Some("bb")].map(|text| text.map(str::to_owned)));
        assert!(values(&mut runs).is_empty());
    }

    #[test]
    fn truncate_keeps_the_first_rows() {
        let mut runs = Runs::new();
        for (value, count) in [(1_i64, 2), (2, 3), (3, 4)] {
            runs.push(value, count);
        }
        runs.truncate(4);
        runs.push(2, 1);
        assert_eq!(runs.finish().unwrap().as_primitive::<arrow_array::types::Int64Type>().values(), &[1, 1, 2, 2, 2]);
    }

    #[test]
    fn texts_past_32_bit_offsets_are_an_error() {
        let mut runs = Runs::new();
        runs.push(Some(Arc::<str>::from("x".repeat(1 << 16))), 1 << 15);
        assert!(runs.finish().unwrap_err().to_string().contains("omit it"));
    }
}
