//! The bytes of record batches: framing, headers, records, control records, and the builder that writes them.
//!
//! Knows no files and no codec library. The tables are those of the Kafka documentation's page on the message format,
//! one file each, under the same names.

pub(crate) mod ahead;
pub(crate) mod attributes;
pub(crate) mod batch;
pub(crate) mod builder;
pub(crate) mod control;
pub(crate) mod convert;
pub(crate) mod crc;
pub(crate) mod cursor;
pub(crate) mod edit;
pub(crate) mod frame;
pub(crate) mod header;
pub(crate) mod legacy;
pub(crate) mod quick;
pub(crate) mod record;
pub(crate) mod records;
pub(crate) mod retain;
pub(crate) mod size;
pub(crate) mod validate;
pub(crate) mod varint;
