//! [`ProducerStates`]: a broker's state of each producer after it has replayed the log.
//!
//! It takes the batches of a partition in order, from the start of the log or from a snapshot. It then has the
//! producer snapshots, the transaction index and the last stable offset that a broker has after its recovery. It
//! follows `ProducerStateManager`, `ProducerAppendInfo` and `ProducerStateEntry` of Kafka for appends whose origin is
//! replication: sequences are not checked, and an epoch or a coordinator epoch may decrease. Three rules differ:
//!
//! * Kafka keeps five batches per producer to detect duplicates. A snapshot only stores the last one, and so does this
//!   state.
//! * Producers that were idle for `producer.id.expiration.ms` are kept. A broker drops them when it loads the
//!   snapshot.
//! * If a producer writes outside its open transaction, a broker does not start. This state keeps the transaction
//!   open.
//!
//! Source: KIP-98, KIP-360.

use std::collections::{BTreeMap, HashMap};

use crate::compression::Scratch;
use crate::error::{Error, ErrorKind, Result};
use crate::format::batch::Batch;
use crate::format::control::ControlRecord;
use crate::format::header::{BatchHeader, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP};
use crate::io::Location;
use crate::limits::Limits;
use crate::log::index::AbortedTransaction;
use crate::log::producer::{ProducerEntry, ProducerSnapshot};
use crate::num::low_u32;

/// Kafka's value for "no coordinator epoch".
const NO_COORDINATOR_EPOCH: i32 = -1;
/// Kafka's value for "no offset" of a producer without a data batch.
const NO_OFFSET: i64 = -1;
/// Number of buckets of a new `java.util.HashMap`.
const JAVA_MAP_CAPACITY: usize = 16;

/// The state of the producers of a partition.
///
/// ```
/// use kbat::log::producer::ProducerStates;
/// # fn main() -> kbat::Result<()> {
/// let mut bytes = Vec::new();
/// let mut builder = kbat::BatchBuilder::new().base_offset(5).producer(7, 0, 0).transactional(true);
/// builder.append(1_700_000_000_000, Some(b"key"), Some(b"value"))?;
/// builder.finish_into(&mut bytes)?;
///
/// let (mut scratch, limits) = (kbat::Scratch::new(), kbat::Limits::default());
/// let mut states = ProducerStates::new();
/// for batch in kbat::batches(&bytes) {
///     assert!(states.update(&batch?, &mut scratch, &limits)?.is_none());
/// }
/// assert_eq!(states.first_unstable_offset(), Some(5));
/// assert_eq!(states.end_offset(), 6);
/// # Ok(()) }
/// ```
#[derive(Debug, Clone, Default)]
pub struct ProducerStates {
    producers: HashMap<i64, RankedProducer>,
    /// Maps the first offset of each open transaction to its producer id.
    ongoing: BTreeMap<i64, i64>,
    end_offset: i64,
    /// What changed since [`ProducerStates::begin`].
    journal: Option<Journal>,
}

/// How to return to an earlier state.
#[derive(Debug, Clone, Default)]
struct Journal {
    /// The producers that changed, as they were; `None` for new ones.
    producers: HashMap<i64, Option<RankedProducer>>,
    end_offset: i64,
}

#[derive(Debug, Clone, Copy)]
struct RankedProducer {
    entry: ProducerEntry,
    /// Number of producers that were known before this one.
    rank: usize,
}

impl ProducerStates {
    /// Creates an empty state, that at the start of a log.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the state from a snapshot file. `offset` is the one in its name.
    ///
    /// # Errors
    /// The errors of [`ProducerSnapshot::read`].
    pub(crate) fn read(path: impl Into<Location>, offset: i64) -> Result<Self> {
        Ok(Self::from_snapshot(&ProducerSnapshot::read(path)?, offset))
    }

    /// Restores the state from a snapshot. `offset` is the one in the snapshot's file name: the next offset of the
    /// log.
    #[must_use]
    pub fn from_snapshot(snapshot: &ProducerSnapshot, offset: i64) -> Self {
        let mut states = Self { end_offset: offset, ..Self::default() };
        for entry in &snapshot.entries {
            states.set(*entry);
            if let Some(first_offset) = entry.current_txn_first_offset {
                states.ongoing.insert(first_offset, entry.producer_id);
            }
        }
        states
    }

    /// Forgets the producers without an open transaction.
    pub(crate) fn forget_idle(&mut self) {
        self.producers.retain(|_, producer| producer.entry.current_txn_first_offset.is_some());
    }

    /// Creates the snapshot that a broker would write, with entries in the same order.
    #[must_use]
    pub fn to_snapshot(&self) -> ProducerSnapshot {
        let mut capacity = JAVA_MAP_CAPACITY;
        while self.producers.len() > capacity.saturating_sub(capacity >> 2) {
            capacity = capacity.saturating_mul(2);
        }
        let mut states: Vec<&RankedProducer> = self.producers.values().collect();
        states.sort_by_key(|state| (java_bucket(state.entry.producer_id, capacity), state.rank));
        ProducerSnapshot { entries: states.into_iter().map(|state| state.entry).collect() }
    }

    /// Updates the state with the next batch of the log. A batch without a producer id only moves
    /// [`ProducerStates::end_offset`].
    ///
    /// If the batch is the abort marker of a transaction that has records, returns the transaction, which a broker
    /// would write to the transaction index. A control batch without records, which compaction may leave, changes
    /// nothing.
    ///
    /// # Errors
    /// The errors of [`Batch::records`] and [`ControlRecord::parse`] for the first record of a control batch.
    /// [`ErrorKind::InvalidValue`] if that is not a transaction marker, though the batch has a producer id. The state
    /// is unchanged after an error.
    pub fn update(
        &mut self,
        batch: &Batch<'_>,
        scratch: &mut Scratch,
        limits: &Limits,
    ) -> Result<Option<AbortedTransaction>> {
        let mut aborted = None;
        if batch.producer_id() > NO_PRODUCER_ID {
            if !batch.is_control() {
                self.append_data(batch);
            } else if let Some(marker) = marker_of(batch, scratch, limits)? {
                aborted = self.append_marker(batch, marker);
            }
        }
        self.end_offset = batch.next_offset();
        Ok(aborted)
    }

    /// Updates the state with the header of the next batch of the log. This is sufficient unless it is a control
    /// batch.
    pub(crate) fn update_by_header(&mut self, header: &BatchHeader) {
        if header.producer_id() > NO_PRODUCER_ID && !header.is_control() {
            self.append_data(header);
        }
        self.end_offset = header.next_offset();
    }

    fn append_data(&mut self, batch: &BatchHeader) {
        let first_offset = batch.base_offset().unwrap_or_else(|| batch.last_offset());
        let mut entry = self.entry(batch.producer_id());
        entry.producer_epoch = batch.producer_epoch();
        entry.last_sequence = batch.last_sequence();
        entry.last_offset = batch.last_offset();
        entry.offset_delta = i32::try_from(batch.last_offset().wrapping_sub(first_offset)).unwrap_or(0);
        entry.timestamp = batch.max_timestamp();
        if batch.is_transactional() && entry.current_txn_first_offset.is_none() {
            entry.current_txn_first_offset = Some(first_offset);
            self.ongoing.insert(first_offset, entry.producer_id);
        }
        self.set(entry);
    }

    fn append_marker(&mut self, batch: &Batch<'_>, marker: Marker) -> Option<AbortedTransaction> {
        let mut entry = self.entry(batch.producer_id());
        if entry.producer_epoch != batch.producer_epoch() {
            // batches of another epoch no longer count
            entry.producer_epoch = batch.producer_epoch();
            (entry.last_sequence, entry.last_offset, entry.offset_delta) = (NO_SEQUENCE, NO_OFFSET, 0);
        }
        entry.coordinator_epoch = marker.coordinator_epoch;
        entry.timestamp = marker.timestamp;
        let first_offset = entry.current_txn_first_offset.take();
        self.set(entry);
        let first_offset = first_offset?;
        let last_offset = batch.base_offset().unwrap_or_else(|| batch.last_offset());
        let others = self.ongoing.iter().find(|&(_, &producer_id)| producer_id != entry.producer_id);
        let last_stable_offset = others.map_or(last_offset.wrapping_add(1), |(&other, _)| other);
        self.ongoing.remove(&first_offset);
        marker.is_abort.then_some(AbortedTransaction {
            version: 0,
            producer_id: entry.producer_id,
            first_offset,
            last_offset,
            last_stable_offset,
        })
    }

    pub(crate) fn entry(&self, producer_id: i64) -> ProducerEntry {
        self.producers.get(&producer_id).map_or(
            ProducerEntry {
                producer_id,
                producer_epoch: NO_PRODUCER_EPOCH,
                last_sequence: NO_SEQUENCE,
                last_offset: NO_OFFSET,
                offset_delta: 0,
                timestamp: NO_TIMESTAMP,
                coordinator_epoch: NO_COORDINATOR_EPOCH,
                current_txn_first_offset: None,
            },
            |state| state.entry,
        )
    }

    /// Sets the first offset of the open transaction of a producer.
    pub(crate) fn move_transaction(&mut self, producer_id: i64, first_offset: i64) {
        let mut entry = self.entry(producer_id);
        if let Some(before) = entry.current_txn_first_offset.replace(first_offset) {
            self.ongoing.remove(&before);
            self.ongoing.insert(first_offset, producer_id);
            self.set(entry);
        }
    }

    /// Begins changes that [`ProducerStates::roll_back`] can undo.
    pub(crate) fn begin(&mut self) {
        self.journal = Some(Journal { end_offset: self.end_offset, ..Journal::default() });
    }

    /// Keeps the changes.
    pub(crate) fn commit(&mut self) {
        self.journal = None;
    }

    /// Undoes the changes.
    pub(crate) fn roll_back(&mut self) {
        let Some(journal) = self.journal.take() else { return };
        self.end_offset = journal.end_offset;
        for (producer_id, before) in journal.producers {
            let after = self.producers.remove(&producer_id);
            if let Some(first_offset) = after.and_then(|state| state.entry.current_txn_first_offset) {
                self.ongoing.remove(&first_offset);
            }
            if let Some(state) = before {
                self.producers.insert(producer_id, state);
            }
        }
        for state in self.producers.values() {
            if let Some(first_offset) = state.entry.current_txn_first_offset {
                self.ongoing.insert(first_offset, state.entry.producer_id);
            }
        }
    }

    fn set(&mut self, entry: ProducerEntry) {
        if let Some(journal) = &mut self.journal {
            let before = self.producers.get(&entry.producer_id).copied();
            journal.producers.entry(entry.producer_id).or_insert(before);
        }
        let rank = self.producers.len();
        self.producers.entry(entry.producer_id).or_insert(RankedProducer { entry, rank }).entry = entry;
    }

    /// The offset after the last batch.
    #[must_use]
    pub fn end_offset(&self) -> i64 {
        self.end_offset
    }

    /// Sets the expected offset of the next batch, for logs that do not start at 0.
    pub fn set_end_offset(&mut self, offset: i64) {
        self.end_offset = offset;
    }

    /// First offset of the earliest open transaction, if any.
    #[must_use]
    pub fn first_unstable_offset(&self) -> Option<i64> {
        self.ongoing.keys().next().copied()
    }

    /// First offset and producer of each open transaction, by first offset.
    pub(crate) fn open_transactions(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.ongoing.iter().map(|(first_offset, producer_id)| (*first_offset, *producer_id))
    }

    /// The last stable offset, up to which a `read_committed` consumer may read: every transaction below it has ended.
    /// `end_offset` is the end of the log.
    #[must_use]
    pub fn last_stable_offset(&self, end_offset: i64) -> i64 {
        self.first_unstable_offset().unwrap_or(end_offset).min(end_offset)
    }

    /// Whether no producers are known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.producers.is_empty()
    }
}

/// The content of a transaction marker.
#[derive(Debug, Clone, Copy)]
struct Marker {
    is_abort: bool,
    coordinator_epoch: i32,
    timestamp: i64,
}

/// Reads the marker of a control batch. Returns `None` if compaction has removed it.
fn marker_of(batch: &Batch<'_>, scratch: &mut Scratch, limits: &Limits) -> Result<Option<Marker>> {
    let Some(record) = batch.records(scratch, limits)?.next() else { return Ok(None) };
    let record = record?;
    let (is_abort, coordinator_epoch) =
        match ControlRecord::parse(&record).map_err(|error| error.at(batch.position()))? {
            ControlRecord::Abort { coordinator_epoch } => (true, coordinator_epoch),
            ControlRecord::Commit { coordinator_epoch } => (false, coordinator_epoch),
            other => {
                let kind = ErrorKind::InvalidValue {
                    value: i64::from(other.type_id()),
                    expected: "a transaction marker (0 or 1) in a control batch with a producer id",
                };
                return Err(Error::new(kind)
                    .at(batch.position())
                    .in_batch(batch.header().stored_base_offset)
                    .in_field("control_type"));
            }
        };
    Ok(Some(Marker { is_abort, coordinator_epoch, timestamp: record.timestamp() }))
}

/// Returns the bucket of a `Long` in a `java.util.HashMap` of a given capacity: a broker writes snapshots in that
/// order.
fn java_bucket(key: i64, capacity: usize) -> u32 {
    let key = key.cast_unsigned();
    let hash = low_u32(key ^ (key >> 32));
    let spread = hash ^ (hash >> 16);
    spread & u32::try_from(capacity.saturating_sub(1)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::java_bucket;

    #[test]
    fn java_bucket_is_that_of_a_hash_map() {
        // (table.length − 1) & (h ^ h >>> 16), where h is Long.hashCode
        assert_eq!([0, 1, 15, 16, 17, 65536].map(|id| java_bucket(id, 16)), [0, 1, 15, 0, 1, 1]);
        assert_eq!(java_bucket(-1, 16), 0);
        assert_eq!(java_bucket(1 << 32 | 5, 16), 4);
    }
}
