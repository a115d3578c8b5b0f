//! [`retain_records`]: removes records from a batch, as a broker's cleaner does.
//!
//! | records kept | result |
//! |---|---|
//! | all, and nothing else changes | the batch's bytes |
//! | some | a rebuilt batch: same codec at its default level, base and last offset, producer, leader epoch, transactional and control bits, delete horizon; log append time kept, the largest create time recomputed |
//! | none | nothing, or the 61 bytes of its header if its last offset and sequence are still needed |
//!
//! Offset deltas are kept, so that every record keeps its offset and its sequence. A delete horizon is stored instead
//! of the base timestamp, and all timestamps become deltas to it.
//!
//! Follows `MemoryRecords.filterTo` of Kafka. As in Kafka, each uncompressed message of magic 0 and 1 is a batch.

use crate::compression::{Payload, Scratch};
use crate::error::Result;
use crate::format::attributes::TimestampType;
use crate::format::batch::Batch;
use crate::format::builder::BatchBuilder;
use crate::format::record::NewHeader;
use crate::format::record::Record;
use crate::format::records::Records;
use crate::limits::Limits;

/// What to do with a batch that keeps no records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BatchRetention {
    /// Drops the batch without reading its records.
    Delete,
    /// Drops a batch without records.
    DeleteEmpty,
    /// Keeps the header of a batch without records, for its offsets and its last sequence.
    RetainEmpty,
}

/// Options of [`retain_records`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetainOptions {
    /// What to do with a batch that keeps no records.
    pub retention: BatchRetention,
    /// The delete horizon for a batch that keeps a tombstone and does not have a horizon, milliseconds since the epoch;
    /// `None` sets no horizon.
    pub delete_horizon_ms: Option<i64>,
    /// Whether the batch gets that horizon without a tombstone too: it is the marker of a transaction that has no data
    /// left.
    pub is_marker_of_empty_transaction: bool,
    /// Whether messages of magic 0 and 1 become batches of magic 2, as in the cleaner of current Kafka versions.
    /// Otherwise they keep their magic.
    pub upgrade: bool,
}

impl Default for RetainOptions {
    /// Drops batches without records, sets no horizon, keeps old formats.
    fn default() -> Self {
        Self {
            retention: BatchRetention::DeleteEmpty,
            delete_horizon_ms: None,
            is_marker_of_empty_transaction: false,
            upgrade: false,
        }
    }
}

/// The output for a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Retained {
    /// The unchanged bytes of the batch.
    Unchanged,
    /// A batch with the kept records.
    Rebuilt,
    /// The header of the batch.
    Emptied,
    /// Nothing.
    Dropped,
}

/// The result of [`retain_records`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetainOutcome {
    /// The output for the batch.
    pub batch: Retained,
    /// Records read.
    pub records_read: u64,
    /// Records kept.
    pub records_retained: u64,
}

/// Appends `batch` to `out` without the records for which `keep` is false.
///
/// The checksum is not verified. If only the header of a batch of magic 0 or 1 must be kept, the header has magic 2.
///
/// ```
/// use kbat::{Limits, Scratch};
/// use kbat::broker::retain::{RetainOptions, retain_records};
/// # fn main() -> kbat::Result<()> {
/// let mut bytes = Vec::new();
/// let mut builder = kbat::BatchBuilder::new();
/// builder.append(1_700_000_000_000, Some(b"alice"), Some(b"1"))?;
/// builder.append(1_700_000_000_001, Some(b"bob"), Some(b"2"))?;
/// builder.finish_into(&mut bytes)?;
///
/// let (mut scratch, limits) = (Scratch::new(), Limits::default());
/// let batch = kbat::batches(&bytes).next().unwrap()?;
/// let (mut out, options) = (Vec::new(), RetainOptions::default());
/// let mut keep = |record: &kbat::Record<'_>| Ok(record.key() != Some(b"alice"));
/// retain_records(&batch, &options, &mut keep, &mut scratch, &limits, &mut out)?;
///
/// let batch = kbat::batches(&out).next().unwrap()?;
/// assert_eq!((batch.base_offset(), batch.last_offset(), batch.record_count()), (Some(0), 1, Some(1)));
/// # Ok(()) }
/// ```
///
/// # Errors
/// The errors of [`Batch::records`] and of `keep`, and records that can't be rewritten, such as one with a negative
/// timestamp other than −1. `out` is then unchanged.
pub fn retain_records(
    batch: &Batch<'_>,
    options: &RetainOptions,
    keep: &mut dyn FnMut(&Record<'_>) -> Result<bool>,
    scratch: &mut Scratch,
    limits: &Limits,
    out: &mut Vec<u8>,
) -> Result<RetainOutcome> {
    if options.retention == BatchRetention::Delete {
        return Ok(RetainOutcome { batch: Retained::Dropped, records_read: 0, records_retained: 0 });
    }
    let payload = batch.payload(scratch, limits)?;
    let bytes = payload.bytes;
    let choice = Choice::make(Records::new(batch, payload, limits)?, keep)?;
    let records = || Records::new(batch, Payload::borrowed(bytes), limits);
    let written = if let Some(first_retained) = choice.first_retained {
        let wants_horizon = choice.has_tombstone || options.is_marker_of_empty_transaction;
        let new_horizon = options.delete_horizon_ms.filter(|_| wants_horizon && batch.delete_horizon_ms().is_none());
        let magic = if options.upgrade { 2 } else { batch.magic() };
        let new_horizon = new_horizon.filter(|_| magic == 2);
        if choice.is_everything() && magic == batch.magic() && new_horizon.is_none() {
            out.extend_from_slice(batch.bytes());
            Retained::Unchanged
        } else {
            let base_offset = if batch.magic() < 2 { first_retained } else { batch.header().stored_base_offset };
            let mut builder = BatchBuilder::like(batch, magic, batch.compression()?, base_offset);
            if let Some(horizon) = new_horizon {
                builder = builder.delete_horizon_ms(horizon);
            }
            rebuild(builder, records()?, &choice, out)?;
            Retained::Rebuilt
        }
    } else {
        write_nothing(batch, options.retention, &choice, out)?
    };
    Ok(RetainOutcome { batch: written, records_read: choice.read(), records_retained: choice.retained })
}

/// The records of a batch to keep.
struct Choice {
    keep: Vec<bool>,
    retained: u64,
    has_tombstone: bool,
    first_offset: Option<i64>,
    first_retained: Option<i64>,
}

impl Choice {
    fn make(records: Records<'_>, keep: &mut dyn FnMut(&Record<'_>) -> Result<bool>) -> Result<Self> {
        let mut choice =
            Self { keep: Vec::new(), retained: 0, has_tombstone: false, first_offset: None, first_retained: None };
        for record in records {
            let record = record?;
            let kept = keep(&record)?;
            choice.keep.push(kept);
            choice.first_offset.get_or_insert(record.offset());
            if kept {
                choice.first_retained.get_or_insert(record.offset());
                choice.retained = choice.retained.saturating_add(1);
                choice.has_tombstone |= record.value().is_none();
            }
        }
        Ok(choice)
    }

    fn read(&self) -> u64 {
        crate::num::u64_of(self.keep.len())
    }

    fn is_everything(&self) -> bool {
        self.retained == self.read()
    }
}

/// Writes the output for a batch without records.
fn write_nothing(batch: &Batch<'_>, retention: BatchRetention, choice: &Choice, out: &mut Vec<u8>) -> Result<Retained> {
    if retention != BatchRetention::RetainEmpty {
        return Ok(Retained::Dropped);
    }
    let base_offset = batch.base_offset().or(choice.first_offset).unwrap_or_else(|| batch.last_offset());
    BatchBuilder::new()
        .base_offset(base_offset)
        .timestamp_type(batch.timestamp_type().unwrap_or(TimestampType::CreateTime))
        .producer(batch.producer_id(), batch.producer_epoch(), batch.base_sequence())
        .transactional(batch.is_transactional())
        .control(batch.is_control())
        .partition_leader_epoch(batch.partition_leader_epoch())
        .finish_empty_into(batch.last_offset(), batch.max_timestamp(), out)?;
    Ok(Retained::Emptied)
}

fn rebuild(mut builder: BatchBuilder, records: Records<'_>, choice: &Choice, out: &mut Vec<u8>) -> Result<()> {
    let mut headers: Vec<NewHeader<'_>> = Vec::new();
    for (record, _) in records.zip(&choice.keep).filter(|(_, keep)| **keep) {
        append_record(&mut builder, &record?, &mut headers)?;
    }
    builder.finish_into(out)
}

/// Appends a record with its offset, timestamp and headers. `headers` is a reusable buffer.
pub(crate) fn append_record<'s>(
    builder: &mut BatchBuilder,
    record: &Record<'s>,
    headers: &mut Vec<NewHeader<'s>>,
) -> Result<()> {
    record.headers().read_into(headers)?;
    builder.append_at(record.offset(), record.timestamp(), record.key(), record.value(), headers)
}
