//! [`RemoteOptions`]: how to read remote storage. [`Known`]: states and leader epochs of its segments.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::compression::Scratch;
use crate::error::{Error, Result};
use crate::io::Location;
use crate::limits::Limits;
use crate::log::checkpoint::LeaderEpochs;
use crate::log::{SegmentReader, Uuid};
use crate::store::listing::list_location;
use crate::store::names::LEADER_EPOCHS;
use crate::store::{SegmentFile, TopicPartition, parse_partition_directory};
use crate::tiered::aiven::EncryptionKeys;
use crate::tiered::metadata::{MetadataRecord, RemoteLogState, RemotePartition};

/// The topic with the states of remote segments.
const TOPIC: &str = "__remote_log_metadata";

/// How to read remote storage.
///
/// ```
/// use kbat::Location;
/// use kbat::tiered::RemoteOptions;
/// # fn main() -> kbat::Result<()> {
/// let options = RemoteOptions::new().metadata(Location::local("tests/data/tiered/kafka-local/remote-log-metadata.log"));
/// let location = Location::local("tests/data/tiered/kafka-local/remote").with_layout_of(&options)?;
/// # let _ = location;
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
pub struct RemoteOptions {
    pub(super) keys: EncryptionKeys,
    pub(super) metadata: Option<Location>,
}

impl RemoteOptions {
    /// Options without keys and without the state of segments.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Private keys for segments that Aiven's plugin has encrypted.
    #[must_use]
    pub fn keys(mut self, keys: EncryptionKeys) -> Self {
        self.keys = keys;
        self
    }

    /// Where the topic `__remote_log_metadata` is: a log directory, a directory of one of its partitions, or a `.log`
    /// file. With it, segments that are not finished, or being deleted, are omitted.
    #[must_use]
    pub fn metadata(mut self, location: impl Into<Location>) -> Self {
        self.metadata = Some(location.into());
        self
    }
}

/// The states and leader epochs of segments, and the keys to read them.
#[derive(Debug, Clone, Default)]
pub(super) struct Known {
    pub(super) keys: EncryptionKeys,
    states: Option<Arc<States>>,
    /// The log directory or partition directory of a broker, with the leader epochs of partitions.
    local: Option<Location>,
}

impl Known {
    /// Reads the state of segments: from the location in the options, or from the partitions of the topic beside the
    /// directory of a broker.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if the topic is not at the location in the
    /// options; corruption of the topic; I/O errors.
    pub(super) fn new(options: &RemoteOptions, local: Option<&Location>) -> Result<Self> {
        let states = match (&options.metadata, local) {
            (Some(location), _) => Some(States::read(location)?),
            (None, Some(local)) => beside(local).map(|location| States::read(&location)).transpose()?,
            (None, None) => None,
        };
        Ok(Self { keys: options.keys.clone(), states: states.map(Arc::new), local: local.cloned() })
    }

    /// The records about a partition in `__remote_log_metadata`, if there are any and all could be parsed.
    pub(super) fn recorded(&self, topic_id: Uuid, partition: i32) -> Option<&RemotePartition> {
        let mut partitions = self.states.as_ref().filter(|states| states.newer.is_none())?.state.partitions();
        let found = partitions.find(|(name, _)| name.topic_id == topic_id && name.partition == partition);
        found.map(|(_, recorded)| recorded)
    }

    /// What a reader of a partition should know about its records in `__remote_log_metadata`.
    pub(super) fn warnings(&self, topic_id: Uuid, partition: &TopicPartition) -> Vec<(i64, String)> {
        let newer = self.states.as_ref().and_then(|states| states.newer.as_ref());
        let newer = newer.map(|newer| format!("the states of segments in {TOPIC} are not used: {newer}"));
        let recorded = self.recorded(topic_id, partition.partition);
        let is_deleted = recorded.is_some_and(|recorded| recorded.delete().is_some());
        let deleted =
            is_deleted.then(|| format!("the topic of {} was deleted, as {TOPIC} records", partition.directory_name()));
        newer.into_iter().chain(deleted).map(|text| (i64::MIN, text)).collect()
    }

    /// Whether a segment without records never had any.
    pub(super) fn has_every_record(&self) -> bool {
        self.states.as_ref().is_some_and(|states| states.begins_at_zero)
    }

    /// The leader epochs of a partition in the directory of a broker. A malformed file counts as missing, as a reader of
    /// that directory reports it.
    ///
    /// # Errors
    /// I/O errors.
    pub(super) fn leader_epochs(&self, partition: &TopicPartition) -> Result<Option<LeaderEpochs>> {
        let Some(local) = &self.local else { return Ok(None) };
        let name = format!("{}-{}", partition.topic, partition.partition);
        let directory = if local.absolute().name() == name { local.clone() } else { local.join(name) };
        epochs_of(&directory)
    }
}

/// The leader epochs in a partition directory; `None` if there are none, and for a malformed file.
///
/// # Errors
/// I/O errors.
pub(super) fn epochs_of(directory: &Location) -> Result<Option<LeaderEpochs>> {
    match LeaderEpochs::read_existing(directory.join(LEADER_EPOCHS)) {
        Ok(epochs) => Ok(epochs.filter(|epochs| !epochs.entries().is_empty())),
        Err(error) if error.is_of_reading() => Err(error),
        Err(_) => Ok(None),
    }
}

/// The log directory of a broker that contains partitions of the topic: this directory, or the one around it.
fn beside(local: &Location) -> Option<Location> {
    let is_of_topic = |entry: &Location| is_of_topic(entry.name());
    [local.clone(), local.absolute().directory()].into_iter().find(|directory| {
        let entries = directory.entries().unwrap_or_default();
        entries.iter().any(|entry| is_of_topic(entry) && entry.is_dir())
    })
}

fn is_of_topic(name: &str) -> bool {
    parse_partition_directory(name).is_some_and(|partition| partition.topic == TOPIC)
}

/// The state of segments.
#[derive(Debug, Default)]
struct States {
    state: RemoteLogState,
    /// Whether no record was deleted at the start of a partition that was read.
    begins_at_zero: bool,
    /// Where a record about a segment has a version that kbat cannot parse.
    newer: Option<String>,
}

impl States {
    fn read(location: &Location) -> Result<Self> {
        let mut files = list_location(location, &|partition| partition.topic == TOPIC)?.segments;
        files.retain(|file| file.partition.as_ref().is_none_or(|partition| partition.topic == TOPIC));
        if files.is_empty() {
            let message = format!(
                "no partition of {TOPIC} is here: name a log directory with its partitions, one of them, or a .log \
                 file"
            );
            return Err(Error::argument(message).with_path(location));
        }
        let mut states = Self { begins_at_zero: true, ..Self::default() };
        let mut begun = BTreeSet::new();
        for file in files {
            // segments are sorted by base offset
            if begun.insert(file.path.directory()) {
                states.begins_at_zero &= file.base_offset == Some(0);
            }
            states.apply(&file).map_err(|error| error.with_path(&file.path))?;
        }
        Ok(states)
    }

    /// Applies the records of a segment.
    fn apply(&mut self, file: &SegmentFile) -> Result<()> {
        let (limits, mut scratch) = (Limits::default(), Scratch::new());
        let mut reader = SegmentReader::open_with(&file.path, &limits)?;
        while let Some(batch) = reader.next_batch() {
            let batch = batch?;
            batch.verify_crc()?;
            if batch.header().is_control() {
                continue;
            }
            for record in batch.records(&mut scratch, &limits)? {
                let record = record?;
                let Some(value) = record.value() else { continue };
                let offset = record.offset();
                let parsed = MetadataRecord::parse(value)
                    .map_err(|error| error.with_note(format!("in the record at offset {offset}")))?;
                if let MetadataRecord::Unknown { api_key, version } = parsed {
                    let path = file.path.display();
                    let text = || {
                        format!(
                            "the record at offset {offset} of {path} is of type {api_key} in version {version}, which is unknown"
                        )
                    };
                    self.newer.get_or_insert_with(text);
                }
                // a broker ignores the same records
                let _ = self.state.apply(parsed);
            }
        }
        Ok(())
    }
}
