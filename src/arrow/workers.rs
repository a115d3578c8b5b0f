//! Threads that are used again.
//!
//! An allocator gives each new thread memory of its own, which the system has to clear first: starting threads anew for each
//! scan made every other scan twice as slow. A thread that has nothing to do waits a while for the next job and ends.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, TryLockError};
use std::thread;
use std::time::Duration;

/// What a thread does.
pub(crate) type Job = Box<dyn FnOnce() + Send>;

/// How long a thread waits for its next job.
const PATIENCE: Duration = Duration::from_secs(5);

/// Threads that wait, the last one to become idle last.
struct Idle {
    /// The process they belong to: after a fork, the child has none of them.
    process: u32,
    threads: Vec<(u64, SyncSender<Job>)>,
}

/// Number of the next thread.
static NEXT: AtomicU64 = AtomicU64::new(0);

static IDLE: Mutex<Idle> = Mutex::new(Idle { process: 0, threads: Vec::new() });

/// The list, unless somebody else has it; the child of a fork may find it locked for ever.
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

/// Runs a job on a thread that waits, or on a new one.
///
/// # Errors
/// Where no thread waits and the system gives no new one.
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

/// Does one job after the other.
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
            if let Ok(next) = jobs.recv_timeout(PATIENCE) {
                break next;
            }
            // who is not on the list any more was taken in the last moment: a job is on its way
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

    /// The threads that so many jobs ran on, all at the same time.
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
