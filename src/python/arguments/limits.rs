//! `kbat.Limits`.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::limits::Limits;

/// Bounds on untrusted input.
///
/// The defaults suit brokers with a ``message.max.bytes`` of up to 100 MB: a batch may have 128 MiB, and its records
/// 1 GiB after decompression.
///
/// Args:
///     batch_len: Maximum bytes of one batch. Default 128 MiB.
///     decompressed_len: Maximum bytes of one batch's records after decompression. Default 1 GiB.
///     ratio: Maximum ratio of decompressed to compressed bytes. Default 1000.
///     ratio_free_len: Number of decompressed bytes up to which ``ratio`` does not apply. Default 128 MiB.
///     record_count: Maximum records of one batch. Default 200 million.
///     header_count: Maximum headers of one record. Default 16,777,216.
#[pyclass(frozen, name = "Limits", module = "kbat", eq, hash, from_py_object)]
#[derive(Clone, PartialEq, Hash)]
pub(crate) struct PyLimits(pub(crate) Limits);

#[pymethods]
impl PyLimits {
    #[new]
    #[pyo3(signature = (*, batch_len=None, decompressed_len=None, ratio=None, ratio_free_len=None, record_count=None, header_count=None))]
    fn new(
        batch_len: Option<usize>,
        decompressed_len: Option<usize>,
        ratio: Option<usize>,
        ratio_free_len: Option<usize>,
        record_count: Option<usize>,
        header_count: Option<usize>,
    ) -> Self {
        let default = Limits::default();
        Self(Limits {
            batch_len: batch_len.unwrap_or(default.batch_len),
            decompressed_len: decompressed_len.unwrap_or(default.decompressed_len),
            ratio: ratio.unwrap_or(default.ratio),
            ratio_free_len: ratio_free_len.unwrap_or(default.ratio_free_len),
            record_count: record_count.unwrap_or(default.record_count),
            header_count: header_count.unwrap_or(default.header_count),
        })
    }

    /// Maximum bytes of one batch, of a file or a buffer.
    #[getter]
    fn batch_len(&self) -> usize {
        self.0.batch_len
    }

    /// Maximum bytes of one batch's records after decompression.
    #[getter]
    fn decompressed_len(&self) -> usize {
        self.0.decompressed_len
    }

    /// Maximum ratio of decompressed to compressed bytes.
    #[getter]
    fn ratio(&self) -> usize {
        self.0.ratio
    }

    /// Number of decompressed bytes up to which ``ratio`` does not apply.
    #[getter]
    fn ratio_free_len(&self) -> usize {
        self.0.ratio_free_len
    }

    /// Maximum records of one batch.
    #[getter]
    fn record_count(&self) -> usize {
        self.0.record_count
    }

    /// Maximum headers of one record.
    #[getter]
    fn header_count(&self) -> usize {
        self.0.header_count
    }

    fn __repr__(&self) -> String {
        let Limits { batch_len, decompressed_len, ratio, ratio_free_len, record_count, header_count } = &self.0;
        format!(
            "Limits(batch_len={batch_len}, decompressed_len={decompressed_len}, ratio={ratio}, \
             ratio_free_len={ratio_free_len}, record_count={record_count}, header_count={header_count})"
        )
    }

    /// Supports pickling.
    fn __getnewargs_ex__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyTuple>, Bound<'py, PyDict>)> {
        let arguments = PyDict::new(py);
        arguments.set_item("batch_len", self.0.batch_len)?;
        arguments.set_item("decompressed_len", self.0.decompressed_len)?;
        arguments.set_item("ratio", self.0.ratio)?;
        arguments.set_item("ratio_free_len", self.0.ratio_free_len)?;
        arguments.set_item("record_count", self.0.record_count)?;
        arguments.set_item("header_count", self.0.header_count)?;
        Ok((PyTuple::empty(py), arguments))
    }
}

/// Limits as the keyword argument that unpickling passes to a constructor.
pub(crate) fn limits_argument<'py>(py: Python<'py>, limits: &Limits) -> PyResult<Bound<'py, PyDict>> {
    let arguments = PyDict::new(py);
    arguments.set_item("limits", PyLimits(limits.clone()))?;
    Ok(arguments)
}

/// The limits of an optional argument, or the defaults.
pub(crate) fn or_default(limits: Option<PyLimits>) -> Limits {
    limits.map_or_else(Limits::default, |limits| limits.0)
}
