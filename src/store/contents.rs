//! Recognizes files and directories that are not logs: compressed copies, text, tiered storage, nested log
//! directories.

use crate::error::{Error, ErrorKind, Result};
use crate::io::Location;
use crate::io::staged::is_partial;
use crate::io::waiting::InterruptTimer;
use crate::store::names::{
    DirectoryState, LEADER_EPOCHS, LogFile, LogFileKind, LogFileState, PARTITION_METADATA, PartitionDirectory,
    SnapshotFile, is_beside_partitions, is_hidden, parse_base_offset, parse_partition_directory,
};

/// Number of bytes read to recognize a file.
const HEAD_LEN: usize = 512;
/// Limits on the depth and the number of entries when searching a location that has no segments.
const SEARCH_DEPTH: usize = 5;
const SEARCH_ENTRIES: usize = 2000;

/// First bytes of other formats. No batch whose base offset is below 2^57 starts with one of them.
const SIGNATURES: [(&[u8], &str); 11] = [
    (b"\x1f\x8b\x08", "gzip-compressed"),
    (b"\x28\xb5\x2f\xfd", "zstd-compressed"),
    (b"\x04\x22\x4d\x18", "an LZ4 frame"),
    (b"\xfd7zXZ\x00", "xz-compressed"),
    (b"BZh", "bzip2-compressed"),
    (b"PK\x03\x04", "a zip archive"),
    (b"PAR1", "a Parquet file"),
    (b"Obj\x01", "an Avro file"),
    (b"ARROW1\x00\x00", "an Arrow file"),
    (b"\x89PNG", "an image"),
    (b"\x7fELF", "a program"),
];
/// Bytes that a tar archive has after the name and properties of its first file.
const TAR_SIGNATURE: &[u8] = b"ustar";
const TAR_POSITION: usize = 257;
const TAR_ARCHIVE: &str = "a tar archive";
const TEXT_FILE: &str = "a text file";

/// Names the format of a file that is clearly not a segment, from its first bytes. Returns `None` for a file that may
/// be one.
///
/// # Errors
/// I/O errors.
pub(crate) fn foreign_file(path: &Location) -> Result<Option<&'static str>> {
    // a pipe can be read only once, so it is not read here
    if !path.status()?.is_file() {
        return Ok(None);
    }
    Ok(foreign_head(&path.head(HEAD_LEN)?))
}

/// Names the format that bytes begin with, if they are clearly not those of a segment.
pub(crate) fn foreign_head(head: &[u8]) -> Option<&'static str> {
    let head = head.get(..HEAD_LEN).unwrap_or(head);
    let signature = SIGNATURES.iter().find(|(signature, _)| head.starts_with(signature));
    let is_tar = head.get(TAR_POSITION..).is_some_and(|rest| rest.starts_with(TAR_SIGNATURE));
    let archive = signature.map(|(_, what)| *what).or(is_tar.then_some(TAR_ARCHIVE));
    archive.or_else(|| is_text(head).then_some(TEXT_FILE))
}

/// Refuses a tar archive: it may contain several partitions, whose batches are not one log.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for an archive; I/O errors.
pub(crate) fn refuse_archive(path: &Location) -> Result<()> {
    match foreign_file(path)? {
        Some(TAR_ARCHIVE) => refuse_foreign_file(path),
        _ => Ok(()),
    }
}

/// Refuses a file that is clearly not a segment.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] for such a file; I/O errors.
pub(crate) fn refuse_foreign_file(path: &Location) -> Result<()> {
    match foreign_file(path)? {
        Some(what) => Err(Error::argument(format!("not a Kafka log segment: {}", advice_on(what))).with_path(path)),
        None => Ok(()),
    }
}

fn advice_on(what: &str) -> String {
    if what.ends_with("-compressed") || what == "an LZ4 frame" {
        return format!("the file is {what}; decompress it first");
    }
    if what == TAR_ARCHIVE {
        return format!("the file is {what}; unpack it first");
    }
    format!("the file is {what}")
}

/// Whether a file starts with printable text. A batch starts with its base offset, whose first bytes are zero in every
/// real log.
fn is_text(head: &[u8]) -> bool {
    let is_printable = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7e) || *byte >= 0x80;
    !head.is_empty() && head.first().is_some_and(u8::is_ascii) && head.iter().all(is_printable)
}

/// Refuses a directory that contains no segment, but files that Kafka does not write next to segments.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] that names such a file, or says that not all directories were searched; I/O errors.
pub(crate) fn refuse_foreign_directory(path: &Location) -> Result<()> {
    let mut search = ForeignSearch::default();
    let found = search.directory(path, SEARCH_DEPTH)?;
    let is_telling = |found: &Foreign| !matches!(found, Foreign::Other(_, None | Some(TEXT_FILE)));
    let what = match (found, search.cut) {
        // its partitions have segments that can't be read, or are not wanted
        (Some(Foreign::Log(log)), _) if log.path() == path.path() => return Ok(()),
        (Some(found), cut) if cut.is_none() || is_telling(&found) => found.describe(path),
        (_, Some(cut)) if !has_partitions(path)? => cut,
        _ => return Ok(()),
    };
    Err(Error::argument(format!("no log segment is recognized: {what}")).with_path(path))
}

/// Refuses a directory whose segments are not in partition directories directly below it: a writer would add partitions
/// beside the log directory. Other files may be in the directory.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`] that names a segment; I/O errors.
pub(crate) fn refuse_misplaced_logs(path: &Location) -> Result<()> {
    match ForeignSearch::default().directory(path, SEARCH_DEPTH)? {
        None | Some(Foreign::Other(..) | Foreign::Partial(_)) => Ok(()),
        Some(found) => Err(Error::argument(found.describe(path)).with_path(path)),
    }
}

/// Whether this is a log directory, whose partitions may be empty.
fn has_partitions(path: &Location) -> Result<bool> {
    let is_of_partition = |entry: &Location| {
        let files = entry.entries().unwrap_or_default();
        entry.is_dir() && files.iter().all(|file| LogFile::parse(file.name()).is_some() || is_of_kafka(file.name()))
    };
    let entries = path.entries()?;
    let mut named = entries.iter().filter(|entry| parse_partition_directory(entry.name()).is_some());
    Ok(named.next().is_some_and(is_of_partition))
}

/// A file that is neither a live segment in the expected directory nor one that Kafka keeps next to segments.
#[derive(Debug)]
enum Foreign {
    /// A log nested deeper than the partitions of a log directory.
    Log(Location),
    /// A segment named `<offset>-<id>.log`, as in tiered storage.
    Tiered(Location),
    /// An object written by Aiven's tiered storage plugin.
    Manifest(Location),
    /// An incomplete directory that a command left when it was killed.
    Partial(Location),
    /// An index whose segment is missing.
    Index(Location),
    /// Any other file, with its format if that is recognized.
    Other(Location, Option<&'static str>),
}

impl Foreign {
    fn describe(&self, location: &Location) -> String {
        let name = |path: &Location| path.strip_prefix(location.path()).unwrap_or(path.path()).display().to_string();
        match self {
            Self::Log(path) => format!("the segments are in a subdirectory: name {}", path.display()),
            Self::Tiered(path) => format!(
                "{} is a segment of tiered storage, whose name ends in an id; name the .log files themselves",
                name(path)
            ),
            Self::Manifest(path) => {
                format!(
                    "{} is of Aiven's tiered storage plugin: name the directory that contains its topics",
                    name(path)
                )
            }
            Self::Partial(path) => {
                format!(
                    "{} is the incomplete result of a killed command: delete it, and repeat the command",
                    name(path)
                )
            }
            Self::Index(path) => format!("{} is an index whose .log file is missing", name(path)),
            Self::Other(path, Some(what)) => format!("{}: {}", name(path), advice_on(what)),
            Self::Other(path, None) => format!(
                "found {}; segments are named <20 digits>.log and are in directories named <topic>-<partition>",
                name(path)
            ),
        }
    }
}

/// Largest number of files of a store whose format a search determines.
const MAX_OPENED: usize = 16;

/// A bounded search for a [`Foreign`] file.
#[derive(Debug, Default)]
struct ForeignSearch {
    entries: usize,
    /// Files of a store that were opened to find their format; each costs a request.
    opened: usize,
    timer: InterruptTimer,
    /// Why the search is incomplete, if it is.
    cut: Option<String>,
}

impl ForeignSearch {
    /// Returns the most specific finding in a directory, or `None` if there are only files that Kafka keeps next to
    /// segments.
    fn directory(&mut self, path: &Location, depth: usize) -> Result<Option<Foreign>> {
        let (mut best, mut directories) = (None::<Foreign>, Vec::new());
        for path in path.entries()? {
            self.entries = self.entries.saturating_add(1);
            if self.entries > SEARCH_ENTRIES {
                let advice = "name a directory nearer to the segments";
                self.cut = Some(format!("the search ended after {SEARCH_ENTRIES} files and directories: {advice}"));
                break;
            }
            if path.is_dir() {
                directories.push(path);
                continue;
            }
            self.timer.check()?;
            let (is_top, opens) = (depth == SEARCH_DEPTH, path.is_local() || self.opened < MAX_OPENED);
            if let Some(found) = foreign(&path, is_top, opens) {
                self.opened = self.opened.saturating_add(usize::from(matches!(found, Foreign::Other(..))));
                best = Some(more_telling(best, found));
            }
        }
        if depth == 0
            && let Some(deeper) = directories.first()
        {
            let advice = "name a directory nearer to the segments";
            let message = || format!("{} is more than {SEARCH_DEPTH} levels deep: {advice}", deeper.display());
            self.cut.get_or_insert_with(message);
        }
        for path in directories.into_iter().filter(|_| depth > 0) {
            let state = PartitionDirectory::parse(path.name()).map(|parsed| parsed.state);
            let is_other = is_hidden(path.name()) || is_beside_partitions(path.name());
            if is_partial(path.name()) {
                best = Some(more_telling(best, Foreign::Partial(path)));
                continue;
            }
            if is_other || state.is_some_and(|state| state != DirectoryState::Live) {
                continue;
            }
            match self.directory(&path, depth.saturating_sub(1)) {
                Ok(Some(found)) => best = Some(more_telling(best, found)),
                Ok(None) => {}
                // an unreadable directory does not prevent searching the others
                Err(error) if matches!(error.kind(), ErrorKind::Io(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(best)
    }
}

fn more_telling(one: Option<Foreign>, other: Foreign) -> Foreign {
    let rank = |found: &Foreign| match found {
        Foreign::Manifest(_) => 0,
        Foreign::Log(_) => 1,
        Foreign::Tiered(_) => 2,
        Foreign::Other(_, Some(what)) if *what != TEXT_FILE => 3,
        Foreign::Index(_) => 4,
        Foreign::Partial(_) => 5,
        Foreign::Other(_, _) => 6,
    };
    match one {
        Some(one) if rank(&one) <= rank(&other) => one,
        _ => other,
    }
}

/// Classifies a file by its name, and if it `opens` other files, these by their contents. `None` for the files that Kafka
/// keeps beside segments.
fn foreign(path: &Location, is_top: bool, opens: bool) -> Option<Foreign> {
    let name = path.name();
    if parse_base_offset(name).is_some() {
        // a segment right here would have been found
        let directory = path.directory();
        let log = if parse_partition_directory(directory.name()).is_some() { directory.directory() } else { directory };
        return (!is_top).then_some(Foreign::Log(log));
    }
    if name.ends_with(".rsm-manifest") || name.ends_with(".indexes") {
        return Some(Foreign::Manifest(path.clone()));
    }
    if is_tiered_segment(name) {
        return Some(Foreign::Tiered(path.clone()));
    }
    if let Some(file) = LogFile::parse(name) {
        let is_index = file.kind != LogFileKind::ProducerSnapshot && file.state == LogFileState::Live;
        return is_index.then(|| Foreign::Index(path.clone()));
    }
    if is_of_kafka(name) || is_empty_file(path) {
        return None;
    }
    let format = if opens { foreign_file(path).ok().flatten() } else { None };
    Some(Foreign::Other(path.clone(), format))
}

fn is_empty_file(path: &Location) -> bool {
    path.status().is_ok_and(|status| status.is_file() && status.len == 0)
}

/// Whether a name is `<digits>-<id>.log`, with an id of 22 characters of base64url.
pub(crate) fn is_tiered_segment(name: &str) -> bool {
    let Some((offset, id)) = name.strip_suffix(".log").and_then(|stem| stem.split_once('-')) else { return false };
    let is_id = id.len() == 22 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    is_id && offset.len() == 20 && offset.bytes().all(|byte| byte.is_ascii_digit())
}

/// Files that a broker keeps in log and partition directories, and its own temporary ones.
fn is_of_kafka(name: &str) -> bool {
    let known = [LEADER_EPOCHS, PARTITION_METADATA, "meta.properties", "quorum-state", "bootstrap.checkpoint"];
    known.contains(&name)
        || name.starts_with('.')
        || name.ends_with("-checkpoint")
        || name.strip_suffix(".tmp").is_some()
        || name.contains(".kbat-")
        || SnapshotFile::parse(name).is_some()
}
