//! Converts bounds to the offsets that are read of each partition.
//!
//! ```text
//! earliest            the log's start offset
//! latest              its end, in read_committed its last stable offset
//! an offset           itself; outside the log it is lost data: an error, or with failOnDataLoss=false the nearest one
//! a time by JSON      the offset of the first record since then; if there is none, the strategy (start) or latest (end)
//! the time of a read  no offset: the tasks filter rows by it
//! ```
//!
//! The first record since a time is the first in a full scan of the log whose timestamp is not before it. For segments
//! without timestamps, a broker uses the modification times of the files instead.

use std::collections::HashMap;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;

use crate::arrow::{ArrowScan, Column, OnCorrupt, ScanOptions};
use crate::error::{Error, Result};
use crate::log::committed::StableEnd;
use crate::plan::bounds::{Bound, EARLIEST, LATEST, check_names_all};
use crate::plan::logs::{Log, search_each};
use crate::plan::options::{ReadOptions, TimestampStrategy};
use crate::plan::places::SegmentPlaces;
use crate::plan::topics::PartitionName;

/// A log and the offsets to read of it, from `start` up to but not including `end`; `None` if there is no bound.
#[derive(Clone, Copy)]
pub(crate) struct LogRange<'l> {
    pub(crate) log: &'l Log,
    pub(crate) start: Option<i64>,
    pub(crate) end: Option<i64>,
    /// Whether a later read starts at `end`, as in a stream.
    pub(crate) continues: bool,
}

impl<'l> LogRange<'l> {
    fn all(log: &'l Log) -> Self {
        Self { log, start: None, end: None, continues: false }
    }
}

/// The offsets to read of each log in a batch read.
///
/// # Errors
/// JSON that does not name exactly the partitions that are read, a partition in two directories if bounds apply, a
/// partition without a record since a starting time if the strategy is error, and offsets that no longer exist.
pub(crate) fn resolve<'l>(
    logs: &'l [Log],
    options: &ReadOptions,
    warnings: &mut Vec<String>,
) -> Result<Vec<LogRange<'l>>> {
    let (mut start, mut end) = (options.start().unwrap_or(Bound::Earliest), options.end().unwrap_or(Bound::Latest));
    if let Bound::Timestamp(time) = start {
        check_starting_time(logs, time, options)?;
        start = Bound::Earliest;
    }
    if matches!(end, Bound::Timestamp(_)) {
        end = Bound::Latest;
    }
    let has_bounds =
        (start != Bound::Earliest && start != Bound::Latest) || (end != Bound::Earliest && end != Bound::Latest);
    if !options.view.has_records() && !has_bounds {
        return Ok(logs.iter().map(LogRange::all).collect()); // everything on disk
    }
    let partitions: Vec<&PartitionName> = logs.iter().map(|log| &log.partition).collect();
    check_names_all("starting", &start, &partitions)?;
    check_names_all("ending", &end, &partitions)?;
    if has_bounds {
        check_no_copies(logs)?;
    }
    let ranges = search_each(logs, |log| {
        let mut warnings = Vec::new();
        let start = start_of(log, &start, options, &mut warnings)?;
        let end = end_of(log, &end, options, &mut warnings)?;
        Ok((LogRange { log, start, end, continues: false }, warnings))
    })?;
    let of_range = |(range, found): (LogRange<'l>, Vec<String>)| {
        warnings.extend(found);
        range
    };
    Ok(ranges.into_iter().map(of_range).collect())
}

/// Refuses a log without a record since a time, if the options set the strategy error.
fn check_starting_time(logs: &[Log], time: i64, options: &ReadOptions) -> Result<()> {
    if options.timestamp_strategy == Some(TimestampStrategy::Error) {
        search_each(logs, |log| match find_timestamp(log, time, options)? {
            Some(_) => Ok(()),
            None => Err(no_record_since(log, time)),
        })?;
    }
    Ok(())
}

fn no_record_since(log: &Log, time: i64) -> Error {
    Error::argument(format!(
        "kbat: {} has no record with the timestamp {time} or a later one; with \
         startingOffsetsByTimestampStrategy=latest it is read from its end on",
        log.partition
    ))
}

/// Refuses a partition in two directories: the option `topic` names files of any directory.
pub(crate) fn check_no_copies(logs: &[Log]) -> Result<()> {
    let mut seen: HashMap<&PartitionName, &Log> = HashMap::new();
    for log in logs {
        let other = seen.entry(&log.partition).or_insert(log);
        if other.directory != log.directory {
            return Err(Error::argument(format!(
                "kbat: partition {} is in {} and in {}, and offsets are of one log; load one directory, or remove the \
                 bounds to read both",
                log.partition,
                other.shown_directory(),
                log.shown_directory()
            )));
        }
    }
    Ok(())
}

/// The offset at which a read of a log starts.
pub(crate) fn starting_offset(
    log: &Log,
    bound: &Bound,
    options: &ReadOptions,
    warnings: &mut Vec<String>,
) -> Result<i64> {
    match offset_of(log, bound, options)? {
        None if options.timestamp_strategy != Some(TimestampStrategy::Latest) => {
            Err(no_record_since(log, time_of(log, bound)))
        }
        None | Some(LATEST) => latest_offset(log, options),
        Some(EARLIEST) => log.start_offset(),
        Some(wanted) if matches!(bound, Bound::Offsets(_)) => within(log, wanted, options, warnings),
        Some(wanted) => Ok(wanted),
    }
}

fn start_of(log: &Log, bound: &Bound, options: &ReadOptions, warnings: &mut Vec<String>) -> Result<Option<i64>> {
    if !log.is_named() {
        return unchecked(log, bound, options);
    }
    let start = starting_offset(log, bound, options, warnings)?;
    // most logs start with their first segment, and then no search is necessary
    let is_inside = log.segments.iter().any(|segment| segment.base_offset.unwrap_or(0) < start);
    Ok(is_inside.then_some(start))
}

fn end_of(log: &Log, bound: &Bound, options: &ReadOptions, warnings: &mut Vec<String>) -> Result<Option<i64>> {
    if !log.is_named() {
        return unchecked(log, bound, options);
    }
    let wanted = match offset_of(log, bound, options)? {
        None | Some(LATEST) => return stable_end(log, None, options),
        Some(wanted) if matches!(bound, Bound::Offsets(_)) => within(log, wanted, options, warnings)?,
        Some(wanted) => wanted,
    };
    stable_end(log, Some(wanted), options)
}

/// The end of a read that should end at `wanted`. Those that skip corruption have no other end, because they also report
/// corruption after the last stable offset; the plan has determined which batches are committed.
fn stable_end(log: &Log, wanted: Option<i64>, options: &ReadOptions) -> Result<Option<i64>> {
    if !options.is_committed() || !options.fails() {
        return Ok(wanted);
    }
    let stable = latest_offset(log, options)?;
    Ok(Some(wanted.map_or(stable, |wanted| wanted.min(stable))))
}

/// The offset after the last one that a reader of this isolation level sees.
pub(crate) fn latest_offset(log: &Log, options: &ReadOptions) -> Result<i64> {
    if !options.is_committed() {
        return end_offset(log, options);
    }
    stable_end_of(log, options).map(|end| end.offset)
}

/// The last stable offset of a log.
pub(crate) fn stable_end_of(log: &Log, options: &ReadOptions) -> Result<StableEnd> {
    log.on_disk()?.stable_end(options.fails(), options.check_crc)
}

/// The offset after the last one of a log; with `onCorrupt=skip` and `report` also after corruption.
pub(crate) fn end_offset(log: &Log, options: &ReadOptions) -> Result<i64> {
    match log.segments.iter().enumerate().next_back() {
        Some((number, last)) if !options.fails() => SegmentPlaces::open(log, number, last, options)?.end_offset(),
        _ => log.on_disk()?.end_offset(),
    }
}

/// The offset of the first record since a time, as a full scan of the log finds it; `None` if there is none.
///
/// Control records count, as they do for a broker. With `onCorrupt=skip` and `report` corrupt batches are skipped.
fn find_timestamp(log: &Log, time: i64, options: &ReadOptions) -> Result<Option<i64>> {
    let scan_options = ScanOptions {
        columns: vec![Column::Offset, Column::Position, Column::Segment],
        start_offset: Some(log.start_offset()?),
        start_timestamp: Some(time),
        include_control: true,
        check_crc: options.check_crc,
        on_corrupt: if options.fails() { OnCorrupt::Fail } else { OnCorrupt::Skip },
        limits: options.limits.clone(),
        max_rows: 1,
        leave_page_cache: options.leave_page_cache,
        ..ScanOptions::default()
    };
    let Some(rows) = ArrowScan::new(log.sources(), scan_options).next().transpose()? else { return Ok(None) };
    let [offset, position, segment] = rows.columns() else { return Ok(None) };
    let (offset, position) =
        (offset.as_primitive::<Int64Type>().value(0), position.as_primitive::<Int64Type>().value(0));
    let path = segment.as_string::<i32>().value(0);
    let found = log.segments.iter().enumerate().find(|(_, segment)| segment.path.to_string_lossy() == path);
    let Some((number, file)) = found else { return Ok(Some(offset)) };
    SegmentPlaces::open(log, number, file, options)?.sound_offset(position.unsigned_abs(), offset).map(Some)
}

/// The offset of a bound, perhaps `EARLIEST` or `LATEST`; `None` if there is no record since its time.
fn offset_of(log: &Log, bound: &Bound, options: &ReadOptions) -> Result<Option<i64>> {
    match bound {
        Bound::Earliest => Ok(Some(EARLIEST)),
        Bound::Latest => Ok(Some(LATEST)),
        Bound::Offsets(of) => Ok(of.get(&log.partition).copied()),
        Bound::Timestamp(_) | Bound::Timestamps(_) => find_timestamp(log, time_of(log, bound), options),
    }
}

fn time_of(log: &Log, bound: &Bound) -> i64 {
    match bound {
        Bound::Timestamp(time) => *time,
        Bound::Timestamps(of) => of.get(&log.partition).copied().unwrap_or(-1),
        _ => -1,
    }
}

/// The offset of a bound for a file that is not named after its base offset, without a search.
fn unchecked(log: &Log, bound: &Bound, options: &ReadOptions) -> Result<Option<i64>> {
    if matches!(bound, Bound::Timestamp(_) | Bound::Timestamps(_)) {
        let path = log.segments.first().map(|segment| segment.path.path().display().to_string()).unwrap_or_default();
        return Err(Error::argument(format!(
            "kbat: {path} is not named after its base offset, so it can't be searched for a time; filter its rows with \
             startingTimestamp and endingTimestamp"
        )));
    }
    Ok(offset_of(log, bound, options)?.filter(|wanted| *wanted >= 0))
}

/// An offset, or the nearest one of the log if it is outside and `failOnDataLoss` is false.
fn within(log: &Log, wanted: i64, options: &ReadOptions, warnings: &mut Vec<String>) -> Result<i64> {
    let first = log.start_offset()?;
    let last_base = log.segments.last().and_then(|segment| segment.base_offset).unwrap_or(first);
    if (first..=last_base).contains(&wanted) {
        return Ok(wanted); // even if the last segment is corrupt
    }
    let last = end_offset(log, options)?;
    if (first..=last).contains(&wanted) {
        return Ok(wanted);
    }
    let what = format!(
        "offset {wanted} of {} is not in {}, which has {first} to {last}",
        log.partition,
        log.shown_directory()
    );
    report_data_loss(&what, options, warnings)?;
    Ok(wanted.min(last).max(first))
}

/// Fails, or warns with `failOnDataLoss=false`.
pub(crate) fn report_data_loss(what: &str, options: &ReadOptions, warnings: &mut Vec<String>) -> Result<()> {
    if options.fail_on_data_loss {
        let message = format!("kbat: {what}; option failOnDataLoss=false reads the existing records");
        return Err(Error::argument(message));
    }
    warnings.push(format!("kbat: {what}; reading what exists, because of failOnDataLoss=false"));
    Ok(())
}
