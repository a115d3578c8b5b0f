//! What a pass read and lost.

/// What a pass read and lost so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScanStats {
    /// Batches whose records were given.
    pub batches: u64,
    /// Rows given, those of errors not counted.
    pub records: u64,
    /// Bytes read from files; of buffers, bytes of the batches walked over.
    pub bytes_read: u64,
    /// Faults passed over: damaged batches, or stretches of bytes in which no batch could be found.
    pub batches_skipped: u64,
    /// Bytes of them, with those of cut batches at the ends of files.
    pub bytes_lost: u64,
    /// Offsets of them: from the offset after the last good batch up to that of the next one. Those that compaction had removed
    /// there count too. What a file lost at its end counts where the next segment is scanned too.
    pub offsets_lost: u64,
}

impl ScanStats {
    /// What two passes read and lost together.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self {
            batches: self.batches.saturating_add(other.batches),
            records: self.records.saturating_add(other.records),
            bytes_read: self.bytes_read.saturating_add(other.bytes_read),
            batches_skipped: self.batches_skipped.saturating_add(other.batches_skipped),
            bytes_lost: self.bytes_lost.saturating_add(other.bytes_lost),
            offsets_lost: self.offsets_lost.saturating_add(other.offsets_lost),
        }
    }
}
