//! Segments whose last offsets nothing records. They are read, so that each offset is read once: replicas roll segments
//! at different offsets, and each leader copies its own.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::file::{File, Loaded};
use crate::error::{Error, Result};
use crate::io::waiting::map_concurrently;
use crate::io::{Location, Status, Store, StoredFile};
use crate::limits::Limits;
use crate::log::Segment;
use crate::repair::walk::intact_end;
use crate::store::{LogFile, LogFileKind, LogFileState};
use crate::tiered::{Candidate, Chain, Reason, choose};

/// The offset after the last record of a segment whose files have a broker's names; if corruption hides it, the offset
/// after the last intact batch, and `None` if there is none. Readers of the segment report the corruption.
///
/// # Errors
/// I/O errors.
pub(super) fn end_of(log: &Location) -> Result<Option<i64>> {
    match Segment::open(log).and_then(|segment| segment.end_offset()) {
        Ok(end) => Ok(Some(end)),
        Err(error) if error.is_of_reading() => Err(error),
        Err(_) => intact_end(log, &Limits::default()),
    }
}

/// Calls a function for each of some segments; of a store several at a time.
///
/// # Errors
/// That of the first call that failed.
pub(super) fn each<'s, S: Sync, R: Send>(
    segments: &'s [S],
    is_local: bool,
    call: impl Fn(&'s S) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    if is_local { segments.iter().map(call).collect() } else { map_concurrently(segments, call) }
}

/// The files of one segment, under a broker's names.
#[derive(Debug)]
pub(super) struct SegmentFiles(pub(super) BTreeMap<String, File>);

impl SegmentFiles {
    fn file(&self, path: &Path) -> Result<&File> {
        let file = path.file_name().and_then(|name| self.0.get(name.to_str().unwrap_or_default()));
        file.ok_or_else(|| Error::from(std::io::Error::from(std::io::ErrorKind::NotFound)).with_path(path))
    }
}

impl Store for SegmentFiles {
    fn status(&self, path: &Path) -> Result<Status> {
        self.file(path)?.status()
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        Ok(self.0.keys().map(|name| directory.join(name)).collect())
    }

    fn open(&self, path: &Path) -> Result<Box<dyn StoredFile>> {
        self.file(path)?.open()
    }
}

/// The offset after the last record of a segment with these files, by the names that a broker gives them.
///
/// # Errors
/// I/O errors.
pub(super) fn end_of_files(files: BTreeMap<String, File>, directory: &Location, base: i64) -> Result<Option<i64>> {
    let name = LogFile::live(base, LogFileKind::Log).to_string();
    end_of(&Location::in_store(directory.path().join(name), Arc::new(SegmentFiles(files))))
}

/// Removes from the files of a partition, which are those of a directory, the segments and the parts of segments whose
/// offsets others contain, and warns of them. Gaps cause no warning, because compaction makes them.
///
/// # Errors
/// I/O errors.
pub(super) fn remove_overlaps(directory: &Location, loaded: &mut Loaded) -> Result<()> {
    let base_of = |name: &str| LogFile::parse(name).filter(|file| file.state == LogFileState::Live);
    let is_log = |name: &&String| base_of(name).is_some_and(|file| file.kind == LogFileKind::Log);
    let logs: Vec<Location> = loaded.files.keys().filter(is_log).map(|name| directory.join(name)).collect();
    let ends = each(&logs, directory.is_local(), end_of)?;
    let mut segments = Vec::new();
    for (log, end) in logs.into_iter().zip(ends) {
        let Some(file) = base_of(log.name()) else { continue };
        let last_offset = end.map(|end| end.saturating_sub(1));
        let candidate = Candidate { start_offset: file.base_offset, last_offset, ..Candidate::default() };
        segments.push((log, candidate));
    }
    let candidates: Vec<Candidate> = segments.iter().map(|(_, candidate)| candidate.clone()).collect();
    let mut chain = Chain { gaps: Vec::new(), ..choose(&candidates, None, None) };
    // the last segment of a copy may be empty
    chain.omitted.retain(|omission| omission.reason != Reason::Empty);
    let about: Vec<(i64, &Location)> = segments.iter().map(|(log, candidate)| (candidate.start_offset, log)).collect();
    loaded.warnings.extend(chain_warnings(&chain, &about));
    let mut remove = |base: i64| {
        loaded.files.retain(|name, _| {
            base_of(name).is_none_or(|file| file.base_offset != base || file.kind == LogFileKind::ProducerSnapshot)
        });
    };
    let Chain { links, omitted, .. } = chain;
    for omission in omitted.iter().filter(|omission| omission.offsets.is_none()) {
        if let Some((_, candidate)) = segments.get(omission.index) {
            remove(candidate.start_offset);
        }
    }
    let mut parts = Vec::new();
    for link in links {
        let Some((log, candidate)) = segments.get(link.index) else { continue };
        if link.offsets.start > candidate.start_offset {
            remove(candidate.start_offset);
            // up to the end of the segment, which may be corrupt
            parts.push((log, link.offsets.start..i64::MAX));
        }
    }
    for (log, offsets) in parts {
        if let Some(part) = File::Renamed(log.clone()).part(log, &offsets)? {
            loaded.files.insert(LogFile::live(offsets.start, LogFileKind::Log).to_string(), part);
        }
    }
    Ok(())
}

/// Describes the parts that are omitted, by the first offsets of the candidates and their locations.
pub(super) fn chain_warnings(chain: &Chain, segments: &[(i64, &Location)]) -> Vec<(i64, String)> {
    let mut warnings = Vec::new();
    for omission in &chain.omitted {
        let Some((start_offset, log)) = segments.get(omission.index) else { continue };
        let (first, what) = match &omission.offsets {
            Some(Range { start, end }) => (*start, format!("offsets {start} to {} of ", end.saturating_sub(1))),
            None => (*start_offset, String::new()),
        };
        warnings.push((first, format!("{what}{} is not read: {}", log.display(), omission.reason)));
    }
    for gap in &chain.gaps {
        let last = gap.end.saturating_sub(1);
        let after = segments.iter().find(|(start_offset, _)| *start_offset == gap.end).or(segments.first());
        let place = after.map(|(_, log)| log.directory().display().to_string()).unwrap_or_default();
        warnings.push((gap.start, format!("{place}: no segment contains offsets {} to {last}", gap.start)));
    }
    warnings
}
