//! The submodule `kbat._core.files`: the files that accompany a segment.

use pyo3::prelude::*;

use crate::python::checkpoints::{PyCheckpoint, PyEpochEntry, PyPartitionOffset, PyProducerEntry, PyProducerSnapshot};
use crate::python::indexes::{PyAbortedTransaction, PyOffsetIndex, PyTimeIndex, PyTransactionIndex};
use crate::python::log::add_submodule;
use crate::python::segments::{discover, refuse_foreign};
use crate::python::stored_file::{PyStoredFile, stored_files};

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
    module.add_class::<PyStoredFile>()?;
    module.add_class::<PyTimeIndex>()?;
    module.add_class::<PyTransactionIndex>()?;
    module.add_function(wrap_pyfunction!(discover, &module)?)?;
    module.add_function(wrap_pyfunction!(refuse_foreign, &module)?)?;
    module.add_function(wrap_pyfunction!(stored_files, &module)?)?;
    Ok(())
}
