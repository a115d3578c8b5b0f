//! Partitions of Pinterest's uploader, whose watermark is the base offset of the last segment that was uploaded
//! completely.

use super::ends::remove_overlaps;
use super::file::{File, Loaded};
use crate::error::Result;
use crate::io::Location;
use crate::store::{LogFile, LogFileKind};
use crate::tiered::pinterest::{WATERMARK, parse_watermark};

/// Largest size of a watermark in bytes. The uploader writes 20.
const MAX_LEN: usize = 1 << 16;

/// Selects the files up to the watermark, so that each offset is read once.
///
/// # Errors
/// [`ErrorKind::InvalidFile`](crate::ErrorKind::InvalidFile) for a malformed watermark; I/O errors.
pub(super) fn load(directory: &Location, files: &[Location]) -> Result<Loaded> {
    let mut loaded = Loaded::default();
    let object = directory.join(WATERMARK);
    let watermark = if object.status_if_there()?.is_some() {
        let text = object.read_current(MAX_LEN)?;
        Some(parse_watermark(&text).map_err(|error| error.with_path(&object))?)
    } else {
        let message = format!(
            "{}: there is no {WATERMARK}, so the last segment may be incomplete: its upload may not be finished",
            directory.display()
        );
        loaded.warnings.push((0, message));
        None
    };
    for location in files {
        let file = LogFile::parse(location.name());
        let above = file.zip(watermark).filter(|(file, watermark)| file.base_offset > *watermark);
        let Some((file, watermark)) = above else {
            loaded.files.insert(location.name().to_owned(), File::Renamed(location.clone()));
            continue;
        };
        if file.kind == LogFileKind::Log {
            let message = format!(
                "{} is not read: it is above the {WATERMARK} of {watermark}, so its upload may not be finished",
                location.display()
            );
            loaded.warnings.push((file.base_offset, message));
        }
    }
    remove_overlaps(directory, &mut loaded)?;
    Ok(loaded)
}
