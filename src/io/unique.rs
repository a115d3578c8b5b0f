//! Names that no other run uses, and the error for a target that is in use.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use crate::error::Error;

/// Distinguishes the names of one process.
static COUNTER: AtomicU64 = AtomicU64::new(0);

/// A part of a name that no other running process of this machine uses.
pub(crate) fn own_name() -> String {
    format!("{}-{}", std::process::id(), COUNTER.fetch_add(1, Ordering::Relaxed))
}

/// Whether a part of a name is one that [`own_name`] returns.
pub(crate) fn is_own_name(part: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    part.split_once('-').is_some_and(|(process, number)| is_number(process) && is_number(number))
}

/// A part of a name that no process uses or used, on any machine.
pub(crate) fn unique_name() -> String {
    format!("{}-{}", own_name(), UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos())
}

/// The error for an output file that exists.
pub(crate) fn file_exists() -> Error {
    Error::argument("the output file exists: name one that does not exist yet")
}

/// The error for an output directory that is not empty.
pub(crate) fn not_empty() -> Error {
    Error::argument("the output directory is not empty: name one that does not exist yet")
}
