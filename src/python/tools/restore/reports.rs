//! The report of `restore`.

use std::ffi::OsString;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::python::runtime::fields::fields;
use crate::restore::{
    OpenTransaction, RestoreCut, RestoreReport, RestoredOffset, RestoredPartition, RestoredSegment, SkippedPartition,
};

/// A segment in the result of a restore.
#[pyclass(frozen, eq, name = "RestoredSegment", module = "kbat")]
#[derive(PartialEq)]
pub(super) struct PyRestoredSegment(RestoredSegment);

fields! {
    PyRestoredSegment {
        /// Base offset in the file's name.
        base_offset: i64 = |segment| segment.base_offset;

        /// The offset after the last batch.
        end_offset: i64 = |segment| segment.end_offset;

        /// Path or URL of the file that was read.
        path: OsString = |segment| segment.path.as_os_str().to_owned();

        /// Bytes of the file that was read.
        source_bytes: u64 = |segment| segment.source_bytes;

        /// Bytes of batches in the result.
        bytes: u64 = |segment| segment.bytes;
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

fields! {
    PyRestoredPartition {
        /// Name of the topic.
        topic: &str = |log| &log.partition.topic;

        /// Number of the partition.
        partition: i32 = |log| log.partition.partition;

        /// Path or URL of the source directory.
        path: OsString = |log| log.path.as_os_str().to_owned();

        /// Id of the topic in the new cluster; None if unknown, so that there is no ``partition.metadata``.
        topic_id: Option<String> = |log| log.topic_id.map(|id| id.to_string());

        /// Id of the topic in the source's ``partition.metadata``, if there is one.
        source_topic_id: Option<String> = |log| log.source_topic_id.map(|id| id.to_string());

        /// The segments, sorted by base offset.
        segments: Vec<PyRestoredSegment> = |log| log.segments.iter().cloned().map(PyRestoredSegment).collect();

        /// Bytes of batches in the result.
        byte_count: u64 = |log| log.byte_count();

        /// First offset that consumers may read.
        start_offset: i64 = |log| log.start_offset;

        /// The offset after the last batch.
        end_offset: i64 = |log| log.end_offset;

        /// Timestamp of the first record, milliseconds since the epoch; None if it has none or is unknown.
        first_timestamp: Option<i64> = |log| log.first_timestamp;

        /// Largest timestamp, milliseconds since the epoch; None if no record has one.
        max_timestamp: Option<i64> = |log| log.max_timestamp;

        /// The latest leader epoch; None if unknown.
        leader_epoch: Option<i32> = |log| log.leader_epoch;

        /// First offset that is not restored because of ``until_timestamp`` or ``until_offset``, if there is one.
        cut_offset: Option<i64> = |log| log.cut.map(|cut| cut.offset);

        /// Timestamp of the record at ``cut_offset`` if that ended the log, milliseconds since the epoch.
        cut_timestamp: Option<i64> = |log| log.cut.and_then(|RestoreCut { timestamp, .. }| timestamp);

        /// First and last offsets that are in no segment, between two segments. Compaction leaves such gaps too.
        gaps: Vec<(i64, i64)> = |log| log.gaps.clone();

        /// First and last offsets that a segment repeats from the one before it. They were restored once.
        overlaps: Vec<(i64, i64)> = |log| log.overlaps.clone();

        /// Bytes after the last batches of segments, which were not restored: an incomplete batch, or zeros.
        tail_bytes: u64 = |log| log.tail_bytes;

        /// Transactions that are open at the end, sorted by first offset. Empty in a dry run.
        open_transactions: Vec<PyOpenTransaction> =
            |log| log.open_transactions.iter().copied().map(PyOpenTransaction).collect();

        /// What else is missing or remarkable, such as objects of tiered storage that were omitted.
        warnings: Vec<String> = |log| log.warnings.clone();
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

fields! {
    PyOpenTransaction {
        /// Producer id.
        producer_id: i64 = |transaction| transaction.producer_id;

        /// Producer epoch.
        producer_epoch: i16 = |transaction| transaction.producer_epoch;

        /// First offset of the transaction.
        first_offset: i64 = |transaction| transaction.first_offset;

        /// Whether an abort marker was appended.
        aborted: bool = |transaction| transaction.aborted;
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
