//! [`StagedFile`]: a file that has a temporary name until it is complete. [`StagedDirectory`]: the same for a
//! directory.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use crate::error::{Error, Result};
use crate::io::atomic::{sync_directory, sync_directory_of, with_added_extension};
use crate::io::location::{directory_of, refuse_url};
use crate::io::lock::DirectoryLock;

/// Part of the name of an incomplete file or directory.
const PARTIAL: &str = ".kbat-partial";
/// Suffix of an incomplete directory. Kafka uses it for partitions that are about to be deleted, so neither kbat nor a
/// broker treats the directory as a live partition, and a broker deletes the leftovers of a killed tool when it
/// starts.
const NOT_LIVE: &str = "-delete";
/// Distinguishes the directories of one process.
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// An incomplete file. It is removed if dropped without [`StagedFile::commit`].
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

    /// Sets the file's modification time. Brokers use it in place of a timestamp for records that have none.
    pub(crate) fn set_modified(&mut self, modified: SystemTime) {
        self.modified = Some(modified);
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.write_all(bytes).map_err(|error| Error::from(error).with_path(&self.path))
    }

    /// Flushes the file to disk and renames it to its final name.
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
            // ignored: the error that caused the drop is the one to report
            let _ = fs::remove_file(&self.staged);
        }
    }
}

/// An incomplete directory next to its final location. It is removed if dropped without [`StagedDirectory::commit`].
///
/// Its name is unique and it is locked while in use. So two runs with the same target do not touch each other's files:
/// the first to finish succeeds, the other fails. The next run removes the unlocked directories of killed runs.
#[derive(Debug)]
pub(crate) struct StagedDirectory {
    staged: PathBuf,
    path: PathBuf,
    /// The parent directories that were created for the result, the outermost last.
    made: Vec<PathBuf>,
    lock: Option<DirectoryLock>,
    committed: bool,
}

/// Refuses a path inside the source directory, which is only read.
fn refuse_inside(source: &Path, path: &Path) -> Result<()> {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    if source.is_dir() && absolute(path).starts_with(absolute(source)) {
        let message = format!(
            "the output directory is inside {}, which is only read: name a directory outside it",
            source.display()
        );
        return Err(Error::argument(message).with_path(path));
    }
    Ok(())
}

impl StagedDirectory {
    /// Creates a directory for the output made from `source`, and its missing parents.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if `path` is not empty or is inside `source`;
    /// I/O errors.
    pub(crate) fn create(source: &Path, path: &Path) -> Result<Self> {
        refuse_url(path)?;
        let is_empty = match fs::read_dir(path) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
            Err(error) => return Err(Error::from(error).with_path(path)),
        };
        if !is_empty {
            let message = "the output directory is not empty: name one that does not exist yet";
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
        // renamed only once it is locked, so that other runs do not treat it as abandoned
        let unlocked = with_added_extension(&self.path, &format!(".kbat-begun{own}{NOT_LIVE}"));
        fs::create_dir(&unlocked).map_err(|error| Error::from(error).with_path(&unlocked))?;
        // not all file systems support locks, and Windows cannot rename a directory with an open file in it
        self.lock = if cfg!(unix) { DirectoryLock::acquire(&unlocked).ok() } else { None };
        fs::rename(&unlocked, &self.staged).map_err(|error| Error::from(error).with_path(&self.staged))
    }

    /// The directory to write to until it is committed.
    pub(crate) fn directory(&self) -> &Path {
        &self.staged
    }

    /// Renames the directory to its final name.
    ///
    /// # Errors
    /// I/O errors, for instance because another run has created the directory in the meantime.
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
            // ignored: the error that caused the drop is the one to report
            let _ = fs::remove_dir_all(&self.staged);
            for parent in &self.made {
                let _ = fs::remove_dir(parent);
            }
        }
    }
}

/// Removes the directories of killed runs with the same target: those that are not locked. Errors are ignored.
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
