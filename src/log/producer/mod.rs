//! A broker's state of producers: their last batches, their open transactions, and snapshots of these.

mod admit;
mod snapshot;
mod state;

pub use admit::validate_after;
pub use snapshot::{ProducerEntry, ProducerSnapshot};
pub use state::ProducerStates;
