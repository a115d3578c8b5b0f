//! Tools that check a log, or make one log from another.

pub(crate) mod repair;
pub(crate) mod restore;
pub(crate) mod rewrite;
