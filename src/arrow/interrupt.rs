//! [`InterruptCheck`]: progress reports and cancellation of a long scan.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// A callback that gets the number of bytes read so far and returns whether to continue.
pub(crate) type ProgressCallback = Box<dyn FnMut(u64) -> bool + Send>;

/// Minimum time between two calls of the callback.
const INTERVAL: Duration = Duration::from_millis(50);

/// Batches between two checks of the clock, since a check takes as long as skipping a small batch.
const BATCHES: u32 = 64;

/// Calls the callback of a walk at regular intervals.
pub(crate) struct InterruptCheck {
    callback: Option<ProgressCallback>,
    batches: u32,
    last: Instant,
    /// Bytes of the sources that were read to their end.
    pub(crate) walked: u64,
}

impl InterruptCheck {
    pub(crate) fn new(callback: Option<ProgressCallback>) -> Self {
        Self { callback, batches: 0, last: Instant::now(), walked: 0 }
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.callback.is_some()
    }

    /// Calls the callback if it is due. `position` is the number of bytes read of the current source. Returns `false`
    /// to end the walk.
    #[inline]
    pub(crate) fn should_continue(&mut self, position: u64) -> bool {
        self.batches = self.batches.wrapping_add(1);
        self.callback.is_none() || !self.batches.is_multiple_of(BATCHES) || self.report(position)
    }

    #[cold]
    fn report(&mut self, position: u64) -> bool {
        if self.last.elapsed() < INTERVAL {
            return true;
        }
        self.last = Instant::now();
        let walked = self.walked.saturating_add(position);
        self.callback.as_mut().is_none_or(|callback| callback(walked))
    }
}

/// The error of a walk that its callback ended.
pub(crate) fn interrupted() -> Error {
    Error::from(std::io::Error::from(std::io::ErrorKind::Interrupted))
}

/// Returns an error if the walk must end.
pub(crate) fn go_on(should_continue: bool) -> Result<()> {
    if should_continue { Ok(()) } else { Err(interrupted()) }
}
