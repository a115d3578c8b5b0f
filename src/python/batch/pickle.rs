//! Pickling of records and batches as values.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::log::SharedBatch;
use crate::python::arguments::limits::{PyLimits, or_default};
use crate::python::arguments::names;
use crate::python::batch::record::{PyRecord, RecordParts};
use crate::python::batch::{PyBatch, ReadSettings};

/// Restores a record from the state that `pickle` stored.
#[pyfunction(name = "_record")]
#[expect(clippy::too_many_arguments, reason = "the fields of a record")]
pub(crate) fn record(
    offset: i64,
    timestamp: i64,
    timestamp_type: Option<&str>,
    sequence: i32,
    key: Option<&[u8]>,
    value: Option<&[u8]>,
    headers: &[u8],
    header_count: u32,
    is_control: bool,
) -> PyResult<PyRecord> {
    let timestamp_type = timestamp_type.map(names::timestamp_type).transpose()?;
    Ok(PyRecord::of_parts(&RecordParts {
        offset,
        timestamp,
        timestamp_type,
        sequence,
        key,
        value,
        headers,
        header_count,
        is_control,
    }))
}

/// Restores a batch from the state that `pickle` stored.
#[pyfunction(name = "_batch")]
#[pyo3(signature = (bytes, position, check_crc, limits, path))]
pub(crate) fn batch(
    bytes: Vec<u8>,
    position: u64,
    check_crc: bool,
    limits: Option<PyLimits>,
    path: Option<OsString>,
) -> PyResult<PyBatch> {
    let range = 0..bytes.len();
    let settings = Arc::new(ReadSettings { check_crc, limits: or_default(limits) });
    let batch =
        PyBatch::new(SharedBatch { bytes: Arc::new(bytes), range, position }, &settings, path.map(PathBuf::from));
    batch.core().map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(batch)
}
