//! [`Partition`]: the files of one partition.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::file::{Chunked, File};
use crate::error::Result;
use crate::io::{Location, PositionedFile};
use crate::limits::Limits;
use crate::log::checkpoint::{EpochEntry, LeaderEpochs};
use crate::log::{HeaderReader, SegmentReader};
use crate::store::names::{LEADER_EPOCHS, LogFile, LogFileKind};
use crate::tiered::aiven::{EncryptionKeys, Indexes, Manifest, ObjectKind};
use crate::tiered::local::FileKind;
use crate::tiered::{Candidate, Chain, Reason, SegmentName, choose};

/// Largest size of a manifest in bytes.
const MAX_MANIFEST_LEN: usize = 32 << 20;

/// The objects of a segment, by the end of their names.
pub(super) type Objects = BTreeMap<String, Location>;

/// A partition, whose segments are selected when it is read first.
pub(super) struct Partition {
    segments: BTreeMap<SegmentName, Objects>,
    keys: EncryptionKeys,
    loaded: OnceLock<Loaded>,
}

/// The files of a partition by name, and what was omitted.
#[derive(Default)]
struct Loaded {
    files: BTreeMap<String, File>,
    warnings: Vec<String>,
}

/// A segment with its description.
struct Stored {
    name: SegmentName,
    log: Location,
    content: Content,
    candidate: Candidate,
}

enum Content {
    Plain(Objects),
    Chunked(Arc<Chunked>),
    Incomplete,
}

impl Partition {
    pub(super) fn new(segments: BTreeMap<SegmentName, Objects>, keys: EncryptionKeys) -> Self {
        Self { segments, keys, loaded: OnceLock::new() }
    }

    pub(super) fn files(&self) -> Result<&BTreeMap<String, File>> {
        self.loaded().map(|loaded| &loaded.files)
    }

    pub(super) fn warnings(&self) -> Result<&[String]> {
        self.loaded().map(|loaded| loaded.warnings.as_slice())
    }

    fn loaded(&self) -> Result<&Loaded> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let loaded = self.load()?;
        Ok(self.loaded.get_or_init(|| loaded))
    }

    fn load(&self) -> Result<Loaded> {
        let mut stored = Vec::new();
        for (name, objects) in &self.segments {
            stored.push(self.stored(*name, objects)?);
        }
        let candidates: Vec<Candidate> = stored.iter().map(|segment| segment.candidate.clone()).collect();
        let chain = choose(&candidates, None, None);
        let mut loaded = Loaded { files: BTreeMap::new(), warnings: warnings(&chain, &stored) };
        let mut epochs: BTreeMap<i32, i64> = BTreeMap::new();
        for link in &chain.links {
            let Some(segment) = stored.get(link.index) else { continue };
            let whole_end = segment.candidate.last_offset.map(|last| last.saturating_add(1));
            let is_whole = link.offsets.start == segment.candidate.start_offset
                && (!link.end_is_known || Some(link.offsets.end) == whole_end);
            if is_whole {
                segment.add_files(&mut loaded.files, whole_end);
            } else {
                segment.add_part(&mut loaded.files, &link.offsets)?;
            }
            for entry in &segment.candidate.leader_epochs {
                let start = epochs.entry(entry.epoch).or_insert(entry.start_offset);
                *start = (*start).min(entry.start_offset);
            }
        }
        if !epochs.is_empty() {
            let entries = epochs.into_iter().map(|(epoch, start_offset)| EpochEntry { epoch, start_offset });
            let text = LeaderEpochs::from_entries(entries).encode();
            loaded.files.insert(LEADER_EPOCHS.to_owned(), File::Content(Arc::new(text.into_bytes())));
        }
        Ok(loaded)
    }

    /// Reads what describes a segment: the manifest, or the leader epochs.
    fn stored(&self, name: SegmentName, objects: &Objects) -> Result<Stored> {
        let object = |suffix: &str| objects.get(suffix).cloned();
        let mut candidate = Candidate { start_offset: name.start_offset, ..Candidate::default() };
        let any = objects.values().next().cloned();
        let incomplete = |mut candidate: Candidate, log: Option<Location>| {
            candidate.is_incomplete = true;
            let log = log.unwrap_or_else(|| Location::local(name.to_string()));
            Stored { name, log, content: Content::Incomplete, candidate }
        };
        let Some(log) = object(ObjectKind::Log.suffix()) else { return Ok(incomplete(candidate, any)) };
        let (manifest, indexes) = (object(ObjectKind::Manifest.suffix()), object(ObjectKind::Indexes.suffix()));
        if manifest.is_none() && indexes.is_some() {
            return Ok(incomplete(candidate, Some(log)));
        }
        if let Some(manifest) = manifest {
            let bytes = manifest.read_small(MAX_MANIFEST_LEN)?;
            let parsed = Manifest::parse(&bytes).map_err(|error| error.with_path(&manifest))?;
            if let Some(metadata) = &parsed.segment {
                candidate.last_offset = Some(metadata.end_offset);
                candidate.leader_epochs.clone_from(&metadata.leader_epochs);
            }
            let chunked = Chunked::new(log.clone(), indexes, bytes, parsed, self.keys.clone());
            return Ok(Stored { name, log, content: Content::Chunked(Arc::new(chunked)), candidate });
        }
        if let Some(epochs) = object(FileKind::LeaderEpochs.suffix()) {
            candidate.leader_epochs = LeaderEpochs::read(epochs)?.entries().to_vec();
        }
        Ok(Stored { name, log, content: Content::Plain(objects.clone()), candidate })
    }
}

impl Stored {
    /// Adds the files of a segment with the names that a broker gives them.
    fn add_files(&self, files: &mut BTreeMap<String, File>, end: Option<i64>) {
        let start = self.name.start_offset;
        let mut add = |offset: i64, kind: LogFileKind, file: File| {
            files.insert(LogFile::live(offset, kind).to_string(), file);
        };
        match &self.content {
            Content::Incomplete => {}
            Content::Chunked(segment) => {
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
            Content::Plain(objects) => {
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
    fn add_part(&self, files: &mut BTreeMap<String, File>, offsets: &Range<i64>) -> Result<()> {
        let log = || match &self.content {
            Content::Chunked(segment) => Some(File::Log(Arc::clone(segment))),
            Content::Plain(_) => Some(File::Renamed(self.log.clone())),
            Content::Incomplete => None,
        };
        let (Some(file), Some(whole)) = (log(), log()) else { return Ok(()) };
        let opened = PositionedFile::stored(file.open()?, &self.log);
        let mut reader = HeaderReader::of(SegmentReader::of_file(opened, &Limits::default())?);
        let (mut start, mut end) = (None, 0);
        while let Some(header) = reader.next_header() {
            let Ok(header) = header else { break };
            if header.last_offset() >= offsets.start && header.last_offset() < offsets.end {
                start.get_or_insert(header.position());
                end = reader.position();
            }
        }
        if let Some(start) = start {
            let name = LogFile::live(offsets.start, LogFileKind::Log).to_string();
            files.insert(name, File::Part(Box::new(whole), start..end));
        }
        Ok(())
    }
}

/// Describes the parts that are omitted.
fn warnings(chain: &Chain, stored: &[Stored]) -> Vec<String> {
    let mut warnings = Vec::new();
    for omission in &chain.omitted {
        let Some(segment) = stored.get(omission.index) else { continue };
        if omission.reason == Reason::Empty {
            continue;
        }
        let what = match &omission.offsets {
            Some(offsets) => format!("offsets {} to {} of ", offsets.start, offsets.end.saturating_sub(1)),
            None => String::new(),
        };
        warnings.push(format!("{what}{} is not read: {}", segment.log.display(), omission.reason));
    }
    for gap in &chain.gaps {
        let last = gap.end.saturating_sub(1);
        let before = stored.iter().find(|segment| segment.name.start_offset == gap.end).or(stored.first());
        let place = before.map(|segment| segment.log.directory().display().to_string()).unwrap_or_default();
        warnings.push(format!("{place}: no segment contains offsets {} to {last}", gap.start));
    }
    warnings
}
