//! Submodules of `kbat._core`.

use pyo3::prelude::*;

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
