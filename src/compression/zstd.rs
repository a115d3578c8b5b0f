//! Zstandard: consecutive frames with or without content size, and skippable frames between them.
//!
//! Follows zstd-jni as used by Kafka: bytes that are not a frame are an error, empty input is an empty stream, and a
//! window of more than 128 MiB is rejected. The fast path decodes whole frames into the free space of the buffer. A
//! stream that fails is decoded again by the streaming decoder, which keeps its output before the error.

use zstd::zstd_safe::{CCtx, CParameter, DCtx, InBuffer, OutBuffer, find_frame_compressed_size, get_error_name};

use crate::compression::{Codec, Output, StreamFault};
use crate::slices::Slices;

const FRAME_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// log2 of the largest window that zstd's streaming decoder accepts by default.
const MAX_WINDOW_LOG: u32 = 27;
const SINGLE_SEGMENT: u8 = 0x20;
/// Bytes that Kafka decompresses in one step. The output of a step that fails is lost.
const STEP_LEN: usize = 16 << 10;

/// The codec, with a decoder that is created on first use.
#[derive(Default)]
pub(crate) struct Zstd {
    decoder: Option<DCtx<'static>>,
}

impl Codec for Zstd {
    /// Decompresses all frames of `input`.
    fn decompress(&mut self, _magic: u8, input: &[u8], output: &mut Output<'_>) -> Result<(), StreamFault> {
        if self.decoder.is_none() {
            self.decoder = DCtx::try_create();
        }
        let Some(decoder) = self.decoder.as_mut() else { return Err(StreamFault::invalid("no memory for a decoder")) };
        if decompress_frames(decoder, input, output)? {
            return Ok(());
        }
        output.truncate(0);
        decompress_stream(decoder, input, output)
    }

    fn compress(_magic: u8, level: i32, input: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        compress(level, input, out)
    }
}

/// Decodes frame by frame into the output. Returns `false` on any error other than the limit.
fn decompress_frames(decoder: &mut DCtx<'_>, mut input: &[u8], output: &mut Output<'_>) -> Result<bool, StreamFault> {
    while !input.is_empty() {
        let Ok(len) = find_frame_compressed_size(input) else { return Ok(false) };
        let Some((frame, rest)) = input.split_at_checked(len) else { return Ok(false) };
        if frame.starts_with(&FRAME_MAGIC) {
            if window_log(frame).is_none_or(|log| log > MAX_WINDOW_LOG) {
                return Ok(false);
            }
            loop {
                // use all free space of the buffer: after the first batches the output fits, and no attempt is wasted
                let (_, room) = output.room(frame.len().saturating_mul(4));
                match decoder.decompress(room, frame) {
                    Ok(len) => {
                        output.commit(len);
                        break;
                    }
                    Err(code) if get_error_name(code) == "Destination buffer is too small" => output.grow()?,
                    Err(_) => return Ok(false),
                }
            }
        }
        input = rest;
    }
    Ok(true)
}

/// log2 of a frame's window, rounded up.
fn window_log(frame: &[u8]) -> Option<u32> {
    let (&descriptor, rest) = frame.get(FRAME_MAGIC.len()..)?.split_first()?;
    if descriptor & SINGLE_SEGMENT == 0 {
        let window = *rest.first()?;
        let mantissa_bit = u32::from(window & 7 != 0);
        return Some(u32::from(window >> 3).saturating_add(10).saturating_add(mantissa_bit));
    }
    let size = zstd::zstd_safe::get_frame_content_size(frame).ok()??;
    Some(size.checked_next_power_of_two()?.ilog2())
}

/// Decodes like zstd-jni's stream. A chunk of its input may end inside a frame if an earlier frame ended in the same
/// chunk.
fn decompress_stream(decoder: &mut DCtx<'_>, input: &[u8], output: &mut Output<'_>) -> Result<(), StreamFault> {
    let invalid = |code| StreamFault::invalid(get_error_name(code));
    decoder.init().map_err(invalid)?;
    let mut frame_ended = false;
    for chunk in input.chunks(DCtx::in_size()) {
        frame_ended = false;
        let mut source = InBuffer::around(chunk);
        loop {
            let room = output.step(STEP_LEN);
            let room_len = room.len();
            if room_len == 0 {
                return Err(StreamFault::Full);
            }
            let mut target = OutBuffer::around(room);
            let hint = decoder.decompress_stream(&mut target, &mut source).map_err(invalid)?;
            let produced = target.pos();
            output.commit(produced);
            frame_ended |= hint == 0;
            if source.pos() == chunk.len() && (hint == 0 || produced < room_len) {
                break;
            }
        }
    }
    if frame_ended { Ok(()) } else { Err(StreamFault::invalid("the frame is truncated")) }
}

/// Decompresses all frames of `input` into a buffer of its own. Returns [`StreamFault::Full`] if the output has more
/// than `limit` bytes.
pub(crate) fn decompress_bounded(input: &[u8], limit: usize) -> Result<Vec<u8>, StreamFault> {
    /// Most data compresses less than this, and then the buffer need not grow.
    const USUAL_RATIO: usize = 16;
    /// Zstandard is the same in every message format.
    const MAGIC: u8 = 2;

    let mut buffer = vec![0; input.len().saturating_mul(USUAL_RATIO).min(limit)];
    let mut output = Output::new(&mut buffer, limit);
    Zstd::default().decompress(MAGIC, input, &mut output)?;
    let filled = output.filled();
    buffer.truncate(filled);
    Ok(buffer)
}

/// Appends `input` as one frame.
fn compress(level: i32, input: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    thread_local! {
        // a context has a few hundred kilobytes of tables: creating one costs more than compressing a small batch
        static ENCODER: std::cell::RefCell<Option<CCtx<'static>>> = const { std::cell::RefCell::new(None) };
    }
    ENCODER.with_borrow_mut(|encoder| {
        if encoder.is_none() {
            *encoder = CCtx::try_create();
        }
        let Some(encoder) = encoder.as_mut() else { return Err("no memory for an encoder".to_owned()) };
        let level = CParameter::CompressionLevel(level);
        let name = |code| get_error_name(code).to_owned();
        encoder.set_parameter(level).map_err(name)?;
        let start = out.len();
        let bound = zstd::zstd_safe::compress_bound(input.len());
        out.resize(start.saturating_add(bound), 0);
        let room = out.part_mut(start..);
        let len = encoder.compress2(room, input).map_err(name)?;
        out.truncate(start.saturating_add(len));
        Ok(())
    })
}
