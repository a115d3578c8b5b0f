//! [`Transactions`]: the batches of a source that a `read_committed` scan returns.

use std::sync::Arc;

use crate::arrow::options::{OnCorrupt, ScanOptions};
use crate::arrow::source::{ScanSource, SourceBytes};
use crate::error::Result;
use crate::io::Location;
use crate::limits::Limits;
use crate::log::committed::{Committed, Wanted};
use crate::log::{PartitionLog, SegmentReader};

/// The transactions of the partition whose sources are being read.
///
/// They are determined once, for the first source, so that a growing log ends at the same offset for all of its
/// segments. If they were determined for each source, a transaction committed between two of them would leave a gap in
/// the rows.
#[derive(Default)]
pub(crate) struct Transactions(Option<(Location, Arc<Committed>)>);

impl Transactions {
    /// The transactions that concern `source`; `rest` are the sources after it.
    ///
    /// # Errors
    /// If the segments of the partition cannot be read.
    pub(crate) fn around(
        &mut self,
        source: &ScanSource,
        rest: &[ScanSource],
        options: &ScanOptions,
    ) -> Result<Arc<Committed>> {
        let limits = &options.limits;
        let mut wanted = Wanted {
            start_offset: options.start_offset.unwrap_or(i64::MIN),
            end_offset: options.end_offset.unwrap_or(i64::MAX),
            fails: options.on_corrupt == OnCorrupt::Fail,
            check_crc: options.check_crc,
        };
        let (path, directory) = match (&source.place, source.directory()) {
            (SourceBytes::Memory(bytes), _) => {
                let open = |limits: &Limits| Ok(SegmentReader::from_bytes(Arc::clone(bytes), limits));
                return Committed::of_source(open, limits, &wanted).map(Arc::new);
            }
            (SourceBytes::File(path), None) => return of_file(path, limits, &wanted),
            (SourceBytes::File(path), Some(directory)) => (path, directory),
        };
        if let Some((known, committed)) = &self.0
            && *known == directory
        {
            return Ok(Arc::clone(committed));
        }
        let log = PartitionLog::open_with(&directory, limits)?;
        if !log.segments().iter().any(|segment| segment.location().name() == path.name()) {
            return of_file(path, limits, &wanted); // a segment that is about to be deleted
        }
        // the sources of a partition are adjacent
        let same = || rest.iter().take_while(|other| other.directory().as_ref() == Some(&directory)).chain([source]);
        let start = same().filter_map(|source| source.base_offset).min().unwrap_or(0);
        let end = same().map(|source| source.next_base.unwrap_or(i64::MAX)).max().unwrap_or(i64::MAX);
        wanted.start_offset = wanted.start_offset.max(start);
        wanted.end_offset = wanted.end_offset.min(end);
        let segments: Vec<_> = log.segments().iter().map(|segment| options.as_asked(segment.clone())).collect();
        let committed = Arc::new(Committed::of_segments(&segments, &wanted)?);
        self.0 = Some((directory.clone(), Arc::clone(&committed)));
        Ok(committed)
    }
}

fn of_file(path: &Location, limits: &Limits, wanted: &Wanted) -> Result<Arc<Committed>> {
    Committed::of_source(|limits| SegmentReader::open_with(path, limits), limits, wanted).map(Arc::new)
}
