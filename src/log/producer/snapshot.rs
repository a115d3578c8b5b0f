//! [`ProducerSnapshot`]: what a broker knew of each producer at one offset.

/// What a broker knows of one producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProducerEntry {
    /// Producer id.
    pub producer_id: i64,
    /// Epoch of its last batch or marker.
    pub producer_epoch: i16,
    /// Sequence of the last record of its last data batch, −1 for none.
    pub last_sequence: i32,
    /// Last offset of its last data batch, −1 for none.
    pub last_offset: i64,
    /// Last minus first offset of its last data batch.
    pub offset_delta: i32,
    /// Largest timestamp of its last data batch, or that of its last marker if that came later; milliseconds since the epoch.
    pub timestamp: i64,
    /// Epoch of the transaction coordinator that wrote its last marker, −1 for none.
    pub coordinator_epoch: i32,
    /// First offset of its open transaction.
    pub current_txn_first_offset: Option<i64>,
}

/// What a broker knew of each producer at one offset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProducerSnapshot {
    /// One entry a producer.
    pub entries: Vec<ProducerEntry>,
}
