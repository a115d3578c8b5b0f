//! Arguments that several functions have: sources, locations, times, limits, names.

pub(crate) mod limits;
pub(crate) mod location;
pub(crate) mod names;
pub(crate) mod record;
pub(crate) mod source;
pub(crate) mod time;
