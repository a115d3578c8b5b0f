//! [`RecordWriter`]: records that already have their offsets and timestamps, such as those of an export.

use std::path::Path;

use crate::error::{Error, Result};
use crate::format::attributes::TimestampType;
use crate::format::builder::{BatchBuilder, BatchFields};
use crate::format::header::NO_PARTITION_LEADER_EPOCH;
use crate::format::record::NewHeader;
use crate::format::size::{message_len, record_len};
use crate::log::writer::{LogWriter, LogWriterOptions, OffsetPolicy};
use crate::plural::count_of;

/// A record to write, with its own offset and timestamp.
#[derive(Debug, Clone, Copy)]
pub struct PlacedRecord<'a> {
    /// An offset above that of the record before; `None` for the next one.
    pub offset: Option<i64>,
    /// Milliseconds since the epoch, −1 for none.
    pub timestamp: i64,
    /// The type of the timestamp; `None` for a record of message format 0, which does not have one.
    pub timestamp_type: Option<TimestampType>,
    /// The producer's timestamp, which a batch stores below the time of an append; `None` if it is unknown. Ignored for
    /// other timestamp types.
    pub create_time: Option<i64>,
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

    /// The timestamp that a batch of magic 2 stores for the record.
    fn stored_timestamp(&self) -> i64 {
        match (self.timestamp_type, self.create_time) {
            (Some(TimestampType::LogAppendTime), Some(created)) => created,
            _ => self.timestamp,
        }
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
/// format 0. After [`RecordWriter::begin_batch`], records are in a batch whose other fields are known.
///
/// ```no_run
/// # fn main() -> kbat::Result<()> {
/// use kbat::log::{LogWriterOptions, PlacedRecord, RecordWriter};
/// let mut writer = RecordWriter::open("orders-0", LogWriterOptions { start_offset: 7, ..Default::default() })?;
/// writer.append(&PlacedRecord {
///     offset: Some(9),
///     timestamp: 1_700_000_000_000,
///     timestamp_type: Some(kbat::TimestampType::CreateTime),
///     create_time: None,
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
    /// Why a batch could not be written. Its records were accepted before, so nothing can follow.
    refusal: Option<String>,
}

#[derive(Debug)]
struct PlacedBatch {
    builder: BatchBuilder,
    kind: (Option<TimestampType>, Option<i64>),
    base_offset: i64,
    /// The last offset of a batch whose fields are known, which it has without that record too.
    last_offset: Option<i64>,
    /// The number of records that it must have, if it is known.
    record_count: Option<u32>,
}

impl RecordWriter {
    /// Opens a partition directory, or creates one, as [`LogWriter::open`] does.
    ///
    /// # Errors
    /// The errors of [`LogWriter::open`].
    pub fn open(directory: impl AsRef<Path>, options: LogWriterOptions) -> Result<Self> {
        let writer = LogWriter::open(directory, options)?;
        let end_offset = writer.end_offset();
        Ok(Self { writer, batch: None, end_offset, refusal: None })
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
    /// for a record that Kafka's rules forbid, and for one more than the batch must have, in which case it is not
    /// appended; the same for a full batch with fewer records than it must have; I/O errors while writing a full batch.
    pub fn append(&mut self, record: &PlacedRecord<'_>) -> Result<i64> {
        self.check_usable()?;
        let offset = record.offset.unwrap_or(self.end_offset);
        if offset < self.end_offset {
            let last = self.end_offset.saturating_sub(1);
            return Err(Error::argument(format!("offset {offset} is not above the one before it, {last}")));
        }
        let is_full = match &self.batch {
            Some(batch) => !self.fits(batch, record, offset)?,
            None => false,
        };
        if is_full {
            self.write_batch()?;
        }
        let is_next = offset == self.end_offset && record.timestamp_type == Some(TimestampType::CreateTime);
        if self.batch.is_none() && is_next {
            self.writer.append(record.timestamp, record.key, record.value, record.headers)?;
        } else {
            let mut batch = self.batch.take().unwrap_or_else(|| self.new_batch(record, offset));
            let PlacedRecord { key, value, headers, .. } = *record;
            let appended = batch.builder.append_at(offset, record.stored_timestamp(), key, value, headers);
            if batch.builder.record_count() > 0 || batch.last_offset.is_some() {
                self.batch = Some(batch);
            }
            appended?;
        }
        self.end_offset = offset.saturating_add(1);
        Ok(offset)
    }

    /// Begins a batch with these fields. It has the next records up to its last offset, however large it becomes.
    ///
    /// With the records that it had before, and without compression, it is the same byte for byte. A batch of magic 2
    /// without any record is written as compaction leaves it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for offsets that are not above those before,
    /// for fields that Kafka's rules forbid, and if the batch before can't be written; I/O errors.
    pub fn begin_batch(&mut self, fields: &BatchFields) -> Result<()> {
        self.check_usable()?;
        let last_offset = self.batch.as_ref().and_then(|batch| batch.last_offset);
        let end_offset = last_offset.map_or(self.end_offset, |last| self.end_offset.max(last.saturating_add(1)));
        fields.check_offsets(end_offset)?;
        let builder = BatchBuilder::with_fields(fields)?;
        self.write_batch()?;
        self.end_offset = fields.base_offset;
        self.batch = Some(PlacedBatch {
            builder,
            kind: fields.timestamps(),
            base_offset: fields.base_offset,
            last_offset: Some(fields.last_offset),
            record_count: fields.record_count,
        });
        Ok(())
    }

    /// Appends complete batches, which keep their offsets.
    ///
    /// # Errors
    /// The errors of [`LogWriter::append_batches`].
    pub fn append_batches(&mut self, bytes: &[u8]) -> Result<()> {
        self.check_usable()?;
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
        self.check_usable()?;
        self.write_batch()?;
        self.writer.close()
    }

    fn write_batch(&mut self) -> Result<()> {
        let Some(batch) = self.batch.take() else { return Ok(()) };
        let finished = batch.check_record_count().and_then(|()| batch.finish());
        let written = finished.and_then(|bytes| self.writer.append_batches(&bytes, OffsetPolicy::Keep));
        match &written {
            Ok(_) => self.end_offset = self.writer.end_offset(),
            Err(error) => self.refusal = Some(error.to_string()),
        }
        written.map(drop)
    }

    fn check_usable(&self) -> Result<()> {
        self.refusal.as_ref().map_or(Ok(()), |message| Err(Error::argument(message.clone())))
    }

    /// Whether a record belongs to the batch under construction.
    fn fits(&self, batch: &PlacedBatch, record: &PlacedRecord<'_>, offset: i64) -> Result<bool> {
        let is_alike = batch.kind == record.kind();
        if let Some(last_offset) = batch.last_offset {
            if offset <= last_offset && !is_alike {
                let message = format!("the timestamp of offset {offset} or its type differs from that of its batch");
                return Err(Error::argument(message));
            }
            let most =
                batch.record_count.filter(|count| offset <= last_offset && batch.builder.record_count() >= *count);
            if let Some(most) = most {
                let message = format!("offset {offset} is in a batch that has the record_count {most} without it");
                return Err(Error::argument(message));
            }
            return Ok(offset <= last_offset);
        }
        Ok(is_alike
            && offset.saturating_sub(batch.base_offset) <= i64::from(i32::MAX)
            && batch.builder.size().saturating_add(record.max_len()) <= self.writer.options.batch_size)
    }

    fn new_batch(&self, record: &PlacedRecord<'_>, offset: i64) -> PlacedBatch {
        let builder = self.writer.options.batch_builder(self.writer.next_epoch()).base_offset(offset);
        let builder = match record.timestamp_type {
            None => builder.magic(0).partition_leader_epoch(NO_PARTITION_LEADER_EPOCH),
            Some(TimestampType::CreateTime) => builder,
            Some(TimestampType::LogAppendTime) => builder.log_append_time(record.timestamp),
        };
        PlacedBatch { builder, kind: record.kind(), base_offset: offset, last_offset: None, record_count: None }
    }
}

impl PlacedBatch {
    /// Refuses a batch that has fewer records than it must have, as the lines of an incomplete copy do.
    fn check_record_count(&self) -> Result<()> {
        let (found, expected) = (self.builder.record_count(), self.record_count);
        match expected {
            Some(expected) if found < expected => Err(Error::argument(format!(
                "the batch with the base offset {} ends after {}, but its record_count is {expected}: the input is \
                 incomplete; if records were removed on purpose, remove record_count too",
                self.base_offset,
                count_of(found.into(), "record"),
            ))),
            _ => Ok(()),
        }
    }

    /// The bytes of the batch; none if it has no records and its message format has no empty batches.
    fn finish(self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        match self.last_offset {
            Some(last_offset) if self.builder.record_count() == 0 => {
                self.builder.finish_without_records_into(last_offset, &mut bytes)?;
            }
            _ => self.builder.finish_into(&mut bytes)?,
        }
        Ok(bytes)
    }
}
