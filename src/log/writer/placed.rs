//! [`RecordWriter`]: records that already have their offsets and timestamps, such as those of an export.

use std::path::Path;

use crate::error::{Error, Result};
use crate::format::attributes::TimestampType;
use crate::format::builder::BatchBuilder;
use crate::format::header::NO_PARTITION_LEADER_EPOCH;
use crate::format::record::NewHeader;
use crate::format::size::{message_len, record_len};
use crate::log::writer::{LogWriter, LogWriterOptions, OffsetPolicy};

/// A record to write, with its own offset and timestamp.
#[derive(Debug, Clone, Copy)]
pub struct PlacedRecord<'a> {
    /// An offset above that of the record before; `None` for the next one.
    pub offset: Option<i64>,
    /// Milliseconds since the epoch, −1 for none.
    pub timestamp: i64,
    /// The type of the timestamp; `None` for a record of message format 0, which does not have one.
    pub timestamp_type: Option<TimestampType>,
    /// The key.
    pub key: Option<&'a [u8]>,
    /// The value.
    pub value: Option<&'a [u8]>,
    /// The headers.
    pub headers: &'a [NewHeader<'a>],
}

impl PlacedRecord<'_> {
    /// What all records of a batch share: the type of the timestamps, and the time of an append.
    fn kind(&self) -> (Option<TimestampType>, Option<i64>) {
        let is_appended = self.timestamp_type == Some(TimestampType::LogAppendTime);
        (self.timestamp_type, is_appended.then_some(self.timestamp))
    }

    /// The most bytes that it takes in a batch.
    fn max_len(&self) -> usize {
        match self.timestamp_type {
            None => message_len(0, self.key, self.value),
            Some(_) => record_len(i32::MAX, i64::MAX, self.key, self.value, self.headers),
        }
    }
}

/// Writes a partition whose records keep their offsets and timestamps.
///
/// Records with consecutive offsets and `CreateTime` become the batches that a [`LogWriter`] makes of them, so that a
/// log written by one is the same again. Others are in batches with gaps, with the time of an append, or of message
/// format 0.
///
/// ```no_run
/// # fn main() -> kbat::Result<()> {
/// use kbat::log::{LogWriterOptions, PlacedRecord, RecordWriter};
/// let mut writer = RecordWriter::open("orders-0", LogWriterOptions { start_offset: 7, ..Default::default() })?;
/// writer.append(&PlacedRecord {
///     offset: Some(9),
///     timestamp: 1_700_000_000_000,
///     timestamp_type: Some(kbat::TimestampType::CreateTime),
///     key: None,
///     value: Some(b"value"),
///     headers: &[],
/// })?;
/// writer.close()?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct RecordWriter {
    writer: LogWriter,
    /// The batch under construction, unless its records are in the writer.
    batch: Option<PlacedBatch>,
    end_offset: i64,
}

#[derive(Debug)]
struct PlacedBatch {
    builder: BatchBuilder,
    kind: (Option<TimestampType>, Option<i64>),
    base_offset: i64,
}

impl RecordWriter {
    /// Opens a partition directory, or creates one, as [`LogWriter::open`] does.
    ///
    /// # Errors
    /// The errors of [`LogWriter::open`].
    pub fn open(directory: impl AsRef<Path>, options: LogWriterOptions) -> Result<Self> {
        let writer = LogWriter::open(directory, options)?;
        let end_offset = writer.end_offset();
        Ok(Self { writer, batch: None, end_offset })
    }

    /// The offset after the last record.
    #[must_use]
    pub fn end_offset(&self) -> i64 {
        self.end_offset
    }

    /// Appends a record. Returns its offset.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for an offset that is not above the last one,
    /// and for a record that Kafka's rules forbid, in which case it is not appended; I/O errors while writing a full
    /// batch.
    pub fn append(&mut self, record: &PlacedRecord<'_>) -> Result<i64> {
        let offset = record.offset.unwrap_or(self.end_offset);
        if offset < self.end_offset {
            let last = self.end_offset.saturating_sub(1);
            return Err(Error::argument(format!("offset {offset} is not above the one before it, {last}")));
        }
        if self.batch.as_ref().is_some_and(|batch| !self.fits(batch, record, offset)) {
            self.write_batch()?;
        }
        let is_next = offset == self.end_offset && record.timestamp_type == Some(TimestampType::CreateTime);
        if self.batch.is_none() && is_next {
            self.writer.append(record.timestamp, record.key, record.value, record.headers)?;
        } else {
            let mut batch = self.batch.take().unwrap_or_else(|| self.new_batch(record, offset));
            let PlacedRecord { timestamp, key, value, headers, .. } = *record;
            let appended = batch.builder.append_at(offset, timestamp, key, value, headers);
            if batch.builder.record_count() > 0 {
                self.batch = Some(batch);
            }
            appended?;
        }
        self.end_offset = offset.saturating_add(1);
        Ok(offset)
    }

    /// Appends complete batches, which keep their offsets.
    ///
    /// # Errors
    /// The errors of [`LogWriter::append_batches`].
    pub fn append_batches(&mut self, bytes: &[u8]) -> Result<()> {
        self.write_batch()?;
        self.writer.append_batches(bytes, OffsetPolicy::Keep)?;
        self.end_offset = self.writer.end_offset();
        Ok(())
    }

    /// Writes everything, and closes the files as [`LogWriter::close`] does.
    ///
    /// # Errors
    /// The errors of [`LogWriter::close`], and those of a batch that was not written yet.
    pub fn close(mut self) -> Result<()> {
        self.write_batch()?;
        self.writer.close()
    }

    fn write_batch(&mut self) -> Result<()> {
        let Some(batch) = self.batch.take() else { return Ok(()) };
        let mut bytes = Vec::new();
        batch.builder.finish_into(&mut bytes)?;
        self.writer.append_batches(&bytes, OffsetPolicy::Keep).map(drop)
    }

    /// Whether a record belongs to the batch under construction.
    fn fits(&self, batch: &PlacedBatch, record: &PlacedRecord<'_>, offset: i64) -> bool {
        batch.kind == record.kind()
            && offset.saturating_sub(batch.base_offset) <= i64::from(i32::MAX)
            && batch.builder.size().saturating_add(record.max_len()) <= self.writer.options.batch_size
    }

    fn new_batch(&self, record: &PlacedRecord<'_>, offset: i64) -> PlacedBatch {
        let builder = self.writer.options.batch_builder(self.writer.leader_epoch).base_offset(offset);
        let builder = match record.timestamp_type {
            None => builder.magic(0).partition_leader_epoch(NO_PARTITION_LEADER_EPOCH),
            Some(TimestampType::CreateTime) => builder,
            Some(TimestampType::LogAppendTime) => builder.log_append_time(record.timestamp),
        };
        PlacedBatch { builder, kind: record.kind(), base_offset: offset }
    }
}
