//! [`Existing`]: a partition before a write.

use std::fs;
use std::io;
use std::path::Path;

use crate::arrow::{ArrowScan, Column, ScanOptions, ScanSource};
use crate::error::{Error, Result};
use crate::io::Location;
use crate::log::checkpoint::LeaderEpochs;
use crate::log::{LogWriter, LogWriterOptions, PartitionLog};
use crate::plan::{find_segments, is_of_format};
use crate::sink::options::WriteOptions;
use crate::store::names::LEADER_EPOCHS;
use crate::store::{LogFile, LogFileKind};

/// What a write continues.
#[derive(Debug, Default)]
pub(super) struct Existing {
    pub(super) is_there: bool,
    pub(super) end_offset: i64,
    pub(super) epochs: LeaderEpochs,
    /// The snapshot of the producers at the end.
    pub(super) producers: Option<Vec<u8>>,
}

impl Existing {
    /// Inspects a directory, which no broker and no other writer may have open.
    ///
    /// # Errors
    /// A corrupt last segment, as nothing can be appended to it; those of [`LogWriter::open`].
    pub(super) fn of(directory: &Path) -> Result<Self> {
        if !directory.exists() {
            return Ok(Self::default());
        }
        check_end(directory)?;
        let writer = LogWriter::open(directory, LogWriterOptions::default())?;
        let end_offset = writer.end_offset();
        writer.close()?;
        let snapshot = directory.join(LogFile::live(end_offset, LogFileKind::ProducerSnapshot).to_string());
        let producers = match fs::read(&snapshot) {
            Ok(content) => Some(content),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::from(error).with_path(&snapshot)),
        };
        let epochs = LeaderEpochs::read_existing(directory.join(LEADER_EPOCHS))?.unwrap_or_default();
        Ok(Self { is_there: true, end_offset, epochs, producers })
    }

    /// The leader epoch of the new segments.
    ///
    /// # Errors
    /// The option is below the latest epoch.
    pub(super) fn next_epoch(&self, partition: &str, options: &WriteOptions) -> Result<i32> {
        let latest = self.epochs.latest().map_or(0, |latest| latest.epoch);
        match options.leader_epoch {
            Some(epoch) if epoch < latest => Err(Error::argument(format!(
                "kbat: option leaderEpoch={epoch} is below {latest}, the latest of {partition}"
            ))),
            epoch => Ok(epoch.unwrap_or(latest)),
        }
    }

    /// Writes the checkpoint of the leader epochs after the write.
    pub(super) fn write_epochs(&self, made: &Path, epoch: i32) -> Result<()> {
        let mut epochs = self.epochs.clone();
        epochs.assign(epoch, self.end_offset)?;
        epochs.write(made.join(LEADER_EPOCHS))
    }
}

/// Refuses a corrupt last segment, as a writer would truncate it. It may end with an incomplete batch.
fn check_end(directory: &Path) -> Result<()> {
    let log = PartitionLog::open(Location::local(directory))?;
    let Some(last) = log.segments().last() else { return Ok(()) };
    let files = find_segments(last.location())?;
    let options = ScanOptions { columns: vec![Column::Offset], ..ScanOptions::default() };
    for rows in ArrowScan::new(files.iter().map(ScanSource::file).collect(), options) {
        rows.map_err(|error| if is_of_format(&error) { advised(error, directory) } else { error })?;
    }
    Ok(())
}

fn advised(error: Error, directory: &Path) -> Error {
    error.with_note(format!(
        "nothing was written, because appending would remove the batches after the corruption; run `kbat verify {}`, \
         then `kbat salvage` to keep all readable batches, or `kbat recover` to truncate",
        directory.display()
    ))
}
