//! Whether a broker would append a client's batch after what its producer wrote before.
//!
//! Source: `ProducerAppendInfo.checkProducerEpoch`, `checkSequence` and `UnifiedLog.analyzeAndValidateProducerState` of Kafka,
//! without the verification of transactions that a broker does with the coordinator.

use crate::error::{Position, Result};
use crate::format::batch::Batch;
use crate::format::frame::batches;
use crate::format::header::{BatchHeader, NO_PRODUCER_EPOCH, NO_PRODUCER_ID};
use crate::format::validate::{ErrorCode, Refusal, Validation, ValidationSettings, validate};
use crate::limits::Limits;
use crate::log::producer::ProducerStates;

/// As [`validate`], and where the bytes alone are fine, by what the log knows of their producers: epochs, sequences,
/// duplicates, open transactions.
///
/// A duplicate is known of a producer's last batch only; a broker that was not restarted since remembers five.
///
/// # Errors
/// Those of [`validate`].
pub fn validate_after(
    bytes: &[u8],
    settings: &ValidationSettings,
    limits: &Limits,
    producers: &ProducerStates,
) -> Result<Validation> {
    let validation = validate(bytes, settings, limits)?;
    let Validation::Accepted(mut accepted) = validation else { return Ok(validation) };
    // the first fault counts; a request of magic 2 has one batch
    for batch in batches(bytes.get(..accepted.valid_len).unwrap_or_default()) {
        let Ok(batch) = batch else { break };
        if let Some(offset) = producers.duplicate_of(&batch) {
            accepted.duplicate_offset = Some(offset);
            return Ok(Validation::Accepted(accepted));
        }
        if let Err((code, message)) = producers.admits(&batch) {
            let position = place_of(&batch);
            return Ok(Validation::Refused(Refusal { code, message, record_errors: Vec::new(), position }));
        }
    }
    Ok(Validation::Accepted(accepted))
}

fn place_of(batch: &Batch<'_>) -> Position {
    Position { byte: Some(batch.position()), base_offset: batch.base_offset(), ..Position::default() }
}

impl ProducerStates {
    /// First offset of the producer's last batch, if this is that batch again.
    fn duplicate_of(&self, batch: &BatchHeader) -> Option<i64> {
        let entry = self.entry(batch.producer_id());
        let is_same = batch.producer_id() != NO_PRODUCER_ID
            && entry.has_batch()
            && entry.producer_epoch == batch.producer_epoch()
            && (entry.first_sequence(), entry.last_sequence) == (batch.base_sequence(), batch.last_sequence());
        is_same.then(|| entry.first_offset())
    }

    /// Whether a client's batch may follow what its producer wrote; else the error and why.
    fn admits(&self, batch: &BatchHeader) -> std::result::Result<(), (ErrorCode, String)> {
        let (id, epoch, sequence) = (batch.producer_id(), batch.producer_epoch(), batch.base_sequence());
        if id == NO_PRODUCER_ID {
            return Ok(());
        }
        let entry = self.entry(id);
        if epoch < entry.producer_epoch {
            let message = format!(
                "Epoch of producer {id} is {epoch}, which is smaller than the last seen epoch {}",
                entry.producer_epoch
            );
            return Err((ErrorCode::InvalidProducerEpoch, message));
        }
        if entry.producer_epoch == NO_PRODUCER_EPOCH {
            return Ok(()); // nothing is known of it: any sequence may begin
        }
        if epoch != entry.producer_epoch && sequence != 0 {
            let message = format!(
                "Invalid sequence number for new epoch of producer {id}: {epoch} (request epoch), {sequence} (seq. number)"
            );
            return Err((ErrorCode::OutOfOrderSequenceNumber, message));
        }
        let follows =
            sequence == entry.last_sequence.wrapping_add(1) || (sequence == 0 && entry.last_sequence == i32::MAX);
        if epoch == entry.producer_epoch && !follows {
            let message = format!(
                "Out of order sequence number for producer {id}: {sequence} (incoming seq. number), {} (current end sequence number)",
                entry.last_sequence
            );
            return Err((ErrorCode::OutOfOrderSequenceNumber, message));
        }
        if entry.current_txn_first_offset.is_some() && !batch.is_transactional() {
            let message = format!("Expected transactional write from producer {id}");
            return Err((ErrorCode::InvalidTxnState, message));
        }
        Ok(())
    }
}
