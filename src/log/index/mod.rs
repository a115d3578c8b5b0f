//! The index files beside a segment.

mod transaction;

pub use transaction::AbortedTransaction;
