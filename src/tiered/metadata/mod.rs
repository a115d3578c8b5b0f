//! The topic `__remote_log_metadata`: the state of each remote segment.
//!
//! - [`MetadataRecord`] is the value of a record.
//! - [`RemoteLogState`] applies records in the order of their offsets, and returns the state of each segment.
//! - [`CustomMetadata`] is the part that Aiven's plugin adds.
//!
//! All records of a partition are in one partition of the topic, so its partitions can be applied one after the other.
//! Records have no keys.
//!
//! Source: `RemoteLogMetadataSerde`, `RemoteLogMetadataCache` and `RemoteLogSegmentState` of Kafka.

mod custom;
mod flexible;
mod record;
mod state;

pub use custom::CustomMetadata;
pub use record::{
    MetadataRecord, PartitionDelete, PartitionDeleteState, RemoteSegment, SegmentState, SegmentUpdate, TopicIdPartition,
};
pub use state::{Ignored, RemoteLogState, RemotePartition};
