//! Assigns offsets to the records, in place if possible, otherwise by rebuilding the batch.
//!
//! Follows `LogValidator`. Without compression on either side, batches are changed in place if the formats are equal,
//! and rebuilt if they differ. With compression, batches are changed in place unless codec or format differ, the format
//! is v0, or the offsets do not count from 0.

use crate::broker::validate::outcome::{Accepted, ErrorCode, StepResult, refuse, unreadable};
use crate::broker::validate::records::{Findings, ParseDepth, check_header, check_records};
use crate::broker::validate::request::Request;
use crate::broker::validate::settings::ValidationSettings;
use crate::compression::{Compression, Scratch};
use crate::error::Error;
use crate::format::attributes::{Attributes, TimestampType};
use crate::format::batch::Batch;
use crate::format::builder::{BatchBuilder, put};
use crate::format::edit;
use crate::format::frame::batches;
use crate::format::header::{NO_TIMESTAMP, PARTITION_LEADER_EPOCH_POSITION};
use crate::format::record::NewHeader;
use crate::limits::Limits;
use crate::num::usize_from_u64;
use crate::slices::Slices;

/// Checks the records and assigns their offsets.
pub(super) fn assign(request: &Request<'_>, settings: &ValidationSettings, limits: &Limits) -> StepResult<Accepted> {
    let target = settings.compression.unwrap_or(request.source);
    let mut assign = Assign { request, settings, limits, target, scratch: Scratch::new() };
    let accepted = if request.source == Compression::None && target == Compression::None {
        assign.uncompressed()?
    } else {
        assign.compressed()?
    };
    assign.check_sizes(&accepted)?;
    Ok(accepted)
}

struct Assign<'a> {
    request: &'a Request<'a>,
    settings: &'a ValidationSettings,
    limits: &'a Limits,
    target: Compression,
    scratch: Scratch,
}

/// The largest timestamp so far, and its offset.
#[derive(Clone, Copy)]
struct Latest {
    timestamp: i64,
    offset: i64,
}

impl Assign<'_> {
    fn check(&mut self, batch: &Batch<'_>, depth: ParseDepth) -> StepResult<Findings> {
        check_header(batch, &self.request.first, self.settings)?;
        check_records(batch, depth, self.settings, &mut self.scratch, self.limits)
    }

    /// Batches that are uncompressed and stay so. v0 and v1 may have several.
    fn uncompressed(&mut self) -> StepResult<Accepted> {
        if self.request.batches().any(|batch| batch.magic() != self.settings.magic) {
            for batch in self.request.batches() {
                self.check(&batch, ParseDepth::Full)?;
            }
            return self.rebuild();
        }
        let (mut bytes, mut next_offset) = (self.request.bytes.to_vec(), self.settings.base_offset);
        let mut latest = Latest { timestamp: NO_TIMESTAMP, offset: -1 };
        for batch in self.request.batches() {
            let found = self.check(&batch, ParseDepth::Full)?;
            let first_offset = next_offset;
            next_offset = next_offset.wrapping_add(found.record_count);
            if found.max_timestamp > latest.timestamp {
                let offset = first_offset.wrapping_add(found.index_of_max_timestamp);
                latest = Latest { timestamp: found.max_timestamp, offset };
            }
            self.set_fields(&mut bytes, &batch, next_offset.wrapping_sub(1), found.max_timestamp)?;
        }
        Ok(self.accept(bytes, next_offset, latest, false))
    }

    /// A batch that is compressed or will be.
    fn compressed(&mut self) -> StepResult<Accepted> {
        let first = self.request.first;
        let (magic, source) = (self.settings.magic, self.request.source);
        let mut in_place = source == self.target && first.magic() == magic && magic > 0;
        if source == Compression::None && first.is_control() {
            in_place = true; // a marker is never compressed
        }
        let short = in_place && first.magic() >= 2 && first.attributes().is_compressed();
        let depth = if short { ParseDepth::Short } else { ParseDepth::Full };
        let (mut record_count, mut max_timestamp) = (0_i64, NO_TIMESTAMP);
        for batch in self.request.batches() {
            let found = self.check(&batch, depth)?;
            record_count = record_count.saturating_add(found.record_count);
            if magic > 0 {
                max_timestamp = max_timestamp.max(found.max_timestamp);
                in_place &= found.counts_from_zero || batch.magic() == 0;
            }
        }
        if !in_place && short {
            let message = "the offsets do not count from 0, and the broker cannot rebuild a batch whose keys and \
                           values it skipped";
            return refuse(ErrorCode::UnknownServerError, message, &first);
        }
        if !in_place {
            return self.rebuild();
        }
        let mut bytes = self.request.bytes.to_vec();
        let next_offset = self.settings.base_offset.wrapping_add(record_count);
        self.set_fields(&mut bytes, &first, next_offset.wrapping_sub(1), max_timestamp)?;
        Ok(self.accept(bytes, next_offset, Latest { timestamp: max_timestamp, offset: -1 }, false))
    }

    /// Sets the last offset, timestamps and leader epoch of a batch in place.
    fn set_fields(&self, bytes: &mut [u8], batch: &Batch<'_>, last_offset: i64, max_timestamp: i64) -> StepResult<()> {
        let start = usize_from_u64(batch.position());
        let bytes = bytes.part_mut(start..start.saturating_add(batch.size()));
        let base_offset = last_offset.wrapping_sub(i64::from(batch.header().last_offset_delta));
        put(bytes, 0, &base_offset.to_be_bytes());
        if batch.magic() >= 2 {
            put(bytes, PARTITION_LEADER_EPOCH_POSITION, &self.settings.partition_leader_epoch.to_be_bytes());
        }
        let timestamp_type = self.settings.timestamp_type;
        let timestamp = self.or_log_append_time(max_timestamp);
        let same = batch.timestamp_type() == Some(timestamp_type) && batch.max_timestamp() == timestamp;
        if batch.magic() > 0 && !same {
            edit::put_timestamp(bytes, attributes(batch, timestamp_type)?, timestamp);
        }
        Ok(())
    }

    fn or_log_append_time(&self, max_timestamp: i64) -> i64 {
        match self.settings.timestamp_type {
            TimestampType::LogAppendTime => self.settings.now_ms,
            TimestampType::CreateTime => max_timestamp,
        }
    }

    /// Rebuilds all records as one batch, or in v0 and v1 without compression as one message each.
    fn rebuild(&mut self) -> StepResult<Accepted> {
        let (first, settings) = (self.request.first, self.settings);
        let mut builder = BatchBuilder::new()
            .magic(settings.magic)
            .compression(self.target)
            .base_offset(settings.base_offset)
            .producer(first.producer_id(), first.producer_epoch(), first.base_sequence())
            .transactional(first.is_transactional())
            .partition_leader_epoch(settings.partition_leader_epoch);
        if let Some(level) = settings.level {
            builder = builder.level(level);
        }
        if settings.timestamp_type == TimestampType::LogAppendTime {
            builder = builder.log_append_time(settings.now_ms);
        }
        let (mut next_offset, mut latest) = (settings.base_offset, Latest { timestamp: NO_TIMESTAMP, offset: -1 });
        for batch in self.request.batches() {
            append_all(&batch, &mut builder, &mut next_offset, &mut latest, &mut self.scratch, self.limits)
                .map_err(|error| unreadable(error, &batch))?;
        }
        if builder.record_count() == 0 && settings.timestamp_type == TimestampType::LogAppendTime {
            return refuse(ErrorCode::UnknownServerError, "no record to set a log append time on", &first);
        }
        let mut bytes = Vec::new();
        builder.finish_into(&mut bytes).map_err(|error| unreadable(error, &first))?;
        Ok(self.accept(bytes, next_offset, latest, true))
    }

    fn accept(&self, bytes: Vec<u8>, next_offset: i64, latest: Latest, is_rebuilt: bool) -> Accepted {
        let max_timestamp =
            if self.settings.magic == 0 { NO_TIMESTAMP } else { self.or_log_append_time(latest.timestamp) };
        let one_batch = self.settings.magic >= 2 || self.target != Compression::None;
        let shallow_offset_of_max_timestamp = match (max_timestamp, self.settings.timestamp_type) {
            (NO_TIMESTAMP, _) => -1,
            _ if one_batch => next_offset.wrapping_sub(1),
            (_, TimestampType::LogAppendTime) => self.settings.base_offset,
            (_, TimestampType::CreateTime) => latest.offset,
        };
        let valid_len = self.request.bytes.len();
        Accepted {
            bytes,
            next_offset,
            max_timestamp,
            shallow_offset_of_max_timestamp,
            is_rebuilt,
            valid_len,
            duplicate_offset: None,
        }
    }

    /// Checks sizes again, because a rebuilt batch may be larger than the original.
    fn check_sizes(&self, accepted: &Accepted) -> StepResult<()> {
        let (most, first) = (self.settings.max_message_bytes, &self.request.first);
        let too_large = |batch: &Batch<'_>| accepted.is_rebuilt && batch.size() > most;
        if let Some(batch) = batches(&accepted.bytes).map_while(Result::ok).find(too_large) {
            let message = format!(
                "Message batch size is {} bytes which exceeds the maximum configured size of {most}",
                batch.size()
            );
            return refuse(ErrorCode::MessageTooLarge, message, first);
        }
        if accepted.bytes.len() > self.settings.segment_bytes {
            let message = format!(
                "Message batch size is {} bytes, which exceeds the maximum configured segment size of {}",
                accepted.bytes.len(),
                self.settings.segment_bytes
            );
            return refuse(ErrorCode::RecordListTooLarge, message, first);
        }
        Ok(())
    }
}

/// The attributes as Kafka recomputes them, without undefined bits.
fn attributes(batch: &Batch<'_>, timestamp_type: TimestampType) -> StepResult<Attributes> {
    Ok(Attributes::of(
        batch.magic(),
        batch.compression().map_err(|error| unreadable(error, batch))?,
        timestamp_type,
        batch.is_transactional(),
        batch.is_control(),
        batch.attributes().has_delete_horizon(),
    ))
}

/// Appends a batch's records at the next offsets.
fn append_all(
    batch: &Batch<'_>,
    builder: &mut BatchBuilder,
    next_offset: &mut i64,
    latest: &mut Latest,
    scratch: &mut Scratch,
    limits: &Limits,
) -> std::result::Result<(), Error> {
    let mut headers: Vec<NewHeader<'_>> = Vec::new();
    for record in batch.records(scratch, limits)? {
        let record = record?;
        record.headers().read_into(&mut headers)?;
        builder.append_at(*next_offset, record.timestamp(), record.key(), record.value(), &headers)?;
        if record.timestamp() > latest.timestamp {
            *latest = Latest { timestamp: record.timestamp(), offset: *next_offset };
        }
        *next_offset = next_offset.wrapping_add(1);
    }
    Ok(())
}
