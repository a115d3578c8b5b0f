//! [`rewrite`]: changes codecs, batch sizes or message formats of a partition.
//!
//! | what | how |
//! |---|---|
//! | codec, level | of every data batch; control batches are never compressed |
//! | message format | by the rules of [`convert`](crate::broker::convert::convert), which documents the losses |
//! | batch size | adjacent batches that differ only in their records are merged up to that size, larger ones split |
//! | producers | kept or removed |
//!
//! A batch with a producer id is neither merged nor split unless producers are removed, because a broker identifies
//! such a batch by its first and last sequence.
//!
//! Without producers there are no transactions. If producers are removed, or the message format is below 2, all markers
//! and the records of aborted transactions are dropped. A log with an open transaction is then rejected, because its
//! outcome is unknown. Offsets, the end offset and timestamps do not change.

use std::path::Path;

use super::output::RewriteOutput;
use super::source::RewriteSource;
use super::survey::Survey;
use super::transactions::CleanedTransactions;
use super::{Counts, IndexOptions, keep_end};
use crate::broker::convert::{ConvertOptions, Losses, convert_batch};
use crate::broker::retain::append_record;
use crate::compression::{Compression, Scratch};
use crate::error::{Error, Result};
use crate::format::attributes::TimestampType;
use crate::format::batch::Batch;
use crate::format::builder::BatchBuilder;
use crate::format::frame::batches;
use crate::format::header::{NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE};
use crate::format::record::NewHeader;
use crate::format::record::Record;
use crate::format::size::{message_len, record_len};
use crate::io::{Location, Progress};
use crate::limits::Limits;

/// Settings of [`rewrite`]. The default changes nothing.
#[derive(Debug, Clone)]
pub struct RewriteOptions {
    /// Codec to write with. Default: the codec of each batch.
    pub compression: Option<Compression>,
    /// Level of that codec, as in Kafka.
    pub level: Option<i32>,
    /// Approximate bytes of a batch before compression. Default: batch boundaries do not change.
    pub batch_bytes: Option<usize>,
    /// Message format. Default: the format of each batch.
    pub magic: Option<u8>,
    /// Whether to keep producer ids, epochs and sequences, transactions and producer snapshots. Default yes.
    pub keep_producer_state: bool,
    /// Settings for indexes.
    pub index: IndexOptions,
    /// Whether to verify checksums. Default yes.
    pub check_crc: bool,
    /// Bounds on untrusted input.
    pub limits: Limits,
}

impl Default for RewriteOptions {
    fn default() -> Self {
        Self {
            compression: None,
            level: None,
            batch_bytes: None,
            magic: None,
            keep_producer_state: true,
            index: IndexOptions::default(),
            check_crc: true,
            limits: Limits::default(),
        }
    }
}

/// Records that [`rewrite`] dropped, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RewriteDropped {
    /// Records of aborted transactions.
    pub aborted: u64,
    /// Control records.
    pub control: u64,
}

/// Counts of what [`rewrite`] read, wrote and dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RewriteReport {
    /// Read from the source.
    pub read: Counts,
    /// Written to the target.
    pub written: Counts,
    /// Records dropped.
    pub dropped: RewriteDropped,
    /// Information that the new message format can't represent.
    pub losses: Losses,
    /// The offset after the last batch of the source.
    pub end_offset: i64,
    /// Bytes at the ends of segments that are not complete batches, such as a truncated batch. They are not copied.
    pub tail_bytes: u64,
}

/// Rewrites the partition in the directory `source` to a new directory.
///
/// # Errors
/// If options contradict each other; if `target` is not empty, the source has no segments, or reading or writing fails;
/// if a transaction is open and transactions can't be kept; if a batch, record or checksum is invalid; if a value does
/// not fit the target's format. No target is left after an error.
pub fn rewrite(
    source: impl Into<Location>,
    target: impl AsRef<Path>,
    options: &RewriteOptions,
    progress: &mut Progress<'_>,
) -> Result<RewriteReport> {
    let (source, target): (&Location, &Path) = (&source.into(), target.as_ref());
    let conversion = ConvertOptions { compression: options.compression, level: options.level, first_offset: None };
    conversion.validate(options.magic.unwrap_or(2))?;
    let source = RewriteSource::open(source, &options.limits, options.check_crc)?;
    let output = RewriteOutput::create(&source, target, options.index)?;
    progress.expect(source.bytes().saturating_mul(2))?;
    let survey = Survey::make(&source, progress)?;
    let drops_transactions = !options.keep_producer_state || options.magic.is_some_and(|magic| magic < 2);
    if drops_transactions && let Some(offset) = survey.states.first_unstable_offset() {
        let what = format!(
            "the transaction that begins at offset {offset} is still open, and without producer state it can't be kept"
        );
        return Err(Error::argument(what).with_path(&source.directory));
    }
    let mut recoder = Recoder {
        options,
        conversion,
        transactions: drops_transactions.then(|| CleanedTransactions::new(&survey.aborted)),
        output,
        group: None,
        report: RewriteReport { end_offset: survey.end_offset, tail_bytes: survey.tail_bytes, ..Default::default() },
        scratch: Scratch::new(),
        group_scratch: Scratch::new(),
        converted: Vec::new(),
        end_offset: survey.end_offset,
    };
    for (index, segment) in source.segments.iter().enumerate() {
        recoder.output.begin_segment(segment.base_offset, segment.modified)?;
        recoder.report.read.segments = recoder.report.read.segments.saturating_add(1);
        if !drops_transactions {
            recoder.output.append_aborted_of(&source, index, &survey);
        }
        source.each_batch(segment, progress, &mut |batch| recoder.pass(batch).map(|()| true))?;
        recoder.end_group()?;
    }
    let Recoder { mut output, mut report, .. } = recoder;
    output.extend_to(survey.end_offset)?;
    report.written = Counts { records: report.written.records, ..output.written };
    output.finish(&source, &survey, !drops_transactions, progress)?;
    Ok(report)
}

/// A batch under construction.
struct MergedBatch {
    builder: BatchBuilder,
    /// The properties that all its source batches share.
    kind: MergeProperties,
    base_offset: i64,
    /// The last offset of its last source batch.
    last_offset: i64,
    len: usize,
}

/// The properties that must be equal for batches to be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MergeProperties {
    magic: u8,
    compression: Compression,
    log_append_time: Option<i64>,
    partition_leader_epoch: i32,
    delete_horizon_ms: Option<i64>,
}

struct Recoder<'a> {
    options: &'a RewriteOptions,
    conversion: ConvertOptions,
    /// The aborted transactions, if transactions can't be kept.
    transactions: Option<CleanedTransactions>,
    output: RewriteOutput,
    group: Option<MergedBatch>,
    report: RewriteReport,
    scratch: Scratch,
    group_scratch: Scratch,
    converted: Vec<u8>,
    end_offset: i64,
}

impl Recoder<'_> {
    fn pass(&mut self, batch: &Batch<'_>) -> Result<()> {
        let records = count_records(batch, &mut self.scratch, &self.options.limits)?;
        self.report.read.add_batch(records, batch.size());
        if self.drops(batch, records)? {
            return self.leave_end(batch);
        }
        self.report.written.records = self.report.written.records.saturating_add(records);
        let magic = self.options.magic.unwrap_or_else(|| batch.magic());
        let is_group = self.is_grouped(batch, magic);
        let conversion = if is_group {
            ConvertOptions { compression: Some(Compression::None), level: None, first_offset: None }
        } else {
            self.conversion
        };
        let mut converted = std::mem::take(&mut self.converted);
        converted.clear();
        let losses = convert_batch(batch, magic, &conversion, &mut self.scratch, &self.options.limits, &mut converted)?;
        self.report.losses |= losses;
        if is_group {
            let compression = self.options.compression.map_or_else(|| batch.compression(), Ok)?;
            for part in batches(&converted) {
                self.add_to_group(&part?, compression)?;
            }
        } else {
            self.end_group()?;
            self.output.append(&converted)?;
        }
        self.converted = converted;
        Ok(())
    }

    /// Whether to drop a batch: a marker or aborted data, if transactions can't be kept.
    fn drops(&mut self, batch: &Batch<'_>, records: u64) -> Result<bool> {
        let Some(transactions) = &mut self.transactions else { return Ok(false) };
        let has_producer = batch.producer_id() > NO_PRODUCER_ID;
        let below_v2 = self.options.magic.is_some_and(|magic| magic < 2);
        if batch.is_control() {
            transactions.read_marker(batch, &mut self.scratch, &self.options.limits)?;
            let drops = has_producer || below_v2;
            let count = if drops { records } else { 0 };
            self.report.dropped.control = self.report.dropped.control.saturating_add(count);
            return Ok(drops);
        }
        if transactions.is_aborted(batch) {
            self.report.dropped.aborted = self.report.dropped.aborted.saturating_add(records);
            return Ok(true);
        }
        Ok(has_producer && records == 0)
    }

    /// Keeps the header of a dropped batch that ends the log, so that the log keeps its end offset.
    fn leave_end(&mut self, batch: &Batch<'_>) -> Result<()> {
        if batch.next_offset() != self.end_offset || self.options.magic.is_some_and(|magic| magic < 2) {
            return Ok(());
        }
        self.end_group()?;
        let mut header = Vec::new();
        keep_end(batch, &mut header)?;
        self.output.append(&header)
    }

    /// Whether to split a batch into its records.
    fn is_grouped(&self, batch: &Batch<'_>, magic: u8) -> bool {
        let has_producer = batch.producer_id() > NO_PRODUCER_ID || batch.base_sequence() != NO_SEQUENCE;
        let strips = !self.options.keep_producer_state && has_producer && magic == 2;
        let regroups = self.options.batch_bytes.is_some() && (self.transactions.is_some() || !has_producer);
        let is_empty = batch.magic() == 2 && batch.record_count() == Some(0);
        (strips || regroups) && !batch.is_control() && !is_empty
    }

    fn add_to_group(&mut self, batch: &Batch<'_>, compression: Compression) -> Result<()> {
        let is_log_append_time = batch.timestamp_type() == Some(TimestampType::LogAppendTime);
        let kind = MergeProperties {
            magic: batch.magic(),
            compression,
            log_append_time: is_log_append_time.then(|| batch.max_timestamp()),
            partition_leader_epoch: batch.partition_leader_epoch(),
            delete_horizon_ms: batch.delete_horizon_ms().filter(|&horizon| horizon >= 0),
        };
        if self.options.batch_bytes.is_none() || self.group.as_ref().is_some_and(|group| group.kind != kind) {
            self.end_group()?;
        }
        let mut base_offset = batch.base_offset().unwrap_or_else(|| batch.last_offset());
        let mut scratch = std::mem::take(&mut self.group_scratch);
        let mut headers: Vec<NewHeader<'_>> = Vec::new();
        for record in batch.records(&mut scratch, &self.options.limits)? {
            let record = record?;
            let len = stored_len(&record, kind.magic);
            if self.group.as_ref().is_some_and(|group| !self.has_room(group, &record, len)) {
                self.end_group()?;
            }
            let group = self.group.get_or_insert_with(|| MergedBatch {
                builder: self.options.builder(kind, base_offset),
                kind,
                base_offset,
                last_offset: record.offset(),
                len: 0,
            });
            append_record(&mut group.builder, &record, &mut headers)?;
            group.last_offset = record.offset();
            group.len = group.len.saturating_add(len);
            base_offset = record.offset().saturating_add(1);
        }
        drop(headers);
        self.group_scratch = scratch;
        if let Some(group) = &mut self.group {
            group.last_offset = batch.last_offset();
        }
        Ok(())
    }

    fn has_room(&self, group: &MergedBatch, record: &Record<'_>, len: usize) -> bool {
        let limit = self.options.batch_bytes.unwrap_or(usize::MAX);
        let span = record.offset().saturating_sub(group.base_offset);
        group.len.saturating_add(len) <= limit && i32::try_from(span).is_ok()
    }

    fn end_group(&mut self) -> Result<()> {
        let Some(group) = self.group.take() else { return Ok(()) };
        let mut bytes = Vec::new();
        let builder = if group.kind.magic == 2 { group.builder.last_offset(group.last_offset) } else { group.builder };
        builder.finish_into(&mut bytes)?;
        self.output.append(&bytes)
    }
}

impl RewriteOptions {
    fn builder(&self, kind: MergeProperties, base_offset: i64) -> BatchBuilder {
        let mut builder = BatchBuilder::new()
            .magic(kind.magic)
            .compression(kind.compression)
            .base_offset(base_offset)
            .producer(NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE)
            .partition_leader_epoch(kind.partition_leader_epoch);
        if let Some(level) = self.level {
            builder = builder.level(level);
        }
        if let Some(time) = kind.log_append_time {
            builder = builder.log_append_time(time);
        }
        match kind.delete_horizon_ms {
            Some(horizon) => builder.delete_horizon_ms(horizon),
            None => builder,
        }
    }
}

/// Number of records of a batch, from its header if it has one.
fn count_records(batch: &Batch<'_>, scratch: &mut Scratch, limits: &Limits) -> Result<u64> {
    match batch.record_count() {
        Some(count) => Ok(u64::try_from(count).unwrap_or(0)),
        None => {
            batch.records(scratch, limits)?.try_fold(0_u64, |count, record| record.map(|_| count.saturating_add(1)))
        }
    }
}

/// Approximate bytes of a record in a batch before compression; its deltas are not known yet.
fn stored_len(record: &Record<'_>, magic: u8) -> usize {
    if magic < 2 {
        return message_len(magic, record.key(), record.value());
    }
    let headers = record.headers().map_while(Result::ok);
    let headers_len = headers.fold(0_usize, |sum, header| {
        let value_len = header.value().map_or(0, <[u8]>::len);
        sum.saturating_add(header.key().len()).saturating_add(value_len).saturating_add(2)
    });
    record_len(0, 0, record.key(), record.value(), &[]).saturating_add(headers_len)
}
