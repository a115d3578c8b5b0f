//! The submodule `kbat._core.files`: files that accompany a segment.

pub(crate) mod checkpoints;
pub(crate) mod indexes;

use pyo3::prelude::*;

use crate::python::files::checkpoints::{
    PyCheckpoint, PyEpochEntry, PyPartitionOffset, PyProducerEntry, PyProducerSnapshot,
};
use crate::python::files::indexes::{PyAbortedTransaction, PyOffsetIndex, PyTimeIndex, PyTransactionIndex};
use crate::python::runtime::submodule::add_submodule;

/// Creates the submodule and everything in it.
pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let module =
        add_submodule(parent, "files", "Files that accompany a segment: indexes, producer snapshots, checkpoints.")?;
    module.add_class::<PyAbortedTransaction>()?;
    module.add_class::<PyCheckpoint>()?;
    module.add_class::<PyEpochEntry>()?;
    module.add_class::<PyOffsetIndex>()?;
    module.add_class::<PyPartitionOffset>()?;
    module.add_class::<PyProducerEntry>()?;
    module.add_class::<PyProducerSnapshot>()?;
    module.add_class::<PyTimeIndex>()?;
    module.add_class::<PyTransactionIndex>()?;
    Ok(())
}
