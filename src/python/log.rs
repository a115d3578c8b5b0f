//! The submodule `kbat._core.log`: segments, their indexes, partitions and log directories.

use pyo3::prelude::*;

use crate::python::log_directory::{PyLogDirectory, PyMetaProperties, PyStrayDirectory};
use crate::python::partition::{EARLIEST, LATEST, MAX_TIMESTAMP, PyPartitionLog};
use crate::python::places::{PyOffsetPlace, PyTimestampPlace};
use crate::python::segment::PySegment;

/// Makes the submodule and everything in it.
pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = parent.py();
    let module = PyModule::new(py, "kbat._core.log")?;
    module.setattr("__doc__", "Segments, their indexes, partitions and log directories.")?;
    parent.setattr("log", &module)?;
    // an extension module is no package: without this, `import kbat._core.log` would look for a file
    py.import("sys")?.getattr("modules")?.set_item("kbat._core.log", &module)?;
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
