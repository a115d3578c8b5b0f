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
