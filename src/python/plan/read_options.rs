//! `kbat._core.plan.ReadOptions`.

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrow::{Isolation, OnCorrupt};
use crate::plan::{Pairs, ReadOptions};
use crate::python::arguments::limits::PyLimits;
use crate::python::runtime::errors::OrRaise;

/// The options of a read, parsed from names and texts.
///
/// Args:
///     given: Names and texts, in any case.
///     session: Options of the store that apply to ``s3://`` URLs if the read has none.
///
/// Raises:
///     ValueError: An option that is unknown, has a wrong value, or excludes another one.
#[pyclass(frozen, eq, name = "ReadOptions", module = "kbat._core.plan")]
#[derive(PartialEq)]
pub(crate) struct PyReadOptions {
    pub(crate) given: Pairs,
    pub(crate) session: Pairs,
    pub(crate) options: ReadOptions,
}

#[pymethods]
impl PyReadOptions {
    #[new]
    #[pyo3(signature = (given=vec![], session=vec![]))]
    fn new(py: Python<'_>, given: Pairs, session: Pairs) -> PyResult<Self> {
        let options = ReadOptions::parse(&given, &session).or_raise(py)?;
        Ok(Self { given, session, options })
    }

    /// ``records``, ``batches`` or ``segments``.
    #[getter]
    fn view(&self) -> &'static str {
        self.options.view().name()
    }

    /// The columns of a read for which the user sets no schema.
    #[getter]
    fn column_names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.options.column_names().or_raise(py)
    }

    /// The paths to read: URLs, and absolute paths of files.
    #[getter]
    fn all_paths(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.options.absolute_paths().or_raise(py)
    }

    /// The keyword arguments with which kbat opens the paths.
    #[getter]
    fn keywords<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (storage, keys) = self.options.storage().or_raise(py)?;
        let keywords = PyDict::new(py);
        for (name, pairs) in [("storage_options", storage), ("encryption_keys", keys)] {
            let values = PyDict::new(py);
            for (name, value) in pairs {
                values.set_item(name, value)?;
            }
            if !values.is_empty() {
                keywords.set_item(name, values)?;
            }
        }
        Ok(keywords)
    }

    /// Whether the read itself names options of a store.
    #[getter]
    fn has_storage(&self) -> bool {
        self.options.has_storage()
    }

    /// ``fail``, ``skip`` or ``report``.
    #[getter]
    fn on_corrupt(&self) -> &'static str {
        match self.options.on_corrupt() {
            OnCorrupt::Fail => "fail",
            OnCorrupt::Skip => "skip",
            OnCorrupt::Report => "report",
        }
    }

    /// ``read_uncommitted`` or ``read_committed``.
    #[getter]
    fn isolation(&self) -> &'static str {
        match self.options.isolation() {
            Isolation::ReadUncommitted => "read_uncommitted",
            Isolation::ReadCommitted => "read_committed",
        }
    }

    /// Whether checksums are verified.
    #[getter]
    fn check_crc(&self) -> bool {
        self.options.check_crc()
    }

    /// Whether control records are rows.
    #[getter]
    fn include_control(&self) -> bool {
        self.options.include_control()
    }

    /// The largest and the smallest number of offsets in a micro-batch.
    #[getter]
    fn offsets_per_trigger(&self) -> (Option<u64>, Option<u64>) {
        self.options.offsets_per_trigger()
    }

    /// Bounds on untrusted input.
    #[getter]
    fn limits(&self) -> PyLimits {
        PyLimits(self.options.limits().clone())
    }

    /// Names of options that have no effect because they concern a broker.
    #[getter]
    fn ignored(&self) -> Vec<String> {
        self.options.ignored().to_vec()
    }

    /// Check the rules of a batch read.
    ///
    /// Raises:
    ///     ValueError: Bounds that exclude each other.
    fn check_batch(&self, py: Python<'_>) -> PyResult<()> {
        self.options.check_batch().or_raise(py)
    }

    /// Check the rules of a stream.
    ///
    /// Raises:
    ///     ValueError: An option that has no effect on a stream.
    fn check_stream(&self, py: Python<'_>) -> PyResult<()> {
        self.options.check_stream().or_raise(py)
    }

    fn __repr__(&self) -> String {
        let names: Vec<&str> = self.given.iter().map(|(name, _)| name.as_str()).collect();
        format!("ReadOptions of {}", names.join(", ")) // values may be secrets
    }

    /// Supports pickling.
    fn __getnewargs__(&self) -> (Pairs, Pairs) {
        (self.given.clone(), self.session.clone())
    }
}
