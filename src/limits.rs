//! Bounds on the memory and work that untrusted input may cost.

const MIB: usize = 1 << 20;

/// Bounds on untrusted input. The defaults suit brokers with a `message.max.bytes` of up to 100 MB: a batch may have
/// 128 MiB, and its records 1 GiB after decompression.
///
/// ```
/// let limits = kbat::Limits { decompressed_len: 4 << 30, ratio: 10_000, ..kbat::Limits::default() };
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Limits {
    /// Maximum bytes of one batch, including its 12 bytes of log overhead. A batch of a file is held in memory as a
    /// whole. [`batches`](crate::batches) applies this bound only after [`with_limits`](crate::Batches::with_limits),
    /// because a buffer is in memory already. Default 128 MiB.
    pub batch_len: usize,
    /// Maximum bytes of one batch's records after decompression, whatever the compressed size is. Default 1 GiB.
    pub decompressed_len: usize,
    /// Maximum ratio of decompressed to compressed bytes, applied above [`Limits::ratio_free_len`]. Default 1000.
    pub ratio: usize,
    /// [`Limits::ratio`] does not apply up to this many decompressed bytes, because legitimate data can compress
    /// ten-thousandfold (a megabyte of equal bytes). Default 128 MiB.
    pub ratio_free_len: usize,
    /// Maximum records of one batch: of the declared count, or of the most that its bytes can hold if that is less.
    /// Kafka's own bound is 2³¹ − 1; the default is 200 million.
    pub record_count: usize,
    /// Maximum headers of one record. Default 16,777,216.
    pub header_count: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            batch_len: 128 * MIB,
            decompressed_len: 1024 * MIB,
            ratio: 1000,
            ratio_free_len: 128 * MIB,
            record_count: 200_000_000,
            header_count: 16 * MIB,
        }
    }
}

impl Limits {
    /// The largest output that `compressed` bytes may have, and the name of the bound that sets it.
    pub(crate) fn decompressed(&self, compressed: usize) -> (usize, &'static str) {
        let by_ratio = compressed.saturating_mul(self.ratio).max(self.ratio_free_len);
        if by_ratio < self.decompressed_len { (by_ratio, "ratio") } else { (self.decompressed_len, "decompressed_len") }
    }
}
