//! Partitions of Pinterest's uploader, whose watermark is the base offset of the last segment that was uploaded
//! completely.

use super::file::{File, Loaded};
use crate::error::Result;
use crate::io::Location;
use crate::store::{LogFile, LogFileKind};
use crate::tiered::pinterest::{WATERMARK, parse_watermark};

/// Largest size of a watermark in bytes. The uploader writes 20.
const MAX_LEN: usize = 1 << 16;

/// Selects the files up to the watermark.
///
/// # Errors
/// [`ErrorKind::InvalidFile`](crate::ErrorKind::InvalidFile) for a malformed watermark; I/O errors.
pub(super) fn load(directory: &Location, files: &[Location]) -> Result<Loaded> {
    let mut loaded = Loaded::default();
    let object = directory.join(WATERMARK);
    let watermark = if object.status_if_there()?.is_some() {
        let text = object.read_small(MAX_LEN)?;
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
        let Some(file) = LogFile::parse(location.name()) else { continue };
        let above = watermark.filter(|watermark| file.base_offset > *watermark);
        if let (Some(watermark), LogFileKind::Log) = (above, file.kind) {
            let message = format!(
                "{} is not read: it is above the {WATERMARK} of {watermark}, so its upload may not be finished",
                location.display()
            );
            loaded.warnings.push((file.base_offset, message));
        }
        if above.is_none() {
            loaded.files.insert(file.to_string(), File::Renamed(location.clone()));
        }
    }
    Ok(loaded)
}
