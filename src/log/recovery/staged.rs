//! [`StagedFile`]: a file written under a temporary name until it is whole. [`StagedDirectory`]: the same for a directory.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{Error, Result};
use crate::log::atomic::{sync_directory, with_added_extension};

/// What is added to the name of a file or directory that is not whole yet.
const PARTIAL: &str = ".kbat-partial";

/// A file in the making. Dropped without [`StagedFile::commit`], it is removed.
#[derive(Debug)]
pub(crate) struct StagedFile {
    writer: Option<BufWriter<File>>,
    staged: PathBuf,
    path: PathBuf,
    modified: Option<SystemTime>,
}

impl StagedFile {
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let staged = with_added_extension(path, PARTIAL);
        let file = File::create(&staged).map_err(|error| Error::from(error).with_path(&staged))?;
        Ok(Self { writer: Some(BufWriter::new(file)), staged, path: path.to_path_buf(), modified: None })
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
        commit().map_err(|error: std::io::Error| Error::from(error).with_path(&self.path))
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        if self.writer.take().is_some() {
            // nothing better can be done: the error that led here is on its way
            let _ = fs::remove_file(&self.staged);
        }
    }
}

/// A directory in the making, beside the one that it will be. Dropped without [`StagedDirectory::commit`], it is removed.
#[derive(Debug)]
pub(crate) struct StagedDirectory {
    staged: PathBuf,
    path: PathBuf,
    committed: bool,
}

impl StagedDirectory {
    /// Refuses a path that has something in it. What a killed run left is removed.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let is_empty = match fs::read_dir(path) {
            Ok(mut entries) => entries.next().is_none(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
            Err(error) => return Err(Error::from(error).with_path(path)),
        };
        if !is_empty {
            let message = format!("{} is not empty: name a directory that does not exist yet", path.display());
            return Err(Error::argument(message));
        }
        let staged = with_added_extension(path, PARTIAL);
        let create = || {
            if staged.exists() {
                fs::remove_dir_all(&staged)?;
            }
            fs::create_dir_all(&staged)
        };
        create().map_err(|error| Error::from(error).with_path(&staged))?;
        Ok(Self { staged, path: path.to_path_buf(), committed: false })
    }

    /// Where to write by now.
    pub(crate) fn directory(&self) -> &Path {
        &self.staged
    }

    /// Gives the directory its name.
    pub(crate) fn commit(mut self) -> Result<()> {
        let commit = || {
            sync_directory(&self.staged)?;
            if self.path.exists() {
                fs::remove_dir(&self.path)?;
            }
            fs::rename(&self.staged, &self.path)?;
            let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
            sync_directory(parent.unwrap_or(Path::new(".")))
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
        }
    }
}
