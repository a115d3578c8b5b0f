//! [`DecodedChunks`]: the chunks that were decoded last.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Most bytes to keep. With the recommended chunks of 4 MiB, a batch on the border of two chunks needs both.
const MAX_LEN: usize = 8 << 20;

/// Decoded chunks by number. Keeps at least the last one, however large.
#[derive(Debug, Default)]
pub(super) struct DecodedChunks {
    /// The chunk that was used last is at the back.
    chunks: Mutex<VecDeque<(u32, Arc<Vec<u8>>)>>,
}

impl DecodedChunks {
    /// Returns a chunk.
    pub(super) fn find(&self, number: u32) -> Option<Arc<Vec<u8>>> {
        let mut chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        let place = chunks.iter().position(|(known, _)| *known == number)?;
        let found = chunks.remove(place)?;
        let bytes = Arc::clone(&found.1);
        chunks.push_back(found);
        Some(bytes)
    }

    /// Whether a chunk is present.
    pub(super) fn contains(&self, number: u32) -> bool {
        let chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        chunks.iter().any(|(known, _)| *known == number)
    }

    /// Adds a chunk, and removes the ones that were used least recently.
    pub(super) fn insert(&self, number: u32, chunk: Arc<Vec<u8>>) {
        let mut chunks = self.chunks.lock().unwrap_or_else(PoisonError::into_inner);
        // another thread may have decoded it too
        chunks.retain(|(known, _)| *known != number);
        let mut len = chunks.iter().fold(chunk.len(), |len, (_, other)| len.saturating_add(other.len()));
        while len > MAX_LEN {
            let Some((_, oldest)) = chunks.pop_front() else { break };
            len = len.saturating_sub(oldest.len());
        }
        chunks.push_back((number, chunk));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_recently_used_chunks_are_removed() {
        let cache = DecodedChunks::default();
        for number in 0..3 {
            cache.insert(number, Arc::new(vec![0; MAX_LEN / 3]));
        }
        assert!(cache.find(0).is_some());
        cache.insert(3, Arc::new(vec![0; MAX_LEN / 3]));
        let kept: Vec<u32> = (0..5).filter(|number| cache.contains(*number)).collect();
        assert_eq!(kept, [0, 2, 3]);
        cache.insert(4, Arc::new(vec![0; MAX_LEN * 2]));
        assert_eq!(cache.find(4).unwrap().len(), MAX_LEN * 2);
        assert!(!cache.contains(3));
    }
}
