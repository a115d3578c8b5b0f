//! What a broker knows of producers: their last batches and open transactions, and the snapshots of that.

mod snapshot;
mod state;

pub use snapshot::{ProducerEntry, ProducerSnapshot};
pub use state::ProducerStates;
