//! [`Store`]: the trait of everything but the file system that files are read from, such as a bucket.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::error::{Error, Result};
use crate::io::read_at::StoredFile;

/// Files in directories that can be listed and read, but not changed.
pub(crate) trait Store: fmt::Debug + Send + Sync {
    /// What is at a path.
    ///
    /// # Errors
    /// An I/O error of the kind `NotFound` if nothing is there, and other I/O errors.
    fn status(&self, path: &Path) -> Result<Status>;

    /// Lists the paths in a directory, in any order.
    ///
    /// # Errors
    /// As for [`Store::status`].
    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>>;

    /// Opens a file.
    ///
    /// # Errors
    /// As for [`Store::status`].
    fn open(&self, path: &Path) -> Result<Box<dyn StoredFile>>;

    /// Opens a file with its current content, even if it was replaced since it was listed.
    ///
    /// # Errors
    /// As for [`Store::status`].
    fn open_current(&self, path: &Path) -> Result<Box<dyn StoredFile>> {
        self.open(path)
    }

    /// Writes a file with the content of a file of the file system, and replaces one of the same name.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if files cannot be written; I/O errors.
    fn put(&self, path: &Path, _from: &Path) -> Result<()> {
        Err(Error::argument("files in this layout cannot be written").with_path(path))
    }

    /// Reserves an empty directory for the files of one caller, until [`Store::release`].
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if it is not empty or is reserved; I/O errors.
    fn claim(&self, _directory: &Path) -> Result<()> {
        Ok(())
    }

    /// Ends a reservation, if there is one.
    ///
    /// # Errors
    /// I/O errors.
    fn release(&self, _directory: &Path) -> Result<()> {
        Ok(())
    }

    /// Whether the directories are made of objects in another layout, so that a broker never wrote them.
    fn is_layout(&self) -> bool {
        false
    }

    /// Whether parts of what is stored are omitted, which [`Store::warnings`] describes.
    fn may_omit(&self) -> bool {
        self.is_layout()
    }

    /// What a reader of a directory should know, such as parts that are omitted, each with the lowest offset that it
    /// is about.
    ///
    /// # Errors
    /// As for [`Store::status`].
    fn warnings(&self, _directory: &Path) -> Result<Vec<(i64, String)>> {
        Ok(Vec::new())
    }

    /// Whether a file is a segment that was complete when it was stored, so that it must end with a batch.
    fn is_finished(&self, _path: &Path) -> bool {
        false
    }

    /// If a file is a part of another one: the path of that file, and the position at which the part begins.
    fn part_of(&self, _path: &Path) -> Option<(PathBuf, u64)> {
        None
    }

    /// Whether a path is that of a file in the directory of a broker, with which no segment in remote storage is read.
    #[cfg(feature = "plan")]
    fn is_read_alone(&self, _path: &Path) -> bool {
        false
    }

    /// Partition directories that belong to a directory, and that [`Store::list`] does not return.
    fn unlisted(&self, _directory: &Path) -> Vec<PathBuf> {
        Vec::new()
    }
}

/// What is at a location.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Status {
    pub(crate) kind: StatusKind,
    /// Length of a file in bytes.
    pub(crate) len: u64,
    pub(crate) modified: Option<SystemTime>,
}

/// A file, a directory, or something else, such as a pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatusKind {
    File,
    Directory,
    Other,
}

impl Status {
    pub(crate) fn is_file(&self) -> bool {
        self.kind == StatusKind::File
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.kind == StatusKind::Directory
    }
}

impl From<fs::Metadata> for Status {
    fn from(metadata: fs::Metadata) -> Self {
        let kind = match metadata.file_type() {
            kind if kind.is_file() => StatusKind::File,
            kind if kind.is_dir() => StatusKind::Directory,
            _ => StatusKind::Other,
        };
        Self { kind, len: metadata.len(), modified: metadata.modified().ok() }
    }
}
