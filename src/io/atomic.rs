//! Files that are there whole or not at all: written beside, flushed to the disk, renamed.
//!
//! Source: `CheckpointFile.write` and `Utils.atomicMoveWithFallback` of Kafka.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::store::listing::directory_of;

/// Replaces a file's content: `<name>.tmp`, fsync, rename, fsync of the directory. After a crash the file has the old
/// content or the new.
///
/// # Errors
/// Those of writing.
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

/// Makes names that were created, renamed or removed in a directory last through a crash. Windows has no such call.
pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(directory)?.sync_all() } else { Ok(()) }
}

/// Makes a name last.
pub(crate) fn sync_directory_of(path: &Path) -> io::Result<()> {
    sync_directory(directory_of(path))
}

/// A path with more text after its name.
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
