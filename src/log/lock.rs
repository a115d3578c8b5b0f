//! [`DirectoryLock`]: one at a time changes a partition directory, or makes a new one.

use std::fs::{File, TryLockError};
use std::path::Path;

use crate::error::{Error, Result};

/// Held as long as it lives; a process that is killed lets go of it.
#[derive(Debug)]
pub(crate) struct DirectoryLock {
    _file: File,
}

impl DirectoryLock {
    /// Locks a directory against all others who would change it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) where somebody else has it; those of the system.
    pub(crate) fn acquire(directory: &Path) -> Result<Self> {
        let file = lock_file(directory).map_err(|error| Error::from(error).with_path(directory))?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => {
                let message = "another LogWriter, or a repair in place, is at work in this directory";
                Err(Error::argument(message).with_path(directory))
            }
            Err(TryLockError::Error(error)) => Err(Error::from(error).with_path(directory)),
        }
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
