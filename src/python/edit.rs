//! In-place edits and transaction markers.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes};

use crate::format::control::ControlRecord;
use crate::python::errors::OrRaise;

/// Edits a `bytearray` from `position` on: a copy of it is edited and written back, so that nothing can change underneath.
fn edit(data: &Bound<'_, PyAny>, position: usize, work: impl FnOnce(&mut [u8]) -> crate::Result<()>) -> PyResult<()> {
    let Ok(array) = data.cast::<PyByteArray>() else {
        let name = data.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "data must be a bytearray, which can be edited in place, not {name}"
        )));
    };
    let mut bytes = array.to_vec();
    let Some(batch) = bytes.get_mut(position..) else {
        return Err(PyValueError::new_err(format!("position {position} is past the end of the data")));
    };
    work(batch).or_raise(data.py())?;
    let edited = PyBytes::new(data.py(), batch);
    let whole = pyo3::types::PySlice::new(data.py(), isize::try_from(position).unwrap_or(isize::MAX), isize::MAX, 1);
    array.set_item(whole, edited)
}

/// Give a batch another base offset, in place. Its checksum does not cover the offset.
///
/// Args:
///     data: A bytearray.
///     base_offset: The new one. For a compressed set of magic 1, that of its first message.
///     position: Where in ``data`` the batch begins.
///
/// Raises:
///     CorruptError: What begins there is no batch.
///     UnsupportedError: A magic other than 0, 1 and 2.
///     ValueError: Less than a batch; a compressed set of magic 0, whose offsets lie in the compressed bytes.
#[pyfunction]
#[pyo3(signature = (data, base_offset, *, position=0))]
pub(crate) fn set_base_offset(data: &Bound<'_, PyAny>, base_offset: i64, position: usize) -> PyResult<()> {
    edit(data, position, |batch| crate::format::set_base_offset(batch, base_offset))
}

/// Give a batch another partition leader epoch, in place. Its checksum does not cover the epoch.
///
/// Args:
///     data: A bytearray.
///     partition_leader_epoch: The new one.
///     position: Where in ``data`` the batch begins.
///
/// Raises:
///     CorruptError: What begins there is no batch.
///     UnsupportedError: A magic other than 0, 1 and 2.
///     ValueError: Less than a batch; magic 0 and 1, which have no epoch.
#[pyfunction]
#[pyo3(signature = (data, partition_leader_epoch, *, position=0))]
pub(crate) fn set_partition_leader_epoch(
    data: &Bound<'_, PyAny>,
    partition_leader_epoch: i32,
    position: usize,
) -> PyResult<()> {
    edit(data, position, |batch| crate::format::set_partition_leader_epoch(batch, partition_leader_epoch))
}

/// Make a batch one of ``LogAppendTime``, in place. The checksum is computed anew.
///
/// Args:
///     data: A bytearray.
///     timestamp: What all records of the batch get, milliseconds since the epoch.
///     position: Where in ``data`` the batch begins.
///
/// Raises:
///     CorruptError: What begins there is no batch.
///     UnsupportedError: A magic other than 0, 1 and 2.
///     ValueError: Less than a batch; magic 0, which has no timestamps; a negative timestamp.
#[pyfunction]
#[pyo3(signature = (data, timestamp, *, position=0))]
pub(crate) fn set_log_append_time(data: &Bound<'_, PyAny>, timestamp: i64, position: usize) -> PyResult<()> {
    edit(data, position, |batch| crate::format::set_log_append_time(batch, timestamp))
}

/// Make a batch with one transaction marker, as a transaction coordinator has it written: 78 bytes.
///
/// Args:
///     base_offset: Offset of the marker.
///     timestamp: Milliseconds since the epoch.
///     producer_id: Producer of the transaction.
///     producer_epoch: Its epoch.
///     coordinator_epoch: Epoch of the transaction coordinator.
///     commit: True for COMMIT, False for ABORT.
///     partition_leader_epoch: Leader epoch, -1 for none.
///
/// Raises:
///     ValueError: A negative producer id or epoch.
#[pyfunction]
// text_signature: PyO3 would write -1 as an ellipsis
#[pyo3(signature = (*, producer_id, producer_epoch, commit, timestamp, base_offset=0, coordinator_epoch=0, partition_leader_epoch=-1), text_signature = "(*, producer_id, producer_epoch, commit, timestamp, base_offset=0, coordinator_epoch=0, partition_leader_epoch=-1)")]
#[expect(clippy::too_many_arguments, reason = "the keyword arguments of the Python signature")]
pub(crate) fn end_transaction_marker(
    py: Python<'_>,
    producer_id: i64,
    producer_epoch: i16,
    commit: bool,
    timestamp: i64,
    base_offset: i64,
    coordinator_epoch: i32,
    partition_leader_epoch: i32,
) -> PyResult<Bound<'_, PyBytes>> {
    let marker =
        if commit { ControlRecord::Commit { coordinator_epoch } } else { ControlRecord::Abort { coordinator_epoch } };
    let bytes = crate::format::end_transaction_marker(
        base_offset,
        timestamp,
        partition_leader_epoch,
        producer_id,
        producer_epoch,
        &marker,
    );
    Ok(PyBytes::new(py, &bytes.or_raise(py)?))
}
