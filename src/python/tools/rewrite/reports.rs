//! The reports of `compact`, `filter` and `rewrite`.

use pyo3::prelude::*;

use crate::broker::convert::Loss;
use crate::python::runtime::fields::{NamedCounts, fields};
use crate::rewrite::{CompactReport, Counts, FilterReport, RewriteReport};

/// Counts of what was read or written.
#[pyclass(frozen, name = "RewriteCounts", module = "kbat", eq)]
#[derive(PartialEq)]
pub(super) struct PyRewriteCounts(pub(super) Counts);

fields! {
    PyRewriteCounts {
        /// Number of segments.
        segments: u64 = |counts| counts.segments;

        /// Number of batches. A message of magic 0 or 1 outside of a compressed set counts as one.
        batches: u64 = |counts| counts.batches;

        /// Number of records, including control records.
        records: u64 = |counts| counts.records;

        /// Bytes of batches.
        bytes: u64 = |counts| counts.bytes;
    }

    fn __repr__(&self) -> String {
        let Counts { segments, batches, records, bytes } = self.0;
        format!("RewriteCounts(segments={segments}, batches={batches}, records={records}, bytes={bytes})")
    }
}

/// The result of :func:`compact`.
#[pyclass(frozen, name = "CompactReport", module = "kbat")]
pub(super) struct PyCompactReport(pub(super) CompactReport);

fields! {
    PyCompactReport {
        /// Counts of the input in the compacted part.
        read: PyRewriteCounts = |report| PyRewriteCounts(report.read);

        /// Counts of the output in the compacted part.
        written: PyRewriteCounts = |report| PyRewriteCounts(report.written);

        /// Number of segments after that part, which were copied.
        untouched_segments: u64 = |report| report.untouched_segments;

        /// Records dropped, by reason: ``superseded``, ``tombstones``, ``null_keys``, ``aborted``, ``markers``.
        dropped: NamedCounts<5> = |report| NamedCounts([
            ("superseded", report.dropped.superseded),
            ("tombstones", report.dropped.tombstones),
            ("null_keys", report.dropped.null_keys),
            ("aborted", report.dropped.aborted),
            ("markers", report.dropped.markers),
        ]);

        /// Number of tombstones kept.
        tombstones_retained: u64 = |report| report.tombstones_retained;

        /// Number of batches that got a delete horizon.
        delete_horizons_set: u64 = |report| report.delete_horizons_set;

        /// Number of batches of which only the header was kept.
        emptied_batches: u64 = |report| report.emptied_batches;

        /// First offset that was not compacted before.
        first_dirty_offset: i64 = |report| report.first_dirty_offset;

        /// First offset after the compacted part: the next run's ``first_dirty_offset``.
        first_uncleanable_offset: i64 = |report| report.first_uncleanable_offset;

        /// First offset of the earliest open transaction, or the end of the log.
        last_stable_offset: i64 = |report| report.last_stable_offset;

        /// The offset after the last batch.
        end_offset: i64 = |report| report.end_offset;

        /// Number of parts into which the keys were split; 1 if all keys fit ``max_map_bytes``.
        key_parts: u64 = |report| report.key_parts;

        /// Bytes at the ends of segments that are not a batch, such as a truncated one; they are not copied.
        tail_bytes: u64 = |report| report.tail_bytes;
    }

    fn __repr__(&self) -> String {
        format!("CompactReport({} of {} records kept)", self.0.written.records, self.0.read.records)
    }
}

/// The result of :func:`filter`.
#[pyclass(frozen, name = "FilterReport", module = "kbat")]
pub(super) struct PyFilterReport(pub(super) FilterReport);

fields! {
    PyFilterReport {
        /// Counts of the input.
        read: PyRewriteCounts = |report| PyRewriteCounts(report.read);

        /// Counts of the output.
        written: PyRewriteCounts = |report| PyRewriteCounts(report.written);

        /// Number of records dropped.
        dropped_records: u64 = |report| report.dropped_records;

        /// Number of batches dropped because they had no record left.
        dropped_batches: u64 = |report| report.dropped_batches;

        /// Number of batches of which only the header was kept.
        emptied_batches: u64 = |report| report.emptied_batches;

        /// Number of batches that lost some of their records.
        rebuilt_batches: u64 = |report| report.rebuilt_batches;

        /// The offset after the last batch.
        end_offset: i64 = |report| report.end_offset;

        /// Bytes at the ends of segments that are not a batch, such as a truncated one; they are not copied.
        tail_bytes: u64 = |report| report.tail_bytes;
    }

    fn __repr__(&self) -> String {
        format!("FilterReport({} of {} records dropped)", self.0.dropped_records, self.0.read.records)
    }
}

/// The result of :func:`rewrite`.
#[pyclass(frozen, name = "RewriteReport", module = "kbat")]
pub(super) struct PyRewriteReport(pub(super) RewriteReport);

fields! {
    PyRewriteReport {
        /// Counts of the input.
        read: PyRewriteCounts = |report| PyRewriteCounts(report.read);

        /// Counts of the output.
        written: PyRewriteCounts = |report| PyRewriteCounts(report.written);

        /// Records dropped because transactions can't be kept: ``aborted``, ``control``.
        dropped: NamedCounts<2> =
            |report| NamedCounts([("aborted", report.dropped.aborted), ("control", report.dropped.control)]);

        /// Features that the message format does not support, by the names of :func:`convert`.
        losses: Vec<&'static str> = |report| report.losses.iter().map(Loss::name).collect();

        /// The offset after the last batch of the source.
        end_offset: i64 = |report| report.end_offset;

        /// Bytes at the ends of segments that are not a batch, such as a truncated one; they are not copied.
        tail_bytes: u64 = |report| report.tail_bytes;
    }

    fn __repr__(&self) -> String {
        format!("RewriteReport({} to {} bytes)", self.0.read.bytes, self.0.written.bytes)
    }
}
