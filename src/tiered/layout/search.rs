//! Which layout a location has, and the partitions of tiered storage in it: [`layout_of`], [`collect`] and
//! [`collect_watermarked`].

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::path::PathBuf;

use super::partition::Listed;
use super::stored::Objects;
use crate::error::{Error, ErrorKind, Result};
use crate::io::Location;
use crate::log::Uuid;
use crate::store::names::{is_beside_partitions, is_hidden};
use crate::store::{LogFile, PartitionDirectory, TopicPartition, parse_partition_directory};
use crate::tiered::SegmentName;
use crate::tiered::aiven::{ObjectKind, aiven_partition};
use crate::tiered::local::{self, FileKind};
use crate::tiered::name::split_id;
use crate::tiered::pinterest::{METADATA, WATERMARK};

/// Levels of directories below a location in which segments of tiered storage are searched.
const SEARCH_DEPTH: usize = 5;
/// Directories that are listed before a location counts as one without tiered storage.
const SEARCH_DIRECTORIES: usize = 1000;
/// Directories that are listed beside those of a broker.
const SEARCH_BESIDE_BROKER: usize = 100;

/// Directories with the names of partitions that are listed.
const BROKER_SEARCHES: usize = 8;
/// A directory, a cluster with the name of a partition, and a partition.
const WATERMARK_DEPTH: usize = 3;

/// What the names under a location are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// Those of a broker, or of something else.
    Broker,
    /// Segments with ids.
    WithIds,
    /// Those of a broker, beside watermarks: Pinterest's uploader.
    Watermarked,
}

/// Recognizes the layout of a location by names.
///
/// # Errors
/// I/O errors; [`ErrorKind::InvalidArgument`] if directories of a broker and of tiered storage are side by side.
pub(super) fn layout_of(location: &Location) -> Result<Layout> {
    if !location.status()?.is_directory() {
        return Ok(Layout::Broker);
    }
    let mut pending = VecDeque::from([(location.clone(), SEARCH_DEPTH)]);
    let mut seen = HashSet::new();
    let mut broker: Option<OfBroker> = None;
    while let Some((directory, depth)) = pending.pop_front() {
        let most = if broker.is_some() { SEARCH_BESIDE_BROKER } else { SEARCH_DIRECTORIES };
        if seen.len() >= most {
            break;
        }
        if !seen.insert(directory.resolved()) {
            continue;
        }
        let entries = match directory.entries() {
            Err(error) if directory != *location && is_unreadable(&error) => continue,
            entries => entries?,
        };
        if entries.iter().any(|entry| parse(entry.name()).is_some()) {
            return broker.map_or(Ok(()), |broker| broker.check_beside(&directory, location)).map(|()| Layout::WithIds);
        }
        let found = OfBroker::find(&directory, &entries);
        for entry in entries.into_iter().filter(|entry| depth > 0 && may_contain_others(entry.name())) {
            let is_tiered = split_id(entry.name()).is_some() || aiven_partition(&entry).is_some();
            // the partitions of a broker contain no directories
            let is_of_partition = found.is_some() && PartitionDirectory::parse(entry.name()).is_some();
            if (is_tiered || !is_of_partition) && entry.is_dir() {
                let next = (entry, depth.saturating_sub(1));
                if is_tiered { pending.push_front(next) } else { pending.push_back(next) }
            }
        }
        // a partition may have no watermark, although others have one
        broker = match (broker, found) {
            (Some(known), Some(found)) if found.layout == Layout::Watermarked => {
                Some(OfBroker { layout: Layout::Watermarked, ..known })
            }
            (known, found) => known.or(found),
        };
    }
    Ok(broker.map_or(Layout::Broker, |broker| broker.layout))
}

/// Whether a directory cannot be listed because of its permissions, or was deleted since.
fn is_unreadable(error: &Error) -> bool {
    error.is_not_found()
        || matches!(error.kind(), ErrorKind::Io(error) if error.kind() == std::io::ErrorKind::PermissionDenied)
}

/// Whether a directory is hidden: its name begins with a dot, and it is not that of a topic or partition.
fn is_hidden_beside_topics(name: &str) -> bool {
    is_hidden(name) && split_id(name).is_none()
}

/// Whether a name may be that of a directory to search.
fn may_contain_others(name: &str) -> bool {
    !is_hidden_beside_topics(name) && LogFile::parse(name).is_none() && !is_beside_partitions(name)
}

/// A directory with segments of a broker, or with partition directories that contain some.
struct OfBroker {
    directory: PathBuf,
    /// The segment or partition directory.
    name: String,
    layout: Layout,
}

impl OfBroker {
    fn find(directory: &Location, entries: &[Location]) -> Option<Self> {
        let is_file = |entry: &&Location| LogFile::parse(entry.name()).is_some();
        let of_partition = |entry: &&Location| parse_partition_directory(entry.name()).is_some();
        let contains_files =
            |entry: &&Location| entry.entries().is_ok_and(|files| files.iter().any(|file| is_file(&file)));
        let partition = || entries.iter().filter(of_partition).take(BROKER_SEARCHES).find(contains_files);
        let found = entries.iter().find(is_file).or_else(partition)?;
        let layout = if has_watermark(entries, WATERMARK_DEPTH) { Layout::Watermarked } else { Layout::Broker };
        Some(Self { directory: directory.to_path_buf(), name: found.name().to_owned(), layout })
    }

    /// Fails if a directory of tiered storage is in the same directory.
    fn check_beside(&self, tiered: &Location, location: &Location) -> Result<()> {
        let inside = tiered.path().strip_prefix(&self.directory).ok();
        let Some(tiered) = inside.and_then(|inside| inside.components().next()) else { return Ok(()) };
        let tiered = tiered.as_os_str().display();
        let message = format!("{} is of a broker and {tiered} of tiered storage: name one of them", self.name);
        Err(Error::argument(message).with_path(location))
    }
}

/// Whether these are the files of a partition with a watermark, or directories of such partitions. The name of a cluster
/// may be that of a partition, so directories are searched to this depth.
fn has_watermark(entries: &[Location], depth: usize) -> bool {
    let Some(deeper) = depth.checked_sub(1) else { return false };
    let directories = entries.iter().filter(|entry| parse_partition_directory(entry.name()).is_some());
    let has_one = |directory: &Location| has_watermark(&directory.entries().unwrap_or_default(), deeper);
    entries.iter().any(|entry| entry.name() == WATERMARK) || directories.take(BROKER_SEARCHES).any(has_one)
}

/// The segment and kind of a file of tiered storage.
pub(super) fn parse(name: &str) -> Option<(SegmentName, &str)> {
    let (stem, suffix) = name.split_at_checked(name.find('.')?)?;
    let is_known = ObjectKind::ALL.iter().any(|kind| kind.suffix() == suffix)
        || FileKind::ALL.iter().any(|kind| kind.suffix() == suffix);
    Some((SegmentName::parse(stem).filter(|_| is_known)?, suffix))
}

/// A partition in the listing, and its directory.
pub(super) struct FoundSegments {
    pub(super) name: TopicPartition,
    pub(super) directory: Location,
    pub(super) content: Listed,
}

/// The segments of a partition: the first directory with some, and for each segment the directories with its objects.
struct Copies {
    directory: Location,
    segments: BTreeMap<SegmentName, BTreeMap<PathBuf, Objects>>,
}

/// The segments with ids under a location, by partition and topic id.
pub(super) fn collect(location: &Location) -> Result<Vec<FoundSegments>> {
    let mut found: BTreeMap<(TopicPartition, Uuid), Copies> = BTreeMap::new();
    let mut pending = vec![location.clone()];
    // a symbolic link may lead back to a directory around it
    let mut seen = HashSet::new();
    while let Some(directory) = pending.pop() {
        if !seen.insert(directory.resolved()) {
            continue;
        }
        let absolute = directory.absolute();
        let named = local::Directory::parse(absolute.name())
            .map(|parsed| (parsed.partition, parsed.topic_id))
            .or_else(|| aiven_partition(&absolute));
        for entry in directory.entries()? {
            if let Some((segment, suffix)) = parse(entry.name()) {
                let Some(named) = &named else {
                    let message = "this segment of tiered storage is in a directory whose name is not that of a \
                                   partition, <topic>-<partition>-<topic id> or <topic>-<topic id>/<partition>";
                    return Err(Error::argument(message).with_path(&entry));
                };
                let suffix = suffix.to_owned();
                let copies = found
                    .entry(named.clone())
                    .or_insert_with(|| Copies { directory: directory.clone(), segments: BTreeMap::new() });
                let copies = copies.segments.entry(segment).or_default();
                copies.entry(directory.to_path_buf()).or_default().insert(suffix, entry);
            } else if LogFile::parse(entry.name()).is_some() {
                let message = "segments of a broker and of tiered storage are in this location: name one of them";
                return Err(Error::argument(message).with_path(&entry));
            } else if !is_hidden_beside_topics(entry.name()) && entry.is_dir() {
                pending.push(entry);
            }
        }
    }
    let found = found.into_iter();
    Ok(found
        .map(|((name, id), Copies { directory, segments })| {
            let segments = segments.into_iter().map(|(segment, copies)| (segment, most_complete(copies)));
            FoundSegments { name, directory, content: Listed::WithIds(id, segments.collect()) }
        })
        .collect())
}

/// The objects of the directory that has most of a segment: with the manifest, which is written last, then the bytes of
/// the log and the number of objects. If several have as many, those of the first.
fn most_complete(copies: BTreeMap<PathBuf, Objects>) -> Objects {
    let len_of_log = |objects: &Objects| objects.get(ObjectKind::Log.suffix()).and_then(|log| log.len().ok());
    let has_manifest = |objects: &Objects| objects.contains_key(ObjectKind::Manifest.suffix());
    let several = copies.len() > 1;
    let completeness = |objects: &Objects| {
        let len = if several { len_of_log(objects) } else { None };
        (has_manifest(objects), len, objects.len())
    };
    // the last of several with the same key
    copies.into_values().rev().max_by_key(completeness).unwrap_or_default()
}

/// The partitions of Pinterest's uploader under a location. Their directories may be under different binary digits.
pub(super) fn collect_watermarked(location: &Location) -> Result<Vec<FoundSegments>> {
    let mut found = Vec::new();
    let mut pending = vec![(location.clone(), SEARCH_DEPTH)];
    while let Some((directory, depth)) = pending.pop() {
        let entries = directory.entries()?;
        let is_of_partition = |entry: &Location| entry.name() == WATERMARK || LogFile::parse(entry.name()).is_some();
        if entries.iter().any(is_of_partition) {
            let Some(name) = parse_partition_directory(directory.absolute().name()) else {
                let message = "the directory contains segments, but its name is not that of a partition: rename it to \
                               <topic>-<partition>";
                return Err(Error::argument(message).with_path(&directory));
            };
            let mut files = entries;
            files.retain(|entry| ![WATERMARK, METADATA].contains(&entry.name()) && !entry.is_dir());
            found.push(FoundSegments { name, directory, content: Listed::Watermarked(files) });
            continue;
        }
        for entry in entries.into_iter().filter(|entry| depth > 0 && !is_hidden(entry.name())) {
            if entry.is_dir() {
                pending.push((entry, depth.saturating_sub(1)));
            }
        }
    }
    // `pending` is a stack
    found.reverse();
    Ok(found)
}
