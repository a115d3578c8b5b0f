//! The checks before any record is parsed: first those of the request, then those of each batch's header and checksum.
//!
//! Follows `ProduceRequest.validateRecords` and `UnifiedLog.analyzeAndValidateRecords`.

use crate::broker::validate::outcome::{ErrorCode, StepResult, Stop, refusal, refuse, unreadable};
use crate::broker::validate::settings::{AppendOrigin, ValidationSettings};
use crate::compression::Compression;
use crate::error::{Error, ErrorKind, Position};
use crate::format::batch::Batch;
use crate::format::frame::{Batches, batches};
use crate::format::header::{LOG_OVERHEAD, MIN_LENGTH};
use crate::num::usize_from_u64;
use crate::slices::Slices;

/// A request with valid batches.
pub(super) struct Request<'a> {
    /// The whole batches.
    pub(super) bytes: &'a [u8],
    pub(super) first: Batch<'a>,
    /// Codec of the last batch that has one.
    pub(super) source: Compression,
}

impl<'a> Request<'a> {
    /// Iterates over the batches again, all of which are valid.
    pub(super) fn batches(&self) -> impl Iterator<Item = Batch<'a>> + use<'a> {
        batches(self.bytes).map_while(Result::ok)
    }
}

/// Iterates over batches and turns invalid bytes into Kafka's errors.
struct RequestBatches<'a>(Batches<'a>);

impl<'a> RequestBatches<'a> {
    fn next(&mut self) -> StepResult<Option<Batch<'a>>> {
        match self.0.next() {
            Some(Ok(batch)) => Ok(Some(batch)),
            Some(Err(error)) => Err(no_batch(&error)),
            None => self.check_zero_tail().map(|()| None),
        }
    }

    /// Rejects zeros after the last batch, which are allowed in a preallocated file but not in a request.
    fn check_zero_tail(&self) -> StepResult<()> {
        let rest = self.0.remainder();
        let length = rest.get(8..LOG_OVERHEAD).and_then(|length| length.first_chunk::<4>());
        match length.map(|length| i32::from_be_bytes(*length)) {
            Some(length) if length < MIN_LENGTH => {
                let position = Position { byte: Some(self.0.position()), ..Position::default() };
                let message = format!("Record size {length} is less than the minimum record overhead ({MIN_LENGTH})");
                Err(refusal(ErrorCode::CorruptMessage, message, position))
            }
            _ => Ok(()),
        }
    }
}

#[cold]
fn no_batch(error: &Error) -> Stop {
    let code = match error.kind() {
        // Kafka's sum overflows, which throws an exception that is not an error of the protocol
        ErrorKind::BatchLength { length, minimum } if length >= minimum => ErrorCode::UnknownServerError,
        _ => ErrorCode::CorruptMessage,
    };
    refusal(code, error.kind().to_string(), error.position())
}

/// Makes all checks of this file.
pub(super) fn check<'a>(bytes: &'a [u8], settings: &ValidationSettings) -> StepResult<Request<'a>> {
    if let Some(version) = settings.request_version {
        check_version(bytes, version)?;
    }
    let mut walk = RequestBatches(batches(bytes));
    let (mut first, mut has_more, mut source) = (None, false, Compression::None);
    while let Some(batch) = walk.next()? {
        check_batch(&batch, settings)?;
        match batch.compression().map_err(|error| unreadable(error, &batch))? {
            Compression::None => {}
            compression => source = compression,
        }
        has_more |= first.is_some();
        first.get_or_insert(batch);
    }
    let Some(first) = first else {
        return Err(refusal(ErrorCode::InvalidRecord, "Record batch has no batches at all", Position::default()));
    };
    if has_more && (first.magic() >= 2 || source != Compression::None) {
        return refuse(ErrorCode::InvalidRecord, "Compressed outer record has more than one batch", &first);
    }
    let len = usize_from_u64(walk.0.position());
    Ok(Request { bytes: bytes.part(..len), first, source })
}

fn check_version(bytes: &[u8], version: i16) -> StepResult<()> {
    let start = format!("Produce requests with version {version}");
    let mut walk = RequestBatches(batches(bytes));
    let Some(batch) = walk.next()? else {
        let message = format!("{start} must have at least one record batch per partition");
        return Err(refusal(ErrorCode::InvalidRecord, message, Position::default()));
    };
    if batch.magic() != 2 {
        let message = format!("{start} are only allowed to contain record batches with magic version 2");
        return refuse(ErrorCode::InvalidRecord, message, &batch);
    }
    if let Some(codec) = Compression::from_id(batch.attributes().codec_id())
        && version < codec.min_produce_version()
    {
        let message = format!("{start} are not allowed to use {} compression", codec.title());
        return refuse(ErrorCode::UnsupportedCompressionType, message, &batch);
    }
    if walk.next()?.is_some() {
        let message = format!("{start} are only allowed to contain exactly one record batch per partition");
        return refuse(ErrorCode::InvalidRecord, message, &batch);
    }
    Ok(())
}

fn check_batch(batch: &Batch<'_>, settings: &ValidationSettings) -> StepResult<()> {
    let epoch = (batch.partition_leader_epoch(), settings.partition_leader_epoch);
    if settings.origin == AppendOrigin::RaftLeader && epoch.0 != epoch.1 {
        let message = format!(
            "Append from Raft leader did not set the batch epoch correctly, expected {} but the batch has {}",
            epoch.1, epoch.0
        );
        return refuse(ErrorCode::InvalidRecord, message, batch);
    }
    let base_offset = batch.header().stored_base_offset;
    if settings.is_client() && batch.magic() >= 2 && base_offset != 0 {
        let message = format!("The baseOffset of the record batch in the append should be 0, but it is {base_offset}");
        return refuse(ErrorCode::InvalidRecord, message, batch);
    }
    if batch.size() > settings.max_message_bytes {
        let message = format!(
            "The record batch size in the append is {} bytes which exceeds the maximum configured value of {}",
            batch.size(),
            settings.max_message_bytes
        );
        return refuse(ErrorCode::MessageTooLarge, message, batch);
    }
    match batch.verify_crc() {
        Ok(()) => Ok(()),
        Err(error) => {
            let message = format!("Record is corrupt (stored crc = {})", batch.crc());
            Err(refusal(ErrorCode::CorruptMessage, message, error.position()))
        }
    }
}
