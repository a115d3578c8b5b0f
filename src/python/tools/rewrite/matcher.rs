//! `kbat._core.rewrite.RecordMatcher`: conditions on records that are checked without Python.

use pyo3::prelude::*;

use crate::arrow::ScanOptions;
use crate::error::Result;
use crate::format::record::Record;
use crate::python::output::text::conditions;
use crate::text::TextOptions;

/// Conditions on records, as the predicate of :func:`kbat.filter`: records that meet all of them are kept.
///
/// Args:
///     start_offset: Only records from this offset on.
///     end_offset: Only records before this offset.
///     start_timestamp: Only records with this timestamp in milliseconds or a later one.
///     end_timestamp: Only records with an earlier timestamp in milliseconds.
///     key_pattern: Only records whose whole key matches this regular expression, in the syntax of Rust's crate
///         ``regex``.
///     value_pattern: Only records in whose value this regular expression is found.
///     headers: Only records that have all of these headers: pairs of a name, and a value or None for any value.
///     fixed_strings: Whether both patterns are texts instead of regular expressions.
///     invert: Whether the records that do not meet all conditions are kept instead.
///
/// Raises:
///     ValueError: A pattern that is not a regular expression.
#[pyclass(frozen, name = "RecordMatcher", module = "kbat._core.rewrite")]
pub(super) struct PyRecordMatcher {
    bounds: ScanOptions,
    conditions: TextOptions,
    invert: bool,
}

#[pymethods]
impl PyRecordMatcher {
    #[new]
    #[pyo3(signature = (*, start_offset=None, end_offset=None, start_timestamp=None, end_timestamp=None, key_pattern=None, value_pattern=None, headers=None, fixed_strings=false, invert=false))]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments of the Python signature")]
    fn new(
        py: Python<'_>,
        start_offset: Option<i64>,
        end_offset: Option<i64>,
        start_timestamp: Option<i64>,
        end_timestamp: Option<i64>,
        key_pattern: Option<&str>,
        value_pattern: Option<&str>,
        headers: Option<Vec<(String, Option<String>)>>,
        fixed_strings: bool,
        invert: bool,
    ) -> PyResult<Self> {
        let bounds = ScanOptions { start_offset, end_offset, start_timestamp, end_timestamp, ..ScanOptions::default() };
        let conditions = conditions(py, key_pattern, value_pattern, headers, fixed_strings)?;
        Ok(Self { bounds, conditions, invert })
    }
}

impl PyRecordMatcher {
    /// Whether a record is kept.
    pub(super) fn keeps(&self, record: &Record<'_>) -> Result<bool> {
        Ok((self.bounds.bounds().want(record) && self.conditions.want(record)?) != self.invert)
    }
}
