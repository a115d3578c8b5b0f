//! [`Sources`]: the partition directories below a location, one for each partition.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::internal::Family;
use crate::io::Location;
use crate::io::staged::is_partial;
use crate::plan::{Selection, discover};
use crate::restore::SkippedPartition;
use crate::store::names::{
    DirectoryState, LogFile, LogFileKind, LogFileState, PartitionDirectory, is_beside_partitions, is_hidden,
};
use crate::store::{TopicPartition, parse_partition_directory, refuse_foreign_directory};

/// Levels of directories below the location in which partitions are searched. Pinterest's layout has three.
const SEARCH_DEPTH: usize = 6;
/// Directories that are listed before the search fails.
const MAX_DIRECTORIES: usize = 100_000;
/// The topic with the log of a cluster's metadata. Brokers of another cluster cannot use it.
const CLUSTER_METADATA: &str = "__cluster_metadata";
/// The topic with the offsets of consumers.
const CONSUMER_OFFSETS: &str = "__consumer_offsets";

/// A partition to restore.
#[derive(Debug)]
pub(super) struct PartitionSource {
    pub(super) partition: TopicPartition,
    pub(super) directory: Location,
}

/// The partitions of a location.
#[derive(Debug, Default)]
pub(super) struct Sources {
    /// The partitions to restore, sorted.
    pub(super) partitions: Vec<PartitionSource>,
    /// The partitions that cannot be restored, and internal ones that are not selected.
    pub(super) skipped: Vec<SkippedPartition>,
    /// The partitions with the offsets of consumers, selected or not.
    pub(super) offsets: Vec<Location>,
}

impl Sources {
    /// Finds the partitions of a location.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if there is no partition, if a selected topic
    /// does not exist, or if a partition is in several directories; I/O errors.
    pub(super) fn find(location: &Location, selection: &Selection) -> Result<Self> {
        let found = PartitionSearch::run(location)?;
        if found.live.is_empty() && found.skipped.is_empty() && found.misnamed.is_none() {
            refuse_foreign_directory(location)?;
            let message = "no partition directory is here: they are named <topic>-<partition> and contain segments";
            return Err(Error::argument(message).with_path(location));
        }
        if let Some(misnamed) = found.misnamed.as_ref().filter(|_| selection.is_everything()) {
            let message = "the directory contains segments, but its name is not that of a partition: rename it to \
                           <topic>-<partition>, or select topics";
            return Err(Error::argument(message).with_path(misnamed));
        }
        if !selection.is_everything() {
            let skipped = found.skipped.iter().map(|skipped| &skipped.partition);
            selection.check(found.live.keys().chain(skipped))?;
        }
        let mut sources = Self { skipped: found.skipped, offsets: offsets(&found.live, selection)?, ..Self::default() };
        sources.skipped.retain(|skipped| selection.includes(&skipped.partition));
        for (partition, directories) in found.live {
            if !selection.includes(&partition) {
                continue;
            }
            let directory = one_of(&directories, selection)?;
            match why_not(&partition, selection) {
                Some(reason) => sources.skip(partition, &directory, reason.to_owned()),
                None => sources.partitions.push(PartitionSource { partition, directory }),
            }
        }
        sources.skipped.sort_by(|a, b| a.partition.cmp(&b.partition));
        Ok(sources)
    }

    fn skip(&mut self, partition: TopicPartition, directory: &Location, reason: String) {
        self.skipped.push(SkippedPartition { partition, path: directory.to_path_buf(), reason });
    }
}

/// The partitions of `__consumer_offsets` below a location.
///
/// # Errors
/// As for [`Sources::find`].
pub(super) fn find_offsets(location: &Location) -> Result<Vec<Location>> {
    offsets(&PartitionSearch::run(location)?.live, &Selection::default())
}

fn offsets(found: &BTreeMap<TopicPartition, Vec<Location>>, selection: &Selection) -> Result<Vec<Location>> {
    let of_topic = found.iter().filter(|(partition, _)| partition.topic == CONSUMER_OFFSETS);
    of_topic.map(|(_, directories)| one_of(directories, selection)).collect()
}

/// Returns the replica to read.
fn one_of(directories: &[Location], selection: &Selection) -> Result<Location> {
    match directories {
        [only] => Ok(only.clone()),
        several => {
            let discovery = discover(several, &selection.of_same_replicas())?;
            let kept = discovery.into_segments().into_iter().next().map(|segment| segment.path.directory());
            let first = || Error::argument("this partition directory became empty while it was read");
            kept.or_else(|| several.first().cloned()).ok_or_else(first)
        }
    }
}

/// Why a partition is not restored, if it is not.
fn why_not(partition: &TopicPartition, selection: &Selection) -> Option<&'static str> {
    if partition.topic == CLUSTER_METADATA {
        return Some("the metadata of a cluster is of no use to another cluster");
    }
    let is_internal = Family::of_topic(&partition.topic).is_some();
    (is_internal && !selection.names_topics()).then_some("internal topics are only restored if they are selected")
}

/// A search for partition directories.
#[derive(Debug, Default)]
struct PartitionSearch {
    live: BTreeMap<TopicPartition, Vec<Location>>,
    skipped: Vec<SkippedPartition>,
    /// A directory with segments whose name is not that of a partition.
    misnamed: Option<Location>,
}

impl PartitionSearch {
    fn run(location: &Location) -> Result<Self> {
        if !location.status()?.is_directory() {
            let message = "this is a file: name a partition directory, a log directory or a directory with backups";
            return Err(Error::argument(message).with_path(location));
        }
        let mut search = Self::default();
        let mut pending = vec![(location.clone(), SEARCH_DEPTH)];
        let mut count = 0_usize;
        while let Some((directory, depth)) = pending.pop() {
            count = count.saturating_add(1);
            if count > MAX_DIRECTORIES {
                let message = format!("there are more than {MAX_DIRECTORIES} directories here: name one of them");
                return Err(Error::argument(message).with_path(location));
            }
            let nested = search.directory(directory)?;
            if depth > 0 {
                pending.extend(nested.into_iter().map(|nested| (nested, depth.saturating_sub(1))));
            }
        }
        Ok(search)
    }

    /// Adds a directory if it is that of a partition. Otherwise, returns the directories in it.
    fn directory(&mut self, directory: Location) -> Result<Vec<Location>> {
        let entries = directory.entries()?;
        let absolute = directory.absolute();
        let name = absolute.name();
        let is_segment = |entry: &Location| LogFile::parse(entry.name()).is_some_and(is_of_log);
        // a link to a disk that is missing: an error if the partition is selected
        for entry in entries.iter().filter(|entry| entry.is_link() && !entry.exists()) {
            if let Some(partition) = parse_partition_directory(entry.name()) {
                self.live.entry(partition).or_default().push(entry.clone());
            }
        }
        if !entries.iter().any(is_segment) {
            let mut nested = entries;
            nested.retain(|entry| {
                let name = entry.name();
                !is_hidden(name) && !is_beside_partitions(name) && !is_partial(name) && entry.is_dir()
            });
            // the name of a cluster may be that of a partition
            if let Some(partition) = parse_partition_directory(name).filter(|_| nested.is_empty()) {
                let reason = refuse_foreign_directory(&directory).err().map(|error| error.to_string());
                let reason = reason.unwrap_or_else(|| why_empty(&directory));
                self.skipped.push(SkippedPartition { partition, path: directory.to_path_buf(), reason });
            }
            return Ok(nested);
        }
        match PartitionDirectory::parse(name) {
            Some(PartitionDirectory { topic, partition, state: DirectoryState::Live }) => {
                self.live.entry(TopicPartition { topic, partition }).or_default().push(directory);
            }
            Some(PartitionDirectory { topic, partition, .. }) => {
                let partition = TopicPartition { topic, partition };
                let reason = "the broker had deleted, moved or abandoned this copy".to_owned();
                self.skipped.push(SkippedPartition { partition, path: directory.to_path_buf(), reason });
            }
            None => self.misnamed = Some(directory),
        }
        Ok(Vec::new())
    }
}

/// Whether a file is a segment, or becomes one when a broker starts.
fn is_of_log(file: LogFile) -> bool {
    file.kind == LogFileKind::Log && matches!(file.state, LogFileState::Live | LogFileState::Swap)
}

/// Why a partition directory has no segment.
fn why_empty(directory: &Location) -> String {
    match directory.warnings() {
        Ok(warnings) if !warnings.is_empty() => format!("no segment can be restored: {}", warnings.join("; ")),
        _ => "the directory contains no segment".to_owned(),
    }
}
