//! Reads a file to its end, continuing after each corruption, or to its first corruption.

use crate::error::Result;
use crate::format::batch::Batch;
use crate::io::Location;
use crate::limits::Limits;
use crate::log::Segment;
use crate::log::reader::SegmentReader;
use crate::log::resync::Floor;
use crate::log::walk::{BatchWalk, WalkEvent};
use crate::repair::corruption::Corruption;

/// Receives the batches and the corruption of a file, in file order.
pub(crate) trait Visitor {
    /// A batch whose size, magic and checksum are correct.
    fn batch(&mut self, batch: &Batch<'_>) -> Result<()>;

    /// Bytes that are not such a batch, and why. Corruption in the middle of the file extends to the next batch.
    fn corrupt_bytes(&mut self, corruption: Corruption, length: u64) -> Result<()>;

    /// The smallest offset that the next batch can have, if the batches before determine it.
    fn next_offset(&self) -> Option<i64>;
}

/// Reads a file. After corruption, resumes at the next batch that is not inside a record.
///
/// # Errors
/// I/O errors; [`ErrorKind::Limit`](crate::ErrorKind::Limit) for a batch over [`Limits::batch_len`] with a correct
/// checksum; errors of the visitor.
pub(crate) fn walk(path: &Location, limits: &Limits, visitor: &mut dyn Visitor) -> Result<()> {
    let mut walk = BatchWalk::new(SegmentReader::open_with(path, limits)?.over_damage(), limits);
    loop {
        let corruption = match walk.next_batch()? {
            WalkEvent::Batch(batch) => {
                visitor.batch(&batch).map_err(|error| error.with_path(path))?;
                continue;
            }
            WalkEvent::Corrupt { position, error } => Corruption::of_error_at(position, error, walk.reader.source())?,
            WalkEvent::End => match Corruption::of_tail(&walk.reader)? {
                None => return Ok(()),
                Some(corruption) if corruption.reason == "zero_tail" => {
                    return visitor.corrupt_bytes(corruption, walk.reader.remainder_len());
                }
                // a corrupt size may extend past the end, and batches may follow
                Some(corruption) => corruption,
            },
        };
        let position = corruption.position;
        let skipped = walk.skip(position, visitor.next_offset())?;
        if skipped.length == 0 {
            return Ok(());
        }
        let corruption = match walk.storage_error(position, skipped.length) {
            Some(error) => Corruption::of_error(&error, position),
            None if skipped.is_followed => corruption,
            None => corruption.with_hidden_batch(walk.reader.source())?,
        };
        visitor.corrupt_bytes(corruption, skipped.length)?;
    }
}

/// Reads a file up to its first corruption, or until `visit` returns one. Returns what ends the log there: also an
/// incomplete batch, or zeros. Returns `None` if the file ends with a batch.
///
/// # Errors
/// Those of [`walk`].
pub(crate) fn walk_to_corruption(
    path: &Location,
    limits: &Limits,
    visit: &mut dyn FnMut(&Batch<'_>) -> Result<Option<Corruption>>,
) -> Result<Option<Corruption>> {
    let mut walk = BatchWalk::new(SegmentReader::open_with(path, limits)?, limits);
    loop {
        match walk.next_batch()? {
            WalkEvent::Batch(batch) => {
                if let Some(corruption) = visit(&batch)? {
                    return Ok(Some(corruption));
                }
            }
            WalkEvent::Corrupt { position, error } => {
                return Corruption::of_error_at(position, error, walk.reader.source()).map(Some);
            }
            WalkEvent::End => return Corruption::of_tail(&walk.reader),
        }
    }
}

/// The offset after the last record of a segment; if corruption hides it, that after the last intact batch. `None` if
/// there is no such batch.
///
/// # Errors
/// I/O errors; those of [`walk`].
pub(crate) fn reachable_end(path: &Location, limits: &Limits) -> Result<Option<i64>> {
    match Segment::open_with(path, limits).and_then(|segment| segment.end_offset()) {
        Ok(end) => Ok(Some(end)),
        Err(error) if error.is_of_reading() => Err(error),
        Err(_) => {
            let mut end = End(Floor::at(None));
            walk(path, limits, &mut end)?;
            Ok(end.0.next())
        }
    }
}

/// Keeps the offset after the last intact batch.
struct End(Floor);

impl Visitor for End {
    fn batch(&mut self, batch: &Batch<'_>) -> Result<()> {
        self.0.pass(batch.header());
        Ok(())
    }

    fn corrupt_bytes(&mut self, _corruption: Corruption, _length: u64) -> Result<()> {
        Ok(())
    }

    fn next_offset(&self) -> Option<i64> {
        self.0.least()
    }
}
