//! Records as text for a terminal, a pipe or a file (feature `text`): JSON lines, CSV, lines for people, raw values, or
//! a format string like that of `kcat`.
//!
//! Records are formatted as soon as they are decoded, into one buffer of bytes. A batch is written completely or not at
//! all. [`append_json_lines`] makes records of JSON lines again, in the same batches if [`TextOptions::batches`] was set.
//!
//! ```
//! # fn main() -> kbat::Result<()> {
//! use kbat::arrow::{ScanOptions, ScanSource};
//! use kbat::text::{TextOptions, write_records};
//! # let mut builder = kbat::BatchBuilder::new();
//! # builder.append(1_700_000_000_000, Some(b"key"), Some(b"value"))?;
//! # let mut bytes = Vec::new();
//! # builder.finish_into(&mut bytes)?;
//! let source = ScanSource::memory(std::sync::Arc::new(bytes));
//! let text = TextOptions { format: "%o %k=%s\\n".parse()?, ..TextOptions::default() };
//! let mut out = Vec::new();
//! let written = write_records(vec![source], &ScanOptions::default(), &text, &mut out)?;
//! assert_eq!((out.as_slice(), written.stats.records), (b"0 key=value\n".as_slice(), 1));
//! # Ok(()) }
//! ```

mod append;
mod csv;
mod fields;
mod filling;
mod hex;
mod json;
mod options;
mod pattern;
mod people;
mod printable;
mod printer;
mod template;

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "tests")]
mod tests;

use std::io::Write;

pub use append::{JsonLines, append_json_lines};
pub use options::{Format, Rendering, TextOptions};
pub use pattern::Pattern;
pub use template::Template;

use crate::arrow::{OnCorrupt, ProgressCallback, ScanOptions, ScanSource, ScanStats, SourceWalk, Step};
use crate::dump::sink::Sink;
use crate::error::Result;
use printer::Printer;

/// What was written, and where reading can continue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// Counts of what was read and lost. Its records are those that were written.
    pub stats: ScanStats,
    /// The offset after the last batch, of which some records may not have been written; `None` before the first one.
    pub next_offset: Option<i64>,
}

/// Writes the records of some sources, in order.
///
/// # Errors
/// Corruption, files that can't be read, a failure of `out`, and options that exclude each other. Everything before the
/// error has been written.
pub fn write_records(
    sources: Vec<ScanSource>,
    scan: &ScanOptions,
    text: &TextOptions,
    out: &mut dyn Write,
) -> Result<Written> {
    let mut written = Written::default();
    write_watched(sources, scan, text, None, out, &mut written)?;
    Ok(written)
}

/// Like [`write_records`], with a callback for progress and cancellation. `written` is also set if it fails.
pub(crate) fn write_watched(
    sources: Vec<ScanSource>,
    scan: &ScanOptions,
    text: &TextOptions,
    callback: Option<ProgressCallback>,
    out: &mut dyn Write,
    written: &mut Written,
) -> Result<()> {
    text.check(scan)?;
    let (mut walk, mut sink) = (SourceWalk::new(sources, callback), Sink::new(out));
    let mut printer = Printer::new(scan, text);
    if text.csv_header && matches!(text.format, Format::Csv) {
        csv::heading(&mut sink.buffer);
    }
    let result = print_all(&mut walk, &mut printer, &mut sink);
    let flushed = sink.flush();
    let stats = ScanStats { records: printer.records, ..walk.stats() };
    *written = Written { stats, next_offset: printer.next_offset };
    result.and(flushed)
}

fn print_all(walk: &mut SourceWalk, printer: &mut Printer<'_>, sink: &mut Sink<'_>) -> Result<()> {
    let scan = printer.scan;
    while printer.left > 0 {
        match walk.step(scan, |batch, context| printer.batch(&mut sink.buffer, batch, context))? {
            Step::End => break,
            Step::SkippedBytes(skipped) if scan.on_corrupt == OnCorrupt::Report => {
                printer.skipped(&mut sink.buffer, &skipped);
            }
            Step::Batch | Step::SkippedBytes(_) => {}
        }
        // a reader at a terminal waits for each line
        if printer.text.is_terminal { sink.flush()? } else { sink.end_line()? }
    }
    Ok(())
}
