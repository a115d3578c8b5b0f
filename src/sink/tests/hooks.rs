//! Ends a commit in front of any of its steps, does something else there, or turns locks off, as on another machine.

use std::cell::{Cell, RefCell};
use std::io;

type Hook = Box<dyn FnMut(&str) -> io::Result<()>>;

thread_local! {
    static HOOK: RefCell<Option<Hook>> = const { RefCell::new(None) };
    static HAS_LOCKS: Cell<bool> = const { Cell::new(true) };
}

/// Calls the hook of this thread, unless it is running.
pub(in crate::sink) fn step(name: &str) -> io::Result<()> {
    let Some(mut hook) = HOOK.take() else { return Ok(()) };
    let result = hook(name);
    HOOK.set(Some(hook));
    result
}

pub(in crate::sink) fn has_locks() -> bool {
    HAS_LOCKS.get()
}

/// Calls `hook` before every step of `run`.
pub(super) fn hooked<R>(hook: impl FnMut(&str) -> io::Result<()> + 'static, run: impl FnOnce() -> R) -> R {
    let outer = HOOK.replace(Some(Box::new(hook)));
    let result = run();
    HOOK.set(outer);
    result
}

/// Runs as on a machine that does not see the locks of others.
pub(super) fn without_locks<R>(run: impl FnOnce() -> R) -> R {
    HAS_LOCKS.set(false);
    let result = run();
    HAS_LOCKS.set(true);
    result
}

/// Fails from the step with this number on, as a driver that dies takes no further step.
pub(super) fn death_at(number: usize) -> impl FnMut(&str) -> io::Result<()> {
    let mut left = number;
    move |_| match left.checked_sub(1) {
        Some(fewer) => {
            left = fewer;
            Ok(())
        }
        None => Err(io::Error::other("the driver died")),
    }
}

/// Does something before the first step of this name.
pub(super) fn once_before(name: &'static str, action: impl FnOnce() + 'static) -> impl FnMut(&str) -> io::Result<()> {
    let mut action = Some(action);
    move |step| {
        if step == name
            && let Some(action) = action.take()
        {
            action();
        }
        Ok(())
    }
}
