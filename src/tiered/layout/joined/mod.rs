//! The directory of a broker and the segments that it copied to remote storage, as one log.
//!
//! ```text
//! remote   0 ────────▶ 200 ────────▶ 400 ────────▶ 600
//! local                                     500 ────────▶ 700 ────────▶
//! read     remote      remote        remote 500 local     local
//! ```
//!
//! As in a broker, the local segments are read from their first offset on, and the remote ones before it. The files of
//! both have the paths of the broker's directory, because indexes, the next segment and the leader epochs are searched
//! beside a segment. [`Assembled`] decides which files a partition has.

mod assemble;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::file::{File, no_file};
use super::known::{Known, RemoteOptions};
use crate::error::{Error, Result};
use crate::io::{Location, Status, Store, StoredFile};
use crate::store::{LogFile, LogFileKind, LogFileState, parse_partition_directory};
use crate::tiered::aiven::EncryptionKeys;
use assemble::Assembled;

impl Location {
    /// Returns a location that presents the partitions here, which are of a broker, with the segments before them that
    /// are in remote storage: `remote` may have any layout, or be a copy of log directories. This may be a log directory,
    /// a partition directory, a segment or a pattern. A segment that is here is read alone.
    ///
    /// Each offset is read once. Local segments are preferred; records of a deposed leader are omitted. If
    /// [`RemoteOptions::metadata`] is not set, the partitions of `__remote_log_metadata` in the log directory are used.
    ///
    /// # Errors
    /// I/O errors of listing; the errors of [`Location::with_layout_of`];
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if the remote location has no partition that is
    /// here.
    pub fn with_remote(self, remote: Self, options: &RemoteOptions) -> Result<Self> {
        // the names of `.` and of a pattern are those of directories that are found later
        let local = if self.name().is_empty() || self.is_pattern() { self.absolute() } else { self };
        let local = local.with_layout(&EncryptionKeys::new())?;
        let directory = local.directory_around()?;
        let known = Known::new(options, directory.as_ref())?;
        let remote = remote.with_known_layout(&known)?;
        remote.check_effect(options)?;
        if !remote.status()?.is_directory() {
            let message = "remote is a file: name the directory that contains the partitions";
            return Err(Error::argument(message).with_path(&remote));
        }
        let files = JoinedFiles { local: local.clone(), remote, known, partitions: Mutex::default() };
        if let Some(directory) = directory {
            files.check_effect(&directory)?;
        }
        Ok(Self::in_store(local.path(), Arc::new(files)))
    }

    /// Fails if these are only files in the directories of a broker, so that no segment in remote storage is read.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument).
    #[cfg(feature = "plan")]
    pub(crate) fn check_remote_effect(locations: &[Self]) -> Result<()> {
        let all_alone = locations.iter().all(Self::is_read_alone);
        let Some(first) = locations.first().filter(|_| all_alone) else { return Ok(()) };
        let message = "remote has no effect on a file: name the directory of its partition";
        Err(Error::argument(message).with_path(first))
    }

    /// The partition directory or log directory of this location, which may also be a segment, or the path of one that is
    /// only in remote storage. `None` for a pattern.
    fn directory_around(&self) -> Result<Option<Self>> {
        match self.status_if_there()? {
            Some(status) if status.is_directory() => Ok(Some(self.clone())),
            Some(_) => Ok(Some(self.directory())),
            None if self.is_pattern() => Ok(None),
            None if self.directory().is_dir() => Ok(Some(self.directory())),
            None => self.status().map(|_| None),
        }
    }

    fn is_pattern(&self) -> bool {
        self.path().to_string_lossy().contains(['*', '?', '[']) && !self.exists()
    }
}

/// The directories of a broker, with the files of remote storage in them.
struct JoinedFiles {
    local: Location,
    /// Partitions as the directories of a broker, or one partition.
    remote: Location,
    known: Known,
    /// The partitions that were searched in the remote location.
    partitions: Mutex<HashMap<PathBuf, Option<Arc<Joined>>>>,
}

impl fmt::Debug for JoinedFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JoinedFiles").field("local", &self.local).field("remote", &self.remote).finish_non_exhaustive()
    }
}

impl JoinedFiles {
    /// Fails if no partition of a log directory, or not this partition, is in the remote location.
    fn check_effect(&self, directory: &Location) -> Result<()> {
        if self.remote_of(directory.absolute().name())?.is_some() {
            return Ok(());
        }
        for entry in directory.entries()? {
            if self.remote_of(entry.name())?.is_some() {
                return Ok(());
            }
        }
        let message = format!("remote has no effect: no partition here has segments in {}", self.remote.display());
        Err(Error::argument(message).with_path(directory))
    }

    /// The partition in the remote location that has the name of a directory.
    fn remote_of(&self, name: &str) -> Result<Option<Location>> {
        if parse_partition_directory(name).is_none() {
            return Ok(None);
        }
        if self.remote.absolute().name() == name {
            return Ok(Some(self.remote.clone().without_overlaps(&self.known)));
        }
        let partition = self.remote.join(name);
        let status = partition.status_if_there()?;
        Ok(status.filter(Status::is_directory).map(|_| partition.without_overlaps(&self.known)))
    }

    /// The partition of a directory, if it has segments in the remote location.
    fn partition(&self, directory: &Path) -> Result<Option<Arc<Joined>>> {
        let known = self.partitions.lock().unwrap_or_else(PoisonError::into_inner).get(directory).cloned();
        if let Some(known) = known {
            return Ok(known);
        }
        let local = self.local.sibling(directory);
        let remote = self.remote_of(local.absolute().name())?;
        let joined = remote.map(|remote| Arc::new(Joined { local, remote, assembled: Mutex::default() }));
        let mut partitions = self.partitions.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(partitions.entry(directory.to_path_buf()).or_insert(joined).clone())
    }

    /// Uses the remote file at a path. `None` if the path is that of a local file or directory.
    fn with_file<T>(&self, path: &Path, use_file: impl FnOnce(&File) -> Result<T>) -> Result<Option<T>> {
        let Some((directory, name)) = path.parent().zip(path.file_name()) else { return Ok(None) };
        let Some(joined) = self.partition(directory)? else { return Ok(None) };
        let assembled = joined.assembled(None)?;
        let name = name.to_str().unwrap_or_default();
        match assembled.files.get(name) {
            Some(file) => use_file(file).map(Some),
            None if assembled.hidden.contains(name) => Err(no_file(path)),
            None => Ok(None),
        }
    }
}

impl Store for JoinedFiles {
    fn status(&self, path: &Path) -> Result<Status> {
        match self.with_file(path, File::status)? {
            Some(status) => Ok(status),
            None => self.local.sibling(path).status(),
        }
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        let entries = self.local.sibling(directory).entries()?;
        match self.partition(directory)? {
            Some(joined) => Ok(joined.assembled(Some(&entries))?.paths(directory, &entries)),
            None => Ok(entries.iter().map(|entry| entry.to_path_buf()).collect()),
        }
    }

    fn open(&self, path: &Path) -> Result<Box<dyn StoredFile>> {
        match self.with_file(path, File::open)? {
            Some(file) => Ok(file),
            None => Ok(Box::new(self.local.sibling(path).open()?)),
        }
    }

    fn may_omit(&self) -> bool {
        true
    }

    fn warnings(&self, directory: &Path) -> Result<Vec<(i64, String)>> {
        match self.partition(directory)? {
            Some(joined) => Ok(joined.assembled(None)?.warnings.clone()),
            None => Ok(Vec::new()),
        }
    }

    #[cfg(feature = "plan")]
    fn is_read_alone(&self, path: &Path) -> bool {
        self.local.sibling(path).status().is_ok_and(|status| !status.is_directory())
    }

    fn is_finished(&self, path: &Path) -> bool {
        let found = self.with_file(path, |file| Ok(file.is_finished(false)));
        found.is_ok_and(|is_finished| is_finished == Some(true))
    }

    fn part_of(&self, path: &Path) -> Option<(PathBuf, u64)> {
        self.with_file(path, |file| Ok(file.part_of())).ok()??
    }

    fn unlisted(&self, directory: &Path) -> Vec<PathBuf> {
        let local = self.local.sibling(directory);
        let is_partition = |entry: &Location| parse_partition_directory(entry.name()).is_some();
        let names = |location: &Location| location.entries().unwrap_or_default();
        if !names(&local).iter().any(is_partition) {
            return Vec::new();
        }
        let mut remote = names(&self.remote);
        remote.retain(|entry| is_partition(entry) && !local.join(entry.name()).exists());
        remote.iter().map(|entry| entry.to_path_buf()).collect()
    }
}

/// The offsets of the first and the last local segment.
type LocalOffsets = (Option<i64>, Option<i64>);

/// A partition in two locations.
struct Joined {
    local: Location,
    remote: Location,
    /// The files, for the local segments at that time.
    assembled: Mutex<Option<(LocalOffsets, Arc<Assembled>)>>,
}

impl Joined {
    /// The files. `entries` is a new listing of the local directory: a broker may have deleted or added segments.
    fn assembled(&self, entries: Option<&[Location]>) -> Result<Arc<Assembled>> {
        let known = self.assembled.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let listed = match (&known, entries) {
            (Some((_, assembled)), None) => return Ok(Arc::clone(assembled)),
            (None, None) => self.local.entries()?,
            (_, Some(entries)) => entries.to_vec(),
        };
        let ends = ends_of(&listed);
        if let Some((_, assembled)) = known.filter(|(known, _)| *known == ends) {
            return Ok(assembled);
        }
        // not while the mutex is locked: a function of the caller may return a key
        let new = Arc::new(Assembled::new(&self.local, &listed, &self.remote)?);
        *self.assembled.lock().unwrap_or_else(PoisonError::into_inner) = Some((ends, Arc::clone(&new)));
        Ok(new)
    }
}

/// The base offsets of the first and the last segment in a listing.
fn ends_of(entries: &[Location]) -> LocalOffsets {
    let bases = || entries.iter().filter_map(|entry| base_of_log(entry.name()));
    (bases().min(), bases().max())
}

/// The base offset of a segment in use.
fn base_of_log(name: &str) -> Option<i64> {
    let is_log = |file: &LogFile| file.kind == LogFileKind::Log && file.state == LogFileState::Live;
    LogFile::parse(name).filter(is_log).map(|file| file.base_offset)
}
