//! `.index` files: each entry is compared with the batch at its position.

use super::{DumpJob, base_offset_of, java_absolute, sibling};
use crate::dump::log_file::{DumpedLog, HEADER_READ_LEN};
use crate::dump::sink::{push, push_field};
use crate::dump::{Format, jsonl};
use crate::error::{Error, ErrorKind, Result};
use crate::io::Location;
use crate::log::index::OffsetIndex;
use crate::num::usize_of;

/// Size of an entry in bytes.
pub(super) const ENTRY_LEN: usize = 8;
/// The longest index that a broker can map.
const MAX_INDEX_LEN: u32 = i32::MAX.cast_unsigned();

impl DumpJob<'_> {
    pub(super) fn offset_index(&mut self, path: &Location, shown: &str, name: &str) -> Result<()> {
        let base_offset = required_base_offset(path, name)?;
        let mut log = DumpedLog::open(&sibling(path, name, "log"), HEADER_READ_LEN, &self.options.limits)?;
        let bytes = read_index(path)?;
        if bytes.len() < ENTRY_LEN {
            self.verdict(shown, "is empty", "empty");
            return Ok(());
        }
        if self.options.index_sanity_check {
            OffsetIndex::open(path, Some(base_offset))?.sanity_check()?;
            self.verdict(shown, "passed sanity check", "sane");
            return Ok(());
        }
        let absolute = java_absolute(shown);
        for (slot, entry) in bytes.chunks_exact(ENTRY_LEN).map(StoredOffsetEntry::parse).enumerate() {
            // Kafka's sign of the zeros after the last entry
            if entry.relative == 0 && slot > 0 {
                break;
            }
            let offset = base_offset.wrapping_add(i64::from(entry.relative));
            let found = self.batch_at(&mut log, path, entry.position)?;
            if found != offset {
                self.remarks.index_mismatches.update(&absolute, |pairs| {
                    pairs.insert(offset, found);
                });
            }
            if !self.options.verify_index_only {
                self.entry([("offset", offset), ("position", entry.position.into())])?;
            }
        }
        Ok(())
    }

    /// The last offset of the batch at the position of an entry, which must end within the size of a message.
    fn batch_at(&self, log: &mut DumpedLog, path: &Location, position: i32) -> Result<i64> {
        let start = log_position(position, log, path)?;
        let end = start.saturating_add(self.options.max_message_size).min(log.len());
        if log.frame(start, end)?.is_some() {
            return log.last_offset(start);
        }
        let message = format!(
            "an entry points to position {start} of the log, but no batch there ends within {} bytes; with larger \
             batches, raise --max-message-size",
            end.saturating_sub(start)
        );
        Err(Error::new(ErrorKind::InvalidFile(message)).with_path(path))
    }

    /// A line about a whole file.
    pub(super) fn verdict(&mut self, shown: &str, text: &str, name: &str) {
        let out = &mut self.sink.buffer;
        match self.options.format {
            Format::Jsonl => jsonl::verdict(out, name),
            Format::Kafka | Format::Table => push(out, &format!("{shown} {text}.\n")),
        }
    }

    /// The line of an entry of an index.
    pub(super) fn entry(&mut self, fields: [(&str, i64); 2]) -> Result<()> {
        let out = &mut self.sink.buffer;
        match self.options.format {
            Format::Jsonl => jsonl::entry(out, &fields),
            Format::Kafka | Format::Table => {
                for (place, (name, value)) in fields.into_iter().enumerate() {
                    push(out, if place > 0 { " " } else { "" });
                    push(out, name);
                    push_field(out, ": ", value);
                }
                out.push(b'\n');
            }
        }
        self.sink.end_line()
    }
}

/// An entry of an offset index as stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredOffsetEntry {
    /// Offset, relative to the base offset.
    pub(super) relative: i32,
    pub(super) position: i32,
}

impl StoredOffsetEntry {
    /// The entry in a slot; `None` after the last complete one. Zeros at the end are entries.
    pub(super) fn at(index: &[u8], slot: usize) -> Option<Self> {
        index.chunks_exact(ENTRY_LEN).nth(slot).map(Self::parse)
    }

    fn parse(entry: &[u8]) -> Self {
        let relative = entry.first_chunk().copied().map_or(0, i32::from_be_bytes);
        let position = entry.last_chunk().copied().map_or(0, i32::from_be_bytes);
        Self { relative, position }
    }
}

/// Reads an index as a whole, zeros at its end included.
pub(super) fn read_index(path: &Location) -> Result<Vec<u8>> {
    path.read_small(usize_of(MAX_INDEX_LEN))
}

/// The position of an entry, checked against the log.
pub(super) fn log_position(position: i32, log: &DumpedLog, path: &Location) -> Result<u64> {
    u64::try_from(position).ok().filter(|position| *position <= log.len()).ok_or_else(|| {
        let message = format!("an entry points to position {position} of the log, which has {} bytes", log.len());
        Error::new(ErrorKind::InvalidFile(message)).with_path(path)
    })
}

/// The base offset in an index's name, which its entries are relative to.
pub(super) fn required_base_offset(path: &Location, name: &str) -> Result<i64> {
    base_offset_of(name).ok_or_else(|| {
        let message = "the name does not begin with the base offset of a segment, such as 00000000000000000000";
        Error::argument(message).with_path(path)
    })
}
