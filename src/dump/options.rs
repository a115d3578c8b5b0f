//! The options of a dump.

use crate::internal::Family;
use crate::limits::Limits;

/// Size of a message unless another one is set, as in `kafka-dump-log`.
const MAX_MESSAGE_SIZE: u64 = 5 * 1024 * 1024;

/// How keys and values are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Decoder {
    /// As text; malformed UTF-8 becomes U+FFFD.
    #[default]
    Text,
    /// As the records of an internal topic.
    Internal(Family),
}

/// What a dump looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Format {
    /// The lines of `kafka-dump-log`.
    #[default]
    Kafka,
    /// Columns of one width.
    Table,
    /// One JSON object per line.
    Jsonl,
}

/// The options of [`dump`](crate::dump::dump). Each has the name of the flag of `kafka-dump-log`.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of kafka-dump-log")]
pub struct Options {
    /// `--print-data-log`: print keys and values; includes [`Options::deep`].
    pub contents: bool,
    /// `--deep-iteration`: print records, not only batches.
    pub deep: bool,
    /// `--skip-record-metadata`: print only keys and values of records.
    pub skip_record_metadata: bool,
    /// `--verify-index-only`: compare indexes with the log without printing their entries.
    pub verify_index_only: bool,
    /// `--index-sanity-check`: only check what a broker checks when it starts.
    pub index_sanity_check: bool,
    /// `--max-message-size`: bytes after an index entry's position in which its batch must end.
    pub max_message_size: u64,
    /// `--max-bytes`: bytes of each log to read; `None` for all.
    pub max_bytes: Option<u64>,
    /// The decoder of keys and values.
    pub decoder: Decoder,
    /// What the output looks like.
    pub format: Format,
    /// Bounds on the memory that decompression may use.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            contents: false,
            deep: false,
            skip_record_metadata: false,
            verify_index_only: false,
            index_sanity_check: false,
            max_message_size: MAX_MESSAGE_SIZE,
            max_bytes: None,
            decoder: Decoder::Text,
            format: Format::Kafka,
            limits: Limits::default(),
        }
    }
}

impl Options {
    pub(crate) fn is_deep(&self) -> bool {
        self.deep || self.contents
    }
}
