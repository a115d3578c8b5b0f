//! [`ListedPartition`]: the files of one partition.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use super::claims::check_claims;
use super::ends::{About, chain_warnings, remove_overlaps};
use super::file::{Chunked, File, Loaded};
use super::known::Known;
use super::stored::{Objects, SegmentContent, Stored, incomplete};
use super::watermark;
use crate::error::{Error, Result};
use crate::io::Location;
use crate::io::waiting::map_waiting;
use crate::log::Uuid;
use crate::log::checkpoint::{EpochEntry, LeaderEpochs};
use crate::plural::offsets;
use crate::store::TopicPartition;
use crate::store::names::LEADER_EPOCHS;
use crate::tiered::aiven::{Manifest, ObjectKind, aiven_partition};
use crate::tiered::local::FileKind;
use crate::tiered::metadata::{CustomMetadata, RemotePartition, RemoteSegment, SegmentState};
use crate::tiered::pinterest::WATERMARK;
use crate::tiered::{Candidate, SegmentName, choose};

/// Largest size of a manifest in bytes.
const MAX_MANIFEST_LEN: usize = 32 << 20;

/// Failed searches for objects at other keys, after which no more are searched.
const MOST_SEARCHES: usize = 8;

/// A partition, whose segments are selected when it is read first.
pub(super) struct ListedPartition {
    /// The directory that was listed.
    pub(super) directory: Location,
    name: TopicPartition,
    content: Listed,
    known: Known,
    loaded: OnceLock<Loaded>,
}

/// The files of a partition in the listing.
pub(super) enum Listed {
    /// Segments with ids, of the topic with this id.
    WithIds(Uuid, BTreeMap<SegmentName, Objects>),
    /// Files with a broker's names that may be beside a watermark.
    Watermarked(Vec<Location>),
    /// The directory of a broker, or a copy of it.
    Plain,
}

impl ListedPartition {
    pub(super) fn new(directory: Location, name: TopicPartition, content: Listed, known: Known) -> Self {
        Self { directory, name, content, known, loaded: OnceLock::new() }
    }

    pub(super) fn files(&self) -> Result<&BTreeMap<String, File>> {
        self.loaded().map(|loaded| &loaded.files)
    }

    pub(super) fn warnings(&self) -> Result<&[(i64, String)]> {
        self.loaded().map(|loaded| loaded.warnings.as_slice())
    }

    /// Whether all segments were complete when they were stored.
    pub(super) fn is_finished(&self) -> bool {
        match &self.content {
            Listed::WithIds(..) => true,
            // without a watermark, the last segment may be incomplete
            Listed::Watermarked(_) => self.directory.join(WATERMARK).exists(),
            Listed::Plain => false,
        }
    }

    fn loaded(&self) -> Result<&Loaded> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let loaded = match &self.content {
            Listed::WithIds(topic_id, segments) => self.load(*topic_id, segments)?,
            Listed::Watermarked(files) => watermark::load(&self.directory, files)?,
            Listed::Plain => {
                let entries = self.directory.entries()?.into_iter().filter(|entry| !entry.is_dir());
                let files = entries.map(|entry| (entry.name().to_owned(), File::Renamed(entry))).collect();
                let mut loaded = Loaded { files, warnings: Vec::new() };
                remove_overlaps(&self.directory, &mut loaded)?;
                loaded
            }
        };
        Ok(self.loaded.get_or_init(|| loaded))
    }

    fn load(&self, topic_id: Uuid, segments: &BTreeMap<SegmentName, Objects>) -> Result<Loaded> {
        let recorded = self.known.recorded(topic_id, self.name.partition);
        let listed: Vec<(&SegmentName, &Objects)> = segments.iter().collect();
        let describe = |(name, objects): &(&SegmentName, &Objects)| self.recorded_segment(**name, objects, recorded);
        let mut stored = map_waiting(&listed, !self.directory.is_local(), describe)?;
        let mut warnings = self.known.warnings(topic_id, &self.name);
        if let Some(recorded) = recorded {
            self.add_others(topic_id, recorded, &mut stored, &mut warnings)?;
        }
        self.read_ends(&mut stored)?;
        self.read_histories(&mut stored)?;
        warnings.extend(check_claims(&mut stored, &self.directory)?);
        let candidates: Vec<Candidate> = stored.iter().map(|segment| segment.candidate.clone()).collect();
        let chain = choose(&candidates, self.known.leader_epochs(&self.name)?.as_ref(), None);
        let about: Vec<About<'_>> = stored.iter().map(Stored::about).collect();
        warnings.extend(chain_warnings(&chain, &about));
        let mut loaded = Loaded { files: BTreeMap::new(), warnings };
        let mut epochs: BTreeMap<i32, i64> = BTreeMap::new();
        for link in &chain.links {
            let Some(segment) = stored.get(link.index) else { continue };
            let whole_end = segment.candidate.last_offset.map(|last| last.saturating_add(1));
            let is_whole = link.offsets.start == segment.candidate.start_offset
                && (!link.end_is_known || Some(link.offsets.end) == whole_end);
            if is_whole {
                segment.add_files(&mut loaded.files, whole_end);
            } else {
                // up to the end of the segment, which may be corrupt
                let end = if Some(link.offsets.end) == whole_end { i64::MAX } else { link.offsets.end };
                segment.add_part(&mut loaded.files, &(link.offsets.start..end))?;
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

    /// Adds the earlier leader epochs to those of manifests, which have only the segment's own. They decide which of two
    /// segments with the same offsets belongs to the partition.
    fn read_histories(&self, stored: &mut [Stored]) -> Result<()> {
        let spans = stored.iter().map(|segment| (segment.candidate.start_offset, segment.candidate.last_offset));
        let mut spans: Vec<(i64, Option<i64>)> = spans.collect();
        spans.sort_unstable();
        let mut pairs = spans.iter().zip(spans.iter().skip(1));
        if !pairs.any(|((_, last), (next, _))| last.is_some_and(|last| last >= *next)) {
            return Ok(());
        }
        let histories = map_waiting(stored, !self.directory.is_local(), Stored::history)?;
        for (segment, history) in stored.iter_mut().zip(histories) {
            let own = &mut segment.candidate.leader_epochs;
            own.extend(history);
            // the earlier start of an epoch that both have
            own.sort_unstable();
            own.dedup_by_key(|entry| entry.epoch);
        }
        Ok(())
    }

    /// Reads the last offsets of segments that nothing else describes.
    fn read_ends(&self, stored: &mut [Stored]) -> Result<()> {
        let is_unknown = |segment: &&mut Stored| {
            let candidate = &segment.candidate;
            candidate.last_offset.is_none() && !candidate.is_incomplete && !candidate.is_unrecorded
        };
        let mut unknown: Vec<&mut Stored> = stored.iter_mut().filter(is_unknown).collect();
        let ends = map_waiting(&unknown, !self.directory.is_local(), |segment| segment.end(&self.directory))?;
        for (segment, end) in unknown.iter_mut().zip(ends) {
            segment.candidate.last_offset = end.map(|end| end.saturating_sub(1));
            segment.is_end_read = true;
        }
        Ok(())
    }

    /// Describes a segment by its objects, and by its records in `__remote_log_metadata` if there are any.
    fn recorded_segment(
        &self,
        name: SegmentName,
        objects: &Objects,
        recorded: Option<&RemotePartition>,
    ) -> Result<Stored> {
        let Some(recorded) = recorded else { return self.stored(name, objects) };
        let Some(segment) = recorded.segment(name.segment_id) else {
            let mut stored = self.stored(name, objects)?;
            stored.candidate.is_unrecorded = self.known.has_every_record();
            return Ok(stored);
        };
        let mut stored = if segment.state == SegmentState::CopyFinished {
            self.stored(name, objects)?
        } else {
            // its objects may be incomplete
            incomplete(name, objects.values().next().cloned())
        };
        let candidate = &mut stored.candidate;
        candidate.state = Some(segment.state);
        if !stored.is_end_read {
            candidate.last_offset = Some(segment.end_offset);
        }
        candidate.preference = recorded.finish_order(segment.id);
        if candidate.leader_epochs.is_empty() {
            candidate.leader_epochs.clone_from(&segment.leader_epochs);
        }
        Ok(stored)
    }

    /// Adds finished segments whose objects are not in the listing, and warns of those that are not found.
    fn add_others(
        &self,
        topic_id: Uuid,
        recorded: &RemotePartition,
        stored: &mut Vec<Stored>,
        warnings: &mut Vec<(i64, String)>,
    ) -> Result<()> {
        let mut searches_left = MOST_SEARCHES;
        for segment in recorded.readable() {
            if stored.iter().any(|stored| stored.name.segment_id == segment.id) {
                continue;
            }
            let name = SegmentName { start_offset: segment.start_offset, segment_id: segment.id };
            let found = if searches_left > 0 { self.objects_elsewhere(topic_id, segment) } else { None };
            if let Some(objects) = found {
                stored.push(self.recorded_segment(name, &objects, Some(recorded))?);
                continue;
            }
            searches_left = searches_left.saturating_sub(1);
            let (first, last) = (segment.start_offset, segment.end_offset);
            let message = format!(
                "{}: the objects of segment {name}, {}, are missing, but __remote_log_metadata has it as finished",
                self.directory.display(),
                offsets(first, last)
            );
            warnings.push((first, message));
        }
        Ok(())
    }

    /// The objects of a segment at the key in its custom metadata, which may have another prefix than the others.
    fn objects_elsewhere(&self, topic_id: Uuid, segment: &RemoteSegment) -> Option<Objects> {
        let custom = CustomMetadata::parse(segment.custom_metadata.as_deref()?).ok()?;
        if custom.object_prefix.is_none() && custom.object_key.is_none() {
            return None;
        }
        let name = SegmentName { start_offset: segment.start_offset, segment_id: segment.id };
        let key = format!("{}-{topic_id}/{}/{name}", self.name.topic, self.name.partition);
        let key = custom.main_key("", &key);
        let key = key.trim_start_matches('/');
        if key.split('/').any(|component| component == "..") {
            return None;
        }
        // the bucket, or the directory that the plugin writes to, is one of the directories around the partition
        let mut root = self.directory.clone();
        loop {
            let object = |kind: ObjectKind| {
                let location = root.join(format!("{key}{}", kind.suffix()));
                location.status_if_there().map(|status| status.map(|_| (kind.suffix().to_owned(), location)))
            };
            if object(ObjectKind::Manifest).ok()?.is_some() {
                return Some(ObjectKind::ALL.into_iter().filter_map(|kind| object(kind).ok().flatten()).collect());
            }
            let parent = root.path().parent().filter(|parent| !parent.as_os_str().is_empty())?;
            root = root.sibling(parent);
        }
    }

    /// Reads what describes a segment: the manifest, or the leader epochs.
    fn stored(&self, name: SegmentName, objects: &Objects) -> Result<Stored> {
        let object = |suffix: &str| objects.get(suffix).cloned();
        let mut candidate = Candidate { start_offset: name.start_offset, ..Candidate::default() };
        let any = objects.values().next().cloned();
        let Some(log) = object(ObjectKind::Log.suffix()) else { return Ok(incomplete(name, any)) };
        let (manifest, indexes) = (object(ObjectKind::Manifest.suffix()), object(ObjectKind::Indexes.suffix()));
        // the plugin writes the manifest last, so that a log alone is one whose copy was interrupted, too
        let is_of_plugin = indexes.is_some() || aiven_partition(&self.directory.absolute()).is_some();
        if manifest.is_none() && is_of_plugin {
            return Ok(incomplete(name, Some(log)));
        }
        if let Some(manifest) = manifest {
            let bytes = manifest.read_small(MAX_MANIFEST_LEN)?;
            let in_manifest = |error: Error| error.with_path(&manifest);
            let parsed = Manifest::parse(&bytes).map_err(in_manifest)?;
            if let Some(metadata) = &parsed.segment {
                if let Listed::WithIds(topic_id, _) = &self.content {
                    metadata.check_key(*topic_id, self.name.partition, name).map_err(in_manifest)?;
                }
                candidate.last_offset = Some(metadata.end_offset);
                candidate.leader_epochs.clone_from(&metadata.leader_epochs);
            }
            let is_described = parsed.segment.is_some();
            let chunked = Chunked::new(log.clone(), indexes, bytes, parsed, self.known.keys.clone());
            if !is_described {
                candidate.leader_epochs = chunked.leader_epochs()?;
            }
            let content = SegmentContent::Chunked(Arc::new(chunked));
            return Ok(Stored { name, log, content, candidate, is_end_read: false });
        }
        if let Some(epochs) = object(FileKind::LeaderEpochs.suffix()) {
            candidate.leader_epochs = LeaderEpochs::read(epochs)?.entries().to_vec();
        }
        let is_empty = log.len().is_ok_and(|len| len == 0);
        if is_empty {
            candidate.last_offset = Some(name.start_offset.saturating_sub(1));
        }
        let content = SegmentContent::Plain(objects.clone());
        Ok(Stored { name, log, content, candidate, is_end_read: is_empty })
    }
}
