//! The submodule `kbat._core.log`: segments, their indexes, partitions and log directories.

pub(crate) mod directory;
pub(crate) mod partition;
pub(crate) mod places;
pub(crate) mod segment;
pub(crate) mod writer;

use pyo3::prelude::*;

use crate::python::log::directory::{PyLogDirectory, PyMetaProperties, PyStrayDirectory};
use crate::python::log::partition::{EARLIEST, LATEST, MAX_TIMESTAMP, PyPartitionLog};
use crate::python::log::places::{PyOffsetPlace, PyTimestampPlace};
use crate::python::log::segment::PySegment;
use crate::python::runtime::submodule::add_submodule;

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
