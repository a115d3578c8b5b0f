//! The column of record headers.

use std::sync::Arc;

use arrow_array::{ArrayRef, ListArray, StructArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};

use crate::arrow::binary_views::{Blocks, RecordMemory};
use crate::arrow::byte_columns::{BinaryColumnBuilder, BytesBuilder, last_end};
use crate::arrow::schema::{header_field, header_fields};
use crate::error::{Error, Result};
use crate::format::record::Headers;

/// The column under construction: the end of each record's headers, and the keys and values of all of them.
pub(crate) struct HeadersBuilder {
    lists: Vec<i32>,
    keys: BytesBuilder,
    values: BinaryColumnBuilder,
}

impl HeadersBuilder {
    pub(crate) fn new(binary_view: bool) -> Self {
        Self { lists: vec![0], keys: BytesBuilder::new(), values: BinaryColumnBuilder::new(binary_view) }
    }

    /// Whether values are copied.
    pub(crate) fn is_copied(&self) -> bool {
        matches!(self.values, BinaryColumnBuilder::Copied(_))
    }

    /// Adds the headers of a record, which `memory` has.
    pub(crate) fn push(&mut self, headers: Headers<'_>, blocks: &mut Blocks, memory: RecordMemory<'_>) -> Result<()> {
        self.push_each(headers, |values, value| values.push(value, blocks, memory))
    }

    /// Adds the headers of a record to a column whose values are copied.
    #[inline(always)]
    #[expect(clippy::inline_always, reason = "a part of the loop of `Records::push_to`")]
    pub(crate) fn push_copied(&mut self, headers: Headers<'_>) -> Result<()> {
        if headers.is_empty() {
            self.end_record();
            return Ok(());
        }
        self.push_some(headers)
    }

    #[inline(never)]
    fn push_some(&mut self, headers: Headers<'_>) -> Result<()> {
        self.push_each(headers, |values, value| {
            if let BinaryColumnBuilder::Copied(bytes) = values {
                bytes.push(value);
            }
        })
    }

    fn push_each(
        &mut self,
        headers: Headers<'_>,
        mut push_value: impl FnMut(&mut BinaryColumnBuilder, Option<&[u8]>),
    ) -> Result<()> {
        for header in headers {
            let header = header?;
            self.keys.push(Some(header.key_lossy().as_bytes()));
            push_value(&mut self.values, header.value());
        }
        self.end_record();
        Ok(())
    }

    fn end_record(&mut self) {
        // the scan checks `longest` after each batch, so that an array never contains a saturated offset
        self.lists.push(i32::try_from(self.keys.len()).unwrap_or(i32::MAX));
    }

    /// Drops all but the first records.
    pub(crate) fn truncate(&mut self, records: usize) {
        self.lists.truncate(records.saturating_add(1));
        let count = last_end(&self.lists);
        self.keys.truncate(count);
        self.values.truncate(count);
    }

    /// Length of the longer buffer in bytes, or of the list.
    pub(crate) fn longest(&self) -> usize {
        self.keys.data_len().max(self.values.data_len()).max(self.keys.len())
    }

    /// Bytes of keys and values.
    pub(crate) fn data_len(&self) -> usize {
        self.keys.data_len().saturating_add(self.values.data_len())
    }

    pub(crate) fn finish(&mut self, blocks: &[Buffer]) -> Result<ArrayRef> {
        let binary_view = !self.is_copied();
        let columns: Vec<ArrayRef> = vec![Arc::new(self.keys.finish_string()?), self.values.finish(blocks)?];
        let invalid = |error: arrow_schema::ArrowError| Error::argument(error.to_string());
        let structs = StructArray::try_new(header_fields(binary_view), columns, None).map_err(invalid)?;
        let offsets = OffsetBuffer::new(ScalarBuffer::from(std::mem::replace(&mut self.lists, vec![0])));
        let list = ListArray::try_new(Arc::new(header_field(binary_view)), offsets, Arc::new(structs), None);
        Ok(Arc::new(list.map_err(invalid)?))
    }
}
