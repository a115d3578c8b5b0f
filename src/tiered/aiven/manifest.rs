//! [`Manifest`]: the description of a segment's objects, `.rsm-manifest`.
//!
//! ```text
//! {"version":"1",
//!  "chunkIndex":{...},                                       see chunk_index.rs
//!  "segmentIndexes":{"offset":{"position":n,"size":n}, "timestamp":{...}, "producerSnapshot":{...}, "leaderEpoch":{...},
//!                    "transaction":{...} or null},
//!  "compression":bool,                                       of the chunks; indexes are never compressed
//!  "encryption":{"dataKey":"<key id>:<base64>", "aad":"<base64>"},     absent if not encrypted
//!  "remoteLogSegmentMetadata":{...}}                         absent in old manifests
//! ```
//!
//! All sizes are Java ints. Unknown members are ignored. Base64 is the standard alphabet with padding, and ids are in
//! Kafka's form.
//!
//! Source: `SegmentManifestV1`, `KafkaTypeSerdeModule` and `DataKeyDeserializer` of the plugin.

use serde_json::Value;

use super::chunk_index::ChunkIndex;
use super::crypto::{Encryption, OVERHEAD_LEN};
use super::indexes::IndexExtents;
use super::json::{JsonObject, invalid};
use super::members::parse_members;
use crate::error::{Error, Result};
use crate::log::Uuid;
use crate::log::checkpoint::EpochEntry;
use crate::tiered::name::SegmentName;

/// The only version of the format.
const VERSION: &str = "1";
/// Largest manifest in bytes: sizes of chunks have at most 10 MiB before base64.
pub(super) const MAX_LEN: usize = 32 << 20;
/// Members that are parsed; others take no memory.
const MEMBERS: [&str; 31] = [
    "aad",
    "chunkIndex",
    "compression",
    "dataKey",
    "encryption",
    "endOffset",
    "finalTransformedChunkSize",
    "id",
    "leaderEpoch",
    "maxTimestampMs",
    "offset",
    "originalChunkSize",
    "originalFileSize",
    "partition",
    "position",
    "producerSnapshot",
    "remoteLogSegmentId",
    "remoteLogSegmentMetadata",
    "segmentIndexes",
    "size",
    "startOffset",
    "timestamp",
    "topic",
    "topicId",
    "topicIdPartition",
    "topicPartition",
    "transaction",
    "transformedChunkSize",
    "transformedChunks",
    "type",
    "version",
];
/// The member whose members are epochs.
const LEADER_EPOCHS: &str = "segmentLeaderEpochs";
/// First bytes of a Puffin file, which is the manifest of a segment in Iceberg's format.
const PUFFIN_MAGIC: &[u8] = b"PFA1";

/// A parsed manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The chunks of the `.log` object.
    pub chunks: ChunkIndex,
    /// The indexes in the `.indexes` object.
    pub indexes: IndexExtents,
    /// Whether each chunk is a zstd frame.
    pub is_compressed: bool,
    /// How chunks and indexes are encrypted, if they are.
    pub encryption: Option<Encryption>,
    /// Kafka's description of the segment, if the manifest has one.
    pub segment: Option<SegmentMetadata>,
}

/// Kafka's description of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentMetadata {
    /// Name of the topic.
    pub topic: String,
    /// Id of the topic.
    pub topic_id: Uuid,
    /// Number of the partition.
    pub partition: i32,
    /// Id of the segment.
    pub segment_id: Uuid,
    /// Offset of the first record.
    pub start_offset: i64,
    /// Offset of the last record.
    pub end_offset: i64,
    /// Largest timestamp of a record in milliseconds since the epoch.
    pub max_timestamp: i64,
    /// Leader epochs of the segment and their first offsets in it, in increasing order.
    pub leader_epochs: Vec<EpochEntry>,
}

impl Manifest {
    /// Parses a manifest, and checks that its sizes are consistent.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidFile`](crate::ErrorKind::InvalidFile) if it is malformed; [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a segment in Iceberg's format
    /// and for an unknown version.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        if bytes.starts_with(PUFFIN_MAGIC) {
            return Err(Error::argument(
                "the segment is in Iceberg's format (segment.format=iceberg), which kbat does not read: read the \
                 Iceberg table instead",
            ));
        }
        if bytes.len() > MAX_LEN {
            return Err(invalid(format!("the manifest is larger than {MAX_LEN} bytes")));
        }
        let value = parse_members(bytes, &MEMBERS, LEADER_EPOCHS)
            .map_err(|error| invalid(format!("the manifest is not a complete JSON document: {error}")))?;
        let root = JsonObject::new(&value, "")?;
        let version = root.text("version")?;
        if version != VERSION {
            return Err(Error::argument(format!(
                "version {version:?} of the manifest is not supported: kbat reads version {VERSION:?}"
            )));
        }
        let manifest = Self {
            chunks: ChunkIndex::parse(&root.object("chunkIndex", "chunkIndex.")?)?,
            indexes: IndexExtents::parse(&root.object("segmentIndexes", "segmentIndexes.")?)?,
            is_compressed: root.flag("compression")?,
            encryption: root
                .optional_object("encryption", "encryption.")?
                .map(|encryption| Encryption::parse(&encryption))
                .transpose()?,
            segment: root
                .optional_object("remoteLogSegmentMetadata", "remoteLogSegmentMetadata.")?
                .map(|segment| SegmentMetadata::parse(&segment))
                .transpose()?,
        };
        if !manifest.is_compressed {
            manifest.chunks.check_overhead(manifest.overhead())?;
        }
        Ok(manifest)
    }

    /// Bytes that encryption adds to a chunk or index.
    pub(super) fn overhead(&self) -> u32 {
        if self.encryption.is_some() { OVERHEAD_LEN } else { 0 }
    }

    /// Number of bytes that follow the last chunk in an object of this size. The plugin never writes any.
    pub(crate) fn excess_len(&self, object_len: u64) -> u64 {
        object_len.saturating_sub(self.chunks.transformed_len())
    }
}

impl SegmentMetadata {
    /// Fails if this is another segment than the one that the key of the manifest names.
    pub(crate) fn check_key(&self, topic_id: Uuid, partition: i32, name: SegmentName) -> Result<()> {
        let described = SegmentName { start_offset: self.start_offset, segment_id: self.segment_id };
        if (self.topic_id, self.partition, described) == (topic_id, partition, name) {
            return Ok(());
        }
        Err(invalid(format!(
            "the manifest is of another segment than its name says: {}-{}/{}/{described}",
            self.topic, self.topic_id, self.partition
        )))
    }

    fn parse(segment: &JsonObject<'_>) -> Result<Self> {
        let id = segment.object("remoteLogSegmentId", "remoteLogSegmentId.")?;
        let topic_id_partition = id.object("topicIdPartition", "topicIdPartition.")?;
        let topic_partition = topic_id_partition.object("topicPartition", "topicPartition.")?;
        Ok(Self {
            topic: topic_partition.text("topic")?.to_owned(),
            topic_id: uuid(&topic_id_partition, "topicId")?,
            partition: topic_partition.int("partition")?,
            segment_id: uuid(&id, "id")?,
            start_offset: segment.long("startOffset")?,
            end_offset: segment.long("endOffset")?,
            max_timestamp: segment.long("maxTimestampMs")?,
            leader_epochs: leader_epochs(&segment.object(LEADER_EPOCHS, "segmentLeaderEpochs.")?)?,
        })
    }
}

fn uuid(object: &JsonObject<'_>, name: &str) -> Result<Uuid> {
    let text = object.text(name)?;
    Uuid::parse(text).ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        invalid(format!("{name} is {shown:?}: expected 22 characters of base64"))
    })
}

/// A JSON object of epoch to offset. Its members may be in any order.
fn leader_epochs(object: &JsonObject<'_>) -> Result<Vec<EpochEntry>> {
    let entry = |(epoch, offset): (&String, &Value)| {
        let parsed = epoch.parse().ok().zip(offset.as_i64());
        parsed
            .map(|(epoch, start_offset)| EpochEntry { epoch, start_offset })
            .ok_or_else(|| object.unexpected(epoch, offset, "an epoch and an offset"))
    };
    let mut entries = object.iter().map(entry).collect::<Result<Vec<_>>>()?;
    entries.sort_unstable();
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use serde_json::json;

    fn plain() -> Value {
        json!({
            "version": "1",
            "chunkIndex": {"type": "fixed", "originalChunkSize": 4096, "originalFileSize": 545,
                           "transformedChunkSize": 4096, "finalTransformedChunkSize": 545},
            "segmentIndexes": {"offset": {"position": 0, "size": 0}, "timestamp": {"position": 0, "size": 12},
                               "producerSnapshot": {"position": 12, "size": 56},
                               "leaderEpoch": {"position": 68, "size": 8}, "transaction": null},
            "compression": false
        })
    }

    fn parse(value: &Value) -> Result<Manifest> {
        Manifest::parse(value.to_string().as_bytes())
    }

    #[test]
    fn optional_and_unknown_members_are_accepted() {
        let manifest = parse(&plain()).unwrap();
        assert_eq!((manifest.segment, manifest.encryption), (None, None));
        let mut more = plain();
        more["segment"] = json!({"format": [1, 2, {"x": null}]});
        more["encryption"] = Value::Null;
        more["chunkIndex"]["more"] = json!(-1);
        parse(&more).unwrap();
    }

    #[test]
    fn leader_epochs_are_sorted_by_number() {
        let mut value = plain();
        value["remoteLogSegmentMetadata"] = json!({
            "remoteLogSegmentId": {
                "topicIdPartition": {"topicId": "3YgtfXGd5689qpzaf1ptwQ",
                                     "topicPartition": {"topic": "t", "partition": 3}},
                "id": "ET12YQgaTf67U-D1i05eOg"
            },
            "startOffset": 5, "endOffset": 90, "maxTimestampMs": -1, "brokerId": 1, "eventTimestampMs": 1,
            "segmentLeaderEpochs": {"10": 70, "9": 50, "2": 5}
        });
        let segment = parse(&value).unwrap().segment.unwrap();
        let epochs: Vec<(i32, i64)> =
            segment.leader_epochs.iter().map(|entry| (entry.epoch, entry.start_offset)).collect();
        assert_eq!(epochs, [(2, 5), (9, 50), (10, 70)]);
        assert_eq!((segment.topic.as_str(), segment.partition, segment.end_offset), ("t", 3, 90));
        value["remoteLogSegmentMetadata"]["remoteLogSegmentId"]["id"] = json!("x");
        assert!(parse(&value).unwrap_err().to_string().contains("id is \"x\""));
    }

    #[test]
    fn iceberg_and_other_versions_are_refused_by_name() {
        let error = Manifest::parse(b"PFA1\0\0").unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidArgument(_)));
        assert!(error.to_string().contains("Iceberg"), "{error}");
        let mut value = plain();
        value["version"] = json!("2");
        assert!(parse(&value).unwrap_err().to_string().contains("version \"2\""));
        value["version"] = json!(1);
        assert!(parse(&value).unwrap_err().to_string().contains("version is 1: expected a string"));
    }

    #[test]
    fn every_truncation_is_an_error() {
        let text = plain().to_string();
        for len in 0..text.len() {
            let error = Manifest::parse(&text.as_bytes()[..len]).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::InvalidFile(_)), "{error}");
        }
    }

    #[test]
    fn sizes_that_do_not_fit_the_transformation_are_refused() {
        let mut value = plain();
        value["chunkIndex"]["finalTransformedChunkSize"] = json!(573);
        assert!(parse(&value).unwrap_err().to_string().contains("chunk 0 has 573 bytes"));
        value["encryption"] = json!({"dataKey": "k:AAAA", "aad": "AAAA"});
        parse(&value).unwrap();
        for key in ["", "k", ":AAAA", "k:AA:AA", "k:!"] {
            value["encryption"]["dataKey"] = json!(key);
            let error = parse(&value).unwrap_err().to_string();
            assert!(error.contains("encryption.dataKey"), "{error}");
        }
    }

    #[test]
    fn indexes_that_do_not_follow_each_other_are_refused() {
        for (pointer, wrong) in [
            ("/segmentIndexes/offset/position", 1),
            ("/segmentIndexes/timestamp/size", 11),
            ("/segmentIndexes/leaderEpoch/position", 0),
        ] {
            let mut value = plain();
            *value.pointer_mut(pointer).unwrap() = json!(wrong);
            let error = parse(&value).unwrap_err().to_string();
            assert!(error.contains(".position is"), "{error}");
        }
    }

    #[test]
    fn missing_members_are_named() {
        for name in ["version", "chunkIndex", "segmentIndexes", "compression"] {
            let mut value = plain();
            value.as_object_mut().unwrap().remove(name);
            assert!(parse(&value).unwrap_err().to_string().contains(&format!("{name} is missing")));
        }
        assert!(Manifest::parse(b"[]").unwrap_err().to_string().contains("the manifest is an array"));
    }
}
