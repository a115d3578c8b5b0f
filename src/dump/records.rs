//! `.log` and `.checkpoint` files: batches and records.

use super::{DumpJob, base_offset_of, java_absolute};
use crate::compression::Payload;
use crate::dump::log_file::{DumpedLog, ParsedBatch, WALK_LEN};
use crate::dump::sink::{push, push_field};
use crate::dump::{Format, contents, control, jsonl, kafka, table};
use crate::error::{Error, ErrorKind, Result};
use crate::format::record::Record;
use crate::format::records::Records;
use crate::io::Location;
use crate::num::u64_of;

/// The state of a walk through a log.
struct LogPosition {
    /// The file's path in the remarks.
    absolute: String,
    last_offset: i64,
}

impl DumpJob<'_> {
    pub(super) fn log(&mut self, path: &Location, shown: &str, name: &str) -> Result<()> {
        match self.options.format {
            Format::Kafka => log_heading(&mut self.sink.buffer, name),
            Format::Table => table::column_names(&mut self.sink.buffer, self.options),
            Format::Jsonl => {}
        }
        let mut log = DumpedLog::open(path, WALK_LEN, &self.options.limits)?;
        let end = self.options.max_bytes.unwrap_or(u64::MAX).min(log.len());
        let mut walk = LogPosition { absolute: java_absolute(shown), last_offset: -1 };
        let mut position = 0;
        while let Some(size) = log.frame(position, end)? {
            let found = log.batch(position, size)?;
            self.batch(&found).map_err(|error| error.at(position).with_path(path))?;
            if self.options.is_deep() {
                self.records(&found, &mut walk).map_err(|error| error.with_path(path))?;
            }
            position = position.saturating_add(u64_of(size));
        }
        let left = end.saturating_sub(position);
        if left > 0 && self.options.max_bytes.is_none() {
            self.tail(left, name);
        }
        Ok(())
    }

    fn batch(&mut self, found: &ParsedBatch<'_>) -> Result<()> {
        let out = &mut self.sink.buffer;
        match self.options.format {
            Format::Kafka => kafka::batch(out, found)?,
            Format::Jsonl => jsonl::batch(out, found),
            Format::Table => {
                if !self.options.is_deep() {
                    table::batch(out, found);
                }
            }
        }
        self.sink.end_line()
    }

    /// Kafka decodes all records of a compressed batch before it returns the first one, and records of other batches
    /// one by one. This matters if one of them is corrupt.
    fn records(&mut self, found: &ParsedBatch<'_>, walk: &mut LogPosition) -> Result<()> {
        let Some(batch) = &found.batch else {
            let error = Error::new(ErrorKind::Truncated).at(found.header.position).in_field("records");
            return Err(error.in_batch(found.header.stored_base_offset));
        };
        let limits = &self.options.limits;
        let mut payload = batch.payload(&mut self.scratch, limits)?;
        if batch.magic() == 2 && batch.attributes.is_compressed() {
            let bytes = payload.bytes;
            for record in Records::new(batch, payload, limits)? {
                record?.headers().verify()?;
            }
            payload = Payload::borrowed(bytes);
        }
        for record in Records::new(batch, payload, limits)? {
            let record = record?;
            record.headers().verify()?;
            if record.offset != walk.last_offset.wrapping_add(1) {
                let (last, next) = (walk.last_offset, record.offset);
                self.remarks.gaps.update(&walk.absolute, |gaps| {
                    gaps.insert(last, next);
                });
            }
            walk.last_offset = record.offset;
            let out = &mut self.sink.buffer;
            match self.options.format {
                Format::Kafka => record_line(out, self.options, found, &record)?,
                Format::Jsonl => jsonl::record(out, self.options, found, &record)?,
                Format::Table => table::record(out, self.options, found.header.is_control(), &record)?,
            }
            self.sink.end_line()?;
        }
        Ok(())
    }

    fn tail(&mut self, left: u64, name: &str) {
        let out = &mut self.sink.buffer;
        match self.options.format {
            Format::Jsonl => jsonl::tail(out, left),
            Format::Kafka | Format::Table => {
                push(out, &format!("Found {left} invalid bytes at the end of {name}\n"));
            }
        }
    }
}

#[inline]
fn record_line(
    out: &mut Vec<u8>,
    options: &super::Options,
    found: &ParsedBatch<'_>,
    record: &Record<'_>,
) -> Result<()> {
    let is_control = found.header.is_control();
    if !options.skip_record_metadata {
        kafka::record(out, record, kafka::timestamp_type(found))?;
        if is_control {
            control::write(out, record)?;
        }
    }
    if options.contents && !is_control {
        let prefix = if options.skip_record_metadata { "| " } else { " " };
        contents::write(out, options.decoder, record, prefix)?;
    }
    out.push(b'\n');
    Ok(())
}

/// The line that a file's name adds. Kafka fails for names without a number; this omits the line.
fn log_heading(out: &mut Vec<u8>, name: &str) {
    if name == "bootstrap.checkpoint" {
        push(out, "KRaft bootstrap snapshot\n");
    } else if name.strip_suffix(".log").is_some() {
        if let Some(offset) = base_offset_of(name) {
            push_field(out, "Log starting offset: ", offset);
            out.push(b'\n');
        }
    } else if let Some((offset, epoch)) = snapshot_id(name) {
        push_field(out, "Snapshot end offset: ", offset);
        push_field(out, ", epoch: ", epoch);
        out.push(b'\n');
    }
}

/// Offset and epoch in the name of a snapshot, `<20 digits>-<10 digits>.checkpoint`.
fn snapshot_id(name: &str) -> Option<(i64, i64)> {
    Some((name.get(..20)?.parse().ok()?, name.get(21..31)?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_snapshots_have_offset_and_epoch() {
        assert_eq!(snapshot_id("00000000000000000042-0000000007.checkpoint"), Some((42, 7)));
        assert_eq!(snapshot_id("x.checkpoint"), None);
    }
}
