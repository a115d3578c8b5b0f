//! Results of lookups by offset or timestamp.

use std::ffi::OsString;

use pyo3::prelude::*;

use crate::log::{OffsetPlace, TimestampPlace};

/// The batch that contains an offset, or the next batch if the offset is in a gap.
#[pyclass(frozen, eq, hash, name = "OffsetPlace", module = "kbat")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct PyOffsetPlace {
    segment: OsString,
    place: OffsetPlace,
}

impl PyOffsetPlace {
    pub(crate) fn new(segment: OsString, place: OffsetPlace) -> Self {
        Self { segment, place }
    }
}

#[pymethods]
impl PyOffsetPlace {
    /// Path of the segment's ``.log`` file.
    #[getter]
    fn segment(&self) -> OsString {
        self.segment.clone()
    }

    /// Position of the batch in the file, in bytes.
    #[getter]
    fn position(&self) -> u64 {
        self.place.position
    }

    /// Base offset of the batch.
    #[getter]
    fn base_offset(&self) -> i64 {
        self.place.base_offset
    }

    /// Last offset of the batch.
    #[getter]
    fn last_offset(&self) -> i64 {
        self.place.last_offset
    }

    /// Bytes of the batch, including its 12 bytes of log overhead.
    #[getter]
    fn size(&self) -> usize {
        self.place.size
    }

    /// ``"used"``, or why the offset index was not used: ``"missing"`` or ``"broken"``. The result is the same.
    #[getter]
    fn index(&self) -> &'static str {
        self.place.index.name()
    }

    fn __repr__(&self) -> String {
        format!(
            "OffsetPlace(position={}, base_offset={}, last_offset={}, size={}, index='{}')",
            self.place.position,
            self.place.base_offset,
            self.place.last_offset,
            self.place.size,
            self.place.index.name()
        )
    }
}

/// The first record with the requested timestamp or a later one.
#[pyclass(frozen, eq, hash, name = "TimestampPlace", module = "kbat")]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct PyTimestampPlace(pub(crate) TimestampPlace);

#[pymethods]
impl PyTimestampPlace {
    /// Timestamp in milliseconds since the epoch; -1 for the answers to ``EARLIEST`` and ``LATEST``.
    #[getter]
    fn timestamp(&self) -> i64 {
        self.0.timestamp
    }

    /// Offset of the record.
    #[getter]
    fn offset(&self) -> i64 {
        self.0.offset
    }

    /// Leader epoch of its batch, None if the batch does not have one.
    #[getter]
    fn leader_epoch(&self) -> Option<i32> {
        self.0.leader_epoch
    }

    /// ``"used"``, or why the indexes were not used: ``"missing"`` or ``"broken"``. The result is the same.
    #[getter]
    fn index(&self) -> &'static str {
        self.0.index.name()
    }

    fn __repr__(&self) -> String {
        let epoch = self.0.leader_epoch.map_or_else(|| "None".to_owned(), |epoch| epoch.to_string());
        format!(
            "TimestampPlace(timestamp={}, offset={}, leader_epoch={epoch}, index='{}')",
            self.0.timestamp,
            self.0.offset,
            self.0.index.name()
        )
    }
}
