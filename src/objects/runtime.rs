//! The threads that wait for requests, and waiting for a request with a check for Ctrl-C.

use std::future::Future;
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Mutex, PoisonError};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::task::AbortHandle;

use super::error::was_repeated;
use crate::error::{Error, Result};
use crate::io::waiting::{CHECK_INTERVAL, interrupt};

/// Threads for requests: TLS and copying take most of their time.
const THREADS: usize = 2;

/// The threads, and the process that they belong to. A forked child has none of them.
static RUNTIME: Mutex<Option<(u32, &'static Runtime)>> = Mutex::new(None);

/// The process that opened an object. Its requests belong to its threads, which a forked child does not have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Process(u32);

impl Process {
    pub(super) fn current() -> Self {
        Self(std::process::id())
    }

    /// Fails in a forked child, where requests would wait forever.
    pub(super) fn check(self) -> Result<()> {
        if self.0 == std::process::id() {
            return Ok(());
        }
        Err(forked())
    }
}

/// The error for something of the parent process that a forked child cannot use.
pub(super) fn forked() -> Error {
    Error::argument("this store was opened before a fork: open the URL again in the child process")
}

/// A request that runs in another thread. Dropping it cancels the request.
#[derive(Debug)]
pub(super) struct Running<T> {
    receiver: Mutex<Receiver<T>>,
    task: AbortHandle,
}

impl<T: Send + 'static> Running<T> {
    /// Starts a request.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(super) fn start(request: impl Future<Output = T> + Send + 'static) -> Result<Self> {
        let (sender, receiver) = sync_channel(1);
        let task = handle()?.spawn(async move {
            let _ = sender.send(request.await);
        });
        Ok(Self { receiver: Mutex::new(receiver), task: task.abort_handle() })
    }

    /// Whether the result is here.
    pub(super) fn is_done(&self) -> bool {
        self.task.is_finished()
    }

    /// Waits for the result.
    ///
    /// # Errors
    /// If the user stopped the operation, or the request panicked.
    pub(super) fn wait(self) -> Result<T> {
        let receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match receiver.recv_timeout(CHECK_INTERVAL) {
                Ok(result) => return Ok(result),
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(interrupt) = interrupt() {
                        return Err(interrupt);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Error::from(std::io::Error::other("a request ended without a result")));
                }
            }
        }
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Runs a request and waits for its result.
///
/// # Errors
/// As for [`Running::wait`].
pub(super) fn wait<T: Send + 'static>(request: impl Future<Output = T> + Send + 'static) -> Result<T> {
    Running::start(request)?.wait()
}

fn handle() -> Result<Handle> {
    let process = std::process::id();
    let mut runtime = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((owner, known)) = *runtime
        && owner == process
    {
        return Ok(known.handle().clone());
    }
    let new = Builder::new_multi_thread().worker_threads(THREADS).thread_name("kbat-objects").enable_all().build()?;
    // never dropped: dropping waits for requests, and in a forked child for threads that do not exist
    let new: &'static Runtime = Box::leak(Box::new(new));
    *runtime = Some((process, new));
    Ok(new.handle().clone())
}

/// How often to send a request that `object_store` does not repeat.
const TRIES: u32 = 3;

/// The answer to a request. It is sent again after an error that may pass, such as an answer that ended early.
///
/// # Errors
/// The request can't be sent.
pub(super) fn repeated<T>(
    mut send: impl FnMut() -> Result<object_store::Result<T>>,
) -> Result<object_store::Result<T>> {
    for _ in 1..TRIES {
        match send()? {
            Err(error @ object_store::Error::Generic { .. }) if !was_repeated(&error) => {}
            answer => return Ok(answer),
        }
    }
    send()
}
