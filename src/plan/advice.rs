//! Advice on the options that let a job continue after an error.

use arrow_array::Array;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;

use crate::arrow::column_table::ERROR_COLUMN;
use crate::arrow::{ArrowScan, OnCorrupt, ScanOptions, ScanSource};
use crate::error::{Error, ErrorKind};
use crate::plan::discover::segments_at;
use crate::plan::logs::{Stores, named_as_option};
use crate::plan::options::{LIMIT_OPTIONS, ReadOptions};

/// Adds the options that let a job continue after an error of a read, and the offsets that corruption affects. Names
/// arguments of the core as options.
pub(crate) fn advised(error: Error, options: &ReadOptions) -> Error {
    let skip = "option onCorrupt=skip omits the batch, onCorrupt=report adds a row that describes it";
    match error.kind() {
        ErrorKind::InvalidArgument(_) => named_as_option(error),
        ErrorKind::Limit { .. } => error.with_note(format!(
            "for files you trust, raise the limit with one of the options {}",
            LIMIT_OPTIONS.join(", ")
        )),
        ErrorKind::Crc { .. } => {
            let lost = lost_text(&error, options);
            error.with_note(format!("{lost}{skip}, checkCrc=false reads its records all the same"))
        }
        ErrorKind::UnsupportedMagic(_) => error.with_note(
            "if these bytes are corrupt, option onCorrupt=skip omits them, onCorrupt=report adds a row for them",
        ),
        _ if is_of_format(&error) => {
            let lost = lost_text(&error, options);
            error.with_note(format!("{lost}{skip}"))
        }
        _ => error,
    }
}

/// Whether an error is one of a batch that can be skipped.
pub(crate) fn is_of_format(error: &Error) -> bool {
    !matches!(
        error.kind(),
        ErrorKind::InvalidArgument(_)
            | ErrorKind::Io(_)
            | ErrorKind::Other(_)
            | ErrorKind::InvalidFile(_)
            | ErrorKind::UnsupportedMagic(_)
            | ErrorKind::UnsupportedCodec { .. }
            | ErrorKind::CompressionBelowMagic { .. }
    )
}

fn lost_text(error: &Error, options: &ReadOptions) -> String {
    match lost_offsets(error, options) {
        Some((first, last)) if first == last => format!("offset {first} can't be read; "),
        Some((first, last)) => format!("offsets {first} to {last} can't be read; "),
        None => String::new(),
    }
}

/// The offsets that a corrupt batch of a file affects, as reported with `onCorrupt=report`; `None` if unknown.
fn lost_offsets(error: &Error, options: &ReadOptions) -> Option<(i64, i64)> {
    let first = error.position().base_offset.filter(|first| *first >= 0)?;
    let path = error.path()?.to_str()?;
    let location = Stores::of(options, &[path.to_owned()]).and_then(|stores| stores.locate(path)).ok()?;
    let file = segments_at(&location).ok()?.into_iter().next()?;
    let scan_options = ScanOptions {
        columns: Vec::new(),
        on_corrupt: OnCorrupt::Report,
        start_offset: Some(first),
        end_offset: Some(first.saturating_add(1)),
        limits: options.limits.clone(),
        ..ScanOptions::default()
    };
    for rows in ArrowScan::new(vec![ScanSource::file(&file)], scan_options) {
        let rows = rows.ok()?;
        let errors = rows.column_by_name(ERROR_COLUMN.name)?.as_struct();
        let number = |name: &str| errors.column_by_name(name).map(AsArray::as_primitive::<Int64Type>);
        let (firsts, lasts) = (number("first_offset")?, number("last_offset")?);
        let complete = |row: &usize| errors.is_valid(*row) && firsts.is_valid(*row) && lasts.is_valid(*row);
        if let Some(row) = (0..rows.num_rows()).find(complete) {
            return Some((firsts.value(row), lasts.value(row)));
        }
    }
    None
}
