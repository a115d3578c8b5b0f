//! Columns of bytes: keys, values, header keys.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, StringArray};
use arrow_buffer::{Buffer, NullBufferBuilder, OffsetBuffer, ScalarBuffer};

use crate::arrow::binary_views::{Blocks, RecordMemory, Views};
use crate::error::{Error, Result};
use crate::format::record::Record;

/// A `binary` or `string` column under construction.
pub(crate) struct BytesBuilder {
    offsets: Vec<i32>,
    data: Vec<u8>,
    /// Which values are null, up to the last null.
    nulls: NullBufferBuilder,
}

impl BytesBuilder {
    pub(crate) fn new() -> Self {
        Self { offsets: vec![0], data: Vec::new(), nulls: NullBufferBuilder::new(0) }
    }

    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of the loop of `Records::push_to`")]
    pub(crate) fn push(&mut self, bytes: Option<&[u8]>) {
        if let Some(bytes) = bytes {
            append(&mut self.data, bytes);
        } else {
            self.add_valid_rows(self.len());
            self.nulls.append_null();
        }
        // the scan checks `longest` after each batch, so that an array never contains a saturated offset
        self.offsets.push(i32::try_from(self.data.len()).unwrap_or(i32::MAX));
    }

    /// Adds the values since the last null, up to a row, to the bitmap.
    fn add_valid_rows(&mut self, end: usize) {
        self.nulls.append_n_non_nulls(end.saturating_sub(self.nulls.len()));
    }

    /// Adds the same part of several records.
    pub(crate) fn push_all<'s>(&mut self, records: &[Record<'s>], part: impl Fn(&Record<'s>) -> Option<&'s [u8]>) {
        let (mut end, rows_before) = (self.data.len(), self.len());
        self.offsets.extend(records.iter().map(|record| {
            end = end.wrapping_add(part(record).map_or(0, <[u8]>::len));
            i32::try_from(end).unwrap_or(i32::MAX) // as in `push`
        }));
        self.data.reserve(end.wrapping_sub(self.data.len()));
        let mut has_nulls = false;
        for record in records {
            match part(record) {
                Some(bytes) => append(&mut self.data, bytes),
                None => has_nulls = true,
            }
        }
        if has_nulls {
            self.add_valid_rows(rows_before);
            for record in records {
                self.nulls.append(part(record).is_some());
            }
        }
    }

    /// Bytes held.
    pub(crate) fn data_len(&self) -> usize {
        self.data.len()
    }

    pub(crate) fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    pub(crate) fn truncate(&mut self, rows: usize) {
        self.offsets.truncate(rows.saturating_add(1));
        self.data.truncate(last_end(&self.offsets));
        self.nulls.truncate(rows);
    }

    fn take(&mut self) -> (OffsetBuffer<i32>, Buffer, Option<arrow_buffer::NullBuffer>) {
        self.add_valid_rows(self.len());
        let (offsets, data) = (take(&mut self.offsets), take(&mut self.data));
        self.offsets.push(0);
        (OffsetBuffer::new(ScalarBuffer::from(offsets)), Buffer::from_vec(data), self.nulls.finish())
    }

    fn finish_binary(&mut self) -> Result<BinaryArray> {
        let (offsets, data, nulls) = self.take();
        BinaryArray::try_new(offsets, data, nulls).map_err(|error| Error::argument(error.to_string()))
    }

    pub(crate) fn finish_string(&mut self) -> Result<StringArray> {
        let (offsets, data, nulls) = self.take();
        StringArray::try_new(offsets, data, nulls).map_err(|error| Error::argument(error.to_string()))
    }
}

/// The end of the last value. Offsets begin with 0 and never fall.
pub(crate) fn last_end(offsets: &[i32]) -> usize {
    let end = offsets.last().and_then(|end| usize::try_from(*end).ok());
    debug_assert!(end.is_some(), "no offset, or a negative one");
    end.unwrap_or_default()
}

/// Takes a vector and leaves an empty one with its length and a sixteenth more as capacity, as Arrow batches are of
/// similar size. The capacity of one large batch is not kept for all batches after it.
pub(crate) fn take<T>(values: &mut Vec<T>) -> Vec<T> {
    let room = values.len().saturating_add(values.len() / 16);
    std::mem::replace(values, Vec::with_capacity(room))
}

/// Appends bytes; 16 to 32 bytes, the size of many keys, without calling `memcpy`.
#[inline]
fn append(data: &mut Vec<u8>, bytes: &[u8]) {
    const WIDTH: usize = 16;
    match (bytes.first_chunk::<WIDTH>(), bytes.last_chunk::<WIDTH>()) {
        (Some(first), Some(last)) if bytes.len() <= 2 * WIDTH => {
            let last_start = data.len().wrapping_add(bytes.len()).wrapping_sub(WIDTH);
            data.extend_from_slice(first);
            data.truncate(last_start); // the two overlap
            data.extend_from_slice(last);
        }
        _ => data.extend_from_slice(bytes),
    }
}

/// A `binary` or `binary_view` column under construction.
pub(crate) enum BinaryColumnBuilder {
    Copied(BytesBuilder),
    Viewed(Views),
}

impl BinaryColumnBuilder {
    pub(crate) fn new(binary_view: bool) -> Self {
        if binary_view { Self::Viewed(Views::new()) } else { Self::Copied(BytesBuilder::new()) }
    }

    pub(crate) fn push_all<'s>(
        &mut self,
        records: &[Record<'s>],
        part: impl Fn(&Record<'s>) -> Option<&'s [u8]>,
        blocks: &mut Blocks,
        memory: RecordMemory<'_>,
    ) {
        match self {
            Self::Copied(bytes) => bytes.push_all(records, part),
            Self::Viewed(views) => views.push_all(records, part, blocks, memory),
        }
    }

    pub(crate) fn push(&mut self, bytes: Option<&[u8]>, blocks: &mut Blocks, memory: RecordMemory<'_>) {
        match self {
            Self::Copied(copied) => copied.push(bytes),
            Self::Viewed(views) => views.push(bytes, blocks, memory),
        }
    }

    pub(crate) fn truncate(&mut self, rows: usize) {
        match self {
            Self::Copied(bytes) => bytes.truncate(rows),
            Self::Viewed(views) => views.truncate(rows),
        }
    }

    /// Bytes copied into the column.
    pub(crate) fn data_len(&self) -> usize {
        match self {
            Self::Copied(bytes) => bytes.data_len(),
            Self::Viewed(_) => 0,
        }
    }

    pub(crate) fn finish(&mut self, blocks: &[Buffer]) -> Result<ArrayRef> {
        Ok(match self {
            Self::Copied(bytes) => Arc::new(bytes.finish_binary()?),
            Self::Viewed(views) => Arc::new(views.finish(blocks)?),
        })
    }
}
