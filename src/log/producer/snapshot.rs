//! The producer snapshot `.snapshot`: the state of each producer before the offset in the file's name.
//!
//! ```text
//!  0  version      i16   1
//!  2  crc          u32   CRC-32C of everything after this field
//!  6  entry_count  i32
//! 10  entries, 46 bytes each
//!       0  producer_id               i64
//!       8  producer_epoch            i16
//!      10  last_sequence             i32
//!      14  last_offset               i64   negative if the last batch is unknown
//!      22  offset_delta              i32   last offset − first offset of the last batch
//!      26  timestamp                 i64   of the last batch or marker
//!      34  coordinator_epoch         i32   of the last marker, −1 if there is none
//!      38  current_txn_first_offset  i64   −1 if no transaction is open
//! ```
//!
//! A broker keeps five batches of each producer in memory, but only stores the last one. Bytes after the last entry
//! are ignored, except by the checksum.
//!
//! Source: `ProducerStateManager.readSnapshot`, `ProducerSnapshot.json` of Kafka.

use std::path::Path;

use crate::error::{Error, ErrorKind, Result};
use crate::format::cursor::Cursor;
use crate::io::Location;
use crate::io::atomic::write_atomically;
use crate::num::u64_of;
use crate::slices::Slices;
use crate::wire::crc::crc32c;

const VERSION: i16 = 1;
/// Position of the first byte that the checksum covers.
const CRC_START: usize = 6;
/// Length in bytes before the entries.
const HEADER_LEN: usize = 10;
const ENTRY_LEN: usize = 46;
/// Largest size of a snapshot in bytes, enough for 5.8 million producers.
pub(crate) const MAX_SNAPSHOT_LEN: usize = 1 << 28;

/// The state of a producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProducerEntry {
    /// Id of the producer.
    pub producer_id: i64,
    /// Epoch of the producer.
    pub producer_epoch: i16,
    /// Sequence of the last record of its last batch, −1 if unknown.
    pub last_sequence: i32,
    /// Offset of the last record of its last batch, −1 if unknown.
    pub last_offset: i64,
    /// Last offset − first offset of its last batch.
    pub offset_delta: i32,
    /// Largest timestamp of its last batch, or the timestamp of its last marker, in milliseconds since the epoch.
    pub timestamp: i64,
    /// Epoch of the coordinator that wrote its last marker, −1 if there is none.
    pub coordinator_epoch: i32,
    /// First offset of its open transaction, if any.
    pub current_txn_first_offset: Option<i64>,
}

impl ProducerEntry {
    /// Sequence of the first record of the last batch. Sequences wrap around from 2³¹ − 1 to 0.
    #[must_use]
    pub fn first_sequence(&self) -> i32 {
        if self.last_sequence >= self.offset_delta {
            return self.last_sequence.wrapping_sub(self.offset_delta);
        }
        i32::MAX.wrapping_sub(self.offset_delta.wrapping_sub(self.last_sequence)).wrapping_add(1)
    }

    /// Offset of the first record of the last batch.
    #[must_use]
    pub fn first_offset(&self) -> i64 {
        self.last_offset.wrapping_sub(i64::from(self.offset_delta))
    }

    /// Whether the last batch is known. It is not if the producer has only written a marker.
    #[must_use]
    pub fn has_batch(&self) -> bool {
        self.last_offset >= 0
    }

    fn parse(cursor: &mut Cursor<'_>) -> Result<Self> {
        Ok(Self {
            producer_id: cursor.i64("producer_id")?,
            producer_epoch: cursor.i16("producer_epoch")?,
            last_sequence: cursor.i32("last_sequence")?,
            last_offset: cursor.i64("last_offset")?,
            offset_delta: cursor.i32("offset_delta")?,
            timestamp: cursor.i64("timestamp")?,
            coordinator_epoch: cursor.i32("coordinator_epoch")?,
            current_txn_first_offset: Some(cursor.i64("current_txn_first_offset")?).filter(|offset| *offset >= 0),
        })
    }

    fn encode_into(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.producer_id.to_be_bytes());
        bytes.extend_from_slice(&self.producer_epoch.to_be_bytes());
        bytes.extend_from_slice(&self.last_sequence.to_be_bytes());
        bytes.extend_from_slice(&self.last_offset.to_be_bytes());
        bytes.extend_from_slice(&self.offset_delta.to_be_bytes());
        bytes.extend_from_slice(&self.timestamp.to_be_bytes());
        bytes.extend_from_slice(&self.coordinator_epoch.to_be_bytes());
        bytes.extend_from_slice(&self.current_txn_first_offset.unwrap_or(-1).to_be_bytes());
    }
}

/// The content of a snapshot file: the producers of a partition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProducerSnapshot {
    /// One entry per producer, in file order.
    pub entries: Vec<ProducerEntry>,
}

impl ProducerSnapshot {
    /// Reads a snapshot file.
    ///
    /// # Errors
    /// The errors of [`ProducerSnapshot::parse`]; I/O errors.
    pub fn read(path: impl Into<Location>) -> Result<Self> {
        let path: &Location = &path.into();
        Self::parse(&path.read_small(MAX_SNAPSHOT_LEN)?).map_err(|error| error.with_path(path))
    }

    /// Parses the content of a snapshot file.
    ///
    /// # Errors
    /// [`ErrorKind::Truncated`] if the bytes are empty or end early, [`ErrorKind::InvalidFile`] for another version,
    /// [`ErrorKind::Crc`] for a wrong checksum.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let mut cursor = Cursor::new(bytes, 0);
        let version = cursor.i16("version")?;
        if version != VERSION {
            let message = format!("producer snapshot version {version} is not supported, only version {VERSION} is");
            return Err(Error::new(ErrorKind::InvalidFile(message)).at(0).in_field("version"));
        }
        let stored = cursor.u32("crc")?;
        let computed = crc32c(bytes.part(CRC_START..));
        if stored != computed {
            return Err(Error::new(ErrorKind::Crc { stored, computed }).at(2).in_field("crc"));
        }
        let entry_count = cursor.i32("entry_count")?;
        if entry_count < 0 {
            let kind = ErrorKind::InvalidValue { value: entry_count.into(), expected: "an entry count of 0 or more" };
            return Err(Error::new(kind).at(u64_of(CRC_START)).in_field("entry_count"));
        }
        // no memory is reserved by the count, which is untrusted
        let entries = (0..entry_count).map(|_| ProducerEntry::parse(&mut cursor)).collect::<Result<_>>()?;
        Ok(Self { entries })
    }

    /// Encodes the content of a snapshot file.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] for more than 2³¹ − 1 entries.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let entry_count = i32::try_from(self.entries.len())
            .map_err(|_| Error::argument("a producer snapshot can have at most 2^31 - 1 entries"))?;
        let entries_len = self.entries.len().saturating_mul(ENTRY_LEN);
        let mut bytes = Vec::with_capacity(HEADER_LEN.saturating_add(entries_len));
        bytes.extend_from_slice(&entry_count.to_be_bytes());
        for entry in &self.entries {
            entry.encode_into(&mut bytes);
        }
        let crc = crc32c(&bytes);
        bytes.splice(..0, VERSION.to_be_bytes().into_iter().chain(crc.to_be_bytes()));
        Ok(bytes)
    }

    /// Writes a snapshot file atomically.
    ///
    /// # Errors
    /// The errors of [`ProducerSnapshot::encode`]; I/O errors.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        write_atomically(path, &self.encode()?)
    }
}
