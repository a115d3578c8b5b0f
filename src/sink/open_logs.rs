//! [`OpenLogs`]: the logs that a task has open, which are limited by the open files of the process.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result};
use crate::log::{LogWriter, max_open_logs};

/// Most logs that a task keeps open; others are opened again.
const MAX_OPEN_LOGS: usize = 512;

/// Open logs of all tasks in this process.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// The open logs of a task, by the number of their partition.
pub(super) struct OpenLogs {
    /// When each log was used last, as a count of uses.
    logs: HashMap<usize, (u64, LogWriter)>,
    /// The partitions by their last use.
    uses: BTreeMap<u64, usize>,
    use_count: u64,
    /// The ends of the logs that were closed.
    ends: BTreeMap<usize, i64>,
    max: usize,
    /// Most logs of the process, at least one of which may be this task's.
    max_of_process: usize,
}

impl OpenLogs {
    pub(super) fn new() -> Self {
        let max = max_open_logs();
        Self::with_max(max.min(MAX_OPEN_LOGS), max)
    }

    pub(super) fn with_max(max: usize, max_of_process: usize) -> Self {
        Self {
            logs: HashMap::new(),
            uses: BTreeMap::new(),
            use_count: 0,
            ends: BTreeMap::new(),
            max: max.max(1),
            max_of_process,
        }
    }

    /// The log of a partition, which `open` opens if it is closed. May close those that were not used for the longest
    /// time.
    ///
    /// # Errors
    /// Those of `open`, and of closing another log.
    pub(super) fn log(&mut self, partition: usize, open: impl FnOnce() -> Result<LogWriter>) -> Result<&mut LogWriter> {
        if let Some((last_use, _)) = self.logs.get(&partition) {
            self.uses.remove(last_use);
        } else {
            while self.is_full() {
                let Some((_, oldest)) = self.uses.pop_first() else { break };
                self.close(oldest)?;
            }
            self.logs.insert(partition, (0, open()?));
            OPEN.fetch_add(1, Ordering::Relaxed);
        }
        self.use_count = self.use_count.saturating_add(1);
        self.uses.insert(self.use_count, partition);
        let entry = self.logs.get_mut(&partition).ok_or_else(|| Error::other("an open log is missing"))?;
        entry.0 = self.use_count;
        Ok(&mut entry.1)
    }

    fn is_full(&self) -> bool {
        let count = self.logs.len();
        count >= self.max || (count > 0 && OPEN.load(Ordering::Relaxed) >= self.max_of_process)
    }

    /// The partitions whose logs are open.
    pub(super) fn partitions(&self) -> Vec<usize> {
        self.uses.values().copied().collect()
    }

    /// Closes the log of a partition, if it is open.
    ///
    /// # Errors
    /// I/O errors.
    pub(super) fn close(&mut self, partition: usize) -> Result<()> {
        let Some((last_use, log)) = self.logs.remove(&partition) else { return Ok(()) };
        OPEN.fetch_sub(1, Ordering::Relaxed);
        self.uses.remove(&last_use);
        self.ends.insert(partition, log.end_offset());
        log.close()
    }

    /// Partition and end of each log that was closed.
    pub(super) fn ends(&self) -> &BTreeMap<usize, i64> {
        &self.ends
    }

    #[cfg(test)]
    pub(super) fn count(&self) -> usize {
        self.logs.len()
    }
}

impl Drop for OpenLogs {
    fn drop(&mut self) {
        OPEN.fetch_sub(self.logs.len(), Ordering::Relaxed);
    }
}
