//! The submodule `kbat._core.build`: functions that make, edit, convert and validate batches.

pub(crate) mod builder;
pub(crate) mod codecs;
pub(crate) mod convert;
pub(crate) mod edit;
pub(crate) mod partitioner;
pub(crate) mod validate;

use pyo3::prelude::*;

use crate::python::runtime::submodule::add_submodule;

/// Creates the submodule and everything in it.
pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let doc = "Build, edit, convert and validate batches, and make transaction markers.";
    let module = add_submodule(parent, "build", doc)?;
    module.add_class::<builder::PyBatchBuilder>()?;
    module.add_class::<validate::PyValidation>()?;
    module.add_function(wrap_pyfunction!(builder::batch_size, &module)?)?;
    module.add_function(wrap_pyfunction!(codecs::codecs, &module)?)?;
    module.add_function(wrap_pyfunction!(convert::convert, &module)?)?;
    module.add_function(wrap_pyfunction!(edit::end_transaction_marker, &module)?)?;
    module.add_function(wrap_pyfunction!(edit::set_base_offset, &module)?)?;
    module.add_function(wrap_pyfunction!(edit::set_log_append_time, &module)?)?;
    module.add_function(wrap_pyfunction!(edit::set_partition_leader_epoch, &module)?)?;
    module.add_function(wrap_pyfunction!(partitioner::partition_for_key, &module)?)?;
    module.add_function(wrap_pyfunction!(validate::validate, &module)?)?;
    Ok(())
}
