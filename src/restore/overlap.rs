//! Segments that overlap: whether one contains what the other repeats.

use crate::compression::Scratch;
use crate::error::{Error, ErrorKind, Result};
use crate::io::Location;
use crate::limits::Limits;
use crate::log::headers::HeaderReader;
use crate::plural::{are, count_of, offsets};

/// Checks a segment whose batches count as repeated, because the file before it ends later. If that file contains none of
/// them, the name of one of the files is wrong, and the records would be lost. If it contains some, compaction may have
/// removed the others: returns a warning that names them.
///
/// # Errors
/// [`ErrorKind::InvalidFile`] for a segment of which nothing is repeated; corruption that is found on the way; I/O
/// errors.
pub(super) fn check_repeated(
    before: &Location,
    segment: &Location,
    end: i64,
    limits: &Limits,
) -> Result<Option<String>> {
    let (mut kept, mut repeated) = (Ranges::open(before, limits)?, Ranges::open(segment, limits)?);
    let mut at = kept.next()?;
    let mut is_same_log = false;
    let mut missing = Missing::default();
    while let Some((first, last)) = repeated.next()?.filter(|(_, last)| *last < end) {
        while at.is_some_and(|(_, kept_last)| kept_last < first) {
            at = kept.next()?;
        }
        if at.is_some_and(|(kept_first, _)| kept_first <= last) {
            is_same_log = true;
        } else {
            missing.add(first, last);
        }
    }
    let Some(which) = missing.text() else { return Ok(None) };
    if is_same_log {
        return Ok(Some(format!(
            "{which} only in {}, and not restored: compaction may have removed them from {}, which has other offsets of \
             both; if this topic was never compacted, the name of one of the segments is wrong",
            segment.name(),
            before.name(),
        )));
    }
    let message = format!(
        "{which} only in this segment, although {}, which begins earlier, ends at offset {}: the name of one of them is \
         wrong, and restore would lose records; salvage keeps the batches that are in order",
        before.name(),
        end.saturating_sub(1),
    );
    Err(Error::new(ErrorKind::InvalidFile(message)).with_path(segment))
}

/// Ranges of offsets that only one of two segments has.
#[derive(Default)]
struct Missing {
    first: Option<(i64, i64)>,
    count: u64,
    last: i64,
}

impl Missing {
    fn add(&mut self, first: i64, last: i64) {
        if self.count == 0 || self.last.saturating_add(1) < first {
            self.count = self.count.saturating_add(1);
        }
        self.last = last;
        let known = self.first.get_or_insert((first, last));
        if self.count == 1 {
            known.1 = last;
        }
    }

    /// The offsets, and a verb.
    fn text(&self) -> Option<String> {
        let (first, last) = self.first?;
        Some(match self.count {
            1 => format!("{} {}", offsets(first, last), are(first, last)),
            count => format!(
                "{} and {} up to offset {} are",
                offsets(first, last),
                count_of(count.saturating_sub(1), "other range"),
                self.last
            ),
        })
    }
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
