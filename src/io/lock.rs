//! [`DirectoryLock`]: only one writer or tool at a time changes a partition directory, or creates a new one.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::error::{Error, Result};

/// Held until it is dropped, in the process that acquired it; a killed process loses it.
///
/// A forked child inherits the open file, and with it the lock of the parent. So the parent unlocks explicitly, whether or not a
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
    /// Locks a directory against all others who would change it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if another writer or tool holds it; those of the system.
    pub(crate) fn acquire(directory: &Path) -> Result<Self> {
        let file = lock_file(directory).map_err(|error| Error::from(error).with_path(directory))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { file, process: std::process::id() }),
            Err(TryLockError::WouldBlock) => {
                let message = "another LogWriter or an in-place repair is using this directory";
                Err(Error::argument(message).with_path(directory))
            }
            Err(TryLockError::Error(error)) => Err(Error::from(error).with_path(directory)),
        }
    }

    /// Whether this process acquired it, not a parent.
    pub(crate) fn is_own(&self) -> bool {
        self.process == std::process::id()
    }
}

/// The directory itself, so that no file is left in it.
#[cfg(unix)]
fn lock_file(directory: &Path) -> std::io::Result<File> {
    File::open(directory)
}

#[cfg(not(unix))]
fn lock_file(directory: &Path) -> std::io::Result<File> {
    File::options().create(true).truncate(false).write(true).open(directory.join(".writer-lock"))
}
