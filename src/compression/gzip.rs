//! Gzip: RFC 1952, as `java.util.zip.GZIPInputStream` reads it.
//!
//! Consecutive members form one stream; bytes after the last member that are not a header are ignored. Optional header
//! fields are skipped, and a header checksum is verified.
//!
//! The fast path is libdeflate, which decodes one member from one buffer and does not report where it ended. It is used
//! only if there can be no second member: if the three bytes that begin a member occur only once. All other input,
//! including invalid input, goes through a streaming decoder, which also keeps its output before an error.

use flate2::{Decompress, FlushDecompress, Status};
use libdeflater::{CompressionLvl, Compressor, DecompressionError, Decompressor};

use crate::compression::{Codec, Output, StreamFault};
use crate::num::{low_u32, u64_of, usize_from_u64};
use crate::slices::Slices;

const MEMBER_START: [u8; 3] = [0x1f, 0x8b, 8];
const FIXED_HEADER_LEN: usize = 10;
const TRAILER_LEN: usize = 8;
const HAS_HEADER_CHECKSUM: u8 = 0x02;
const HAS_EXTRA: u8 = 0x04;
const HAS_NAME: u8 = 0x08;
const HAS_COMMENT: u8 = 0x10;
/// Output bytes per call of the streaming decoder. As in Java, the output of a call that fails is lost.
const STEP_LEN: usize = 16 << 10;

/// The codec, with a decoder that is created on first use.
#[derive(Default)]
pub(crate) struct Gzip {
    fast: Option<Decompressor>,
}

impl Codec for Gzip {
    /// Decompresses all members of `input`.
    fn decompress(&mut self, _magic: u8, input: &[u8], output: &mut Output<'_>) -> Result<(), StreamFault> {
        let may_repeat =
            memchr::memmem::find(input.get(FIXED_HEADER_LEN..).unwrap_or_default(), &MEMBER_START).is_some();
        let header_checksum = input.get(3).is_some_and(|flags| flags & HAS_HEADER_CHECKSUM != 0);
        if !may_repeat && !header_checksum && self.decompress_one(input, output)? {
            return Ok(());
        }
        output.truncate(0);
        decompress_stream(input, output)
    }

    /// Appends `input` as one member. Levels 1 to 9.
    fn compress(_magic: u8, level: i32, input: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let level = CompressionLvl::new(level).map_err(|_| "no such level".to_owned())?;
        let mut compressor = Compressor::new(level);
        let start = out.len();
        out.resize(start.saturating_add(compressor.gzip_compress_bound(input.len())), 0);
        let room = out.part_mut(start..);
        let len = compressor.gzip_compress(input, room).map_err(|error| error.to_string())?;
        out.truncate(start.saturating_add(len));
        Ok(())
    }
}

impl Gzip {
    /// Decodes one member from one buffer. Returns `false` if libdeflate rejects it.
    fn decompress_one(&mut self, input: &[u8], output: &mut Output<'_>) -> Result<bool, StreamFault> {
        let decoder = self.fast.get_or_insert_with(Decompressor::new);
        loop {
            // use all free space of the buffer: after the first batches the output fits, and no attempt is wasted
            let (_, room) = output.room(input.len().saturating_mul(4));
            match decoder.gzip_decompress(input, room) {
                Ok(len) => {
                    output.commit(len);
                    return Ok(true);
                }
                Err(DecompressionError::InsufficientSpace) => output.grow()?,
                Err(DecompressionError::BadData) => return Ok(false),
            }
        }
    }
}

fn decompress_stream(mut input: &[u8], output: &mut Output<'_>) -> Result<(), StreamFault> {
    let Some(header_len) = header_len(input)? else { return Err(StreamFault::invalid("not in gzip format")) };
    let mut header_len = header_len;
    loop {
        input = input.part(header_len..);
        let consumed = decompress_member(input, output)?;
        input = input.part(consumed..);
        match header_len_of_next(input) {
            Some(len) => header_len = len,
            None => return Ok(()),
        }
    }
}

/// After a member, the length of the next header. As in Java, bytes that are not a header or are too short for a member
/// end the stream without an error.
fn header_len_of_next(input: &[u8]) -> Option<usize> {
    if input.len() <= FIXED_HEADER_LEN.saturating_add(TRAILER_LEN) {
        return None;
    }
    header_len(input).ok().flatten()
}

/// Decompresses one member after its header. Returns its size in bytes, including the trailer.
fn decompress_member(input: &[u8], output: &mut Output<'_>) -> Result<usize, StreamFault> {
    let mut inflate = Decompress::new(false);
    let start = output.filled();
    let mut beyond = [0];
    loop {
        let rest = input.part(usize_from_u64(inflate.total_in())..);
        let room = output.step(STEP_LEN);
        // at the limit, the end of the stream may still be unread: decode one more byte to see
        let at_bound = room.is_empty();
        let room = if at_bound { beyond.as_mut_slice() } else { room };
        let (before_in, before_out) = (inflate.total_in(), inflate.total_out());
        let status = inflate
            .decompress(rest, room, FlushDecompress::None)
            .map_err(|error| StreamFault::invalid(format!("invalid deflate stream: {error}")))?;
        let produced = usize_from_u64(inflate.total_out().wrapping_sub(before_out));
        if at_bound && produced > 0 {
            return Err(StreamFault::Full);
        }
        output.commit(produced);
        if status == Status::StreamEnd {
            break;
        }
        if produced == 0 && inflate.total_in() == before_in {
            return Err(StreamFault::invalid("unexpected end of the deflate stream"));
        }
    }
    let consumed = usize_from_u64(inflate.total_in());
    let (before, _) = output.room(0);
    check_trailer(input.part(consumed..), before.part(start..))?;
    Ok(consumed.saturating_add(TRAILER_LEN))
}

fn check_trailer(trailer: &[u8], member: &[u8]) -> Result<(), StreamFault> {
    let Some(&[c0, c1, c2, c3, l0, l1, l2, l3]) = trailer.first_chunk::<TRAILER_LEN>() else {
        return Err(StreamFault::invalid("the trailer is truncated"));
    };
    let crc = u32::from_le_bytes([c0, c1, c2, c3]);
    let len = u32::from_le_bytes([l0, l1, l2, l3]);
    if crc != crate::wire::crc::crc32(member) || len != low_u32(u64_of(member.len())) {
        return Err(StreamFault::invalid("corrupt gzip trailer"));
    }
    Ok(())
}

/// Length of the member header at the start of `input`; `None` if there is none.
fn header_len(input: &[u8]) -> Result<Option<usize>, StreamFault> {
    let cut = || StreamFault::invalid("the header is truncated");
    if !input.starts_with(&MEMBER_START) {
        return Ok(None);
    }
    let flags = *input.get(3).ok_or_else(cut)?;
    let mut rest = input.get(FIXED_HEADER_LEN..).ok_or_else(cut)?;
    if flags & HAS_EXTRA != 0 {
        let (len, after) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
        rest = after.get(usize::from(u16::from_le_bytes(*len))..).ok_or_else(cut)?;
    }
    for flag in [HAS_NAME, HAS_COMMENT] {
        if flags & flag != 0 {
            let end = rest.iter().position(|&byte| byte == 0).ok_or_else(cut)?;
            rest = rest.get(end.saturating_add(1)..).ok_or_else(cut)?;
        }
    }
    if flags & HAS_HEADER_CHECKSUM != 0 {
        let (stored, after) = rest.split_first_chunk::<2>().ok_or_else(cut)?;
        let covered = input.part(..input.len().saturating_sub(rest.len()));
        if u32::from(u16::from_le_bytes(*stored)) != crate::wire::crc::crc32(covered) & 0xffff {
            return Err(StreamFault::invalid("corrupt gzip header"));
        }
        rest = after;
    }
    Ok(Some(input.len().saturating_sub(rest.len())))
}
