//! [`ChunkIndex`]: the chunk of a position in the original segment, and the bytes of that chunk in the object.
//!
//! ```text
//! {"type":"fixed",    "originalChunkSize":n, "originalFileSize":n, "transformedChunkSize":n, "finalTransformedChunkSize":n}
//! {"type":"variable", "originalChunkSize":n, "originalFileSize":n, "transformedChunks":"<base64 of a zstd frame>"}
//! ```
//!
//! There are ceil(`originalFileSize` / `originalChunkSize`) chunks, and none for an empty file. The decompressed
//! `transformedChunks` are, in big-endian order:
//!
//! | field | type | |
//! |---|---|---|
//! | count | u32 | number of chunks; nothing follows 0 |
//! | base | u32 | only with 2 or more chunks: the smallest size except for the last chunk |
//! | bytes per value | u8 | only with 2 or more chunks: 1 to 4 |
//! | values | (count − 1) × bytes per value | sizes minus the base, except for the last chunk |
//! | last | u32 | size of the last chunk |
//!
//! Source: `FixedSizeChunkIndex`, `VariableSizeChunkIndex` and `ChunkSizesBinaryCodec` of the plugin.

use std::ops::Range;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::json::{JsonObject, invalid};
use crate::compression::{StreamFault, decompress_bounded};
use crate::error::Result;
use crate::format::cursor::Cursor;
use crate::num::{u64_of, usize_from_u64};

/// Most bytes that the plugin accepts for the decompressed sizes of chunks.
const MAX_SIZES_LEN: usize = 10 << 20;
/// Largest size of a chunk: a Java `int`.
const MAX_CHUNK_LEN: u32 = 0x7fff_ffff;

/// A chunk of a segment.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Chunk {
    /// Number of the chunk, from 0.
    pub number: u32,
    /// Bytes of the original segment.
    pub original: Range<u64>,
    /// Bytes of the `.log` object.
    pub transformed: Range<u64>,
}

impl Chunk {
    /// Number of original bytes.
    #[must_use]
    pub fn original_len(&self) -> u64 {
        self.original.end.saturating_sub(self.original.start)
    }

    /// Number of bytes in the object.
    #[must_use]
    pub fn transformed_len(&self) -> u64 {
        self.transformed.end.saturating_sub(self.transformed.start)
    }
}

/// The chunks of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkIndex {
    /// Original bytes per chunk, at least 1. The last chunk may have fewer.
    chunk_len: u32,
    /// Original bytes of all chunks.
    original_len: u32,
    sizes: Sizes,
}

/// Sizes of chunks in the object.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Sizes {
    Fixed {
        chunk: u32,
        last: u32,
    },
    /// The end of each chunk.
    Variable(Vec<u64>),
}

impl ChunkIndex {
    /// Parses the member `chunkIndex` of a manifest.
    pub(super) fn parse(index: &JsonObject<'_>) -> Result<Self> {
        let (chunk_len, original_len) = (index.size("originalChunkSize")?, index.size("originalFileSize")?);
        if chunk_len == 0 {
            return Err(invalid("chunkIndex.originalChunkSize is 0: expected at least 1"));
        }
        let sizes = match index.text("type")? {
            "fixed" => Sizes::Fixed {
                chunk: index.size("transformedChunkSize")?,
                last: index.size("finalTransformedChunkSize")?,
            },
            "variable" => {
                let ends = decode_sizes(index.text("transformedChunks")?, original_len.div_ceil(chunk_len))?;
                Sizes::Variable(ends)
            }
            other => {
                return Err(invalid(format!("chunkIndex.type is {other:?}: kbat reads \"fixed\" and \"variable\"")));
            }
        };
        Ok(Self { chunk_len, original_len, sizes })
    }

    /// Number of bytes of the original segment.
    #[must_use]
    pub fn original_len(&self) -> u64 {
        u64::from(self.original_len)
    }

    /// Number of bytes of the object.
    #[must_use]
    pub fn transformed_len(&self) -> u64 {
        let last = self.chunk_count().checked_sub(1).and_then(|last| self.chunk(last));
        last.map_or(0, |last| last.transformed.end)
    }

    /// Number of chunks.
    #[must_use]
    pub fn chunk_count(&self) -> u32 {
        self.original_len.div_ceil(self.chunk_len.max(1))
    }

    /// Returns a chunk by its number, or `None` if there are fewer.
    #[must_use]
    pub fn chunk(&self, number: u32) -> Option<Chunk> {
        let last = self.chunk_count().checked_sub(1).filter(|last| number <= *last)?;
        let start = u64::from(number).checked_mul(u64::from(self.chunk_len))?;
        let end = start.checked_add(u64::from(self.chunk_len))?.min(u64::from(self.original_len));
        let transformed = match &self.sizes {
            Sizes::Fixed { chunk, last: last_len } => {
                let start = u64::from(number).checked_mul(u64::from(*chunk))?;
                start..start.checked_add(u64::from(if number == last { *last_len } else { *chunk }))?
            }
            Sizes::Variable(ends) => {
                let number = usize_from_u64(u64::from(number));
                let start = number.checked_sub(1).map_or(Some(0), |before| ends.get(before).copied())?;
                start..*ends.get(number)?
            }
        };
        Some(Chunk { number, original: start..end, transformed })
    }

    /// Returns the chunk that contains a position of the original segment, or `None` at or after its end.
    #[must_use]
    pub fn chunk_at(&self, position: u64) -> Option<Chunk> {
        let number = u32::try_from(position.checked_div(u64::from(self.chunk_len))?).ok()?;
        self.chunk(number).filter(|chunk| position < chunk.original.end)
    }

    /// Checks the sizes of chunks that are not compressed: each has `overhead` more bytes than its original.
    pub(super) fn check_overhead(&self, overhead: u32) -> Result<()> {
        let wrong = match &self.sizes {
            // all chunks but the last are equal
            Sizes::Fixed { .. } => [0, self.chunk_count().saturating_sub(1)]
                .into_iter()
                .find_map(|number| self.chunk(number).filter(|chunk| !has_overhead(chunk, overhead))),
            Sizes::Variable(_) => (0..self.chunk_count())
                .filter_map(|number| self.chunk(number))
                .find(|chunk| !has_overhead(chunk, overhead)),
        };
        let Some(chunk) = wrong else { return Ok(()) };
        Err(invalid(format!(
            "chunk {} has {} bytes according to chunkIndex, but {} of the segment, which is not compressed: expected {}",
            chunk.number,
            chunk.transformed_len(),
            chunk.original_len(),
            chunk.original_len().saturating_add(u64::from(overhead))
        )))
    }
}

fn has_overhead(chunk: &Chunk, overhead: u32) -> bool {
    chunk.original_len().checked_add(u64::from(overhead)) == Some(chunk.transformed_len())
}

/// Decodes `transformedChunks` to the end of each chunk.
fn decode_sizes(text: &str, expected_count: u32) -> Result<Vec<u64>> {
    let wrong = |what: &str| invalid(format!("chunkIndex.transformedChunks {what}"));
    let frame = STANDARD.decode(text).map_err(|error| wrong(&format!("is not base64: {error}")))?;
    let bytes = decompress_bounded(&frame, MAX_SIZES_LEN).map_err(|fault| match fault {
        StreamFault::Full => wrong(&format!("has more than {MAX_SIZES_LEN} bytes after decompression")),
        StreamFault::Invalid(message) => wrong(&format!("is not a zstd frame: {message}")),
    })?;
    let mut cursor = Cursor::new(&bytes, 0);
    let truncated = || wrong("ends before the last size");
    let count = cursor.u32("count").map_err(|_| truncated())?;
    if count != expected_count {
        return Err(wrong(&format!(
            "declares a chunk count of {count}, but originalFileSize and originalChunkSize make it {expected_count}"
        )));
    }
    let mut ends = ChunkEnds::default();
    if let Some(others) = count.checked_sub(1) {
        if others > 0 {
            let base = cursor.u32("base").map_err(|_| truncated())?;
            let value_len = cursor.u8("bytes per value").map_err(|_| truncated())?;
            if !(1..=4).contains(&value_len) {
                return Err(wrong(&format!("declares {value_len} as the length of a size: expected 1 to 4 bytes")));
            }
            for _ in 0..others {
                let value = cursor.bytes(u32::from(value_len), "value").map_err(|_| truncated())?;
                let value = value.iter().fold(0_u64, |value, byte| (value << 8) | u64::from(*byte));
                ends.push(value.saturating_add(u64::from(base)))?;
            }
        }
        ends.push(u64::from(cursor.u32("last").map_err(|_| truncated())?))?;
    }
    let rest = u64_of(bytes.len()).saturating_sub(cursor.position());
    if rest == 0 { Ok(ends.0) } else { Err(wrong(&format!("has unexpected bytes after the last size: {rest}"))) }
}

/// Adds up sizes.
#[derive(Default)]
struct ChunkEnds(Vec<u64>);

impl ChunkEnds {
    fn push(&mut self, size: u64) -> Result<()> {
        if size > u64::from(MAX_CHUNK_LEN) {
            let number = self.0.len();
            return Err(invalid(format!(
                "chunk {number} has {size} bytes according to chunkIndex: expected at most {MAX_CHUNK_LEN}"
            )));
        }
        let start = self.0.last().copied().unwrap_or(0);
        self.0.push(start.saturating_add(size));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compression::{Compression, compress};
    use serde_json::{Value, json};

    fn parse(value: &Value) -> Result<ChunkIndex> {
        ChunkIndex::parse(&JsonObject::new(value, "chunkIndex.").unwrap())
    }

    fn variable(chunk_len: u64, len: u64, sizes: &[u8]) -> Value {
        let mut frame = Vec::new();
        compress(Compression::Zstd, None, 2, sizes, &mut frame).unwrap();
        json!({"type": "variable", "originalChunkSize": chunk_len, "originalFileSize": len,
               "transformedChunks": STANDARD.encode(frame)})
    }

    fn fixed(chunk_len: i64, len: i64, transformed: i64, last: i64) -> Value {
        json!({"type": "fixed", "originalChunkSize": chunk_len, "originalFileSize": len,
               "transformedChunkSize": transformed, "finalTransformedChunkSize": last})
    }

    /// The example of the format's description, written by the plugin.
    #[test]
    fn variable_sizes_of_the_plugin_are_read() {
        let text = "KLUv/SAzmQEAAAAAFAAABN0CA6MFDAO6AIwANQGbAA4AEQAQAmkB+gASAAgAMwPCABAAEgAAAHIAAAa+";
        let index = json!({"type": "variable", "originalChunkSize": 4096, "originalFileSize": 80980,
                           "transformedChunks": text});
        let index = parse(&index).unwrap();
        let sizes: Vec<u64> = (0..20).map(|number| index.chunk(number).unwrap().transformed_len()).collect();
        assert_eq!(
            sizes,
            [
                2176, 2537, 2199, 1385, 1298, 1656, 1259, 1262, 1261, 1862, 1751, 1263, 1253, 1296, 2207, 1261, 1263,
                1245, 1359, 1726
            ]
        );
        assert_eq!(index.transformed_len(), sizes.iter().sum::<u64>());
        let second = index.chunk_at(8191).unwrap();
        assert_eq!((second.number, second.original, second.transformed), (1, 4096..8192, 2176..4713));
        let last = index.chunk_at(80979).unwrap();
        assert_eq!((last.number, last.original), (19, 77824..80980));
        assert_eq!(index.chunk_at(80980), None);
        assert_eq!(index.chunk_at(u64::MAX), None);
    }

    #[test]
    fn fixed_sizes_are_multiplied() {
        let index = parse(&fixed(4096, 5000, 4124, 932)).unwrap();
        assert_eq!((index.chunk_count(), index.original_len(), index.transformed_len()), (2, 5000, 5056));
        assert_eq!(index.chunk(1).unwrap().transformed, 4124..5056);
        assert_eq!(index.chunk(2), None);
        index.check_overhead(28).unwrap();
        let error = index.check_overhead(0).unwrap_err().to_string();
        assert!(error.contains("chunk 0"), "{error}");
        let error = parse(&fixed(4096, 5000, 4124, 933)).unwrap().check_overhead(28).unwrap_err().to_string();
        assert!(error.contains("chunk 1 has 933 bytes"), "{error}");
    }

    #[test]
    fn empty_file_has_no_chunks() {
        let index = parse(&fixed(4096, 0, 4096, 4096)).unwrap();
        assert_eq!((index.chunk_count(), index.transformed_len(), index.chunk_at(0)), (0, 0, None));
        index.check_overhead(0).unwrap();
        assert_eq!(parse(&variable(4096, 0, &[0; 4])).unwrap().chunk_count(), 0);
    }

    #[test]
    fn single_size_has_the_short_form() {
        let index = parse(&variable(4096, 100, &[0, 0, 0, 1, 0, 0, 1, 0xf9])).unwrap();
        assert_eq!(index.chunk(0).unwrap().transformed, 0..505);
    }

    #[test]
    fn sizes_that_are_not_ints_are_refused() {
        for (chunk_len, len, transformed, last) in [
            (0, 1, 1, 1),
            (-1, 1, 1, 1),
            (1, -1, 1, 1),
            (1, 1, -1, 1),
            (1, 1, 1, -1),
            (1 << 31, 1, 1, 1),
            (1, 1 << 31, 1, 1),
            (1, 1, 1 << 31, 1),
            (1, 1, 1, 1 << 31),
        ] {
            let error = parse(&fixed(chunk_len, len, transformed, last)).unwrap_err().to_string();
            assert!(error.contains("expected"), "{error}");
        }
        let missing = json!({"type": "fixed", "originalChunkSize": 1});
        assert!(parse(&missing).unwrap_err().to_string().contains("chunkIndex.originalFileSize is missing"));
        let float = json!({"type": "fixed", "originalChunkSize": 1.5, "originalFileSize": 1});
        assert!(parse(&float).is_err());
    }

    #[test]
    fn variable_sizes_that_lie_are_refused() {
        let cases: [(&[u8], &str); 9] = [
            (&[], "ends before"),
            (&[0, 0, 0, 3], "count of 3"),
            (&[0, 0, 0, 1, 0, 0, 0, 1], "count of 1"),
            (&[0xff, 0xff, 0xff, 0xff], "count of 4294967295"),
            (&[0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 1], "declares 0"),
            (&[0, 0, 0, 2, 0, 0, 0, 1, 5, 0, 0, 0, 1], "declares 5"),
            (&[0, 0, 0, 2, 0, 0, 0, 1, 1, 0, 0, 0, 0], "ends before"),
            (&[0, 0, 0, 2, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 9], "last size: 1"),
            (&[0, 0, 0, 2, 0x7f, 0xff, 0xff, 0xff, 1, 1, 0, 0, 0, 1], "2147483648 bytes"),
        ];
        for (sizes, expected) in cases {
            let error = parse(&variable(4096, 8192, sizes)).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}: {expected}");
        }
        let bomb = vec![0; MAX_SIZES_LEN.saturating_add(1)];
        let error = parse(&variable(4096, 8192, &bomb)).unwrap_err().to_string();
        assert!(error.contains("more than 10485760 bytes"), "{error}");
        let text = json!({"type": "variable", "originalChunkSize": 1, "originalFileSize": 1, "transformedChunks": "%"});
        assert!(parse(&text).unwrap_err().to_string().contains("base64"));
        let text =
            json!({"type": "variable", "originalChunkSize": 1, "originalFileSize": 1, "transformedChunks": "AAAA"});
        assert!(parse(&text).unwrap_err().to_string().contains("zstd"));
        assert!(parse(&json!({"type": "other", "originalChunkSize": 1, "originalFileSize": 1})).is_err());
    }
}
