//! Segments of tiered storage as the partition directories of a broker, so that everything that reads directories reads
//! them too.
//!
//! A partition is presented as `<topic>-<partition>`, with the names that a broker gives to its files. Its segments are
//! those that [`choose`](crate::tiered::choose()) selects; what it omits is in the warnings of the partition.
//! [`joined`] presents such a partition and the directory of a broker as one log.

mod ends;
mod file;
mod joined;
mod known;
mod partition;
mod watermark;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::io::{Location, Status, StatusKind, Store, StoredFile};
use crate::log::Uuid;
use crate::store::{LogFile, LogFileKind, TopicPartition, parse_partition_directory};
use crate::tiered::SegmentName;
use crate::tiered::aiven::{EncryptionKeys, ObjectKind};
use crate::tiered::local::{self, FileKind};
use crate::tiered::name::split_id;
use crate::tiered::pinterest::{METADATA, WATERMARK};
use file::no_file;
use known::Known;
pub use known::RemoteOptions;
use partition::{Listed, ListedPartition, Objects};

/// Directories below a location in which segments of tiered storage are searched.
const SEARCH_DEPTH: usize = 5;
/// Entries that are read before a location counts as one without tiered storage.
const SEARCH_ENTRIES: usize = 2000;

/// Partition directories of a broker that are searched for a watermark.
const WATERMARK_SEARCHES: usize = 8;
/// A directory, a cluster with the name of a partition, and a partition.
const WATERMARK_DEPTH: usize = 3;

impl Location {
    /// If this contains segments of tiered storage, returns a location that presents them as the partition directories
    /// of a broker: of Aiven's plugin, decrypted with `keys`, of Kafka's `LocalTieredStorage`, and of Pinterest's
    /// uploader. Returns any other location unchanged.
    ///
    /// # Errors
    /// I/O errors of listing; [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for keys without tiered
    /// storage, for a partition in two directories, and for directories with segments of a broker and of tiered storage.
    pub fn with_layout(self, keys: &EncryptionKeys) -> Result<Self> {
        self.with_layout_of(&RemoteOptions::new().keys(keys.clone()))
    }

    /// Like [`Location::with_layout`], with more options.
    ///
    /// # Errors
    /// The errors of [`Location::with_layout`]; [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if the
    /// metadata topic is not at its location; corruption of that topic.
    pub fn with_layout_of(self, options: &RemoteOptions) -> Result<Self> {
        let found = self.with_known_layout(&Known::new(options, None)?)?;
        found.check_effect(options)?;
        Ok(found)
    }

    /// Fails if there are options for tiered storage, and no segment of it is here.
    fn check_effect(&self, options: &RemoteOptions) -> Result<()> {
        if options.metadata.is_none() || self.is_layout() {
            return Ok(());
        }
        let message = "remote_log_metadata has no effect: no segment of tiered storage is here";
        Err(Error::argument(message).with_path(self))
    }

    fn with_known_layout(self, known: &Known) -> Result<Self> {
        if self.status_if_there()?.is_none() {
            // the path of a partition or file as it is presented
            for parent in [self.directory(), self.directory().directory()] {
                let status = match parent.status_if_there() {
                    Err(error) if matches!(error.kind(), ErrorKind::Io(_)) => return Err(error),
                    status => status.ok().flatten(),
                };
                if status.is_some_and(|status| status.is_directory())
                    && layout_of(&parent).is_ok_and(|layout| layout != Layout::Broker)
                    && let Ok(presented) = parent.with_layout_of_directory(known)
                {
                    let presented = presented.sibling(self.path());
                    return Ok(if presented.status_if_there()?.is_some() { presented } else { self });
                }
            }
            return Ok(self);
        }
        if let Some((segment, ".log")) = parse(self.name())
            && self.with_extension("rsm-manifest").status_if_there()?.is_some()
        {
            let partition = self.directory().with_layout_of_directory(known)?;
            let log = LogFile::live(segment.start_offset, LogFileKind::Log).to_string();
            return Ok(partition.join(log));
        }
        self.with_layout_of_directory(known)
    }

    fn with_layout_of_directory(self, known: &Known) -> Result<Self> {
        let found = match layout_of(&self)? {
            Layout::Broker => Vec::new(),
            Layout::WithIds => collect(&self)?,
            Layout::Watermarked => collect_watermarked(&self)?,
        };
        if found.is_empty() {
            if known.keys.is_empty() {
                return Ok(self);
            }
            let message = "encryption_keys have no effect: no segment of Aiven's plugin is here";
            return Err(Error::argument(message).with_path(&self));
        }
        let mut partitions: BTreeMap<PathBuf, ListedPartition> = BTreeMap::new();
        for FoundSegments { name, directory, content } in found {
            let text = format!("{}-{}", name.topic, name.partition);
            let is_here = matches!(content, Listed::Watermarked(_)) && directory == self;
            let path = if is_here { self.path().to_path_buf() } else { self.path().join(&text) };
            if let Some(other) = partitions.get(&path) {
                let why = match content {
                    Listed::WithIds(..) => "with two topic ids, since the topic was created again",
                    Listed::Watermarked(_) | Listed::Plain => "in two directories, such as those of two clusters",
                };
                let message = format!(
                    "partition {text} is here {why}: name {} or {}",
                    other.directory.display(),
                    directory.display()
                );
                return Err(Error::argument(message).with_path(&self));
            }
            partitions.insert(path, ListedPartition::new(directory, name, content, known.clone()));
        }
        // a location inside a single partition is that partition
        let only = partitions.iter().next().filter(|_| partitions.len() == 1);
        let path = match only {
            Some((path, _)) if is_partition(&self) => path.clone(),
            _ => self.path().to_path_buf(),
        };
        let files = TieredFiles { root: self.path().to_path_buf(), partitions };
        Ok(Self::in_store(path, Arc::new(files)))
    }

    /// Presents the directory of a partition with a broker's names so that each offset is read once. Returns a location
    /// with another layout, which is presented so, unchanged.
    fn without_overlaps(self, known: &Known) -> Self {
        let Some(name) = parse_partition_directory(self.absolute().name()).filter(|_| !self.is_layout()) else {
            return self;
        };
        let path = self.path().to_path_buf();
        let partition = ListedPartition::new(self, name, Listed::Plain, known.clone());
        let partitions = BTreeMap::from([(path.clone(), partition)]);
        Self::in_store(path.clone(), Arc::new(TieredFiles { root: path, partitions }))
    }
}

/// Whether this is the directory of one partition in a layout of tiered storage.
fn is_partition(location: &Location) -> bool {
    let absolute = location.absolute();
    local::Directory::parse(absolute.name()).is_some() || aiven_partition(&absolute).is_some()
}

/// The partition of a directory `<topic>-<topic id>/<partition>`.
fn aiven_partition(directory: &Location) -> Option<(TopicPartition, Uuid)> {
    let number = directory.name();
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let partition = number.parse().ok().filter(|_| is_number)?;
    let parent = directory.directory();
    let (topic, id) = split_id(parent.name())?;
    Some((TopicPartition { topic: topic.to_owned(), partition }, id))
}

/// The segment and kind of a file of tiered storage.
fn parse(name: &str) -> Option<(SegmentName, &str)> {
    let (stem, suffix) = name.split_at_checked(name.find('.')?)?;
    let is_known = ObjectKind::ALL.iter().any(|kind| kind.suffix() == suffix)
        || FileKind::ALL.iter().any(|kind| kind.suffix() == suffix);
    Some((SegmentName::parse(stem).filter(|_| is_known)?, suffix))
}

/// What the names under a location are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// Those of a broker, or of something else.
    Broker,
    /// Segments with ids.
    WithIds,
    /// Those of a broker, beside watermarks: Pinterest's uploader.
    Watermarked,
}

/// Recognizes the layout of a location by names. Directories of a broker are recognized at once.
///
/// # Errors
/// I/O errors; [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if directories of a broker and of
/// tiered storage are side by side.
fn layout_of(location: &Location) -> Result<Layout> {
    if !location.status()?.is_directory() {
        return Ok(Layout::Broker);
    }
    let mut pending = vec![(location.clone(), SEARCH_DEPTH)];
    let mut seen = 0_usize;
    while let Some((directory, depth)) = pending.pop() {
        let entries = directory.entries()?;
        seen = seen.saturating_add(entries.len());
        if entries.iter().any(|entry| parse(entry.name()).is_some()) {
            return Ok(Layout::WithIds);
        }
        if let Some(broker) = entries.iter().find(|entry| is_of_broker(entry.name())) {
            let tiered = entries.iter().find(|entry| split_id(entry.name()).is_some() && !is_of_broker(entry.name()));
            if let Some(tiered) = tiered.filter(|entry| is_tiered_directory(entry)) {
                let message = format!(
                    "{} is of a broker and {} of tiered storage: name one of them",
                    broker.name(),
                    tiered.name()
                );
                return Err(Error::argument(message).with_path(location));
            }
            return Ok(if has_watermark(&entries, WATERMARK_DEPTH) { Layout::Watermarked } else { Layout::Broker });
        }
        if seen > SEARCH_ENTRIES {
            return Ok(Layout::Broker);
        }
        for entry in entries.into_iter().filter(|entry| depth > 0 && !entry.name().starts_with('.')) {
            if entry.is_dir() {
                pending.push((entry, depth.saturating_sub(1)));
            }
        }
    }
    Ok(Layout::Broker)
}

/// Whether a broker gives this name to a partition directory or to a file in one.
fn is_of_broker(name: &str) -> bool {
    LogFile::parse(name).is_some() || parse_partition_directory(name).is_some()
}

/// Whether these are the files of a partition with a watermark, or directories of such partitions. The name of a cluster
/// may be that of a partition, so directories are searched to this depth.
fn has_watermark(entries: &[Location], depth: usize) -> bool {
    let Some(deeper) = depth.checked_sub(1) else { return false };
    let directories = entries.iter().filter(|entry| parse_partition_directory(entry.name()).is_some());
    let has_one = |directory: &Location| has_watermark(&directory.entries().unwrap_or_default(), deeper);
    entries.iter().any(|entry| entry.name() == WATERMARK) || directories.take(WATERMARK_SEARCHES).any(has_one)
}

/// Whether a directory is that of a partition or topic in tiered storage.
fn is_tiered_directory(directory: &Location) -> bool {
    let files = |directory: &Location| directory.entries().unwrap_or_default();
    let has_segment = |directory: &Location| files(directory).iter().any(|entry| parse(entry.name()).is_some());
    has_segment(directory) || files(directory).iter().any(has_segment)
}

/// A partition in the listing, and its directory.
struct FoundSegments {
    name: TopicPartition,
    directory: Location,
    content: Listed,
}

/// The segments with ids under a location, by partition and topic id.
fn collect(location: &Location) -> Result<Vec<FoundSegments>> {
    let mut found: BTreeMap<(TopicPartition, Uuid), (Location, BTreeMap<SegmentName, Objects>)> = BTreeMap::new();
    let mut pending = vec![location.clone()];
    while let Some(directory) = pending.pop() {
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
                let (_, segments) = found.entry(named.clone()).or_insert_with(|| (directory.clone(), BTreeMap::new()));
                segments.entry(segment).or_default().insert(suffix, entry);
            } else if LogFile::parse(entry.name()).is_some() {
                let message = "segments of a broker and of tiered storage are in this location: name one of them";
                return Err(Error::argument(message).with_path(&entry));
            } else if !entry.name().starts_with('.') && entry.is_dir() {
                pending.push(entry);
            }
        }
    }
    let found = found.into_iter();
    Ok(found
        .map(|((name, id), (directory, segments))| FoundSegments {
            name,
            directory,
            content: Listed::WithIds(id, segments),
        })
        .collect())
}

/// The partitions of Pinterest's uploader under a location. Their directories may be under different binary digits.
fn collect_watermarked(location: &Location) -> Result<Vec<FoundSegments>> {
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
        for entry in entries.into_iter().filter(|entry| depth > 0 && !entry.name().starts_with('.')) {
            if entry.is_dir() {
                pending.push((entry, depth.saturating_sub(1)));
            }
        }
    }
    // `pending` is a stack
    found.reverse();
    Ok(found)
}

/// The partitions of tiered storage as directories.
struct TieredFiles {
    root: PathBuf,
    partitions: BTreeMap<PathBuf, ListedPartition>,
}

impl fmt::Debug for TieredFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TieredFiles").field("root", &self.root).finish_non_exhaustive()
    }
}

impl TieredFiles {
    /// The file at a path.
    fn file(&self, path: &Path) -> Result<&file::File> {
        let found = path.parent().and_then(|parent| self.partitions.get(parent)).zip(path.file_name());
        let file = match found {
            Some((partition, name)) => partition.files()?.get(name.to_str().unwrap_or_default()),
            None => None,
        };
        file.ok_or_else(|| no_file(path))
    }
}

impl Store for TieredFiles {
    fn status(&self, path: &Path) -> Result<Status> {
        if path == self.root || self.partitions.contains_key(path) {
            return Ok(Status { kind: StatusKind::Directory, len: 0, modified: None });
        }
        self.file(path)?.status()
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        if let Some(partition) = self.partitions.get(directory) {
            return Ok(partition.files()?.keys().map(|name| directory.join(name)).collect());
        }
        if directory == self.root {
            return Ok(self.partitions.keys().cloned().collect());
        }
        Err(no_file(directory))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn StoredFile>> {
        self.file(path)?.open()
    }

    fn is_layout(&self) -> bool {
        true
    }

    fn is_finished(&self, path: &Path) -> bool {
        let partition = path.parent().and_then(|parent| self.partitions.get(parent));
        let are_objects = partition.is_some_and(ListedPartition::is_finished);
        self.file(path).is_ok_and(|file| file.is_finished(are_objects))
    }

    fn part_of(&self, path: &Path) -> Option<(PathBuf, u64)> {
        self.file(path).ok()?.part_of()
    }

    fn warnings(&self, directory: &Path) -> Result<Vec<(i64, String)>> {
        match self.partitions.get(directory) {
            Some(partition) => Ok(partition.warnings()?.to_vec()),
            None => Ok(Vec::new()),
        }
    }
}
