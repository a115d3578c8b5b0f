//! `binary_view` columns: values that are not copied out of their batch.
//!
//! A view is 16 bytes: the length, and either the value itself, if it has up to 12 bytes, or its first four bytes, a
//! block number and an offset in the block ([Arrow's
//! layout](https://arrow.apache.org/docs/format/Columnar.html#variable-size-binary-view-layout)). A block is the memory
//! that batches were read into, the window of a file or the caller's buffer, and lives as long as an Arrow batch refers
//! to it. The memory of decompressed records is reused for the next batch, so these records are copied, all at once, to
//! a block that belongs to the Arrow batch.

use std::sync::Arc;

use arrow_array::{BinaryViewArray, builder::make_view};
use arrow_buffer::{Buffer, NullBufferBuilder, ScalarBuffer};

use crate::error::{Error, Result};
use crate::format::batch::Batch;
use crate::format::record::Record;
use crate::io::SharedBytes;
use crate::log::BatchMemory;
use crate::num::usize_of;

/// Values up to this many bytes are stored in the view.
const INLINE_LEN: usize = 12;

/// Maximum length of a block, in bytes: Arrow counts them as `i32`.
const BLOCK_LEN: usize = 0x7fff_ffff;

/// The memory that has the records of a batch.
#[derive(Clone, Copy)]
pub(crate) enum RecordMemory<'b> {
    /// The window of a file, which can be kept alive, and the number of bytes of the batch.
    Window(&'b Arc<Vec<u8>>, usize),
    /// The caller's buffer, which is kept alive anyway, and the number of bytes of the batch.
    Buffer(&'b SharedBytes, usize),
    /// Memory that will be reused.
    Reused(&'b [u8]),
}

impl<'b> RecordMemory<'b> {
    /// The memory that has the records of an uncompressed batch.
    pub(crate) fn of(batch: &Batch<'_>, memory: BatchMemory<'b>) -> Self {
        match memory {
            BatchMemory::Window(window) => Self::Window(window, batch.size()),
            BatchMemory::Buffer(bytes) => Self::Buffer(bytes, batch.size()),
        }
    }
}

/// The blocks of an Arrow batch, shared by its columns.
#[derive(Default)]
pub(crate) struct Blocks {
    buffers: Vec<Buffer>,
    /// The bytes of the block that values are copied to, and its number.
    copies: Vec<u8>,
    copies_block: Option<u32>,
    /// The location of the current batch's values, once one was added.
    current: Option<BlockBase>,
    /// The address of the memory that was added last, and the location of its values.
    held: Option<(usize, BlockBase)>,
    /// Bytes of the batches that views refer to, or that were copied.
    used: usize,
    /// Bytes of the windows that are blocks. The next Arrow batch often uses the rest of the last one.
    windows: usize,
}

/// A value at an address is in `block` at the address minus `base`, which wraps.
#[derive(Clone, Copy)]
struct BlockBase {
    block: u32,
    base: usize,
}

impl BlockBase {
    /// The offset of a value in the block, if a view can represent it.
    fn offset(self, address: usize, len: usize) -> Option<u32> {
        let offset = address.wrapping_sub(self.base);
        let reaches = offset.checked_add(len).is_some_and(|end| end <= BLOCK_LEN);
        u32::try_from(offset).ok().filter(|_| reaches)
    }
}

/// The block and offset of a value that the block contains.
fn located(found: BlockBase, value: &[u8]) -> (u32, u32) {
    let offset = found.offset(value.as_ptr().addr(), value.len());
    debug_assert!(offset.is_some(), "the block was made for the value");
    (found.block, offset.unwrap_or_default())
}

/// The owner of an Arrow buffer's memory.
struct BufferOwner(SharedBytes);

impl AsRef<[u8]> for BufferOwner {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

impl Blocks {
    /// What counts as the size of the Arrow batch, in bytes: those of the batches that views refer to, and at least a
    /// quarter of all that it keeps alive.
    pub(crate) fn retained(&self) -> usize {
        self.used.max(self.windows / 4)
    }

    /// Begins a batch.
    pub(crate) fn begin(&mut self) {
        self.current = None;
    }

    /// The view of a value in `memory`.
    #[inline]
    fn view(&mut self, bytes: &[u8], memory: RecordMemory<'_>) -> u128 {
        if bytes.len() <= INLINE_LEN {
            return make_view(bytes, 0, 0);
        }
        let address = bytes.as_ptr().addr();
        let found = self.current.and_then(|found| Some((found.block, found.offset(address, bytes.len())?)));
        let (block, offset) = found.unwrap_or_else(|| self.lend(bytes, memory));
        make_view(bytes, block, offset)
    }

    /// Adds a block that contains the value, and returns the value's block and offset.
    #[cold]
    fn lend(&mut self, value: &[u8], memory: RecordMemory<'_>) -> (u32, u32) {
        let found = match memory {
            RecordMemory::Window(window, batch_len) => {
                self.used = self.used.saturating_add(batch_len);
                self.held(window, value).unwrap_or_else(|| {
                    self.windows = self.windows.saturating_add(window.len());
                    let bytes: SharedBytes = Arc::<Vec<u8>>::clone(window);
                    self.hold(value, bytes)
                })
            }
            RecordMemory::Buffer(bytes, batch_len) => {
                self.used = self.used.saturating_add(batch_len);
                self.held((**bytes).as_ref(), value).unwrap_or_else(|| self.hold(value, Arc::clone(bytes)))
            }
            // views do not reach all values of a larger batch, so each is copied alone, and is not `current`
            RecordMemory::Reused(bytes) if bytes.len() > BLOCK_LEN => {
                let found = self.copy(value);
                return located(found, value);
            }
            RecordMemory::Reused(bytes) => self.copy(bytes),
        };
        self.current = Some(found);
        located(found, value)
    }

    /// The location of a value in memory that is already a block.
    fn held(&self, memory: &[u8], value: &[u8]) -> Option<BlockBase> {
        let (held, found) = self.held?;
        let reaches = found.offset(value.as_ptr().addr(), value.len()).is_some();
        (reaches && held == memory.as_ptr().addr()).then_some(found)
    }

    /// Makes memory a block. The block starts at the value if views can't reach the value from the start of the memory.
    fn hold(&mut self, value: &[u8], bytes: SharedBytes) -> BlockBase {
        let (start, address) = ((*bytes).as_ref().as_ptr().addr(), value.as_ptr().addr());
        let whole = BlockBase { block: self.next_block(), base: start };
        let is_reached = whole.offset(address, value.len()).is_some();
        let found = if is_reached { whole } else { BlockBase { base: address, ..whole } };
        let buffer = Buffer::from(bytes::Bytes::from_owner(BufferOwner(bytes)));
        self.buffers.push(buffer.slice(found.base.wrapping_sub(start)));
        self.held = Some((start, found));
        found
    }

    /// Copies the records of a batch.
    fn copy(&mut self, bytes: &[u8]) -> BlockBase {
        if self.copies.len().saturating_add(bytes.len()) > BLOCK_LEN {
            self.end_copies();
        }
        let block = self.copies_block.unwrap_or_else(|| {
            let block = self.next_block();
            self.buffers.push(Buffer::default());
            block
        });
        self.copies_block = Some(block);
        let base = bytes.as_ptr().addr().wrapping_sub(self.copies.len());
        self.copies.extend_from_slice(bytes);
        self.used = self.used.saturating_add(bytes.len());
        BlockBase { block, base }
    }

    fn next_block(&self) -> u32 {
        u32::try_from(self.buffers.len()).unwrap_or(u32::MAX)
    }

    /// Moves the copied bytes to their block.
    fn end_copies(&mut self) {
        let expected = self.copies.len();
        let copies = std::mem::replace(&mut self.copies, Vec::with_capacity(expected));
        let block = self.copies_block.take().map(usize_of);
        if let Some(buffer) = block.and_then(|block| self.buffers.get_mut(block)) {
            *buffer = Buffer::from_vec(copies);
        }
    }

    /// The blocks of the complete Arrow batch.
    pub(crate) fn finish(&mut self) -> Vec<Buffer> {
        self.end_copies();
        (self.current, self.held, self.used, self.windows) = (None, None, 0, 0);
        std::mem::take(&mut self.buffers)
    }
}

/// A `binary_view` column under construction.
pub(crate) struct Views {
    views: Vec<u128>,
    nulls: NullBufferBuilder,
}

impl Views {
    pub(crate) fn new() -> Self {
        Self { views: Vec::new(), nulls: NullBufferBuilder::new(0) }
    }

    /// Adds a value in `memory`.
    #[inline]
    pub(crate) fn push(&mut self, bytes: Option<&[u8]>, blocks: &mut Blocks, memory: RecordMemory<'_>) {
        self.nulls.append(bytes.is_some());
        self.views.push(bytes.map_or(0, |bytes| blocks.view(bytes, memory)));
    }

    /// Adds the same part of several records.
    pub(crate) fn push_all<'s>(
        &mut self,
        records: &[Record<'s>],
        part: impl Fn(&Record<'s>) -> Option<&'s [u8]>,
        blocks: &mut Blocks,
        memory: RecordMemory<'_>,
    ) {
        self.views.reserve(records.len());
        for record in records {
            self.push(part(record), blocks, memory);
        }
    }

    pub(crate) fn truncate(&mut self, rows: usize) {
        self.views.truncate(rows);
        self.nulls.truncate(rows);
    }

    pub(crate) fn finish(&mut self, buffers: &[Buffer]) -> Result<BinaryViewArray> {
        let capacity = self.views.len();
        let views = std::mem::replace(&mut self.views, Vec::with_capacity(capacity));
        BinaryViewArray::try_new(ScalarBuffer::from(views), buffers.to_vec(), self.nulls.finish())
            .map_err(|error| Error::argument(error.to_string()))
    }
}
