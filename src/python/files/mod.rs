//! Segments and the files that accompany them: `kbat.find_segments`, and the submodule `kbat._core.files`.

pub(crate) mod checkpoints;
pub(crate) mod indexes;
pub(crate) mod segments;
mod store_target;
mod stored_file;

use pyo3::prelude::*;

use crate::python::files::checkpoints::{
    PyCheckpoint, PyEpochEntry, PyPartitionOffset, PyProducerEntry, PyProducerSnapshot,
};
use crate::python::files::indexes::{PyAbortedTransaction, PyOffsetIndex, PyTimeIndex, PyTransactionIndex};
use crate::python::files::segments::{PySegmentFile, discover, find_segments, refuse_foreign};
use crate::python::files::store_target::PyStoreTarget;
use crate::python::files::stored_file::{PyStoredFile, stored_files};
use crate::python::runtime::submodule::add_submodule;

/// Creates the submodule and everything in it, and adds the search for segments to the extension module.
pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    parent.add_class::<PySegmentFile>()?;
    parent.add_function(wrap_pyfunction!(find_segments, parent)?)?;
    let module =
        add_submodule(parent, "files", "Files that accompany a segment: indexes, producer snapshots, checkpoints.")?;
    module.add_class::<PyAbortedTransaction>()?;
    module.add_class::<PyCheckpoint>()?;
    module.add_class::<PyEpochEntry>()?;
    module.add_class::<PyOffsetIndex>()?;
    module.add_class::<PyPartitionOffset>()?;
    module.add_class::<PyProducerEntry>()?;
    module.add_class::<PyProducerSnapshot>()?;
    module.add_class::<PyStoreTarget>()?;
    module.add_class::<PyStoredFile>()?;
    module.add_class::<PyTimeIndex>()?;
    module.add_class::<PyTransactionIndex>()?;
    module.add_function(wrap_pyfunction!(discover, &module)?)?;
    module.add_function(wrap_pyfunction!(refuse_foreign, &module)?)?;
    module.add_function(wrap_pyfunction!(stored_files, &module)?)?;
    Ok(())
}
