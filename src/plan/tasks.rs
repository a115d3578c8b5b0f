//! Plans which task reads which bytes.
//!
//! ```text
//! paths ──► logs by topic and partition ──► offset ranges ──► windows of segments, split between batches
//!                                                            ──► groups of adjacent windows of similar size, one per task
//! ```
//!
//! A task takes a moment before its first row, so small segments are read together. `maxPartitionBytes` limits the size
//! of a task, so that many machines get work. Segments are listed once, and the tasks contain the list.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::io::waiting::map_waiting;
use crate::log::committed::{Committed, Wanted};
use crate::plan::advice::advised;
use crate::plan::columns::PlanView;
use crate::plan::filters::RowFilter;
use crate::plan::interval::Interval;
use crate::plan::logs::{Log, list_logs};
use crate::plan::options::{Pairs, ReadOptions};
use crate::plan::packing::{MIN_TASK_LEN, apart, is_of_one_log, pack};
use crate::plan::pieces::Piece;
use crate::plan::ranges::{LogRange, resolve};
use crate::plan::totals::{GroupColumn, Total, has_header_totals};
use crate::plan::transfer;
use crate::plan::windows::{Cutter, piece_of, segments_within};
use crate::store::{LogFileKind, SegmentFile};

/// Factor for the bytes of a task that only reads headers.
const HEADERS_ONLY: u64 = 16;
/// Number of files that one task of the view segments reads.
const FILES_IN_A_TASK: usize = 500;
/// Segments are split to give every core work, but not into windows smaller than this.
const MIN_CUT_LEN: u64 = 32 << 20;
/// A segment up to a tenth larger than a core's share is not split, as in Hadoop's splits.
const SLOP: u64 = 10;

/// What one task reads: pieces in order, and everything that is needed to read them.
#[derive(Clone, Serialize, Deserialize)]
pub struct ReadTask {
    /// The options of the read, as the user wrote them.
    pub(crate) options: Pairs,
    pub(crate) session_storage: Pairs,
    /// Names of columns, in order; without `error`, which is last if corruption is reported.
    pub(crate) columns: Vec<String>,
    /// The timestamps of the rows, in milliseconds since the epoch.
    pub(crate) times: Interval,
    /// Number of rows after which the task may stop.
    pub(crate) limit: Option<u64>,
    /// What to compute of all rows instead of returning them.
    pub(crate) totals: Vec<Total>,
    /// The columns to group the totals by.
    pub(crate) groups: Vec<GroupColumn>,
    pub(crate) pieces: Vec<Piece>,
}

impl ReadTask {
    /// The pieces.
    #[must_use]
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// The partition of all its rows, if they have only one, with a topic and a number.
    #[must_use]
    pub fn partition(&self) -> Option<(&str, i32)> {
        let first = self.pieces.first()?;
        let (topic, number) = (first.topic.as_deref()?, first.partition?);
        self.pieces.iter().all(|piece| is_of_one_log(first, piece)).then_some((topic, number))
    }

    /// The task as bytes that another process can read. They contain the options, which may be secret.
    ///
    /// # Errors
    /// None that a task of a plan has.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        transfer::to_bytes(self)
    }

    /// The task that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// Bytes of another version of kbat, or other bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        transfer::from_bytes(bytes, "the task of a read")
    }
}

/// A batch read: its options and what a query wants of it.
#[derive(Clone)]
pub struct Read {
    pub(crate) given: Pairs,
    pub(crate) options: ReadOptions,
    pub(crate) columns: Vec<String>,
    pub(crate) filter: RowFilter,
    pub(crate) limit: Option<u64>,
    pub(crate) totals: Vec<Total>,
    groups: Vec<GroupColumn>,
    is_apart: bool,
}

impl Read {
    /// A read of columns by their names in a scan.
    ///
    /// # Errors
    /// Wrong options.
    pub fn new(given: &[(String, String)], session_storage: &[(String, String)], columns: &[String]) -> Result<Self> {
        let options = ReadOptions::parse(given, session_storage)?;
        let fields = columns.iter().map(|name| super::columns::column_named(name, options.view));
        let columns = fields.map(|field| field.map(|field| field.field.to_owned())).collect::<Result<_>>()?;
        let given = given.iter().map(|(name, text)| match &options.metrics_path {
            // a relative path is one of the process that plans
            Some(path) if name.eq_ignore_ascii_case("metricsPath") => (name.clone(), path.clone()),
            _ => (name.clone(), text.clone()),
        });
        let given = given.collect();
        let filter = RowFilter::default();
        Ok(Self {
            given,
            options,
            columns,
            filter,
            limit: None,
            totals: Vec::new(),
            groups: Vec::new(),
            is_apart: false,
        })
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> &ReadOptions {
        &self.options
    }

    /// Omits rows that a query's filters exclude, if that saves reading. Other rows may still match.
    #[must_use]
    pub fn filter(mut self, filter: RowFilter) -> Self {
        self.filter = filter;
        self
    }

    /// Lets each task stop after so many rows.
    #[must_use]
    pub fn limit(mut self, rows: Option<u64>) -> Self {
        self.limit = rows;
        self
    }

    /// Plans no task with rows of two partitions, unless partitions are so small that a task would have too few.
    #[must_use]
    pub fn apart(mut self, is_apart: bool) -> Self {
        self.is_apart = is_apart;
        self
    }

    /// Lets each task return these totals instead of its rows: one row, or with `groups` one or more for each group of
    /// which it has rows. The columns of `groups` come first.
    ///
    /// # Errors
    /// Options with which batch headers do not show which records are rows, by [`ReadOptions::has_totals`].
    pub fn totals(mut self, totals: Vec<Total>, groups: Vec<GroupColumn>) -> Result<Self> {
        if !totals.is_empty() && !self.options.has_totals() {
            return Err(Error::argument("kbat: these options exclude records that batch headers count"));
        }
        (self.totals, self.groups) = (totals, groups);
        Ok(self)
    }

    /// Lists the segments of all paths and distributes them to tasks, of which none is idle. Warnings are added to
    /// `warnings`. If `splits`, a batch with more than `maxRecordsPerPartition` offsets is read by several tasks.
    ///
    /// # Errors
    /// Options that exclude each other, paths that do not exist, partitions and offsets that do not exist, corruption
    /// that hides a bound.
    pub fn plan(&self, splits: bool, warnings: &mut Vec<String>) -> Result<Vec<ReadTask>> {
        self.options.check_batch()?;
        let splits = splits && self.totals.is_empty();
        let mut tasks = self.find_tasks(splits, warnings).map_err(|error| advised(error, &self.options))?;
        if tasks.is_empty() && !self.totals.is_empty() {
            tasks.push(self.nothing()); // whose totals are those of no rows
        }
        Ok(tasks)
    }

    fn find_tasks(&self, splits: bool, warnings: &mut Vec<String>) -> Result<Vec<ReadTask>> {
        warnings.extend(self.options.warning());
        let logs = list_logs(&self.options, true, false, warnings)?;
        let ranges = resolve(&logs, &self.options, warnings)?;
        if self.options.view == PlanView::Segments {
            return self.plan_files(&ranges);
        }
        let wanted = ranges.into_iter().filter(|range| self.filter.takes(&range.log.partition)).map(|range| {
            let both = Interval::new(range.start, range.end).intersect(self.filter.offsets());
            LogRange { start: both.start, end: both.end, ..range }
        });
        let times = self.options.times().intersect(self.filter.scannable_times());
        self.plan_ranges(&wanted.collect::<Vec<_>>(), times.start, self.row_times(), splits)
    }

    /// The number of segments and their bytes, at most, with these filters.
    ///
    /// # Errors
    /// Those of [`plan`](Self::plan).
    pub fn statistics(&self) -> Result<(usize, u64)> {
        let logs = list_logs(&self.options, true, true, &mut Vec::new())?;
        let segments = logs.iter().filter(|log| self.filter.takes(&log.partition)).flat_map(|log| &log.segments);
        Ok(segments
            .fold((0, 0), |(count, bytes), segment| (count.saturating_add(1), bytes.saturating_add(segment.size))))
    }

    /// A task that reads nothing, with the columns of the others.
    #[must_use]
    pub fn nothing(&self) -> ReadTask {
        self.task(Vec::new(), Interval::EVERYTHING)
    }

    /// The timestamps of the rows that tasks return.
    fn row_times(&self) -> Interval {
        let times = self.options.times();
        if !self.options.fails() {
            return times; // a scan within times does not report corruption outside of them
        }
        let both = times.intersect(self.filter.scannable_times());
        if both.is_empty() { times } else { both }
    }

    fn task(&self, pieces: Vec<Piece>, times: Interval) -> ReadTask {
        ReadTask {
            options: self.given.clone(),
            session_storage: self.options.session_storage.clone(),
            columns: self.columns.clone(),
            times,
            limit: self.limit,
            totals: self.totals.clone(),
            groups: self.groups.clone(),
            pieces,
        }
    }

    /// Distributes the files of the ranges without splitting them, for tasks that read only a little of each.
    fn plan_files(&self, ranges: &[LogRange<'_>]) -> Result<Vec<ReadTask>> {
        let mut pieces = Vec::new();
        for range in ranges {
            for (number, segment) in segments_within(range, &self.options) {
                let piece = piece_of(&LogRange { start: None, end: None, ..*range }, number, segment)?;
                pieces.push(Piece { is_whole: true, ..piece });
            }
        }
        let times = self.options.times();
        Ok(pieces.chunks(FILES_IN_A_TASK).map(|pieces| self.task(pieces.to_vec(), times)).collect())
    }

    /// The transactions of a log, if the tasks should not determine them. Each task could, with the same result, unless the
    /// log grows, but would read the log from its start if snapshots of producers are missing. With `skip` and `report`,
    /// tasks read to the end of the log to report corruption, so that only the plan knows how far rows are returned.
    fn committed(&self, range: &LogRange<'_>) -> Result<Option<Committed>> {
        let options = &self.options;
        if !options.is_committed() || options.view != PlanView::Records || !range.log.is_named() {
            return Ok(None);
        }
        let log = range.log.on_disk()?;
        if options.fails() && log.has_snapshots() {
            return Ok(None);
        }
        let (start_offset, end_offset) = (range.start.unwrap_or(i64::MIN), range.end.unwrap_or(i64::MAX));
        let wanted = Wanted { start_offset, end_offset, fails: options.fails(), check_crc: options.check_crc };
        Committed::of_segments(log.segments(), &wanted).map(Some)
    }

    /// Distributes ranges to tasks, except segments whose records are all older than `start_timestamp`.
    pub(crate) fn plan_ranges(
        &self,
        ranges: &[LogRange<'_>],
        start_timestamp: Option<i64>,
        times: Interval,
        splits: bool,
    ) -> Result<Vec<ReadTask>> {
        let options = &self.options;
        let is_waiting = ranges.iter().any(|range| !range.log.directory.is_local());
        let committed = map_waiting(ranges, is_waiting || self.options.is_committed(), |range| self.committed(range))?;
        let segments: Vec<_> = ranges
            .iter()
            .zip(&committed)
            .flat_map(|range| {
                segments_within(range.0, options).into_iter().map(move |(number, segment)| (range, number, segment))
            })
            .filter(|(.., segment)| segment.size > 0)
            .collect();
        let found: Vec<_> = match start_timestamp {
            Some(time) => map_waiting(&segments, is_waiting, |found @ ((range, _), _, segment)| {
                Ok((!is_older(range.log, segment, time)).then_some(*found))
            })?
            .into_iter()
            .flatten()
            .collect(),
            None => segments,
        };
        let total = found.iter().fold(0_u64, |total, (_, _, segment)| total.saturating_add(segment.size));
        let cores = std::thread::available_parallelism().map_or(1, |count| crate::num::u64_of(count.get()));
        // headers are quick to read, but within bounds records are needed, too
        let is_bounded = ranges.iter().any(|range| range.start.is_some() || range.end.is_some());
        let reads_headers =
            has_header_totals(&self.totals) && !self.totals.is_empty() && !is_bounded && times == Interval::EVERYTHING;
        let (max_len, task_len) = if reads_headers {
            (u64::MAX, options.max_partition_bytes.saturating_mul(HEADERS_ONLY))
        } else {
            let len = window_len(total, cores, options);
            (len, len)
        };
        let cutter = Cutter { max_len, options, splits: splits && options.view == PlanView::Records };
        let pieces = map_waiting(&found, is_waiting, |((range, committed), number, segment)| {
            let mut pieces = Vec::new();
            cutter.cut(range, *number, segment, &mut pieces)?;
            if let (Some(committed), Some(base)) = (committed, segment.base_offset) {
                let next_base = range.log.next_base(*number).unwrap_or(i64::MAX);
                for piece in &mut pieces {
                    let (start, end) = (piece.start_offset.unwrap_or(base), piece.end_offset.unwrap_or(next_base));
                    piece.committed = Some(committed.part(start.max(base), end.min(next_base)));
                }
            }
            Ok(pieces)
        })?;
        let mut groups = pack(pieces.concat(), task_len, cores, options.max_records_per_partition);
        let mean = total.checked_div(crate::num::u64_of(ranges.len())).unwrap_or(0);
        if self.is_apart && mean >= MIN_TASK_LEN {
            groups = apart(&groups);
        }
        Ok(groups.into_iter().map(|pieces| self.task(pieces, times)).collect())
    }
}

/// The largest number of bytes of a window, by the options and so that every core gets one.
fn window_len(total: u64, cores: u64, options: &ReadOptions) -> u64 {
    let factor = if options.view == PlanView::Batches { HEADERS_ONLY } else { 1 };
    let share = total.div_ceil(cores.max(1));
    let slack = share.checked_div(SLOP).unwrap_or(0);
    let most = options.max_partition_bytes.saturating_mul(factor);
    let max_len = most.min(share.saturating_add(slack).max(MIN_CUT_LEN));
    match options.min_partitions {
        Some(count) => max_len.min(total.div_ceil(count.max(1)).max(1)),
        None => max_len,
    }
}

/// Whether all records of a segment are older than a time, with the same result as the scan in a task.
///
/// In a large segment without a time index, planning would have to read many headers, so the tasks decide instead.
fn is_older(log: &Log, segment: &SegmentFile, time: i64) -> bool {
    let judge = || -> Result<bool> {
        if segment.base_offset.is_none() {
            return Ok(false);
        }
        let opened = log.open(segment)?;
        if segment.size > MIN_TASK_LEN && !opened.file(LogFileKind::TimeIndex).exists() {
            return Ok(false);
        }
        opened.is_older(time)
    };
    judge().unwrap_or(false)
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "tests")]
mod tests;
