//! Records and files in other forms: Parquet, text, and the lines of `kafka-dump-log`.

pub(crate) mod dump;
pub(crate) mod parquet;
pub(crate) mod text;
