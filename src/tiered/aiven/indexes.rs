//! [`Indexes`]: the files beside a segment's `.log`, from the `.indexes` object.
//!
//! ```text
//! offset │ timestamp │ producerSnapshot │ leaderEpoch │ [transaction]
//! ```
//!
//! Each is a file of Kafka, byte for byte. If the segment is encrypted, each is encrypted alone, except for empty ones:
//! they have no bytes.
//!
//! Source: `KafkaRemoteStorageManager.uploadIndexes` and `SegmentIndexesV1` of the plugin.

use super::crypto::Cipher;
use super::json::{JsonObject, invalid};
use crate::error::Result;
use crate::log::checkpoint::LeaderEpochs;
use crate::num::{u64_of, usize_from_u64};
use crate::slices::Slices;

/// The position and size of each index in the `.indexes` object, in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexExtents {
    offset: Extent,
    timestamp: Extent,
    producer_snapshot: Extent,
    leader_epoch: Extent,
    transaction: Option<Extent>,
}

/// Position and size in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extent {
    position: u32,
    size: u32,
}

impl Extent {
    fn end(self) -> u64 {
        u64::from(self.position).saturating_add(u64::from(self.size))
    }
}

impl IndexExtents {
    /// Parses the member `segmentIndexes` of a manifest.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidFile`](crate::ErrorKind::InvalidFile) if the extents do not follow each other.
    pub(super) fn parse(indexes: &JsonObject<'_>) -> Result<Self> {
        let mut end = 0_u64;
        let mut extent = |object: &JsonObject<'_>, name: &str| -> Result<Extent> {
            let extent = Extent { position: object.size("position")?, size: object.size("size")? };
            if u64::from(extent.position) != end {
                let position = extent.position;
                return Err(invalid(format!("segmentIndexes.{name}.position is {position}: expected {end}")));
            }
            end = extent.end();
            Ok(extent)
        };
        let transaction = indexes.optional_object("transaction", "segmentIndexes.transaction.")?;
        Ok(Self {
            offset: extent(&indexes.object("offset", "segmentIndexes.offset.")?, "offset")?,
            timestamp: extent(&indexes.object("timestamp", "segmentIndexes.timestamp.")?, "timestamp")?,
            producer_snapshot: extent(
                &indexes.object("producerSnapshot", "segmentIndexes.producerSnapshot.")?,
                "producerSnapshot",
            )?,
            leader_epoch: extent(&indexes.object("leaderEpoch", "segmentIndexes.leaderEpoch.")?, "leaderEpoch")?,
            transaction: transaction.map(|object| extent(&object, "transaction")).transpose()?,
        })
    }

    /// Whether there is a transaction index.
    pub(crate) fn has_transaction(&self) -> bool {
        self.transaction.is_some()
    }

    /// Number of bytes of the `.indexes` object.
    #[must_use]
    pub fn object_len(&self) -> u64 {
        self.transaction.unwrap_or(self.leader_epoch).end()
    }

    /// Splits the `.indexes` object, and decrypts its parts.
    pub(super) fn split(&self, object: &[u8], cipher: Option<&Cipher>) -> Result<Indexes> {
        let (len, expected) = (u64_of(object.len()), self.object_len());
        if len != expected {
            return Err(invalid(format!("the object has {len} bytes, but its manifest describes {expected}")));
        }
        let part = |name: &str, extent: Extent| -> Result<Vec<u8>> {
            let range = usize_from_u64(u64::from(extent.position))..usize_from_u64(extent.end());
            let mut bytes = object.part(range).to_vec();
            match cipher {
                Some(cipher) if !bytes.is_empty() => cipher.open(&mut bytes).map(<[u8]>::to_vec).ok_or_else(|| {
                    invalid(format!("the {name} index cannot be decrypted: its bytes differ from the encrypted ones"))
                        .at(u64::from(extent.position))
                }),
                _ => Ok(bytes),
            }
        };
        Ok(Indexes {
            offset: part("offset", self.offset)?,
            timestamp: part("timestamp", self.timestamp)?,
            producer_snapshot: part("producerSnapshot", self.producer_snapshot)?,
            leader_epoch: part("leaderEpoch", self.leader_epoch)?,
            transaction: self.transaction.map(|extent| part("transaction", extent)).transpose()?,
        })
    }
}

/// The indexes of a segment: the bytes of Kafka's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Indexes {
    /// `.index`.
    pub offset: Vec<u8>,
    /// `.timeindex`.
    pub timestamp: Vec<u8>,
    /// The `.snapshot` at the end of the segment, which a broker names after the next segment's base offset.
    pub producer_snapshot: Vec<u8>,
    /// The text of `leader-epoch-checkpoint`, up to the end of the segment.
    pub leader_epoch: Vec<u8>,
    /// `.txnindex`; `None` if no transaction was aborted.
    pub transaction: Option<Vec<u8>>,
}

impl Indexes {
    /// Parses the leader epochs.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidFile`](crate::ErrorKind::InvalidFile) if the text is malformed.
    pub fn leader_epochs(&self) -> Result<LeaderEpochs> {
        let text = std::str::from_utf8(&self.leader_epoch)
            .map_err(|_| invalid("the text of the leaderEpoch index is not UTF-8"))?;
        LeaderEpochs::parse(text)
    }
}
