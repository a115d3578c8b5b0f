//! [`CleanedTransactions`]: which batches belong to aborted transactions, and which markers have nothing left to end.
//!
//! Fed with the batches of the log in order. Follows `CleanedTransactionMetadata` of Kafka.

use std::collections::{HashMap, HashSet, VecDeque};

use crate::compression::Scratch;
use crate::error::Result;
use crate::format::batch::Batch;
use crate::format::control::ControlRecord;
use crate::limits::Limits;
use crate::log::index::AbortedTransaction;

/// The transactions around one place of the log.
#[derive(Debug)]
pub(super) struct CleanedTransactions {
    /// Aborted transactions that begin later, by first offset.
    coming: VecDeque<AbortedTransaction>,
    /// Those that have begun, and whether data of theirs was met.
    aborted: HashMap<i64, (AbortedTransaction, bool)>,
    /// Producers of which data was met in a transaction that was not aborted.
    committed: HashSet<i64>,
}

/// What a control batch is to the cleaner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker {
    /// Nothing is left that it could end: it may go when its time has come.
    Idle,
    /// It ends a transaction whose data was met, or is no marker of a transaction.
    Needed,
    /// It aborts data that was met: the transaction belongs into the new index.
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

    /// Takes in a control batch.
    pub(super) fn read_marker(&mut self, batch: &Batch<'_>, scratch: &mut Scratch, limits: &Limits) -> Result<Marker> {
        self.begin_up_to(batch.last_offset());
        let Some(record) = batch.records(scratch, limits)?.next() else { return Ok(Marker::Idle) };
        let needed = match ControlRecord::parse(&record?)? {
            ControlRecord::Abort { .. } => match self.aborted.remove(&batch.producer_id()) {
                Some((transaction, true)) => return Ok(Marker::Aborts(transaction)),
                _ => false,
            },
            ControlRecord::Commit { .. } => self.committed.remove(&batch.producer_id()),
            _ => true,
        };
        Ok(if needed { Marker::Needed } else { Marker::Idle })
    }

    fn begin_up_to(&mut self, offset: i64) {
        while self.coming.front().is_some_and(|transaction| transaction.first_offset <= offset)
            && let Some(transaction) = self.coming.pop_front()
        {
            self.aborted.entry(transaction.producer_id).or_insert((transaction, false));
        }
    }
}
