//! [`MetadataRecord`]: the value of a record of `__remote_log_metadata`.
//!
//! | field | type | |
//! |---|---|---|
//! | frame version | unsigned varint | 1 |
//! | API key | unsigned varint | 0 segment, 1 update of a segment, 2 deletion of a partition, 3 segment in a snapshot |
//! | version | unsigned varint | 0 |
//! | message | flexible | the schemas in `storage/src/main/resources/message` of Kafka |
//!
//! Source: `RemoteLogMetadataSerde`, `AbstractApiMessageSerde` of Kafka.

use super::flexible::Flexible;
use crate::error::{Error, Result};
use crate::log::Uuid;
use crate::log::checkpoint::EpochEntry;

const FRAME_VERSION: u32 = 1;
/// Version of every message.
const VERSION: u32 = 0;

const SEGMENT: u32 = 0;
const SEGMENT_UPDATE: u32 = 1;
const PARTITION_DELETE: u32 = 2;
const SEGMENT_SNAPSHOT: u32 = 3;

/// Tag of the field that states whether a segment has aborted transactions.
const TXN_INDEX_EMPTY: u32 = 0;

/// A partition of a topic with an id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicIdPartition {
    /// Name of the topic.
    pub topic: String,
    /// Id of the topic.
    pub topic_id: Uuid,
    /// Number of the partition.
    pub partition: i32,
}

/// How far the copy or deletion of a segment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum SegmentState {
    /// The copy has started, and may be incomplete.
    CopyStarted,
    /// The copy is complete. Only segments in this state can be read.
    CopyFinished,
    /// The deletion has started, and objects may be missing.
    DeleteStarted,
    /// The segment was deleted.
    DeleteFinished,
}

impl SegmentState {
    /// Number in the message, 0 to 3.
    #[must_use]
    pub const fn id(self) -> i8 {
        match self {
            Self::CopyStarted => 0,
            Self::CopyFinished => 1,
            Self::DeleteStarted => 2,
            Self::DeleteFinished => 3,
        }
    }

    /// Name in `snake_case`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CopyStarted => "copy_started",
            Self::CopyFinished => "copy_finished",
            Self::DeleteStarted => "delete_started",
            Self::DeleteFinished => "delete_finished",
        }
    }

    /// Whether Kafka accepts a change to another state. A repetition is accepted.
    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        let allowed: &[Self] = match self {
            Self::CopyStarted => &[Self::CopyFinished, Self::DeleteStarted],
            Self::CopyFinished => &[Self::DeleteStarted],
            Self::DeleteStarted => &[Self::DeleteFinished],
            Self::DeleteFinished => &[],
        };
        self == next || allowed.contains(&next)
    }

    fn read(message: &mut Flexible<'_>) -> Result<Self> {
        const FIELD: &str = "remote_log_segment_state";
        let id = message.i8(FIELD)?;
        let all = [Self::CopyStarted, Self::CopyFinished, Self::DeleteStarted, Self::DeleteFinished];
        let found = all.into_iter().find(|state| state.id() == id);
        found.ok_or_else(|| message.unknown_number(id, "a state from 0 to 3", FIELD))
    }
}

/// How far the deletion of a partition is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PartitionDeleteState {
    /// The topic was deleted.
    Marked,
    /// The deletion of segments has started.
    Started,
    /// All segments were deleted.
    Finished,
}

impl PartitionDeleteState {
    fn read(message: &mut Flexible<'_>) -> Result<Self> {
        const FIELD: &str = "remote_partition_delete_state";
        match message.i8(FIELD)? {
            0 => Ok(Self::Marked),
            1 => Ok(Self::Started),
            2 => Ok(Self::Finished),
            other => Err(message.unknown_number(other, "a state from 0 to 2", FIELD)),
        }
    }
}

/// A segment in remote storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteSegment {
    /// Id of the copy.
    pub id: Uuid,
    /// Offset of the first record.
    pub start_offset: i64,
    /// Offset of the last record.
    pub end_offset: i64,
    /// Broker that wrote the latest state.
    pub broker_id: i32,
    /// Largest timestamp of a record in milliseconds since the epoch.
    pub max_timestamp: i64,
    /// When the latest state was written, in milliseconds since the epoch.
    pub event_timestamp: i64,
    /// Leader epochs of the segment and their first offsets in it, in increasing order.
    pub leader_epochs: Vec<EpochEntry>,
    /// Bytes of the segment's `.log` file, before any transformation.
    pub size: i32,
    /// Bytes that the storage plugin added: see [`CustomMetadata`](super::CustomMetadata).
    pub custom_metadata: Option<Vec<u8>>,
    /// How far the copy or deletion is.
    pub state: SegmentState,
    /// Whether the segment has no aborted transactions.
    pub has_empty_transaction_index: bool,
}

/// A change of a segment's state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentUpdate {
    /// Id of the copy.
    pub id: Uuid,
    /// Broker that wrote the record.
    pub broker_id: i32,
    /// When the record was written, in milliseconds since the epoch.
    pub event_timestamp: i64,
    /// Bytes that the storage plugin added, if the update has any.
    pub custom_metadata: Option<Vec<u8>>,
    /// The new state.
    pub state: SegmentState,
}

/// A change of the deletion of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartitionDelete {
    /// Broker that wrote the record.
    pub broker_id: i32,
    /// When the record was written, in milliseconds since the epoch.
    pub event_timestamp: i64,
    /// The new state.
    pub state: PartitionDeleteState,
}

/// The value of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetadataRecord {
    /// A segment. Brokers write it when a copy starts.
    Segment(TopicIdPartition, RemoteSegment),
    /// A change of a segment's state.
    SegmentUpdate(TopicIdPartition, SegmentUpdate),
    /// A change of the deletion of a partition.
    PartitionDelete(TopicIdPartition, PartitionDelete),
    /// A segment in a snapshot file of one partition, which the file's name states. Not expected in the topic.
    SegmentSnapshot(RemoteSegment),
    /// A record of a newer Kafka.
    Unknown {
        /// Number of the schema.
        api_key: u32,
        /// Version of the schema.
        version: u32,
    },
}

impl MetadataRecord {
    /// Parses the value of a record.
    ///
    /// # Errors
    /// [`ErrorKind`](crate::ErrorKind) `Truncated`, `Varint`, `InvalidValue` or `TrailingBytes` with the byte and the
    /// field; `InvalidArgument` for another version of the frame.
    pub fn parse(value: &[u8]) -> Result<Self> {
        let mut message = Flexible::new(value);
        let frame = message.unsigned_varint("frame_version")?;
        if frame != FRAME_VERSION {
            let text = format!("frame version {frame} of a remote log metadata record is not supported");
            return Err(Error::argument(text).at(0).in_field("frame_version"));
        }
        let (api_key, version) = (message.unsigned_varint("api_key")?, message.unsigned_varint("version")?);
        if version != VERSION || api_key > SEGMENT_SNAPSHOT {
            return Ok(Self::Unknown { api_key, version });
        }
        let record = match api_key {
            SEGMENT => {
                let (partition, id) = segment_id(&mut message)?;
                Self::Segment(partition, segment(id, &mut message)?)
            }
            SEGMENT_UPDATE => {
                let (partition, id) = segment_id(&mut message)?;
                Self::SegmentUpdate(partition, update(id, &mut message)?)
            }
            PARTITION_DELETE => {
                let partition = topic_id_partition(&mut message)?;
                Self::PartitionDelete(partition, partition_delete(&mut message)?)
            }
            _ => {
                let id = message.uuid("segment_id")?;
                Self::SegmentSnapshot(segment(id, &mut message)?)
            }
        };
        message.end()?;
        Ok(record)
    }
}

fn topic_id_partition(message: &mut Flexible<'_>) -> Result<TopicIdPartition> {
    let (topic, topic_id) = (message.string("name")?, message.uuid("id")?);
    let partition = message.i32("partition")?;
    message.skip_tags()?;
    Ok(TopicIdPartition { topic, topic_id, partition })
}

fn segment_id(message: &mut Flexible<'_>) -> Result<(TopicIdPartition, Uuid)> {
    let partition = topic_id_partition(message)?;
    let id = message.uuid("remote_log_segment_id")?;
    message.skip_tags()?;
    Ok((partition, id))
}

/// Everything after the id of a segment.
fn segment(id: Uuid, message: &mut Flexible<'_>) -> Result<RemoteSegment> {
    let (start_offset, end_offset) = (message.i64("start_offset")?, message.i64("end_offset")?);
    let broker_id = message.i32("broker_id")?;
    let (max_timestamp, event_timestamp) = (message.i64("max_timestamp_ms")?, message.i64("event_timestamp_ms")?);
    let mut leader_epochs = message.array("segment_leader_epochs", |message| {
        let (epoch, start_offset) = (message.i32("leader_epoch")?, message.i64("offset")?);
        message.skip_tags()?;
        Ok(EpochEntry { epoch, start_offset })
    })?;
    leader_epochs.sort_unstable();
    let size = message.i32("segment_size_in_bytes")?;
    let custom_metadata = message.nullable_bytes("custom_metadata")?.map(<[u8]>::to_vec);
    let state = SegmentState::read(message)?;
    let mut has_empty_transaction_index = false;
    message.tags(|tag, bytes| {
        if tag == TXN_INDEX_EMPTY {
            has_empty_transaction_index = bytes.iter().any(|byte| *byte != 0);
        }
        Ok(())
    })?;
    Ok(RemoteSegment {
        id,
        start_offset,
        end_offset,
        broker_id,
        max_timestamp,
        event_timestamp,
        leader_epochs,
        size,
        custom_metadata,
        state,
        has_empty_transaction_index,
    })
}

fn update(id: Uuid, message: &mut Flexible<'_>) -> Result<SegmentUpdate> {
    let (broker_id, event_timestamp) = (message.i32("broker_id")?, message.i64("event_timestamp_ms")?);
    let custom_metadata = message.nullable_bytes("custom_metadata")?.map(<[u8]>::to_vec);
    let state = SegmentState::read(message)?;
    message.skip_tags()?;
    Ok(SegmentUpdate { id, broker_id, event_timestamp, custom_metadata, state })
}

fn partition_delete(message: &mut Flexible<'_>) -> Result<PartitionDelete> {
    let (broker_id, event_timestamp) = (message.i32("broker_id")?, message.i64("event_timestamp_ms")?);
    let state = PartitionDeleteState::read(message)?;
    message.skip_tags()?;
    Ok(PartitionDelete { broker_id, event_timestamp, state })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    /// The start of a copy, written by a 4.3.1 broker.
    const STARTED: &str = "010000076f7264657273819afb2cdbd141a7936734b20f63c9d8000000000084a8f15fb0f5472e8\
        adada683d5c35d200000000000000000000000000000000c7000000010000018bcfe568c7000001a203a0e7bf02000000000000000000\
        00000000000192ba000001000101";
    /// Its end.
    const FINISHED: &str = "010100076f7264657273819afb2cdbd141a7936734b20f63c9d8000000000084a8f15fb0f5472e8adada683d5\
        c35d20000000001000001a203a0e881000100";

    fn bytes(hex: &str) -> Vec<u8> {
        let digit = |character: u8| char::from(character).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let pairs = hex.as_bytes().chunks(2);
        pairs.map(|pair| (digit(pair[0]).unwrap() << 4) | digit(pair[1]).unwrap()).collect()
    }

    #[test]
    fn record_of_a_broker_is_parsed() {
        let MetadataRecord::Segment(partition, segment) = MetadataRecord::parse(&bytes(STARTED)).unwrap() else {
            panic!("not a segment");
        };
        assert_eq!((partition.topic.as_str(), partition.partition), ("orders", 0));
        assert_eq!(partition.topic_id.to_string(), "gZr7LNvRQaeTZzSyD2PJ2A");
        assert_eq!(segment.id.to_string(), "hKjxX7D1Ry6K2tpoPVw10g");
        assert_eq!((segment.start_offset, segment.end_offset, segment.broker_id, segment.size), (0, 199, 1, 103_098));
        assert_eq!((segment.max_timestamp, segment.event_timestamp), (1_700_000_000_199, 1_795_357_206_463));
        assert_eq!(segment.leader_epochs, [EpochEntry { epoch: 0, start_offset: 0 }]);
        assert_eq!((segment.state, segment.has_empty_transaction_index), (SegmentState::CopyStarted, true));
        assert_eq!(segment.custom_metadata, None);
        let MetadataRecord::SegmentUpdate(same, update) = MetadataRecord::parse(&bytes(FINISHED)).unwrap() else {
            panic!("not an update");
        };
        assert_eq!((same, update.id, update.state), (partition, segment.id, SegmentState::CopyFinished));
    }

    #[test]
    fn record_of_a_partition_deletion_is_parsed() {
        let mut value = vec![1, 2, 0];
        value.extend(&bytes(STARTED)[3..31]);
        // broker 7, timestamp 9, state 2, no tagged fields
        value.extend([0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 9, 2, 0]);
        let MetadataRecord::PartitionDelete(partition, delete) = MetadataRecord::parse(&value).unwrap() else {
            panic!("not a deletion");
        };
        assert_eq!((partition.topic.as_str(), delete.broker_id, delete.event_timestamp), ("orders", 7, 9));
        assert_eq!(delete.state, PartitionDeleteState::Finished);
    }

    #[test]
    fn record_every_truncation_is_an_error() {
        for hex in [STARTED, FINISHED] {
            let value = bytes(hex);
            for len in 0..value.len() {
                let error = MetadataRecord::parse(&value[..len]).unwrap_err();
                assert!(matches!(error.kind(), ErrorKind::Truncated), "{len}: {error}");
            }
            let longer = [value.as_slice(), &[0]].concat();
            let error = MetadataRecord::parse(&longer).unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::TrailingBytes { count: 1 }), "{error}");
        }
    }

    #[test]
    fn record_of_a_newer_kafka_is_unknown() {
        assert_eq!(MetadataRecord::parse(&[1, 4, 0]).unwrap(), MetadataRecord::Unknown { api_key: 4, version: 0 });
        assert_eq!(MetadataRecord::parse(&[1, 0, 1]).unwrap(), MetadataRecord::Unknown { api_key: 0, version: 1 });
        assert!(MetadataRecord::parse(&[2, 0, 0]).unwrap_err().to_string().contains("frame version 2"));
        let mut value = bytes(FINISHED);
        let state = value.len().saturating_sub(2);
        value[state] = 4;
        let error = MetadataRecord::parse(&value).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::InvalidValue { value: 4, .. }), "{error}");
    }

    #[test]
    fn array_count_costs_no_memory() {
        let mut value = bytes(STARTED);
        // the count of leader epochs follows 5 numbers
        let start = value.len().saturating_sub(24);
        assert_eq!(value[start], 2);
        value.truncate(start);
        value.extend([0xff, 0xff, 0xff, 0xff, 0x0f]);
        assert!(matches!(MetadataRecord::parse(&value).unwrap_err().kind(), ErrorKind::Truncated));
    }
}
