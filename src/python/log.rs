//! The submodule `kbat._core.log`: segments, their indexes, partitions and log directories.

use pyo3::prelude::*;

use crate::python::log_directory::{PyLogDirectory, PyMetaProperties, PyStrayDirectory};
use crate::python::partition::{EARLIEST, LATEST, MAX_TIMESTAMP, PyPartitionLog};
use crate::python::places::{PyOffsetPlace, PyTimestampPlace};
use crate::python::segment::PySegment;

/// Creates a submodule that can be imported.
pub(crate) fn add_submodule<'py>(
    parent: &Bound<'py, PyModule>,
    name: &str,
    doc: &str,
) -> PyResult<Bound<'py, PyModule>> {
    let py = parent.py();
    let full_name = format!("kbat._core.{name}");
    let module = PyModule::new(py, &full_name)?;
    module.setattr("__doc__", doc)?;
    parent.setattr(name, &module)?;
    // an extension module is not a package: without this, importing the submodule would search for a file
    py.import("sys")?.getattr("modules")?.set_item(full_name, &module)?;
    Ok(module)
}

/// Creates the submodule and everything in it.
pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let module = add_submodule(parent, "log", "Segments, their indexes, partitions and log directories.")?;
    module.add("EARLIEST", EARLIEST)?;
    module.add("LATEST", LATEST)?;
    module.add("MAX_TIMESTAMP", MAX_TIMESTAMP)?;
    module.add_class::<PyLogDirectory>()?;
    module.add_class::<PyMetaProperties>()?;
    module.add_class::<PyOffsetPlace>()?;
    module.add_class::<PyPartitionLog>()?;
    module.add_class::<PySegment>()?;
    module.add_class::<PyStrayDirectory>()?;
    module.add_class::<PyTimestampPlace>()?;
    Ok(())
}
