//! [`Progress`]: reports how far a long operation is, and lets its caller stop it.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// Reports are made after this many bytes or this much time, whichever comes first: a few megabytes can take a minute
/// to compress.
const STEP: u64 = 4 << 20;
const INTERVAL: Duration = Duration::from_millis(100);

/// Reports the bytes done and the total to a callback, every 4 MiB or 100 ms. The callback can stop the operation.
///
/// ```
/// let mut seen = Vec::new();
/// let mut report = |done, total| {
///     seen.push((done, total));
///     true // continue
/// };
/// let progress = kbat::Progress::new(&mut report);
/// # let _ = progress;
/// ```
#[derive(Default)]
pub struct Progress<'a> {
    report: Option<&'a mut dyn FnMut(u64, u64) -> bool>,
    done: u64,
    total: u64,
    reported: u64,
    /// When `reported` was last set.
    reported_at: Option<Instant>,
}

impl<'a> Progress<'a> {
    /// Calls `report` with the bytes done and the total. If it returns `false`, the operation fails with an error of
    /// kind `io`, [`std::io::ErrorKind::Interrupted`].
    pub fn new(report: &'a mut dyn FnMut(u64, u64) -> bool) -> Self {
        Self { report: Some(report), ..Self::default() }
    }

    /// Reports to no callback.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Sets the total number of bytes.
    pub(crate) fn expect(&mut self, total: u64) -> Result<()> {
        self.total = total;
        self.report()
    }

    /// Adds bytes to the total.
    pub(crate) fn expect_more(&mut self, bytes: u64) {
        self.total = self.total.saturating_add(bytes);
    }

    /// Adds bytes to those done.
    pub(crate) fn advance(&mut self, bytes: u64) -> Result<()> {
        self.done = self.done.saturating_add(bytes);
        let is_due = self.done.saturating_sub(self.reported) >= STEP
            || self.report.is_some() && self.reported_at.is_none_or(|at| at.elapsed() >= INTERVAL);
        if is_due { self.report() } else { Ok(()) }
    }

    /// Reports that all bytes are done.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.done = self.total;
        self.report()
    }

    fn report(&mut self) -> Result<()> {
        self.reported = self.done;
        if self.report.is_some() {
            self.reported_at = Some(Instant::now());
        }
        let go_on = self.report.as_mut().is_none_or(|report| report(self.done, self.total));
        if go_on { Ok(()) } else { Err(Error::from(std::io::Error::from(std::io::ErrorKind::Interrupted))) }
    }
}

impl std::fmt::Debug for Progress<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Progress({} of {} bytes)", self.done, self.total)
    }
}
