//! Locations in the file system or in a store: `kbat.find_segments`, and the submodule `kbat._core.locations` with
//! files of any kind and files to write.

mod output_target;
pub(crate) mod segments;
mod stored_file;

use pyo3::prelude::*;

use crate::python::locations::output_target::PyOutputTarget;
use crate::python::locations::segments::{PySegmentFile, discover, find_segments, refuse_foreign};
use crate::python::locations::stored_file::{PyStoredFile, stored_files};
use crate::python::runtime::submodule::add_submodule;

/// Creates the submodule and everything in it, and adds the search for segments to the extension module.
pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    parent.add_class::<PySegmentFile>()?;
    parent.add_function(wrap_pyfunction!(find_segments, parent)?)?;
    let doc = "Segments, other files and targets, in the file system or in a store.";
    let module = add_submodule(parent, "locations", doc)?;
    module.add_class::<PyOutputTarget>()?;
    module.add_class::<PyStoredFile>()?;
    module.add_function(wrap_pyfunction!(discover, &module)?)?;
    module.add_function(wrap_pyfunction!(refuse_foreign, &module)?)?;
    module.add_function(wrap_pyfunction!(store_scheme, &module)?)?;
    module.add_function(wrap_pyfunction!(stored_files, &module)?)?;
    Ok(())
}

/// Return the scheme of the URL of an object, in lower case; ``s3`` for ``s3a``, too.
///
/// Args:
///     path: A path or a URL.
///
/// Returns:
///     None for a path, for a ``file:`` URL, and for a scheme that no store has.
#[pyfunction]
fn store_scheme(path: &str) -> Option<&'static str> {
    crate::objects::store_scheme(path)
}
