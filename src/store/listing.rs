//! Lists the segments of a log directory, of a partition directory, or of one path.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::store::contents::refuse_foreign_file;
use crate::store::names::{
    LEADER_EPOCHS, LogFile, LogFileKind, LogFileState, PARTITION_METADATA, TopicPartition, parse_base_offset,
    parse_partition_directory,
};

/// A segment's `.log` file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Topic and partition, if the file's directory is named after them.
    pub partition: Option<TopicPartition>,
    /// Base offset, if the file is named after one.
    pub base_offset: Option<i64>,
    /// Size in bytes when the file was listed.
    pub size: u64,
}

/// The contents of one location.
#[derive(Debug, Default)]
pub(crate) struct Location {
    /// Sorted by topic, partition and base offset.
    pub(crate) segments: Vec<SegmentFile>,
    /// Every live partition, wanted or not.
    pub(crate) partitions: Vec<TopicPartition>,
    /// Directories of wanted partitions that have no segment.
    pub(crate) without_segments: Vec<PathBuf>,
}

/// Lists a location: a `.log` file, a partition directory, or a log directory (all partition directories in it).
///
/// Only opens the directories of partitions for which `wanted` returns true.
///
/// # Errors
/// The errors of [`find_segments`](crate::plan::find_segments).
pub(crate) fn list_location(path: &Path, wanted: &dyn Fn(&TopicPartition) -> bool) -> Result<Location> {
    let metadata = fs::metadata(path).map_err(|error| Error::from(error).with_path(path))?;
    if !metadata.is_dir() {
        refuse_other_files(path)?;
        return Ok(Location { segments: vec![segment(path, metadata.len())], ..Location::default() });
    }
    let own = segments_in(path)?;
    if !own.is_empty() {
        if let Some(partition) = partition_directories(path)?.first() {
            let message = format!(
                "both segments and partition directories, such as {}-{}, are in this directory: name what to read",
                partition.topic, partition.partition
            );
            return Err(Error::argument(message).with_path(path));
        }
        return Ok(Location { segments: own, ..Location::default() });
    }
    let mut location = Location::default();
    let mut directories = Vec::new();
    for entry in entries(path)? {
        let name = entry.file_name();
        let Some(partition) = name.to_str().and_then(parse_partition_directory) else { continue };
        // a link whose target is missing is an error, unless the partition is not wanted
        if wanted(&partition) && metadata_if_there(&entry.path())?.is_none_or(|metadata| !metadata.is_dir()) {
            continue;
        }
        directories.push((partition, entry.path()));
    }
    directories.sort();
    for (partition, directory) in directories {
        if wanted(&partition) {
            let segments = segments_in(&directory)?;
            if segments.is_empty() {
                location.without_segments.push(directory);
            }
            location.segments.extend(segments);
        }
        location.partitions.push(partition);
    }
    Ok(location)
}

/// Lists the live partitions among the subdirectories, by their names.
pub(crate) fn partition_directories(path: &Path) -> Result<Vec<TopicPartition>> {
    let is_directory = |entry: &fs::DirEntry| entry.path().is_dir();
    let named = |entry: &fs::DirEntry| entry.file_name().to_str().and_then(parse_partition_directory);
    Ok(entries(path)?.iter().filter_map(|entry| named(entry).filter(|_| is_directory(entry))).collect())
}

/// Refuses a log directory where a partition directory is expected.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for a directory that contains partition directories; I/O errors.
pub(crate) fn refuse_log_directory(path: &Path) -> Result<()> {
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
fn refuse_other_files(path: &Path) -> Result<()> {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    let is_of_segment = LogFile::parse(name).is_some_and(|file| file.kind != LogFileKind::Log);
    if is_of_segment || name == LEADER_EPOCHS || name == PARTITION_METADATA {
        let message = "the file belongs to a segment but holds no records: name the .log file";
        return Err(Error::argument(message).with_path(path));
    }
    if parse_base_offset(name).is_some() { Ok(()) } else { refuse_foreign_file(path) }
}

/// Returns the metadata of a listed path, or `None` if a broker has deleted it since.
///
/// # Errors
/// I/O errors. A link without a target is one of them: its disk may not be mounted, so the data counts as
/// inaccessible, not as deleted.
pub(crate) fn metadata_if_there(path: &Path) -> Result<Option<fs::Metadata>> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && fs::symlink_metadata(path).is_err() => Ok(None),
        Err(error) => Err(Error::from(error).with_path(path)),
    }
}

fn entries(directory: &Path) -> Result<Vec<fs::DirEntry>> {
    let read = || fs::read_dir(directory)?.collect::<std::io::Result<Vec<_>>>();
    read().map_err(|error| Error::from(error).with_path(directory))
}

/// Returns the directory of a path; for a bare name, the current directory.
pub(crate) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Returns the base offset of the next segment in the same directory.
pub(crate) fn next_segment_base(path: &Path, base_offset: i64) -> Result<Option<i64>> {
    let later = |name: &str| parse_base_offset(name).filter(|other| *other > base_offset);
    Ok(entries(directory_of(path))?.iter().filter_map(|entry| entry.file_name().to_str().and_then(later)).min())
}

fn segments_in(directory: &Path) -> Result<Vec<SegmentFile>> {
    let mut tries = SWAP_TRIES;
    let base_offset = loop {
        let listed = entries(directory)?;
        let names = listed.iter().filter_map(|entry| entry.file_name().into_string().ok());
        let Some(base_offset) = missing_swap(names) else { return live_segments(&listed) };
        if tries == 0 {
            break base_offset;
        }
        tries = tries.saturating_sub(1);
        std::thread::sleep(SWAP_WAIT); // a broker may be replacing segments
    };
    let swap = LogFile { state: LogFileState::Swap, ..LogFile::live(base_offset, LogFileKind::Log) };
    let message = "a broker was stopped while this file replaced other segments, and a reader of the directory would miss \
         its records; recover (or a broker's start) completes the replacement";
    Err(Error::new(ErrorKind::InvalidFile(message.to_owned())).with_path(&directory.join(swap.to_string())))
}

/// How often to list a directory again while segments in it are being replaced, and how long to wait before each time.
const SWAP_TRIES: usize = 10;
const SWAP_WAIT: Duration = Duration::from_millis(50);

/// Returns the base offset of a segment that exists only as a `.swap` file that a broker would keep when it starts.
fn missing_swap(names: impl Iterator<Item = String>) -> Option<i64> {
    let mut of_state: [BTreeSet<i64>; 3] = Default::default();
    let [live, swap, cleaned] = &mut of_state;
    for file in names.filter_map(|name| LogFile::parse(&name)).filter(|file| file.kind == LogFileKind::Log) {
        match file.state {
            LogFileState::Live => live.insert(file.base_offset),
            LogFileState::Swap => swap.insert(file.base_offset),
            LogFileState::Cleaned => cleaned.insert(file.base_offset),
            LogFileState::Deleted => false,
        };
    }
    let min_cleaned = cleaned.first().copied().unwrap_or(i64::MAX);
    swap.iter().copied().find(|base_offset| *base_offset < min_cleaned && !live.contains(base_offset))
}

/// Refuses a compressed segment whose `.log` file is missing: without it, a reader would miss records.
fn refuse_compressed(listed: &[fs::DirEntry]) -> Result<()> {
    let names = || listed.iter().filter_map(|entry| Some((entry, entry.file_name().into_string().ok()?)));
    for (entry, name) in names() {
        let Some(base_offset) = compressed_base_offset(&name) else { continue };
        if !names().any(|(_, other)| parse_base_offset(&other) == Some(base_offset)) {
            let message =
                "this segment is compressed, and a reader would miss its records: decompress it, or move it away";
            return Err(Error::argument(message).with_path(&entry.path()));
        }
    }
    Ok(())
}

/// Parses the base offset from the name of a compressed segment, such as `00000000000000000042.log.gz`.
pub(crate) fn compressed_base_offset(name: &str) -> Option<i64> {
    let (log, extension) = name.rsplit_once('.')?;
    ["gz", "zst", "lz4", "xz", "bz2", "snappy", "zip"].contains(&extension).then(|| parse_base_offset(log))?
}

fn live_segments(listed: &[fs::DirEntry]) -> Result<Vec<SegmentFile>> {
    let mut segments = Vec::new();
    for entry in listed {
        if entry.file_name().to_str().and_then(parse_base_offset).is_none() {
            continue;
        }
        let path = entry.path();
        if let Some(metadata) = metadata_if_there(&path)?
            && metadata.is_file()
        {
            segments.push(segment(&path, metadata.len()));
        }
    }
    if !segments.is_empty() {
        refuse_compressed(listed)?;
    }
    segments.sort_by_key(|segment| segment.base_offset);
    Ok(segments)
}

fn segment(path: &Path, size: u64) -> SegmentFile {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let directory = absolute.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    SegmentFile {
        path: path.to_path_buf(),
        partition: directory.and_then(parse_partition_directory),
        base_offset: path.file_name().and_then(|name| name.to_str()).and_then(parse_base_offset),
        size,
    }
}
