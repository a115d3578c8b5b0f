//! [`Stored`]: a segment with ids, and what its objects say about it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::ends::{About, end_of_files};
use super::file::{Chunked, File};
use crate::error::Result;
use crate::io::Location;
use crate::log::checkpoint::EpochEntry;
use crate::store::names::{LogFile, LogFileKind};
use crate::tiered::aiven::{Indexes, ObjectKind};
use crate::tiered::local::FileKind;
use crate::tiered::{Candidate, SegmentName};

/// The objects of a segment, by the end of their names.
pub(super) type Objects = BTreeMap<String, Location>;

/// A segment with its description.
pub(super) struct Stored {
    pub(super) name: SegmentName,
    pub(super) log: Location,
    pub(super) content: SegmentContent,
    pub(super) candidate: Candidate,
    /// Whether the last offset of the candidate is that of the batches.
    pub(super) is_end_read: bool,
}

pub(super) enum SegmentContent {
    Plain(Objects),
    Chunked(Arc<Chunked>),
    Incomplete,
}

impl Stored {
    pub(super) fn about(&self) -> About<'_> {
        About { start_offset: self.name.start_offset, log: &self.log, is_end_read: self.is_end_read }
    }

    /// The leader epochs up to the end of the segment in its `.indexes` object; none if there is no such object.
    pub(super) fn history(&self) -> Result<Vec<EpochEntry>> {
        match &self.content {
            SegmentContent::Chunked(chunked) => chunked.leader_epochs(),
            SegmentContent::Plain(_) | SegmentContent::Incomplete => Ok(Vec::new()),
        }
    }

    /// The offset after the last record. `None` if corruption hides it.
    pub(super) fn end(&self, directory: &Location) -> Result<Option<i64>> {
        let mut files = BTreeMap::new();
        self.add_files(&mut files, None);
        end_of_files(files, directory, self.name.start_offset)
    }

    /// Adds the files of a segment with the names that a broker gives them.
    pub(super) fn add_files(&self, files: &mut BTreeMap<String, File>, end: Option<i64>) {
        let start = self.name.start_offset;
        let mut add = |offset: i64, kind: LogFileKind, file: File| {
            files.insert(LogFile::live(offset, kind).to_string(), file);
        };
        match &self.content {
            SegmentContent::Incomplete => {}
            SegmentContent::Chunked(segment) => {
                add(start, LogFileKind::Log, File::Log(Arc::clone(segment)));
                let index = |part: fn(&Indexes) -> &[u8]| File::Index(Arc::clone(segment), part);
                if segment.indexes.is_some() {
                    add(start, LogFileKind::OffsetIndex, index(|indexes| &indexes.offset));
                    add(start, LogFileKind::TimeIndex, index(|indexes| &indexes.timestamp));
                    if segment.manifest.indexes.has_transaction() {
                        let part: fn(&Indexes) -> &[u8] = |indexes| indexes.transaction.as_deref().unwrap_or_default();
                        add(start, LogFileKind::TransactionIndex, index(part));
                    }
                    // the producers at the end of the segment
                    if let Some(end) = end {
                        add(end, LogFileKind::ProducerSnapshot, index(|indexes| &indexes.producer_snapshot));
                    }
                }
            }
            SegmentContent::Plain(objects) => {
                let kinds = [
                    (FileKind::Log, LogFileKind::Log),
                    (FileKind::OffsetIndex, LogFileKind::OffsetIndex),
                    (FileKind::TimeIndex, LogFileKind::TimeIndex),
                    (FileKind::TransactionIndex, LogFileKind::TransactionIndex),
                ];
                for (stored, kind) in kinds {
                    if let Some(object) = objects.get(stored.suffix()) {
                        add(start, kind, File::Renamed(object.clone()));
                    }
                }
            }
        }
    }

    /// Adds the batches of a segment that begin in a range of offsets, without indexes, whose positions differ.
    pub(super) fn add_part(&self, files: &mut BTreeMap<String, File>, offsets: &Range<i64>) -> Result<()> {
        let whole = match &self.content {
            SegmentContent::Chunked(segment) => File::Log(Arc::clone(segment)),
            SegmentContent::Plain(_) => File::Renamed(self.log.clone()),
            SegmentContent::Incomplete => return Ok(()),
        };
        if let Some(part) = whole.part(&self.log, offsets)? {
            files.insert(LogFile::live(offsets.start, LogFileKind::Log).to_string(), part);
        }
        Ok(())
    }
}

/// A segment that cannot be read. `object` is one of its objects.
pub(super) fn incomplete(name: SegmentName, object: Option<Location>) -> Stored {
    let candidate = Candidate { start_offset: name.start_offset, is_incomplete: true, ..Candidate::default() };
    // its log may be what is missing
    let log = object.map_or_else(
        || Location::local(name.to_string()),
        |object| object.directory().join(format!("{name}{}", ObjectKind::Log.suffix())),
    );
    Stored { name, log, content: SegmentContent::Incomplete, candidate, is_end_read: false }
}
