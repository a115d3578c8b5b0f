//! Reads a file to its end, continuing after each corruption.

use crate::error::Result;
use crate::format::batch::Batch;
use crate::io::Location;
use crate::limits::Limits;
use crate::log::reader::SegmentReader;
use crate::log::resync::{Floor, Next, Resync};
use crate::repair::fault::Fault;

/// Receives the batches and the corruption of a file, in file order.
pub(crate) trait Visitor {
    /// A batch whose size, magic and checksum are correct.
    fn batch(&mut self, batch: &Batch<'_>) -> Result<()>;

    /// Bytes that are not such a batch, and why. Corruption in the middle of the file extends to the next batch.
    fn damage(&mut self, fault: Fault, length: u64) -> Result<()>;

    /// The smallest offset that the next batch can have, if the batches before determine it.
    fn next_offset(&self) -> Option<i64>;
}

/// Reads a file. After corruption, resumes at the next batch that is not inside a record.
///
/// # Errors
/// I/O errors; [`ErrorKind::Limit`](crate::ErrorKind::Limit) for a batch over [`Limits::batch_len`] with a correct
/// checksum; errors of the visitor.
pub(crate) fn walk(path: &Location, limits: &Limits, visitor: &mut dyn Visitor) -> Result<()> {
    let source = path.open()?;
    source.read_over_damage();
    let mut resync = Resync::new(limits);
    let mut reader = SegmentReader::open_with(path, limits)?.over_damage();
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
                // a corrupt size may extend past the end, and batches may follow
                Some(fault) => fault,
            },
        };
        let position = fault.position;
        match resync.find(&source, position, visitor.next_offset())? {
            Next::Batch(next) => {
                let length = next.saturating_sub(position);
                visitor.damage(fault.or_of_storage(&[reader.source(), &source], length), length)?;
                reader.resume(next);
            }
            // the bytes from here on may be more corruption, so they are read as the next batch
            Next::End(end) if end > position => {
                let fault = if end < source.len()? { fault } else { fault.with_hidden_batch(&source)? };
                let length = end.saturating_sub(position);
                visitor.damage(fault.or_of_storage(&[reader.source(), &source], length), length)?;
                reader.resume(end);
            }
            Next::End(end) => {
                let left = source.len()?.saturating_sub(end);
                let Some(fault) = Fault::of_remainder(&source, end)? else { return Ok(()) };
                return visitor.damage(fault.with_hidden_batch(&source)?, left);
            }
        }
    }
}

/// The offset after the last intact batch of a segment, over corruption. `None` if there is no such batch.
///
/// # Errors
/// Those of [`walk`].
pub(crate) fn intact_end(path: &Location, limits: &Limits) -> Result<Option<i64>> {
    let mut end = End(Floor::at(None));
    walk(path, limits, &mut end)?;
    Ok(end.0.next())
}

/// Keeps the offset after the last intact batch.
struct End(Floor);

impl Visitor for End {
    fn batch(&mut self, batch: &Batch<'_>) -> Result<()> {
        self.0.pass(batch.header());
        Ok(())
    }

    fn damage(&mut self, _fault: Fault, _length: u64) -> Result<()> {
        Ok(())
    }

    fn next_offset(&self) -> Option<i64> {
        self.0.least()
    }
}
