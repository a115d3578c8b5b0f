//! Schemas that Python objects pass in capsules.

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, Schema, SchemaRef};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods};

#[expect(clippy::needless_pass_by_value, reason = "the signature that map_err requires")]
pub(crate) fn arrow_error(error: ArrowError) -> PyErr {
    PyValueError::new_err(format!("cannot read the Arrow data: {error}"))
}

/// The schema of a `requested_schema` argument. The caller keeps ownership.
#[expect(unsafe_code, reason = "reads a C structure")]
pub(crate) fn requested(capsule: &Bound<'_, PyAny>) -> PyResult<SchemaRef> {
    let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(c"arrow_schema"))?.cast::<FFI_ArrowSchema>();
    // SAFETY: a capsule of this name holds such a structure as long as the capsule lives, and no other thread
    // changes it; the next call checks whether its pointers may be dereferenced
    let schema = unsafe { pointer.as_ref() };
    check_not_consumed(schema)?;
    Schema::try_from(schema).map(SchemaRef::new).map_err(arrow_error)
}

/// Checks the release callback: a consumed schema has dangling pointers and shows this only by being released.
pub(crate) fn check_not_consumed(schema: &FFI_ArrowSchema) -> PyResult<()> {
    if schema.release.is_none() {
        return Err(PyValueError::new_err("the Arrow schema was already consumed; pass a new one"));
    }
    Ok(())
}
