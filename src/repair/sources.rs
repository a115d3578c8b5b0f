//! The files that salvage reads, in the order of their batches.

use crate::compression::Scratch;
use crate::error::{Error, Result};
use crate::io::Location;
use crate::limits::Limits;
use crate::log::inventory::Inventory;
use crate::log::reader::SegmentReader;
use crate::log::walk::{BatchWalk, WalkEvent};
use crate::store::listing::refuse_log_directory;
use crate::store::names::{LogFile, LogFileKind};
use crate::store::refuse_foreign_directory;

/// A source file.
#[derive(Debug, Clone)]
pub(super) struct SourceFile {
    pub(super) path: Location,
    /// Base offset from the name, or the offset of the first batch if that is valid and smaller.
    pub(super) base_offset: Option<i64>,
    /// The offset of the first batch, if that is valid.
    pub(super) first: Option<i64>,
    /// The first offset of the next file that begins after this one.
    pub(super) bound: i64,
    pub(super) size: u64,
}

/// The offsets of a file's first two batches, or of fewer if one is not valid: the first, and the next one after it.
type Firsts = Vec<(i64, i64)>;

/// Lists the files of a partition or of a single segment. They are in the order of their names, except those whose first
/// two batches show that the name is wrong.
pub(super) fn sources(path: &Location, inventory: &Inventory, limits: &Limits) -> Result<Vec<SourceFile>> {
    let mut files: Vec<(Option<i64>, Location)> =
        inventory.of_kind(LogFileKind::Log).map(|(offset, path)| (Some(offset), path.clone())).collect();
    if files.is_empty() {
        if path.is_dir() {
            refuse_log_directory(path)?;
            refuse_foreign_directory(path)?;
            return Err(Error::argument(format!("{} holds no segment", path.display())));
        }
        files.push((LogFile::parse(path.name()).map(|file| file.base_offset), path.clone()));
    }
    let is_only = files.len() == 1;
    let mut found = Vec::new();
    for (name, path) in files {
        let firsts = first_offsets(&path, limits)?;
        found.push((name, path, firsts));
    }
    found.sort_by_key(|(name, _, firsts)| order_of(*name, firsts));
    let mut sources = Vec::new();
    // the start of the file after the current one, the bound of that file, and the smallest start of all files after it
    let (mut next_start, mut next_bound, mut least) = (None, i64::MAX, i64::MAX);
    for (name, path, firsts) in found.into_iter().rev() {
        let size = path.len()?;
        let base_offset = name.map(|name| believable_base(name, &firsts, is_only));
        let first = firsts.first().map(|(first, _)| *first);
        // the name of an empty file does not bound the offsets of other batches
        let start = first.max(base_offset.filter(|_| !firsts.is_empty())).or(base_offset.filter(|_| size > 0));
        // a copy of this file does not bound its offsets
        let bound = if start.is_some() && start == next_start { next_bound } else { least };
        sources.push(SourceFile { path, base_offset, first, bound, size });
        if let Some(start) = start {
            (next_start, next_bound, least) = (Some(start), bound, least.min(start));
        }
    }
    sources.reverse();
    Ok(sources)
}

/// Reads the offsets of a file's first two batches.
fn first_offsets(path: &Location, limits: &Limits) -> Result<Firsts> {
    let mut walk = BatchWalk::new(SegmentReader::open_with(path, limits)?, limits);
    let mut firsts = Vec::new();
    while firsts.len() < 2
        && let WalkEvent::Batch(batch) = walk.next_batch()?
        && let Ok(first) = batch.first_offset(&mut Scratch::new(), limits)
    {
        firsts.push((first, batch.next_offset()));
    }
    Ok(firsts)
}

/// The offset by which a file is sorted: that of its first batch if the second one directly follows it or shows as well
/// that the name is too high, because a copied or renamed file may have any name; otherwise the one in its name.
fn order_of(name: Option<i64>, firsts: &[(i64, i64)]) -> Option<i64> {
    match firsts {
        [(first, next), (second, _)] if first < next && next == second => Some(*first),
        _ => name.map(|name| believable_base(name, firsts, false)),
    }
}

/// Returns the base offset of a segment: the one in its name, or a smaller one if its first two batches agree on it. A
/// single batch may have a corrupt offset, which no checksum covers; but in the only file of a log, its offset is the
/// better guess.
fn believable_base(name: i64, firsts: &[(i64, i64)], is_only: bool) -> i64 {
    match firsts {
        [(first, _), (second, _)] if *first < name && *second < name && first < second => *first,
        [(first, next), (second, _)] if is_only && *first < name && next == second => *first,
        [(first, _)] if is_only => (*first).min(name).max(0),
        _ => name,
    }
}
