//! [`Segment`]: a `.log` file with its indexes, and lookups of offsets and timestamps in it.
//!
//! The log alone determines every answer; an index only provides the position at which the search starts. That
//! position is checked against the batch there. If an index is missing or wrong, the search starts at the first batch
//! and has the same result.
//!
//! Source: `LogSegment`, `FileRecords.searchForOffsetFromPosition` and `searchForTimestamp` of Kafka.

mod lookup;
mod plan;
mod timestamps;

use std::path::Path;

#[cfg(feature = "plan")]
pub(crate) use lookup::FoundBatch;
pub use lookup::{IndexUse, OffsetPlace, TimestampPlace};
pub use plan::split_points;

use crate::error::{Error, Result};
use crate::io::Location;
use crate::limits::Limits;
use crate::log::headers::HeaderReader;
use crate::log::index::{OffsetIndex, TimeIndex, TransactionIndex};
use crate::store::names::{LogFile, LogFileKind, LogFileState};

/// A segment: a `.log` file and the other files with the same base offset.
///
/// Keeps no file open: every call opens the files that it needs, in their current state.
#[derive(Debug, Clone)]
pub struct Segment {
    path: Location,
    base_offset: i64,
    state: LogFileState,
    size: u64,
    limits: Limits,
    leaves_page_cache: bool,
}

impl Segment {
    /// Opens the segment of a `.log` file, which must be named after its base offset.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for another name; I/O errors.
    pub fn open(path: impl Into<Location>) -> Result<Self> {
        let path: &Location = &path.into();
        Self::open_with(path, &Limits::default())
    }

    /// Like [`Segment::open`], with custom limits.
    ///
    /// # Errors
    /// The errors of [`Segment::open`].
    pub fn open_with(path: impl Into<Location>, limits: &Limits) -> Result<Self> {
        let path: &Location = &path.into();
        let Some(file) = LogFile::parse(path.name()).filter(|file| file.kind == LogFileKind::Log) else {
            return Err(Error::argument(format!(
                "{} is not named like a segment: <20 digits of the base offset>.log",
                path.display()
            )));
        };
        let size = path.len()?;
        Ok(Self {
            path: path.clone(),
            base_offset: file.base_offset,
            state: file.state,
            size,
            limits: limits.clone(),
            leaves_page_cache: false,
        })
    }

    /// Drops pages that reading the `.log` file adds to the page cache: see [`HeaderReader::leaving_page_cache`].
    #[must_use]
    pub fn leaving_page_cache(mut self) -> Self {
        self.leaves_page_cache = true;
        self
    }

    /// Path of the `.log` file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The `.log` file and the store that it is in.
    #[must_use]
    pub fn location(&self) -> &Location {
        &self.path
    }

    /// Base offset, parsed from the name.
    #[must_use]
    pub fn base_offset(&self) -> i64 {
        self.base_offset
    }

    /// Whether the segment is in use, according to the name.
    #[must_use]
    pub fn state(&self) -> LogFileState {
        self.state
    }

    /// Size of the `.log` file in bytes when the segment was opened.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Path of a file of this segment, which need not exist. Its state is that of the `.log` file.
    #[must_use]
    pub fn file(&self, kind: LogFileKind) -> Location {
        self.path.with_file_name(LogFile { base_offset: self.base_offset, kind, state: self.state }.to_string())
    }

    /// Opens the offset index. Returns `None` if there is no such file.
    ///
    /// # Errors
    /// The errors of [`OffsetIndex::open`].
    pub fn offset_index(&self) -> Result<Option<OffsetIndex>> {
        if_there(OffsetIndex::open(self.file(LogFileKind::OffsetIndex), Some(self.base_offset)))
    }

    /// Opens the time index. Returns `None` if there is no such file.
    ///
    /// # Errors
    /// The errors of [`TimeIndex::open`].
    pub fn time_index(&self) -> Result<Option<TimeIndex>> {
        if_there(TimeIndex::open(self.file(LogFileKind::TimeIndex), Some(self.base_offset)))
    }

    /// Opens the transaction index. Returns `None` if there is no such file: no transaction was aborted, or the file
    /// was lost.
    ///
    /// # Errors
    /// The errors of [`TransactionIndex::open`].
    pub fn transaction_index(&self) -> Result<Option<TransactionIndex>> {
        if_there(TransactionIndex::open(self.file(LogFileKind::TransactionIndex)))
    }

    /// Returns a reader of the segment's batch headers.
    ///
    /// # Errors
    /// I/O errors.
    pub fn headers(&self) -> Result<HeaderReader> {
        let reader = HeaderReader::open(&self.path, &self.limits)?;
        Ok(if self.leaves_page_cache { reader.leaving_page_cache() } else { reader })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }
}

/// Converts the error for a missing file to `None`.
fn if_there<T>(opened: Result<T>) -> Result<Option<T>> {
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
