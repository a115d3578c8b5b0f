//! The integration tests of the crate, in one binary: golden files, which brokers and clients wrote, with the answers
//! of Kafka's own classes (`tests/data`); properties; corruption.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    clippy::cast_sign_loss,
    reason = "a test that panics is a test that fails; clippy's switches for tests do not reach helper functions"
)]

#[cfg(feature = "arrow")]
mod binary_views;
#[cfg(feature = "arrow")]
mod common_columns;
mod convert;
mod corpus;
mod corruption;
mod data;
mod differences;
mod edge_control;
mod edge_framing;
mod edge_gzip;
mod edge_header;
mod edge_indexes;
mod edge_legacy;
mod edge_limits;
mod edge_lz4;
mod edge_records;
mod edge_snappy;
mod edge_writers;
mod edge_zstd;
mod folder;
mod format_batch;
mod format_record;
mod golden;
mod headers;
mod index_files;
#[cfg(feature = "arrow")]
mod internal_columns;
#[cfg(feature = "arrow")]
mod offset_columns;
#[cfg(feature = "arrow")]
mod parallel;
mod producer_states;
mod properties;

mod raw;
mod reader;
mod rebuild;
mod recovery;
mod restore;
mod restore_report;
mod retain;
mod rewrite;
mod roundtrip;
mod salvage;
#[cfg(feature = "tiered")]
mod tiered;
mod validate;
mod verdicts;
mod verify;
mod writer;
mod writer_rules;
mod writes;
