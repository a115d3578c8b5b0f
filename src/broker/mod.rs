//! What a broker does with batches: accepts or refuses them, removes records, converts between message formats.
//!
//! `format` describes how the bytes are arranged, and does not know these rules. They follow Kafka's `LogValidator`,
//! `ProducerAppendInfo`, `MemoryRecords.filterTo` and `RecordsUtil.downConvert`.

pub mod convert;
pub mod retain;
pub mod validate;
