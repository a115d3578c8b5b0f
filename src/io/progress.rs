//! [`Progress`]: how far a long work is, and whether its caller wants it to end.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// Bytes and time between two reports, whichever comes first: a few megabytes can take a minute to compress.
const STEP: u64 = 4 << 20;
const INTERVAL: Duration = Duration::from_millis(100);

/// Reports to a caller how many bytes of how many are done, every few megabytes or 100 ms, and lets it end the work.
///
/// ```
/// let mut seen = Vec::new();
/// let mut report = |done, total| {
///     seen.push((done, total));
///     true // go on
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
    /// When that was.
    reported_at: Option<Instant>,
}

impl<'a> Progress<'a> {
    /// Calls `report` with the bytes done and the bytes in all; `false` ends the work with an error of the kind `io`,
    /// [`std::io::ErrorKind::Interrupted`].
    pub fn new(report: &'a mut dyn FnMut(u64, u64) -> bool) -> Self {
        Self { report: Some(report), ..Self::default() }
    }

    /// Tells nobody.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// Sets how many bytes there are in all.
    pub(crate) fn expect(&mut self, total: u64) -> Result<()> {
        self.total = total;
        self.report()
    }

    /// There are more bytes than expected.
    pub(crate) fn expect_more(&mut self, bytes: u64) {
        self.total = self.total.saturating_add(bytes);
    }

    /// That many bytes more are done.
    pub(crate) fn advance(&mut self, bytes: u64) -> Result<()> {
        self.done = self.done.saturating_add(bytes);
        let is_due = self.done.saturating_sub(self.reported) >= STEP
            || self.report.is_some() && self.reported_at.is_none_or(|at| at.elapsed() >= INTERVAL);
        if is_due { self.report() } else { Ok(()) }
    }

    /// All is done.
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
