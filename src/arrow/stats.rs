//! [`ScanStats`]: counts of a scan.

/// Counts of the batches and bytes that a scan has read and lost so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScanStats {
    /// Batches whose records were returned.
    pub batches: u64,
    /// Rows returned, without the rows of errors.
    pub records: u64,
    /// Bytes read from files. For buffers, the bytes of the batches read or skipped.
    pub bytes_read: u64,
    /// Damaged batches skipped. A range of bytes without a recognizable batch counts as one.
    pub batches_skipped: u64,
    /// Bytes of the skipped batches, and of an incomplete batch at the end, which [`OnCorrupt::Fail`] accepts too.
    ///
    /// [`OnCorrupt::Fail`]: crate::arrow::OnCorrupt::Fail
    pub bytes_lost: u64,
    /// Offsets between the last good batch and the next one, including offsets that compaction had already removed.
    /// Offsets lost at the end of a segment are counted only if a next segment exists.
    pub offsets_lost: u64,
    /// Segments that retention deleted after the log was listed, so that their records were not read.
    pub segments_deleted: u64,
    /// Segments, or parts of them, with offsets of the next segment, so that records may have been returned twice.
    pub segments_overlapping: u64,
}

impl ScanStats {
    /// The sum of two scans.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        Self {
            batches: self.batches.saturating_add(other.batches),
            records: self.records.saturating_add(other.records),
            bytes_read: self.bytes_read.saturating_add(other.bytes_read),
            batches_skipped: self.batches_skipped.saturating_add(other.batches_skipped),
            bytes_lost: self.bytes_lost.saturating_add(other.bytes_lost),
            offsets_lost: self.offsets_lost.saturating_add(other.offsets_lost),
            segments_deleted: self.segments_deleted.saturating_add(other.segments_deleted),
            segments_overlapping: self.segments_overlapping.saturating_add(other.segments_overlapping),
        }
    }
}
