//! [`RestoreOptions`]: what to restore, and up to which point.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::io::Location;
use crate::limits::Limits;
use crate::log::Uuid;
use crate::log::index::DEFAULT_INDEX_INTERVAL_BYTES;
use crate::plan::Selection;
use crate::store::TopicPartition;

/// How to treat transactions that are open at the end of a restored log. Their producers will not end them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum OpenTransactions {
    /// Leave them open. Consumers with `read_committed` wait before the first of them, until a coordinator or
    /// `kafka-transactions` ends it.
    #[default]
    Keep,
    /// Append an abort marker for each of them.
    Abort,
}

impl FromStr for OpenTransactions {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        match name {
            "keep" => Ok(Self::Keep),
            "abort" => Ok(Self::Abort),
            _ => Err(Error::argument(format!("open_transactions must be \"keep\" or \"abort\", not {name:?}"))),
        }
    }
}

/// Options of [`restore`](crate::restore::restore()).
#[derive(Debug, Clone)]
pub struct RestoreOptions {
    /// The partitions to restore. Internal topics are only restored if topics are selected.
    pub selection: Selection,
    /// Each log ends before its first record with this timestamp or a later one, milliseconds since the epoch.
    pub until_timestamp: Option<i64>,
    /// Each log ends at this offset, which is not restored.
    pub until_offset: Option<i64>,
    /// The same for single partitions. They override [`RestoreOptions::until_offset`].
    pub until_offsets: BTreeMap<TopicPartition, i64>,
    /// How to treat transactions that are open at the end of a log.
    pub open_transactions: OpenTransactions,
    /// Whether the result contains the state of all producers of the source at the end of a log, not only of those with
    /// an open transaction. A new cluster gives its producers the ids of the old ones again: its broker would take their
    /// first batches for duplicates of the old ones, acknowledge them, and drop them.
    pub keep_producers: bool,
    /// Replaces the leader epoch of every batch of magic 2. Its checksum does not cover the epoch. `None` keeps them.
    ///
    /// Epochs above that of the partition in the new cluster must be replaced: consumers commit the epoch of a batch
    /// with its offset, and wait for a leader of this epoch when they start again. The report warns of such epochs.
    pub leader_epoch: Option<i32>,
    /// Ids of the topics in the new cluster, by name, for `partition.metadata`.
    pub topic_ids: BTreeMap<String, Uuid>,
    /// The log directory of the broker that will get the partitions. Ids that [`RestoreOptions::topic_ids`] does not
    /// contain are read from it, and the checkpoints of the result contain its other partitions too.
    pub log_directory: Option<PathBuf>,
    /// Directory for the committed offsets of each group. It must be empty or not exist.
    pub committed_offsets: Option<PathBuf>,
    /// A location with partitions of `__consumer_offsets`. Default: the source.
    pub offsets_source: Option<Location>,
    /// Whether to write nothing and only report what would be done.
    pub dry_run: bool,
    /// Kafka's `index.interval.bytes`. The default of a broker is 4096.
    pub index_interval_bytes: u64,
    /// Limits on the input.
    pub limits: Limits,
}

impl Default for RestoreOptions {
    fn default() -> Self {
        Self {
            selection: Selection::default(),
            until_timestamp: None,
            until_offset: None,
            until_offsets: BTreeMap::new(),
            open_transactions: OpenTransactions::default(),
            keep_producers: false,
            leader_epoch: None,
            topic_ids: BTreeMap::new(),
            log_directory: None,
            committed_offsets: None,
            offsets_source: None,
            dry_run: false,
            index_interval_bytes: DEFAULT_INDEX_INTERVAL_BYTES,
            limits: Limits::default(),
        }
    }
}

impl RestoreOptions {
    /// Checks the options that do not depend on the source.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument).
    pub(super) fn check(&self, out: &Path) -> Result<()> {
        let until = self.until_offset.iter().chain(self.until_offsets.values()).find(|offset| **offset < 0);
        if let Some(offset) = until {
            return Err(Error::argument(format!("until_offset {offset} is negative")));
        }
        if let Some(epoch) = self.leader_epoch.filter(|epoch| *epoch < 0) {
            return Err(Error::argument(format!("leader_epoch {epoch} is negative")));
        }
        if let Some((topic, _)) = self.topic_ids.iter().find(|(_, id)| id.is_zero()) {
            return Err(Error::argument(format!("the id of topic {topic:?} is all zeros, which is Kafka's \"no id\"")));
        }
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        if let Some(directory) = &self.committed_offsets
            && absolute(directory).starts_with(absolute(out))
        {
            let message = "the directory for committed offsets is inside the output directory, where a broker would \
                           refuse it: name another one";
            return Err(Error::argument(message).with_path(directory));
        }
        Ok(())
    }

    /// Checks that the partitions with an offset exist.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument).
    pub(super) fn check_partitions<'p>(
        &self,
        found: &(impl Iterator<Item = &'p TopicPartition> + Clone),
    ) -> Result<()> {
        match self.until_offsets.keys().find(|named| !found.clone().any(|partition| partition == *named)) {
            Some(missing) => {
                let name = missing.directory_name();
                Err(Error::argument(format!("until_offset names {name}, which is not restored")))
            }
            None => Ok(()),
        }
    }

    /// The offset at which a partition ends.
    pub(super) fn until_offset_of(&self, partition: &TopicPartition) -> Option<i64> {
        self.until_offsets.get(partition).copied().or(self.until_offset)
    }
}
