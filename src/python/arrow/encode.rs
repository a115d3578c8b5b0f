//! The submodule `kbat._core.encode`: `kbat.encode` and `kbat.encode_batches`.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::arrow::{EncodeOptions, EncodedBatches};
use crate::compression::Compression;
use crate::error::{Error, Result};
use crate::format::attributes::TimestampType;
use crate::format::header::NO_TIMESTAMP;
use crate::python::arguments::names::timestamp_type as parse_timestamp_type;
use crate::python::arguments::time::record_timestamp;
use crate::python::arrow::input::{InputBatches, arrow_input};
use crate::python::runtime::errors::OrRaise;
use crate::python::runtime::exclusive::Exclusive;
use crate::python::runtime::submodule::add_submodule;

/// Creates the submodule and everything in it.
pub(crate) fn register(parent: &Bound<'_, PyModule>) -> PyResult<()> {
    let module = add_submodule(parent, "encode", "Encode Arrow data to record batches.")?;
    module.add_class::<PyEncodedBatch>()?;
    module.add_class::<PyEncodedBatchIterator>()?;
    module.add_function(wrap_pyfunction!(encode, &module)?)?;
    module.add_function(wrap_pyfunction!(encode_batches, &module)?)?;
    module.add_function(wrap_pyfunction!(encode_settings, &module)?)?;
    Ok(())
}

/// Encode Arrow data to record batches, as one ``bytes`` object.
///
/// See :func:`encode_batches` for the columns and the options.
///
/// Example:
///     >>> frame = pl.DataFrame({"key": [b"k"], "value": [b"v"]})
///     >>> data = kbat.encode(frame, timestamp=1700000000000, compression="zstd")
#[pyfunction]
// text_signature is set because PyO3 would write -1 as an ellipsis
#[pyo3(signature = (data, *, compression="none", level=None, batch_bytes=131_072, batch_rows=None, base_offset=None, timestamp=None, timestamp_type="CreateTime", log_append_time=None, producer_id=-1, producer_epoch=-1, base_sequence=-1, transactional=false, partition_leader_epoch=-1, magic=2), text_signature = "(data, *, compression='none', level=None, batch_bytes=131072, batch_rows=None, base_offset=None, timestamp=None, timestamp_type='CreateTime', log_append_time=None, producer_id=-1, producer_epoch=-1, base_sequence=-1, transactional=False, partition_leader_epoch=-1, magic=2)")]
#[expect(clippy::too_many_arguments, reason = "the keyword arguments of the Python signature")]
pub(crate) fn encode<'py>(
    data: &Bound<'py, PyAny>,
    compression: &str,
    level: Option<i32>,
    batch_bytes: usize,
    batch_rows: Option<usize>,
    base_offset: Option<i64>,
    timestamp: Option<&Bound<'_, PyAny>>,
    timestamp_type: &str,
    log_append_time: Option<i64>,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    transactional: bool,
    partition_leader_epoch: i32,
    magic: i64,
) -> PyResult<Bound<'py, PyBytes>> {
    let py = data.py();
    let encoded = encode_batches(
        data,
        compression,
        level,
        batch_bytes,
        batch_rows,
        base_offset,
        timestamp,
        timestamp_type,
        log_append_time,
        producer_id,
        producer_epoch,
        base_sequence,
        transactional,
        partition_leader_epoch,
        magic,
    )?;
    let batches = encoded
        .0
        .with(py, |batches| batches.map(|batch| Ok(batch?.bytes)).collect::<Result<Vec<Vec<u8>>>>())?
        .or_raise(py)?;
    joined(py, &batches)
}

/// Joins the batches into one buffer of the right size; a growing buffer would be copied more than once.
fn joined<'py>(py: Python<'py>, batches: &[Vec<u8>]) -> PyResult<Bound<'py, PyBytes>> {
    let len = batches.iter().fold(0_usize, |sum, batch| sum.saturating_add(batch.len()));
    PyBytes::new_with(py, len, |mut rest| {
        for batch in batches {
            let Some((head, tail)) = std::mem::take(&mut rest).split_at_mut_checked(batch.len()) else { break };
            head.copy_from_slice(batch);
            rest = tail;
        }
        Ok(())
    })
}

/// Encode Arrow data to record batches, one by one.
///
/// The columns are named as in Spark's Kafka source and sink. Other columns are ignored.
///
/// * ``value``: binary or string of any Arrow kind.
/// * ``key``: binary or string of any Arrow kind; without the column all keys are null.
/// * ``timestamp``: timestamp of any unit and zone, or int64 milliseconds since the epoch.
/// * ``headers``: list<struct<key, value>> or map; keys and values binary or string.
/// * ``offset``: int64, rising; without the column offsets count from ``base_offset``.
///
/// Args:
///     data: Anything with the Arrow PyCapsule interface: tables, batches and readers of pyarrow, frames of polars,
///         DuckDB and pandas, a :class:`Scan`.
///     compression: Codec of the batches; zstd needs magic 2.
///     level: Compression level, numbered as in Kafka.
///     batch_bytes: Maximum bytes of a batch before compression. A single larger record gets its own batch.
///     batch_rows: Maximum number of records in a batch.
///     base_offset: Offset of the first record if there is no column ``offset``; 0 by default.
///     timestamp: Milliseconds since the epoch, for records without a timestamp. Required if there is no column
///         ``timestamp``; without it, nulls in that column become -1, Kafka's "none".
///     timestamp_type: ``"CreateTime"`` or ``"LogAppendTime"``; magic 0 has no timestamps.
///     log_append_time: The timestamp of all records with ``"LogAppendTime"``, milliseconds since the epoch.
///     producer_id: Producer id, -1 for none. If set, ``producer_epoch`` and ``base_sequence`` are required.
///     producer_epoch: Producer epoch, -1 for none.
///     base_sequence: Sequence of the first record, -1 for none.
///     transactional: Whether the batches belong to a transaction.
///     partition_leader_epoch: Leader epoch, -1 for none.
///     magic: Message format: 0, 1 or 2.
///
/// Raises:
///     TypeError: ``data`` does not have the Arrow PyCapsule interface.
///     ValueError: Options contradict each other, or a column is missing or of an unsupported type. While iterating:
///         Kafka's rules forbid a row.
///
/// Example:
///     >>> for batch in kbat.encode_batches(table, compression="lz4"):
///     ...     print(batch.base_offset, batch.record_count, len(batch.bytes))
#[pyfunction]
// text_signature is set because PyO3 would write -1 as an ellipsis
#[pyo3(signature = (data, *, compression="none", level=None, batch_bytes=131_072, batch_rows=None, base_offset=None, timestamp=None, timestamp_type="CreateTime", log_append_time=None, producer_id=-1, producer_epoch=-1, base_sequence=-1, transactional=false, partition_leader_epoch=-1, magic=2), text_signature = "(data, *, compression='none', level=None, batch_bytes=131072, batch_rows=None, base_offset=None, timestamp=None, timestamp_type='CreateTime', log_append_time=None, producer_id=-1, producer_epoch=-1, base_sequence=-1, transactional=False, partition_leader_epoch=-1, magic=2)")]
#[expect(clippy::too_many_arguments, reason = "the keyword arguments of the Python signature")]
pub(crate) fn encode_batches(
    data: &Bound<'_, PyAny>,
    compression: &str,
    level: Option<i32>,
    batch_bytes: usize,
    batch_rows: Option<usize>,
    base_offset: Option<i64>,
    timestamp: Option<&Bound<'_, PyAny>>,
    timestamp_type: &str,
    log_append_time: Option<i64>,
    producer_id: i64,
    producer_epoch: i16,
    base_sequence: i32,
    transactional: bool,
    partition_leader_epoch: i32,
    magic: i64,
) -> PyResult<PyEncodedBatchIterator> {
    let py = data.py();
    let options = EncodeOptions {
        magic: parse_magic(magic)?,
        compression: compression.parse::<Compression>().or_raise(py)?,
        level,
        batch_bytes,
        batch_rows,
        base_offset,
        timestamp: timestamp.map(record_timestamp).transpose()?,
        timestamp_type: parse_timestamp_type(timestamp_type)?,
        log_append_time: checked_log_append_time(timestamp_type, log_append_time)?,
        producer_id,
        producer_epoch,
        base_sequence,
        transactional,
        partition_leader_epoch,
    };
    let input = arrow_input(data)?;
    let batches = EncodedBatches::new(&input.schema, input.batches, options).or_raise(py)?;
    Ok(PyEncodedBatchIterator(Exclusive::new(batches)))
}

/// Return the options of an encoder as JSON, which Spark's JVM parses.
#[pyfunction]
pub(crate) fn encode_settings(encoder: &Bound<'_, PyEncodedBatchIterator>) -> PyResult<String> {
    let py = encoder.py();
    let options = encoder.get().0.with(py, |batches| *batches.options())?;
    serde_json::to_string(&options).map_err(Error::other).or_raise(py)
}

fn parse_magic(magic: i64) -> PyResult<u8> {
    u8::try_from(magic)
        .map_err(|_| PyValueError::new_err(format!("magic {magic} is not a message format: use 0, 1 or 2")))
}

fn checked_log_append_time(timestamp_type: &str, time: Option<i64>) -> PyResult<i64> {
    if time.is_some() && timestamp_type != TimestampType::LogAppendTime.name() {
        return Err(PyValueError::new_err("log_append_time needs timestamp_type=\"LogAppendTime\""));
    }
    if time.is_none() && timestamp_type == TimestampType::LogAppendTime.name() {
        return Err(PyValueError::new_err(
            "timestamp_type=\"LogAppendTime\" needs log_append_time, the timestamp of all records",
        ));
    }
    Ok(time.unwrap_or(NO_TIMESTAMP))
}

/// Iterates over record batches; see :func:`encode_batches`.
#[pyclass(frozen, name = "EncodedBatchIterator", module = "kbat")]
pub(crate) struct PyEncodedBatchIterator(Exclusive<EncodedBatches<InputBatches>>);

#[pymethods]
impl PyEncodedBatchIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<PyEncodedBatch>> {
        let next = self.0.with(py, Iterator::next)?;
        Ok(next.transpose().or_raise(py)?.map(|batch| PyEncodedBatch {
            bytes: PyBytes::new(py, &batch.bytes).unbind(),
            base_offset: batch.base_offset,
            last_offset: batch.last_offset,
            record_count: batch.record_count,
        }))
    }
}

/// A record batch encoded from Arrow rows; see :func:`encode_batches`.
///
/// Below magic 2 without compression: a group of messages that would otherwise form one batch.
#[pyclass(frozen, get_all, name = "EncodedBatch", module = "kbat")]
pub(crate) struct PyEncodedBatch {
    /// Bytes of the batch.
    bytes: Py<PyBytes>,
    /// Offset of the first record.
    base_offset: i64,
    /// Offset of the last record.
    last_offset: i64,
    /// Number of records.
    record_count: u32,
}

#[pymethods]
impl PyEncodedBatch {
    fn __repr__(&self, py: Python<'_>) -> String {
        let (first, last, count) = (self.base_offset, self.last_offset, self.record_count);
        let len = self.bytes.as_bytes(py).len();
        format!("EncodedBatch(offsets {first}..{last}, {count} records, {len} bytes)")
    }
}
