//! [`Watch`]: what a long walk does now and then for whoever waits for it.

use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// Told how many bytes were walked over so far; answers whether to go on.
pub(crate) type Look = Box<dyn FnMut(u64) -> bool + Send>;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(50);

/// Batches between two glances at the clock, which takes as long as passing over a small batch.
const BATCHES: u32 = 64;

/// Looks up from a walk every now and then.
pub(crate) struct Watch {
    look: Option<Look>,
    batches: u32,
    last: Instant,
    /// Bytes of the sources that were walked to their end.
    pub(crate) walked: u64,
}

impl Watch {
    pub(crate) fn new(look: Option<Look>) -> Self {
        Self { look, batches: 0, last: Instant::now(), walked: 0 }
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.look.is_some()
    }

    /// Looks up if it is time to, `position` bytes into the source. `false` to end the walk.
    #[inline]
    pub(crate) fn goes_on(&mut self, position: u64) -> bool {
        self.batches = self.batches.wrapping_add(1);
        self.look.is_none() || !self.batches.is_multiple_of(BATCHES) || self.look_up(position)
    }

    #[cold]
    fn look_up(&mut self, position: u64) -> bool {
        if self.last.elapsed() < INTERVAL {
            return true;
        }
        self.last = Instant::now();
        let walked = self.walked.saturating_add(position);
        self.look.as_mut().is_none_or(|look| look(walked))
    }
}

/// The error of a walk that was ended.
pub(crate) fn interrupted() -> Error {
    Error::from(std::io::Error::from(std::io::ErrorKind::Interrupted))
}

/// As an error where a walk is to end.
pub(crate) fn go_on(goes_on: bool) -> Result<()> {
    if goes_on { Ok(()) } else { Err(interrupted()) }
}
