//! [`discover`]: lists the segments of several locations, each segment once, and one replica of each partition.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use glob::{MatchOptions, Pattern};

use crate::error::{Error, Result};
use crate::io::Location;
use crate::limits::Limits;
use crate::plural::some_of;
use crate::repair::walk::reachable_end;
use crate::store::listing::{Listing, list_location};
use crate::store::names::{is_hidden, is_log_of_any_name};
use crate::store::{
    DirectoryState, PartitionDirectory, SegmentFile, TopicPartition, is_tiered_segment, parse_partition_directory,
    refuse_foreign_directory,
};

/// How to treat replicas: directories of the same partition under different paths, such as the log directories of
/// several brokers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Replicas {
    /// Refuse them, since every record would be read twice.
    #[default]
    Error,
    /// Read the replica with the largest range of offsets.
    Longest,
}

impl FromStr for Replicas {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "error" => Ok(Self::Error),
            "longest" => Ok(Self::Longest),
            _ => Err(Error::argument(format!("replicas must be \"error\" or \"longest\", not {name:?}"))),
        }
    }
}

/// Selects partitions. Default: all.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    topics: Option<Vec<Pattern>>,
    partitions: Option<Vec<i32>>,
    replicas: Replicas,
    may_be_missing: bool,
}

impl Selection {
    /// Selects only these topics: names, or patterns with `*`, `?` and `[...]`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a malformed pattern or an empty list.
    pub fn topics<T: AsRef<str>>(mut self, topics: &[T]) -> Result<Self> {
        let parse = |text: &T| {
            let text = text.as_ref();
            Pattern::new(text).map_err(|error| Error::argument(format!("topic pattern {text:?}: {error}")))
        };
        self.topics = Some(topics.iter().map(parse).collect::<Result<_>>()?);
        if topics.is_empty() {
            return Err(Error::argument("topics is empty: name a topic, or omit the argument to read all"));
        }
        Ok(self)
    }

    /// Selects only partitions with these numbers.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a negative number or an empty list.
    pub fn partitions(mut self, partitions: &[i32]) -> Result<Self> {
        if partitions.is_empty() {
            return Err(Error::argument("partitions is empty: name one, or omit the argument to read all"));
        }
        if let Some(negative) = partitions.iter().find(|number| **number < 0) {
            return Err(Error::argument(format!("partition {negative} is negative")));
        }
        self.partitions = Some(partitions.to_vec());
        Ok(self)
    }

    /// Sets how to treat replicas.
    #[must_use]
    pub fn replicas(mut self, replicas: Replicas) -> Self {
        self.replicas = replicas;
        self
    }

    /// Accepts that the selected topics and partitions do not exist at this moment.
    #[must_use]
    pub(crate) fn that_may_be_missing(mut self) -> Self {
        self.may_be_missing = true;
        self
    }

    /// Whether a partition is selected.
    #[must_use]
    pub fn includes(&self, partition: &TopicPartition) -> bool {
        self.includes_topic(&partition.topic)
            && self.partitions.as_ref().is_none_or(|numbers| numbers.contains(&partition.partition))
    }

    fn includes_topic(&self, topic: &str) -> bool {
        self.topics.as_ref().is_none_or(|patterns| patterns.iter().any(|pattern| pattern.matches(topic)))
    }

    /// Whether topics are selected by name or pattern.
    pub(crate) fn names_topics(&self) -> bool {
        self.topics.is_some()
    }

    /// Selects everything, and treats replicas in the same way.
    pub(crate) fn of_same_replicas(&self) -> Self {
        Self::default().replicas(self.replicas)
    }

    /// Whether neither topics nor partitions are selected.
    #[must_use]
    pub fn is_everything(&self) -> bool {
        self.topics.is_none() && self.partitions.is_none()
    }

    /// Checks that each topic name or pattern matches a topic, and that the selection is not empty.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) that names the topics that exist.
    pub fn check<'p>(&self, found: impl Iterator<Item = &'p TopicPartition> + Clone) -> Result<()> {
        if self.may_be_missing {
            return Ok(());
        }
        let topics: BTreeSet<&str> = found.clone().map(|partition| partition.topic.as_str()).collect();
        let missing = self.topics.iter().flatten().find(|pattern| !topics.iter().any(|topic| pattern.matches(topic)));
        if let Some(pattern) = missing {
            let message = format!("no topic matches {:?}; topics found: {}", pattern.as_str(), some_of(&topics));
            return Err(Error::argument(message));
        }
        if self.partitions.is_some() && !found.clone().any(|partition| self.includes(partition)) {
            let numbers: BTreeSet<String> = found
                .filter(|partition| self.includes_topic(&partition.topic))
                .map(|partition| partition.partition.to_string())
                .collect();
            let message = format!("none of the selected partitions exists; partitions found: {}", some_of(&numbers));
            return Err(Error::argument(message));
        }
        Ok(())
    }
}

/// The segments of some locations.
#[derive(Debug, Default)]
pub struct Discovery {
    /// The segments of each location, sorted by topic, partition and base offset. A segment under several locations is
    /// only listed for the first of them.
    pub locations: Vec<Vec<SegmentFile>>,
    /// Warnings to show to users: empty locations, partitions that contain files but no segment, directories with
    /// segments but without the name of a partition, and `.log` files without the name of a segment.
    pub warnings: Vec<String>,
    /// What users should know about segments in remote storage, such as segments that are omitted, offsets that no
    /// segment contains, and partitions that are not read.
    pub omissions: Vec<String>,
}

impl Discovery {
    /// Returns the segments of all locations.
    #[must_use]
    pub fn into_segments(self) -> Vec<SegmentFile> {
        self.locations.into_iter().flatten().collect()
    }
}

/// Lists the segments of a `.log` file, of a partition directory, of a log directory (all partition directories in
/// it), or of all of these that match a pattern. They are sorted by topic, partition and base offset.
///
/// A file may have any name, unless its content is clearly of another format. In directories, files that are not
/// segments and directories that are not live partitions are skipped. An empty directory has no segments.
///
/// # Errors
/// - I/O errors.
/// - [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for an index or another file that belongs to a
///   segment, and for a location that contains files but no segment.
/// - [`ErrorKind::InvalidFile`](crate::ErrorKind::InvalidFile) if a broker was stopped while it replaced segments, and
///   some exist only as `.swap` files.
pub fn find_segments(path: impl Into<Location>) -> Result<Vec<SegmentFile>> {
    discover(&[path.into()], &Selection::default()).map(Discovery::into_segments)
}

/// Lists the segments of several locations: each segment once, and one replica of each partition.
///
/// # Errors
/// The errors of [`find_segments`]. [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for replicas, if
/// the selection refuses them, and for a topic that does not exist.
pub fn discover(locations: &[Location], selection: &Selection) -> Result<Discovery> {
    let mut discovery = Discovery::default();
    let mut partitions = Vec::new();
    for location in locations {
        let mut segments = Vec::new();
        for path in expand(location)? {
            let Listing { segments: found, partitions: named, without_segments, misnamed, misnamed_logs, unfinished } =
                list_location(&path, &|partition| selection.includes(partition))?;
            discovery.warnings.extend(unfinished);
            let directories = found.iter().map(|segment| segment.path.directory()).chain(without_segments.clone());
            for directory in directories.collect::<BTreeSet<_>>() {
                discovery.omissions.extend(directory.warnings()?);
            }
            if locations.len() == 1 {
                discovery.omissions.extend(warning_of_unlisted(&path, selection));
            }
            let is_filtered = !named.is_empty() && !named.iter().any(|partition| selection.includes(partition));
            if found.is_empty() && !is_filtered && (selection.is_everything() || without_segments.is_empty()) {
                judge_empty(&path, &named, &mut discovery.warnings)?;
            } else {
                warn_of_foreign(&without_segments, &mut discovery.warnings);
                discovery.warnings.extend(warning_of_empty(&path, &without_segments).filter(|_| found.is_empty()));
            }
            if selection.is_everything() {
                discovery.warnings.extend(misnamed.iter().map(warning_of_misnamed));
            }
            discovery.warnings.extend(warning_of_logs(&misnamed_logs));
            partitions.extend(named);
            partitions.extend(found.iter().filter_map(|segment| segment.partition.clone()));
            segments.extend(found);
        }
        discovery.locations.push(segments);
    }
    if !selection.is_everything() {
        selection.check(partitions.iter())?;
        let is_selected = |segment: &SegmentFile| segment.partition.as_ref().is_some_and(|one| selection.includes(one));
        discovery.locations.iter_mut().for_each(|segments| segments.retain(is_selected));
    }
    let all = discovery.locations.iter().map(Vec::len).fold(0_usize, usize::saturating_add);
    if all > 1 && (locations.len() > 1 || is_pattern(locations)) {
        keep_each_once(&mut discovery.locations);
        judge_replicas(&mut discovery.locations, selection.replicas)?;
    }
    Ok(discovery)
}

/// Warns about a location without selected segments, and refuses one with other files. The location is valid if nothing
/// was written yet, or if it has other partitions.
fn judge_empty(path: &Location, partitions: &[TopicPartition], warnings: &mut Vec<String>) -> Result<()> {
    refuse_foreign_directory(path)?;
    let hidden = path.is_dir().then(|| path.entries()).transpose()?.unwrap_or_default();
    let hidden = hidden.iter().find(|entry| is_hidden(entry.name()) && entry.is_dir());
    warnings.push(if let Some(hidden) = hidden.filter(|_| partitions.is_empty()) {
        let (path, hidden) = (path.display(), hidden.display());
        format!("there is no segment to read in {path}; {hidden} was not searched, because its name begins with a dot")
    } else if partitions.is_empty() {
        format!("{} is empty: there is no segment to read", path.display())
    } else {
        format!("no partition in {} has a segment to read", path.display())
    });
    Ok(())
}

/// Warns of a location all of whose selected partitions have no segment.
fn warning_of_empty(path: &Location, without_segments: &[Location]) -> Option<String> {
    let names = some_of(without_segments.iter().map(Location::name));
    (!without_segments.is_empty())
        .then(|| format!("no selected partition in {} has a segment to read: {names}", path.display()))
}

/// Warns of selected partitions that are only in remote storage. With several locations, another one may have them.
pub(crate) fn warning_of_unlisted(path: &Location, selection: &Selection) -> Option<String> {
    let unlisted = path.unlisted();
    let is_selected =
        |one: &&Location| parse_partition_directory(one.name()).is_some_and(|partition| selection.includes(&partition));
    let names: BTreeSet<&str> = unlisted.iter().filter(is_selected).map(Location::name).collect();
    let remote = unlisted.first()?.directory();
    (!names.is_empty()).then(|| {
        format!(
            "these partitions in {} have no directory in {}, and are not read: {}",
            remote.display(),
            path.display(),
            some_of(&names)
        )
    })
}

fn warning_of_misnamed(directory: &Location) -> String {
    format!(
        "{} contains segments and is not read, because its name is not that of a partition, <topic>-<partition>",
        directory.display()
    )
}

fn warning_of_logs(files: &[Location]) -> Option<String> {
    let first = files.first()?.display();
    Some(match files.len().saturating_sub(1) {
        0 => format!("{first} is not read, because its name is not that of a segment: 20 digits and .log"),
        more => format!(
            "{first} and {more} more are not read, because their names are not those of segments: 20 digits and .log"
        ),
    })
}

/// Warns of partitions that contain files but no segment.
fn warn_of_foreign(directories: &[Location], warnings: &mut Vec<String>) {
    warnings.extend(
        directories.iter().filter_map(|directory| refuse_foreign_directory(directory).err()).map(|e| e.to_string()),
    );
}

fn is_pattern(locations: &[Location]) -> bool {
    locations.iter().any(has_wildcard)
}

fn has_wildcard(path: &Location) -> bool {
    path.to_str().is_some_and(|text| text.contains(['*', '?', '['])) && !path.exists()
}

/// Returns the paths that match a pattern. A path that exists is not treated as a pattern.
fn expand(path: &Location) -> Result<Vec<Location>> {
    if !has_wildcard(path) {
        return Ok(vec![path.clone()]);
    }
    let options = MatchOptions { require_literal_leading_dot: true, ..MatchOptions::default() };
    if !path.is_local() {
        return expand_stored(path, options);
    }
    let path_of = |found: glob::GlobResult| found.map(Location::from).map_err(std::io::Error::from);
    let paths = glob::glob_with(&path.to_string_lossy(), options)
        .map_err(|error| Error::argument(format!("pattern {}: {error}", path.display())))?;
    let found = paths.map(path_of).collect::<std::io::Result<Vec<_>>>()?;
    those_of_a_log(found, path)
}

/// Like [`expand`], in a store: the components from the first wildcard on are compared with the names there.
fn expand_stored(path: &Location, options: MatchOptions) -> Result<Vec<Location>> {
    let text = path.to_string_lossy().into_owned();
    let wildcard = text.find(['*', '?', '[']).unwrap_or(text.len());
    let (base, rest) = text.split_at_checked(wildcard).unwrap_or((&text, ""));
    let (base, beginning) = base.rsplit_once('/').unwrap_or((base, ""));
    let mut found = vec![path.sibling(Path::new(base))];
    for component in format!("{beginning}{rest}").split('/').filter(|component| !component.is_empty()) {
        let pattern =
            Pattern::new(component).map_err(|error| Error::argument(format!("pattern {}: {error}", path.display())))?;
        let mut next = Vec::new();
        for directory in found.iter().filter(|directory| directory.is_dir()) {
            next.extend(directory.entries()?.into_iter().filter(|entry| pattern.matches_with(entry.name(), options)));
        }
        found = next;
    }
    those_of_a_log(found, path)
}

/// The matches of a pattern that a log directory would list too, sorted.
fn those_of_a_log(mut found: Vec<Location>, pattern: &Location) -> Result<Vec<Location>> {
    if found.is_empty() {
        return Err(not_found(pattern, "nothing matches the pattern"));
    }
    found.retain(is_of_a_log);
    if found.is_empty() {
        return Err(not_found(
            pattern,
            "nothing that matches the pattern is a segment, a partition or a log directory",
        ));
    }
    found.sort();
    Ok(found)
}

fn not_found(path: &Location, message: &str) -> Error {
    Error::from(std::io::Error::new(std::io::ErrorKind::NotFound, message)).with_path(path)
}

/// Whether to read a path that matched a pattern. Skips the same paths as a log directory does, but not logs whose names
/// are not those of segments: the pattern names them.
fn is_of_a_log(path: &Location) -> bool {
    if path.is_dir() {
        return is_no_dead_partition(path);
    }
    let is_log = is_log_of_any_name(path.name()) || is_tiered_segment(path.name());
    is_log && is_no_dead_partition(&path.directory())
}

fn is_no_dead_partition(directory: &Location) -> bool {
    PartitionDirectory::parse(directory.name()).is_none_or(|parsed| parsed.state == DirectoryState::Live)
}

/// Drops segments that were already listed, possibly under another name.
fn keep_each_once(locations: &mut [Vec<SegmentFile>]) {
    let mut seen = HashSet::new();
    for segments in locations {
        segments.retain(|segment| seen.insert(segment.path.resolved()));
    }
}

/// Refuses partitions that have several directories, or keeps one directory for each.
fn judge_replicas(locations: &mut [Vec<SegmentFile>], replicas: Replicas) -> Result<()> {
    let mut directories: BTreeMap<&TopicPartition, BTreeMap<PathBuf, Vec<&SegmentFile>>> = BTreeMap::new();
    for segment in locations.iter().flatten() {
        if let Some(partition) = &segment.partition {
            let directory = segment.path.directory().resolved();
            directories.entry(partition).or_default().entry(directory).or_default().push(segment);
        }
    }
    let mut kept = Vec::new();
    for (partition, copies) in directories.into_iter().filter(|(_, copies)| copies.len() > 1) {
        let names: Vec<String> = copies.keys().take(3).map(|path| path.display().to_string()).collect();
        if replicas == Replicas::Error {
            let message = format!(
                "partition {}-{} is in several directories: {}; read one of them, or set replicas=\"longest\" to \
                 read the more complete one",
                partition.topic,
                partition.partition,
                names.join(" and ")
            );
            return Err(Error::argument(message));
        }
        let longest =
            copies.iter().max_by_key(|(path, segments)| (extent(segments), std::cmp::Reverse((*path).clone())));
        kept.extend(longest.map(|(path, _)| (partition.clone(), path.clone())));
    }
    for segments in locations {
        segments.retain(|segment| {
            let replica = kept.iter().find(|(partition, _)| Some(partition) == segment.partition.as_ref());
            replica.is_none_or(|(_, path)| segment.path.directory().resolved() == *path)
        });
    }
    Ok(())
}

/// Measures how complete a replica is: the number of offsets from its first segment to its end, then its end, then its
/// bytes.
fn extent(segments: &[&SegmentFile]) -> (i64, i64, u64) {
    let start = segments.iter().filter_map(|segment| segment.base_offset).min().unwrap_or(0);
    let last = segments.iter().max_by_key(|segment| segment.base_offset);
    let end = last.map_or(start, |last| {
        // over corruption too, so that it does not make a replica look shorter
        let end = reachable_end(&last.path, &Limits::default());
        // a replica that ends in corruption reaches at least to its last segment's base offset
        end.ok().flatten().or(last.base_offset).unwrap_or(start)
    });
    let bytes = segments.iter().map(|segment| segment.size).fold(0, u64::saturating_add);
    (end.saturating_sub(start), end, bytes)
}

/// The segments at a location; none if it does not exist.
#[cfg(feature = "plan")]
pub(crate) fn segments_at(location: &Location) -> Result<Vec<SegmentFile>> {
    let selection = Selection::default().replicas(Replicas::Longest);
    match discover(std::slice::from_ref(location), &selection) {
        Ok(discovery) => Ok(discovery.into_segments()),
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}
