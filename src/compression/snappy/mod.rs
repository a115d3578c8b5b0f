//! Snappy: a raw block, or chunks in the framing of xerial's snappy-java.
//!
//! ```text
//! magic            8 bytes  82 'SNAPPY' 00
//! version          i32 BE   1; some clients wrote it little-endian; ignored
//! min compatible   i32 BE   1; ignored too
//! chunks           i32 BE length, a raw block; a length equal to the magic's first four bytes is a further header
//! ```
//!
//! Follows `SnappyInputStream`: input that does not begin with a whole header is one raw block; fewer than four bytes
//! at the end are ignored; empty input is an error. A chunk that fails also discards the output that Java decodes in
//! the same step. A further header with another magic is skipped, or ends the stream if it is at the start of a step.

mod block;

use snap::raw::Encoder;

use crate::compression::{Codec, Output, StreamFault};
use crate::num::usize_of;
use crate::slices::Slices;
use crate::wire::varint::read_unsigned_varint;

const MAGIC: [u8; 8] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0];
const HEADER_LEN: usize = 16;
const WRITTEN_HEADER: [u8; HEADER_LEN] = [0x82, b'S', b'N', b'A', b'P', b'P', b'Y', 0, 0, 0, 0, 1, 0, 0, 0, 1];
const WRITTEN_CHUNK_LEN: usize = 32 << 10;
/// Bytes that Kafka reads in one step. The output of a step that fails is lost.
const STEP_LEN: usize = 2 << 10;
/// The magic's first four bytes, read as a chunk length.
const FURTHER_HEADER: i32 = i32::from_be_bytes([0x82, b'S', b'N', b'A']);
/// A copy element of three bytes produces at most 64 bytes.
const MAX_RATIO: usize = 22;

/// The codec. It keeps no memory.
#[derive(Default)]
pub(crate) struct Snappy;

impl Codec for Snappy {
    fn decompress(&mut self, _magic: u8, input: &[u8], output: &mut Output<'_>) -> Result<(), StreamFault> {
        decompress(input, output)
    }

    fn compress(_magic: u8, _level: i32, input: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        compress(input, out)
    }
}

/// Decompresses either form.
fn decompress(input: &[u8], output: &mut Output<'_>) -> Result<(), StreamFault> {
    if input.is_empty() {
        return Err(StreamFault::invalid("empty input"));
    }
    match input.split_at_checked(HEADER_LEN) {
        Some((header, chunks)) if header.starts_with(&MAGIC) => {
            let mut steps = Steps::default();
            let result = decompress_chunks(chunks, output, &mut steps);
            if let Err(StreamFault::Invalid(_)) = result {
                output.truncate(output.filled().saturating_sub(steps.begun(output.filled())));
            }
            result
        }
        _ => decompress_block(input, output),
    }
}

/// The steps in which Kafka reads: a step begins where the last one filled its buffer or ended early.
#[derive(Default)]
struct Steps {
    /// Start of the first step after the last one that ended early.
    start: usize,
}

impl Steps {
    /// Bytes of the current step after `filled` bytes of output.
    fn begun(&self, filled: usize) -> usize {
        filled.saturating_sub(self.start) % STEP_LEN
    }
}

fn decompress_chunks(mut input: &[u8], output: &mut Output<'_>, steps: &mut Steps) -> Result<(), StreamFault> {
    while let Some((len, rest)) = input.split_first_chunk::<4>() {
        let len = i32::from_be_bytes(*len);
        if len == FURTHER_HEADER {
            let (header, rest) = rest.split_first_chunk::<12>().ok_or_else(broken_header)?;
            if !is_further_header(header)? {
                if steps.begun(output.filled()) == 0 {
                    return Ok(());
                }
                steps.start = output.filled();
            }
            input = rest;
            continue;
        }
        let chunk = u32::try_from(len).ok().and_then(|len| rest.split_at_checked(usize_of(len)));
        let Some((chunk, rest)) = chunk else {
            let message = format!("a chunk declares {len} bytes, but only {} remain", rest.len());
            return Err(StreamFault::invalid(message));
        };
        decompress_block(chunk, output)?;
        input = rest;
    }
    Ok(())
}

fn broken_header() -> StreamFault {
    StreamFault::invalid("broken header between chunks")
}

/// Whether the bytes after the magic's first four form a header. Its version must be 1 or more; a little-endian 1 reads
/// as 16777216.
fn is_further_header(after_magic_start: &[u8; 12]) -> Result<bool, StreamFault> {
    let [m0, m1, m2, m3, v0, v1, v2, v3, ..] = *after_magic_start;
    if MAGIC.last_chunk::<4>().is_none_or(|end| *end != [m0, m1, m2, m3]) {
        return Ok(false);
    }
    if i32::from_be_bytes([v0, v1, v2, v3]) < 1 { Err(broken_header()) } else { Ok(true) }
}

fn decompress_block(block: &[u8], output: &mut Output<'_>) -> Result<(), StreamFault> {
    let mut elements = block;
    let len = read_unsigned_varint(&mut elements).map_err(|_| StreamFault::invalid("the block length is invalid"))?;
    let len = usize_of(len);
    if len > block.len().saturating_mul(MAX_RATIO) {
        return Err(StreamFault::invalid(format!("{} bytes can't decompress to {len}", block.len())));
    }
    if output.left() < len {
        return Err(StreamFault::Full);
    }
    let input = len.saturating_add(block::SLACK);
    let wanted = input.saturating_add(elements.len()).saturating_add(block::SLACK);
    let buffer = output.workspace(wanted);
    if let Some(place) = buffer.get_mut(input..).and_then(|rest| rest.get_mut(..elements.len())) {
        place.copy_from_slice(elements);
    }
    block::decompress(buffer, len, elements.len()).map_err(|block::Invalid| StreamFault::invalid("corrupt block"))?;
    output.commit(len);
    Ok(())
}

/// Appends `input` as the Java client does: xerial framing, chunks of 32 KiB.
fn compress(input: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    out.extend_from_slice(&WRITTEN_HEADER);
    let mut encoder = Encoder::new();
    for chunk in input.chunks(WRITTEN_CHUNK_LEN) {
        let start = out.len();
        let body = start.saturating_add(4);
        out.resize(body.saturating_add(snap::raw::max_compress_len(chunk.len())), 0);
        let room = out.part_mut(body..);
        let len = encoder.compress(chunk, room).map_err(|error| error.to_string())?;
        out.truncate(body.saturating_add(len));
        let len = u32::try_from(len).map_err(|error| error.to_string())?;
        if let Some(place) = out.get_mut(start..body) {
            place.copy_from_slice(&len.to_be_bytes());
        }
    }
    Ok(())
}
