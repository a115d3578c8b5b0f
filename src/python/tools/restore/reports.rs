//! The report of `restore`.

use std::ffi::OsString;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::restore::{
    OpenTransaction, RestoreCut, RestoreReport, RestoredOffset, RestoredPartition, RestoredSegment, SkippedPartition,
};

/// A segment in the result of a restore.
#[pyclass(frozen, eq, name = "RestoredSegment", module = "kbat")]
#[derive(PartialEq)]
pub(super) struct PyRestoredSegment(RestoredSegment);

#[pymethods]
impl PyRestoredSegment {
    /// Base offset in the file's name.
    #[getter]
    fn base_offset(&self) -> i64 {
        self.0.base_offset
    }

    /// The offset after the last batch.
    #[getter]
    fn end_offset(&self) -> i64 {
        self.0.end_offset
    }

    /// Path or URL of the file that was read.
    #[getter]
    fn path(&self) -> OsString {
        self.0.path.as_os_str().to_owned()
    }

    /// Bytes of the file that was read.
    #[getter]
    fn source_bytes(&self) -> u64 {
        self.0.source_bytes
    }

    /// Bytes of batches in the result.
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.bytes
    }

    /// Return the fields as a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("base_offset", self.base_offset())?;
        dict.set_item("end_offset", self.end_offset())?;
        dict.set_item("path", self.path())?;
        dict.set_item("source_bytes", self.source_bytes())?;
        dict.set_item("bytes", self.bytes())?;
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        let (base, end, bytes) = (self.0.base_offset, self.0.end_offset, self.0.bytes);
        format!("RestoredSegment(base_offset={base}, end_offset={end}, bytes={bytes})")
    }
}

/// A partition in the result of a restore. ``str(partition)`` is a text with one line per finding.
#[pyclass(frozen, eq, name = "RestoredPartition", module = "kbat")]
#[derive(PartialEq)]
pub(super) struct PyRestoredPartition(RestoredPartition);

#[pymethods]
impl PyRestoredPartition {
    /// Name of the topic.
    #[getter]
    fn topic(&self) -> &str {
        &self.0.partition.topic
    }

    /// Number of the partition.
    #[getter]
    fn partition(&self) -> i32 {
        self.0.partition.partition
    }

    /// Path or URL of the source directory.
    #[getter]
    fn path(&self) -> OsString {
        self.0.path.as_os_str().to_owned()
    }

    /// Id of the topic in the new cluster; None if unknown, so that there is no ``partition.metadata``.
    #[getter]
    fn topic_id(&self) -> Option<String> {
        self.0.topic_id.map(|id| id.to_string())
    }

    /// Id of the topic in the source's ``partition.metadata``, if there is one.
    #[getter]
    fn source_topic_id(&self) -> Option<String> {
        self.0.source_topic_id.map(|id| id.to_string())
    }

    /// The segments, sorted by base offset.
    #[getter]
    fn segments(&self) -> Vec<PyRestoredSegment> {
        self.0.segments.iter().cloned().map(PyRestoredSegment).collect()
    }

    /// Bytes of batches in the result.
    #[getter]
    fn byte_count(&self) -> u64 {
        self.0.byte_count()
    }

    /// First offset that consumers may read.
    #[getter]
    fn start_offset(&self) -> i64 {
        self.0.start_offset
    }

    /// The offset after the last batch.
    #[getter]
    fn end_offset(&self) -> i64 {
        self.0.end_offset
    }

    /// Timestamp of the first record, milliseconds since the epoch; None if it has none or is unknown.
    #[getter]
    fn first_timestamp(&self) -> Option<i64> {
        self.0.first_timestamp
    }

    /// Largest timestamp, milliseconds since the epoch; None if no record has one.
    #[getter]
    fn max_timestamp(&self) -> Option<i64> {
        self.0.max_timestamp
    }

    /// The latest leader epoch; None if unknown.
    #[getter]
    fn leader_epoch(&self) -> Option<i32> {
        self.0.leader_epoch
    }

    /// First offset that is not restored because of ``until_timestamp`` or ``until_offset``, if there is one.
    #[getter]
    fn cut_offset(&self) -> Option<i64> {
        self.0.cut.map(|cut| cut.offset)
    }

    /// Timestamp of the record at ``cut_offset`` if that ended the log, milliseconds since the epoch.
    #[getter]
    fn cut_timestamp(&self) -> Option<i64> {
        self.0.cut.and_then(|RestoreCut { timestamp, .. }| timestamp)
    }

    /// First and last offsets that are in no segment, between two segments. Compaction leaves such gaps too.
    #[getter]
    fn gaps(&self) -> Vec<(i64, i64)> {
        self.0.gaps.clone()
    }

    /// First and last offsets that a segment repeats from the one before it. They were restored once.
    #[getter]
    fn overlaps(&self) -> Vec<(i64, i64)> {
        self.0.overlaps.clone()
    }

    /// Bytes after the last batches of segments, which were not restored: an incomplete batch, or zeros.
    #[getter]
    fn tail_bytes(&self) -> u64 {
        self.0.tail_bytes
    }

    /// Transactions that are open at the end, sorted by first offset. Empty in a dry run.
    #[getter]
    fn open_transactions(&self) -> Vec<PyOpenTransaction> {
        self.0.open_transactions.iter().copied().map(PyOpenTransaction).collect()
    }

    /// What else is missing or remarkable, such as objects of tiered storage that were omitted.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.0.warnings.clone()
    }

    /// Return the fields as a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (segments, open) = (PyList::empty(py), PyList::empty(py));
        for segment in self.segments() {
            segments.append(segment.to_dict(py)?)?;
        }
        for transaction in self.open_transactions() {
            open.append(transaction.to_dict(py)?)?;
        }
        let dict = PyDict::new(py);
        dict.set_item("topic", self.topic())?;
        dict.set_item("partition", self.partition())?;
        dict.set_item("path", self.path())?;
        dict.set_item("topic_id", self.topic_id())?;
        dict.set_item("source_topic_id", self.source_topic_id())?;
        dict.set_item("segments", segments)?;
        dict.set_item("byte_count", self.byte_count())?;
        dict.set_item("start_offset", self.start_offset())?;
        dict.set_item("end_offset", self.end_offset())?;
        dict.set_item("first_timestamp", self.first_timestamp())?;
        dict.set_item("max_timestamp", self.max_timestamp())?;
        dict.set_item("leader_epoch", self.leader_epoch())?;
        dict.set_item("cut_offset", self.cut_offset())?;
        dict.set_item("cut_timestamp", self.cut_timestamp())?;
        dict.set_item("gaps", self.gaps())?;
        dict.set_item("overlaps", self.overlaps())?;
        dict.set_item("tail_bytes", self.tail_bytes())?;
        dict.set_item("open_transactions", open)?;
        dict.set_item("warnings", self.warnings())?;
        Ok(dict)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let RestoredPartition { partition, start_offset, end_offset, .. } = &self.0;
        let (topic, number) = (&partition.topic, partition.partition);
        let offsets = format!("start_offset={start_offset}, end_offset={end_offset}");
        format!("RestoredPartition(topic='{topic}', partition={number}, {offsets})")
    }
}

/// A transaction that was open at the end of a restored log.
#[pyclass(frozen, eq, name = "OpenTransaction", module = "kbat")]
#[derive(PartialEq)]
pub(super) struct PyOpenTransaction(OpenTransaction);

#[pymethods]
impl PyOpenTransaction {
    /// Producer id.
    #[getter]
    fn producer_id(&self) -> i64 {
        self.0.producer_id
    }

    /// Producer epoch.
    #[getter]
    fn producer_epoch(&self) -> i16 {
        self.0.producer_epoch
    }

    /// First offset of the transaction.
    #[getter]
    fn first_offset(&self) -> i64 {
        self.0.first_offset
    }

    /// Whether an abort marker was appended.
    #[getter]
    fn aborted(&self) -> bool {
        self.0.aborted
    }

    /// Return the fields as a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("producer_id", self.producer_id())?;
        dict.set_item("producer_epoch", self.producer_epoch())?;
        dict.set_item("first_offset", self.first_offset())?;
        dict.set_item("aborted", self.aborted())?;
        Ok(dict)
    }

    fn __repr__(&self) -> String {
        let OpenTransaction { producer_id, producer_epoch, first_offset, aborted } = self.0;
        let aborted = if aborted { "True" } else { "False" };
        let producer = format!("producer_id={producer_id}, producer_epoch={producer_epoch}");
        format!("OpenTransaction({producer}, first_offset={first_offset}, aborted={aborted})")
    }
}

/// The result of :func:`restore`. ``str(report)`` is a text with one line per partition and finding.
#[pyclass(frozen, name = "RestoreReport", module = "kbat")]
pub(super) struct PyRestoreReport(pub(super) RestoreReport);

#[pymethods]
impl PyRestoreReport {
    /// Path or URL that was read.
    #[getter]
    fn source(&self) -> OsString {
        self.0.source.as_os_str().to_owned()
    }

    /// Path of the new log directory.
    #[getter]
    fn out(&self) -> OsString {
        self.0.out.as_os_str().to_owned()
    }

    /// Whether this is a dry run: nothing was written, and the report describes the plan.
    #[getter]
    fn dry_run(&self) -> bool {
        self.0.dry_run
    }

    /// The partitions, sorted by topic and number.
    #[getter]
    fn partitions(&self) -> Vec<PyRestoredPartition> {
        self.0.partitions.iter().cloned().map(PyRestoredPartition).collect()
    }

    /// Partitions of the source that are not in the result, as ``(topic, partition, path, reason)``.
    #[getter]
    fn skipped(&self) -> Vec<(String, i32, OsString, String)> {
        let tuple = |SkippedPartition { partition, path, reason, .. }: &SkippedPartition| {
            (partition.topic.clone(), partition.partition, path.as_os_str().to_owned(), reason.clone())
        };
        self.0.skipped.iter().map(tuple).collect()
    }

    /// Committed offsets as ``(group, topic, partition, committed, offset)``, sorted.
    ///
    /// ``offset`` is the committed offset, but at least the start and at most the end of the restored log.
    #[getter]
    fn committed_offsets(&self) -> Vec<(String, String, i32, i64, i64)> {
        let tuple = |RestoredOffset { group, partition, committed, offset, .. }: &RestoredOffset| {
            (group.clone(), partition.topic.clone(), partition.partition, *committed, *offset)
        };
        self.0.committed_offsets.iter().map(tuple).collect()
    }

    /// Findings that do not concern a single partition.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.0.warnings.clone()
    }

    /// Bytes of batches in the result.
    #[getter]
    fn byte_count(&self) -> u64 {
        self.0.byte_count()
    }

    /// Return the fields as a dictionary.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (partitions, skipped, offsets) = (PyList::empty(py), PyList::empty(py), PyList::empty(py));
        for partition in self.partitions() {
            partitions.append(partition.to_dict(py)?)?;
        }
        for (topic, partition, path, reason) in self.skipped() {
            let dict = PyDict::new(py);
            dict.set_item("topic", topic)?;
            dict.set_item("partition", partition)?;
            dict.set_item("path", path)?;
            dict.set_item("reason", reason)?;
            skipped.append(dict)?;
        }
        for (group, topic, partition, committed, offset) in self.committed_offsets() {
            let dict = PyDict::new(py);
            dict.set_item("group", group)?;
            dict.set_item("topic", topic)?;
            dict.set_item("partition", partition)?;
            dict.set_item("committed", committed)?;
            dict.set_item("offset", offset)?;
            offsets.append(dict)?;
        }
        let dict = PyDict::new(py);
        dict.set_item("source", self.source())?;
        dict.set_item("out", self.out())?;
        dict.set_item("dry_run", self.dry_run())?;
        dict.set_item("partitions", partitions)?;
        dict.set_item("skipped", skipped)?;
        dict.set_item("committed_offsets", offsets)?;
        dict.set_item("warnings", self.warnings())?;
        dict.set_item("byte_count", self.byte_count())?;
        Ok(dict)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        let (partitions, bytes) = (self.0.partitions.len(), self.0.byte_count());
        format!("RestoreReport(out='{}', partitions={partitions}, byte_count={bytes})", self.0.out.display())
    }
}
