//! Segments that overlap: whether one contains what the other repeats.

use crate::compression::Scratch;
use crate::error::{Error, ErrorKind, Result};
use crate::io::Location;
use crate::limits::Limits;
use crate::log::headers::HeaderReader;
use crate::plural::{are, offsets};

/// Refuses a segment whose batches count as repeated, because the file before it ends later, although that file contains
/// none of them. Then the name of one of them is wrong, and the records would be lost.
///
/// # Errors
/// [`ErrorKind::InvalidFile`] for such a segment; corruption that is found on the way; I/O errors.
pub(super) fn refuse_unrepeated(before: &Location, segment: &Location, end: i64, limits: &Limits) -> Result<()> {
    let (mut kept, mut repeated) = (Ranges::open(before, limits)?, Ranges::open(segment, limits)?);
    let mut at = kept.next()?;
    let mut missing = None;
    while let Some((first, last)) = repeated.next()?.filter(|(_, last)| *last < end) {
        while at.is_some_and(|(_, kept_last)| kept_last < first) {
            at = kept.next()?;
        }
        if at.is_some_and(|(kept_first, _)| kept_first <= last) {
            return Ok(()); // of the same log; compaction may have removed other batches from the file before
        }
        missing = Some(missing.map_or((first, last), |(before, _)| (before, last)));
    }
    let Some((first, last)) = missing else { return Ok(()) };
    let message = format!(
        "{} {} only in this segment, although {}, which begins earlier, ends at offset {}: the name of one of them is \
         wrong, and restore would lose records; salvage keeps the batches that are in order",
        offsets(first, last),
        are(first, last),
        before.name(),
        end.saturating_sub(1),
    );
    Err(Error::new(ErrorKind::InvalidFile(message)).with_path(segment))
}

/// The first and last offsets of the batches of a file.
struct Ranges<'l> {
    headers: HeaderReader,
    limits: &'l Limits,
    bytes: Vec<u8>,
    scratch: Scratch,
}

impl<'l> Ranges<'l> {
    fn open(path: &Location, limits: &'l Limits) -> Result<Self> {
        let headers = HeaderReader::open(path, limits)?;
        Ok(Self { headers, limits, bytes: Vec::new(), scratch: Scratch::new() })
    }

    fn next(&mut self) -> Result<Option<(i64, i64)>> {
        let Some(header) = self.headers.next_header().transpose()? else { return Ok(None) };
        let first = match header.base_offset() {
            Some(first) => first,
            // a compressed message set has only its last offset in its header
            None => self.headers.read_batch(&header, &mut self.bytes)?.first_offset(&mut self.scratch, self.limits)?,
        };
        Ok(Some((first, header.last_offset())))
    }
}
