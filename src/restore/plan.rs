//! [`plan`]: describes the restore of a partition from names, indexes and a few batches of each segment.

use crate::compression::Scratch;
use crate::error::Result;
use crate::format::frame::batches;
use crate::format::header::{BatchHeader, NO_PARTITION_LEADER_EPOCH};
use crate::io::waiting::InterruptTimer;
use crate::log::{PartitionLog, Segment};
use crate::num::u64_of;
use crate::restore::cut::{CutBounds, head};
use crate::restore::overlap::check_repeated;
use crate::restore::partition::{check_start, known_time};
use crate::restore::sources::PartitionSource;
use crate::restore::{RestoreCut, RestoreOptions, RestoredPartition, RestoredSegment};

/// Describes the restore of a partition. Checksums are not verified, and open transactions are not determined.
///
/// # Errors
/// Corruption that is found on the way; I/O errors.
pub(super) fn plan(one: &PartitionSource, options: &RestoreOptions) -> Result<RestoredPartition> {
    let log = PartitionLog::open_with(&one.directory, &options.limits)?;
    let bounds = CutBounds::of(options, &one.partition, log.start_offset());
    let mut report = RestoredPartition::new(one.partition.clone(), one.directory.to_path_buf(), log.start_offset());
    report.warnings = one.directory.warnings()?;
    report.source_topic_id = log.metadata()?.map(|metadata| metadata.topic_id);
    let mut end_offset: Option<i64> = None;
    let mut timer = InterruptTimer::default();
    let (mut current, mut before) = (log.segments().first(), None);
    for segment in log.segments() {
        timer.check()?;
        if let Some(cut) = bounds.excludes(segment.base_offset()) {
            report.cut = Some(cut).filter(|_| segment.size() > 0);
            break;
        }
        current = Some(segment);
        let own_end = segment.end_offset()?;
        if let Some(end) = end_offset {
            if let Some(before) = before.filter(|_| end > segment.base_offset()) {
                let warning = check_repeated(before, segment.location(), end, &options.limits)?;
                report.warnings.extend(warning);
            }
            report.add_overlap(segment.base_offset(), own_end, end);
            if own_end <= end && segment.base_offset() < end {
                continue;
            }
        }
        report.cut = cut_in(segment, own_end, &bounds)?;
        let repeated = end_offset.filter(|end| *end > segment.base_offset());
        let repeated = repeated.map_or(Ok(0), |end| repeated_bytes(segment, end))?;
        if let Some(mut next) = planned(&mut report, segment, own_end, repeated)? {
            if let Some(end) = end_offset {
                report.add_gap(end, segment.base_offset());
                next.base_offset = next.base_offset.max(end);
            }
            end_offset = Some(next.end_offset);
            before = Some(segment.location());
            report.segments.push(next);
        }
        if report.cut.is_some() {
            break;
        }
    }
    check_start(&report, end_offset)?;
    if end_offset.is_none_or(|end| end < report.start_offset) {
        report.segments.extend(current.map(|segment| empty(segment, report.start_offset)));
    }
    report.end_offset = end_offset.unwrap_or(report.start_offset).max(report.start_offset);
    leave_tail(&mut report, &log)?;
    let of_batches = report.leader_epoch.map_or_else(|| epoch_of_last(&report, &log), |epoch| Ok(Some(epoch)))?;
    report.leader_epoch = options.leader_epoch.or(latest_epoch(&log, report.end_offset)?).or(of_batches);
    Ok(report)
}

/// The segment of a log without batches, which has the start of the log in its name.
fn empty(source: &Segment, start_offset: i64) -> RestoredSegment {
    RestoredSegment {
        base_offset: start_offset,
        end_offset: start_offset,
        path: source.path().to_path_buf(),
        source_bytes: source.size(),
        bytes: 0,
    }
}

/// Subtracts the bytes after the last batch of the log, which are not restored.
fn leave_tail(report: &mut RestoredPartition, log: &PartitionLog) -> Result<()> {
    let Some(last) = log.segments().last().filter(|_| report.cut.is_none()) else { return Ok(()) };
    (_, report.tail_bytes) = last.last_header()?;
    if let Some(planned) = report.segments.last_mut().filter(|planned| planned.path == last.path()) {
        planned.bytes = planned.bytes.saturating_sub(report.tail_bytes);
    }
    Ok(())
}

/// The leader epoch of the last batch of the planned segments.
fn epoch_of_last(report: &RestoredPartition, log: &PartitionLog) -> Result<Option<i32>> {
    let Some(planned) = report.segments.iter().rev().find(|planned| planned.bytes > 0) else { return Ok(None) };
    let Some(segment) = log.segments().iter().find(|segment| segment.path() == planned.path) else { return Ok(None) };
    let (header, _) = segment.last_header()?;
    Ok(header.as_ref().and_then(known_epoch))
}

/// The leader epoch of a batch, if it has one.
fn known_epoch(header: &BatchHeader) -> Option<i32> {
    Some(header.partition_leader_epoch()).filter(|epoch| *epoch > NO_PARTITION_LEADER_EPOCH)
}

/// Finds the end of the log in a segment.
fn cut_in(segment: &Segment, own_end: i64, bounds: &CutBounds) -> Result<Option<RestoreCut>> {
    let by_offset = bounds.offset.filter(|offset| *offset < own_end);
    let by_offset = by_offset.map(|offset| RestoreCut { offset, timestamp: None });
    let Some(timestamp) = bounds.timestamp else { return Ok(by_offset) };
    if segment.is_older(timestamp)? {
        return Ok(by_offset);
    }
    let found = segment.find_timestamp(timestamp, Some(bounds.start_offset()))?;
    let by_time = found.map(|place| RestoreCut { offset: place.offset, timestamp: Some(place.timestamp) });
    // of equal offsets, the option with the offset counts
    Ok(by_offset.into_iter().chain(by_time).min_by_key(|cut| cut.offset))
}

/// Plans a segment, without the bytes that the segments before it repeat. Returns `None` if no batch of it is before the
/// end of the log.
fn planned(
    report: &mut RestoredPartition,
    segment: &Segment,
    own_end: i64,
    repeated: u64,
) -> Result<Option<RestoredSegment>> {
    let is_first = report.segments.iter().all(|planned| planned.end_offset <= planned.base_offset);
    let (mut bytes, mut end_offset) = (segment.size(), own_end);
    if let Some(cut) = report.cut {
        (bytes, end_offset) = head_of(report, segment, cut.offset)?;
        if end_offset == segment.base_offset() {
            return Ok(None);
        }
    } else {
        report.max_timestamp = report.max_timestamp.max(known_time(segment.largest_timestamp()?.timestamp));
    }
    if is_first && end_offset > segment.base_offset() {
        let first = segment.headers()?.next_header().transpose()?;
        let time = first.filter(|header| header.delete_horizon_ms().is_none()).map(|header| header.base_timestamp());
        report.first_timestamp = time.and_then(known_time);
    }
    Ok(Some(RestoredSegment {
        base_offset: segment.base_offset(),
        end_offset,
        path: segment.path().to_path_buf(),
        source_bytes: segment.size(),
        bytes: bytes.saturating_sub(repeated),
    }))
}

/// Bytes of the batches of a segment that are before an offset.
fn repeated_bytes(segment: &Segment, end: i64) -> Result<u64> {
    let mut headers = segment.headers()?;
    let mut bytes = 0;
    while let Some(header) = headers.next_header() {
        if header?.last_offset() >= end {
            break;
        }
        bytes = headers.position();
    }
    Ok(bytes)
}

/// Walks the headers of a segment up to the end of the log, and builds the batch that will be written again. Returns
/// the bytes of all batches before the end, and the offset after them.
fn head_of(report: &mut RestoredPartition, segment: &Segment, end: i64) -> Result<(u64, i64)> {
    let mut headers = segment.headers()?;
    let (mut bytes, mut end_offset) = (0, segment.base_offset());
    while let Some(header) = headers.next_header() {
        let header = header?;
        if header.last_offset() < end {
            count(report, &header);
            (bytes, end_offset) = (headers.position(), header.next_offset());
            continue;
        }
        let (mut whole, mut part) = (Vec::new(), Vec::new());
        let batch = headers.read_batch(&header, &mut whole)?;
        head(&batch, end, &mut Scratch::new(), segment.limits(), &mut part)
            .map_err(|error| error.with_path(segment.path()))?;
        for batch in batches(&part) {
            let batch = batch?;
            count(report, batch.header());
            (bytes, end_offset) = (bytes.saturating_add(u64_of(batch.size())), batch.next_offset());
        }
        break;
    }
    Ok((bytes, end_offset))
}

/// Adds the times and the leader epoch of a batch.
fn count(report: &mut RestoredPartition, header: &BatchHeader) {
    report.max_timestamp = report.max_timestamp.max(known_time(header.max_timestamp()));
    report.leader_epoch = report.leader_epoch.max(known_epoch(header));
}

/// The latest leader epoch before an offset, in the source's checkpoint.
fn latest_epoch(log: &PartitionLog, end_offset: i64) -> Result<Option<i32>> {
    match log.leader_epochs() {
        Ok(mut epochs) => {
            epochs.truncate_from_end(end_offset);
            Ok(epochs.latest().map(|latest| latest.epoch))
        }
        Err(error) if error.is_of_reading() => Err(error),
        Err(_) => Ok(None), // the restore reports it, and computes the epochs
    }
}
