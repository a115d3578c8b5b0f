//! `kbat.validate`.

use std::time::{SystemTime, UNIX_EPOCH};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::broker::validate::{
    AppendOrigin, Validation, ValidationSettings, validate as validate_bytes, validate_after,
};
use crate::compression::Compression;
use crate::python::arguments::limits::{PyLimits, or_default};
use crate::python::arguments::names::timestamp_type as parse_timestamp_type;
use crate::python::arguments::source::required_bytes;
use crate::python::log::partition::PyPartitionLog;
use crate::python::runtime::errors::OrRaise;

/// Check whether a broker (Kafka 4.3) would accept a produce request with these bytes.
///
/// Checks that depend on the partition's history (sequences, duplicates, producer epochs) need ``log``.
///
/// Args:
///     data: Bytes-like: the records of a produce request for one partition.
///     request_version: Version of the produce request, which determines the allowed content: one batch of magic 2,
///         zstd from version 7 on. None omits these checks.
///     origin: The kind of sender.
///     magic: Message format of the log; since Kafka 4 always 2.
///     compression: The topic's ``compression.type``: ``"producer"``, ``"none"`` (Kafka's ``uncompressed``) or a codec.
///     level: Compression level of that codec.
///     timestamp_type: The topic's ``message.timestamp.type``.
///     timestamp_before_max_ms: The topic's ``message.timestamp.before.max.ms``; None for any age.
///     timestamp_after_max_ms: The topic's ``message.timestamp.after.max.ms``.
///     compacted: Whether the topic's ``cleanup.policy`` has ``compact``.
///     max_message_bytes: The topic's ``max.message.bytes``.
///     segment_bytes: The topic's ``segment.bytes``.
///     now_ms: The broker's clock, milliseconds since the epoch; now by default.
///     base_offset: Log end offset: the offset of the first record.
///     partition_leader_epoch: The leader epoch to store in batches.
///     log: The target partition, whose producer epochs, sequences and open transactions are then checked.
///         Duplicates are detected only against a producer's last batch.
///     limits: Bounds on untrusted input.
///
/// Raises:
///     ValueError: Settings contradict each other.
///     LimitError: The bytes exceed ``limits``.
///
/// Example:
///     >>> kbat.validate(data, compacted=True).error
///     'INVALID_RECORD'
#[pyfunction]
// text_signature is set because PyO3 would write -1 as an ellipsis
#[pyo3(signature = (data, *, request_version=13, origin="client", magic=2, compression="producer", level=None, timestamp_type="CreateTime", timestamp_before_max_ms=None, timestamp_after_max_ms=3_600_000, compacted=false, max_message_bytes=1_048_588, segment_bytes=1_073_741_824, now_ms=None, base_offset=0, partition_leader_epoch=-1, log=None, limits=None), text_signature = "(data, *, request_version=13, origin='client', magic=2, compression='producer', level=None, timestamp_type='CreateTime', timestamp_before_max_ms=None, timestamp_after_max_ms=3600000, compacted=False, max_message_bytes=1048588, segment_bytes=1073741824, now_ms=None, base_offset=0, partition_leader_epoch=-1, log=None, limits=None)")]
#[expect(clippy::too_many_arguments, reason = "the keyword arguments of the Python signature")]
pub(crate) fn validate(
    data: &Bound<'_, PyAny>,
    request_version: Option<i16>,
    origin: &str,
    magic: i64,
    compression: &str,
    level: Option<i32>,
    timestamp_type: &str,
    timestamp_before_max_ms: Option<i64>,
    timestamp_after_max_ms: i64,
    compacted: bool,
    max_message_bytes: usize,
    segment_bytes: usize,
    now_ms: Option<i64>,
    base_offset: i64,
    partition_leader_epoch: i32,
    log: Option<&Bound<'_, PyPartitionLog>>,
    limits: Option<PyLimits>,
) -> PyResult<PyValidation> {
    let py = data.py();
    let settings = ValidationSettings {
        request_version,
        origin: parse_origin(origin)?,
        magic: u8::try_from(magic)
            .map_err(|_| PyValueError::new_err(format!("magic {magic} is not a message format: use 0, 1 or 2")))?,
        compression: match compression {
            "producer" => None,
            codec => Some(codec.parse::<Compression>().or_raise(py)?),
        },
        level,
        timestamp_type: parse_timestamp_type(timestamp_type)?,
        timestamp_before_max_ms: timestamp_before_max_ms.unwrap_or(i64::MAX),
        timestamp_after_max_ms,
        compacted,
        max_message_bytes,
        segment_bytes,
        now_ms: now_ms.unwrap_or_else(now),
        base_offset,
        partition_leader_epoch,
    };
    let (bytes, limits) = (required_bytes(data)?, or_default(limits));
    let log = log.map(Bound::get);
    let answer = py.detach(|| match log {
        Some(log) => validate_after((*bytes).as_ref(), &settings, &limits, &log.0.producer_states()?),
        None => validate_bytes((*bytes).as_ref(), &settings, &limits),
    });
    answer.or_raise(py).map(PyValidation)
}

fn parse_origin(name: &str) -> PyResult<AppendOrigin> {
    match name {
        "client" => Ok(AppendOrigin::Client),
        "coordinator" => Ok(AppendOrigin::Coordinator),
        "raft_leader" => Ok(AppendOrigin::RaftLeader),
        _ => {
            let message = format!("unknown origin {name:?}: use \"client\", \"coordinator\" or \"raft_leader\"");
            Err(PyValueError::new_err(message))
        }
    }
}

/// The current time in milliseconds since the epoch.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// The response of a broker; see :func:`validate`. Fields that do not apply to the outcome are ``None``.
#[pyclass(frozen, name = "Validation", module = "kbat")]
pub(crate) struct PyValidation(Validation);

impl PyValidation {
    fn accepted<T>(&self, field: impl FnOnce(&crate::broker::validate::Accepted) -> T) -> Option<T> {
        match &self.0 {
            Validation::Accepted(accepted) => Some(field(accepted)),
            Validation::Refused(_) => None,
        }
    }

    fn refused<T>(&self, field: impl FnOnce(&crate::broker::validate::Refusal) -> T) -> Option<T> {
        match &self.0 {
            Validation::Accepted(_) => None,
            Validation::Refused(refusal) => Some(field(refusal)),
        }
    }
}

#[pymethods]
impl PyValidation {
    /// Whether the broker would append the batches.
    #[getter]
    fn ok(&self) -> bool {
        matches!(self.0, Validation::Accepted(_))
    }

    /// Name of the error in Kafka's protocol, such as ``"CORRUPT_MESSAGE"``.
    #[getter]
    fn error(&self) -> Option<&'static str> {
        self.refused(|refusal| refusal.code.name())
    }

    /// Number of the error in Kafka's protocol, 0 for none.
    #[getter]
    fn error_code(&self) -> i16 {
        self.refused(|refusal| refusal.code.code()).unwrap_or(0)
    }

    /// Why the broker would reject the request, in Kafka's own words if it has a message.
    #[getter]
    fn message(&self) -> Option<String> {
        self.refused(|refusal| refusal.message.clone())
    }

    /// Index and message of each invalid record that the broker would report, at most 100,000.
    #[getter]
    fn record_errors(&self) -> Vec<(u32, String)> {
        let all = |refusal: &crate::broker::validate::Refusal| {
            refusal.record_errors.iter().map(|error| (error.index, error.message.clone())).collect()
        };
        self.refused(all).unwrap_or_default()
    }

    /// Position in ``data`` at which the error was found.
    #[getter]
    fn position(&self) -> Option<u64> {
        self.refused(|refusal| refusal.position.byte).flatten()
    }

    /// The batches as the broker would store them.
    #[getter]
    fn bytes<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.accepted(|accepted| PyBytes::new(py, &accepted.bytes))
    }

    /// Offset after the last record.
    #[getter]
    fn next_offset(&self) -> Option<i64> {
        self.accepted(|accepted| accepted.next_offset)
    }

    /// Largest timestamp in milliseconds since the epoch, -1 if there is none.
    #[getter]
    fn max_timestamp(&self) -> Option<i64> {
        self.accepted(|accepted| accepted.max_timestamp)
    }

    /// Offset for that timestamp in a time index, -1 if there is none.
    #[getter]
    fn shallow_offset_of_max_timestamp(&self) -> Option<i64> {
        self.accepted(|accepted| accepted.shallow_offset_of_max_timestamp)
    }

    /// Whether the batch was rebuilt because of another codec or format, or offsets that do not count from 0.
    #[getter]
    fn is_rebuilt(&self) -> Option<bool> {
        self.accepted(|accepted| accepted.is_rebuilt)
    }

    /// First offset of the existing batch that this one duplicates.
    ///
    /// The broker responds with this offset and appends nothing.
    #[getter]
    fn duplicate_offset(&self) -> Option<i64> {
        self.accepted(|accepted| accepted.duplicate_offset).flatten()
    }

    /// Bytes of the whole batches in ``data``. A broker ignores the bytes after them without an error.
    #[getter]
    fn valid_len(&self) -> Option<usize> {
        self.accepted(|accepted| accepted.valid_len)
    }

    fn __bool__(&self) -> bool {
        self.ok()
    }

    fn __repr__(&self) -> String {
        match &self.0 {
            Validation::Accepted(accepted) => {
                format!("Validation(ok, {} bytes, next_offset={})", accepted.bytes.len(), accepted.next_offset)
            }
            Validation::Refused(refusal) => format!("Validation({refusal})"),
        }
    }
}
