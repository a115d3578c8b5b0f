//! Locations in the file system or in a store: `kbat.find_segments`, and the submodule `kbat._core.locations` with
//! files of any kind and files to write.

mod output_target;
pub(crate) mod segments;
mod stored_file;

use std::path::PathBuf;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::io::Location;
use crate::objects::StoreOptions;
use crate::python::arguments::location::StoreArguments;
use crate::python::locations::output_target::PyOutputTarget;
use crate::python::locations::segments::{PySegmentFile, discover, find_segments, refuse_foreign};
use crate::python::locations::stored_file::{PyStoredFile, stored_files};
use crate::python::runtime::errors::OrRaise;
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
    module.add_function(wrap_pyfunction!(file_path, &module)?)?;
    module.add_function(wrap_pyfunction!(refuse_foreign, &module)?)?;
    module.add_function(wrap_pyfunction!(refuse_inside, &module)?)?;
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

/// Return the path in the file system that a ``file:`` URL names.
///
/// Args:
///     url: The URL.
#[pyfunction]
fn file_path(py: Python<'_>, url: &str) -> PyResult<PathBuf> {
    let location = Location::parse(url, &StoreOptions::default()).or_raise(py)?;
    Ok(location.path().to_path_buf())
}

/// Refuse a target inside the directory that is read.
///
/// Args:
///     source: The path or URL of the directory.
///     target: The path or URL to write.
///     storage_options: How to open the store of a URL, with the names of object_store.
///
/// Raises:
///     ValueError: The target is inside, or an unknown scheme or option.
#[pyfunction]
#[pyo3(signature = (source, target, **stores), text_signature = "(source, target, *, storage_options=None)")]
fn refuse_inside(py: Python<'_>, source: PathBuf, target: PathBuf, stores: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
    let stores = StoreArguments::new("refuse_inside", stores)?;
    let (source, target) = (stores.locate_beside(py, source)?, stores.locate_beside(py, target)?);
    py.detach(|| crate::io::refuse_inside(&source, &target)).or_raise(py)
}
