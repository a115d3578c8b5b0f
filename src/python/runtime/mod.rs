//! Python's interpreter: errors, signals, warnings, callbacks, submodules, and the allocator of the process.

pub(crate) mod allocator;
pub(crate) mod callback;
pub(crate) mod errors;
pub(crate) mod exclusive;
pub(crate) mod fields;
pub(crate) mod interrupt;
pub(crate) mod progress;
pub(crate) mod submodule;
pub(crate) mod warning;
