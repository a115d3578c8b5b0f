//! A pool of threads for scans.
//!
//! Allocators give each new thread its own memory, which the system must clear first: starting new threads for each
//! scan made every other scan take twice as long. An idle thread waits a few seconds for its next job, then ends.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::Duration;

/// The work of a thread.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// How long a thread waits for its next job.
const IDLE_TIMEOUT: Duration = Duration::from_secs(5);

/// Idle threads, ordered by when they became idle.
struct Idle {
    /// The process that the threads belong to: after a fork, the child has none of them.
    process: u32,
    threads: Vec<(u64, SyncSender<Job>)>,
}

/// Number of the next thread.
static NEXT: AtomicU64 = AtomicU64::new(0);

static IDLE: Mutex<Idle> = Mutex::new(Idle { process: 0, threads: Vec::new() });

/// The list of idle threads, unless another thread has locked it. In a forked child it may stay locked forever.
fn idle() -> Option<MutexGuard<'static, Idle>> {
    let mut idle = match IDLE.try_lock() {
        Ok(idle) => idle,
        Err(TryLockError::Poisoned(idle)) => idle.into_inner(),
        Err(TryLockError::WouldBlock) => return None,
    };
    let process = std::process::id();
    if idle.process != process {
        (idle.process, idle.threads) = (process, Vec::new());
    }
    Some(idle)
}

/// Runs a job on an idle thread, or on a new one.
///
/// # Errors
/// If no thread is idle and the system cannot start a new one.
pub(crate) fn run(job: Job) -> io::Result<()> {
    let mut job = job;
    while let Some((_, thread)) = idle().and_then(|mut idle| idle.threads.pop()) {
        match thread.send(job) {
            Ok(()) => return Ok(()),
            Err(unsent) => job = unsent.0, // it has just ended
        }
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    thread::Builder::new().name(format!("kbat-scan-{number}")).spawn(move || work(number, job)).map(drop)
}

/// Runs jobs until none arrives for [`IDLE_TIMEOUT`].
fn work(number: u64, first: Job) {
    let (sender, jobs) = sync_channel::<Job>(1);
    let mut job = first;
    loop {
        job();
        match idle() {
            Some(mut idle) => idle.threads.push((number, sender.clone())),
            None => return,
        }
        job = loop {
            if let Ok(next) = jobs.recv_timeout(IDLE_TIMEOUT) {
                break next;
            }
            // a thread that is no longer listed was just taken: its job will arrive
            let is_listed = |&(other, _): &(u64, SyncSender<Job>)| other == number;
            if let Some(mut idle) = idle()
                && let Some(place) = idle.threads.iter().position(is_listed)
            {
                idle.threads.swap_remove(place);
                return;
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::mpsc::channel;
    use std::thread::{self, ThreadId};

    use super::run;

    /// The ids of the threads that run `jobs` jobs at the same time.
    fn threads_of(jobs: usize) -> HashSet<ThreadId> {
        let (say, said) = channel();
        let waits: Vec<_> = (0..jobs)
            .map(|_| {
                let (go_on, wait) = channel::<()>();
                let say = say.clone();
                let job = move || {
                    say.send(thread::current().id()).unwrap();
                    let _ = wait.recv();
                };
                run(Box::new(job)).unwrap();
                go_on
            })
            .collect();
        let threads = said.iter().take(jobs).collect();
        drop(waits);
        threads
    }

    #[test]
    fn threads_are_used_again() {
        let mut seen = HashSet::new();
        for _ in 0..40 {
            seen.extend(threads_of(2));
            thread::sleep(std::time::Duration::from_millis(5)); // until they wait
        }
        assert!(seen.len() < 40, "{} threads for 80 jobs", seen.len());
    }

    #[test]
    fn jobs_never_wait_for_each_other() {
        assert_eq!(threads_of(9).len(), 9);
    }

    #[test]
    fn a_job_that_panics_takes_only_its_thread_with_it() {
        let (say, said) = channel();
        run(Box::new(|| std::panic::resume_unwind(Box::new("a job of the test")))).unwrap();
        run(Box::new(move || say.send(7).unwrap())).unwrap();
        assert_eq!(said.recv(), Ok(7));
    }
}
