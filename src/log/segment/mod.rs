//! [`Segment`]: a `.log` file with its indexes, and where an offset or a timestamp lies in it.
//!
//! The log alone decides every answer; an index only says where to begin looking. What it says is checked against the batch it
//! points to, and where it is missing or wrong the search begins at the first batch and gives the same answer.
//!
//! Source: `LogSegment`, `FileRecords.searchForOffsetFromPosition` and `searchForTimestamp` of Kafka.

mod lookup;
mod plan;

use std::path::{Path, PathBuf};

pub use lookup::{IndexUse, OffsetPlace, TimestampPlace};
pub use plan::split_points;

use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::log::headers::HeaderReader;
use crate::log::index::{OffsetIndex, TimeIndex, TransactionIndex};
use crate::store::names::{LogFile, LogFileKind, LogFileState};

/// A segment: a `.log` file, and what lies beside it under the same base offset.
///
/// Holds no file open; every call opens what it needs and sees the files as they are then.
#[derive(Debug, Clone)]
pub struct Segment {
    path: PathBuf,
    base_offset: i64,
    state: LogFileState,
    size: u64,
    limits: Limits,
    leaves_page_cache: bool,
}

impl Segment {
    /// A segment by the path of its `.log` file, which must be named after its base offset.
    ///
    /// # Errors
    /// A name that tells no base offset, a file that can't be read.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::open_with(path, &Limits::default())
    }

    /// As [`Segment::open`], with limits of your own.
    ///
    /// # Errors
    /// A name that tells no base offset, a file that can't be read.
    pub fn open_with(path: impl AsRef<Path>, limits: &Limits) -> Result<Self> {
        let path = path.as_ref();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some(file) = LogFile::parse(name).filter(|file| file.kind == LogFileKind::Log) else {
            return Err(Error::argument(format!(
                "{} is not named like a segment: 20 digits of the base offset and \".log\"",
                path.display()
            )));
        };
        let size = std::fs::metadata(path).map_err(|error| Error::from(error).with_path(path))?.len();
        Ok(Self {
            path: path.to_path_buf(),
            base_offset: file.base_offset,
            state: file.state,
            size,
            limits: limits.clone(),
            leaves_page_cache: false,
        })
    }

    /// Drops again what reading the `.log` file brings into the page cache: see [`HeaderReader::leaving_page_cache`].
    #[must_use]
    pub fn leaving_page_cache(mut self) -> Self {
        self.leaves_page_cache = true;
        self
    }

    /// The `.log` file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The base offset, from the name.
    #[must_use]
    pub fn base_offset(&self) -> i64 {
        self.base_offset
    }

    /// Whether the segment is in use, from the name.
    #[must_use]
    pub fn state(&self) -> LogFileState {
        self.state
    }

    /// Bytes of the `.log` file when the segment was opened.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Where a file of this segment lies, whether it is there or not; its state is that of the `.log` file.
    #[must_use]
    pub fn file(&self, kind: LogFileKind) -> PathBuf {
        self.path.with_file_name(LogFile { base_offset: self.base_offset, kind, state: self.state }.to_string())
    }

    /// The offset index; `None` where there is none.
    ///
    /// # Errors
    /// Those of reading it.
    pub fn offset_index(&self) -> Result<Option<OffsetIndex>> {
        if_there(OffsetIndex::open(self.file(LogFileKind::OffsetIndex), Some(self.base_offset)))
    }

    /// The time index; `None` where there is none.
    ///
    /// # Errors
    /// Those of reading it.
    pub fn time_index(&self) -> Result<Option<TimeIndex>> {
        if_there(TimeIndex::open(self.file(LogFileKind::TimeIndex), Some(self.base_offset)))
    }

    /// The transaction index; `None` where there is none: nothing was aborted, or the file was lost.
    ///
    /// # Errors
    /// Those of reading it.
    pub fn transaction_index(&self) -> Result<Option<TransactionIndex>> {
        if_there(TransactionIndex::open(self.file(LogFileKind::TransactionIndex)))
    }

    /// Walks the headers of the segment's batches.
    ///
    /// # Errors
    /// Those of opening the file.
    pub fn headers(&self) -> Result<HeaderReader> {
        let reader = HeaderReader::open(&self.path, &self.limits)?;
        Ok(if self.leaves_page_cache { reader.leaving_page_cache() } else { reader })
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }
}

/// `None` for a file that does not exist.
fn if_there<T>(opened: Result<T>) -> Result<Option<T>> {
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}
