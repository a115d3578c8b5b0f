//! [`RowPacker`]: packs rows into record batches.

use arrow_array::RecordBatch;
use arrow_schema::Schema;

use crate::arrow::encode::rows::{ColumnIndexes, RecordColumns};
use crate::arrow::encode::{EncodeOptions, EncodedBatch};
use crate::error::{Error, Result};
use crate::format::builder::BatchBuilder;
use crate::format::header::{BATCH_HEADER_LEN, NO_SEQUENCE, increment_sequence};
use crate::format::record::NewHeader;

/// Maximum bytes of a record besides its key, value and headers: length, attributes, deltas, lengths and count in v2,
/// the fields of the message in v0 and v1.
const RECORD_OVERHEAD: usize = 36;
/// Maximum bytes of a header besides its key and value.
const HEADER_OVERHEAD: usize = 10;

/// Packs the rows of Arrow batches into record batches. Rows are pushed: a record batch continues from one Arrow batch to
/// the next. After an error, it can't be used any more.
pub(crate) struct RowPacker {
    pub(super) options: EncodeOptions,
    layout: ColumnIndexes,
    /// The current Arrow batch, and its next row.
    current: Option<(RecordBatch, usize)>,
    open: Option<Open>,
    next_offset: i64,
    next_sequence: i32,
    /// Rows read, for messages.
    row_count: u64,
}

/// A record batch under construction.
struct Open {
    builder: BatchBuilder,
    base_offset: i64,
    last_offset: i64,
    /// Upper bound of the bytes of its records.
    len: usize,
}

impl Open {
    /// Number of sequence numbers: one for each offset from the first to the last record.
    fn sequence_count(&self) -> i32 {
        let count = self.last_offset.wrapping_sub(self.base_offset).saturating_add(1);
        i32::try_from(count).unwrap_or(i32::MAX)
    }
}

impl RowPacker {
    /// A packer of Arrow batches with this schema.
    ///
    /// # Errors
    /// If options contradict each other, or a column is missing or has an unsupported type.
    pub(crate) fn new(schema: &Schema, options: EncodeOptions) -> Result<Self> {
        options.validate()?;
        Ok(Self {
            layout: ColumnIndexes::of(schema, &options)?,
            current: None,
            open: None,
            next_offset: options.base_offset.unwrap_or(0),
            next_sequence: options.base_sequence,
            row_count: 0,
            options,
        })
    }

    /// The same packer, for rows that follow others: messages count those too.
    pub(crate) fn after_rows(self, count: u64) -> Self {
        Self { row_count: count, ..self }
    }

    /// Adds an Arrow batch, after [`next_full`](Self::next_full) has returned `None`.
    pub(crate) fn push(&mut self, rows: RecordBatch) {
        self.current = Some((rows, 0));
    }

    /// Appends rows of the current Arrow batch until it ends, or until a record batch is full, which is returned.
    ///
    /// # Errors
    /// A row that Kafka's rules forbid, with its number.
    pub(crate) fn next_full(&mut self) -> Result<Option<EncodedBatch>> {
        let Some((batch, start)) = self.current.take() else { return Ok(None) };
        let rows = RecordColumns::new(&batch, &self.layout, &self.options)?;
        if start == 0 {
            // once for all record batches
            rows.check()?;
        }
        let mut headers = Vec::new();
        for row in start..batch.num_rows() {
            let full = self.append(&rows, row, &mut headers).map_err(|error| self.in_row(&error))?;
            self.row_count = self.row_count.saturating_add(1);
            if full.is_some() {
                drop(headers);
                self.current = Some((batch, row.saturating_add(1)));
                return Ok(full);
            }
        }
        Ok(None)
    }

    /// Appends a row. Returns the previous batch if the row did not fit into it.
    #[inline]
    fn append<'a>(
        &mut self,
        rows: &RecordColumns<'a>,
        row: usize,
        headers: &mut Vec<NewHeader<'a>>,
    ) -> Result<Option<EncodedBatch>> {
        rows.headers(row, headers)?;
        let (key, value, timestamp) = (rows.key(row), rows.value(row), rows.timestamp(row)?);
        let offset = match rows.offset(row)? {
            Some(offset) if offset < 0 => return Err(Error::argument(format!("offset {offset} is negative"))),
            Some(offset) if offset < self.next_offset => {
                let before = self.next_offset.wrapping_sub(1);
                return Err(Error::argument(format!(
                    "offset {offset} does not follow {before}: offsets must be strictly increasing"
                )));
            }
            offset => offset.unwrap_or(self.next_offset),
        };
        let len = record_len_bound(key, value, headers);
        let full = if self.has_room(offset, len) { None } else { self.finish()? };
        let open = self.open.get_or_insert_with(|| Open {
            builder: self.options.builder(offset, self.next_sequence),
            base_offset: offset,
            last_offset: offset,
            len: BATCH_HEADER_LEN,
        });
        open.builder.append_at(offset, timestamp, key, value, headers)?;
        (open.last_offset, open.len) = (offset, open.len.saturating_add(len));
        self.next_offset = offset.checked_add(1).ok_or_else(|| Error::argument("there is no offset after this one"))?;
        Ok(full)
    }

    /// Whether a record of `len` bytes fits into the open batch, if there is one.
    #[inline]
    fn has_room(&self, offset: i64, len: usize) -> bool {
        let Some(open) = &self.open else { return true };
        let rows = open.builder.record_count();
        let in_reach = offset.checked_sub(open.base_offset).is_some_and(|delta| i32::try_from(delta).is_ok());
        in_reach
            && open.len.saturating_add(len) <= self.options.batch_bytes
            && self.options.batch_rows.is_none_or(|most| usize::try_from(rows).is_ok_and(|rows| rows < most))
    }

    /// Ends the open batch.
    ///
    /// # Errors
    /// A batch that is too large.
    pub(crate) fn finish(&mut self) -> Result<Option<EncodedBatch>> {
        let Some(open) = self.open.take() else { return Ok(None) };
        let record_count = open.builder.record_count();
        if self.next_sequence != NO_SEQUENCE {
            self.next_sequence = increment_sequence(self.next_sequence, open.sequence_count());
        }
        let mut bytes = Vec::new();
        open.builder.finish_into(&mut bytes)?;
        Ok(Some(EncodedBatch { bytes, base_offset: open.base_offset, last_offset: open.last_offset, record_count }))
    }

    #[cold]
    fn in_row(&self, error: &Error) -> Error {
        Error::argument(format!("row {}: {error}", self.row_count))
    }
}

/// Upper bound of the bytes of a record.
#[inline]
fn record_len_bound(key: Option<&[u8]>, value: Option<&[u8]>, headers: &[NewHeader<'_>]) -> usize {
    let len = |bytes: Option<&[u8]>| bytes.map_or(0, <[u8]>::len);
    let records = len(key).saturating_add(len(value)).saturating_add(RECORD_OVERHEAD);
    headers.iter().fold(records, |sum, (key, value)| {
        sum.saturating_add(key.len()).saturating_add(len(*value)).saturating_add(HEADER_OVERHEAD)
    })
}
