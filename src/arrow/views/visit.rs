//! [`visit_records`]: the records of some sources, without columns.

use std::ops::RangeInclusive;

use crate::arrow::options::ScanOptions;
use crate::arrow::records::{offsets_in_header, read_records};
use crate::arrow::source::ScanSource;
use crate::arrow::stats::ScanStats;
use crate::arrow::walk::{SourceWalk, Step};
use crate::compression::Scratch;
use crate::error::Result;
use crate::format::record::Record;
use crate::num::u64_of;

/// Some records of a batch.
pub(crate) enum Visited<'r> {
    /// Decoded records.
    Records(&'r [Record<'r>]),
    /// The offsets of all records of a batch that was not decoded.
    Offsets(RangeInclusive<i64>),
}

/// Passes the records of some sources to `take`, in order. A batch is not decoded if
/// [`ScanOptions::offsets_from_headers`] allows that for [`ScanOptions::columns`]. Returns the counts also if an error
/// ends the visit.
pub(crate) fn visit_records(
    sources: Vec<ScanSource>,
    options: &ScanOptions,
    mut take: impl FnMut(Visited<'_>) -> Result<()>,
) -> (ScanStats, Result<()>) {
    let mut walk = SourceWalk::new(sources, None);
    let mut scratch = Scratch::new();
    let needs_only_headers = options.needs_only_headers();
    let mut records = 0_u64;
    let result = loop {
        let step = walk.step(options, |batch, context| {
            if needs_only_headers && let Some((offsets, count)) = offsets_in_header(batch, context, options) {
                batch.compression()?;
                records = records.saturating_add(u64_of(count));
                return take(Visited::Offsets(offsets));
            }
            read_records(batch, context, options, &mut scratch, |chunk, _| {
                records = records.saturating_add(u64_of(chunk.len()));
                take(Visited::Records(chunk))
            })?;
            Ok(())
        });
        match step {
            Ok(Step::End) => break Ok(()),
            Ok(Step::Batch | Step::SkippedBytes(_)) => {}
            Err(error) => break Err(error),
        }
    };
    (ScanStats { records, ..walk.stats() }, result)
}
