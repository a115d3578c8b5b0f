//! [`Segment`]: the original bytes of a segment, by position, from the chunks of its `.log` object.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::cache::DecodedChunks;
use super::chunk_index::Chunk;
use super::crypto::Cipher;
use super::indexes::Indexes;
use super::key::ObjectKind;
use super::keys::EncryptionKeys;
use super::manifest::{self, Manifest};
use crate::compression::{Compression, StreamFault, decompress_bounded};
use crate::error::{Error, ErrorKind, Result};
use crate::io::{DAMAGED_BYTE, Location, ReadAt};
use crate::limits::Limits;
use crate::num::{u64_of, usize_from_u64};
use crate::slices::Slices;

/// Most bytes of the object to read at once, unless a single chunk has more.
const MAX_READ_LEN: u64 = 16 << 20;

/// Chunks that cannot be decoded.
#[derive(Debug, Default)]
pub(crate) struct DamagedChunks {
    /// Numbers of chunks.
    numbers: BTreeSet<u32>,
    /// Number of the first chunk after the end of the object.
    missing: Option<u32>,
}

impl DamagedChunks {
    /// The first of the chunks `first` to `last` that is damaged.
    fn find(&self, first: u32, last: u32) -> Option<u32> {
        let missing = self.missing.map(|missing| missing.max(first)).filter(|missing| *missing <= last);
        let listed = self.numbers.range(first..=last).next().copied();
        listed.into_iter().chain(missing).min()
    }
}

/// A segment. Reads by position fetch only the chunks that contain the requested bytes, in as few reads of the object
/// as possible, and keep the chunks that were decoded last.
///
/// Every error of a chunk names the object and the number of the chunk. Its position is the chunk's first byte in the
/// original segment.
///
/// If the object has more bytes than its manifest describes, each of them is a byte after the original ones that can't
/// be read, so that no reader overlooks them.
pub struct Segment {
    log: Box<dyn ReadAt + Send + Sync>,
    /// Number of bytes of the object that the manifest does not describe.
    excess_len: u64,
    /// Name of the `.log` object.
    name: PathBuf,
    manifest: Manifest,
    cipher: Option<Cipher>,
    limits: Limits,
    cache: DecodedChunks,
}

impl fmt::Debug for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Segment").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Segment {
    /// Opens a segment from its `.log` object, the content of its manifest, and the name of the `.log` object.
    ///
    /// # Errors
    /// The errors of [`Manifest::parse`] and of decrypting the data key, with the name of the manifest. I/O errors. An
    /// object of another size than the manifest describes is opened, because chunks of it can be read.
    pub(crate) fn open(
        log: Box<dyn ReadAt + Send + Sync>,
        manifest: &[u8],
        keys: &EncryptionKeys,
        limits: &Limits,
        name: impl Into<PathBuf>,
    ) -> Result<Self> {
        let name = name.into();
        let in_manifest = |error: Error| error.with_path(&sibling(&name, ObjectKind::Manifest));
        let manifest = Manifest::parse(manifest).map_err(in_manifest)?;
        let cipher = manifest.encryption.as_ref().map(|encryption| Cipher::new(encryption, keys)).transpose();
        let cipher = cipher.map_err(in_manifest)?;
        let len = log.byte_len().map_err(|error| error.with_path(&name))?;
        let excess_len = manifest.excess_len(len);
        Ok(Self { log, excess_len, name, manifest, cipher, limits: limits.clone(), cache: DecodedChunks::default() })
    }

    /// Opens a segment of the plugin's file system backend, or of downloaded objects: a `.log` file with its manifest
    /// beside it.
    ///
    /// # Errors
    /// I/O errors, such as for a segment without a manifest, which is incomplete.
    /// [`ErrorKind::InvalidArgument`] for an unknown or wrong encryption key, for a segment in Iceberg's format, and
    /// for an unknown version of the manifest. [`ErrorKind::InvalidFile`] for a malformed manifest.
    pub fn open_file(path: impl Into<Location>, keys: &EncryptionKeys, limits: &Limits) -> Result<Self> {
        let path: Location = path.into();
        let manifest = path.with_extension(ObjectKind::Manifest.suffix().trim_start_matches('.'));
        let manifest = manifest.read_small(manifest::MAX_LEN);
        let manifest = manifest.map_err(|error| {
            let note = "a segment without its manifest is incomplete, or was about to be deleted";
            if error.is_not_found() { error.with_note(note) } else { error }
        })?;
        Self::open(Box::new(path.open()?), &manifest, keys, limits, path.path())
    }

    /// The manifest.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Number of bytes of the original segment.
    #[must_use]
    pub fn original_len(&self) -> u64 {
        self.manifest.chunks.original_len()
    }

    /// Reads original bytes at a position until `out` is full or the segment ends. Returns the number of bytes read.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidFile`] for a chunk that is missing, truncated, or not the one that was encrypted; and if
    ///   `out` extends over the end of a segment whose object has more bytes than its manifest describes.
    /// - [`ErrorKind::Decompression`] for a chunk that is not a zstd frame of the expected content.
    /// - [`ErrorKind::Limit`] for a chunk that exceeds the limits on decompressed bytes.
    /// - I/O errors.
    pub fn read_at(&self, out: &mut [u8], position: u64) -> Result<usize> {
        let end = position.saturating_add(u64_of(out.len()));
        if let Some(error) = self.excess_in(&(position..end)) {
            return Err(error);
        }
        let wanted = self.original_len().saturating_sub(position).min(u64_of(out.len()));
        let out = out.part_mut(..usize_from_u64(wanted));
        if self.cipher.is_none() && !self.manifest.is_compressed {
            self.read_plain(out, position)?;
        } else {
            self.read_chunks(out, position)?;
        }
        Ok(out.len())
    }

    /// Like [`Segment::read_at`], but reads chunks that cannot be decoded as [`DAMAGED_BYTE`] and adds them to `damaged`.
    ///
    /// # Errors
    /// [`ErrorKind::Limit`] and I/O errors, which say nothing about the stored bytes.
    pub(crate) fn read_over_damage(&self, out: &mut [u8], position: u64, damaged: &mut DamagedChunks) -> Result<usize> {
        let wanted = self.byte_len()?.saturating_sub(position).min(u64_of(out.len()));
        let end = position.saturating_add(wanted);
        if self.first_damaged(&(position..end), damaged).is_none() {
            match self.read_at(out, position) {
                Err(error) if !error.is_of_reading() => {}
                read => return read,
            }
        }
        let mut at = position;
        while let Some(chunk) = self.manifest.chunks.chunk_at(at).filter(|_| at < end) {
            let is_missing = damaged.missing.is_some_and(|missing| missing <= chunk.number);
            let chunk_end = if is_missing { end } else { chunk.original.end.min(end) };
            let range = usize_from_u64(at.saturating_sub(position))..usize_from_u64(chunk_end.saturating_sub(position));
            let part = out.part_mut(range);
            let is_damaged = is_missing
                || damaged.numbers.contains(&chunk.number)
                || match self.read_at(part, at) {
                    Ok(_) => false,
                    Err(error) if error.is_of_reading() => return Err(error),
                    Err(_) if chunk.transformed.start >= self.log.byte_len()? => {
                        damaged.missing = Some(chunk.number);
                        true
                    }
                    Err(_) => damaged.numbers.insert(chunk.number),
                };
            if is_damaged {
                part.fill(DAMAGED_BYTE);
            }
            at = chunk_end;
        }
        if self.excess_len > 0 {
            out.part_mut(usize_from_u64(at.saturating_sub(position))..usize_from_u64(wanted)).fill(DAMAGED_BYTE);
            at = end;
        }
        Ok(usize_from_u64(at.saturating_sub(position)))
    }

    fn first_damaged(&self, original: &Range<u64>, damaged: &DamagedChunks) -> Option<Chunk> {
        if original.is_empty() {
            return None;
        }
        let chunks = &self.manifest.chunks;
        let last = chunks.chunk_at(original.end.min(self.original_len()).checked_sub(1)?)?;
        let number = damaged.find(chunks.chunk_at(original.start)?.number, last.number)?;
        chunks.chunk(number)
    }

    /// The error for a range with bytes that the manifest does not describe.
    fn excess_in(&self, range: &Range<u64>) -> Option<Error> {
        let excess = self.original_len()..self.original_len().saturating_add(self.excess_len);
        if excess.is_empty() || range.is_empty() || range.end <= excess.start || range.start >= excess.end {
            return None;
        }
        let described = self.manifest.chunks.transformed_len();
        let len = described.saturating_add(self.excess_len);
        let message = format!("the object has {len} bytes, but its manifest describes {described}");
        Some(Error::new(ErrorKind::InvalidFile(message)).at(excess.start).with_path(&self.name))
    }

    /// The error of the first damaged chunk in a range of bytes, or of bytes after the last chunk.
    pub(crate) fn damage_in(&self, original: &Range<u64>, damaged: &DamagedChunks) -> Option<Error> {
        let Some(chunk) = self.first_damaged(original, damaged) else { return self.excess_in(original) };
        self.read_at(&mut vec![0; usize_from_u64(chunk.original_len())], chunk.original.start).err()
    }

    /// Returns the bytes of the `.log` object that a read of original bytes fetches if no chunk is cached. For readers
    /// that fetch ahead.
    #[must_use]
    pub fn object_range(&self, original: Range<u64>) -> Range<u64> {
        if original.is_empty() || original.start >= self.original_len() {
            return 0..0;
        }
        let last = original.end.min(self.original_len()).saturating_sub(1);
        let chunks = &self.manifest.chunks;
        match (chunks.chunk_at(original.start), chunks.chunk_at(last)) {
            (Some(first), Some(last)) => first.transformed.start..last.transformed.end,
            _ => 0..0,
        }
    }

    /// Splits the content of the segment's `.indexes` object, and decrypts it.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidFile`] if the object's size is not the one in the manifest, or if an index cannot be
    /// decrypted.
    pub fn indexes(&self, object: &[u8]) -> Result<Indexes> {
        let split = self.manifest.indexes.split(object, self.cipher.as_ref());
        split.map_err(|error| error.with_path(&sibling(&self.name, ObjectKind::Indexes)))
    }

    /// Reads from an object that has the original bytes.
    fn read_plain(&self, out: &mut [u8], position: u64) -> Result<()> {
        let count = self.log.read_bytes_at(out, position).map_err(|error| error.with_path(&self.name))?;
        if count >= out.len() {
            return Ok(());
        }
        let end = position.saturating_add(u64_of(count));
        match self.manifest.chunks.chunk_at(end) {
            Some(chunk) => Err(self.truncated(&chunk, end)),
            None => Ok(()),
        }
    }

    fn read_chunks(&self, mut out: &mut [u8], mut position: u64) -> Result<()> {
        let end = position.saturating_add(u64_of(out.len()));
        let mut fetched = Fetched::default();
        while !out.is_empty() {
            let Some(chunk) = self.manifest.chunks.chunk_at(position) else { break };
            let decoded = self.chunk(&chunk, end, &mut fetched)?;
            let start = usize_from_u64(position.saturating_sub(chunk.original.start));
            let available = decoded.part(start..);
            let count = available.len().min(out.len());
            let (filled, rest) = std::mem::take(&mut out).split_at_mut(count);
            filled.copy_from_slice(available.part(..count));
            out = rest;
            position = position.saturating_add(u64_of(count));
            if count == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Returns a decoded chunk from the cache or the object. `end` is the end of the original bytes that are wanted.
    fn chunk(&self, chunk: &Chunk, end: u64, fetched: &mut Fetched) -> Result<Arc<Vec<u8>>> {
        if let Some(decoded) = self.cache.find(chunk.number) {
            return Ok(decoded);
        }
        if fetched.chunk_mut(chunk).is_none() {
            *fetched = self.fetch(chunk, end)?;
        }
        let bytes = fetched.chunk_mut(chunk).ok_or_else(|| Error::bug("a chunk that was read is not in memory"))?;
        let decoded = Arc::new(self.decode(chunk, bytes)?);
        self.cache.insert(chunk.number, Arc::clone(&decoded));
        Ok(decoded)
    }

    /// Reads a chunk of the object, and the following ones that are wanted, in one read.
    fn fetch(&self, first: &Chunk, end: u64) -> Result<Fetched> {
        let in_object = |error: Error| error.with_path(&self.name);
        // before memory is allocated: the manifest may lie
        let len = self.log.byte_len().map_err(in_object)?;
        if first.transformed.end > len {
            return Err(self.truncated(first, len));
        }
        let mut range = first.transformed.clone();
        let mut next = first.number.checked_add(1).and_then(|number| self.manifest.chunks.chunk(number));
        while let Some(chunk) = next.take() {
            let is_wanted = chunk.original.start < end && !self.cache.contains(chunk.number);
            let total = chunk.transformed.end.saturating_sub(range.start);
            if is_wanted && total <= MAX_READ_LEN && chunk.transformed.end <= len {
                range.end = chunk.transformed.end;
                next = chunk.number.checked_add(1).and_then(|number| self.manifest.chunks.chunk(number));
            }
        }
        let mut bytes = vec![0; usize_from_u64(range.end.saturating_sub(range.start))];
        let count = self.log.read_bytes_at(&mut bytes, range.start).map_err(in_object)?;
        if count < bytes.len() {
            let end = range.start.saturating_add(u64_of(count));
            return Err(self.truncated(first, end));
        }
        Ok(Fetched { bytes, position: range.start })
    }

    /// Decrypts and decompresses a chunk.
    fn decode(&self, chunk: &Chunk, bytes: &mut [u8]) -> Result<Vec<u8>> {
        let len = usize_from_u64(chunk.original_len());
        let plain: &[u8] = match &self.cipher {
            Some(cipher) => cipher
                .open(bytes)
                .ok_or_else(|| self.invalid(chunk, "cannot be decrypted: its bytes differ from the encrypted ones"))?,
            None => bytes,
        };
        if self.manifest.is_compressed {
            return self.decompress(chunk, plain, len);
        }
        if plain.len() == len {
            return Ok(plain.to_vec());
        }
        Err(self.invalid(chunk, &format!("has {} bytes: expected {len}", plain.len())))
    }

    fn decompress(&self, chunk: &Chunk, frame: &[u8], len: usize) -> Result<Vec<u8>> {
        let (limit, name) = self.limits.decompressed(frame.len());
        if len > limit {
            let (limit, actual) = (u64_of(limit), u64_of(len));
            let error = Error::new(ErrorKind::Limit { name, limit, actual });
            let note = format!("this is chunk {} of the object", chunk.number);
            return Err(error.with_note(note).at(chunk.original.start).with_path(&self.name));
        }
        match decompress_bounded(frame, len) {
            Ok(decoded) if decoded.len() == len => Ok(decoded),
            Ok(decoded) => Err(self.not_decompressed(chunk, &format!("has {} bytes: expected {len}", decoded.len()))),
            Err(StreamFault::Full) => Err(self.not_decompressed(chunk, &format!("has more than {len} bytes"))),
            Err(StreamFault::Invalid(message)) => Err(self.not_decompressed(chunk, &format!("is invalid: {message}"))),
        }
    }

    fn not_decompressed(&self, chunk: &Chunk, what: &str) -> Error {
        let message = format!("chunk {} {what}", chunk.number);
        let kind = ErrorKind::Decompression { compression: Compression::Zstd, message };
        Error::new(kind).at(chunk.original.start).with_path(&self.name)
    }

    fn invalid(&self, chunk: &Chunk, what: &str) -> Error {
        let kind = ErrorKind::InvalidFile(format!("chunk {} {what}", chunk.number));
        Error::new(kind).at(chunk.original.start).with_path(&self.name)
    }

    /// The error for a chunk that is not completely in the object.
    fn truncated(&self, chunk: &Chunk, object_len: u64) -> Error {
        self.invalid(
            chunk,
            &format!(
                "is truncated: the object has {object_len} bytes, and the chunk ends after {}",
                chunk.transformed.end
            ),
        )
    }
}

impl ReadAt for Segment {
    fn byte_len(&self) -> Result<u64> {
        Ok(self.original_len().saturating_add(self.excess_len))
    }

    fn limit_ahead(&self, end: u64) {
        self.log.limit_ahead(self.object_range(0..end).end);
    }

    fn read_bytes_at(&self, out: &mut [u8], position: u64) -> Result<usize> {
        self.read_at(out, position)
    }
}

/// Bytes of consecutive chunks of the object.
#[derive(Default)]
struct Fetched {
    bytes: Vec<u8>,
    position: u64,
}

impl Fetched {
    /// The bytes of a chunk, if all of them are here.
    fn chunk_mut(&mut self, chunk: &Chunk) -> Option<&mut [u8]> {
        let start = usize_from_u64(chunk.transformed.start.checked_sub(self.position)?);
        let end = start.checked_add(usize_from_u64(chunk.transformed_len()))?;
        self.bytes.get_mut(start..end)
    }
}

/// The name of another object of the same segment.
fn sibling(log: &Path, kind: ObjectKind) -> PathBuf {
    log.with_extension(kind.suffix().trim_start_matches('.'))
}

#[cfg(test)]
mod tests;
