//! The submodule `kbat._core.arrow`: reads records, batches and segments as Arrow columns, and encodes Arrow data.

pub(crate) mod batch;
pub(crate) mod encode;
pub(crate) mod input;
pub(crate) mod lists;
pub(crate) mod requested_schema;
pub(crate) mod scan;
pub(crate) mod sums;

use pyo3::prelude::*;

use crate::python::arrow::scan::class::PyScan;
use crate::python::arrow::scan::pass::{PyArrowBatchIterator, PyScanStats};
use crate::python::runtime::submodule::add_submodule;

/// Creates the submodule and everything in it.
pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let module =
        add_submodule(parent, "arrow", "Read records, batches and segments as Arrow columns, and encode Arrow data.")?;
    module.add_class::<PyScan>()?;
    module.add_class::<PyArrowBatchIterator>()?;
    module.add_class::<PyScanStats>()?;
    module.add_class::<encode::PyEncodedBatch>()?;
    module.add_class::<encode::PyEncodedBatchIterator>()?;
    module.add_function(wrap_pyfunction!(scan::scan, &module)?)?;
    module.add_function(wrap_pyfunction!(scan::source::split, &module)?)?;
    module.add_function(wrap_pyfunction!(sums::sum_batches, &module)?)?;
    module.add_function(wrap_pyfunction!(sums::sum_records, &module)?)?;
    module.add_function(wrap_pyfunction!(encode::encode, &module)?)?;
    module.add_function(wrap_pyfunction!(encode::encode_batches, &module)?)?;
    Ok(())
}
