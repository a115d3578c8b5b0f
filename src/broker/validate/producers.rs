//! Whether a broker would append a client's batch, given the earlier batches of its producer.
//!
//! Source: `ProducerAppendInfo.checkProducerEpoch`, `checkSequence` and `UnifiedLog.analyzeAndValidateProducerState`
//! of Kafka. The transaction verification between broker and coordinator is omitted.

use crate::broker::validate::{ErrorCode, Refusal, Validation, ValidationSettings, validate};
use crate::error::{Position, Result};
use crate::format::batch::Batch;
use crate::format::frame::batches;
use crate::format::header::{BatchHeader, NO_PRODUCER_EPOCH, NO_PRODUCER_ID};
use crate::limits::Limits;
use crate::log::producer::ProducerStates;
use crate::slices::Slices;

/// Like [`validate`], but also checks valid bytes against the state of their producers: epochs, sequences, duplicates,
/// open transactions.
///
/// Only a producer's last batch is recognized as a duplicate. A broker that was not restarted remembers five batches.
///
/// # Errors
/// The errors of [`validate`].
pub fn validate_after(
    bytes: &[u8],
    settings: &ValidationSettings,
    limits: &Limits,
    producers: &ProducerStates,
) -> Result<Validation> {
    let validation = validate(bytes, settings, limits)?;
    let Validation::Accepted(mut accepted) = validation else { return Ok(validation) };
    // the first error counts; a request of magic 2 has one batch
    for batch in batches(bytes.part(..accepted.valid_len)) {
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
    /// Returns the first offset of the producer's last batch, if `batch` is the same batch again.
    fn duplicate_of(&self, batch: &BatchHeader) -> Option<i64> {
        let entry = self.entry(batch.producer_id());
        let is_same = batch.producer_id() != NO_PRODUCER_ID
            && entry.has_batch()
            && entry.producer_epoch == batch.producer_epoch()
            && (entry.first_sequence(), entry.last_sequence) == (batch.base_sequence(), batch.last_sequence());
        is_same.then(|| entry.first_offset())
    }

    /// Checks whether a client's batch may follow the earlier batches of its producer. Fails with the error code and
    /// the reason.
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
            return Ok(()); // an unknown producer may start with any sequence
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
