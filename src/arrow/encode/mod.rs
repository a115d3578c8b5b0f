//! [`EncodedBatches`]: encodes Arrow data as record batches.

mod bytes;
mod options;
mod packer;
mod rows;

#[cfg(feature = "plan")]
pub(crate) use self::bytes::BytesColumn;
pub(crate) use self::packer::RowPacker;
pub use options::EncodeOptions;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Schema};

use crate::error::{Error, Result};

/// A record batch encoded from Arrow rows. With magic 0 or 1 and no compression: the sequence of messages that takes
/// its role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodedBatch {
    /// The batch's bytes.
    pub bytes: Vec<u8>,
    /// Offset of the first record.
    pub base_offset: i64,
    /// Offset of the last record.
    pub last_offset: i64,
    /// Number of records.
    pub record_count: u32,
}

/// Iterates over the record batches encoded from Arrow batches. The columns are `key`, `value`, `timestamp`, `headers`
/// and `offset`, named as in Spark's Kafka source and sink. Only `value` is required, and `timestamp` unless the
/// options have one for all records.
///
/// Boundaries of record batches and Arrow batches are independent of each other. A record whose offset is more than 2³¹
/// − 1 above the base offset begins a new batch. Ends after its first error.
///
/// ```
/// # fn main() -> kbat::Result<()> {
/// use std::sync::Arc;
/// use arrow_array::{BinaryArray, Int64Array, RecordBatch};
/// use kbat::arrow::{EncodeOptions, EncodedBatches};
///
/// let values = BinaryArray::from(vec![Some(&b"a"[..]), None]);
/// let times = Int64Array::from(vec![1_700_000_000_000, 1_700_000_000_001]);
/// let rows = RecordBatch::try_from_iter([
///     ("value", Arc::new(values) as Arc<dyn arrow_array::Array>),
///     ("timestamp", Arc::new(times)),
/// ]).unwrap();
/// let options = EncodeOptions { base_offset: Some(42), ..EncodeOptions::default() };
/// for batch in EncodedBatches::new(&rows.schema(), [Ok(rows)], options)? {
///     let batch = batch?;
///     assert_eq!((batch.base_offset, batch.last_offset, batch.record_count), (42, 43, 2));
/// }
/// # Ok(()) }
/// ```
pub struct EncodedBatches<I> {
    source: I,
    packer: RowPacker,
    ended: bool,
}

impl<I: Iterator<Item = std::result::Result<RecordBatch, ArrowError>>> EncodedBatches<I> {
    /// Creates an encoder. Data is read as iteration reaches it.
    ///
    /// # Errors
    /// If options contradict each other, or a column is missing or has an unsupported type.
    pub fn new(schema: &Schema, source: impl IntoIterator<IntoIter = I>, options: EncodeOptions) -> Result<Self> {
        Ok(Self { source: source.into_iter(), packer: RowPacker::new(schema, options)?, ended: false })
    }

    /// The same encoder, for rows that follow others: messages count those too.
    #[cfg(feature = "plan")]
    pub(crate) fn after_rows(self, count: u64) -> Self {
        Self { packer: self.packer.after_rows(count), ..self }
    }

    /// The options.
    #[cfg(feature = "python")]
    pub(crate) fn options(&self) -> &EncodeOptions {
        &self.packer.options
    }

    fn advance(&mut self) -> Result<Option<EncodedBatch>> {
        loop {
            if let Some(batch) = self.packer.next_full()? {
                return Ok(Some(batch));
            }
            match self.source.next() {
                None => return self.packer.finish(),
                Some(Ok(rows)) => self.packer.push(rows),
                Some(Err(error)) => return Err(data_error(error)),
            }
        }
    }
}

impl<I: Iterator<Item = std::result::Result<RecordBatch, ArrowError>>> Iterator for EncodedBatches<I> {
    type Item = Result<EncodedBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.advance().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}

/// Converts an error of the data source. Errors of kbat are returned unchanged.
fn data_error(error: ArrowError) -> Error {
    let text = |error: &dyn std::fmt::Display| Error::argument(format!("reading the Arrow data failed: {error}"));
    match error {
        ArrowError::ExternalError(source) => match source.downcast::<Error>() {
            Ok(error) => *error,
            Err(source) => text(&source),
        },
        error => text(&error),
    }
}

impl<I: Iterator<Item = std::result::Result<RecordBatch, ArrowError>>> std::iter::FusedIterator for EncodedBatches<I> {}
