//! What a scan does with a segment that a broker deletes after the log was listed.
//!
//! A broker renames the files of a deleted segment, and removes them after `file.delete.delay.ms`, a minute by default.

use crate::arrow::source::{ScanSource, SourceBytes};
use crate::error::{Error, Result};
use crate::store::listing::segment_bases;
use crate::store::names::{LogFile, LogFileKind, LogFileState};

/// A segment that was deleted by retention: the log begins after it.
pub(super) enum DeletedSegment {
    /// Its file has another name.
    Renamed(Box<ScanSource>),
    /// Its file was removed.
    Removed,
}

impl DeletedSegment {
    /// Finds what became of a segment that can't be opened.
    ///
    /// # Errors
    /// `error`, if the segment is in a store or part of a plan, if it exists, or if other segments may have its records,
    /// as after compaction.
    pub(super) fn of(source: &ScanSource, error: Error) -> Result<Self> {
        let (Some(path), Some(base_offset)) = (source.path(), source.base_offset) else { return Err(error) };
        if !error.is_not_found() || source.is_planned || !path.is_local() || path.exists() {
            return Err(error);
        }
        let first_base = segment_bases(&path.directory()).ok().and_then(|bases| bases.first().copied());
        if first_base.zip(source.next_base).is_none_or(|(first, next)| first < next) {
            return Err(error.with_note(REPLACED));
        }
        let renamed = LogFile { state: LogFileState::Deleted, ..LogFile::live(base_offset, LogFileKind::Log) };
        let renamed = path.with_file_name(renamed.to_string());
        if !renamed.exists() {
            return Ok(Self::Removed);
        }
        Ok(Self::Renamed(Box::new(ScanSource { place: SourceBytes::File(renamed), ..source.clone() })))
    }
}

const REPLACED: &str = "the segment was deleted or replaced after the log was listed: read the log again";
