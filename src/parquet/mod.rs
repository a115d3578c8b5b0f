//! Arrow batches to Parquet files (feature `parquet`): one file, or a directory partitioned by columns in Hive's layout.
//!
//! ```text
//! out/topic=orders/date=2026-11-21/part-0.parquet
//! ```
//!
//! Files are written under hidden names and get their own when all of them are whole: a pass that fails, or is killed, leaves no
//! file that looks whole. A file that has such a name is replaced.

mod keys;
mod options;

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use parquet::arrow::ArrowWriter;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

pub use keys::PartitionBy;
pub use options::{ParquetCompression, ParquetOptions};

use crate::error::{Error, Result};
use keys::Keys;

/// Files that are open at the same time; more partitions than that get several files each.
const MAX_OPEN_FILES: usize = 64;

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParquetFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its rows.
    pub row_count: u64,
    /// Its bytes.
    pub size: u64,
}

/// Writes Arrow batches of one schema to Parquet.
///
/// ```no_run
/// # fn main() -> kbat::Result<()> {
/// use kbat::arrow::{ArrowScan, ScanOptions, ScanSource};
/// use kbat::parquet::{ParquetOptions, ParquetWriter};
/// let segments = kbat::find_segments("/var/lib/kafka/data/orders-0".as_ref())?;
/// let scan = ArrowScan::new(segments.iter().map(ScanSource::file).collect(), ScanOptions::default());
/// let mut writer = ParquetWriter::new("orders.parquet".as_ref(), &scan.schema(), ParquetOptions::default())?;
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
    open: HashMap<String, OpenFile>,
    closed: Vec<(PathBuf, ParquetFile)>,
    tick: u64,
}

struct OpenFile {
    writer: ArrowWriter<File>,
    hidden: PathBuf,
    path: PathBuf,
    row_count: u64,
    /// When it was last written to, to close the one that was not for longest.
    used: u64,
}

impl ParquetWriter {
    /// A writer of one file `target`, or, where the options partition, of files below the directory `target`.
    ///
    /// # Errors
    /// A column to partition by that the schema lacks or that can't be a directory's name, names that are not as many as the
    /// columns, a compression level that does not exist.
    pub fn new(target: &Path, schema: &Schema, options: ParquetOptions) -> Result<Self> {
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
            tick: 0,
        })
    }

    /// Adds the rows of a batch.
    ///
    /// # Errors
    /// Those of writing.
    pub fn write(&mut self, arrow_batch: &RecordBatch) -> Result<()> {
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

    /// Ends all files and gives them their names.
    ///
    /// # Errors
    /// Those of writing.
    pub fn finish(mut self) -> Result<Vec<ParquetFile>> {
        if self.open.is_empty() && self.closed.is_empty() && self.options.partition_by.is_empty() {
            self.open_file("")?; // no rows are a file without rows
        }
        let mut directories: Vec<String> = self.open.keys().cloned().collect();
        directories.sort();
        for directory in directories {
            self.close(&directory)?;
        }
        if let Some((_, file)) = self.closed.iter().find(|(_, file)| file.path.is_dir()) {
            let error = std::io::Error::from(std::io::ErrorKind::IsADirectory);
            return Err(Error::from(error).with_path(&file.path)); // before any file has its name
        }
        let mut files = Vec::new();
        while let Some((hidden, file)) = self.closed.last() {
            fs::rename(hidden, &file.path).map_err(|error| Error::from(error).with_path(&file.path))?;
            files.extend(self.closed.pop().map(|(_, file)| file));
        }
        files.reverse();
        Ok(files)
    }

    fn write_to(&mut self, directory: &str, rows: &RecordBatch) -> Result<()> {
        if !self.open.contains_key(directory) {
            if self.open.len() >= MAX_OPEN_FILES {
                let oldest = self.open.iter().min_by_key(|(_, file)| file.used).map(|(name, _)| name.clone());
                self.close(&oldest.unwrap_or_default())?;
            }
            self.open_file(directory)?;
        }
        self.tick = self.tick.saturating_add(1);
        let Some(file) = self.open.get_mut(directory) else { return Ok(()) };
        file.used = self.tick;
        file.row_count = file.row_count.saturating_add(crate::num::u64_of(rows.num_rows()));
        file.writer.write(rows).map_err(|error| failure(error, &file.path))?;
        if file.writer.in_progress_size() >= self.options.row_group_len {
            file.writer.flush().map_err(|error| failure(error, &file.path))?;
        }
        Ok(())
    }

    /// Ends row groups, the largest first, while all files together hold too much in memory.
    fn keep_within_memory(&mut self) -> Result<()> {
        let held: usize = self.open.values().map(|file| file.writer.memory_size()).sum();
        if held < self.options.memory_len {
            return Ok(());
        }
        match self.open.values_mut().max_by_key(|file| file.writer.memory_size()) {
            Some(file) => file.writer.flush().map_err(|error| failure(error, &file.path)),
            None => Ok(()),
        }
    }

    fn open_file(&mut self, directory: &str) -> Result<()> {
        let path = if self.options.partition_by.is_empty() {
            self.target.clone()
        } else {
            let number =
                self.closed.iter().filter(|(_, file)| file.path.starts_with(self.target.join(directory))).count();
            self.target.join(directory).join(format!("{}-{number}.parquet", self.options.file_stem))
        };
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let hidden = path.with_file_name(format!(".{name}.{}.part", std::process::id()));
        let create = || {
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent)?;
            }
            File::create(&hidden)
        };
        let file = create().map_err(|error| Error::from(error).with_path(&path))?;
        let writer = ArrowWriter::try_new(file, Arc::clone(&self.file_schema), Some(self.properties.clone()))
            .map_err(|error| failure(error, &path))?;
        self.open.insert(directory.to_owned(), OpenFile { writer, hidden, path, row_count: 0, used: self.tick });
        Ok(())
    }

    fn close(&mut self, directory: &str) -> Result<()> {
        let Some(file) = self.open.remove(directory) else { return Ok(()) };
        let OpenFile { writer, hidden, path, row_count, .. } = file;
        let closed = (hidden, ParquetFile { path, row_count, size: 0 });
        self.closed.push(closed); // in the list already if closing fails, so that it is removed
        let Some((_, file)) = self.closed.last_mut() else { return Ok(()) };
        let written = writer.into_inner().map_err(|error| failure(error, &file.path))?;
        let sync = || {
            written.sync_all()?;
            Ok(written.metadata()?.len())
        };
        file.size = sync().map_err(|error: std::io::Error| Error::from(error).with_path(&file.path))?;
        Ok(())
    }
}

impl Drop for ParquetWriter {
    fn drop(&mut self) {
        // what could not be removed has a hidden name and is no answer to anything
        for file in self.open.values() {
            drop(fs::remove_file(&file.hidden));
        }
        for (hidden, _) in &self.closed {
            drop(fs::remove_file(hidden));
        }
    }
}

fn failure(error: ParquetError, path: &Path) -> Error {
    let error = match error {
        ParquetError::External(source) => match source.downcast::<std::io::Error>() {
            Ok(io) => *io,
            Err(source) => std::io::Error::other(source),
        },
        error => std::io::Error::other(error),
    };
    Error::from(error).with_path(path)
}
