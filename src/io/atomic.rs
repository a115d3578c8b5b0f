//! Atomic file replacement: the content is written to a temporary file, flushed to disk and renamed.
//!
//! Source: `CheckpointFile.write` and `Utils.atomicMoveWithFallback` of Kafka.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::io::location::directory_of;

/// Replaces a file's content: writes `<name>.tmp`, syncs it, renames it and syncs the directory. After a crash the
/// file has either the old content or the new.
///
/// # Errors
/// I/O errors, with the path of the file.
pub(crate) fn write_atomically(path: &Path, content: &[u8]) -> Result<()> {
    let temporary = with_added_extension(path, ".tmp");
    let write = || {
        let mut file = File::create(&temporary)?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(&temporary, path)?;
        sync_directory_of(path)
    };
    write().map_err(|error: io::Error| Error::from(error).with_path(path))
}

/// Syncs a directory, so that names created, renamed or removed in it survive a crash. Has no effect on Windows and on
/// file systems that have no such call, such as some network file systems.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    match File::open(directory)?.sync_all() {
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        result => result,
    }
}

/// Syncs the directory of a path, so that the path's name survives a crash.
pub(crate) fn sync_directory_of(path: &Path) -> io::Result<()> {
    sync_directory(directory_of(path))
}

/// Appends text to the name of a path.
pub(crate) fn with_added_extension(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn write_atomically_replaces_and_leaves_nothing_beside() {
        let directory = std::env::temp_dir().join(format!("kbat-atomic-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("file");
        write_atomically(&path, b"old").unwrap();
        write_atomically(&path, b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
        let missing = directory.join("missing").join("file");
        assert!(write_atomically(&missing, b"").unwrap_err().path().is_some());
        fs::remove_dir_all(&directory).unwrap();
    }
}
