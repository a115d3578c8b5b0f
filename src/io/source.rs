//! [`ByteSource`]: a file or a buffer, for readers that work with either.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::io::{PositionedFile, ReadAt};

/// Bytes with shared ownership.
pub(crate) type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// A source of bytes.
pub(crate) enum ByteSource {
    File(PositionedFile),
    Memory(SharedBytes),
}

impl ByteSource {
    /// Whether this is a file in a store.
    pub(crate) fn is_stored(&self) -> bool {
        matches!(self, Self::File(file) if file.is_stored())
    }

    /// Path of the file. `None` for a buffer.
    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::File(file) => Some(file.path()),
            Self::Memory(_) => None,
        }
    }

    /// Adds the path of the file to an error.
    pub(crate) fn locate(&self, error: Error) -> Error {
        match self {
            Self::File(file) => error.with_path(file.path()),
            Self::Memory(_) => error,
        }
    }
}

impl std::fmt::Debug for ByteSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(file) => file.fmt(f),
            Self::Memory(bytes) => write!(f, "{} bytes", (**bytes).as_ref().len()),
        }
    }
}

impl ReadAt for ByteSource {
    fn byte_len(&self) -> Result<u64> {
        match self {
            Self::File(file) => file.byte_len(),
            Self::Memory(bytes) => (**bytes).as_ref().byte_len(),
        }
    }

    fn read_bytes_at(&self, out: &mut [u8], position: u64) -> Result<usize> {
        match self {
            Self::File(file) => file.read_bytes_at(out, position),
            Self::Memory(bytes) => (**bytes).as_ref().read_bytes_at(out, position),
        }
    }

    fn next_data(&self, position: u64) -> Result<u64> {
        match self {
            Self::File(file) => file.next_data(position),
            Self::Memory(bytes) => (**bytes).as_ref().next_data(position),
        }
    }

    fn limit_ahead(&self, end: u64) {
        if let Self::File(file) = self {
            file.limit_ahead(end);
        }
    }

    fn expect_reads(&self, position: u64) {
        if let Self::File(file) = self {
            file.expect_reads(position);
        }
    }

    fn spare_requests(&self) -> usize {
        match self {
            Self::File(file) => file.spare_requests(),
            Self::Memory(_) => 0,
        }
    }

    fn read_over_damage(&self) {
        if let Self::File(file) = self {
            file.read_over_damage();
        }
    }

    fn damage_in(&self, range: Range<u64>) -> Option<Error> {
        match self {
            Self::File(file) => file.damage_in(range),
            Self::Memory(_) => None,
        }
    }
}
