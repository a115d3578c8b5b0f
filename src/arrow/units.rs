//! [`Unit`]: what one thread of a scan decodes; [`RemainingWork`]: the units of the sources that are left.

use std::collections::VecDeque;

use crate::arrow::ahead::{NextFiles, Splitter};
use crate::arrow::options::{Isolation, OnCorrupt, ScanOptions};
use crate::arrow::source::ScanSource;
use crate::arrow::transactions::Transactions;
use crate::error::Error;
use crate::io::{Location, OpenedFile, PositionedFile};

/// Limits on the sources that one unit has.
const MAX_JOINED: usize = 256;
const MAX_JOINED_LEN: u64 = 64 << 10;

/// The remaining work.
pub(crate) struct RemainingWork {
    /// Sources that have not been split into units.
    sources: std::vec::IntoIter<ScanSource>,
    /// Units that no thread has taken.
    units: VecDeque<ScanSource>,
    /// The file of those units: a file that replaces it during the scan has other batches at their positions.
    file: Option<PositionedFile>,
    /// The source in a store whose units come before those.
    splitter: Option<Splitter>,
    next_files: NextFiles,
    transactions: Transactions,
}

/// What a thread decodes.
pub(crate) struct Unit {
    /// One source, a part of it, or several small ones.
    pub(crate) sources: Vec<ScanSource>,
    /// The file, if it is open.
    pub(crate) opened: Option<OpenedFile>,
    /// Why nothing is read.
    pub(crate) error: Option<Error>,
}

impl Unit {
    fn new(source: ScanSource, opened: Option<OpenedFile>) -> Self {
        Self { sources: vec![source], opened, error: None }
    }

    pub(crate) fn byte_len(&self) -> u64 {
        self.sources.iter().map(ScanSource::byte_len).fold(0, u64::saturating_add)
    }
}

impl RemainingWork {
    pub(crate) fn new(sources: Vec<ScanSource>) -> Self {
        Self {
            sources: sources.into_iter(),
            units: VecDeque::new(),
            file: None,
            splitter: None,
            next_files: NextFiles::default(),
            transactions: Transactions::default(),
        }
    }

    /// The next unit. A source is split into units when its turn comes.
    pub(crate) fn next(&mut self, options: &ScanOptions, part_bytes: u64) -> Option<Unit> {
        loop {
            if let Some(splitter) = &mut self.splitter {
                let unit = splitter.next(part_bytes, &options.limits);
                self.next_files.request(splitter.spare_requests(), self.sources.as_slice(), &options.bounds());
                if let Some((source, file)) = unit {
                    return Some(Unit::new(source, file));
                }
                self.splitter = None;
            }
            if let Some(unit) = self.units.pop_front() {
                let Some(file) = &self.file else { return Some(self.with_small_ones_after(unit)) };
                let end = if unit.window.1 == u64::MAX { unit.window.0 } else { unit.window.1 };
                let error = file.check_not_truncated(end).err();
                return Some(Unit { sources: vec![unit], opened: file.reopened().map(OpenedFile::from), error });
            }
            let mut source = self.sources.next()?;
            let file = self.next_files.take();
            if options.isolation == Isolation::ReadCommitted
                && !options.bounds().pass_over_segment(source.base_offset, source.next_base)
            {
                match self.transactions.around(&source, self.sources.as_slice(), options) {
                    Ok(committed) => source.committed = Some(committed),
                    Err(error) => {
                        self.sources = Vec::new().into_iter(); // it ends the scan
                        return Some(Unit { error: Some(error), ..Unit::new(source, None) });
                    }
                }
            }
            if !can_split(options) {
                return Some(Unit::new(source, None));
            }
            if source.is_local() {
                let is_split = source.byte_len() > part_bytes;
                self.file = source.path().filter(|_| is_split).and_then(|path| path.open().ok());
                self.units.extend(source.parts(part_bytes, options));
                continue;
            }
            if source.is_read_whole(&options.bounds()) {
                self.splitter = Splitter::new(&source, file);
            }
            if self.splitter.is_none() {
                return Some(Unit::new(source, None));
            }
        }
    }

    /// A unit of a source, and of those after it if all are small files: a unit for each would cost more than its
    /// decoding.
    fn with_small_ones_after(&mut self, source: ScanSource) -> Unit {
        let is_file = |source: &ScanSource| source.path().is_some_and(Location::is_local);
        let may_join = is_file(&source) && self.units.is_empty();
        let mut unit = Unit::new(source, None);
        let mut len = unit.byte_len();
        while may_join && unit.sources.len() < MAX_JOINED {
            let Some(next) = self.sources.as_slice().first().filter(|next| is_file(next)) else { break };
            len = len.saturating_add(next.byte_len());
            if len > MAX_JOINED_LEN {
                break;
            }
            unit.sources.extend(self.sources.next());
        }
        unit
    }
}

/// Whether sources may be split. Transactions, and resuming after corruption, depend on the complete source. Splitting
/// reads through the page cache.
fn can_split(options: &ScanOptions) -> bool {
    let ScanOptions { isolation, on_corrupt, leave_page_cache, .. } = options;
    *isolation == Isolation::ReadUncommitted && *on_corrupt == OnCorrupt::Fail && !leave_page_cache
}
