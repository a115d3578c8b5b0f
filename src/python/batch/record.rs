//! `kbat.Record`.
//!
//! A Python iterator can't borrow, so records are spans of the batch's bytes, or of one decompressed buffer that all
//! records of an iteration share. They are parsed in chunks with the GIL released; their bytes are copied on access.

use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::format::attributes::TimestampType;
use crate::format::control::ControlRecord;
use crate::format::record::{Record, RecordPosition, RecordTail};
use crate::io::SharedBytes;
use crate::python::batch::control::PyControlRecord;
use crate::python::runtime::errors::OrRaise;
use crate::slices::Slices;

/// Maximum bytes of a batch for which parsing takes less time than releasing the GIL and acquiring it again.
pub(super) const SMALL_BATCH_LEN: usize = 1024;

/// A part of the shared bytes.
#[derive(Clone, Copy)]
pub(super) struct ByteSpan {
    pub(super) start: usize,
    pub(super) len: usize,
}

impl ByteSpan {
    /// Computes the span of `part`, a slice of `whole`. An empty one may be anywhere.
    pub(super) fn of(part: &[u8], whole: &[u8]) -> Self {
        let start = if part.is_empty() { 0 } else { part.as_ptr().addr().wrapping_sub(whole.as_ptr().addr()) };
        Self { start, len: part.len() }
    }

    pub(super) fn get(self, whole: &[u8]) -> &[u8] {
        whole.part(self.start..self.start.saturating_add(self.len))
    }
}

/// A record without its bytes.
#[derive(Clone, Copy)]
pub(super) struct RecordSpans {
    offset: i64,
    timestamp: i64,
    timestamp_type: Option<TimestampType>,
    sequence: i32,
    key: Option<ByteSpan>,
    value: Option<ByteSpan>,
    headers: ByteSpan,
    header_count: u32,
    place: RecordPosition,
}

impl RecordSpans {
    pub(super) fn of(record: &Record<'_>, whole: &[u8]) -> Self {
        let (headers, header_count) = match record.extra {
            RecordTail::Headers { bytes, count } => (ByteSpan::of(bytes, whole), count),
            RecordTail::Message(_) => (ByteSpan { start: 0, len: 0 }, 0),
        };
        Self {
            offset: record.offset,
            timestamp: record.timestamp,
            timestamp_type: record.timestamp_type,
            sequence: record.sequence,
            key: record.key.map(|key| ByteSpan::of(key, whole)),
            value: record.value.map(|value| ByteSpan::of(value, whole)),
            headers,
            header_count,
            place: record.place,
        }
    }
}

/// Records parsed together, and the bytes that their spans refer to.
pub(super) struct RecordChunk {
    pub(super) bytes: SharedBytes,
    pub(super) spans: Vec<RecordSpans>,
    pub(super) is_control: bool,
    /// The file of control records, for errors when they are parsed later.
    pub(super) path: Option<PathBuf>,
}

/// The fields of a record that is created without a batch. Headers are in their stored form.
pub(crate) struct RecordParts<'r> {
    pub(crate) offset: i64,
    pub(crate) timestamp: i64,
    pub(crate) timestamp_type: Option<TimestampType>,
    pub(crate) sequence: i32,
    pub(crate) key: Option<&'r [u8]>,
    pub(crate) value: Option<&'r [u8]>,
    pub(crate) headers: &'r [u8],
    pub(crate) header_count: u32,
    pub(crate) is_control: bool,
}

/// The data of a record, in the order of `pickle::record`'s arguments.
type RecordState<'py> = (
    i64,
    i64,
    Option<&'static str>,
    i32,
    Option<Bound<'py, PyBytes>>,
    Option<Bound<'py, PyBytes>>,
    Bound<'py, PyBytes>,
    u32,
    bool,
);

/// The state of a record that `pickle` stores.
fn record_state<'py>(
    py: Python<'py>,
    record: &Record<'_>,
    headers: &[u8],
    count: u32,
    is_control: bool,
) -> RecordState<'py> {
    (
        record.offset,
        record.timestamp,
        record.timestamp_type.map(TimestampType::name),
        record.sequence,
        record.key.map(|key| PyBytes::new(py, key)),
        record.value.map(|value| PyBytes::new(py, value)),
        PyBytes::new(py, headers),
        count,
        is_control,
    )
}

/// A record. Its key, value and headers are copied out of the batch on access.
///
/// Records are equal if all their fields are. They can be hashed and pickled.
#[pyclass(frozen, eq, hash, name = "Record", module = "kbat")]
pub(crate) struct PyRecord {
    pub(super) chunk: Arc<RecordChunk>,
    pub(super) index: usize,
}

impl PartialEq for PyRecord {
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value()
    }
}

impl Hash for PyRecord {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.value().hash(state);
    }
}

impl PyRecord {
    /// A record that copies its bytes and can outlive its batch.
    pub(crate) fn copied(record: &Record<'_>) -> Self {
        let (headers, header_count) = match record.extra {
            RecordTail::Headers { bytes, count } => (bytes, count),
            RecordTail::Message(_) => (&[][..], 0),
        };
        Self::of_parts(&RecordParts {
            offset: record.offset,
            timestamp: record.timestamp,
            timestamp_type: record.timestamp_type,
            sequence: record.sequence,
            key: record.key,
            value: record.value,
            headers,
            header_count,
            is_control: false,
        })
    }

    /// A record with its own bytes.
    pub(crate) fn of_parts(parts: &RecordParts<'_>) -> Self {
        let (key, value) = (parts.key.unwrap_or_default(), parts.value.unwrap_or_default());
        let bytes = [key, value, parts.headers].concat();
        let span = |start: usize, part: &[u8]| ByteSpan { start, len: part.len() };
        let value_start = key.len();
        let spans = vec![RecordSpans {
            offset: parts.offset,
            timestamp: parts.timestamp,
            timestamp_type: parts.timestamp_type,
            sequence: parts.sequence,
            key: parts.key.map(|key| span(0, key)),
            value: parts.value.map(|value| span(value_start, value)),
            headers: span(value_start.saturating_add(value.len()), parts.headers),
            header_count: parts.header_count,
            place: RecordPosition { position: 0, base_offset: parts.offset, index: 0 },
        }];
        let chunk = RecordChunk { bytes: Arc::new(bytes), spans, is_control: parts.is_control, path: None };
        Self { chunk: Arc::new(chunk), index: 0 }
    }

    /// The values that records are compared and hashed by.
    fn value(&self) -> impl PartialEq + Hash + '_ {
        let (core, spans) = (self.core(), self.spans());
        (
            (core.offset, core.timestamp, core.timestamp_type, core.sequence),
            (core.key, core.value, spans.headers.get(self.whole()), spans.header_count),
            self.chunk.is_control,
        )
    }

    fn whole(&self) -> &[u8] {
        (*self.chunk.bytes).as_ref()
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "a record is created with an index of its chunk; a wrong index must not return another record"
    )]
    fn spans(&self) -> &RecordSpans {
        &self.chunk.spans[self.index]
    }

    fn core(&self) -> Record<'_> {
        let whole = self.whole();
        let spans = self.spans();
        Record {
            offset: spans.offset,
            timestamp: spans.timestamp,
            timestamp_type: spans.timestamp_type,
            key: spans.key.map(|span| span.get(whole)),
            value: spans.value.map(|span| span.get(whole)),
            sequence: spans.sequence,
            extra: RecordTail::Headers { bytes: spans.headers.get(whole), count: spans.header_count },
            place: spans.place,
        }
    }

    fn copy<'py>(&self, py: Python<'py>, span: Option<ByteSpan>) -> Option<Bound<'py, PyBytes>> {
        span.map(|span| PyBytes::new(py, span.get(self.whole())))
    }
}

#[pymethods]
impl PyRecord {
    /// Offset in the partition.
    #[getter]
    fn offset(&self) -> i64 {
        self.spans().offset
    }

    /// Milliseconds since the epoch, -1 if there is none.
    #[getter]
    fn timestamp(&self) -> i64 {
        self.spans().timestamp
    }

    /// ``"CreateTime"``, ``"LogAppendTime"``, or None for magic 0.
    #[getter]
    fn timestamp_type(&self) -> Option<&'static str> {
        self.spans().timestamp_type.map(TimestampType::name)
    }

    /// The key, or None for Kafka's null, which differs from an empty key.
    #[getter]
    fn key<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.copy(py, self.spans().key)
    }

    /// The value, or None for Kafka's null, which is a tombstone in compacted topics.
    #[getter(value)]
    fn value_bytes<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        self.copy(py, self.spans().value)
    }

    /// Headers in their order, including duplicates, as ``(str, bytes | None)``.
    ///
    /// Bytes that are not valid UTF-8 are replaced with U+FFFD.
    #[getter]
    fn headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for header in self.core().headers() {
            let header = header.or_raise(py)?;
            list.append((PyString::new(py, &header.key_lossy()), header.value().map(|value| PyBytes::new(py, value))))?;
        }
        Ok(list)
    }

    /// Headers as stored: ``(bytes, bytes | None)``.
    #[getter]
    fn raw_headers<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for header in self.core().headers() {
            let header = header.or_raise(py)?;
            list.append((PyBytes::new(py, header.key()), header.value().map(|value| PyBytes::new(py, value))))?;
        }
        Ok(list)
    }

    /// Sequence from its producer, -1 if there is none.
    #[getter]
    fn sequence(&self) -> i32 {
        self.spans().sequence
    }

    /// The content of a control record; None for data records.
    ///
    /// Raises:
    ///     CorruptError: The key or value of a control record can't be parsed.
    #[getter]
    fn control(&self, py: Python<'_>) -> PyResult<Option<PyControlRecord>> {
        if !self.chunk.is_control {
            return Ok(None);
        }
        let control = ControlRecord::parse(&self.core()).map_err(|error| match &self.chunk.path {
            Some(path) => error.with_path(path),
            None => error,
        });
        control.map(PyControlRecord).map(Some).or_raise(py)
    }

    /// Return the fields as a dictionary: ``offset timestamp timestamp_type key value headers sequence``.
    fn asdict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        fields.set_item("offset", self.offset())?;
        fields.set_item("timestamp", self.timestamp())?;
        fields.set_item("timestamp_type", self.timestamp_type())?;
        fields.set_item("key", self.key(py))?;
        fields.set_item("value", self.value_bytes(py))?;
        fields.set_item("headers", self.headers(py)?)?;
        fields.set_item("sequence", self.sequence())?;
        Ok(fields)
    }

    /// Supports pickling.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, RecordState<'py>)> {
        let (spans, is_control) = (self.spans(), self.chunk.is_control);
        let headers = spans.headers.get(self.whole());
        let state = record_state(py, &self.core(), headers, spans.header_count, is_control);
        Ok((py.import("kbat._core")?.getattr("_record")?, state))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let show = |span: Option<ByteSpan>| -> PyResult<String> {
            let Some(span) = span else { return Ok("None".to_owned()) };
            let shown = ByteSpan { start: span.start, len: span.len.min(40) };
            let text = PyBytes::new(py, shown.get(self.whole())).repr()?.to_string();
            Ok(if span.len > shown.len { format!("{text}… ({} bytes)", span.len) } else { text })
        };
        let headers = match self.spans().header_count {
            0 => String::new(),
            count => format!(", {count} headers"),
        };
        Ok(format!(
            "Record(offset={}, timestamp={}, key={}, value={}{headers})",
            self.spans().offset,
            self.spans().timestamp,
            show(self.spans().key)?,
            show(self.spans().value)?,
        ))
    }
}
