//! A file that is being written and uses a file handle only during writes.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;

use crate::error::{Error, Result};

/// A file that is reopened for each write: thousands can be unfinished at the same time.
#[derive(Debug)]
pub(super) struct PausedFile {
    path: PathBuf,
    file: Option<File>,
}

impl PausedFile {
    /// Creates an empty file and replaces an existing one.
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        File::create(path)?;
        Ok(Self { path: path.to_path_buf(), file: None })
    }

    fn file(&mut self) -> io::Result<&mut File> {
        let file = match self.file.take() {
            Some(file) => file,
            None => File::options().append(true).open(&self.path)?,
        };
        Ok(self.file.insert(file))
    }

    fn pause(&mut self) {
        self.file = None;
    }

    /// Flushes the file to disk. Returns its length.
    fn sync(&mut self) -> io::Result<u64> {
        let file = self.file()?;
        file.sync_all()?;
        Ok(file.metadata()?.len())
    }
}

impl Write for PausedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file()?.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(()) // nothing is buffered here
    }
}

/// Rows being written to a file with a hidden name.
pub(super) struct PartFile {
    pub(super) writer: ArrowWriter<PausedFile>,
    pub(super) hidden: PathBuf,
    pub(super) path: PathBuf,
    pub(super) row_count: u64,
    /// When it was last written to, to find the least recently used one.
    pub(super) used: u64,
}

/// Measured memory of a row group's encoders before the first row.
const ROW_GROUP_LEN: usize = 512 << 10;

impl PartFile {
    /// Bytes in memory.
    pub(super) fn memory_len(&self) -> usize {
        match self.writer.memory_size() {
            0 => 0, // between two row groups
            size => size.saturating_add(ROW_GROUP_LEN),
        }
    }

    /// Ends the row group.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.writer.flush().map_err(|error| failure(error, &self.path))?;
        self.writer.inner_mut().pause();
        Ok(())
    }

    /// Completes the file. Returns its length.
    pub(super) fn close(self) -> Result<u64> {
        let mut file = self.writer.into_inner().map_err(|error| failure(error, &self.path))?;
        file.sync().map_err(|error| Error::from(error).with_path(&self.path))
    }
}

/// Creates the directory of a file. Returns the directories that did not exist, outermost first.
pub(super) fn make_directory_of(path: &Path) -> io::Result<Vec<PathBuf>> {
    let Some(parent) = path.parent() else { return Ok(Vec::new()) };
    let missing = parent.ancestors().take_while(|one| !one.as_os_str().is_empty() && !one.exists());
    let mut made: Vec<PathBuf> = missing.map(Path::to_path_buf).collect();
    made.reverse();
    fs::create_dir_all(parent)?;
    Ok(made)
}

pub(super) fn failure(error: ParquetError, path: &Path) -> Error {
    let error = match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(io) => *io,
            Err(source) => io::Error::other(source),
        },
        error => io::Error::other(error),
    };
    Error::from(error).with_path(path)
}
