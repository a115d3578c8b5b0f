//! [`DirectoryLock`]: lets only one writer or tool at a time change or create a partition directory.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::error::{Error, Result};

/// Held until dropped, by the process that acquired it. The system releases it when that process is killed.
///
/// A forked child inherits the open file, and the parent's lock with it. So the parent unlocks explicitly, even if a
/// child still has the file open, and a child never unlocks.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    file: File,
    process: u32,
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        if self.is_own() {
            // closing the file would unlock it too, unless a child has it open
            let _ = self.file.unlock();
        }
    }
}

impl DirectoryLock {
    /// Locks a directory against every other writer and tool.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if another writer or tool holds the lock; I/O
    /// errors.
    pub(crate) fn acquire(directory: &Path) -> Result<Self> {
        let file = lock_file(directory).map_err(|error| Error::from(error).with_path(directory))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { file, process: std::process::id() }),
            Err(TryLockError::WouldBlock) => {
                let message = "another LogWriter or an in-place repair is using this directory: wait until it ends";
                Err(Error::argument(message).with_path(directory))
            }
            Err(TryLockError::Error(error)) => Err(Error::from(error).with_path(directory)),
        }
    }

    /// Whether this process acquired the lock, rather than a parent.
    pub(crate) fn is_own(&self) -> bool {
        self.process == std::process::id()
    }
}

/// Opens the directory itself, so that locking creates no file in it.
#[cfg(unix)]
fn lock_file(directory: &Path) -> std::io::Result<File> {
    File::open(directory)
}

#[cfg(not(unix))]
fn lock_file(directory: &Path) -> std::io::Result<File> {
    File::options().create(true).truncate(false).write(true).open(directory.join(".writer-lock"))
}
