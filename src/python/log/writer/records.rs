//! `kbat._core.writer.RecordWriter`.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::compression::Compression;
use crate::format::builder::BatchFields;
use crate::format::record::NewHeader;
use crate::log::{LogWriterOptions, PlacedRecord, RecordWriter};
use crate::python::arguments::names::timestamp_type as parse_timestamp_type;
use crate::python::arguments::record::{OwnedHeader, borrowed, own_headers};
use crate::python::runtime::errors::OrRaise;
use crate::text::append_json_lines;

/// Writes a partition whose records keep their offsets and timestamps.
///
/// Records with consecutive offsets and ``CreateTime`` become the batches that :class:`kbat.LogWriter` makes of them.
/// Others are in batches with gaps, with the time of an append, or of message format 0.
///
/// Args:
///     directory: The partition directory.
///     start_offset: First offset of a new partition.
///     compression: Codec of the batches.
///     level: Compression level, numbered as in Kafka.
///     batch_size: Bytes of records, before compression, at which a batch is full.
///     segment_bytes: Maximum bytes of a segment.
///
/// Raises:
///     ValueError: An argument is invalid, or the directory has another writer.
///     OSError: Reading or writing failed.
#[pyclass(frozen, name = "RecordWriter", module = "kbat._core.writer")]
pub(crate) struct PyRecordWriter(Mutex<Option<RecordWriter>>);

#[pymethods]
impl PyRecordWriter {
    #[new]
    #[pyo3(signature = (directory, *, start_offset=0, compression="none", level=None, batch_size=16384, segment_bytes=1_073_741_824), text_signature = "(directory, *, start_offset=0, compression='none', level=None, batch_size=16384, segment_bytes=1073741824)")]
    fn new(
        py: Python<'_>,
        directory: PathBuf,
        start_offset: i64,
        compression: &str,
        level: Option<i32>,
        batch_size: usize,
        segment_bytes: u64,
    ) -> PyResult<Self> {
        let options = LogWriterOptions {
            start_offset,
            compression: compression.parse::<Compression>().or_raise(py)?,
            level,
            batch_size,
            segment_bytes,
            ..LogWriterOptions::default()
        };
        let writer = py.detach(|| RecordWriter::open(&directory, options)).or_raise(py)?;
        Ok(Self(Mutex::new(Some(writer))))
    }

    /// The offset after the last record.
    ///
    /// Raises:
    ///     ValueError: The writer is closed.
    #[getter]
    fn end_offset(&self, py: Python<'_>) -> PyResult<i64> {
        self.with(py, |writer| Ok(writer.end_offset()))
    }

    /// Append a record.
    ///
    /// Args:
    ///     key: Bytes-like, or None for null.
    ///     value: Bytes-like, or None for null.
    ///     offset: An offset above the last one; None for the next one.
    ///     timestamp: Milliseconds since the epoch, -1 for none.
    ///     timestamp_type: ``"CreateTime"`` or ``"LogAppendTime"``; None for a record of message format 0.
    ///     create_time: The producer's timestamp, which a batch stores below the time of an append, if it is known.
    ///     headers: Pairs of key and value, as for :meth:`kbat.LogWriter.append`.
    ///
    /// Raises:
    ///     ValueError: An offset that does not rise, or Kafka's rules forbid the record, which is then not appended.
    ///     OSError: A full batch can't be written.
    #[pyo3(signature = (key, value, *, timestamp, offset=None, timestamp_type=Some("CreateTime"), create_time=None, headers=None), text_signature = "($self, key, value, *, timestamp, offset=None, timestamp_type='CreateTime', create_time=None, headers=None)")]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments of the Python signature")]
    fn append(
        &self,
        py: Python<'_>,
        key: &Bound<'_, PyAny>,
        value: &Bound<'_, PyAny>,
        timestamp: i64,
        offset: Option<i64>,
        timestamp_type: Option<&str>,
        create_time: Option<i64>,
        headers: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let timestamp_type = timestamp_type.map(parse_timestamp_type).transpose()?;
        let owned = headers.map(own_headers).transpose()?.unwrap_or_default();
        let headers: Vec<NewHeader<'_>> = owned.iter().map(OwnedHeader::as_new).collect();
        borrowed(key, "key", |key| {
            borrowed(value, "value", |value| {
                let record =
                    PlacedRecord { offset, timestamp, timestamp_type, create_time, key, value, headers: &headers };
                self.with(py, |writer| writer.append(&record).map(drop))
            })
        })
    }

    /// Begin a batch with these fields, of which those that a message format does not have are -1.
    ///
    /// It has the next records up to its last offset, however large it becomes. With the records that it had before,
    /// and without compression, it is the same byte for byte.
    ///
    /// Args:
    ///     base_offset: Offset of the first record when the batch was written.
    ///     last_offset: Offset of the last record when the batch was written.
    ///     magic: Message format: 0, 1 or 2.
    ///     attributes: The attributes as stored: codec, timestamp type and flags.
    ///     partition_leader_epoch: Leader epoch of the append.
    ///     base_timestamp: The stored base timestamp, or the delete horizon, in milliseconds since the epoch.
    ///     max_timestamp: The largest timestamp, or the time of the append, in milliseconds since the epoch.
    ///     producer_id: Producer id.
    ///     producer_epoch: Producer epoch.
    ///     base_sequence: Sequence of the first record.
    ///     record_count: Number of records that will be appended; None if it is unknown.
    ///
    /// Raises:
    ///     ValueError: Offsets that are not above those before, fields that Kafka's rules forbid, or another number of
    ///         records in the batch before than its record count.
    ///     OverflowError: A number does not fit its field.
    ///     OSError: The batch before can't be written.
    #[pyo3(signature = (*, base_offset, last_offset, magic, attributes, partition_leader_epoch, base_timestamp, max_timestamp, producer_id, producer_epoch, base_sequence, record_count=None))]
    #[expect(clippy::too_many_arguments, reason = "the keyword arguments of the Python signature")]
    fn begin_batch(
        &self,
        py: Python<'_>,
        base_offset: i64,
        last_offset: i64,
        magic: u8,
        attributes: u16,
        partition_leader_epoch: i32,
        base_timestamp: i64,
        max_timestamp: i64,
        producer_id: i64,
        producer_epoch: i16,
        base_sequence: i32,
        record_count: Option<u32>,
    ) -> PyResult<()> {
        let fields = BatchFields {
            base_offset,
            last_offset,
            magic,
            attributes,
            partition_leader_epoch,
            base_timestamp,
            max_timestamp,
            producer_id,
            producer_epoch,
            base_sequence,
            record_count,
        };
        self.with(py, |writer| writer.begin_batch(&fields))
    }

    /// Append complete batches, which keep their offsets.
    ///
    /// Args:
    ///     data: Bytes-like: one batch or several.
    ///
    /// Raises:
    ///     CorruptError: A batch is damaged.
    ///     ValueError: The bytes are not whole batches, or offsets do not rise.
    ///     OSError: Writing failed.
    fn append_batches(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        borrowed(data, "data", |data| self.with(py, |writer| writer.append_batches(data.unwrap_or_default())))
    }

    /// Append the records of JSON lines of one topic and partition, as ``kbat cat`` prints them.
    ///
    /// Args:
    ///     data: The lines.
    ///     start: Byte at which the first line begins.
    ///     topic: The topic that the lines must have.
    ///     partition: The partition that they must have.
    ///
    /// Returns:
    ///     The byte at which the first line begins that was not appended, and the number of records. That line has
    ///     another form, topic or partition, or :meth:`append` would refuse its record or :meth:`begin_batch` its
    ///     batch.
    ///
    /// Raises:
    ///     OSError: A full batch can't be written.
    fn append_json_lines(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyBytes>,
        start: usize,
        topic: Option<&str>,
        partition: Option<i32>,
    ) -> PyResult<(usize, u64)> {
        let lines = data.as_bytes().get(start..).unwrap_or_default();
        let appended = self.with(py, |writer| append_json_lines(writer, lines, topic, partition))?;
        Ok((start.saturating_add(appended.bytes), appended.records))
    }

    /// Write everything, and close the files. A second call has no effect.
    ///
    /// Raises:
    ///     OSError: Writing failed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let close = || self.0.lock().unwrap_or_else(PoisonError::into_inner).take().map_or(Ok(()), RecordWriter::close);
        py.detach(close).or_raise(py)
    }
}

impl PyRecordWriter {
    /// Runs `work` on the open writer, without the GIL.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut RecordWriter) -> crate::error::Result<T> + Send,
    ) -> PyResult<T> {
        let done = py.detach(|| self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut().map(work));
        match done {
            Some(done) => done.or_raise(py),
            None => Err(PyValueError::new_err("the writer is closed")),
        }
    }
}
