//! [`LogWriter`]: batches and records into a partition directory, with the files that a broker writes beside them.
//!
//! ```text
//! append (records) ─► a batch when it is full ─┐
//! append_batches ─► checked, offsets assigned ─┴─► roll? ─► .log ─► index entries in memory
//! flush            .log to the disk, then index entries and leader epochs
//! roll and close   the same, the last time entry, a producer snapshot; then the next segment's files, its .log last
//! ```
//!
//! What was flushed survives a kill or a loss of power at any point: a segment is whole before the next one exists, and
//! opening looks at the last one batch by batch, cuts what is not whole and makes its indexes anew.
//!
//! Source: `UnifiedLog.append`, `LocalLog.roll`, `LogSegment.append` and `shouldRoll` of Kafka 4.

mod active;
mod open;
mod options;
mod state;

use std::path::{Path, PathBuf};

pub use options::{LogWriterOptions, SyncPolicy};

use self::active::ActiveSegment;
use self::state::PartitionState;
use crate::compression::Scratch;
use crate::error::{Error, Result};
use crate::format::batch::Batch;
use crate::format::builder::BatchBuilder;
use crate::format::control::ControlRecord;
use crate::format::edit::{set_base_offset, set_partition_leader_epoch};
use crate::format::frame::batches;
use crate::format::header::NO_PRODUCER_ID;
use crate::format::size::{NewHeader, batch_len_bound, record_len};
use crate::io::atomic::sync_directory;
use crate::io::lock::DirectoryLock;
use crate::limits::Limits;
use crate::num::{u64_of, usize_from_u64};

/// Where the offsets of appended batches come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OffsetPolicy {
    /// From the end of the log, as a leader assigns them; the leader epoch is that of the options.
    #[default]
    Assign,
    /// From the batches, as a follower takes them; they must not lie before the end of the log. Leader epochs are kept too.
    Keep,
}

/// Writes a partition.
///
/// Dropping it without [`LogWriter::close`] is as a kill: what was not flushed may be lost, and records that are not yet a
/// batch are.
///
/// ```no_run
/// # fn main() -> kbat::Result<()> {
/// let options = kbat::log::LogWriterOptions { compression: kbat::Compression::Zstd, ..Default::default() };
/// let mut writer = kbat::log::LogWriter::open("orders-0", options)?;
/// let offset = writer.append(1_700_000_000_000, Some(b"key"), Some(b"value"), &[])?;
/// writer.flush()?; // offset is there to stay
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
    /// Records that are not yet a batch.
    pending: BatchBuilder,
    buffer: Vec<u8>,
    truncated_bytes: u64,
    /// A write failed: what the files hold is not known.
    failed: bool,
    lock: DirectoryLock,
}

impl LogWriter {
    /// Opens a partition directory, or makes one. The last segment of an existing one is looked at batch by batch: what
    /// follows the last whole batch is cut, as a broker does on an unclean start, and its indexes are made anew.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument): options that Kafka's rules forbid, another writer or
    /// a broker in the directory, another topic id, a last segment whose offsets do not rise. A leader epoch checkpoint that
    /// can't be read; a batch over [`Limits::batch_len`]; reading and writing.
    pub fn open(directory: impl AsRef<Path>, options: LogWriterOptions) -> Result<Self> {
        let directory = directory.as_ref();
        options.validate()?;
        open::create_directory(directory)?;
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

    /// The directory.
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

    /// Up to where transactions are decided: first offset of the earliest open one, else the end of the batches written.
    #[must_use]
    pub fn last_stable_offset(&self) -> i64 {
        self.state.last_stable_offset(self.end_offset)
    }

    /// Bytes that were cut from the last segment when it was opened.
    #[must_use]
    pub fn truncated_bytes(&self) -> u64 {
        self.truncated_bytes
    }

    /// Appends a record, which is written with others as a batch of [`LogWriterOptions::batch_size`] or by
    /// [`LogWriter::flush`]. Returns its offset. `timestamp` is in milliseconds since the epoch, −1 for none.
    ///
    /// # Errors
    /// What Kafka's rules forbid, with nothing appended; writing a batch that is full.
    pub fn append(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[NewHeader<'_>],
    ) -> Result<i64> {
        self.check_usable()?;
        let len = record_len(i32::MAX, i64::MAX, key, value, headers);
        self.options.check_batch_len(batch_len_bound(2, self.options.compression, len))?;
        let fills = |size: usize, bound: usize| size.saturating_add(len) > bound;
        let segment_bytes = usize_from_u64(self.options.segment_bytes);
        if self.pending.record_count() > 0
            && (fills(self.pending.size(), self.options.batch_size)
                || fills(self.pending.estimated_size(), segment_bytes))
        {
            self.write_pending()?;
        }
        if self.pending.record_count() == 0 {
            self.pending = self.options.batch_builder(self.leader_epoch).base_offset(self.end_offset);
        }
        let offset = self.end_offset();
        check_has_next(offset)?;
        self.pending.append_with_headers(timestamp, key, value, headers)?;
        Ok(offset)
    }

    /// Appends whole batches, all or none where one is refused. Returns the first offset of the first.
    ///
    /// A leader's checks are made where offsets are assigned: checksum, records that can be read, as many as the header
    /// says with offsets that count up; with [`OffsetPolicy::Keep`] those of a follower: checksum, and offsets that rise.
    ///
    /// # Errors
    /// The fault of a batch; [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for bytes that are not whole
    /// batches, a batch over [`LogWriterOptions::segment_bytes`], offsets that do not rise; writing.
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

    /// Checks batches, and gives them their offsets. Returns the first one's first.
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
                    set_partition_leader_epoch(head, self.leader_epoch)?;
                }
            }
            let batch = batches(head).next().unwrap_or_else(|| Err(not_whole()))?;
            let base_offset = batch.first_offset(&mut scratch, limits)?;
            if base_offset < end_offset || batch.next_offset() <= base_offset {
                let message = format!("offset {base_offset} does not come after the log's end, {end_offset}");
                return Err(Error::argument(message).at(position));
            }
            check_has_next(batch.last_offset()).map_err(|error| error.at(position))?;
            first_offset.get_or_insert(base_offset);
            end_offset = batch.next_offset();
            position = position.saturating_add(u64_of(size));
            rest = tail;
        }
        Ok(first_offset.unwrap_or(end_offset))
    }

    /// Makes a batch of the records that wait, and writes it.
    fn write_pending(&mut self) -> Result<()> {
        if self.pending.record_count() == 0 {
            return Ok(());
        }
        let builder = std::mem::take(&mut self.pending);
        let mut bytes = std::mem::take(&mut self.buffer);
        bytes.clear();
        // their offsets were told: nothing may follow if they can't be written
        self.failed = true;
        builder.finish_into(&mut bytes)?;
        self.write(&bytes)?;
        self.buffer = bytes;
        Ok(())
    }

    /// Writes batches that were checked.
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

    /// Begins a new segment where Kafka's rules say so.
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

    /// Writes everything appended and flushes it to the disk. What was appended before can't be lost after it.
    ///
    /// # Errors
    /// Those of writing. Nothing can be appended after one.
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

    /// Flushes, and leaves the files as a broker leaves them after a clean shutdown: with the last entry of the time index
    /// and a snapshot of the producers.
    ///
    /// # Errors
    /// Those of [`LogWriter::flush`].
    pub fn close(mut self) -> Result<()> {
        self.flush()?;
        self.segment.finish()?;
        self.state.write_snapshot(self.end_offset)?;
        self.state.write_epochs()
    }

    fn check_usable(&self) -> Result<()> {
        if !self.lock.is_own() {
            let message = "the LogWriter was opened by the parent of this process: open the directory after forking";
            return Err(Error::argument(message).with_path(&self.directory));
        }
        if self.failed {
            let message = "a write failed before: open the directory again, which cuts what is not whole";
            return Err(Error::argument(message).with_path(&self.directory));
        }
        Ok(())
    }
}

fn not_whole() -> Error {
    Error::argument("the bytes do not end with a whole batch")
}

/// The leader epoch that batches get.
fn leader_epoch(state: &PartitionState, options: &LogWriterOptions) -> Result<i32> {
    let latest = state.latest_epoch();
    match (options.leader_epoch, latest) {
        (Some(given), Some(latest)) if given < latest => {
            Err(Error::argument(format!("leader_epoch {given} is below {latest}, the partition's latest")))
        }
        (given, latest) => Ok(given.or(latest).unwrap_or(0)),
    }
}

/// The checks of a leader or a follower.
fn check_batch(batch: &Batch<'_>, offsets: OffsetPolicy, scratch: &mut Scratch, limits: &Limits) -> Result<()> {
    batch.verify_crc()?;
    if batch.is_control() {
        check_control(batch, scratch, limits)?;
    }
    if offsets == OffsetPolicy::Keep {
        return Ok(());
    }
    let base_offset = batch.header().base_offset;
    let mut next_offset = base_offset;
    for record in batch.records(scratch, limits)? {
        let record = record?;
        record.verify_crc()?;
        if batch.magic() == 2 && record.offset() != next_offset {
            let message = format!("record offset {} where {next_offset} comes next", record.offset());
            return Err(Error::argument(message).in_batch(base_offset));
        }
        next_offset = next_offset.saturating_add(1);
    }
    if batch.magic() == 2 && (next_offset == base_offset || next_offset != batch.next_offset()) {
        let message = format!("last offset {} of a batch whose records end before {next_offset}", batch.last_offset());
        return Err(Error::argument(message).in_batch(base_offset));
    }
    Ok(())
}

/// A log's end is the offset after its last record, and the largest number has none.
fn check_has_next(offset: i64) -> Result<()> {
    if offset == i64::MAX {
        return Err(Error::argument("there is no offset after this one").in_batch(offset));
    }
    Ok(())
}

/// A control batch of a producer must begin with a transaction marker, if it has records.
fn check_control(batch: &Batch<'_>, scratch: &mut Scratch, limits: &Limits) -> Result<()> {
    let Some(record) = batch.records(scratch, limits)?.next() else { return Ok(()) };
    match ControlRecord::parse(&record?)? {
        ControlRecord::Abort { .. } | ControlRecord::Commit { .. } => Ok(()),
        _ if batch.producer_id() == NO_PRODUCER_ID => Ok(()),
        other => {
            let message = format!("a producer's control batch holds {}, no transaction marker", other.type_name());
            Err(Error::argument(message).in_batch(batch.header().base_offset))
        }
    }
}
