//! The submodule `kbat._core.log`: segments, their indexes, partitions and log directories.

use pyo3::prelude::*;

/// Makes the submodule and everything in it.
pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = parent.py();
    let module = PyModule::new(py, "kbat._core.log")?;
    module.setattr("__doc__", "Segments, their indexes, partitions and log directories.")?;
    parent.setattr("log", &module)?;
    // an extension module is no package: without this, `import kbat._core.log` would look for a file
    py.import("sys")?.getattr("modules")?.set_item("kbat._core.log", &module)?;
    Ok(())
}
