//! [`StagedFile`]: a file written under a temporary name until it is whole. [`StagedDirectory`]: the same for a directory.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use crate::error::{Error, Result};
use crate::io::atomic::{sync_directory, sync_directory_of, with_added_extension};
use crate::io::lock::DirectoryLock;
use crate::store::listing::directory_of;

/// Added to the name of a file or directory that is not complete yet.
const PARTIAL: &str = ".kbat-partial";
/// Ends the name of a directory that is not complete yet. Kafka uses it for partitions that are about to be deleted, so neither
/// kbat nor a broker takes the directory for a live partition, and a broker that starts removes what a killed tool left.
const NOT_LIVE: &str = "-delete";
/// Tells the directories of one process from each other.
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// A file in the making. Dropped without [`StagedFile::commit`], it is removed.
#[derive(Debug)]
pub(crate) struct StagedFile {
    writer: Option<BufWriter<File>>,
    staged: PathBuf,
    path: PathBuf,
    modified: Option<SystemTime>,
    committed: bool,
}

impl StagedFile {
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let staged = with_added_extension(path, PARTIAL);
        let file = File::create(&staged).map_err(|error| Error::from(error).with_path(&staged))?;
        Ok(Self {
            writer: Some(BufWriter::new(file)),
            staged,
            path: path.to_path_buf(),
            modified: None,
            committed: false,
        })
    }

    /// Gives the file the time of another: where records have no timestamps, brokers go by it.
    pub(crate) fn set_modified(&mut self, modified: SystemTime) {
        self.modified = Some(modified);
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.write_all(bytes).map_err(|error| Error::from(error).with_path(&self.path))
    }

    /// Flushes to the disk and gives the file its name.
    pub(crate) fn commit(mut self) -> Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let commit = || {
            let file = writer.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            if let Some(modified) = self.modified {
                file.set_modified(modified)?;
            }
            file.sync_all()?;
            fs::rename(&self.staged, &self.path)
        };
        commit().map_err(|error: std::io::Error| Error::from(error).with_path(&self.path))?;
        self.committed = true;
        Ok(())
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        if !self.committed {
            // nothing better can be done: the error that led here is on its way
            let _ = fs::remove_file(&self.staged);
        }
    }
}

/// A directory in the making, beside the one that it will be. Dropped without [`StagedDirectory::commit`], nothing is left of it.
///
/// Each has a name of its own and is locked while it is worked on, so that two runs with one result don't touch each other's files
/// (the first to end has it, the other gets an error), and what a killed run left is known for that and removed by the next.
#[derive(Debug)]
pub(crate) struct StagedDirectory {
    staged: PathBuf,
    path: PathBuf,
    /// The directories above the result that were made for it, the outermost last.
    made: Vec<PathBuf>,
    lock: Option<DirectoryLock>,
    committed: bool,
}

/// Refuses a path in the directory that is only read.
fn refuse_inside(source: &Path, path: &Path) -> Result<()> {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    if source.is_dir() && absolute(path).starts_with(absolute(source)) {
        let message =
            format!("the directory to write lies in {}, which is only read: name one outside", source.display());
        return Err(Error::argument(message).with_path(path));
    }
    Ok(())
}

impl StagedDirectory {
    /// For what is made of `source`. Refuses a path that has something in it. Missing directories above it are made.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for such a path, and for one in `source`;
    /// those of making directories.
    pub(crate) fn create(source: &Path, path: &Path) -> Result<Self> {
        let is_empty = match fs::read_dir(path) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
            Err(error) => return Err(Error::from(error).with_path(path)),
        };
        if !is_empty {
            let message = "the directory to write is not empty: name one that does not exist yet";
            return Err(Error::argument(message).with_path(path));
        }
        refuse_inside(source, path)?;
        remove_abandoned(path);
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        let own = format!("-{}-{number}", std::process::id());
        let mut directory = Self {
            staged: with_added_extension(path, &format!("{PARTIAL}{own}{NOT_LIVE}")),
            path: path.to_path_buf(),
            made: Vec::new(),
            lock: None,
            committed: false,
        };
        directory.make(&own)?;
        Ok(directory)
    }

    fn make(&mut self, own: &str) -> Result<()> {
        for parent in self.path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()) {
            if parent.exists() {
                break;
            }
            self.made.push(parent.to_path_buf());
        }
        for parent in self.made.iter().rev() {
            fs::create_dir(parent).map_err(|error| Error::from(error).with_path(parent))?;
        }
        // it gets its name when it is locked, so that other runs do not take it for abandoned
        let unlocked = with_added_extension(&self.path, &format!(".kbat-begun{own}{NOT_LIVE}"));
        fs::create_dir(&unlocked).map_err(|error| Error::from(error).with_path(&unlocked))?;
        // not all file systems have locks, and Windows renames no directory with an open file in it
        self.lock = if cfg!(unix) { DirectoryLock::acquire(&unlocked).ok() } else { None };
        fs::rename(&unlocked, &self.staged).map_err(|error| Error::from(error).with_path(&self.staged))
    }

    /// Where to write by now.
    pub(crate) fn directory(&self) -> &Path {
        &self.staged
    }

    /// Gives the directory its name.
    ///
    /// # Errors
    /// Those of the system; another run's result that is there by now.
    pub(crate) fn commit(mut self) -> Result<()> {
        let commit = || {
            sync_directory(&self.staged)?;
            match fs::remove_dir(&self.path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            fs::rename(&self.staged, &self.path)?;
            sync_directory_of(&self.path)
        };
        commit().map_err(|error: std::io::Error| Error::from(error).with_path(&self.path))?;
        self.committed = true;
        Ok(())
    }
}

impl Drop for StagedDirectory {
    fn drop(&mut self) {
        if !self.committed {
            // nothing better can be done: the error that led here is on its way
            let _ = fs::remove_dir_all(&self.staged);
            for parent in &self.made {
                let _ = fs::remove_dir(parent);
            }
        }
    }
}

/// Removes what killed runs left that had the same result in mind: nobody holds its lock. That it can't be removed stops nobody.
fn remove_abandoned(path: &Path) {
    let Some(name) = path.file_name() else { return };
    let prefix = with_added_extension(Path::new(name), &format!("{PARTIAL}-"));
    for entry in fs::read_dir(directory_of(path)).into_iter().flatten().flatten() {
        let is_partial = entry.file_name().as_encoded_bytes().starts_with(prefix.as_os_str().as_encoded_bytes());
        if cfg!(unix) && is_partial && DirectoryLock::acquire(&entry.path()).is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}
