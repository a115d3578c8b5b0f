//! Segments whose last offsets nothing records. They are read, so that each offset is read once: replicas roll segments
//! at different offsets, and each leader copies its own.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::file::{File, Loaded, no_file};
use crate::error::Result;
use crate::io::waiting::map_waiting;
use crate::io::{Location, Status, Store, StoredFile};
use crate::limits::Limits;
use crate::plural::{are, count_of, offsets};
use crate::repair::walk::reachable_end;
use crate::store::{LogFile, LogFileKind, LogFileState};
use crate::tiered::{Candidate, Chain, Reason, choose};

/// The files of one segment, under a broker's names.
#[derive(Debug)]
pub(super) struct SegmentFiles(pub(super) BTreeMap<String, File>);

impl SegmentFiles {
    fn file(&self, path: &Path) -> Result<&File> {
        let file = path.file_name().and_then(|name| self.0.get(name.to_str().unwrap_or_default()));
        file.ok_or_else(|| no_file(path))
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

/// [`reachable_end`] of a segment with these files, by the names that a broker gives them.
///
/// # Errors
/// Those of [`reachable_end`].
pub(super) fn end_of_files(files: BTreeMap<String, File>, directory: &Location, base: i64) -> Result<Option<i64>> {
    let name = LogFile::live(base, LogFileKind::Log).to_string();
    let log = Location::in_store(directory.path().join(name), Arc::new(SegmentFiles(files)));
    reachable_end(&log, &Limits::default())
}

/// Removes from the files of a partition, which are those of a directory, the segments and the parts of segments whose
/// offsets others contain, and warns of them. Gaps cause no warning, because compaction makes them.
///
/// # Errors
/// I/O errors.
pub(super) fn remove_overlaps(directory: &Location, loaded: &mut Loaded) -> Result<()> {
    let live = |name: &str| LogFile::parse(name).filter(|file| file.state == LogFileState::Live);
    let base_of_log = |name: &str| live(name).filter(|file| file.kind == LogFileKind::Log).map(|file| file.base_offset);
    let mut bases = Vec::new();
    let mut logs = Vec::new();
    for name in loaded.files.keys() {
        if let Some(base) = base_of_log(name) {
            bases.push(base);
            logs.push(directory.join(name));
        }
    }
    let ends = map_waiting(&logs, !directory.is_local(), |log| reachable_end(log, &Limits::default()))?;
    let candidates: Vec<Candidate> = bases
        .iter()
        .zip(ends)
        .map(|(base, end)| Candidate {
            start_offset: *base,
            last_offset: end.map(|end| end.saturating_sub(1)),
            ..Candidate::default()
        })
        .collect();
    let mut chain = Chain { gaps: Vec::new(), ..choose(&candidates, None, None) };
    // the last segment of a copy may be empty
    chain.omitted.retain(|omission| omission.reason != Reason::Empty);
    let segments: Vec<(i64, &Location)> = bases.into_iter().zip(&logs).collect();
    let about = segments.iter().map(|(base, log)| About { start_offset: *base, log, is_end_read: true });
    loaded.warnings.extend(chain_warnings(&chain, &about.collect::<Vec<_>>()));
    let whole = chain.omitted.iter().filter(|omission| omission.offsets.is_none());
    let mut parts = Vec::new();
    let mut removed: HashSet<i64> =
        whole.filter_map(|omission| segments.get(omission.index)).map(|(base, _)| *base).collect();
    for link in &chain.links {
        let Some((base, log)) = segments.get(link.index).filter(|(base, _)| link.offsets.start > *base) else {
            continue;
        };
        removed.insert(*base);
        // up to the end of the segment, which may be corrupt
        if let Some(part) = File::Renamed((*log).clone()).part(log, &(link.offsets.start..i64::MAX))? {
            parts.push((LogFile::live(link.offsets.start, LogFileKind::Log).to_string(), part));
        }
    }
    loaded.files.retain(|name, _| {
        live(name).is_none_or(|file| file.kind == LogFileKind::ProducerSnapshot || !removed.contains(&file.base_offset))
    });
    loaded.files.extend(parts);
    Ok(())
}

/// A candidate in warnings.
#[derive(Debug)]
pub(super) struct About<'l> {
    pub(super) start_offset: i64,
    pub(super) log: &'l Location,
    /// Whether the last offset is that of the batches, rather than one that something else describes.
    pub(super) is_end_read: bool,
}

impl About<'_> {
    /// Why the segment is not read.
    fn reason(&self, reason: Reason) -> String {
        if reason != Reason::Empty {
            return reason.to_string();
        }
        let cause = "the copy may be unfinished, or bytes may be lost";
        match self.log.len() {
            Ok(0) => format!("it is empty: {cause}"),
            Ok(len) if self.is_end_read => {
                let (first, bytes) = (self.start_offset, count_of(len, "byte"));
                format!("there is no complete batch from offset {first} on in its {bytes}: {cause}")
            }
            _ => reason.to_string(),
        }
    }
}

/// Describes the parts that are omitted, and the gaps. `segments` are the candidates.
pub(super) fn chain_warnings(chain: &Chain, segments: &[About<'_>]) -> Vec<(i64, String)> {
    let mut warnings = Vec::new();
    for omission in &chain.omitted {
        let Some(about) = segments.get(omission.index) else { continue };
        let (log, reason) = (about.log.display(), about.reason(omission.reason));
        warnings.push(match &omission.offsets {
            Some(Range { start, end: i64::MAX }) => {
                (*start, format!("offsets from {start} on of {log} are not read: {reason}"))
            }
            Some(Range { start, end }) => {
                let (first, last) = (*start, end.saturating_sub(1));
                let (what, are) = (offsets(first, last), are(first, last));
                (first, format!("{what} of {log} {are} not read: {reason}"))
            }
            None => (about.start_offset, format!("{log} is not read: {reason}")),
        });
    }
    for gap in &chain.gaps {
        let last = gap.end.saturating_sub(1);
        let after = segments.iter().find(|about| about.start_offset == gap.end).or(segments.first());
        let place = after.map(|about| about.log.directory().display().to_string()).unwrap_or_default();
        warnings.push((gap.start, format!("{place}: no segment contains {}", offsets(gap.start, last))));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tiered::Omission;

    #[test]
    fn warnings_about_one_and_several_offsets_are_sentences() {
        let logs = [Location::local("remote/a.log"), Location::local("remote/b.log")];
        let omitted = vec![
            Omission { index: 0, offsets: Some(5..6), reason: Reason::Covered { by: 1 } },
            Omission { index: 0, offsets: Some(5..8), reason: Reason::DeposedLeader { epoch: 2 } },
            Omission { index: 0, offsets: Some(5..i64::MAX), reason: Reason::DeposedLeader { epoch: 2 } },
            Omission { index: 1, offsets: None, reason: Reason::Incomplete },
        ];
        let chain = Chain { omitted, gaps: vec![7..8, 3..8], ..Chain::default() };
        let about = [(0, &logs[0]), (8, &logs[1])];
        let about = about.map(|(start_offset, log)| About { start_offset, log, is_end_read: true });
        let warnings = chain_warnings(&chain, &about);
        let texts: Vec<&str> = warnings.iter().map(|(_, text)| text.as_str()).collect();
        let expected = [
            "offset 5 of remote/a.log is not read: other segments contain the same offsets",
            "offsets 5 to 7 of remote/a.log are not read: a deposed leader, epoch 2, wrote the records",
            "offsets from 5 on of remote/a.log are not read: a deposed leader, epoch 2, wrote the records",
            "remote/b.log is not read: it is incomplete: not all of its objects exist",
            "remote: no segment contains offset 7",
            "remote: no segment contains offsets 3 to 7",
        ];
        assert_eq!(texts, expected);
    }
}
