//! A broker's state of producers: their last batches, their open transactions, and snapshots of these.

mod snapshot;
mod state;

pub use snapshot::{ProducerEntry, ProducerSnapshot};
pub use state::ProducerStates;
