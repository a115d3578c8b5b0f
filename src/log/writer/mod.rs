//! [`LogWriter`]: writes batches and records to a partition directory, with the other files that a broker writes.
//!
//! ```text
//! append (records) ─► a batch once it is full ───┐
//! append_batches ─► checked, offsets assigned ───┴─► roll? ─► .log ─► index entries in memory
//! flush            the .log to disk, then index entries and leader epochs
//! roll and close   the same, the last time entry, a producer snapshot; then the next segment's files, its .log last
//! ```
//!
//! Flushed data survives a kill or a power loss at any point. A segment is complete before the next one exists.
//! Opening checks the last segment batch by batch, truncates it after the last complete batch, and rebuilds its
//! indexes.
//!
//! Source: `UnifiedLog.append`, `LocalLog.roll`, `LogSegment.append` and `shouldRoll` of Kafka 4.

mod active;
mod open;
#[cfg(feature = "plan")]
mod open_files;
mod options;
mod placed;
mod state;

use std::path::{Path, PathBuf};

pub use options::{LogWriterOptions, SyncPolicy};
pub use placed::{PlacedRecord, RecordWriter};

use self::active::ActiveSegment;
#[cfg(feature = "plan")]
pub(crate) use self::open_files::max_open_logs;
use self::state::PartitionState;
use crate::compression::Scratch;
use crate::error::{Error, Result};
use crate::format::batch::Batch;
use crate::format::builder::BatchBuilder;
use crate::format::control::ControlRecord;
use crate::format::edit::{set_base_offset, set_partition_leader_epoch};
use crate::format::frame::batches;
use crate::format::header::NO_PRODUCER_ID;
use crate::format::record::NewHeader;
use crate::format::size::{batch_len_bound, record_len};
use crate::io::atomic::sync_directory;
use crate::io::location::refuse_url;
use crate::io::lock::DirectoryLock;
use crate::limits::Limits;
use crate::num::{u64_of, usize_from_u64};

/// How appended batches get their offsets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OffsetPolicy {
    /// The writer assigns offsets from the end of the log, like a leader. The leader epoch is that of the options.
    #[default]
    Assign,
    /// The batches keep their offsets and leader epochs, like in a follower. Offsets must not be before the end of the
    /// log.
    Keep,
}

/// Writes a partition.
///
/// Dropping it without [`LogWriter::close`] acts like a kill: data that was not flushed may be lost, and records that
/// are not in a batch yet are lost.
///
/// ```no_run
/// # fn main() -> kbat::Result<()> {
/// let options = kbat::log::LogWriterOptions { compression: kbat::Compression::Zstd, ..Default::default() };
/// let mut writer = kbat::log::LogWriter::open("orders-0", options)?;
/// let offset = writer.append(1_700_000_000_000, Some(b"key"), Some(b"value"), &[])?;
/// writer.flush()?; // the record is now on disk
/// writer.close()?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct LogWriter {
    directory: PathBuf,
    options: LogWriterOptions,
    leader_epoch: i32,
    segment: ActiveSegment,
    state: PartitionState,
    start_offset: i64,
    /// The offset after the last batch written.
    end_offset: i64,
    /// Records that are not in a batch yet.
    pending: BatchBuilder,
    buffer: Vec<u8>,
    truncated_bytes: u64,
    /// Whether a write failed, so that the state of the files is unknown.
    failed: bool,
    lock: DirectoryLock,
}

impl LogWriter {
    /// Opens a partition directory, or creates one. Checks the last segment of an existing one batch by batch: like a
    /// broker on an unclean start, truncates it after the last complete batch and rebuilds its indexes.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for options that Kafka's rules forbid, if
    ///   another writer or a broker uses the directory, for another topic id, and if the offsets of the last segment
    ///   do not increase.
    /// - [`ErrorKind::InvalidFile`](crate::ErrorKind::InvalidFile) for a malformed leader epoch checkpoint, and if
    ///   corruption in the last segment is followed by a complete batch.
    /// - [`ErrorKind::Limit`](crate::ErrorKind::Limit) for a batch over [`Limits::batch_len`].
    /// - I/O errors.
    pub fn open(directory: impl AsRef<Path>, options: LogWriterOptions) -> Result<Self> {
        let directory = directory.as_ref();
        options.validate()?;
        refuse_url(directory)?;
        open::create_directory(directory)?;
        Self::open_existing(directory, options)
    }

    /// As [`open`](Self::open), but fails if the directory does not exist, also if it is removed at the same time.
    pub(crate) fn open_existing(directory: &Path, options: LogWriterOptions) -> Result<Self> {
        options.validate()?;
        let lock = DirectoryLock::acquire(directory)?;
        let opened = open::open(directory, &options)?;
        let leader_epoch = leader_epoch(&opened.state, &options)?;
        Ok(Self {
            directory: directory.to_path_buf(),
            options,
            leader_epoch,
            segment: opened.segment,
            state: opened.state,
            start_offset: opened.start_offset,
            end_offset: opened.end_offset,
            pending: BatchBuilder::new(),
            buffer: Vec::new(),
            truncated_bytes: opened.truncated_bytes,
            failed: false,
            lock,
        })
    }

    /// Path of the directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Base offset of the first segment.
    #[must_use]
    pub fn start_offset(&self) -> i64 {
        self.start_offset
    }

    /// The offset that the next record gets.
    #[must_use]
    pub fn end_offset(&self) -> i64 {
        self.end_offset.saturating_add(i64::from(self.pending.record_count()))
    }

    /// The last stable offset: the first offset of the earliest open transaction, or else the end of the batches
    /// written.
    #[must_use]
    pub fn last_stable_offset(&self) -> i64 {
        self.state.last_stable_offset(self.end_offset)
    }

    /// Number of bytes removed from the end of the last segment when it was opened.
    #[must_use]
    pub fn truncated_bytes(&self) -> u64 {
        self.truncated_bytes
    }

    /// Appends a record. It is written with others as a batch of [`LogWriterOptions::batch_size`] bytes, or by
    /// [`LogWriter::flush`]. Returns its offset. `timestamp` is in milliseconds since the epoch, −1 for none.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a record that Kafka's rules forbid, or that
    /// is too large for [`LogWriterOptions::segment_bytes`] or [`LogWriterOptions::limits`], in which case nothing is
    /// appended; I/O errors while writing a full batch.
    pub fn append(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[NewHeader<'_>],
    ) -> Result<i64> {
        self.check_usable()?;
        let len = record_len(i32::MAX, i64::MAX, key, value, headers);
        self.options.check_record_batch_len(batch_len_bound(2, self.options.compression, len))?;
        let fills = |size: usize, bound: usize| size.saturating_add(len) > bound;
        let most = usize_from_u64(self.options.segment_bytes).min(self.options.limits.batch_len);
        if self.pending.record_count() > 0
            && (fills(self.pending.size(), self.options.batch_size) || fills(self.pending.estimated_size(), most))
        {
            self.write_pending()?;
        }
        if self.pending.record_count() == 0 {
            self.pending = self.options.batch_builder(self.next_epoch()).base_offset(self.end_offset);
        }
        let offset = self.end_offset();
        check_has_next(offset)?;
        self.pending.append_with_headers(timestamp, key, value, headers)?;
        Ok(offset)
    }

    /// Appends complete batches: all of them, or none if one is refused. Returns the first offset of the first batch.
    ///
    /// With [`OffsetPolicy::Assign`], the checks are those of a leader: checksums, and records that can be decoded,
    /// match the count in the header and have consecutive offsets. With [`OffsetPolicy::Keep`], they are those of a
    /// follower: checksums, and increasing offsets.
    ///
    /// # Errors
    /// The error of a corrupt batch. [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if the bytes do
    /// not end with a complete batch, for a batch over [`LogWriterOptions::segment_bytes`] or [`Limits::batch_len`],
    /// and for offsets that do not increase. I/O errors.
    pub fn append_batches(&mut self, bytes: &[u8], offsets: OffsetPolicy) -> Result<i64> {
        self.check_usable()?;
        self.write_pending()?;
        let mut stamped = std::mem::take(&mut self.buffer);
        stamped.clear();
        stamped.extend_from_slice(bytes);
        let result = self.check_batches(&mut stamped, offsets).and_then(|first| self.write(&stamped).map(|()| first));
        self.buffer = stamped;
        result
    }

    /// Checks batches and assigns their offsets. Returns the first offset of the first batch.
    fn check_batches(&self, bytes: &mut [u8], offsets: OffsetPolicy) -> Result<i64> {
        let limits = &self.options.limits;
        let mut scratch = Scratch::new();
        let (mut rest, mut position, mut end_offset) = (bytes, 0_u64, self.end_offset);
        let mut first_offset = None;
        while !rest.is_empty() {
            let batch = batches(rest).next().unwrap_or_else(|| Err(not_whole())).map_err(|error| error.at(position))?;
            let (size, magic) = (batch.size(), batch.magic());
            check_batch(&batch, offsets, &mut scratch, limits).map_err(|error| error.at(position))?;
            self.options.check_batch_len(size)?;
            let (head, tail) = rest.split_at_mut_checked(size).ok_or_else(not_whole)?;
            if offsets == OffsetPolicy::Assign {
                set_base_offset(head, end_offset)?;
                if magic == 2 {
                    set_partition_leader_epoch(head, self.next_epoch())?;
                }
            }
            let batch = batches(head).next().unwrap_or_else(|| Err(not_whole()))?;
            let base_offset = batch.first_offset(&mut scratch, limits)?;
            if base_offset < end_offset || batch.next_offset() <= base_offset {
                let message =
                    format!("offset {base_offset} does not continue the log, which ends at offset {end_offset}");
                return Err(Error::argument(message).at(position));
            }
            check_has_next(batch.last_offset()).map_err(|error| error.at(position))?;
            if batch.last_offset().saturating_sub(base_offset) > i64::from(i32::MAX) {
                let message = format!("offsets {base_offset} to {} do not fit in one segment", batch.last_offset());
                return Err(Error::argument(message).at(position));
            }
            first_offset.get_or_insert(base_offset);
            end_offset = batch.next_offset();
            position = position.saturating_add(u64_of(size));
            rest = tail;
        }
        Ok(first_offset.unwrap_or(end_offset))
    }

    /// The leader epoch of the next batch: no lower than that of a batch before, which may have kept its own.
    fn next_epoch(&self) -> i32 {
        self.state.latest_epoch().map_or(self.leader_epoch, |latest| latest.max(self.leader_epoch))
    }

    /// Writes the pending records as a batch.
    fn write_pending(&mut self) -> Result<()> {
        if self.pending.record_count() == 0 {
            return Ok(());
        }
        let builder = std::mem::take(&mut self.pending);
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.clear();
        // their offsets were already returned, so no more appends are possible if writing them fails
        self.failed = true;
        builder.finish_into(&mut bytes)?;
        self.write(&bytes)?;
        self.buffer = bytes;
        Ok(())
    }

    /// Writes batches that have been checked.
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.failed = true;
        for batch in batches(bytes) {
            let batch = batch?;
            self.roll_before(&batch)?;
            let aborted = self.state.note(&batch)?;
            self.segment.append(&batch, aborted)?;
            self.end_offset = batch.next_offset();
            if self.options.sync == SyncPolicy::Always {
                self.segment.sync_log()?;
            }
        }
        self.failed = false;
        Ok(())
    }

    /// Starts a new segment if Kafka's rules require it.
    fn roll_before(&mut self, batch: &Batch<'_>) -> Result<()> {
        if !self.segment.should_roll(batch, &self.options) {
            return Ok(());
        }
        let first_offset = batch.first_offset(&mut Scratch::new(), &self.options.limits)?;
        let base_offset = first_offset.max(self.end_offset);
        if self.segment.is_empty() && base_offset == self.segment.base_offset() {
            return Ok(());
        }
        self.segment.finish()?;
        self.state.write_snapshot(base_offset)?;
        self.state.write_epochs()?;
        self.segment = ActiveSegment::create(&self.directory, base_offset, &self.options)?;
        sync_directory(&self.directory).map_err(|error| Error::from(error).with_path(&self.directory))
    }

    /// Writes all appended data and flushes it to disk. Data that was appended before this call can no longer be lost.
    ///
    /// # Errors
    /// I/O errors. Appending is not possible after an error.
    pub fn flush(&mut self) -> Result<()> {
        self.check_usable()?;
        self.write_pending()?;
        self.failed = true;
        self.segment.sync_log()?;
        self.segment.write_indexes()?;
        self.state.write_epochs()?;
        self.failed = false;
        Ok(())
    }

    /// Flushes, and leaves the files as a broker does on a clean shutdown: with the last entry of the time index and a
    /// snapshot of the producers.
    ///
    /// # Errors
    /// The errors of [`LogWriter::flush`].
    pub fn close(mut self) -> Result<()> {
        self.flush()?;
        self.segment.finish()?;
        self.state.write_snapshot(self.end_offset)?;
        self.state.write_epochs()
    }

    /// Number of appended records that are not in a file yet, and are lost if the writer is dropped.
    #[must_use]
    pub fn pending_records(&self) -> u32 {
        self.pending.record_count()
    }

    fn check_usable(&self) -> Result<()> {
        if !self.lock.is_own() {
            return Err(of_parent(&self.directory));
        }
        if self.failed {
            let message = "an earlier write failed: open the directory again, which removes an incomplete batch";
            return Err(Error::argument(message).with_path(&self.directory));
        }
        Ok(())
    }
}

/// The error for a writer that this process has from the one that forked it.
pub(crate) fn of_parent(directory: &Path) -> Error {
    let message = "the LogWriter was opened by the parent of this process: open the directory after forking";
    Error::argument(message).with_path(directory)
}

fn not_whole() -> Error {
    Error::argument("the bytes do not end with a complete batch")
}

/// The leader epoch for new batches.
fn leader_epoch(state: &PartitionState, options: &LogWriterOptions) -> Result<i32> {
    let latest = state.latest_epoch();
    match (options.leader_epoch, latest) {
        (Some(given), Some(latest)) if given < latest => {
            Err(Error::argument(format!("leader_epoch {given} is below {latest}, the latest epoch of the partition")))
        }
        (given, latest) => Ok(given.or(latest).unwrap_or(0)),
    }
}

/// Performs the checks of a leader or a follower.
fn check_batch(batch: &Batch<'_>, offsets: OffsetPolicy, scratch: &mut Scratch, limits: &Limits) -> Result<()> {
    batch.verify_crc()?;
    if batch.is_control() {
        check_control(batch, scratch, limits)?;
    }
    if offsets == OffsetPolicy::Keep {
        return Ok(());
    }
    let base_offset = batch.header().stored_base_offset;
    let mut next_offset = base_offset;
    for record in batch.records(scratch, limits)? {
        let record = record?;
        record.verify_crc()?;
        if batch.magic() == 2 && record.offset() != next_offset {
            let message = format!("record offset {} is not the expected {next_offset}", record.offset());
            return Err(Error::argument(message).in_batch(base_offset));
        }
        next_offset = next_offset.saturating_add(1);
    }
    if batch.magic() == 2 && (next_offset == base_offset || next_offset != batch.next_offset()) {
        let message = format!(
            "the batch's last offset is {}, but its records end before offset {next_offset}",
            batch.last_offset()
        );
        return Err(Error::argument(message).in_batch(base_offset));
    }
    Ok(())
}

/// Refuses the largest offset, because a log's end is the offset after its last record.
fn check_has_next(offset: i64) -> Result<()> {
    if offset == i64::MAX {
        return Err(Error::argument("there is no offset after this one").in_batch(offset));
    }
    Ok(())
}

/// Checks that a producer's control batch starts with a transaction marker, if it has records.
fn check_control(batch: &Batch<'_>, scratch: &mut Scratch, limits: &Limits) -> Result<()> {
    let Some(record) = batch.records(scratch, limits)?.next() else { return Ok(()) };
    match ControlRecord::parse(&record?)? {
        ControlRecord::Abort { .. } | ControlRecord::Commit { .. } => Ok(()),
        _ if batch.producer_id() == NO_PRODUCER_ID => Ok(()),
        other => {
            let message =
                format!("a producer's control batch contains {} instead of a transaction marker", other.type_name());
            Err(Error::argument(message).in_batch(batch.header().stored_base_offset))
        }
    }
}
