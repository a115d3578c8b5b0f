//! The transaction index: which transactions were aborted.

/// A transaction that was aborted after it had written records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AbortedTransaction {
    /// Version of the entry; 0 is the only one.
    pub version: i16,
    /// Whose transaction it was.
    pub producer_id: i64,
    /// Offset of the transaction's first record.
    pub first_offset: i64,
    /// Offset of its ABORT marker.
    pub last_offset: i64,
    /// The last stable offset when the marker was written.
    pub last_stable_offset: i64,
}
