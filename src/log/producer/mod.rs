//! A broker's state of producers: their last batches, their open transactions, and snapshots of these.

mod replay;
mod snapshot;
mod state;

pub(crate) use replay::{StatesAt, replay_segment, states_at};
pub(crate) use snapshot::MAX_SNAPSHOT_LEN;
pub use snapshot::{ProducerEntry, ProducerSnapshot};
pub use state::ProducerStates;
