//! Selects what to read: expands the locations of a caller to partitions, segments, and one of several replicas.

mod discover;

pub use discover::{Discovery, Replicas, Selection, discover, find_segments};
