//! The submodules `kbat._core.arrow`, which reads records, batches and segments as Arrow columns, and
//! `kbat._core.encode`, which encodes Arrow data.

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

/// Creates the submodule `arrow` and everything in it.
pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let module = add_submodule(parent, "arrow", "Read records, batches and segments as Arrow columns.")?;
    module.add_class::<PyScan>()?;
    module.add_class::<PyArrowBatchIterator>()?;
    module.add_class::<PyScanStats>()?;
    module.add_function(wrap_pyfunction!(scan::scan, &module)?)?;
    module.add_function(wrap_pyfunction!(scan::source::split, &module)?)?;
    module.add_function(wrap_pyfunction!(sums::sum_batches, &module)?)?;
    module.add_function(wrap_pyfunction!(sums::sum_records, &module)?)?;
    Ok(())
}
