//! [`Inventory`]: the files of a partition directory as a broker sees them after its clean-up.
//!
//! When a broker starts, it removes `.deleted` files (except those of KRaft snapshots). Then it completes or reverts
//! an interrupted compaction: it removes `.cleaned` files, `.swap` files at or after the smallest `.cleaned` offset,
//! and the segments that the other `.swap` files replace, and renames these `.swap` files. Finally it removes indexes
//! without a `.log`. An inventory only lists these removals and renames; [`Inventory::apply`] performs them.
//!
//! Source: `LogLoader.load` and `LogLoader.removeTempFilesAndCollectSwapFiles` of Kafka.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::io::Location;
use crate::limits::Limits;
use crate::log::SegmentReader;
use crate::log::headers::HeaderReader;
use crate::log::walk::{BatchWalk, WalkEvent};
use crate::store::listing::same_base_offset;
use crate::store::names::{LogFile, LogFileKind, LogFileState};

/// The files of a partition after the clean-up of its directory, and the steps of the clean-up.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    /// Segment files by their final names, with their current paths.
    pub(crate) files: BTreeMap<LogFile, Location>,
    /// All other files.
    pub(crate) others: Vec<Location>,
    /// Files that the clean-up removes.
    removed: Vec<Location>,
    /// Files that the clean-up renames: current and new paths.
    renamed: Vec<(Location, Location)>,
    damaged_swap: Option<DamagedSwap>,
}

/// A corrupt `.swap` file, the output of a compaction, beside segments that it replaces.
#[derive(Debug)]
struct DamagedSwap {
    path: Location,
    /// Whether all segments that it replaces exist, so that they are used instead.
    is_omitted: bool,
}

impl Inventory {
    /// Lists the files in use, ignoring the clean-up.
    pub(crate) fn live(directory: &Location) -> Result<Self> {
        let mut inventory = Self::default();
        for path in files_of(directory)? {
            match LogFile::parse(&name_of(&path)) {
                Some(file) if file.state == LogFileState::Live => inventory.add_live(file, path)?,
                _ => inventory.others.push(path),
            }
        }
        Ok(inventory)
    }

    /// Lists a directory without changing it. One rule is not a broker's: segments that are complete stay if the `.swap`
    /// file that replaces them is damaged.
    pub(crate) fn read(directory: &Location, limits: &Limits) -> Result<Self> {
        let mut inventory = Self::default();
        let mut temporary: Vec<(LogFile, Location)> = Vec::new();
        for path in files_of(directory)? {
            let name = path.name();
            match LogFile::parse(name) {
                Some(file) if file.state == LogFileState::Live => inventory.add_live(file, path)?,
                Some(file) if file.state == LogFileState::Deleted => inventory.removed.push(path),
                Some(file) => temporary.push((file, path)),
                None if name.ends_with(".deleted") && !name.ends_with(".checkpoint.deleted") => {
                    inventory.removed.push(path);
                }
                None => inventory.others.push(path),
            }
        }
        inventory.settle(directory, temporary, limits)?;
        inventory.remove_orphans();
        Ok(inventory)
    }

    fn add_live(&mut self, file: LogFile, path: Location) -> Result<()> {
        let name = path.name().to_owned();
        match self.files.insert(file, path) {
            Some(other) if file.kind == LogFileKind::Log => Err(same_base_offset(&other, &name)),
            _ => Ok(()),
        }
    }

    /// Plans the clean-up of an interrupted compaction.
    fn settle(&mut self, directory: &Location, temporary: Vec<(LogFile, Location)>, limits: &Limits) -> Result<()> {
        let cleaned = temporary.iter().filter(|(file, _)| file.state == LogFileState::Cleaned);
        let min_cleaned = cleaned.map(|(file, _)| file.base_offset).min().unwrap_or(i64::MAX);
        let (swap, stray): (Vec<_>, Vec<_>) = temporary
            .into_iter()
            .partition(|(file, _)| file.state == LogFileState::Swap && file.base_offset < min_cleaned);
        self.removed.extend(stray.into_iter().map(|(_, path)| path));
        let (mut start, mut end) = (i64::MAX, i64::MIN);
        let (mut damaged, mut known_end) = (None, i64::MIN);
        for (file, path) in swap.iter().filter(|(file, _)| file.kind == LogFileKind::Log) {
            start = start.min(file.base_offset);
            end = end.max(next_offset(path, file.base_offset, limits)?);
            if let Some(last) = end_of_damaged(path, limits)? {
                damaged = damaged.or_else(|| Some(path.clone()));
                known_end = known_end.max(last);
            }
        }
        if let Some(path) = damaged {
            let end = end.max(known_end);
            let is_omitted = self.has_all_replaced(start, end, limits)?;
            if is_omitted || self.replaced(start, end).next().is_some() {
                self.damaged_swap = Some(DamagedSwap { path, is_omitted });
            }
            if is_omitted {
                self.removed.extend(swap.into_iter().map(|(_, path)| path));
                return Ok(());
            }
        }
        let replaced: Vec<LogFile> =
            self.files.keys().filter(|file| (start..end).contains(&file.base_offset)).copied().collect();
        self.removed.extend(replaced.iter().filter_map(|file| self.files.remove(file)));
        for (file, path) in swap {
            let file = LogFile { state: LogFileState::Live, ..file };
            self.renamed.push((path.clone(), directory.join(file.to_string())));
            self.files.insert(file, path);
        }
        Ok(())
    }

    /// Whether all segments that the `.swap` files from `start` to `end` replace exist. A broker removes them in the
    /// order of their offsets, so the first one shows it; the last one must reach the end, in case that others did.
    fn has_all_replaced(&self, start: i64, end: i64, limits: &Limits) -> Result<bool> {
        let (mut is_first_there, mut reached) = (false, start);
        for (base_offset, path) in self.replaced(start, end) {
            is_first_there |= base_offset == start;
            reached = reached.max(next_offset(path, base_offset, limits)?);
        }
        Ok(is_first_there && reached >= end)
    }

    /// The segments in use from `start` to `end`, or at `start`.
    fn replaced(&self, start: i64, end: i64) -> impl Iterator<Item = (i64, &Location)> {
        self.of_kind(LogFileKind::Log).filter(move |(base, _)| *base == start || (start..end).contains(base))
    }

    /// Refuses a partition in which a corrupt `.swap` file would replace segments.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidFile`].
    pub(crate) fn refuse_damaged_swap(&self) -> Result<()> {
        let Some(swap) = &self.damaged_swap else { return Ok(()) };
        let message = if swap.is_omitted {
            "the output of a compaction is corrupt, and a broker that starts would replace complete segments with it: \
             remove it, or use salvage, which keeps them"
        } else {
            "the output of a compaction is corrupt, a broker that starts would replace segments with it, and others \
             that it replaces are gone: salvage copies the complete batches of this file, but not those of the \
             segments; salvage a copy of the partition without this file, too"
        };
        Err(Error::new(ErrorKind::InvalidFile(message.to_owned())).with_path(&swap.path))
    }

    fn remove_orphans(&mut self) {
        let orphans: Vec<LogFile> = self
            .files
            .keys()
            .filter(|file| !matches!(file.kind, LogFileKind::Log | LogFileKind::ProducerSnapshot))
            .filter(|file| !self.files.contains_key(&LogFile::live(file.base_offset, LogFileKind::Log)))
            .copied()
            .collect();
        self.removed.extend(orphans.iter().filter_map(|file| self.files.remove(file)));
    }

    /// The files of one kind, sorted by offset.
    pub(crate) fn of_kind(&self, kind: LogFileKind) -> impl DoubleEndedIterator<Item = (i64, &Location)> {
        let of_kind = self.files.iter().filter(move |(file, _)| file.kind == kind);
        of_kind.map(|(file, path)| (file.base_offset, path))
    }

    /// Lists the changes that the clean-up makes, for a report.
    pub(crate) fn changes(&self) -> Vec<FileChange> {
        let removed = self.removed.iter().map(|path| (path, FileAction::Deleted));
        let renamed = self.renamed.iter().map(|(from, _)| (from, FileAction::Renamed));
        removed.chain(renamed).map(|(path, action)| FileChange { name: name_of(path), action }).collect()
    }

    /// Performs the clean-up.
    pub(crate) fn apply(&mut self) -> Result<()> {
        for path in self.removed.drain(..) {
            fs::remove_file(path.local_path()?).map_err(|error| Error::from(error).with_path(&path))?;
        }
        for (from, to) in self.renamed.drain(..) {
            fs::rename(from.local_path()?, &to).map_err(|error| Error::from(error).with_path(&from))?;
            for path in self.files.values_mut().filter(|path| **path == from) {
                path.clone_from(&to);
            }
        }
        Ok(())
    }
}

/// The last component of a path.
pub(crate) fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Lists the files of a directory, sorted, including links without a target.
pub(crate) fn files_of(directory: &Location) -> Result<Vec<Location>> {
    let mut files = directory.entries()?;
    // opening a link without a target fails later
    files.retain(|path| path.status_if_there().map_or(true, |status| status.is_some_and(|status| status.is_file())));
    Ok(files)
}

/// Returns the offset after a segment's last batch, up to the first corruption, or its base offset if it is empty.
/// Files are deleted based on this offset, so errors are not ignored.
fn next_offset(path: &Location, base_offset: i64, limits: &Limits) -> Result<i64> {
    let mut reader = HeaderReader::open(path, limits)?;
    let mut next = base_offset;
    while let Some(header) = reader.next_header() {
        match header {
            Ok(header) => next = header.next_offset(),
            Err(error) if error.is_of_reading() => return Err(error),
            Err(_) => break,
        }
    }
    Ok(next)
}

/// The offset after the last batch that can be found in a damaged file, 0 if there is none. `None` if the file has only
/// batches with correct checksums, and at least one.
fn end_of_damaged(path: &Location, limits: &Limits) -> Result<Option<i64>> {
    let mut walk = BatchWalk::new(SegmentReader::open_with(path, limits)?, limits);
    let (mut end, mut is_damaged) = (0, path.len()? == 0);
    loop {
        let position = match walk.next_batch()? {
            WalkEvent::Batch(batch) => {
                end = end.max(batch.next_offset());
                continue;
            }
            WalkEvent::Corrupt { position, .. } => position,
            WalkEvent::End => {
                if walk.reader.remainder_len() == 0 {
                    return Ok(is_damaged.then_some(end));
                }
                walk.reader.position()
            }
        };
        is_damaged = true;
        let skipped = walk.skip(position, Some(end))?;
        if !skipped.is_followed {
            return Ok(Some(end));
        }
    }
}

/// A change of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Name of the file in its directory.
    pub name: String,
    /// What happened to it.
    pub action: FileAction,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileAction {
    /// Written or rewritten.
    Written,
    /// Deleted, or not copied.
    Deleted,
    /// Truncated to its valid bytes.
    Truncated,
    /// Renamed: a `.swap` file that replaces its source segments.
    Renamed,
}

impl FileAction {
    /// Stable name in `snake_case`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Written => "written",
            Self::Deleted => "deleted",
            Self::Truncated => "truncated",
            Self::Renamed => "renamed",
        }
    }
}
