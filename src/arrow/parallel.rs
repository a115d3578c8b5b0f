//! [`ParallelScan`]: a scan on several threads that returns rows in order.
//!
//! ```text
//! units    0   1   2   3   4 …        parts of the sources, taken in order, one thread per unit
//!          │   │   │
//! lanes    ▆   ▆▆  ▆▆▆                finished Arrow batches
//!          ▲
//!          the caller takes from the first lane until its unit has ended
//! ```
//!
//! The finished Arrow batches are limited to a number of bytes; a thread that would exceed it waits. The first lane may
//! always hold one Arrow batch, as the caller waits for exactly this lane.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arrow_schema::SchemaRef;

use crate::arrow::ending::ends_after_error;
use crate::arrow::interrupt::{ProgressCallback, go_on};
use crate::arrow::options::ScanOptions;
use crate::arrow::scan::ArrowScan;
use crate::arrow::source::ScanSource;
use crate::arrow::stats::ScanStats;
use crate::arrow::units::{RemainingWork, Unit};
use crate::arrow::workers;
use crate::error::{Error, Result};

/// How long the caller waits for an Arrow batch between two calls of its callback.
const CALLBACK_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum number of threads of a scan, whatever is requested.
const MAX_THREADS: usize = 1024;

/// Number of threads, and limits on the memory that they use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parallelism {
    /// Number of decoding threads. At least one is used.
    pub threads: usize,
    /// Maximum bytes of Arrow batches that are decoded but not yet taken. Each thread additionally holds the memory of
    /// one [`ArrowScan`].
    pub max_memory_bytes: usize,
    /// Bytes of a file or buffer that a thread decodes at a time, rounded to a batch boundary. Small parts let threads
    /// work ahead within `max_memory_bytes`; large parts make the cost of opening a file negligible.
    pub part_bytes: u64,
}

impl Default for Parallelism {
    /// One thread per CPU, 256 MiB, parts of 8 MiB.
    fn default() -> Self {
        let threads = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        Self { threads, max_memory_bytes: 256 << 20, part_bytes: 8 << 20 }
    }
}

/// Iterates over the records of some sources as Arrow batches, in order, like [`ArrowScan`], but decodes ahead on
/// several threads.
///
/// Rows and errors, and their order, are the same as those of [`ArrowScan`]; the boundaries of Arrow batches may
/// differ. Threads start with the first call of `next` and stop soon after the value is dropped. They are kept a few
/// seconds for the next scan.
///
/// ```
/// # fn main() -> kbat::Result<()> {
/// use kbat::arrow::{ParallelScan, Parallelism, ScanOptions, ScanSource};
/// # let mut builder = kbat::BatchBuilder::new();
/// # builder.append(1_700_000_000_000, Some(b"key"), Some(b"value"))?;
/// # let mut bytes = Vec::new();
/// # builder.finish_into(&mut bytes)?;
/// let sources = vec![ScanSource::memory(std::sync::Arc::new(bytes))];
/// for arrow_batch in ParallelScan::new(sources, ScanOptions::default(), Parallelism::default()) {
///     assert_eq!(arrow_batch?.num_rows(), 1);
/// }
/// # Ok(()) }
/// ```
pub struct ParallelScan {
    shared: Arc<Shared>,
    started: bool,
    schema: SchemaRef,
    callback: Option<ProgressCallback>,
    ended: bool,
    /// The process whose threads decode: a forked child has none of them.
    process: u32,
}

struct Shared {
    plan: Mutex<RemainingWork>,
    options: ScanOptions,
    parallelism: Parallelism,
    state: Mutex<LaneQueue>,
    /// Signals that an Arrow batch is ready or a unit has ended.
    filled: Condvar,
    /// Signals that an Arrow batch was taken or a unit is no longer needed.
    taken: Condvar,
    /// Set when the scan is dropped.
    stopped: AtomicBool,
}

#[derive(Default)]
struct LaneQueue {
    /// The unit of the first lane.
    first: usize,
    lanes: VecDeque<Lane>,
    /// Whether the last unit was taken.
    all_taken: bool,
    /// Bytes of Arrow batches in all lanes.
    ready_len: usize,
    /// The first unit that failed. Units after it are not needed.
    failed: Option<usize>,
    /// Counts and bytes of the units that the caller has taken completely.
    stats: ScanStats,
    walked: u64,
}

#[derive(Default)]
struct Lane {
    ready: VecDeque<(Result<arrow_array::RecordBatch>, usize)>,
    /// Counts of the unit so far.
    stats: ScanStats,
    /// Bytes of the unit.
    len: u64,
    ended: bool,
}

impl LaneQueue {
    fn lane(&mut self, unit: usize) -> Option<&mut Lane> {
        self.lanes.get_mut(unit.checked_sub(self.first)?)
    }

    /// Whether the rows of a unit are needed.
    fn is_wanted(&self, unit: usize) -> bool {
        self.failed.is_none_or(|failed| unit <= failed)
    }

    /// Whether a unit may add `len` bytes.
    fn has_room(&self, unit: usize, len: usize, most: usize) -> bool {
        let waited_for = unit == self.first && self.lanes.front().is_none_or(|lane| lane.ready.is_empty());
        waited_for || self.ready_len.saturating_add(len) <= most
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, LaneQueue> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next unit to decode, and its number.
    fn take_unit(&self) -> Option<(usize, Unit)> {
        let mut plan = self.plan.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_stopped() {
            return None;
        }
        let next = plan.next(&self.options, self.parallelism.part_bytes);
        let mut state = self.state();
        let number = state.first.saturating_add(state.lanes.len());
        if !self.is_wanted(&state, number) {
            return None;
        }
        let Some(unit) = next else {
            state.all_taken = true;
            self.filled.notify_one();
            return None;
        };
        state.lanes.push_back(Lane { len: unit.byte_len(), ..Lane::default() });
        Some((number, unit))
    }

    fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn is_wanted(&self, state: &LaneQueue, unit: usize) -> bool {
        !self.is_stopped() && state.is_wanted(unit)
    }

    /// Adds a unit's next Arrow batch or error to its lane, and waits for room to do so. Returns `false` if the unit is
    /// no longer needed.
    fn give(&self, unit: usize, next: Result<arrow_array::RecordBatch>, so_far: ScanStats) -> bool {
        let len = next.as_ref().map_or(0, arrow_array::RecordBatch::get_array_memory_size);
        let full = |state: &mut LaneQueue| {
            self.is_wanted(state, unit) && !state.has_room(unit, len, self.parallelism.max_memory_bytes)
        };
        let mut state = self.taken.wait_while(self.state(), full).unwrap_or_else(PoisonError::into_inner);
        if !self.is_wanted(&state, unit) {
            return false;
        }
        if next.is_err() {
            state.failed = Some(unit);
            self.taken.notify_all();
        }
        state.ready_len = state.ready_len.saturating_add(len);
        if let Some(lane) = state.lane(unit) {
            lane.stats = so_far;
            lane.ready.push_back((next, len));
        }
        self.filled.notify_one();
        true
    }

    fn end_unit(&self, unit: usize) {
        if let Some(lane) = self.state().lane(unit) {
            lane.ended = true;
        }
        self.filled.notify_one();
    }

    /// Decodes units until none are left.
    fn work(self: &Arc<Self>) {
        while let Some((unit, Unit { sources, opened, error })) = self.take_unit() {
            let lane = OpenLane { shared: self, unit };
            if let Some(error) = error {
                self.give(unit, Err(error), ScanStats::default());
                return;
            }
            let watched = Arc::clone(self);
            let callback: ProgressCallback =
                Box::new(move |_| !watched.is_stopped() && watched.state().is_wanted(unit));
            let mut scan = ArrowScan::watched(sources, self.options.clone(), Some(callback)).with_opened(opened);
            while let Some(next) = scan.next() {
                if !self.give(unit, next, scan.stats()) {
                    return;
                }
            }
            if let Some(lane) = self.state().lane(unit) {
                lane.stats = scan.stats();
            }
            drop(lane);
        }
    }

    /// Takes the next Arrow batch or error, and waits for it no longer than `patience`.
    fn take(&self, patience: Duration) -> NextResult {
        let start = Instant::now();
        let mut state = self.state();
        loop {
            // checked in each round, because many units may end without an Arrow batch
            let Some(left) = patience.checked_sub(start.elapsed()) else { return NextResult::Nothing };
            let next = state.lanes.front_mut().map(|lane| (lane.ready.pop_front(), lane.ended));
            match next {
                Some((Some((next, len)), _)) => {
                    state.ready_len = state.ready_len.saturating_sub(len);
                    self.taken.notify_all();
                    return NextResult::Next(next);
                }
                Some((None, true)) => {
                    let Some(ended) = state.lanes.pop_front() else { continue };
                    state.stats = state.stats.plus(&ended.stats);
                    state.walked = state.walked.saturating_add(ended.len);
                    state.first = state.first.saturating_add(1);
                    self.taken.notify_all();
                }
                None if state.all_taken => return NextResult::End,
                _ => {
                    let woken = self.filled.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
                    state = woken.0;
                }
            }
        }
    }
}

/// The result of [`Shared::take`].
enum NextResult {
    Next(Result<arrow_array::RecordBatch>),
    Nothing,
    End,
}

/// Ends its unit when it is dropped, even by a panic; otherwise the caller would wait forever.
struct OpenLane<'s> {
    shared: &'s Shared,
    unit: usize,
}

impl Drop for OpenLane<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let error = Error::other("a thread of the scan panicked; this is a bug in kbat, please report it");
            self.shared.give(self.unit, Err(error), ScanStats::default());
        }
        self.shared.end_unit(self.unit);
    }
}

impl ParallelScan {
    /// Creates a scan. Threads start with the first call of `next`.
    #[must_use]
    pub fn new(sources: Vec<ScanSource>, options: ScanOptions, parallelism: Parallelism) -> Self {
        Self::watched(sources, options, parallelism, None)
    }

    /// Like `new`, with a callback for progress and cancellation.
    pub(crate) fn watched(
        sources: Vec<ScanSource>,
        options: ScanOptions,
        parallelism: Parallelism,
        callback: Option<ProgressCallback>,
    ) -> Self {
        let schema = options.schema();
        let shared = Shared {
            plan: Mutex::new(RemainingWork::new(sources)),
            options,
            parallelism,
            state: Mutex::default(),
            filled: Condvar::new(),
            taken: Condvar::new(),
            stopped: AtomicBool::new(false),
        };
        Self { shared: Arc::new(shared), started: false, schema, callback, ended: false, process: std::process::id() }
    }

    /// Schema of the Arrow batches.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Counts of what was read and lost so far, including Arrow batches that are decoded but not yet taken.
    #[must_use]
    pub fn stats(&self) -> ScanStats {
        if self.is_forked() {
            return ScanStats::default();
        }
        let state = self.shared.state();
        state.lanes.iter().fold(state.stats, |sum, lane| sum.plus(&lane.stats))
    }

    /// Whether this process is a fork of the one whose threads decode. Locks may stay locked forever in a fork.
    fn is_forked(&self) -> bool {
        self.process != std::process::id()
    }

    /// Bytes of the units that the caller has taken completely.
    #[cfg(feature = "python")]
    pub(crate) fn walked(&self) -> u64 {
        if self.is_forked() { 0 } else { self.shared.state().walked }
    }

    /// Starts the threads. It is not an error if only some of them can be started.
    fn start(&mut self) -> Result<()> {
        for number in 0..self.shared.parallelism.threads.clamp(1, MAX_THREADS) {
            let shared = Arc::clone(&self.shared);
            match workers::run(Box::new(move || shared.work())) {
                Err(error) if number == 0 => return Err(Error::from(error)),
                Err(_) => break,
                Ok(()) => {}
            }
        }
        Ok(())
    }

    fn advance(&mut self) -> Result<Option<arrow_array::RecordBatch>> {
        if self.is_forked() {
            let message = "this scan was created before a fork: create a new scan in the child process";
            return Err(Error::argument(message));
        }
        if !std::mem::replace(&mut self.started, true) {
            self.start()?;
        }
        loop {
            match self.shared.take(CALLBACK_INTERVAL) {
                NextResult::Next(next) => return next.map(Some),
                NextResult::End => return Ok(None),
                NextResult::Nothing => {}
            }
            self.report_progress()?;
        }
    }

    fn report_progress(&mut self) -> Result<()> {
        let walked = self.shared.state().walked;
        go_on(self.callback.as_mut().is_none_or(|callback| callback(walked)))
    }
}

ends_after_error!(ParallelScan);

impl Drop for ParallelScan {
    fn drop(&mut self) {
        if self.is_forked() {
            return;
        }
        // set under the lock, so that no thread is between checking it and waiting
        let state = self.shared.state();
        self.shared.stopped.store(true, Ordering::Relaxed);
        drop(state);
        self.shared.taken.notify_all();
    }
}
