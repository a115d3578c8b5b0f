//! Files of a commit: locking the target, moving files into it without replacing any, removing a job.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::io::same_file::is_same_file;
use crate::store::names::LEADER_EPOCHS;

#[cfg(test)]
pub(super) use crate::sink::tests::hooks::{has_locks, step};

/// Called before each step that changes files, so that tests can end a commit anywhere.
#[cfg(not(test))]
#[allow(clippy::unnecessary_wraps, reason = "it fails in tests")]
pub(super) fn step(_: &str) -> io::Result<()> {
    Ok(())
}

#[cfg(not(test))]
fn has_locks() -> bool {
    true
}

/// Attempts to remove the files of a job, and the time between them.
const ATTEMPTS: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// Adds the path to an error.
pub(super) fn at<T>(path: &Path, result: io::Result<T>) -> Result<T> {
    result.map_err(|error| Error::from(error).with_path(path))
}

/// The lock of a target, which a driver holds from reading the existing offsets until the last file is moved, so that
/// concurrent commits run one after the other. The directory itself is locked, so that no lock file remains.
///
/// Where locks have no effect, as between machines, existing files are never replaced: the later write fails.
pub(super) struct TargetLock {
    _directory: File,
}

impl TargetLock {
    /// Waits for the lock.
    pub(super) fn acquire(path: &Path) -> Result<Self> {
        let directory = at(path, File::open(path))?;
        while has_locks() {
            match directory.lock() {
                Ok(()) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::from(error).with_path(path)),
            }
        }
        Ok(Self { _directory: directory })
    }

    /// The lock; `None` if another driver holds it.
    pub(super) fn try_acquire(path: &Path) -> Result<Option<Self>> {
        let directory = at(path, File::open(path))?;
        match directory.try_lock() {
            Err(TryLockError::WouldBlock) if has_locks() => Ok(None),
            Err(TryLockError::Error(error)) => Err(Error::from(error).with_path(path)),
            _ => Ok(Some(Self { _directory: directory })),
        }
    }
}

/// The names in a directory, sorted. Names that are not UTF-8 are skipped: kbat writes no such files.
pub(super) fn file_names(directory: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in at(directory, fs::read_dir(directory))? {
        names.extend(at(directory, entry)?.file_name().into_string());
    }
    names.sort();
    Ok(names)
}

/// Renames a file or directory.
pub(super) fn rename(from: &Path, to: &Path) -> Result<()> {
    at(from, step("rename").and_then(|()| fs::rename(from, to)))
}

/// Moves a new partition, or the new files of an existing one. In an existing partition, segments are moved in the
/// order of their offsets, each with its indexes first and its log last, so that a reader sees a growing log.
pub(super) fn move_partition(made: &Path, directory: &Path) -> Result<()> {
    if !directory.exists() {
        return rename(made, directory); // fails if the directory was created in the meantime
    }
    let taken = names_taken(made, directory)?;
    let mut names = file_names(made)?;
    names
        .sort_by_cached_key(|name| (name != LEADER_EPOCHS, stem(name).to_owned(), name.strip_suffix(".log").is_some()));
    for name in names {
        let (file, target) = (made.join(&name), directory.join(&name));
        if taken.contains(&name) {
            rename(&file, &target)?;
        } else {
            move_to_new(&file, &target)?;
        }
    }
    Ok(())
}

fn stem(name: &str) -> &str {
    name.split_once('.').map_or(name, |(stem, _)| stem)
}

/// The files that replace existing ones: the checkpoint, and those of an empty last segment.
///
/// # Errors
/// Any other existing file.
pub(super) fn names_taken(made: &Path, directory: &Path) -> Result<BTreeSet<String>> {
    let mut taken = BTreeSet::new();
    for name in file_names(made)? {
        let target = directory.join(&name);
        if !is_other(&target, &made.join(&name)) {
            continue;
        }
        let log = directory.join(format!("{}.log", stem(&name)));
        let is_empty = fs::metadata(log).is_ok_and(|log| log.len() == 0);
        if name != LEADER_EPOCHS && !is_empty {
            return Err(exists(&target));
        }
        taken.insert(name);
    }
    Ok(taken)
}

/// Moves a file to an unused name. Renaming would replace an existing file, so the file is linked if possible.
fn move_to_new(file: &Path, target: &Path) -> Result<()> {
    if step("link").and_then(|()| fs::hard_link(file, target)).is_err() {
        at(file, step("linked"))?;
        if is_other(target, file) {
            return Err(exists(target));
        }
        if !target.exists() {
            return rename(file, target); // the file system does not support links
        }
    }
    match at(file, step("unlink").and_then(|()| fs::remove_file(file))) {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// Whether a name belongs to another file than `file`, which a driver that died may have linked to it.
pub(super) fn is_other(target: &Path, file: &Path) -> bool {
    match (fs::metadata(target), fs::metadata(file)) {
        (Ok(target), Ok(file)) => !is_same_file(&target, &file),
        (target, _) => target.is_ok(),
    }
}

fn exists(target: &Path) -> Error {
    let message = "kbat: a concurrent write created this file, and the lock did not prevent it; nothing was replaced";
    Error::from(io::Error::new(io::ErrorKind::AlreadyExists, message)).with_path(target)
}

/// Removes the directory of a job, in which a running task may still create files.
pub(super) fn remove_job(directory: &Path) {
    for _ in 0..ATTEMPTS {
        let _ = fs::remove_dir_all(directory);
        if !directory.exists() {
            break;
        }
        thread::sleep(PAUSE);
    }
}
