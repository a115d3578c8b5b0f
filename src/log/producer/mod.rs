//! What a broker knows of producers: their last batches and open transactions, and the snapshots of that.

mod admit;
mod snapshot;
mod state;

pub use admit::validate_after;
pub use snapshot::{ProducerEntry, ProducerSnapshot};
pub use state::ProducerStates;
