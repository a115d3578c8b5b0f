//! Writes Arrow batches to Parquet files (feature `parquet`): one file, or a directory partitioned in Hive's layout.
//!
//! ```text
//! out/topic=orders/date=2026-11-21/part-0.parquet
//! ```
//!
//! Files are written under hidden names and renamed when all of them are complete: a pass that fails or is killed
//! leaves no file that looks complete. Existing files of the same names are replaced.

mod keys;
mod options;
mod part;

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;

pub use keys::PartitionBy;
pub use options::{ParquetCompression, ParquetOptions};

use crate::error::{Error, Result};
use crate::io::atomic::sync_directory;
use crate::io::location::{directory_of, refuse_url};
use keys::Keys;
use part::{PartFile, PausedFile, failure, make_directory_of};

/// Maximum number of open files. Each takes up to half a megabyte. With more directories than this, the least recently
/// used files are closed, and their directories get several files.
const MAX_PARTS: usize = 1024;

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParquetFile {
    /// Path of the file.
    pub path: PathBuf,
    /// Number of rows.
    pub row_count: u64,
    /// Bytes of the file.
    pub size: u64,
}

/// Writes Arrow batches of one schema to Parquet.
///
/// ```no_run
/// # fn main() -> kbat::Result<()> {
/// use kbat::arrow::{ArrowScan, ScanOptions, ScanSource};
/// use kbat::parquet::{ParquetOptions, ParquetWriter};
/// let segments = kbat::find_segments("/var/lib/kafka/data/orders-0")?;
/// let scan = ArrowScan::new(segments.iter().map(ScanSource::file).collect(), ScanOptions::default());
/// let mut writer = ParquetWriter::new("orders.parquet", &scan.schema(), ParquetOptions::default())?;
/// for arrow_batch in scan {
///     writer.write(&arrow_batch?)?;
/// }
/// let files = writer.finish()?;
/// # Ok(()) }
/// ```
pub struct ParquetWriter {
    target: PathBuf,
    options: ParquetOptions,
    properties: WriterProperties,
    keys: Keys,
    file_schema: SchemaRef,
    /// Open files by their directory.
    open: HashMap<String, PartFile>,
    closed: Vec<(PathBuf, ParquetFile)>,
    /// Number of files so far in each directory.
    counts: HashMap<String, usize>,
    /// Directories that were created, outermost first.
    made: Vec<PathBuf>,
    tick: u64,
    /// Whether rows of a `write` that failed are missing.
    has_failed: bool,
}

impl ParquetWriter {
    /// Creates a writer of one file `target`, or of files below the directory `target` if the options partition.
    ///
    /// # Errors
    /// A column to partition by that the schema lacks or that can't name a directory, a number of names that differs
    /// from the number of columns, a compression level that does not exist.
    pub fn new(target: impl AsRef<Path>, schema: &Schema, options: ParquetOptions) -> Result<Self> {
        let target = target.as_ref();
        refuse_url(target)?;
        options.check_stem()?;
        let keys = Keys::new(schema, &options.partition_by)?;
        let kept = schema.project(keys.kept()).map_err(|error| Error::argument(error.to_string()))?;
        let file_schema = Arc::new(options.renamed(&kept)?);
        let properties = options.properties(&file_schema)?;
        Ok(Self {
            target: target.to_path_buf(),
            options,
            properties,
            keys,
            file_schema,
            open: HashMap::new(),
            closed: Vec::new(),
            counts: HashMap::new(),
            made: Vec::new(),
            tick: 0,
            has_failed: false,
        })
    }

    /// Adds the rows of an Arrow batch.
    ///
    /// # Errors
    /// Errors of writing to a file.
    pub fn write(&mut self, arrow_batch: &RecordBatch) -> Result<()> {
        let written = self.write_runs(arrow_batch);
        self.has_failed |= written.is_err();
        written
    }

    fn write_runs(&mut self, arrow_batch: &RecordBatch) -> Result<()> {
        for (directory, start, len) in self.keys.runs(arrow_batch) {
            let rows = arrow_batch.slice(start, len);
            let columns = self.keys.kept().iter().filter_map(|index| rows.columns().get(*index).cloned()).collect();
            let options = arrow_array::RecordBatchOptions::new().with_row_count(Some(len));
            let rows = RecordBatch::try_new_with_options(Arc::clone(&self.file_schema), columns, &options)
                .map_err(|error| Error::argument(error.to_string()))?;
            self.write_to(&directory, &rows)?;
        }
        self.keep_within_memory()
    }

    /// Completes all files and renames them.
    ///
    /// # Errors
    /// Errors of writing to a file; a `write` that failed.
    pub fn finish(mut self) -> Result<Vec<ParquetFile>> {
        if self.has_failed {
            return Err(Error::argument("rows are missing, because a write failed: write them to a new writer"));
        }
        if self.open.is_empty() && self.closed.is_empty() && self.options.partition_by.is_empty() {
            self.open_file("")?; // without rows, write one file without rows
        }
        let mut directories: Vec<String> = self.open.keys().cloned().collect();
        directories.sort();
        for directory in directories {
            self.close(&directory)?;
        }
        let mut files = Vec::new();
        while let Some((hidden, file)) = self.closed.last() {
            fs::rename(hidden, &file.path).map_err(|error| Error::from(error).with_path(&file.path))?;
            files.extend(self.closed.pop().map(|(_, file)| file));
        }
        files.reverse();
        let directories = files.iter().map(|file| directory_of(&file.path));
        let directories: BTreeSet<&Path> = directories.chain(self.made.iter().map(|made| directory_of(made))).collect();
        for directory in directories {
            sync_directory(directory).map_err(|error| Error::from(error).with_path(directory))?;
        }
        self.made.clear();
        Ok(files)
    }

    fn write_to(&mut self, directory: &str, rows: &RecordBatch) -> Result<()> {
        if !self.open.contains_key(directory) {
            let oldest = self.open.iter().min_by_key(|(_, file)| file.used).map(|(name, _)| name.clone());
            if let Some(oldest) = oldest.filter(|_| self.open.len() >= MAX_PARTS) {
                self.close(&oldest)?;
            }
            self.open_file(directory)?;
        }
        self.tick = self.tick.saturating_add(1);
        let Some(file) = self.open.get_mut(directory) else { return Ok(()) };
        file.used = self.tick;
        file.row_count = file.row_count.saturating_add(crate::num::u64_of(rows.num_rows()));
        file.writer.write(rows).map_err(|error| failure(error, &file.path))?;
        if file.writer.in_progress_size() >= self.options.row_group_len {
            file.flush()?;
        }
        Ok(())
    }

    /// Ends the least recently used row groups while all files together use too much memory.
    fn keep_within_memory(&mut self) -> Result<()> {
        let mut held = self.open.values().fold(0, |sum: usize, file| sum.saturating_add(file.memory_len()));
        if held < self.options.memory_len {
            return Ok(());
        }
        let mut files: Vec<_> = self.open.values_mut().collect();
        files.sort_unstable_by_key(|file| file.used);
        for file in files {
            held = held.saturating_sub(file.memory_len());
            file.flush()?;
            if held < self.options.memory_len / 2 {
                break;
            }
        }
        Ok(())
    }

    fn open_file(&mut self, directory: &str) -> Result<()> {
        let path = if self.options.partition_by.is_empty() {
            self.target.clone()
        } else {
            let count = self.counts.entry(directory.to_owned()).or_default();
            let number = *count;
            *count = number.saturating_add(1);
            self.target.join(directory).join(format!("{}-{number}.parquet", self.options.file_stem))
        };
        let path = replaceable(path)?;
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let hidden = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
        let made = make_directory_of(&path).map_err(|error| Error::from(error).with_path(&path))?;
        self.made.extend(made);
        remove_abandoned(&path, name);
        let file = PausedFile::create(&hidden).map_err(|error| Error::from(error).with_path(&path))?;
        let writer = ArrowWriter::try_new(file, Arc::clone(&self.file_schema), Some(self.properties.clone()))
            .map_err(|error| failure(error, &path))?;
        self.open.insert(directory.to_owned(), PartFile { writer, hidden, path, row_count: 0, used: self.tick });
        Ok(())
    }

    fn close(&mut self, directory: &str) -> Result<()> {
        let Some(file) = self.open.remove(directory) else { return Ok(()) };
        let closed = ParquetFile { path: file.path.clone(), row_count: file.row_count, size: 0 };
        self.closed.push((file.hidden.clone(), closed)); // added even if closing fails, so that it is removed
        let size = file.close()?;
        if let Some((_, closed)) = self.closed.last_mut() {
            closed.size = size;
        }
        Ok(())
    }
}

/// Removes hidden files of the same target that killed processes of this machine left. Failing to remove them is harmless.
fn remove_abandoned(path: &Path, name: &str) {
    let prefix = format!(".{name}.");
    for entry in path.parent().and_then(|parent| fs::read_dir(parent).ok()).into_iter().flatten().flatten() {
        let file_name = entry.file_name();
        let process = file_name.to_str().and_then(|found| found.strip_prefix(&prefix)?.strip_suffix(".part"));
        // other systems do not list their processes as files, and keep the hidden file
        let is_dead = process.and_then(|process| process.parse::<u32>().ok()).is_some_and(|process| {
            Path::new("/proc/self").exists() && !Path::new("/proc").join(process.to_string()).exists()
        });
        if is_dead {
            drop(fs::remove_file(entry.path()));
        }
    }
}

/// The path of a file to replace, with links resolved. Rejects directories, devices, pipes and sockets.
fn replaceable(path: PathBuf) -> Result<PathBuf> {
    let path = if path.is_symlink() {
        fs::canonicalize(&path).map_err(|error| Error::from(error).with_path(&path))?
    } else {
        path
    };
    if path.is_dir() {
        let error = std::io::Error::from(std::io::ErrorKind::IsADirectory);
        return Err(Error::from(error).with_path(&path));
    }
    if path.exists() && !path.is_file() {
        let message = "this is a device, a pipe or a socket, which would be replaced: pass the path of a file";
        return Err(Error::argument(message).with_path(&path));
    }
    Ok(path)
}

impl Drop for ParquetWriter {
    fn drop(&mut self) {
        // a file that can't be removed has a hidden name, so it is never read as a result
        for file in self.open.values() {
            drop(fs::remove_file(&file.hidden));
        }
        for (hidden, _) in &self.closed {
            drop(fs::remove_file(hidden));
        }
        for directory in self.made.iter().rev() {
            drop(fs::remove_dir(directory));
        }
    }
}
