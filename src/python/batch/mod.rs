//! `kbat.Batch`.

pub(crate) mod control;
pub(crate) mod pickle;
pub(crate) mod read;
pub(crate) mod record;
mod records;

use std::ffi::OsString;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};

pub(crate) use read::PyBatchIterator;
pub(crate) use records::PyRecordIterator;

use crate::compression::{Compression, Scratch};
use crate::error::{Error, Result};
use crate::format::attributes::TimestampType;
use crate::format::batch::Batch;
use crate::io::SharedBytes;
use crate::limits::Limits;
use crate::log::SharedBatch;
use crate::num::u64_of;
use crate::python::arguments::limits::PyLimits;
use crate::python::batch::record::{PyRecord, RecordChunk, RecordSpans, SMALL_BATCH_LEN};
use crate::python::html::{self, Table};
use crate::python::runtime::errors::raise;
use crate::slices::Slices;

/// Adds what reads batches to the extension module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<PyBatch>()?;
    module.add_class::<PyBatchIterator>()?;
    module.add_class::<control::PyControlRecord>()?;
    module.add_class::<PyRecord>()?;
    module.add_class::<PyRecordIterator>()?;
    module.add_function(wrap_pyfunction!(read::read_batches, module)?)?;
    // not add_function, which would make them public
    module.setattr("_record", wrap_pyfunction!(pickle::record, module)?)?;
    module.setattr("_batch", wrap_pyfunction!(pickle::batch, module)?)
}

/// The settings that all batches of one call share.
pub(crate) struct ReadSettings {
    pub(crate) check_crc: bool,
    pub(crate) limits: Limits,
}

/// A batch of records. Only its header is parsed up front. Iterate it to get its records, any number of times.
///
/// For magic 0 and 1, every uncompressed message is a batch of one record, and a compressed message set is one
/// batch.
///
/// Batches are equal if their bytes and positions are. They can be hashed and pickled.
#[pyclass(frozen, eq, hash, name = "Batch", module = "kbat")]
pub(crate) struct PyBatch {
    batch: SharedBatch,
    settings: Arc<ReadSettings>,
    path: Option<PathBuf>,
    /// Base offset of a compressed set of magic 0 or 1, once it has been computed.
    first_offset: OnceLock<i64>,
}

impl PartialEq for PyBatch {
    fn eq(&self, other: &Self) -> bool {
        self.batch.position == other.batch.position && self.bytes() == other.bytes()
    }
}

impl Hash for PyBatch {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.batch.position, self.bytes()).hash(state);
    }
}

impl PyBatch {
    pub(crate) fn new(batch: SharedBatch, settings: &Arc<ReadSettings>, path: Option<PathBuf>) -> Self {
        Self { batch, settings: Arc::clone(settings), path, first_offset: OnceLock::new() }
    }

    pub(crate) fn core(&self) -> Result<Batch<'_>> {
        Batch::parse(self.bytes(), self.batch.position)
    }

    fn bytes(&self) -> &[u8] {
        let SharedBatch { bytes, range, .. } = &self.batch;
        (**bytes).as_ref().part(range.clone())
    }

    pub(crate) fn settings(&self) -> &ReadSettings {
        &self.settings
    }

    /// Bytes of the batch.
    pub(crate) fn len(&self) -> usize {
        self.batch.range.len()
    }

    /// Whether its records are stored uncompressed.
    pub(crate) fn is_plain(&self) -> bool {
        self.core().is_ok_and(|batch| !batch.attributes().is_compressed())
    }

    /// The buffer that contains the batch.
    pub(crate) fn shared(&self) -> SharedBytes {
        Arc::clone(&self.batch.bytes)
    }

    /// The file that contains the batch.
    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    pub(crate) fn raise(&self, py: Python<'_>, error: Error) -> PyErr {
        match &self.path {
            Some(path) => raise(py, &error.with_path(path)),
            None => raise(py, &error),
        }
    }

    /// The record of a small v0 or v1 message, which is a batch of one record and needs no iterator; `None` for
    /// every other batch.
    fn only_record(&self) -> Result<Option<PyRecord>> {
        let core = self.core()?;
        if core.magic() >= 2 || core.attributes().is_compressed() || self.len() > SMALL_BATCH_LEN {
            return Ok(None);
        }
        let settings = self.settings();
        if settings.check_crc {
            core.verify_crc()?;
        }
        let mut scratch = Scratch::new();
        let Some(record) = core.records(&mut scratch, &settings.limits)?.next().transpose()? else { return Ok(None) };
        let bytes = self.shared();
        let spans = vec![RecordSpans::of(&record, (*bytes).as_ref())];
        Ok(Some(PyRecord { chunk: Arc::new(RecordChunk { bytes, spans, is_control: false, path: None }), index: 0 }))
    }

    fn with<T>(&self, py: Python<'_>, read: impl FnOnce(Batch<'_>) -> T) -> PyResult<T> {
        self.core().map(read).map_err(|error| self.raise(py, error))
    }
}

#[pymethods]
impl PyBatch {
    /// Iterates over the records.
    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        match slf.get().only_record() {
            Ok(Some(record)) => Ok(PyTuple::new(py, [record])?.try_iter()?.into_any()),
            Ok(None) => Ok(Bound::new(py, PyRecordIterator::new(slf)?)?.into_any()),
            Err(error) => Err(slf.get().raise(py, error)),
        }
    }

    /// Position in the file or buffer, in bytes.
    #[getter]
    fn position(&self) -> u64 {
        self.batch.position
    }

    /// Bytes of the batch, including its 12 bytes of log overhead.
    #[getter]
    fn size(&self) -> usize {
        self.batch.range.len()
    }

    /// Message format: 0, 1 or 2.
    #[getter]
    fn magic(&self, py: Python<'_>) -> PyResult<u8> {
        self.with(py, |batch| batch.magic())
    }

    /// Offset of the first record when the batch was written.
    ///
    /// For compressed sets of magic 0 and 1, the first access decompresses the set.
    #[getter]
    fn base_offset(&self, py: Python<'_>) -> PyResult<i64> {
        if let Some(&offset) = self.first_offset.get() {
            return Ok(offset);
        }
        let find = || self.core()?.first_offset(&mut Scratch::new(), &self.settings.limits);
        let offset = py.detach(find).map_err(|error| self.raise(py, error))?;
        Ok(*self.first_offset.get_or_init(|| offset))
    }

    /// Offset of the last record when the batch was written.
    #[getter]
    fn last_offset(&self, py: Python<'_>) -> PyResult<i64> {
        self.with(py, |batch| batch.last_offset())
    }

    /// ``last_offset`` + 1.
    #[getter]
    fn next_offset(&self, py: Python<'_>) -> PyResult<i64> {
        self.with(py, |batch| batch.next_offset())
    }

    /// Record count as declared in the header.
    ///
    /// None for compressed sets of magic 0 and 1, whose headers do not have it.
    #[getter]
    fn record_count(&self, py: Python<'_>) -> PyResult<Option<i32>> {
        self.with(py, |batch| batch.record_count())
    }

    /// Leader epoch at the time of append, -1 if there is none.
    #[getter]
    fn partition_leader_epoch(&self, py: Python<'_>) -> PyResult<i32> {
        self.with(py, |batch| batch.partition_leader_epoch())
    }

    /// The stored checksum, unsigned: CRC-32C for magic 2, CRC-32 for magic 0 and 1.
    #[getter]
    fn crc(&self, py: Python<'_>) -> PyResult<u32> {
        self.with(py, |batch| batch.crc())
    }

    /// Whether the stored checksum matches the bytes. Computed on each access.
    #[getter]
    fn crc_ok(&self, py: Python<'_>) -> PyResult<bool> {
        let verify = || self.core().map(|batch| batch.computed_crc() == batch.crc());
        py.detach(verify).map_err(|error| self.raise(py, error))
    }

    /// The attributes as stored: 16 bits in magic 2, 8 bits in magic 0 and 1.
    #[getter]
    fn attributes(&self, py: Python<'_>) -> PyResult<u16> {
        self.with(py, |batch| batch.attributes().bits())
    }

    /// Kafka's name of the codec, such as ``"zstd"``; ``"none"`` if the batch is not compressed.
    ///
    /// Raises:
    ///     UnsupportedError: The attributes do not name a codec.
    #[getter]
    fn compression(&self, py: Python<'_>) -> PyResult<&'static str> {
        self.with(py, |batch| batch.compression().map(Compression::name))?.map_err(|error| self.raise(py, error))
    }

    /// ``"CreateTime"``, ``"LogAppendTime"``, or None for magic 0, which has no timestamps.
    #[getter]
    fn timestamp_type(&self, py: Python<'_>) -> PyResult<Option<&'static str>> {
        self.with(py, |batch| batch.timestamp_type().map(TimestampType::name))
    }

    /// The stored base timestamp, milliseconds since the epoch.
    ///
    /// The delete horizon if ``delete_horizon_ms`` is not None; the message's timestamp for magic 1, -1 for magic 0.
    #[getter]
    fn base_timestamp(&self, py: Python<'_>) -> PyResult<i64> {
        self.with(py, |batch| batch.base_timestamp())
    }

    /// Largest timestamp of the records, milliseconds since the epoch, -1 if there is none.
    #[getter]
    fn max_timestamp(&self, py: Python<'_>) -> PyResult<i64> {
        self.with(py, |batch| batch.max_timestamp())
    }

    /// Producer id, -1 if there is none.
    #[getter]
    fn producer_id(&self, py: Python<'_>) -> PyResult<i64> {
        self.with(py, |batch| batch.producer_id())
    }

    /// Producer epoch, -1 if there is none.
    #[getter]
    fn producer_epoch(&self, py: Python<'_>) -> PyResult<i16> {
        self.with(py, |batch| batch.producer_epoch())
    }

    /// Sequence of the first record, -1 if there is none.
    #[getter]
    fn base_sequence(&self, py: Python<'_>) -> PyResult<i32> {
        self.with(py, |batch| batch.base_sequence())
    }

    /// Sequence of the last record, -1 if there is none. Sequences wrap from 2**31 - 1 to 0.
    #[getter]
    fn last_sequence(&self, py: Python<'_>) -> PyResult<i32> {
        self.with(py, |batch| batch.last_sequence())
    }

    /// Whether the batch belongs to a transaction.
    #[getter]
    fn is_transactional(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |batch| batch.is_transactional())
    }

    /// Whether the batch holds control records, which Kafka's consumers never return.
    #[getter]
    fn is_control(&self, py: Python<'_>) -> PyResult<bool> {
        self.with(py, |batch| batch.is_control())
    }

    /// When compaction may remove the batch's tombstones or markers, milliseconds since the epoch.
    ///
    /// None if it is not set.
    #[getter]
    fn delete_horizon_ms(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        self.with(py, |batch| batch.delete_horizon_ms())
    }

    /// Return the fields of the header as a dictionary.
    ///
    /// ``base_offset`` is ``None`` for compressed sets of magic 0 and 1, because computing it requires decompression.
    fn asdict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let core = self.core().map_err(|error| self.raise(py, error))?;
        let fields = PyDict::new(py);
        fields.set_item("position", self.position())?;
        fields.set_item("size", self.size())?;
        fields.set_item("magic", core.magic())?;
        fields.set_item("base_offset", core.base_offset())?;
        fields.set_item("last_offset", core.last_offset())?;
        fields.set_item("record_count", core.record_count())?;
        fields.set_item("partition_leader_epoch", core.partition_leader_epoch())?;
        fields.set_item("compression", self.compression(py)?)?;
        fields.set_item("timestamp_type", self.timestamp_type(py)?)?;
        fields.set_item("base_timestamp", self.base_timestamp(py)?)?;
        fields.set_item("max_timestamp", core.max_timestamp())?;
        fields.set_item("producer_id", core.producer_id())?;
        fields.set_item("producer_epoch", core.producer_epoch())?;
        fields.set_item("base_sequence", core.base_sequence())?;
        fields.set_item("is_transactional", core.is_transactional())?;
        fields.set_item("is_control", core.is_control())?;
        fields.set_item("delete_horizon_ms", core.delete_horizon_ms())?;
        Ok(fields)
    }

    /// Supports pickling.
    #[expect(clippy::type_complexity, reason = "the arguments of a function")]
    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>, u64, bool, PyLimits, Option<OsString>))> {
        let ReadSettings { check_crc, limits } = self.settings();
        let path = self.path.as_ref().map(|path| path.as_os_str().to_owned());
        let state = (PyBytes::new(py, self.bytes()), self.position(), *check_crc, PyLimits(limits.clone()), path);
        Ok((py.import("kbat._core")?.getattr("_batch")?, state))
    }

    /// Copy the bytes of the batch.
    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.with(py, |batch| PyBytes::new(py, batch.bytes()))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |batch| {
            let count = batch.record_count().map_or("?".to_owned(), |count| count.to_string());
            let base = batch.base_offset().map_or("?".to_owned(), |offset| offset.to_string());
            let compression = batch.compression().map_or("unknown codec", Compression::name);
            let flags = [(batch.is_transactional(), ", transactional"), (batch.is_control(), ", control")];
            let flags: String = flags.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
            format!(
                "Batch(offsets {base}..{}, {count} records, magic {}, {compression}, {} bytes at {}{flags})",
                batch.last_offset(),
                batch.magic(),
                batch.size(),
                batch.position(),
            )
        })
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        self.with(py, |batch| self.html(&batch))
    }
}

impl PyBatch {
    /// The header as an HTML table.
    fn html(&self, batch: &Batch<'_>) -> String {
        let unknown = || "known when decompressed".to_owned();
        let base = batch.base_offset().map_or_else(unknown, |offset| offset.to_string());
        let flags = [(batch.is_transactional(), "transactional"), (batch.is_control(), "control")];
        let flags: Vec<&str> = flags.iter().filter(|(set, _)| *set).map(|(_, name)| *name).collect();
        let producer =
            format!("{}, epoch {}, sequence {}", batch.producer_id(), batch.producer_epoch(), batch.base_sequence());
        Table::new("Batch")
            .row("offsets", format!("{base} to {}", batch.last_offset()))
            .row("records", batch.record_count().map_or_else(unknown, |count| count.to_string()))
            .row("magic", batch.magic())
            .row("compression", batch.compression().map_or("unknown codec", Compression::name))
            .row("size", html::size(u64_of(batch.size())))
            .row("position", batch.position())
            .row_if("file", self.path.as_ref().map(|path| path.display()))
            .row_if("timestamp type", batch.timestamp_type().map(TimestampType::name))
            .row("max timestamp", html::instant(batch.max_timestamp()))
            .row_if("producer", (batch.producer_id() >= 0).then_some(producer))
            .row("leader epoch", batch.partition_leader_epoch())
            .row_if("flags", (!flags.is_empty()).then(|| flags.join(", ")))
            .finish()
    }
}
