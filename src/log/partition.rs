//! [`PartitionLog`]: the segments of one partition as one log.
//!
//! Source: `UnifiedLog` and `LogSegments` of Kafka.

use std::path::Path;
use std::time::UNIX_EPOCH;

use crate::error::Result;
use crate::format::header::NO_TIMESTAMP;
use crate::io::Location;
use crate::limits::Limits;
use crate::log::checkpoint::{LeaderEpochs, OffsetCheckpoint, PartitionMetadata};
use crate::log::committed;
use crate::log::index::AbortedTransaction;
use crate::log::producer::{ProducerStates, replay_segment, states_at};
use crate::log::segment::{OffsetPlace, Segment, TimestampPlace};
use crate::slices::Slices;
use crate::store::listing::{UnreadFile, listed_with_unread, refuse_log_directory, refuse_same_base_offset};
use crate::store::names::{
    LEADER_EPOCHS, LogFile, LogFileKind, LogFileState, PARTITION_METADATA, SnapshotFile, TopicPartition,
    parse_partition_directory,
};
use crate::store::refuse_foreign_directory;

/// A partition directory: its live segments in order, and its other files.
///
/// The directory is listed once, when it is opened. A segment that is deleted later causes an error when it is read.
#[derive(Debug, Clone)]
pub struct PartitionLog {
    directory: Location,
    partition: Option<TopicPartition>,
    segments: Vec<Segment>,
    snapshots: Vec<(i64, Location)>,
    metadata_snapshots: Vec<(SnapshotFile, Location)>,
    leftovers: Vec<Location>,
    checkpointed_start: Option<i64>,
    unread: Option<UnreadFile>,
    limits: Limits,
}

/// The file with the log start offsets of all partitions, in the log directory.
const LOG_START_CHECKPOINT: &str = "log-start-offset-checkpoint";

impl PartitionLog {
    /// Lists a partition directory. Its name may be any name.
    ///
    /// # Errors
    /// I/O errors; [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a log directory, and for a
    /// directory that contains files but no segment.
    pub fn open(directory: impl Into<Location>) -> Result<Self> {
        let directory: &Location = &directory.into();
        Self::open_with(directory, &Limits::default())
    }

    /// Like [`PartitionLog::open`], with custom limits for everything that is read from it.
    ///
    /// # Errors
    /// The errors of [`PartitionLog::open`].
    pub fn open_with(directory: impl Into<Location>, limits: &Limits) -> Result<Self> {
        let directory: &Location = &directory.into();
        Self::list(directory, log_starts(&directory.absolute().directory()).as_ref(), limits)
    }

    /// Like [`PartitionLog::open_with`], with the log directory's [`log_starts`] if they are known.
    pub(crate) fn list(directory: &Location, starts: Option<&OffsetCheckpoint>, limits: &Limits) -> Result<Self> {
        let partition = parse_partition_directory(directory.absolute().name());
        let start_of = |partition: &TopicPartition| starts?.offset(&partition.topic, partition.partition);
        let mut log = Self {
            directory: directory.clone(),
            checkpointed_start: partition.as_ref().and_then(start_of),
            partition,
            segments: Vec::new(),
            snapshots: Vec::new(),
            metadata_snapshots: Vec::new(),
            leftovers: Vec::new(),
            unread: None,
            limits: limits.clone(),
        };
        let (entries, unread) = listed_with_unread(directory)?;
        log.unread = unread;
        for entry in entries {
            if let Some(file) = SnapshotFile::parse(entry.name()).filter(|file| !file.deleted) {
                log.metadata_snapshots.push((file, entry));
                continue;
            }
            let Some(file) = LogFile::parse(entry.name()) else { continue };
            match (file.kind, file.state) {
                (LogFileKind::Log, LogFileState::Live) => match Segment::open_with(&entry, limits) {
                    Ok(segment) => log.segments.push(segment),
                    Err(error) if error.is_not_found() && entry.status_if_there()?.is_none() => {}
                    Err(error) => return Err(error),
                },
                (LogFileKind::ProducerSnapshot, LogFileState::Live) => {
                    log.snapshots.push((file.base_offset, entry));
                }
                (_, LogFileState::Live) => {}
                _ => log.leftovers.push(entry),
            }
        }
        if log.segments.is_empty() {
            refuse_log_directory(directory)?;
            refuse_foreign_directory(directory)?;
        }
        log.segments.sort_by_key(Segment::base_offset);
        refuse_same_base_offset(log.segments.iter().map(|segment| (segment.base_offset(), segment.location())))?;
        log.snapshots.sort();
        log.metadata_snapshots.sort();
        log.leftovers.sort();
        Ok(log)
    }

    /// Path of the directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The directory and the store that it is in.
    #[must_use]
    pub fn location(&self) -> &Location {
        &self.directory
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Topic and partition, if the directory is named after them.
    #[must_use]
    pub fn topic_partition(&self) -> Option<&TopicPartition> {
        self.partition.as_ref()
    }

    /// Refuses a directory of which readers would miss records: a broker was stopped while it replaced a segment, or a
    /// segment is compressed.
    fn check_complete(&self) -> Result<()> {
        self.unread.as_ref().map_or(Ok(()), |unread| Err(unread.error()))
    }

    /// The segments, sorted by base offset.
    #[must_use]
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// Producer snapshots, with the offsets up to but excluding which they apply.
    #[must_use]
    pub fn snapshots(&self) -> &[(i64, Location)] {
        &self.snapshots
    }

    /// KRaft snapshots, which the partition of the cluster's metadata has, sorted by end offset and epoch.
    #[must_use]
    pub fn metadata_snapshots(&self) -> &[(SnapshotFile, Location)] {
        &self.metadata_snapshots
    }

    /// Files that a broker was about to delete or to rename: `.deleted`, `.cleaned`, `.swap`.
    #[must_use]
    pub fn leftovers(&self) -> &[Location] {
        &self.leftovers
    }

    /// The first offset that consumers may read: the one in the log directory's checkpoint, if that is above the first
    /// segment's base offset. 0 for a partition without segments.
    #[must_use]
    pub fn start_offset(&self) -> i64 {
        let first = self.segments.first().map_or(0, Segment::base_offset);
        self.checkpointed_start.unwrap_or(first).max(first)
    }

    /// The offset that the next record would get.
    ///
    /// # Errors
    /// The errors of [`Segment::end_offset`] of the last segment;
    /// [`ErrorKind::InvalidFile`](crate::ErrorKind::InvalidFile) if readers of the directory would miss records, because a
    /// broker was stopped while it replaced a segment, or a segment is compressed.
    pub fn end_offset(&self) -> Result<i64> {
        self.check_complete()?;
        let end = self.segments.last().map_or(Ok(0), Segment::end_offset)?;
        Ok(end.max(self.start_offset()))
    }

    /// Leader epochs and their start offsets. Empty if there is no such file.
    ///
    /// # Errors
    /// The errors of [`LeaderEpochs::read`].
    pub fn leader_epochs(&self) -> Result<LeaderEpochs> {
        Ok(LeaderEpochs::read_existing(self.directory.join(LEADER_EPOCHS))?.unwrap_or_default())
    }

    /// Reads `partition.metadata`. Returns `None` if there is no such file, as in logs of old brokers.
    ///
    /// # Errors
    /// The errors of [`PartitionMetadata::read`].
    pub fn metadata(&self) -> Result<Option<PartitionMetadata>> {
        match PartitionMetadata::read(self.directory.join(PARTITION_METADATA)) {
            Ok(metadata) => Ok(Some(metadata)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the segment that may contain an offset: the last one whose base offset is not above it.
    #[must_use]
    pub fn segment_of(&self, offset: i64) -> Option<&Segment> {
        self.segments.get(self.floor(offset)?)
    }

    fn floor(&self, offset: i64) -> Option<usize> {
        self.segments.partition_point(|segment| segment.base_offset() <= offset).checked_sub(1)
    }

    /// Finds the segment and the batch that contain an offset, or the next batch if the offset is in a gap. Returns
    /// `None` below the start offset and from the end offset on, where a broker answers "offset out of range" or
    /// returns no records.
    ///
    /// # Errors
    /// The errors of [`Segment::find_offset`], and of [`PartitionLog::end_offset`] for such a directory.
    pub fn find_offset(&self, offset: i64) -> Result<Option<(&Segment, OffsetPlace)>> {
        self.check_complete()?;
        if offset < self.start_offset() {
            return Ok(None);
        }
        let Some(floor) = self.floor(offset) else { return Ok(None) };
        for segment in self.segments.part(floor..) {
            if let Some(place) = segment.find_offset(offset)? {
                return Ok(Some((segment, place)));
            }
        }
        Ok(None)
    }

    /// Finds the record that a broker would return for a timestamp in a `ListOffsets` request: the first one that is
    /// not older, in the first segment whose largest timestamp is not older. Later segments are not searched. For a
    /// segment without timestamps (v0), the modification time of its file is used, as in a broker. If the search ends
    /// in such a segment, the result is `None`.
    ///
    /// # Errors
    /// The errors of [`Segment::find_timestamp`] and [`Segment::largest_timestamp`], and of [`PartitionLog::end_offset`]
    /// for such a directory.
    pub fn find_timestamp(&self, timestamp: i64) -> Result<Option<TimestampPlace>> {
        self.check_complete()?;
        for segment in &self.segments {
            let mut largest = segment.largest_timestamp()?.timestamp;
            if largest < 0 {
                largest = modified(segment)?;
            }
            if largest >= timestamp {
                return segment.find_timestamp(timestamp, Some(self.start_offset()));
            }
        }
        Ok(None)
    }

    /// Finds the first record with the largest timestamp of all. Returns `None` if no record has a timestamp.
    ///
    /// # Errors
    /// The errors of [`PartitionLog::find_timestamp`].
    pub fn find_max_timestamp(&self) -> Result<Option<TimestampPlace>> {
        self.check_complete()?;
        let mut best: Option<(i64, &Segment)> = None;
        for segment in &self.segments {
            let largest = segment.largest_timestamp()?.timestamp;
            if largest > best.map_or(NO_TIMESTAMP, |(timestamp, _)| timestamp) {
                best = Some((largest, segment));
            }
        }
        match best {
            Some((timestamp, segment)) => segment.find_timestamp(timestamp, None),
            None => Ok(None),
        }
    }

    /// The offset up to which a `read_committed` consumer may read: the first offset of the earliest transaction that
    /// is open at the end, or else the end offset.
    ///
    /// # Errors
    /// I/O errors, and that of [`PartitionLog::end_offset`] for such a directory. After corruption, the search resumes at
    /// the next batch that is found.
    pub fn last_stable_offset(&self) -> Result<i64> {
        self.check_complete()?;
        if let Some(states) = self.states_in_end_snapshot() {
            return Ok(states.last_stable_offset(states.end_offset()).max(self.start_offset()));
        }
        committed::last_stable_offset(&self.segments).map(|offset| offset.max(self.start_offset()))
    }

    /// The producers in the snapshot at the end of the log, which a broker writes when it is shut down. With it, the last
    /// segment need not be read.
    fn states_in_end_snapshot(&self) -> Option<ProducerStates> {
        let end = self.end_offset().ok()?;
        let found = self.snapshots.binary_search_by_key(&end, |(offset, _)| *offset).ok()?;
        let (_, path) = self.snapshots.get(found)?;
        ProducerStates::read(path, end).ok()
    }

    /// Whether every segment after the first has a producer snapshot.
    #[cfg(feature = "plan")]
    pub(crate) fn has_snapshots(&self) -> bool {
        let has = |segment: &Segment| {
            self.snapshots.binary_search_by_key(&segment.base_offset(), |(offset, _)| *offset).is_ok()
        };
        self.segments.iter().skip(1).all(has)
    }

    /// Like [`PartitionLog::last_stable_offset`]. If it `fails`, corruption that may change the result is an error.
    /// Without `check_crc`, wrong checksums are not corruption.
    ///
    /// # Errors
    /// Such corruption; I/O errors.
    #[cfg(feature = "plan")]
    pub(crate) fn stable_end(&self, fails: bool, check_crc: bool) -> Result<committed::StableEnd> {
        let wanted = committed::Wanted { fails, check_crc, ..committed::Wanted::END };
        let end = committed::stable_end(&self.segments, &wanted)?;
        Ok(committed::StableEnd { offset: end.offset.max(self.start_offset()), ..end })
    }

    /// A broker's state of the producers at the end of the log.
    ///
    /// # Errors
    /// The errors of [`PartitionLog::last_stable_offset`].
    pub fn producer_states(&self) -> Result<ProducerStates> {
        self.check_complete()?;
        committed::producer_states(&self.segments)
    }

    /// The state of the producers at the end of the log: that of the newest snapshot that can be read, and the batches
    /// after it.
    ///
    /// # Errors
    /// Corruption after the snapshot; I/O errors.
    #[cfg(feature = "python")]
    pub(crate) fn producers(&self) -> Result<ProducerStates> {
        let snapshots: Vec<_> = self.snapshots.iter().map(|(offset, path)| (*offset, path)).collect();
        let segments: Vec<_> = self.segments.iter().map(|one| (one.base_offset(), one.location())).collect();
        let limits = self.segments.first().map(Segment::limits).cloned().unwrap_or_default();
        let found = states_at(self.end_offset()?, &snapshots, &segments, |states, path, from| {
            replay_segment(states, path, from, &limits)
        })?;
        Ok(found.states)
    }

    /// Returns the aborted transactions that matter to a reader of the offsets from `start_offset` up to but excluding
    /// `end_offset`, in the order of their markers. They come from the markers in the log and from the transaction
    /// indexes.
    ///
    /// # Errors
    /// I/O errors, and that of [`PartitionLog::end_offset`] for such a directory.
    pub fn aborted_transactions(&self, start_offset: i64, end_offset: i64) -> Result<Vec<AbortedTransaction>> {
        self.check_complete()?;
        committed::aborted_transactions(&self.segments, start_offset, end_offset)
    }
}

/// Modification time of a segment in milliseconds since the epoch.
fn modified(segment: &Segment) -> Result<i64> {
    let time = segment.location().status()?.modified.unwrap_or(UNIX_EPOCH);
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// Reads the log start offsets of a log directory. Like a broker, ignores a checkpoint that cannot be read.
pub(crate) fn log_starts(log_directory: &Location) -> Option<OffsetCheckpoint> {
    OffsetCheckpoint::read(log_directory.join(LOG_START_CHECKPOINT)).ok()
}
