//! In-place edits and transaction markers.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PySlice};

use crate::format::control::ControlRecord;
use crate::format::header::{BATCH_HEADER_LEN, BATCH_LENGTH_POSITION, LOG_OVERHEAD};
use crate::num::usize_of;
use crate::python::runtime::errors::OrRaise;

/// Edits the batch at `position` of a `bytearray`. Works on a copy of the batch and writes it back, so that other threads
/// cannot change it during the edit.
fn edit(
    data: &Bound<'_, PyAny>,
    position: usize,
    work: impl FnOnce(&mut [u8]) -> crate::error::Result<()>,
) -> PyResult<()> {
    let Ok(array) = data.cast::<PyByteArray>() else {
        let name = data.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "data must be a bytearray, which can be edited in place, not {name}"
        )));
    };
    if position > array.len() {
        return Err(PyValueError::new_err(format!("position {position} is past the end of the data")));
    }
    let slice = |len: usize| PySlice::new(data.py(), index(position), index(position.saturating_add(len)), 1);
    let head: Vec<u8> = array.get_item(slice(BATCH_HEADER_LEN))?.extract()?;
    let length = head.get(BATCH_LENGTH_POSITION..).and_then(|rest| rest.first_chunk()).copied();
    let size = usize_of(u32::from_be_bytes(length.unwrap_or_default())).saturating_add(LOG_OVERHEAD);
    let mut batch: Vec<u8> = array.get_item(slice(size.max(BATCH_HEADER_LEN)))?.extract()?;
    work(&mut batch).or_raise(data.py())?;
    array.set_item(slice(batch.len()), PyBytes::new(data.py(), &batch))
}

/// A position or an end as an index in Python.
fn index(position: usize) -> isize {
    isize::try_from(position).unwrap_or(isize::MAX)
}

/// Set the base offset of a batch, in place. Its checksum does not cover the offset.
///
/// Args:
///     data: A bytearray.
///     base_offset: The new base offset. For a compressed set of magic 1, the offset of its first message.
///     position: Where in ``data`` the batch begins.
///
/// Raises:
///     CorruptError: The bytes at ``position`` are not a batch.
///     UnsupportedError: The magic is not 0, 1 or 2.
///     ValueError: The bytes end inside the batch, or it is a compressed set of magic 0, whose offsets are
///         compressed.
#[pyfunction]
#[pyo3(signature = (data, base_offset, *, position=0))]
pub(crate) fn set_base_offset(data: &Bound<'_, PyAny>, base_offset: i64, position: usize) -> PyResult<()> {
    edit(data, position, |batch| crate::format::set_base_offset(batch, base_offset))
}

/// Set the partition leader epoch of a batch, in place. Its checksum does not cover the epoch.
///
/// Args:
///     data: A bytearray.
///     partition_leader_epoch: The new epoch.
///     position: Where in ``data`` the batch begins.
///
/// Raises:
///     CorruptError: The bytes at ``position`` are not a batch.
///     UnsupportedError: The magic is not 0, 1 or 2.
///     ValueError: The bytes end inside the batch, or its magic is 0 or 1, which have no epoch.
#[pyfunction]
#[pyo3(signature = (data, partition_leader_epoch, *, position=0))]
pub(crate) fn set_partition_leader_epoch(
    data: &Bound<'_, PyAny>,
    partition_leader_epoch: i32,
    position: usize,
) -> PyResult<()> {
    edit(data, position, |batch| crate::format::set_partition_leader_epoch(batch, partition_leader_epoch))
}

/// Set the timestamp type of a batch to ``LogAppendTime``, in place, and update the checksum.
///
/// Args:
///     data: A bytearray.
///     timestamp: The new timestamp of all records of the batch, milliseconds since the epoch.
///     position: Where in ``data`` the batch begins.
///
/// Raises:
///     CorruptError: The bytes at ``position`` are not a batch.
///     UnsupportedError: The magic is not 0, 1 or 2.
///     ValueError: The bytes end inside the batch, its magic is 0, which has no timestamps, or the timestamp is
///         negative.
#[pyfunction]
#[pyo3(signature = (data, timestamp, *, position=0))]
pub(crate) fn set_log_append_time(data: &Bound<'_, PyAny>, timestamp: i64, position: usize) -> PyResult<()> {
    edit(data, position, |batch| crate::format::set_log_append_time(batch, timestamp))
}

/// Make a batch with one transaction marker, as a transaction coordinator writes it: 78 bytes.
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
///     ValueError: A producer id or epoch is negative.
#[pyfunction]
// text_signature is set because PyO3 would write -1 as an ellipsis
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
