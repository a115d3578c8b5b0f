//! [`RemoteLogState`]: the segments of remote storage, from the records of `__remote_log_metadata`.
//!
//! The rules are those of a broker: a segment is known from its first record on, its state changes only along
//! *copy started → copy finished → delete started → delete finished* (an unfinished copy may be deleted too), and other
//! changes are ignored. Here they are also returned, because an ignored record may explain a missing segment.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;

use super::record::{MetadataRecord, PartitionDelete, RemoteSegment, SegmentState, SegmentUpdate, TopicIdPartition};
use crate::log::Uuid;

/// The segments of all partitions.
///
/// ```
/// use kbat::tiered::metadata::{MetadataRecord, RemoteLogState};
/// # fn main() -> kbat::Result<()> {
/// # let values: Vec<Vec<u8>> = Vec::new();
/// let mut state = RemoteLogState::default();
/// for value in values {
///     if let Some(ignored) = state.apply(MetadataRecord::parse(&value)?) {
///         eprintln!("{ignored}");
///     }
/// }
/// for (partition, remote) in state.partitions() {
///     println!("{}-{}: {} segments", partition.topic, partition.partition, remote.readable().count());
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
pub struct RemoteLogState {
    partitions: BTreeMap<TopicIdPartition, RemotePartition>,
    /// Number of copies that were finished so far.
    finished: u64,
}

/// The segments of a partition.
#[derive(Debug, Clone, Default)]
pub struct RemotePartition {
    segments: BTreeMap<Uuid, OrderedSegment>,
    delete: Option<PartitionDelete>,
}

/// A segment, and its number in the order in which copies were finished.
#[derive(Debug, Clone)]
struct OrderedSegment {
    segment: RemoteSegment,
    order: u64,
}

/// A record that changed nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ignored {
    /// The state of a segment cannot become the one in the record.
    Transition {
        /// Id of the segment.
        id: Uuid,
        /// The current state.
        from: SegmentState,
        /// The state in the record.
        to: SegmentState,
    },
    /// The record changes a segment whose first record was deleted by retention, or is in another partition of the
    /// topic.
    UnknownSegment {
        /// Id of the segment.
        id: Uuid,
        /// The state in the record.
        state: SegmentState,
    },
    /// A segment of a snapshot file: the record does not state its partition.
    Snapshot {
        /// Id of the segment.
        id: Uuid,
    },
    /// A record of a newer Kafka.
    UnknownRecord {
        /// Number of the schema.
        api_key: u32,
        /// Version of the schema.
        version: u32,
    },
}

impl fmt::Display for Ignored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Transition { id, from, to } => {
                write!(f, "remote segment {id} cannot change from {} to {}", from.name(), to.name())
            }
            Self::UnknownSegment { id, state } => {
                write!(f, "remote segment {id} changes to {}, but its first record is missing", state.name())
            }
            Self::Snapshot { id } => write!(f, "remote segment {id} is from a snapshot, without its partition"),
            Self::UnknownRecord { api_key, version } => {
                write!(f, "remote log metadata record {api_key} in version {version} is unknown")
            }
        }
    }
}

impl RemoteLogState {
    /// Applies the next record. Returns the reason if it changed nothing.
    pub fn apply(&mut self, record: MetadataRecord) -> Option<Ignored> {
        match record {
            MetadataRecord::Segment(partition, segment) => self.add(partition, segment),
            MetadataRecord::SegmentUpdate(partition, update) => self.update(&partition, update),
            MetadataRecord::PartitionDelete(partition, delete) => {
                self.partitions.entry(partition).or_default().delete = Some(delete);
                None
            }
            MetadataRecord::SegmentSnapshot(segment) => Some(Ignored::Snapshot { id: segment.id }),
            MetadataRecord::Unknown { api_key, version } => Some(Ignored::UnknownRecord { api_key, version }),
        }
    }

    /// The partitions, sorted by topic.
    pub fn partitions(&self) -> impl Iterator<Item = (&TopicIdPartition, &RemotePartition)> {
        self.partitions.iter()
    }

    /// Returns a partition.
    #[must_use]
    pub fn partition(&self, partition: &TopicIdPartition) -> Option<&RemotePartition> {
        self.partitions.get(partition)
    }

    fn add(&mut self, partition: TopicIdPartition, segment: RemoteSegment) -> Option<Ignored> {
        let order = self.next_order(segment.state);
        match self.partitions.entry(partition).or_default().segments.entry(segment.id) {
            Entry::Vacant(entry) => {
                entry.insert(OrderedSegment { segment, order });
                None
            }
            Entry::Occupied(mut entry) => {
                let (id, from, to) = (segment.id, entry.get().segment.state, segment.state);
                if !from.may_become(to) {
                    return Some(Ignored::Transition { id, from, to });
                }
                entry.insert(OrderedSegment { segment, order });
                None
            }
        }
    }

    fn update(&mut self, partition: &TopicIdPartition, update: SegmentUpdate) -> Option<Ignored> {
        let order = self.next_order(update.state);
        let SegmentUpdate { id, broker_id, event_timestamp, custom_metadata, state } = update;
        let known = self.partitions.get_mut(partition).and_then(|remote| remote.segments.get_mut(&id));
        let Some(known) = known else { return Some(Ignored::UnknownSegment { id, state }) };
        let from = known.segment.state;
        if !from.may_become(state) {
            return Some(Ignored::Transition { id, from, to: state });
        }
        if from != state && state == SegmentState::CopyFinished {
            known.order = order;
        }
        known.segment.state = state;
        known.segment.broker_id = broker_id;
        known.segment.event_timestamp = event_timestamp;
        // only the update to the finished copy carries it
        if custom_metadata.is_some() {
            known.segment.custom_metadata = custom_metadata;
        }
        None
    }

    fn next_order(&mut self, state: SegmentState) -> u64 {
        if state == SegmentState::CopyFinished {
            self.finished = self.finished.saturating_add(1);
        }
        self.finished
    }
}

impl RemotePartition {
    /// Every segment in any state, sorted by id. Includes deleted ones, because their objects may still exist.
    pub fn segments(&self) -> impl Iterator<Item = &RemoteSegment> {
        self.segments.values().map(|known| &known.segment)
    }

    /// The segments whose copy is finished, sorted by id.
    pub fn readable(&self) -> impl Iterator<Item = &RemoteSegment> {
        self.segments().filter(|segment| segment.state == SegmentState::CopyFinished)
    }

    /// Returns a segment.
    #[must_use]
    pub fn segment(&self, id: Uuid) -> Option<&RemoteSegment> {
        self.segments.get(&id).map(|known| &known.segment)
    }

    /// A number that is larger for copies that were finished later; 0 for an unknown segment.
    #[must_use]
    pub fn finish_order(&self, id: Uuid) -> u64 {
        self.segments.get(&id).map_or(0, |known| known.order)
    }

    /// How far the deletion of the partition is, if its topic was deleted.
    #[must_use]
    pub fn delete(&self) -> Option<PartitionDelete> {
        self.delete
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tiered::metadata::PartitionDeleteState;

    fn partition() -> TopicIdPartition {
        TopicIdPartition { topic: "t".to_owned(), topic_id: Uuid([9; 16]), partition: 0 }
    }

    fn started(id: u8) -> MetadataRecord {
        let segment = RemoteSegment {
            id: Uuid([id; 16]),
            start_offset: 0,
            end_offset: 9,
            broker_id: 1,
            max_timestamp: 5,
            event_timestamp: 6,
            leader_epochs: Vec::new(),
            size: 100,
            custom_metadata: None,
            state: SegmentState::CopyStarted,
            has_empty_transaction_index: true,
        };
        MetadataRecord::Segment(partition(), segment)
    }

    fn update(id: u8, state: SegmentState) -> MetadataRecord {
        let custom_metadata = (state == SegmentState::CopyFinished).then(|| vec![0]);
        let update = SegmentUpdate { id: Uuid([id; 16]), broker_id: 2, event_timestamp: 7, custom_metadata, state };
        MetadataRecord::SegmentUpdate(partition(), update)
    }

    #[test]
    fn segment_passes_through_all_states() {
        let mut state = RemoteLogState::default();
        assert_eq!(state.apply(started(1)), None);
        assert_eq!(state.partition(&partition()).unwrap().readable().count(), 0);
        for next in [SegmentState::CopyFinished, SegmentState::DeleteStarted, SegmentState::DeleteFinished] {
            assert_eq!(state.apply(update(1, next)), None);
            // a repetition is accepted
            assert_eq!(state.apply(update(1, next)), None);
            let remote = state.partition(&partition()).unwrap();
            let segment = remote.segment(Uuid([1; 16])).unwrap();
            assert_eq!((segment.state, segment.broker_id, segment.event_timestamp), (next, 2, 7));
            assert_eq!(segment.custom_metadata.as_deref(), Some(&[0][..]));
            assert_eq!(remote.readable().count(), usize::from(next == SegmentState::CopyFinished));
        }
        assert_eq!(state.partitions().count(), 1);
    }

    #[test]
    fn other_changes_are_ignored_and_returned() {
        let mut state = RemoteLogState::default();
        let unknown = state.apply(update(1, SegmentState::CopyFinished));
        assert_eq!(unknown, Some(Ignored::UnknownSegment { id: Uuid([1; 16]), state: SegmentState::CopyFinished }));
        state.apply(started(1));
        state.apply(update(1, SegmentState::DeleteStarted));
        let (from, to) = (SegmentState::DeleteStarted, SegmentState::CopyFinished);
        let ignored = state.apply(update(1, to)).unwrap();
        assert_eq!(ignored, Ignored::Transition { id: Uuid([1; 16]), from, to });
        assert!(ignored.to_string().contains("from delete_started to copy_finished"), "{ignored}");
        assert_eq!(state.apply(started(1)).map(|ignored| ignored.to_string().is_empty()), Some(false));
        let newer = state.apply(MetadataRecord::Unknown { api_key: 9, version: 1 });
        assert_eq!(newer, Some(Ignored::UnknownRecord { api_key: 9, version: 1 }));
    }

    #[test]
    fn finish_order_is_that_of_the_records() {
        let mut state = RemoteLogState::default();
        for id in [1, 2] {
            state.apply(started(id));
        }
        for id in [2, 1] {
            state.apply(update(id, SegmentState::CopyFinished));
        }
        state.apply(update(2, SegmentState::CopyFinished));
        let remote = state.partition(&partition()).unwrap();
        assert!(remote.finish_order(Uuid([2; 16])) < remote.finish_order(Uuid([1; 16])));
        assert_eq!(remote.finish_order(Uuid([3; 16])), 0);
    }

    #[test]
    fn partition_delete_keeps_the_last_state() {
        let mut state = RemoteLogState::default();
        for delete in [PartitionDeleteState::Marked, PartitionDeleteState::Finished] {
            let delete = PartitionDelete { broker_id: 1, event_timestamp: 2, state: delete };
            assert_eq!(state.apply(MetadataRecord::PartitionDelete(partition(), delete)), None);
        }
        let deleted = state.partition(&partition()).unwrap().delete().unwrap();
        assert_eq!(deleted.state, PartitionDeleteState::Finished);
    }
}
