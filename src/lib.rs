//! Kafka's record format as a library: record batches and log segments, read and written without a broker.
//!
//! ```text
//!  a segment file, a Fetch answer, a column of bytes
//!  ┌──────────┬──────────┬─────────────────────────────┬───┄
//!  │ batch    │ batch    │ batch                       │ …
//!  └──────────┴──────────┴─────────────────────────────┴───┄
//!                       ╱                               ╲
//!  ┌───────────────────┬─────────────────────────────────┐
//!  │ 61 bytes of header│ records, compressed or not      │
//!  │ base_offset  crc  │ ┌────────┬────────┬────────┬──┄ │
//!  │ batch_length …    │ │ record │ record │ record │ …  │
//!  │ record_count      │ └────────┴────────┴────────┴──┄ │
//!  └───────────────────┴─────────────────────────────────┘
//! ```
//!
//! Message formats v0, v1 and v2 may be mixed in any order, with every codec in every variant that brokers and clients
//! have written. Reading is lazy in layers: [`batches`] reads only headers, [`Batch::records`] decompresses and walks
//! records, [`Record::headers`] parses record headers. Uncompressed records borrow from the input; compressed ones
//! borrow from a [`Scratch`] that the caller reuses.
//!
//! # Read
//! ```
//! use kbat::{Limits, Scratch};
//! # fn main() -> kbat::Result<()> {
//! # let mut bytes = Vec::new();
//! # let mut builder = kbat::BatchBuilder::new().compression(kbat::Compression::Lz4);
//! # builder.append(1_700_000_000_000, Some(b"key"), Some(b"value"))?;
//! # builder.finish_into(&mut bytes)?;
//! let (mut scratch, limits) = (Scratch::new(), Limits::default());
//! for batch in kbat::batches(&bytes) {
//!     let batch = batch?;
//!     batch.verify_crc()?;
//!     for record in batch.records(&mut scratch, &limits)? {
//!         let record = record?;
//!         println!("{} {:?} {:?}", record.offset(), record.key(), record.value());
//!     }
//! }
//! # Ok(()) }
//! ```
//!
//! # Write
//! ```
//! use kbat::{BatchBuilder, Compression};
//! # fn main() -> kbat::Result<()> {
//! let mut builder = BatchBuilder::new().compression(Compression::Zstd).base_offset(1000);
//! builder.append(1_700_000_000_000, Some(b"key"), Some(b"value"))?;
//! builder.append_with_headers(1_700_000_000_001, None, Some(b"value"), &[(b"trace", Some(b"7f"))])?;
//! let mut bytes = Vec::new();
//! builder.finish_into(&mut bytes)?;
//! # Ok(()) }
//! ```
//!
//! # Diagnose corruption
//! ```
//! # fn main() -> kbat::Result<()> {
//! # let mut builder = kbat::BatchBuilder::new();
//! # builder.append(1_700_000_000_000, Some(b"key"), Some(b"value"))?;
//! # let mut bytes = Vec::new();
//! # builder.finish_into(&mut bytes)?;
//! bytes[70] ^= 1;
//! let batch = kbat::batches(&bytes).next().unwrap()?;
//! let error = batch.verify_crc().unwrap_err();
//! assert!(matches!(error.kind(), kbat::ErrorKind::Crc { .. }));
//! assert_eq!((error.position().byte, error.position().base_offset), (Some(17), Some(0)));
//! # Ok(()) }
//! ```
//!
//! # Modules
//! - [`log`]: segments, partitions, log directories, their indexes and checkpoints, and a writer.
//! - [`repair`]: verify, recover, salvage.
//! - [`rewrite`]: compact, filter, recompress.
//! - [`restore`](mod@restore): backups and tiered storage to the log directory of a new broker.
//! - [`format`](mod@format): in-place edits, sizes, transaction markers.
//! - [`broker`]: what a broker does with batches: [conversion](mod@broker::convert),
//!   [validation](mod@broker::validate), [retention](mod@broker::retain).
//! - [`plan`]: selects the segments to read.
//! - `sink`: rows to partition directories, written by tasks and one commit (feature `plan`).
//! - [`internal`]: the records of Kafka's internal topics.
//! - [`dump`](mod@dump): what `kafka-dump-log` prints.
//! - [`store`]: names of files and directories.
//! - [`partitioner`]: Kafka's default partitioner.
//! - `text`: records as JSON lines, CSV and other text (feature `text`).
//! - `tiered`: segments in remote storage (feature `tiered`).
//!
//! # Features
//! One per codec, such as `zstd` (all on by default). `arrow`: columns. `parquet`: columns to Parquet files. `plan`:
//! reads divided into tasks. `text`: records as text. `tiered`: segments in remote storage. `python`: the extension
//! module; needs Python. `jvm`: the library of the Spark source; needs a JVM.
//!
//! # Out of scope
//! kbat has no client for brokers, no broker and no schema registry: keys and values are bytes.

#![deny(unsafe_code)]
#![cfg_attr(
    not(all(feature = "python", feature = "jvm")),
    allow(
        dead_code,
        unused_imports,
        reason = "some items are for other features; `make lint` finds unused ones with all features"
    )
)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;

#[cfg(feature = "arrow")]
pub mod arrow;
pub mod broker;
mod compression;
pub mod dump;
mod epoch;
mod error;
pub mod format;
#[doc(hidden)]
pub mod fuzzing;
pub mod internal;
mod io;
#[cfg(feature = "jvm")]
mod jvm;
mod limits;
pub mod log;
mod num;
#[cfg(feature = "object-store")]
pub mod objects;
#[cfg(feature = "parquet")]
pub mod parquet;
pub mod partitioner;
pub mod plan;
mod plural;
#[cfg(feature = "python")]
mod python;
pub mod repair;
pub mod restore;
pub mod rewrite;
#[cfg(feature = "plan")]
pub mod sink;
mod slices;
pub mod store;
#[cfg(feature = "text")]
pub mod text;
#[cfg(feature = "tiered")]
pub mod tiered;
mod wire;
// the notebook views do not need Python, and their tests run without it
#[cfg(all(test, not(feature = "python")))]
#[allow(dead_code, reason = "not all of it has a test")]
#[path = "python/html.rs"]
mod html;

pub use compression::{Compression, Scratch};
pub use error::{Error, ErrorKind, Position, Result};
pub use format::attributes::{Attributes, TimestampType};
pub use format::batch::Batch;
pub use format::builder::BatchBuilder;
pub use format::control::ControlRecord;
pub use format::frame::{Batches, batches};
pub use format::header::BatchHeader;
pub use format::record::{Header, Headers, Record};
pub use format::records::Records;
pub use io::{Location, Progress};
pub use limits::Limits;
pub use plan::find_segments;
