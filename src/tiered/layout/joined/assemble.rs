//! [`Assembled`]: which files of a partition are read from where.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Result;
use crate::io::Location;
use crate::limits::Limits;
use crate::log::checkpoint::{EpochEntry, LeaderEpochs};
use crate::plural::offsets_are;
use crate::repair::walk::reachable_end;
use crate::store::names::LEADER_EPOCHS;
use crate::store::{LogFile, LogFileKind, LogFileState};
use crate::tiered::layout::file::File;
use crate::tiered::layout::known::epochs_of;

/// The files of a partition that are not those of the local directory.
#[derive(Default)]
pub(super) struct Assembled {
    /// Files by name, most of them in the remote location.
    pub(super) files: BTreeMap<String, File>,
    /// Local files that are not presented.
    pub(super) hidden: BTreeSet<String>,
    /// What a reader should know, each with the lowest offset that it is about.
    pub(super) warnings: Vec<(i64, String)>,
}

impl Assembled {
    /// Selects the files of a partition. `entries` is a listing of its local directory.
    ///
    /// # Errors
    /// I/O errors; corruption of what describes remote segments.
    pub(super) fn new(local: &Location, entries: &[Location], remote: &Location) -> Result<Self> {
        let sides = Sides { local: Side::new(local, entries)?, remote: Side::new(remote, &remote.entries()?)? };
        let mut assembled = Self::default();
        let offsets = assembled.select(sides)?;
        let of_remote = remote.warnings_by_offset()?;
        assembled.warnings.extend(of_remote.into_iter().filter(|(offset, _)| !offsets.contains(offset)));
        assembled.warnings.sort();
        Ok(assembled)
    }

    /// The paths of all files of the partition. `entries` is a listing of its local directory.
    pub(super) fn paths(&self, directory: &Path, entries: &[Location]) -> Vec<PathBuf> {
        let is_local =
            |entry: &&Location| !self.hidden.contains(entry.name()) && !self.files.contains_key(entry.name());
        let local = entries.iter().filter(is_local).map(|entry| entry.to_path_buf());
        local.chain(self.files.keys().map(|name| directory.join(name))).collect()
    }

    /// Selects the files, and returns the offsets that are read from local segments.
    fn select(&mut self, mut sides: Sides) -> Result<Range<i64>> {
        let lost = self.hide_deposed(&mut sides)?;
        self.join_epochs(&sides, lost);
        let Some((start, last_base)) = sides.local.ends() else {
            for base in sides.remote.logs() {
                self.add_whole(&sides.remote, base);
            }
            self.add_snapshots(&sides.remote, i64::MIN..i64::MAX);
            return Ok(0..0);
        };
        self.add_before(&sides, start)?;
        let far_end = match sides.remote.ends() {
            Some((_, far_base)) => sides.remote.end_of(far_base)?,
            None => None,
        };
        let end = match lost {
            Some(lost) => Some(lost),
            // brokers copy only segments that are closed, so that the last local segment is usually the later one
            None if far_end.is_some_and(|far_end| far_end > last_base) => sides.local.end_of(last_base)?,
            None => None,
        };
        let Some(end) = end else { return Ok(start..i64::MAX) };
        let Some(far_end) = far_end.filter(|far_end| *far_end > end) else { return Ok(start..end) };
        self.add_after(&sides, end..far_end, lost.is_some())?;
        Ok(start..end)
    }

    /// If the remote segments have records of a later leader, hides the local records of the leader before it that the
    /// partition has lost. Returns the offset from which on local records are hidden.
    fn hide_deposed(&mut self, sides: &mut Sides) -> Result<Option<i64>> {
        let Sides { local, remote } = sides;
        let latest = |side: &Side| side.epochs.as_ref().and_then(LeaderEpochs::latest);
        let (Some(own), Some(far), Some((_, last_base))) = (latest(local), latest(remote), local.ends()) else {
            return Ok(None);
        };
        let later = remote.epochs.iter().flat_map(LeaderEpochs::entries).find(|entry| entry.epoch > own.epoch);
        let Some(later) = later.filter(|_| far.epoch > own.epoch) else { return Ok(None) };
        let lost = later.start_offset;
        if local.end_of(last_base)?.is_none_or(|end| end <= lost) {
            return Ok(None);
        }
        let message = format!(
            "offsets from {lost} on in {} are not read: a deposed leader, epoch {}, wrote the records, and {} has those \
             of epoch {}",
            local.directory.display(),
            own.epoch,
            remote.directory.display(),
            later.epoch
        );
        self.warnings.push((lost, message));
        let containing = local.logs().rfind(|base| *base < lost);
        for base in local.files.range(lost..).map(|(base, _)| *base).collect::<Vec<_>>() {
            self.hide(local, base);
            local.files.remove(&base);
        }
        if let Some(base) = containing
            && local.end_of(base)?.is_some_and(|end| end > lost)
        {
            self.hide(local, base);
            self.add_part(local, base, base, &(i64::MIN..lost))?;
        }
        Ok(Some(lost))
    }

    /// Adds the remote segments before the local ones.
    fn add_before(&mut self, sides: &Sides, start: i64) -> Result<()> {
        let Sides { local, remote } = sides;
        let before: Vec<i64> = remote.logs().take_while(|base| *base < start).collect();
        let Some((last, whole)) = before.split_last() else { return Ok(()) };
        for base in whole {
            self.add_whole(remote, *base);
        }
        // segments that begin at the same offset on both sides end at the same offset before it
        let end = if remote.has_log(start) { Some(start) } else { remote.end_of(*last)? };
        match end {
            Some(end) if end > start => self.add_part(remote, *last, *last, &(i64::MIN..start))?,
            Some(end) if end < start => {
                self.add_whole(remote, *last);
                self.warn_of_gap(sides, end..start);
            }
            _ => self.add_whole(remote, *last),
        }
        let has_own = local.files.get(&start).into_iter().flatten().any(|(file, _)| is_snapshot(*file));
        self.add_snapshots(remote, i64::MIN..if has_own { start } else { start.saturating_add(1) });
        Ok(())
    }

    /// Adds the remote records after the last local one.
    fn add_after(&mut self, sides: &Sides, offsets: Range<i64>, is_deposed: bool) -> Result<()> {
        let Sides { local, remote } = sides;
        let Range { start: end, end: far_end } = offsets;
        if !is_deposed {
            let message = format!(
                "{} ends before offset {end}: {} read from {}",
                local.directory.display(),
                offsets_are(end, far_end.saturating_sub(1)),
                remote.directory.display()
            );
            self.warnings.push((end, message));
        }
        // empty local segments
        for base in local.files.range(end..).map(|(base, _)| *base) {
            self.hide(local, base);
        }
        let containing = remote.logs().rfind(|base| *base < end);
        let mut next = end;
        if let Some(base) = containing
            && let Some(reached) = remote.end_of(base)?.filter(|reached| *reached > end)
        {
            self.add_part(remote, base, end, &(end..i64::MAX))?;
            next = reached;
        }
        let after: Vec<i64> = remote.logs().filter(|base| *base >= end).collect();
        if let Some(first) = after.first().filter(|first| **first > next) {
            self.warn_of_gap(sides, next..*first);
        }
        for base in after {
            self.add_whole(remote, base);
        }
        self.add_snapshots(remote, end.saturating_add(1)..i64::MAX);
        Ok(())
    }

    fn warn_of_gap(&mut self, sides: &Sides, offsets: Range<i64>) {
        let Range { start, end } = offsets;
        let message = format!(
            "{} neither in {} nor in {}",
            offsets_are(start, end.saturating_sub(1)),
            sides.remote.directory.display(),
            sides.local.directory.display()
        );
        self.warnings.push((start, message));
    }

    /// Adds the files of a segment.
    fn add_whole(&mut self, side: &Side, base: i64) {
        for (file, location) in side.files.get(&base).into_iter().flatten() {
            if !is_snapshot(*file) {
                self.files.insert(file.to_string(), File::Renamed(location.clone()));
            }
        }
    }

    /// Adds the batches of a segment in a range of offsets under another base offset, without indexes, whose positions
    /// differ.
    fn add_part(&mut self, side: &Side, base: i64, new_base: i64, offsets: &Range<i64>) -> Result<()> {
        let Some(log) = side.log(base) else { return Ok(()) };
        if let Some(part) = File::Renamed(log.clone()).part(log, offsets)? {
            self.files.insert(LogFile::live(new_base, LogFileKind::Log).to_string(), part);
        }
        Ok(())
    }

    fn add_snapshots(&mut self, side: &Side, offsets: Range<i64>) {
        for (file, location) in side.files.range(offsets).flat_map(|(_, files)| files) {
            if is_snapshot(*file) {
                self.files.insert(file.to_string(), File::Renamed(location.clone()));
            }
        }
    }

    /// Hides the files of a local segment.
    fn hide(&mut self, side: &Side, base: i64) {
        let files = side.files.get(&base).into_iter().flatten();
        self.hidden.extend(files.map(|(_, location)| location.name().to_owned()));
    }

    /// Adds the remote leader epochs before and after the local ones.
    fn join_epochs(&mut self, sides: &Sides, lost: Option<i64>) {
        let (own, far) = match (&sides.local.epochs, &sides.remote.epochs) {
            // a malformed file is presented as it is
            (None, _) if sides.local.has_epochs_file => return,
            (own, Some(far)) => (own.clone().unwrap_or_default(), far),
            (_, None) => return,
        };
        let kept = |entry: &&EpochEntry| lost.is_none_or(|lost| entry.start_offset < lost);
        let mut starts: BTreeMap<i32, i64> =
            own.entries().iter().filter(kept).map(|entry| (entry.epoch, entry.start_offset)).collect();
        let bounds = starts.keys().next().copied().zip(starts.keys().next_back().copied());
        for entry in far.entries() {
            if bounds.is_none_or(|(first, last)| entry.epoch <= first || entry.epoch > last) {
                let start = starts.entry(entry.epoch).or_insert(entry.start_offset);
                *start = (*start).min(entry.start_offset);
            }
        }
        let entries = starts.into_iter().map(|(epoch, start_offset)| EpochEntry { epoch, start_offset });
        let joined = LeaderEpochs::from_entries(entries);
        if joined != own {
            self.files.insert(LEADER_EPOCHS.to_owned(), File::Content(Arc::new(joined.encode().into_bytes())));
        }
    }
}

fn is_snapshot(file: LogFile) -> bool {
    file.kind == LogFileKind::ProducerSnapshot
}

/// A partition in both locations.
struct Sides {
    local: Side,
    remote: Side,
}

/// A partition in one location.
struct Side {
    directory: Location,
    /// The files in use by the offsets in their names.
    files: BTreeMap<i64, Vec<(LogFile, Location)>>,
    epochs: Option<LeaderEpochs>,
    has_epochs_file: bool,
    /// The ends that were read, by base offset.
    ends: RefCell<HashMap<i64, Option<i64>>>,
}

impl Side {
    fn new(directory: &Location, entries: &[Location]) -> Result<Self> {
        let mut files: BTreeMap<i64, Vec<(LogFile, Location)>> = BTreeMap::new();
        for entry in entries {
            if let Some(file) = LogFile::parse(entry.name()).filter(|file| file.state == LogFileState::Live) {
                files.entry(file.base_offset).or_default().push((file, entry.clone()));
            }
        }
        let has_epochs_file = entries.iter().any(|entry| entry.name() == LEADER_EPOCHS);
        let epochs = if has_epochs_file { epochs_of(directory)? } else { None };
        Ok(Self { directory: directory.clone(), files, epochs, has_epochs_file, ends: RefCell::default() })
    }

    /// The base offsets of the segments.
    fn logs(&self) -> impl DoubleEndedIterator<Item = i64> {
        self.files.keys().copied().filter(move |base| self.has_log(*base))
    }

    fn has_log(&self, base: i64) -> bool {
        self.log(base).is_some()
    }

    fn log(&self, base: i64) -> Option<&Location> {
        let mut files = self.files.get(&base).into_iter().flatten();
        files.find(|(file, _)| file.kind == LogFileKind::Log).map(|(_, location)| location)
    }

    /// The base offsets of the first and the last segment.
    fn ends(&self) -> Option<(i64, i64)> {
        self.logs().next().zip(self.logs().next_back())
    }

    /// [`reachable_end`] of a segment, which is read once. `None` if there is no such segment, too.
    fn end_of(&self, base: i64) -> Result<Option<i64>> {
        let Some(log) = self.log(base) else { return Ok(None) };
        if let Some(end) = self.ends.borrow().get(&base) {
            return Ok(*end);
        }
        let end = reachable_end(log, &Limits::default())?;
        self.ends.borrow_mut().insert(base, end);
        Ok(end)
    }
}
