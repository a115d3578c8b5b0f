//! The submodule `kbat._core.build`: batches made, changed and judged.

use pyo3::prelude::*;

use crate::python::log::add_submodule;
use crate::python::{builder, convert, edit, partitioner, validate};

/// Makes the submodule and everything in it.
pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let doc = "Making batches: builder, edits, markers, conversion, and what a broker would say to them.";
    let module = add_submodule(parent, "build", doc)?;
    module.add_class::<builder::PyBatchBuilder>()?;
    module.add_class::<validate::PyValidation>()?;
    module.add_function(wrap_pyfunction!(builder::batch_size, &module)?)?;
    module.add_function(wrap_pyfunction!(convert::convert, &module)?)?;
    module.add_function(wrap_pyfunction!(edit::end_transaction_marker, &module)?)?;
    module.add_function(wrap_pyfunction!(edit::set_base_offset, &module)?)?;
    module.add_function(wrap_pyfunction!(edit::set_log_append_time, &module)?)?;
    module.add_function(wrap_pyfunction!(edit::set_partition_leader_epoch, &module)?)?;
    module.add_function(wrap_pyfunction!(partitioner::partition_for_key, &module)?)?;
    module.add_function(wrap_pyfunction!(validate::validate, &module)?)?;
    Ok(())
}
