//! Tiered storage: segments that brokers copied to an object store or another file system (KIP-405).
//!
//! | layout | name of a segment | bytes of a segment | module |
//! |---|---|---|---|
//! | Aiven's plugin | `<prefix><topic>-<topic id>/<partition>/<offset>-<segment id>.log` | chunks, possibly compressed and encrypted | [`aiven`] |
//! | Kafka's `LocalTieredStorage`, Strimzi | `<topic>-<partition>-<topic id>/<offset>-<segment id>.log` | Kafka's | [`local`] |
//! | Pinterest's uploader | `<prefix>/<bits>/<cluster>/<topic>-<partition>/<offset>.log` | Kafka's | [`pinterest`] |
//!
//! Kafka keeps the state of each segment in the topic `__remote_log_metadata`, which [`metadata`] decodes. Remote
//! storage may contain unfinished copies, copies of deposed leaders, and segments that overlap: [`choose`](mod@choose)
//! selects the ones to read, and reports all others.
//!
//! This module does no network I/O: it reads names, and objects by position.
//!
//! Source: `RemoteLogManager`, `LocalTieredStorage` and `RemoteLogMetadataSerde` of Kafka; Aiven's
//! `tiered-storage-for-apache-kafka`; Pinterest's `tiered-storage`.

pub mod aiven;
pub mod choose;
mod layout;
pub mod local;
pub mod metadata;
mod name;
pub mod pinterest;

pub use choose::{Candidate, Chain, Link, Omission, Reason, choose};
pub use layout::RemoteOptions;
pub use name::SegmentName;
