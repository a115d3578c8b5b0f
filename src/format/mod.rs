//! The bytes of record batches: framing, headers, records, control records, and the builder that writes them.
//!
//! Reads no files. Of the crate's other modules it imports only `compression`, which has the codecs, `error`, `limits`,
//! `num`, `slices` and `wire`. The tables are those of the page on the message format in the Kafka documentation, one
//! per file, with the same names.

pub(crate) mod attributes;
pub(crate) mod batch;
pub(crate) mod bookmark;
pub(crate) mod builder;
pub(crate) mod control;
pub(crate) mod cursor;
pub(crate) mod edit;
pub(crate) mod fast_path;
pub(crate) mod frame;
pub(crate) mod header;
pub(crate) mod legacy;
pub(crate) mod prefetch;
pub(crate) mod record;
pub(crate) mod records;
pub(crate) mod size;

pub use builder::{BatchFields, end_transaction_marker};
pub use control::{Endpoint, KRaftVoter, LeaderChangeVoter};
pub use edit::{set_base_offset, set_log_append_time, set_partition_leader_epoch};
pub use header::{NO_PARTITION_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP};
pub use record::NewHeader;
pub use size::{batch_len_bound, message_len, record_len};
