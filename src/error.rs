//! Error kinds and positions.
//!
//! An [`Error`] has a kind, which is an enum to match on, and a [`Position`]: the byte, batch, record and field. The
//! code that reads the byte sets the position, and its callers complete it.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::compression::{CodecFault, Compression};
use crate::num::u64_of;

/// A `Result` with kbat's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// The kind of an error. New kinds may be added.
#[derive(Debug)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The size field of a batch is less than the smallest batch of its magic, or more than an `i32` can hold.
    BatchLength {
        /// The size as stored: bytes after the 12-byte log overhead.
        length: i32,
        /// The smallest valid size.
        minimum: i32,
    },
    /// The magic byte is not 0, 1 or 2.
    UnsupportedMagic(i8),
    /// The codec bits do not name a codec (5, 6, 7), or the crate was built without that codec.
    UnsupportedCodec {
        /// Bits 0 to 2 of the attributes.
        id: u8,
    },
    /// The codec exists, but this message format does not support it (zstd below magic 2).
    CompressionBelowMagic {
        /// The codec.
        compression: Compression,
        /// The message format.
        magic: i8,
    },
    /// The stored checksum does not match the bytes.
    Crc {
        /// Checksum in the batch or message.
        stored: u32,
        /// Checksum of its bytes: CRC-32C for magic 2, CRC-32 for magic 0 and 1.
        computed: u32,
    },
    /// The bytes end inside a field.
    Truncated,
    /// A segment ends inside a batch, although more batches or segments follow.
    CutBatch,
    /// Zeros up to the end of a file, although the log continues at a later offset. A full disk or a crash leaves such
    /// a segment.
    ZeroTail,
    /// A varint of more than 5 bytes, or a varlong of more than 10.
    Varint,
    /// A field has an invalid value.
    InvalidValue {
        /// The value found.
        value: i64,
        /// The expected value, in words.
        expected: &'static str,
    },
    /// Bytes follow the last field of the structure.
    TrailingBytes {
        /// Number of bytes.
        count: u64,
    },
    /// The batch declares more records than its bytes contain.
    MissingRecords {
        /// `record_count` of the header.
        declared: i32,
        /// Records found.
        found: u32,
    },
    /// A compressed message set of magic 0 or 1 breaks one of the format's rules.
    InvalidWrapper(&'static str),
    /// A codec rejected the bytes.
    Decompression {
        /// The codec.
        compression: Compression,
        /// The codec's message.
        message: String,
    },
    /// A bound of [`Limits`](crate::Limits) was exceeded.
    Limit {
        /// Name of the field of `Limits`.
        name: &'static str,
        /// The bound.
        limit: u64,
        /// The amount that the input requires, or a lower bound if the exact amount is unknown.
        actual: u64,
    },
    /// An index, snapshot or checkpoint file is malformed, or the offsets of a log are; the string describes how.
    InvalidFile(String),
    /// The caller's request breaks one of Kafka's rules; nothing was written.
    InvalidArgument(String),
    /// Reading a file failed.
    Io(std::io::Error),
    /// An error returned by one of the caller's callbacks, or an internal error of kbat.
    Other(Box<dyn std::error::Error + Send + Sync>),
}

impl ErrorKind {
    /// A stable name in `snake_case`, the `kind` attribute of the Python exceptions.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::BatchLength { .. } => "batch_length",
            Self::UnsupportedMagic(_) => "unsupported_magic",
            Self::UnsupportedCodec { .. } => "unsupported_codec",
            Self::CompressionBelowMagic { .. } => "compression_below_magic",
            Self::Crc { .. } => "crc",
            Self::Truncated => "truncated",
            Self::CutBatch => "cut_batch",
            Self::ZeroTail => "zero_tail",
            Self::Varint => "varint",
            Self::InvalidValue { .. } => "invalid_value",
            Self::TrailingBytes { .. } => "trailing_bytes",
            Self::MissingRecords { .. } => "missing_records",
            Self::InvalidWrapper(_) => "invalid_wrapper",
            Self::Decompression { .. } => "decompression",
            Self::Limit { .. } => "limit",
            Self::InvalidFile(_) => "invalid_file",
            Self::InvalidArgument(_) => "invalid_argument",
            Self::Io(_) => "io",
            Self::Other(_) => "other",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BatchLength { length, minimum } if length < minimum => {
                write!(f, "batch length {length} is less than the {minimum} bytes that the smallest batch needs")
            }
            Self::BatchLength { length, .. } => write!(f, "batch length {length} exceeds the largest possible batch"),
            Self::UnsupportedMagic(magic) => write!(f, "magic {magic} is not a message format: expected 0, 1 or 2"),
            Self::UnsupportedCodec { id } => {
                let name = Compression::name_of(*id).unwrap_or("unknown");
                write!(f, "compression codec {id} ({name}) is not supported by this build")
            }
            Self::CompressionBelowMagic { compression, magic } => {
                write!(f, "{compression} compression is not supported for magic {magic}")
            }
            Self::Crc { stored, computed } => {
                write!(f, "checksum mismatch: stored {stored:#010x}, computed {computed:#010x}")
            }
            Self::Truncated => f.write_str("the bytes end inside a field"),
            Self::CutBatch => {
                f.write_str("the batch is truncated: its length exceeds the rest of the file, but the log continues")
            }
            Self::ZeroTail => f.write_str(
                "zeros up to the end of the file, but the log continues at a later offset: records are missing",
            ),
            Self::Varint => f.write_str("varint is too long"),
            Self::InvalidValue { value, expected } => write!(f, "found {value}, expected {expected}"),
            Self::TrailingBytes { count } => write!(f, "unexpected trailing bytes: {count}"),
            Self::MissingRecords { declared, found } => {
                write!(f, "the batch declares a record count of {declared}, but its bytes end after {found}")
            }
            Self::InvalidWrapper(what) => write!(f, "invalid compressed message set: {what}"),
            Self::Decompression { compression, message } => write!(f, "{compression} decompression failed: {message}"),
            Self::Limit { name: "ratio", limit, actual } => write!(
                f,
                "limit ratio of {limit} decompressed bytes exceeded (at least {actual} needed); raise Limits.ratio or \
                 Limits.ratio_free_len if the input can be trusted"
            ),
            Self::Limit { name, limit, actual } => write!(
                f,
                "limit {name} of {limit} exceeded (at least {actual} needed); raise Limits.{name} if the input can be \
                trusted"
            ),
            Self::InvalidFile(what) | Self::InvalidArgument(what) => f.write_str(what),
            Self::Io(error) => write!(f, "{error}"),
            Self::Other(error) => write!(f, "{error}"),
        }
    }
}

/// The position of an error. A part that is unknown or does not apply is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Position {
    /// Byte from the start of the input or file. For compressed records, the start of the compressed bytes.
    pub byte: Option<u64>,
    /// Base offset of the batch, as stored in its first eight bytes.
    pub base_offset: Option<i64>,
    /// Index of the record in the batch, from 0.
    pub record: Option<u32>,
    /// The field, by Kafka's name in `snake_case`.
    pub field: Option<&'static str>,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        if let Some(byte) = self.byte {
            write!(f, "byte {byte}")?;
            separator = ", ";
        }
        if let Some(base_offset) = self.base_offset {
            write!(f, "{separator}base offset {base_offset}")?;
            separator = ", ";
        }
        if let Some(record) = self.record {
            write!(f, "{separator}record {record}")?;
            separator = ", ";
        }
        if let Some(field) = self.field {
            write!(f, "{separator}field {field}")?;
        }
        Ok(())
    }
}

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    position: Position,
    path: Option<PathBuf>,
    /// An explanation for people, appended to the message.
    note: Option<String>,
}

/// A kind and a position, in one pointer.
///
/// ```
/// let bytes = [0, 0, 0, 0, 0, 0, 0, 42, 0, 0, 0, 9, 0, 0, 0, 0, 2];
/// let error = kbat::batches(&bytes).next().unwrap().unwrap_err();
/// assert!(matches!(error.kind(), kbat::ErrorKind::BatchLength { length: 9, .. }));
/// assert_eq!(error.position().byte, Some(8));
/// assert_eq!(error.position().base_offset, Some(42));
/// ```
///
/// `{:?}` shows the same message as `{}`, because `main` prints it when it returns an error; `{:#?}` shows the parts.
pub struct Error(Box<Inner>);

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if f.alternate() { fmt::Debug::fmt(&self.0, f) } else { fmt::Display::fmt(self, f) }
    }
}

impl Error {
    #[cold]
    pub(crate) fn new(kind: ErrorKind) -> Self {
        Self(Box::new(Inner { kind, position: Position::default(), path: None, note: None }))
    }

    #[cold]
    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::InvalidArgument(message.into()))
    }

    /// Wraps an error that a callback returns, such as a predicate of [`filter`](crate::rewrite::filter).
    ///
    /// ```
    /// let error = kbat::Error::other("the value is not JSON");
    /// assert_eq!(error.to_string(), "the value is not JSON");
    /// ```
    #[must_use]
    pub fn other(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::new(ErrorKind::Other(error.into()))
    }

    #[must_use]
    pub(crate) fn at(mut self, byte: u64) -> Self {
        self.0.position.byte.get_or_insert(byte);
        self
    }

    /// Replaces the byte, which was counted in a copy of the input.
    #[must_use]
    pub(crate) fn at_byte(mut self, byte: u64) -> Self {
        self.0.position.byte = Some(byte);
        self
    }

    #[must_use]
    pub(crate) fn in_batch(mut self, base_offset: i64) -> Self {
        self.0.position.base_offset.get_or_insert(base_offset);
        self
    }

    #[must_use]
    pub(crate) fn in_record(mut self, record: u32) -> Self {
        self.0.position.record.get_or_insert(record);
        self
    }

    #[must_use]
    pub(crate) fn in_field(mut self, field: &'static str) -> Self {
        self.0.position.field.get_or_insert(field);
        self
    }

    /// Names the file in which the error occurred.
    #[must_use]
    pub fn with_path(mut self, path: &Path) -> Self {
        self.0.path.get_or_insert_with(|| path.to_path_buf());
        self
    }

    /// Turns a refused argument into a malformed file, because the argument came from the file.
    #[must_use]
    pub(crate) fn of_file(mut self) -> Self {
        if let ErrorKind::InvalidArgument(what) = &mut self.0.kind {
            self.0.kind = ErrorKind::InvalidFile(std::mem::take(what));
        }
        self
    }

    /// Adds an explanation to the message.
    #[must_use]
    pub(crate) fn with_note(mut self, note: impl Into<String>) -> Self {
        self.0.note.get_or_insert_with(|| note.into());
        self
    }

    /// The explanation that the message ends with.
    pub(crate) fn note(&self) -> Option<&str> {
        self.0.note.as_deref()
    }

    /// The kind of the error.
    #[must_use]
    pub fn kind(&self) -> &ErrorKind {
        &self.0.kind
    }

    /// The position of the error.
    #[must_use]
    pub fn position(&self) -> Position {
        self.0.position
    }

    /// Whether the error is that a file does not exist.
    #[must_use]
    pub fn is_not_found(&self) -> bool {
        matches!(self.kind(), ErrorKind::Io(error) if error.kind() == std::io::ErrorKind::NotFound)
    }

    /// Whether the error leaves the state of the bytes unknown: they could not be read, or were not checked because of
    /// a limit. Such an error must never cause a log to be truncated or a file to be deleted.
    pub(crate) fn is_of_reading(&self) -> bool {
        matches!(self.kind(), ErrorKind::Io(_) | ErrorKind::Limit { .. })
    }

    /// The file, if the bytes came from one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.kind)?;
        let place = self.0.position != Position::default();
        match (&self.0.path, place) {
            (Some(path), true) => write!(f, " ({}: {})", path.display(), self.0.position)?,
            (Some(path), false) => write!(f, " ({})", path.display())?,
            (None, true) => write!(f, " ({})", self.0.position)?,
            (None, false) => {}
        }
        self.note().map_or(Ok(()), |note| write!(f, "; {note}"))
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.0.kind {
            ErrorKind::Io(error) => Some(error),
            ErrorKind::Other(error) => Some(&**error),
            _ => None,
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::new(ErrorKind::Io(error))
    }
}

impl From<CodecFault> for ErrorKind {
    fn from(fault: CodecFault) -> Self {
        match fault {
            CodecFault::Refused(compression, message) => Self::Decompression { compression, message },
            CodecFault::Limit { name, limit } => {
                let limit = u64_of(limit);
                Self::Limit { name, limit, actual: limit.saturating_add(1) }
            }
            CodecFault::NotBuilt(compression) => Self::UnsupportedCodec { id: compression.id() },
            CodecFault::NotCompressed(compression, message) => {
                Self::InvalidArgument(format!("{compression} compression failed: {message}"))
            }
        }
    }
}

impl From<CodecFault> for Error {
    fn from(fault: CodecFault) -> Self {
        Self::new(fault.into())
    }
}

// not in `compression`, which knows no errors of kbat
impl FromStr for Compression {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|codec| codec.name() == name).ok_or_else(|| {
            let [others @ .., last] = Self::ALL.map(Self::name);
            Error::argument(format!("unknown compression {name:?}: use {} or {last}", others.join(", ")))
        })
    }
}

/// Compares an amount with the field of [`Limits`](crate::Limits) that bounds it.
///
/// # Errors
/// [`ErrorKind::Limit`].
pub(crate) fn check_limit(name: &'static str, limit: usize, actual: usize) -> Result<()> {
    if actual <= limit {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Limit { name, limit: u64_of(limit), actual: u64_of(actual) }))
}
