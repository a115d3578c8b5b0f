//! Prefetching the next batch while the current one is decoded.
//!
//! A checksum reads a batch at the speed of memory. Decoding it afterwards works in the processor's cache and leaves
//! memory idle. Prefetching the next batch during that time decodes columns of 16 KB batches 1.14 to 1.2 times as fast.
//! A prefetch is only a hint: the addresses are not read and may be invalid.

use prefetch_index::prefetch_index;

/// Bytes of a cache line.
const LINE_LEN: usize = 64;

/// Larger batches are not prefetched, because they evict each other from the cache. The limit is lower for compressed
/// ones, which also need cache for their decompressed records.
const LARGEST: usize = 2 << 20;
const LARGEST_COMPRESSED: usize = 64 << 10;

/// The prefetch distance in a batch of `size` bytes: its size, or 0 for no prefetching.
#[inline]
pub(crate) fn prefetch_distance(size: usize, is_compressed: bool) -> usize {
    let largest = if is_compressed { LARGEST_COMPRESSED } else { LARGEST };
    if size > largest { 0 } else { size }
}

/// Prefetches `len` bytes that begin `distance` after the start of `bytes`, unless `distance` is 0.
#[inline]
pub(crate) fn prefetch(bytes: &[u8], distance: usize, len: usize) {
    if distance > 0 {
        for line in (0..len).step_by(LINE_LEN) {
            prefetch_index(bytes, distance.wrapping_add(line));
        }
    }
}
