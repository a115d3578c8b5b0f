//! `.timeindex` files: each entry is compared with the batch that has its offset.
//!
//! `kafka-dump-log` walks from the position that the offset index has for an entry to the end of the log, for each
//! entry. This walks to the end once, and begins the search for an entry near the batch that it finds: see [`Walk`].

use super::index::{ENTRY_LEN as OFFSET_ENTRY_LEN, StoredOffsetEntry, log_position, read_index, required_base_offset};
use super::{DumpJob, java_absolute, sibling};
use crate::compression::Scratch;
use crate::dump::log_file::DumpedLog;
use crate::error::Result;
use crate::io::Location;
use crate::limits::Limits;
use crate::log::index::TimeIndex;
use crate::num::u64_of;

/// Size of an entry in bytes.
const ENTRY_LEN: usize = 12;
/// Number of bytes per read of the log.
const READ_LEN: usize = 1 << 16;
/// The binary search of `AbstractIndex` looks among this many of the last entries first.
const WARM_ENTRIES: usize = 8192 / 8;
/// Number of batches between the marks of a walk.
const BATCHES_PER_MARK: usize = 64;
/// Kafka's largest timestamp of a batch without records, and the one before the first entry.
const NO_TIMESTAMP: i64 = -1;
/// What the remarks show for an offset after the end of the log.
const NO_OFFSET: i64 = -1;

impl DumpJob<'_> {
    pub(super) fn time_index(&mut self, path: &Location, shown: &str, name: &str) -> Result<()> {
        let base_offset = required_base_offset(path, name)?;
        let log_path = sibling(path, name, "log");
        let log = DumpedLog::open(&log_path, READ_LEN, &self.options.limits)?;
        let bytes = read_index(path)?;
        if self.options.index_sanity_check {
            TimeIndex::open(path, Some(base_offset))?.sanity_check()?;
            self.verdict(shown, "passed sanity check", "sane");
            return Ok(());
        }
        let index = match read_index(&sibling(path, name, "index")) {
            Err(error) if error.is_not_found() => Vec::new(), // Kafka creates an empty file, then fails
            index => index?,
        };
        let mut search = TimeIndexSearch { log, index: &index, base_offset, walk: None, largest: None };
        let absolute = java_absolute(shown);
        let mut before = NO_TIMESTAMP;
        for (slot, entry) in bytes.chunks_exact(ENTRY_LEN).enumerate() {
            let timestamp = entry.first_chunk().copied().map_or(0, i64::from_be_bytes);
            let relative = entry.last_chunk().copied().map_or(0, i32::from_be_bytes);
            // Kafka's sign of the zeros after the last entry
            if relative == 0 && slot > 0 {
                break;
            }
            let offset = base_offset.wrapping_add(i64::from(relative));
            match search.find(relative, path)? {
                Some(found) if found.last_offset == offset => {
                    let largest = search.largest_timestamp(found, &mut self.scratch, &self.options.limits);
                    let largest = largest.map_err(|error| error.with_path(&log_path))?;
                    if largest != timestamp {
                        self.remarks.time_mismatches.update(&absolute, |pairs| pairs.push((timestamp, largest)));
                    }
                    if before >= timestamp {
                        self.remarks.out_of_order.update(&absolute, |pairs| pairs.push((timestamp, before)));
                    }
                }
                other => {
                    let found = other.map_or(NO_OFFSET, |found| found.last_offset);
                    self.remarks.not_found.update(&absolute, |pairs| pairs.push((offset, found)));
                }
            }
            if !self.options.verify_index_only {
                self.entry([("timestamp", timestamp), ("offset", offset)])?;
            }
            before = timestamp;
        }
        Ok(())
    }
}

/// A batch whose last offset is at or after the searched one.
#[derive(Debug, Clone, Copy)]
struct FoundBatch {
    position: u64,
    size: usize,
    last_offset: i64,
}

/// The walk from a position on. It has marks, as the entries of a damaged index may go back and forth.
struct Walk {
    start: u64,
    marks: Vec<Mark>,
}

/// A position at which a batch begins, and the largest last offset of the batches from the start of the walk up to it.
#[derive(Debug, Clone, Copy)]
struct Mark {
    largest: i64,
    position: u64,
}

struct TimeIndexSearch<'i> {
    log: DumpedLog,
    index: &'i [u8],
    base_offset: i64,
    walk: Option<Walk>,
    /// Position and largest timestamp of the batch that was read last.
    largest: Option<(u64, i64)>,
}

impl TimeIndexSearch<'_> {
    /// Finds the first batch whose last offset is not before an offset, from the position in the offset index on.
    fn find(&mut self, relative: i32, path: &Location) -> Result<Option<FoundBatch>> {
        let start = log_position(lookup(self.index, relative), &self.log, path)?;
        let offset = self.base_offset.wrapping_add(i64::from(relative));
        if self.walk.is_none() {
            self.walk_to_the_end(start)?;
        }
        let walk = match &mut self.walk {
            Some(walk) if walk.start == start => walk,
            other => other.insert(Walk { start, marks: vec![Mark { largest: i64::MIN, position: start }] }),
        };
        let known = walk.marks.partition_point(|mark| mark.largest < offset);
        let Some(&Mark { mut largest, mut position }) = known.checked_sub(1).and_then(|last| walk.marks.get(last))
        else {
            return Ok(None); // the first mark is before every offset
        };
        let is_new = known == walk.marks.len();
        let end = self.log.len();
        let mut passed = 0_usize;
        while let Some(size) = self.log.frame(position, end)? {
            let last_offset = self.log.last_offset(position)?;
            if last_offset >= offset {
                return Ok(Some(FoundBatch { position, size, last_offset }));
            }
            position = position.saturating_add(u64_of(size));
            (largest, passed) = (largest.max(last_offset), passed.saturating_add(1));
            if is_new && passed.is_multiple_of(BATCHES_PER_MARK) {
                walk.marks.push(Mark { largest, position });
            }
        }
        Ok(None)
    }

    /// Fails at a size that Kafka rejects, even if it is after all entries.
    fn walk_to_the_end(&mut self, start: u64) -> Result<()> {
        let (mut position, end) = (start, self.log.len());
        while let Some(size) = self.log.frame(position, end)? {
            position = position.saturating_add(u64_of(size));
        }
        Ok(())
    }

    fn largest_timestamp(&mut self, found: FoundBatch, scratch: &mut Scratch, limits: &Limits) -> Result<i64> {
        if let Some((_, largest)) = self.largest.filter(|(position, _)| *position == found.position) {
            return Ok(largest);
        }
        let position = found.position;
        let found = self.log.batch(position, found.size)?;
        let mut largest = NO_TIMESTAMP;
        if let Some(batch) = &found.batch {
            for record in batch.records(scratch, limits)? {
                largest = largest.max(record?.timestamp());
            }
        }
        self.largest = Some((position, largest));
        Ok(largest)
    }
}

/// The position of the entry with the largest offset that is at most the searched one, by the binary search of
/// `AbstractIndex`. Its result depends on the order of the comparisons if the entries are not sorted, as in an index
/// that ends in zeros.
fn lookup(index: &[u8], relative: i32) -> i32 {
    let count = index.len() / OFFSET_ENTRY_LEN;
    let entry =
        |slot: usize| StoredOffsetEntry::at(index, slot).unwrap_or(StoredOffsetEntry { relative: 0, position: 0 });
    let Some(last) = count.checked_sub(1) else { return 0 };
    let first_warm = last.saturating_sub(WARM_ENTRIES);
    let (mut low, mut high) = if entry(first_warm).relative < relative {
        (first_warm, last)
    } else if entry(0).relative > relative {
        return 0;
    } else {
        (0, first_warm)
    };
    while low < high {
        let middle = high.saturating_sub(high.saturating_sub(low) / 2);
        let found = entry(middle);
        match found.relative.cmp(&relative) {
            std::cmp::Ordering::Greater => high = middle.saturating_sub(1),
            std::cmp::Ordering::Less => low = middle,
            std::cmp::Ordering::Equal => return found.position,
        }
    }
    entry(low).position
}

#[cfg(test)]
mod tests {
    use super::*;

    fn index(pairs: &[(i32, i32)]) -> Vec<u8> {
        pairs.iter().flat_map(|(offset, position)| [offset.to_be_bytes(), position.to_be_bytes()].concat()).collect()
    }

    #[test]
    fn lookup_finds_the_entry_at_or_before() {
        let index = index(&[(10, 100), (20, 200), (30, 300)]);
        for (offset, position) in [(9, 0), (10, 100), (19, 100), (20, 200), (99, 300)] {
            assert_eq!(lookup(&index, offset), position, "{offset}");
        }
        assert_eq!(lookup(&[], 5), 0);
    }

    #[test]
    fn search_finds_the_same_batch_for_entries_in_any_order() {
        let path = std::env::temp_dir().join(format!("kbat-time-index-{}.log", std::process::id()));
        let offsets: Vec<i64> = (0..1_000).map(|at| if at % 97 == 5 { at / 2 } else { at * 2 }).collect();
        let mut bytes = Vec::new();
        for offset in &offsets {
            let mut builder = crate::BatchBuilder::new().base_offset(*offset);
            builder.append(0, None, None).unwrap();
            builder.finish_into(&mut bytes).unwrap();
        }
        std::fs::write(&path, &bytes).unwrap();
        let location = Location::from(path.as_path());
        let log = DumpedLog::open(&location, READ_LEN, &Limits::default()).unwrap();
        let index = index(&[(0, 0), (700, i32::try_from(bytes.len() / 1_000 * 300).unwrap())]);
        let mut search = TimeIndexSearch { log, index: &index, base_offset: 0, walk: None, largest: None };
        for step in 0..2_000 {
            let relative = step * 7_919 % 2_100;
            let first = if relative >= 700 { 300 } else { 0 };
            let found = search.find(relative, &location).unwrap().map(|found| found.last_offset);
            let expected = offsets.iter().skip(first).find(|last| **last >= i64::from(relative)).copied();
            assert_eq!(found, expected, "{relative}");
        }
        std::fs::remove_file(&path).unwrap();
    }
}
