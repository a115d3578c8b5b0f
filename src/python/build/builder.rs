//! `kbat.BatchBuilder` and size arithmetic.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::compression::Compression;
use crate::format::attributes::TimestampType;
use crate::format::builder::BatchBuilder;
use crate::format::header::NO_TIMESTAMP;
use crate::format::record::NewHeader;
use crate::python::arguments::names;
use crate::python::arguments::record::{OwnedHeader, borrowed, own_headers};
use crate::python::arguments::time::record_timestamp;
use crate::python::runtime::errors::OrRaise;

/// Builds a batch record by record, by the rules of Kafka's own builder.
///
/// Args:
///     magic: Message format: 0, 1 or 2.
///     compression: Kafka's name of the codec, such as ``"lz4"``; ``"zstd"`` needs magic 2.
///     level: Compression level, numbered as in Kafka, such as 1 to 9 for gzip. Default: Kafka's own, such as 3 for
///         zstd, and 9 for lz4, which is its fast compressor.
///     base_offset: Offset of the batch, and of the first record unless ``append`` sets another.
///     timestamp_type: ``"CreateTime"`` or ``"LogAppendTime"``; magic 0 has no timestamps.
///     log_append_time: The timestamp of all records with ``"LogAppendTime"``, milliseconds since the epoch.
///     producer_id: Producer id, -1 for none. If set, ``producer_epoch`` and ``base_sequence`` are required.
///     producer_epoch: Producer epoch, -1 for none.
///     base_sequence: Sequence of the first record, -1 for none.
///     transactional: Whether the batch belongs to a transaction.
///     control: Whether the batch holds control records.
///     partition_leader_epoch: Leader epoch, -1 for none.
///     delete_horizon_ms: Delete horizon to store instead of the base timestamp, milliseconds since the epoch.
///     last_offset: Last offset of the batch, if that is not its last record's offset (as after compaction).
///
/// Raises:
///     ValueError: Kafka's rules forbid a setting. ``finish`` reports settings that contradict each other.
///
/// Example:
///     >>> builder = kbat.BatchBuilder(compression="lz4", base_offset=42)
///     >>> builder.append(b"key", b"value", timestamp=1700000000000, headers=[("trace", b"1")])
///     >>> data = builder.finish()
#[pyclass(frozen, name = "BatchBuilder", module = "kbat")]
pub(crate) struct PyBatchBuilder(Mutex<Option<BatchBuilder>>);

impl PyBatchBuilder {
    fn with<T>(&self, work: impl FnOnce(&mut BatchBuilder) -> PyResult<T>) -> PyResult<T> {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match guard.as_mut() {
            Some(builder) => work(builder),
            None => Err(PyValueError::new_err("the batch is finished; create a new BatchBuilder")),
        }
    }
}

#[pymethods]
impl PyBatchBuilder {
    #[new]
    // text_signature is set because PyO3 would write -1 as an ellipsis
    #[pyo3(signature = (magic=2, compression="none", level=None, *, base_offset=0, timestamp_type="CreateTime", log_append_time=None, producer_id=-1, producer_epoch=-1, base_sequence=-1, transactional=false, control=false, partition_leader_epoch=-1, delete_horizon_ms=None, last_offset=None), text_signature = "(magic=2, compression='none', level=None, *, base_offset=0, timestamp_type='CreateTime', log_append_time=None, producer_id=-1, producer_epoch=-1, base_sequence=-1, transactional=False, control=False, partition_leader_epoch=-1, delete_horizon_ms=None, last_offset=None)")]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments of the Python signature")]
    fn new(
        py: Python<'_>,
        magic: i64,
        compression: &str,
        level: Option<i32>,
        base_offset: i64,
        timestamp_type: &str,
        log_append_time: Option<i64>,
        producer_id: i64,
        producer_epoch: i16,
        base_sequence: i32,
        transactional: bool,
        control: bool,
        partition_leader_epoch: i32,
        delete_horizon_ms: Option<i64>,
        last_offset: Option<i64>,
    ) -> PyResult<Self> {
        let magic = u8::try_from(magic)
            .map_err(|_| PyValueError::new_err(format!("magic {magic} is not a message format: use 0, 1 or 2")))?;
        let kind = names::timestamp_type(timestamp_type)?;
        let mut builder = BatchBuilder::new()
            .magic(magic)
            .compression(compression.parse::<Compression>().or_raise(py)?)
            .base_offset(base_offset)
            .producer(producer_id, producer_epoch, base_sequence)
            .transactional(transactional)
            .control(control)
            .partition_leader_epoch(partition_leader_epoch);
        match (kind, log_append_time) {
            (TimestampType::LogAppendTime, time) => builder = builder.log_append_time(time.unwrap_or(NO_TIMESTAMP)),
            (TimestampType::CreateTime, None) => {}
            (TimestampType::CreateTime, Some(_)) => {
                return Err(PyValueError::new_err("log_append_time needs timestamp_type=\"LogAppendTime\""));
            }
        }
        if let Some(level) = level {
            builder = builder.level(level);
        }
        if let Some(horizon) = delete_horizon_ms {
            builder = builder.delete_horizon_ms(horizon);
        }
        if let Some(last_offset) = last_offset {
            builder = builder.last_offset(last_offset);
        }
        builder.validate().or_raise(py)?;
        Ok(Self(Mutex::new(Some(builder))))
    }

    /// Append a record.
    ///
    /// Args:
    ///     key: Bytes-like, or None for null.
    ///     value: Bytes-like, or None for null.
    ///     timestamp: Milliseconds since the epoch, -1 for none; a ``datetime`` or ISO 8601 text with a time zone,
    ///         whose microseconds round down to milliseconds.
    ///     headers: A dictionary, or pairs of key and value as tuples, lists, or dictionaries with ``key`` and
    ///         ``value``. Keys are ``str`` or bytes-like, values bytes-like or None.
    ///     offset: Offset above the last one; the next one by default.
    ///
    /// Raises:
    ///     ValueError: Kafka's rules forbid the record. The builder is unchanged.
    ///     TypeError: A key, value or header has another type. The builder is unchanged.
    #[pyo3(signature = (key, value, *, timestamp, headers=None, offset=None))]
    fn append(
        &self,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        timestamp: &Bound<'_, PyAny>,
        headers: Option<&Bound<'_, PyAny>>,
        offset: Option<i64>,
    ) -> PyResult<()> {
        let (py, timestamp) = (key.py(), record_timestamp(timestamp)?);
        let Some(headers) = headers else {
            return borrowed(key, "key", |key| {
                borrowed(value, "value", |value| self.append_core(py, offset, timestamp, key, value, &[]))
            });
        };
        let owned = own_headers(headers)?;
        let headers: Vec<NewHeader<'_>> = owned.iter().map(OwnedHeader::as_new).collect();
        borrowed(key, "key", |key| {
            borrowed(value, "value", |value| self.append_core(py, offset, timestamp, key, value, &headers))
        })
    }

    /// Size of the batch in bytes before compression. Exact if the codec is ``"none"``; 0 without records.
    #[getter]
    fn size(&self) -> PyResult<usize> {
        self.with(|builder| Ok(builder.size()))
    }

    /// Upper bound on the bytes that ``finish()`` returns. Equal to ``size`` if the codec is ``"none"``.
    #[getter]
    fn estimated_size(&self) -> PyResult<usize> {
        self.with(|builder| Ok(builder.estimated_size()))
    }

    /// Records appended so far.
    #[getter]
    fn record_count(&self) -> PyResult<u32> {
        self.with(|builder| Ok(builder.record_count()))
    }

    /// Return the bytes of the batch; empty without records, as in Kafka. The builder can't be used afterwards.
    ///
    /// Raises:
    ///     ValueError: Kafka's rules forbid a setting, or this is the second call.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let builder = self.with(|builder| {
            builder.validate_all().or_raise(py)?;
            Ok(std::mem::take(builder))
        })?;
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let build = || {
            let mut out = Vec::new();
            builder.finish_into(&mut out).map(|()| out)
        };
        let bytes = py.detach(build).or_raise(py)?;
        Ok(PyBytes::new(py, &bytes))
    }

    fn __repr__(&self) -> PyResult<String> {
        self.with(|builder| Ok(format!("BatchBuilder({} records, {} bytes)", builder.record_count(), builder.size())))
    }
}

impl PyBatchBuilder {
    fn append_core(
        &self,
        py: Python<'_>,
        offset: Option<i64>,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[NewHeader<'_>],
    ) -> PyResult<()> {
        self.with(|builder| {
            match offset {
                Some(offset) => builder.append_at(offset, timestamp, key, value, headers),
                None => builder.append_with_headers(timestamp, key, value, headers),
            }
            .or_raise(py)
        })
    }
}

/// Compute the size of a batch of these records without building it.
///
/// Args:
///     records: ``(timestamp, key, value)`` or ``(timestamp, key, value, headers)`` tuples; offsets count from 0.
///     magic: Message format: 0, 1 or 2.
///     compression: As for :class:`BatchBuilder`.
///
/// Returns:
///     Bytes: exact without compression, an upper bound with it; 0 without records.
#[pyfunction]
#[pyo3(signature = (records, *, magic=2, compression="none"))]
pub(crate) fn batch_size(records: &Bound<'_, PyAny>, magic: i64, compression: &str) -> PyResult<usize> {
    let py = records.py();
    let builder_type = py.get_type::<PyBatchBuilder>();
    let builder = builder_type.call1((magic, compression))?.cast_into::<PyBatchBuilder>()?;
    for record in records.try_iter()? {
        let record = record?;
        let headers = if record.len()? > 3 { Some(record.get_item(3)?) } else { None };
        let timestamp = record.get_item(0)?;
        builder.get().append(&record.get_item(1)?, &record.get_item(2)?, &timestamp, headers.as_ref(), None)?;
    }
    builder.get().estimated_size()
}
