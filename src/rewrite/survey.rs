//! [`Survey`]: the producers, transactions and end of a log, collected before it is rewritten.

use std::collections::HashMap;
use std::iter::Peekable;

use super::source::{RewriteSource, SourceSegment};
use crate::compression::Scratch;
use crate::error::{ErrorKind, Result};
use crate::format::batch::Batch;
use crate::format::header::{BatchHeader, NO_TIMESTAMP};
use crate::io::Progress;
use crate::log::index::{AbortedTransaction, TransactionIndex};
use crate::log::producer::{ProducerEntry, ProducerStates};
use crate::store::{LogFile, LogFileKind};

/// Producers, transactions and ends of a log.
#[derive(Debug)]
pub(super) struct Survey {
    pub(super) states: ProducerStates,
    /// All aborted transactions that have batches, in the order of their markers.
    pub(super) aborted: Vec<AbortedTransaction>,
    /// The aborted transactions of the transaction indexes, by producer and marker, without wrong entries.
    indexed: HashMap<(i64, i64), AbortedTransaction>,
    /// The offset after the last batch.
    pub(super) end_offset: i64,
    /// Largest timestamp of each segment, −1 if there is none.
    pub(super) largest_timestamps: Vec<i64>,
    /// Bytes at the ends of segments that are not complete batches.
    pub(super) tail_bytes: u64,
}

impl Survey {
    /// Reads the complete log. Aborted transactions are determined from the markers, which are authoritative, and not
    /// from index files, which may be missing.
    pub(super) fn make(source: &RewriteSource, progress: &mut Progress<'_>) -> Result<Self> {
        let mut survey = Self {
            states: states_at_start(source),
            aborted: Vec::new(),
            indexed: HashMap::new(),
            end_offset: 0,
            largest_timestamps: Vec::new(),
            tail_bytes: 0,
        };
        let mut scratch = Scratch::new();
        for segment in &source.segments {
            let mut largest = NO_TIMESTAMP;
            let mut indexed = IndexedTransactions::new(indexed_in(segment)?);
            let tail = source.each_batch(segment, progress, &mut |batch| {
                largest = largest.max(batch.max_timestamp());
                indexed.pass(batch);
                survey.aborted.extend(survey.states.update(batch, &mut scratch, &source.limits)?);
                Ok(true)
            })?;
            survey.tail_bytes = survey.tail_bytes.saturating_add(tail);
            survey.largest_timestamps.push(largest);
            for transaction in indexed.finish() {
                survey.indexed.insert(marker_of(&transaction), transaction);
            }
        }
        for transaction in &survey.aborted {
            let marker = marker_of(transaction);
            if survey.indexed.get(&marker).is_some_and(|entry| entry.first_offset > transaction.first_offset) {
                survey.indexed.remove(&marker);
            }
        }
        let last_base = source.segments.last().map_or(0, |segment| segment.base_offset);
        survey.end_offset = survey.states.end_offset().max(last_base);
        Ok(survey)
    }

    pub(super) fn last_stable_offset(&self) -> i64 {
        self.states.last_stable_offset(self.end_offset)
    }

    /// The index entry of an aborted transaction, or the transaction itself if there is no entry. After an earlier
    /// compaction the log may have only the last batch of the transaction, and only the index its first offset.
    pub(super) fn as_indexed<'a>(&'a self, transaction: &'a AbortedTransaction) -> &'a AbortedTransaction {
        self.indexed.get(&marker_of(transaction)).unwrap_or(transaction)
    }

    /// The transaction index of a segment that is copied unchanged: the entries of its index, and those missing in it.
    pub(super) fn aborted_within(&self, start: i64, end: i64) -> Vec<AbortedTransaction> {
        let known = self.indexed.values().chain(&self.aborted);
        let within = known.filter(|transaction| (start..end).contains(&transaction.last_offset));
        let mut entries: Vec<_> = within.map(|transaction| *self.as_indexed(transaction)).collect();
        entries.sort_by_key(|transaction| (transaction.last_offset, transaction.producer_id));
        entries.dedup_by_key(|transaction| marker_of(transaction));
        entries
    }
}

/// The entries of a segment's transaction index, compared with its batches. A marker may be missing, because compaction
/// removes it later than its transaction; another batch at its offset shows that the entry is wrong.
struct IndexedTransactions {
    /// By the offsets of their markers.
    entries: Peekable<std::vec::IntoIter<AbortedTransaction>>,
    right: Vec<AbortedTransaction>,
}

impl IndexedTransactions {
    fn new(mut entries: Vec<AbortedTransaction>) -> Self {
        entries.sort_by_key(|transaction| transaction.last_offset);
        Self { entries: entries.into_iter().peekable(), right: Vec::new() }
    }

    fn pass(&mut self, batch: &Batch<'_>) {
        while let Some(entry) = self.entries.next_if(|entry| entry.last_offset <= batch.last_offset()) {
            let is_there = batch.base_offset().is_none_or(|base| base <= entry.last_offset);
            let is_marker = batch.is_control() && batch.producer_id() == entry.producer_id;
            if !is_there || is_marker {
                self.right.push(entry);
            }
        }
    }

    fn finish(mut self) -> Vec<AbortedTransaction> {
        self.right.extend(self.entries);
        self.right
    }
}

fn marker_of(transaction: &AbortedTransaction) -> (i64, i64) {
    (transaction.producer_id, transaction.last_offset)
}

/// The entries of a segment's transaction index; none if it is missing or corrupt.
fn indexed_in(segment: &SourceSegment) -> Result<Vec<AbortedTransaction>> {
    let index = TransactionIndex::open(segment.path.with_extension("txnindex"));
    match index.and_then(|index| index.entries()) {
        Err(error) if matches!(error.kind(), ErrorKind::Io(_)) && !error.is_not_found() => Err(error),
        found => Ok(found.unwrap_or_default()),
    }
}

/// The producers before the start of the log, from the snapshot of the first segment. Like in a broker, there are none
/// if the snapshot is missing or damaged.
fn states_at_start(source: &RewriteSource) -> ProducerStates {
    let Some(base_offset) = source.segments.first().map(|segment| segment.base_offset) else {
        return ProducerStates::new();
    };
    let path = source.directory.join(LogFile::live(base_offset, LogFileKind::ProducerSnapshot).to_string());
    ProducerStates::read(&path, base_offset).unwrap_or_default()
}

/// The last batch of each producer, from which its state is restored.
#[derive(Debug)]
pub(super) struct LastBatches(HashMap<i64, ProducerEntry>);

impl LastBatches {
    /// The last batches of producers that are not expired. A producer is expired if it has no open transaction and its
    /// last timestamp is at least `expiration_ms` before `now_ms`.
    pub(super) fn new(survey: &Survey, now_ms: i64, expiration_ms: Option<i64>) -> Self {
        let active = |entry: &ProducerEntry| {
            let idle = now_ms.saturating_sub(entry.timestamp);
            entry.current_txn_first_offset.is_some() || expiration_ms.is_none_or(|expiration| idle < expiration)
        };
        let entries = survey.states.to_snapshot().entries.into_iter().filter(active);
        Self(entries.map(|entry| (entry.producer_id, entry)).collect())
    }

    /// Whether a batch has the last data of its producer. For a producer without data, whether it is a marker with its
    /// epoch.
    pub(super) fn is_last(&self, batch: &BatchHeader) -> bool {
        match self.0.get(&batch.producer_id()) {
            Some(entry) if entry.last_offset >= 0 => batch.last_offset() == entry.last_offset,
            Some(entry) => batch.is_control() && batch.producer_epoch() == entry.producer_epoch,
            None => false,
        }
    }
}
