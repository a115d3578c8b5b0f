//! Waiting for requests and for threads: how to stop it, and several calls at a time.

use std::cell::OnceCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// How often to check whether the user wants to stop.
pub(crate) const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// Returns the reason to stop waiting, if there is one.
static INTERRUPT_CHECK: OnceLock<StopCheck> = OnceLock::new();

/// A function that returns the reason to stop waiting, if there is one.
pub(crate) type StopCheck = fn() -> Option<Error>;

thread_local! {
    /// In a thread of [`map_waiting`]: whether the thread that started it wants it to stop.
    static STOPPED: OnceCell<Arc<AtomicBool>> = const { OnceCell::new() };
}

/// Sets the function that decides whether to stop waiting.
pub(crate) fn set_interrupt_check(check: StopCheck) {
    let _ = INTERRUPT_CHECK.set(check);
}

/// Returns the reason for this thread to stop waiting, if there is one.
pub(crate) fn interrupt() -> Option<Error> {
    if STOPPED.with(|flag| flag.get().is_some_and(|flag| flag.load(Ordering::Relaxed))) {
        return Some(Error::from(std::io::Error::from(std::io::ErrorKind::Interrupted)));
    }
    INTERRUPT_CHECK.get().and_then(|check| check())
}

/// Checks from time to time whether the user wants to stop.
#[derive(Debug, Default)]
pub(crate) struct InterruptTimer {
    next: Option<Instant>,
}

impl InterruptTimer {
    /// Checks if the last check, or the first call, was long enough ago.
    ///
    /// # Errors
    /// The reason to stop.
    pub(crate) fn check(&mut self) -> Result<()> {
        let now = Instant::now();
        if self.next.is_some_and(|next| now < next) {
            return Ok(());
        }
        let is_first = self.next.is_none();
        self.next = now.checked_add(CHECK_INTERVAL);
        if is_first { Ok(()) } else { interrupt().map_or(Ok(()), Err) }
    }
}

/// Number of calls at a time.
const THREADS: usize = 16;

/// Calls a function for each item, several at a time if calls wait for requests, and returns the results in the order of
/// the items. Such a call calls others one after the other.
///
/// # Errors
/// That of the first item whose call failed; calls for the items after it may not have begun. If the user stopped the
/// operation, the reason.
pub(crate) fn map_waiting<'i, T: Sync, R: Send>(
    items: &'i [T],
    is_waiting: bool,
    call: impl Fn(&'i T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let threads = THREADS.min(items.len());
    if threads < 2 || !is_waiting || STOPPED.with(|flag| flag.get().is_some()) {
        return items.iter().map(call).collect();
    }
    let (next, stopped) = (AtomicUsize::new(0), Arc::new(AtomicBool::new(false)));
    let (sender, receiver) = channel();
    let mut results: Vec<Option<Result<R>>> = Vec::new();
    results.resize_with(items.len(), || None);
    thread::scope(|scope| -> Result<()> {
        for _ in 0..threads {
            let (sender, flag, next, call) = (sender.clone(), Arc::clone(&stopped), &next, &call);
            let work = move || {
                STOPPED.with(|own| {
                    own.get_or_init(|| Arc::clone(&flag));
                });
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(number).filter(|_| !flag.load(Ordering::Relaxed)) else { break };
                    let result = call(item);
                    if result.is_err() {
                        next.fetch_max(items.len(), Ordering::Relaxed); // the items before have all begun
                    }
                    if sender.send((number, result)).is_err() {
                        break;
                    }
                }
            };
            thread::Builder::new().name("kbat-waiting".to_owned()).spawn_scoped(scope, work)?;
        }
        drop(sender);
        loop {
            match receiver.recv_timeout(CHECK_INTERVAL) {
                Ok((number, result)) => {
                    if let Some(place) = results.get_mut(number) {
                        *place = Some(result);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(reason) = interrupt() {
                        stopped.store(true, Ordering::Relaxed);
                        return Err(reason);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
    })?;
    results.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_order_of_the_items() {
        let items: Vec<usize> = (0..100).collect();
        assert_eq!(map_waiting(&items, true, |item| Ok(item * 2)).unwrap(), (0..200).step_by(2).collect::<Vec<_>>());
        assert!(map_waiting::<usize, usize>(&[], true, |item| Ok(*item)).unwrap().is_empty());
    }

    #[test]
    fn several_calls_wait_at_a_time() {
        let barrier = std::sync::Barrier::new(THREADS);
        let items = [(); THREADS];
        let leaders = map_waiting(&items, true, |()| Ok(barrier.wait().is_leader())).unwrap();
        assert_eq!(leaders.into_iter().filter(|is_leader| *is_leader).count(), 1);
    }

    #[test]
    fn the_error_is_that_of_the_first_item_that_failed() {
        let items: Vec<usize> = (0..1000).collect();
        let begun = AtomicUsize::new(0);
        let error = map_waiting(&items, true, |item| -> Result<()> {
            begun.fetch_add(1, Ordering::Relaxed);
            thread::sleep(std::time::Duration::from_millis(if *item == 3 { 20 } else { 1 }));
            if matches!(item, 3..=9) { Err(Error::argument(format!("item {item}"))) } else { Ok(()) }
        });
        assert_eq!(error.unwrap_err().to_string(), "item 3");
        assert!(begun.into_inner() < 100);
    }
}
