//! Validates a produce request as a broker does, and builds the batches that it would store.
//!
//! | order | checks | Kafka's class |
//! |---|---|---|
//! | `request.rs` | the request's version; framing, base offset, size and checksum of each batch | `ProduceRequest`, `UnifiedLog` |
//! | `records.rs` | offsets against counts, control batches, producers; each record's key and timestamp | `LogValidator` |
//! | `assign.rs` | sets offsets in place, or rebuilds the batch in the topic's codec and format; sizes again | `LogValidator`, `UnifiedLog` |
//!
//! Follows Kafka 4.3.1. [`validate`] omits the checks that depend on the partition's history: sequences, duplicates and
//! producer epochs. [`validate_after`] (`producers.rs`) has them.

mod assign;
mod outcome;
mod producers;
mod records;
mod request;
mod settings;

pub use outcome::{Accepted, ErrorCode, RecordError, Refusal, Validation};
pub use producers::validate_after;
pub use settings::{AppendOrigin, ValidationSettings};

use crate::error::Result;
use crate::limits::Limits;
use outcome::Stop;

/// Checks whether a broker would accept a produce request with these bytes.
///
/// ```
/// # fn main() -> kbat::Result<()> {
/// let mut bytes = Vec::new();
/// let mut builder = kbat::BatchBuilder::new();
/// builder.append(1_700_000_000_000, None, Some(b"value"))?;
/// builder.finish_into(&mut bytes)?;
///
/// let settings = kbat::broker::validate::ValidationSettings { base_offset: 42, now_ms: 1_700_000_000_000, ..Default::default() };
/// match kbat::broker::validate::validate(&bytes, &settings, &kbat::Limits::default())? {
///     kbat::broker::validate::Validation::Accepted(accepted) => assert_eq!(accepted.next_offset, 43),
///     kbat::broker::validate::Validation::Refused(refusal) => panic!("{refusal}"),
/// }
/// let settings = kbat::broker::validate::ValidationSettings { compacted: true, ..settings };
/// match kbat::broker::validate::validate(&bytes, &settings, &kbat::Limits::default())? {
///     kbat::broker::validate::Validation::Accepted(_) => panic!("a compacted topic needs keys"),
///     kbat::broker::validate::Validation::Refused(refusal) => assert_eq!(refusal.code.name(), "INVALID_RECORD"),
/// }
/// # Ok(()) }
/// ```
///
/// # Errors
/// The outcome is unknown: settings that contradict each other, an exceeded limit, or a codec that is not built in. If
/// the broker would reject the bytes, that is not an error but [`Validation::Refused`].
pub fn validate(bytes: &[u8], settings: &ValidationSettings, limits: &Limits) -> Result<Validation> {
    settings.validate()?;
    match request::check(bytes, settings).and_then(|request| assign::assign(&request, settings, limits)) {
        Ok(accepted) => Ok(Validation::Accepted(accepted)),
        Err(Stop::Refused(refusal)) => Ok(Validation::Refused(*refusal)),
        Err(Stop::Failed(error)) => Err(error),
    }
}
