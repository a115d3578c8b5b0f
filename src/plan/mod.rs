//! From what a caller names to what is read: which partitions, which segments, which of several replicas.

mod discover;

pub use discover::{Discovery, Replicas, Selection, discover, find_segments};
