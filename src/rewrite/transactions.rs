//! [`CleanedTransactions`]: which batches belong to aborted transactions, and which markers are no longer needed.
//!
//! Takes the batches of the log in order. Follows Kafka's `CleanedTransactionMetadata`.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::compression::Scratch;
use crate::error::Result;
use crate::format::batch::Batch;
use crate::format::control::ControlRecord;
use crate::limits::Limits;
use crate::log::index::AbortedTransaction;

/// The transactions at one offset of the log.
#[derive(Debug)]
pub(super) struct CleanedTransactions {
    /// Aborted transactions that begin later, by first offset.
    coming: VecDeque<AbortedTransaction>,
    /// Aborted transactions that have begun, by producer, and whether data of them has been seen.
    aborted: HashMap<i64, (AbortedTransaction, bool)>,
    /// Producers with data in a transaction that is not aborted.
    committed: HashSet<i64>,
}

/// Whether compaction needs a control batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkerRole {
    /// Its transaction has no data left: it may be removed after its delete horizon.
    Idle,
    /// It ends a transaction with data, or is not a transaction marker.
    Needed,
    /// It aborts a transaction with data, which must be added to the new index.
    Aborts(AbortedTransaction),
}

impl CleanedTransactions {
    /// `aborted` are all aborted transactions of the log.
    pub(super) fn new(aborted: &[AbortedTransaction]) -> Self {
        let mut coming: Vec<_> = aborted.to_vec();
        coming.sort_by_key(|transaction| transaction.first_offset);
        Self { coming: coming.into(), aborted: HashMap::new(), committed: HashSet::new() }
    }

    /// Whether a data batch belongs to an aborted transaction.
    pub(super) fn is_aborted(&mut self, batch: &Batch<'_>) -> bool {
        self.begin_up_to(batch.last_offset());
        if !batch.is_transactional() {
            return false;
        }
        if let Some((_, met)) = self.aborted.get_mut(&batch.producer_id()) {
            *met = true;
            return true;
        }
        self.committed.insert(batch.producer_id());
        false
    }

    /// Processes a control batch.
    pub(super) fn read_marker(
        &mut self,
        batch: &Batch<'_>,
        scratch: &mut Scratch,
        limits: &Limits,
    ) -> Result<MarkerRole> {
        self.begin_up_to(batch.last_offset());
        let Some(record) = batch.records(scratch, limits)?.next() else { return Ok(MarkerRole::Idle) };
        let needed = match ControlRecord::parse(&record?)? {
            ControlRecord::Abort { .. } => match self.aborted.remove(&batch.producer_id()) {
                Some((transaction, true)) => return Ok(MarkerRole::Aborts(transaction)),
                _ => false,
            },
            ControlRecord::Commit { .. } => self.committed.remove(&batch.producer_id()),
            _ => true,
        };
        Ok(if needed { MarkerRole::Needed } else { MarkerRole::Idle })
    }

    fn begin_up_to(&mut self, offset: i64) {
        while self.coming.front().is_some_and(|transaction| transaction.first_offset <= offset)
            && let Some(transaction) = self.coming.pop_front()
        {
            self.aborted.entry(transaction.producer_id).or_insert((transaction, false));
        }
    }
}
