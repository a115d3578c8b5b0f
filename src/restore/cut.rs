//! [`CutBounds`]: where a restored log ends.

use crate::compression::Scratch;
use crate::error::Result;
use crate::format::batch::Batch;
use crate::format::builder::BatchBuilder;
use crate::format::record::NewHeader;
use crate::format::retain::append_record;
use crate::limits::Limits;
use crate::restore::{RestoreCut, RestoreOptions};
use crate::store::TopicPartition;

/// Bounds of a partition.
#[derive(Debug, Clone, Copy)]
pub(super) struct CutBounds {
    /// The first offset that is not restored.
    pub(super) offset: Option<i64>,
    /// Records from the first one on with this timestamp or a later one are not restored.
    pub(super) timestamp: Option<i64>,
    /// The start of the log. Earlier records are deleted, and do not end the log.
    start_offset: i64,
}

impl CutBounds {
    /// The bounds of a partition that starts at an offset. It never ends before that.
    pub(super) fn of(options: &RestoreOptions, partition: &TopicPartition, start_offset: i64) -> Self {
        Self {
            offset: options.until_offset_of(partition).map(|offset| offset.max(start_offset)),
            timestamp: options.until_timestamp,
            start_offset,
        }
    }

    /// The start of the log.
    pub(super) fn start_offset(&self) -> i64 {
        self.start_offset
    }

    /// The end of the log, if it is before a segment or at its start.
    pub(super) fn excludes(&self, base_offset: i64) -> Option<RestoreCut> {
        let offset = self.offset.filter(|offset| base_offset >= *offset)?;
        Some(RestoreCut { offset, timestamp: None })
    }

    /// Finds the end of the log in the next batch.
    ///
    /// # Errors
    /// The errors of [`Batch::records`].
    pub(super) fn find(&self, batch: &Batch<'_>, scratch: &mut Scratch, limits: &Limits) -> Result<Option<RestoreCut>> {
        let by_offset = self.offset.filter(|offset| batch.last_offset() >= *offset);
        let by_offset = by_offset.map(|offset| RestoreCut { offset, timestamp: None });
        let by_time = self.first_since(batch, scratch, limits)?;
        Ok(match (by_offset, by_time) {
            (Some(offset), Some(time)) if time.offset >= offset.offset => Some(offset),
            (offset, None) => offset,
            (_, time) => time,
        })
    }

    /// Finds the first record of a batch that is too new.
    fn first_since(&self, batch: &Batch<'_>, scratch: &mut Scratch, limits: &Limits) -> Result<Option<RestoreCut>> {
        let Some(timestamp) = self.timestamp else { return Ok(None) };
        // clients wrote the timestamp of a compressed set of magic 1, so only its records count
        if batch.magic() == 0 || (!batch.is_legacy_wrapper() && batch.max_timestamp() < timestamp) {
            return Ok(None);
        }
        for record in batch.records(scratch, limits)? {
            let record = record?;
            if record.timestamp() >= timestamp && record.offset() >= self.start_offset {
                return Ok(Some(RestoreCut { offset: record.offset(), timestamp: Some(record.timestamp()) }));
            }
        }
        Ok(None)
    }
}

/// Appends the part of a batch before an offset to `out`, in the same format and codec. Appends nothing if no record is
/// before it.
///
/// # Errors
/// The errors of [`Batch::records`], and records that cannot be written, such as one with a negative timestamp.
pub(super) fn head(
    batch: &Batch<'_>,
    end_offset: i64,
    scratch: &mut Scratch,
    limits: &Limits,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut builder: Option<BatchBuilder> = None;
    let mut headers: Vec<NewHeader<'_>> = Vec::new();
    let compression = batch.compression()?;
    for record in batch.records(scratch, limits)? {
        let record = record?;
        if record.offset() >= end_offset {
            break;
        }
        let builder = builder.get_or_insert_with(|| {
            let base_offset = if batch.magic() < 2 { record.offset() } else { batch.header().base_offset };
            let builder = BatchBuilder::like(batch, batch.magic(), compression, base_offset);
            if batch.magic() < 2 { builder } else { builder.last_offset(end_offset.saturating_sub(1)) }
        });
        append_record(builder, &record, &mut headers)?;
    }
    builder.map_or(Ok(()), |builder| builder.finish_into(out))
}
