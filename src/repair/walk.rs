//! Reading a damaged file to its end: batch by batch, over every damage.

use std::path::Path;

use crate::error::Result;
use crate::format::batch::Batch;
use crate::io::PositionedFile;
use crate::limits::Limits;
use crate::log::reader::SegmentReader;
use crate::log::resync::{Next, Resync};
use crate::repair::fault::Fault;

/// Who looks at what a walk finds, in the order of the file.
pub(crate) trait Visitor {
    /// A batch whose size, magic and checksum are right.
    fn batch(&mut self, batch: &Batch<'_>) -> Result<()>;

    /// Bytes that are no such batch, and why. A damage in the middle of the file ends where the next batch begins.
    fn damage(&mut self, fault: Fault, length: u64) -> Result<()>;

    /// The offset that the next batch has at least, as far as the batches tell.
    fn next_offset(&self) -> Option<i64>;
}

/// Walks a file. After damage it goes on at the next batch that is no part of a record.
///
/// # Errors
/// Those of reading, a batch whose checksum is right but which is over [`Limits::batch_len`], and those of the visitor.
pub(crate) fn walk(path: &Path, limits: &Limits, visitor: &mut dyn Visitor) -> Result<()> {
    let source = PositionedFile::open(path)?;
    let mut resync = Resync::new(limits);
    let mut reader = SegmentReader::open_with(path, limits)?;
    loop {
        let fault = match reader.next_batch() {
            Some(Ok(batch)) => match batch.verify_crc() {
                Ok(()) => {
                    visitor.batch(&batch).map_err(|error| error.with_path(path))?;
                    continue;
                }
                Err(error) => Fault::of_error(&error, batch.position()),
            },
            Some(Err(error)) => Fault::of_framing(error, path, reader.position())?,
            None => match Fault::of_tail(&reader)? {
                None => return Ok(()),
                Some(fault) if fault.reason == "zero_tail" => return visitor.damage(fault, reader.remainder_len()),
                // a damaged size may lead past the end: batches may follow
                Some(fault) => fault,
            },
        };
        let position = fault.position;
        match resync.find(&source, position, visitor.next_offset())? {
            Next::Batch(next) => {
                visitor.damage(fault, next.saturating_sub(position))?;
                reader.resume(next);
            }
            // what seems to be cut there may be a second damage: it has its turn
            Next::End(end) if end > position => {
                visitor.damage(fault, end.saturating_sub(position))?;
                reader.resume(end);
            }
            Next::End(end) => {
                let left = source.len()?.saturating_sub(end);
                return Fault::of_remainder(&source, end)?.map_or(Ok(()), |fault| visitor.damage(fault, left));
            }
        }
    }
}
