//! LZ4 as Kafka reads and writes it: its own subset of the frame format. Follows `Lz4BlockInputStream`.
//!
//! ```text
//! magic             u32 LE  0x184d2204
//! FLG               u8      version 01 | independent blocks | block checksums | content size | content checksum | 00
//! BD                u8      block size id 4..7 in bits 4-6: 64 KiB, 256 KiB, 1 MiB, 4 MiB
//! content size      u64 LE  if set in FLG; skipped
//! header checksum   u8      second byte of xxHash32 over FLG..; in v0 sets stored by brokers also over the frame magic
//! blocks            u32 LE length, bit 31 = stored uncompressed; bytes; xxHash32 if set in FLG
//! end mark          u32     length 0
//! content checksum  u32     if set in FLG; required but not verified
//! ```
//!
//! Bytes after the end mark are ignored. For magic 0 the header checksum is not verified, because both kinds exist.
//! Linked blocks, which Java rejects and kafka-python 1.3.5 wrote, are supported (docs/differences.md).

mod block;

use lz4_flex::block::{CompressTable, compress_into_with_table, get_maximum_output_size};
use xxhash_rust::xxh32::xxh32;

use crate::compression::{Codec, Output, StreamFault};
use crate::num::usize_of;
use crate::slices::Slices;

const FRAME_MAGIC: [u8; 4] = [0x04, 0x22, 0x4d, 0x18];
/// Version 01, independent blocks.
const WRITTEN_FLG: u8 = 0x60;
/// Blocks of 64 KiB.
const WRITTEN_BD: u8 = 0x40;
const WRITTEN_BLOCK_LEN: usize = 64 << 10;
const STORED_BIT: u32 = 1 << 31;
/// The level that selects the fast compressor (KIP-390).
const FAST_LEVEL: i32 = 9;
/// The window of earlier output that a linked block may refer to.
const WINDOW_LEN: usize = 64 << 10;

struct FrameHeader {
    linked_blocks: bool,
    block_checksums: bool,
    content_checksum: bool,
    max_block_len: usize,
}

fn premature_end() -> StreamFault {
    StreamFault::invalid("stream ended prematurely")
}

fn take<'a>(input: &mut &'a [u8], len: usize) -> Result<&'a [u8], StreamFault> {
    let (head, rest) = input.split_at_checked(len).ok_or_else(premature_end)?;
    *input = rest;
    Ok(head)
}

fn take_u32(input: &mut &[u8]) -> Result<u32, StreamFault> {
    let (head, rest) = input.split_first_chunk::<4>().ok_or_else(premature_end)?;
    *input = rest;
    Ok(u32::from_le_bytes(*head))
}

fn parse_header(input: &mut &[u8], magic: u8) -> Result<FrameHeader, StreamFault> {
    if take(input, 4)? != FRAME_MAGIC {
        return Err(StreamFault::invalid("stream unsupported (invalid magic bytes)"));
    }
    let descriptor = *input;
    let &[flg, bd] = take(input, 2)? else { return Err(premature_end()) };
    if flg & 0x03 != 0 || bd & 0x8f != 0 {
        return Err(StreamFault::invalid("reserved bits of the frame header must be 0"));
    }
    if flg >> 6 != 1 {
        return Err(StreamFault::invalid(format!("frame version {} is unsupported", flg >> 6)));
    }
    let max_block_len = match bd >> 4 {
        4 => 64 << 10,
        5 => 256 << 10,
        6 => 1 << 20,
        7 => 4 << 20,
        id => return Err(StreamFault::invalid(format!("block size value {id} must be between 4 and 7"))),
    };
    let content_size_len = if flg & 0x08 == 0 { 0 } else { 8 };
    take(input, content_size_len)?;
    let covered = descriptor.part(..content_size_len.saturating_add(2));
    let stored = take(input, 1)?;
    if magic > 0 && stored != [header_checksum(&[], covered)] {
        return Err(StreamFault::invalid("stream frame descriptor corrupted"));
    }
    Ok(FrameHeader {
        linked_blocks: flg & 0x20 == 0,
        block_checksums: flg & 0x10 != 0,
        content_checksum: flg & 0x04 != 0,
        max_block_len,
    })
}

/// The second byte of xxHash32 over both parts.
fn header_checksum(frame_magic: &[u8], descriptor: &[u8]) -> u8 {
    let covered = [frame_magic, descriptor].concat();
    crate::num::low_u8(u64::from(xxh32(&covered, 0) >> 8))
}

/// The codec. It keeps no memory.
#[derive(Default)]
pub(crate) struct Lz4;

impl Codec for Lz4 {
    fn decompress(&mut self, magic: u8, input: &[u8], output: &mut Output<'_>) -> Result<(), StreamFault> {
        decompress(magic, input, output)
    }

    fn compress(magic: u8, level: i32, input: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        compress(magic, level, input, out)
    }
}

/// Decompresses the first frame of `input`.
fn decompress(magic: u8, mut input: &[u8], output: &mut Output<'_>) -> Result<(), StreamFault> {
    let header = parse_header(&mut input, magic)?;
    loop {
        let field = take_u32(&mut input)?;
        let len = usize_of(field & !STORED_BIT);
        if len == 0 {
            break;
        }
        if len > header.max_block_len {
            return Err(StreamFault::invalid(format!("block size {len} exceeded max: {}", header.max_block_len)));
        }
        let block = take(&mut input, len)?;
        let before = output.filled();
        if field & STORED_BIT != 0 {
            output.extend(block)?;
        } else {
            decompress_block(block, &header, output)?;
        }
        if header.block_checksums
            && let Err(fault) = check_block(&mut input, block)
        {
            output.truncate(before);
            return Err(fault);
        }
    }
    if header.content_checksum {
        take_u32(&mut input)?;
    }
    Ok(())
}

fn check_block(input: &mut &[u8], block: &[u8]) -> Result<(), StreamFault> {
    let stored = take_u32(input)?;
    if stored == xxh32(block, 0) { Ok(()) } else { Err(StreamFault::invalid("block checksum mismatch")) }
}

fn decompress_block(block: &[u8], header: &FrameHeader, output: &mut Output<'_>) -> Result<(), StreamFault> {
    // one byte of a block expands to at most 255 bytes of output
    let most = block.len().saturating_mul(255).min(header.max_block_len);
    let window = if header.linked_blocks { WINDOW_LEN } else { 0 };
    let (buffer, start) = output.room_after(window, most);
    let room_len = buffer.len().saturating_sub(start);
    let end = start.saturating_add(room_len.min(most));
    match block::decompress(block, buffer.part_mut(..end), start) {
        Ok(end) => {
            output.commit(end.saturating_sub(start));
            Ok(())
        }
        Err(block::Fault::Full) if room_len < most => Err(StreamFault::Full),
        Err(fault) => Err(StreamFault::invalid(fault.to_string())),
    }
}

/// Appends `input` as Kafka writes it: independent blocks of 64 KiB, no content size, and for magic 0 the header
/// checksum that old brokers expect. As in Kafka, level 9 is the fast compressor, and every other level selects the
/// slower high-compression one.
fn compress(magic: u8, level: i32, input: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let descriptor = [WRITTEN_FLG, WRITTEN_BD];
    let also_hashed: &[u8] = if magic == 0 { &FRAME_MAGIC } else { &[] };
    out.extend_from_slice(&FRAME_MAGIC);
    out.extend_from_slice(&descriptor);
    out.push(header_checksum(also_hashed, &descriptor));
    let mode = (level != FAST_LEVEL).then_some(lz4::block::CompressionMode::HIGHCOMPRESSION(level));
    let mut table = CompressTable::default();
    for block in input.chunks(WRITTEN_BLOCK_LEN) {
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        let body = start.saturating_add(4);
        out.resize(body.saturating_add(get_maximum_output_size(block.len())), 0);
        let room = out.part_mut(body..);
        let len = match mode {
            None => compress_into_with_table(block, room, &mut table).map_err(|error| error.to_string())?,
            Some(mode) => {
                lz4::block::compress_to_buffer(block, Some(mode), false, room).map_err(|error| error.to_string())?
            }
        };
        let stored = len >= block.len();
        out.truncate(body.saturating_add(if stored { 0 } else { len }));
        if stored {
            out.extend_from_slice(block);
        }
        let len = u32::try_from(if stored { block.len() } else { len }).map_err(|error| error.to_string())?;
        let field = if stored { len | STORED_BIT } else { len };
        if let Some(place) = out.get_mut(start..body) {
            place.copy_from_slice(&field.to_le_bytes());
        }
    }
    out.extend_from_slice(&[0; 4]);
    Ok(())
}
