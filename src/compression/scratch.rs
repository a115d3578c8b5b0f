//! The caller's buffers for decompression, and the codecs' contexts.

use crate::compression::{CodecFault, Compression, Decoders, Output, Payload, StreamFault};
use crate::limits::Limits;
use crate::slices::Slices;

/// Buffers and codec contexts, reused for every batch. Use one per thread; it grows to the largest batch it has
/// decompressed.
///
/// ```
/// # fn main() -> kbat::Result<()> {
/// # let bytes: &[u8] = &[];
/// let mut scratch = kbat::Scratch::new();
/// for batch in kbat::batches(bytes) {
///     for record in batch?.records(&mut scratch, &kbat::Limits::default())? {
///         println!("{}", record?.offset());
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Default)]
pub struct Scratch {
    buffer: Vec<u8>,
    decoders: Decoders,
}

impl Scratch {
    /// Creates a scratch, which allocates on first use.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes of the buffer for decompressed records.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.buffer.capacity()
    }

    /// Frees memory beyond `len` bytes.
    pub fn shrink_to(&mut self, len: usize) {
        if self.buffer.len() > len {
            self.buffer.truncate(len);
            self.buffer.shrink_to_fit();
        }
    }

    /// The first `len` bytes of the last decompression: the buffer itself if they fill much of it and are more than
    /// `kept` bytes, otherwise a copy. The scratch keeps at most `kept` bytes.
    pub(crate) fn take(&mut self, len: usize, kept: usize) -> Vec<u8> {
        let bytes = if len > kept && len >= self.buffer.len() / 2 {
            self.buffer.truncate(len);
            std::mem::take(&mut self.buffer)
        } else {
            self.buffer.part(..len).to_vec()
        };
        self.shrink_to(kept);
        bytes
    }

    /// Decompresses `input` from a batch of that magic.
    pub(crate) fn decompress<'s>(
        &'s mut self,
        compression: Compression,
        magic: u8,
        input: &'s [u8],
        limits: &Limits,
    ) -> Payload<'s> {
        if compression == Compression::None {
            return Payload::borrowed(input);
        }
        if !compression.is_built() {
            return Payload { bytes: &[], fault: Some(Box::new(CodecFault::NotBuilt(compression))) };
        }
        let (limit, limit_name) = limits.decompressed(input.len());
        let mut output = Output::new(&mut self.buffer, limit);
        let result = self.decoders.decompress(compression, magic, input, &mut output);
        let filled = output.filled();
        let fault = result.err().map(|fault| {
            Box::new(match fault {
                StreamFault::Invalid(message) => CodecFault::Refused(compression, message),
                StreamFault::Full => CodecFault::Limit { name: limit_name, limit },
            })
        });
        Payload { bytes: self.buffer.part(..filled), fault }
    }
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scratch").field("capacity", &self.capacity()).finish_non_exhaustive()
    }
}
