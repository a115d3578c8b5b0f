//! Lists the segments of a log directory, of a partition directory, or of one path.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::io::Location;
use crate::io::unfinished::unfinished_write;
use crate::store::contents::refuse_foreign_file;
use crate::store::names::{
    LEADER_EPOCHS, LogFile, LogFileKind, LogFileState, PARTITION_METADATA, PartitionDirectory, TopicPartition,
    is_hidden, is_log_of_any_name, parse_base_offset, parse_partition_directory,
};

/// A segment's `.log` file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentFile {
    /// The file.
    pub path: Location,
    /// Topic and partition, if the file's directory is named after them.
    pub partition: Option<TopicPartition>,
    /// Base offset, if the file is named after one.
    pub base_offset: Option<i64>,
    /// Size in bytes when the file was listed.
    pub size: u64,
}

/// The contents of one location.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// Sorted by topic, partition and base offset.
    pub(crate) segments: Vec<SegmentFile>,
    /// Every live partition, wanted or not.
    pub(crate) partitions: Vec<TopicPartition>,
    /// Directories of wanted partitions that have no segment.
    pub(crate) without_segments: Vec<Location>,
    /// Directories beside those of partitions that contain segments, but do not have the name of a partition.
    pub(crate) misnamed: Vec<Location>,
    /// Files beside segments that end with `.log`, but do not have the name of a segment.
    pub(crate) misnamed_logs: Vec<Location>,
    /// Writes that are not complete.
    pub(crate) unfinished: Vec<String>,
}

/// The contents of one directory.
struct Folder {
    segments: Vec<SegmentFile>,
    /// Files beside the segments that end with `.log`, but do not have the name of a segment.
    misnamed_logs: Vec<Location>,
    unfinished: Option<String>,
}

/// Lists a location: a `.log` file, a partition directory, or a log directory (all partition directories in it).
///
/// Only opens the directories of partitions for which `wanted` returns true.
///
/// # Errors
/// The errors of [`find_segments`](crate::plan::find_segments).
pub(crate) fn list_location(path: &Location, wanted: &dyn Fn(&TopicPartition) -> bool) -> Result<Listing> {
    let status = path.status()?;
    if !status.is_directory() {
        refuse_other_files(path)?;
        return Ok(Listing { segments: vec![segment(path, status.len)], ..Listing::default() });
    }
    let Folder { segments: own, misnamed_logs, unfinished } = segments_in(path)?;
    let unfinished = Vec::from_iter(unfinished);
    if !own.is_empty() {
        if let Some(partition) = partition_directories(path)?.first() {
            let message = format!(
                "both segments and partition directories, such as {}-{}, are in this directory: name what to read",
                partition.topic, partition.partition
            );
            return Err(Error::argument(message).with_path(path));
        }
        return Ok(Listing { segments: own, misnamed_logs, unfinished, ..Listing::default() });
    }
    let mut listing = Listing { unfinished, ..Listing::default() };
    let (mut directories, mut others) = (Vec::new(), Vec::new());
    for entry in path.entries()? {
        let Some(partition) = parse_partition_directory(entry.name()) else {
            others.push(entry);
            continue;
        };
        // a link whose target is missing is an error, unless the partition is not wanted
        if wanted(&partition) && entry.status_if_there()?.is_none_or(|status| !status.is_directory()) {
            continue;
        }
        directories.push((partition, entry));
    }
    directories.sort();
    refuse_same_partition(&directories, wanted)?;
    for (partition, directory) in directories {
        if wanted(&partition) {
            let Folder { segments, misnamed_logs, unfinished } = match segments_in(&directory) {
                // a broker has deleted the partition since the directory was listed
                Err(error) if error.is_not_found() && !is_listed(path, &directory)? => continue,
                found => found?,
            };
            listing.misnamed_logs.extend(misnamed_logs);
            listing.unfinished.extend(unfinished);
            if segments.is_empty() {
                listing.without_segments.push(directory);
            }
            listing.segments.extend(segments);
        }
        listing.partitions.push(partition);
    }
    if !listing.partitions.is_empty() {
        others.retain(is_misnamed);
        listing.misnamed = others;
    }
    Ok(listing)
}

/// Whether a directory has an entry, which may be a link to nothing.
fn is_listed(directory: &Location, entry: &Location) -> Result<bool> {
    Ok(directory.entries()?.iter().any(|listed| listed.name() == entry.name()))
}

/// Refuses two directories of one partition, such as `orders-0` and `orders-00`, with which no broker starts.
fn refuse_same_partition(
    sorted: &[(TopicPartition, Location)],
    wanted: &dyn Fn(&TopicPartition) -> bool,
) -> Result<()> {
    let mut pairs = sorted.iter().zip(sorted.iter().skip(1));
    let same = pairs.find(|((one, _), (other, _))| one == other && wanted(one));
    let Some(((_, first), (_, second))) = same else { return Ok(()) };
    let message = format!("{} is of the same partition: {SAME_PARTITION}", second.name());
    Err(Error::new(ErrorKind::InvalidFile(message)).with_path(first))
}

/// What to do with two directories of one partition.
pub(crate) const SAME_PARTITION: &str = "move away the directory that does not belong to the log";

/// Whether a directory contains segments, although no broker has given it its name.
fn is_misnamed(entry: &Location) -> bool {
    let is_other = PartitionDirectory::parse(entry.name()).is_some() || is_hidden(entry.name());
    // one that can't be read is not a partition's either
    let files = if is_other || !entry.is_dir() { Vec::new() } else { entry.entries().unwrap_or_default() };
    files.iter().any(|file| parse_base_offset(file.name()).is_some())
}

/// Lists the live partitions among the subdirectories, by their names.
pub(crate) fn partition_directories(path: &Location) -> Result<Vec<TopicPartition>> {
    let named = |entry: &Location| parse_partition_directory(entry.name());
    Ok(path.entries()?.iter().filter_map(|entry| named(entry).filter(|_| entry.is_dir())).collect())
}

/// Refuses a log directory where a partition directory is expected.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for a directory that contains partition directories; I/O errors.
pub(crate) fn refuse_log_directory(path: &Location) -> Result<()> {
    match partition_directories(path)?.first() {
        Some(partition) => {
            let message = format!(
                "this is a log directory, not a partition directory: name a partition in it, such as {}-{}",
                partition.topic, partition.partition
            );
            Err(Error::argument(message).with_path(path))
        }
        None => Ok(()),
    }
}

/// Refuses an index, any other file that belongs to a segment or partition, and a file that is clearly of another
/// format. Most of them would look like an empty segment.
fn refuse_other_files(path: &Location) -> Result<()> {
    let name = path.name();
    let is_of_segment = LogFile::parse(name).is_some_and(|file| file.kind != LogFileKind::Log);
    if is_of_segment || name == LEADER_EPOCHS || name == PARTITION_METADATA {
        let message = "the file belongs to a segment but holds no records: name the .log file";
        return Err(Error::argument(message).with_path(path));
    }
    if parse_base_offset(name).is_some() { Ok(()) } else { refuse_foreign_file(path) }
}

/// Returns the base offset of the next segment in the same directory.
pub(crate) fn next_segment_base(path: &Location, base_offset: i64) -> Result<Option<i64>> {
    let bases = segment_bases(&path.directory())?;
    Ok(bases.get(bases.partition_point(|other| *other <= base_offset)).copied())
}

/// The base offsets of the segments in a directory, in their order.
///
/// # Errors
/// I/O errors.
pub(crate) fn segment_bases(directory: &Location) -> Result<Vec<i64>> {
    let mut bases: Vec<i64> = directory.entries()?.iter().filter_map(|entry| parse_base_offset(entry.name())).collect();
    bases.sort_unstable();
    Ok(bases)
}

fn segments_in(directory: &Location) -> Result<Folder> {
    match settled(directory)? {
        (mut listed, None) => {
            let segments = live_segments(&listed)?;
            let unfinished = unfinished_write(&listed);
            let is_misnamed = |name: &str| is_log_of_any_name(name) && parse_base_offset(name).is_none();
            listed.retain(|entry| !segments.is_empty() && is_misnamed(entry.name()));
            Ok(Folder { segments, misnamed_logs: listed, unfinished })
        }
        (_, Some(swap)) => Err(UnreadFile::swap(directory, &swap).error()),
    }
}

/// A file with records that are in no segment of its directory: readers would miss them.
#[derive(Debug, Clone)]
pub(crate) struct UnreadFile {
    path: Location,
    reason: &'static str,
}

impl UnreadFile {
    fn swap(directory: &Location, swap: &LogFile) -> Self {
        Self { path: directory.join(swap.to_string()), reason: MISSING_SWAP }
    }

    /// The error of reading the directory.
    pub(crate) fn error(&self) -> Error {
        Error::new(ErrorKind::InvalidFile(self.reason.to_owned())).with_path(&self.path)
    }
}

/// Lists a directory when a broker is not replacing segments in it, and finds a file that readers would miss.
///
/// # Errors
/// I/O errors.
pub(crate) fn listed_with_unread(directory: &Location) -> Result<(Vec<Location>, Option<UnreadFile>)> {
    let (listed, swap) = settled(directory)?;
    let swap = swap.map(|swap| UnreadFile::swap(directory, &swap));
    let compressed =
        || compressed_alone(&listed).next().map(|entry| UnreadFile { path: entry.clone(), reason: COMPRESSED });
    let unread = swap.or_else(compressed);
    Ok((listed, unread))
}

/// Lists a directory when a broker is not replacing segments in it. Returns also the `.swap` file of a segment that exists
/// only under that name, if a broker was stopped.
pub(crate) fn settled(directory: &Location) -> Result<(Vec<Location>, Option<LogFile>)> {
    let mut tries = SWAP_TRIES;
    loop {
        let listed = directory.entries()?;
        let swap = missing_swap(&listed);
        if swap.is_none() || tries == 0 {
            return Ok((listed, swap));
        }
        tries = tries.saturating_sub(1);
        std::thread::sleep(SWAP_WAIT); // a broker may be replacing segments
    }
}

/// Why a directory with such a `.swap` file is not read.
pub(crate) const MISSING_SWAP: &str = "a broker was stopped while this file replaced other segments, and a reader of the \
     directory would miss its records; recover (or a broker's start) completes the replacement";
/// Why a directory with something else that has the name of a segment is not read.
pub(crate) const NO_FILE: &str = "a directory or a special file has the name of a segment: move it away";
/// Why a directory with such a compressed segment is not read.
pub(crate) const COMPRESSED: &str =
    "this segment is compressed, and a reader would miss its records: decompress it, or move it away";

/// How often to list a directory again while segments in it are being replaced, and how long to wait before each time.
const SWAP_TRIES: usize = 10;
const SWAP_WAIT: Duration = Duration::from_millis(50);

/// Returns the `.swap` file of a segment that exists only under that name and that a broker would keep when it starts.
fn missing_swap(listed: &[Location]) -> Option<LogFile> {
    let mut of_state: [BTreeSet<i64>; 3] = Default::default();
    let [live, swap, cleaned] = &mut of_state;
    let files = listed.iter().filter_map(|entry| LogFile::parse(entry.name()));
    for file in files.filter(|file| file.kind == LogFileKind::Log) {
        match file.state {
            LogFileState::Live => live.insert(file.base_offset),
            LogFileState::Swap => swap.insert(file.base_offset),
            LogFileState::Cleaned => cleaned.insert(file.base_offset),
            LogFileState::Deleted => false,
        };
    }
    let min_cleaned = cleaned.first().copied().unwrap_or(i64::MAX);
    let missing = swap.iter().find(|base_offset| **base_offset < min_cleaned && !live.contains(base_offset));
    missing.map(|base_offset| LogFile { state: LogFileState::Swap, ..LogFile::live(*base_offset, LogFileKind::Log) })
}

/// Refuses something other than a file that has the name of a segment.
pub(crate) fn refuse_special_files(listed: &[Location]) -> Result<()> {
    let is_other = |entry: &&Location| {
        parse_base_offset(entry.name()).is_some() && entry.status().is_ok_and(|status| !status.is_file())
    };
    listed.iter().find(is_other).map_or(Ok(()), |entry| Err(no_file(entry)))
}

fn no_file(path: &Location) -> Error {
    Error::new(ErrorKind::InvalidFile(NO_FILE.to_owned())).with_path(path)
}

/// Refuses a compressed segment whose `.log` file is missing: without it, a reader would miss records.
pub(crate) fn refuse_compressed(listed: &[Location]) -> Result<()> {
    match compressed_alone(listed).next() {
        Some(entry) => Err(Error::new(ErrorKind::InvalidFile(COMPRESSED.to_owned())).with_path(entry)),
        None => Ok(()),
    }
}

/// The compressed segments whose `.log` files are missing.
pub(crate) fn compressed_alone(listed: &[Location]) -> impl Iterator<Item = &Location> {
    let has_log = |base_offset| listed.iter().any(|other| parse_base_offset(other.name()) == Some(base_offset));
    listed.iter().filter(move |entry| compressed_base_offset(entry.name()).is_some_and(|base| !has_log(base)))
}

/// Parses the base offset from the name of a compressed segment, such as `00000000000000000042.log.gz`.
pub(crate) fn compressed_base_offset(name: &str) -> Option<i64> {
    let (log, extension) = name.rsplit_once('.')?;
    ["gz", "zst", "lz4", "xz", "bz2", "snappy", "zip"].contains(&extension).then(|| parse_base_offset(log))?
}

fn live_segments(listed: &[Location]) -> Result<Vec<SegmentFile>> {
    let mut segments = Vec::new();
    for entry in listed.iter().filter(|entry| parse_base_offset(entry.name()).is_some()) {
        let Some(status) = entry.status_if_there()? else { continue };
        if !status.is_file() {
            return Err(no_file(entry));
        }
        segments.push(segment(entry, status.len));
    }
    if !segments.is_empty() {
        refuse_compressed(listed)?;
    }
    segments.sort_by_key(|segment| segment.base_offset);
    refuse_same_base_offset(segments.iter().map(|segment| (segment.base_offset.unwrap_or(0), &segment.path)))?;
    Ok(segments)
}

/// Refuses two segments with the same base offset. A broker that starts loads only one of them. `segments` are sorted by
/// base offset.
pub(crate) fn refuse_same_base_offset<'l>(segments: impl Iterator<Item = (i64, &'l Location)>) -> Result<()> {
    let mut last: Option<(i64, &Location)> = None;
    for (base_offset, path) in segments {
        if let Some((_, other)) = last.filter(|(before, _)| *before == base_offset) {
            return Err(same_base_offset(other, path.name()));
        }
        last = Some((base_offset, path));
    }
    Ok(())
}

/// The error of two segments with the same base offset.
pub(crate) fn same_base_offset(path: &Location, other: &str) -> Error {
    let message = format!("{other} has the same base offset: move away the one that does not belong to the log");
    Error::new(ErrorKind::InvalidFile(message)).with_path(path)
}

fn segment(path: &Location, size: u64) -> SegmentFile {
    SegmentFile {
        path: path.clone(),
        partition: parse_partition_directory(path.absolute().directory().name()),
        base_offset: parse_base_offset(path.name()),
        size,
    }
}
