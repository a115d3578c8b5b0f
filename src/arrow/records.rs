//! The records of a batch that a scan returns.

use std::ops::RangeInclusive;

use crate::arrow::binary_views::RecordMemory;
use crate::arrow::options::{RecordBounds, ScanOptions};
use crate::arrow::walk::BatchContext;
use crate::compression::{Payload, Scratch};
use crate::error::Result;
use crate::format::batch::Batch;
use crate::format::record::Record;
use crate::format::records::{RecordSink, Records};
use crate::log::BatchMemory;

/// Number of records that are parsed before they are passed on; so many fit a first-level cache.
const CHUNK: usize = 128;

/// Passes the records of a batch that are within the bounds to `take`, in chunks, with the memory that has them. Returns
/// the offset of the batch's first record.
#[inline]
pub(crate) fn read_records(
    batch: &Batch<'_>,
    context: &BatchContext<'_>,
    options: &ScanOptions,
    scratch: &mut Scratch,
    mut take: impl FnMut(&[Record<'_>], RecordMemory<'_>) -> Result<()>,
) -> Result<Option<i64>> {
    let bounded = context.bounds.are_any();
    let check_records = options.check_crc && batch.is_legacy_wrapper();
    let mut first_offset = None;
    let payload = batch.payload(scratch, &options.limits)?;
    let memory = if batch.attributes().is_compressed() {
        RecordMemory::Reused(payload.bytes)
    } else {
        RecordMemory::of(batch, context.memory)
    };
    let mut records = records_in(batch, payload, context.memory, options)?;
    let mut chunk = Vec::with_capacity(CHUNK);
    loop {
        chunk.clear();
        let more = records.read_into(&mut chunk, CHUNK);
        if check_records {
            chunk.iter().try_for_each(Record::verify_crc)?;
        }
        if let Some(first) = chunk.first() {
            first_offset.get_or_insert(first.offset());
        }
        if bounded {
            chunk.retain(|record| context.bounds.want(record));
        }
        take(&chunk, memory)?;
        // only now, because the records before a broken one may be broken, too
        if !more? {
            break;
        }
    }
    Ok(first_offset)
}

/// Passes the records of a batch that are within the bounds to a sink. The batch is not a compressed v0 or v1 set.
#[inline]
pub(crate) fn push_records(
    batch: &Batch<'_>,
    context: &BatchContext<'_>,
    options: &ScanOptions,
    scratch: &mut Scratch,
    sink: &mut impl RecordSink,
) -> Result<()> {
    debug_assert!(!batch.is_legacy_wrapper(), "its messages have checksums of their own");
    let payload = batch.payload(scratch, &options.limits)?;
    let records = records_in(batch, payload, context.memory, options)?;
    let bounds = context.bounds.are_any().then_some(context.bounds);
    records.push_to(&mut WithinBounds { bounds, sink })
}

/// The records of a batch. The next batch is prefetched only if it is in a caller's buffer. The window of a file is
/// cached, as it was just filled.
fn records_in<'s>(
    batch: &Batch<'_>,
    payload: Payload<'s>,
    memory: BatchMemory<'_>,
    options: &ScanOptions,
) -> Result<Records<'s>> {
    let records = Records::new(batch, payload, &options.limits)?;
    Ok(match memory {
        BatchMemory::Window(_) => records.without_prefetch(),
        BatchMemory::Buffer(_) => records,
    })
}

/// Passes on the records within some bounds.
struct WithinBounds<'b, S> {
    bounds: Option<&'b RecordBounds>,
    sink: &'b mut S,
}

impl<S: RecordSink> RecordSink for WithinBounds<'_, S> {
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of the loop of `Records::push_to`")]
    fn push(&mut self, record: Record<'_>) -> Result<()> {
        if self.bounds.is_none_or(|bounds| bounds.want(&record)) { self.sink.push(record) } else { Ok(()) }
    }
}

/// The smallest record of format v2, in bytes.
const MIN_RECORD_LEN: usize = 7;

/// The offsets of a batch's records and their number, if its header shows them and all are within the bounds. A number
/// that is unlikely for the batch's size, or exceeds the limit, is not accepted: a few bytes do not become millions of
/// rows.
pub(crate) fn offsets_in_header(
    batch: &Batch<'_>,
    context: &BatchContext<'_>,
    options: &ScanOptions,
) -> Option<(RangeInclusive<i64>, usize)> {
    let header = batch.header();
    let count = header.record_count().filter(|_| header.magic() == 2)?;
    let first = header.base_offset()?;
    let last = first.checked_add(i64::from(count))?.checked_sub(1)?;
    let rows = usize::try_from(count).ok().filter(|rows| (1..=options.limits.record_count).contains(rows))?;
    let len = batch.stored_records().len();
    let most = if batch.attributes().is_compressed() { len } else { len / MIN_RECORD_LEN };
    let is_shown = rows <= most && last == header.last_offset();
    (is_shown && context.bounds.take_all(header)).then_some((first..=last, rows))
}
