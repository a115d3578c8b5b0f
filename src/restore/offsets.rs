//! [`CommittedOffsets`]: the committed offsets of groups, from the records of `__consumer_offsets`.
//!
//! The records are applied as a group coordinator applies them when it loads a partition: the latest commit of a key
//! counts, a tombstone removes it, and commits of a transaction count from its commit marker on, unless a later record
//! has replaced them.
//!
//! Source: `GroupMetadataManager.doLoadGroupsAndOffsets` and `OffsetMetadataManager.replay` of Kafka.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::Path;

use crate::compression::Scratch;
use crate::error::{Error, Result};
use crate::format::batch::Batch;
use crate::format::control::ControlRecord;
use crate::format::record::Record;
use crate::internal::{self, Decoded, Family, Message, Value};
use crate::io::atomic::write_atomically;
use crate::io::{Location, Progress};
use crate::plural::count_of;
use crate::restore::sources::find_offsets;
use crate::restore::{RestoreOptions, RestoreReport, RestoredOffset};
use crate::rewrite::source::RewriteSource;
use crate::store::TopicPartition;

/// Types of the records with a committed offset. The first one is of Kafka 0.8.
const TYPES: [i16; 2] = [0, 1];

/// A group and a partition.
type GroupPartition = (String, TopicPartition);

/// The committed offsets of all groups.
#[derive(Debug, Default)]
pub(super) struct CommittedOffsets {
    /// The offset of each commit's record, and the committed offset; `None` for a tombstone, and for a value that cannot
    /// be decoded.
    commits: BTreeMap<GroupPartition, (i64, Option<i64>)>,
    /// The commits in open transactions, by producer.
    pending: HashMap<i64, Vec<(GroupPartition, i64, Option<i64>)>>,
    /// Number of records that cannot be decoded, and why the first of them cannot.
    undecoded: Option<(u64, String)>,
}

impl CommittedOffsets {
    /// Reads the partitions of `__consumer_offsets` in `found`, or in the location that the options name. Reads nothing
    /// unless the options have a directory for the offsets.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if there is no such partition; corruption; I/O
    /// errors.
    pub(super) fn read(found: &[Location], options: &RestoreOptions) -> Result<Self> {
        let mut committed = Self::default();
        if options.committed_offsets.is_none() {
            return Ok(committed);
        }
        let elsewhere = options.offsets_source.as_ref().map(find_offsets).transpose()?;
        let directories = elsewhere.as_deref().unwrap_or(found);
        if directories.is_empty() {
            let message = "there is no partition of __consumer_offsets, which has the committed offsets: \
                           set offsets_source to a log directory with this topic";
            let error = Error::argument(message);
            return Err(match &options.offsets_source {
                Some(location) => error.with_path(location),
                None => error,
            });
        }
        let mut scratch = Scratch::new();
        for directory in directories {
            let source = RewriteSource::open(directory, &options.limits, true)?;
            // producers of another partition's transactions have markers of their own
            committed.pending.clear();
            for file in &source.segments {
                source.each_batch(file, &mut Progress::none(), &mut |batch| {
                    committed.batch(batch, &mut scratch, options).map(|()| true)
                })?;
            }
        }
        Ok(committed)
    }

    fn batch(&mut self, batch: &Batch<'_>, scratch: &mut Scratch, options: &RestoreOptions) -> Result<()> {
        for record in batch.records(scratch, &options.limits)? {
            let record = record?;
            if batch.is_control() {
                self.marker(batch.producer_id(), &record)?;
            } else if let Some((key, offset)) = self.commit(&record) {
                if batch.is_transactional() {
                    self.pending.entry(batch.producer_id()).or_default().push((key, record.offset(), offset));
                } else {
                    self.apply(key, record.offset(), offset);
                }
            }
        }
        Ok(())
    }

    /// Ends the transaction of a producer.
    fn marker(&mut self, producer_id: i64, record: &Record<'_>) -> Result<()> {
        let commits = self.pending.remove(&producer_id).unwrap_or_default();
        if matches!(ControlRecord::parse(record)?, ControlRecord::Commit { .. }) {
            for (key, at, offset) in commits {
                self.apply(key, at, offset);
            }
        }
        Ok(())
    }

    fn apply(&mut self, key: GroupPartition, at: i64, offset: Option<i64>) {
        let known = self.commits.entry(key).or_insert((at, offset));
        if at >= known.0 {
            *known = (at, offset);
        }
    }

    /// Decodes a commit. Returns `None` for another record.
    fn commit(&mut self, record: &Record<'_>) -> Option<(GroupPartition, Option<i64>)> {
        let Decoded { type_id, key, value, reason, .. } = internal::record(Family::Group, record.key(), record.value());
        if !type_id.is_some_and(|type_id| TYPES.contains(&type_id)) {
            return None;
        }
        let is_known = reason.is_none();
        if let Some(reason) = reason {
            let (count, _) = self.undecoded.get_or_insert((0, reason));
            *count = count.saturating_add(1);
        }
        let key = key?;
        let field = |name: &str| key.value().get(name);
        let group = field("group")?.as_text()?.to_owned();
        let topic = field("topic")?.as_text()?.to_owned();
        let partition = i32::try_from(field("partition")?.as_int()?).ok()?;
        let offset = |value: &Message<'_>| value.value().get("offset").and_then(Value::as_int);
        // an unknown offset replaces an older one: consumers that began at that would process records twice
        let offset = value.as_ref().filter(|_| is_known).and_then(offset);
        Some(((group, TopicPartition { topic, partition }), offset))
    }

    /// Adds the offsets to a report, each at least the start and at most the end of the restored partition.
    pub(super) fn add_to(self, report: &mut RestoreReport) {
        let mut omitted = 0_u64;
        for ((group, partition), (_, committed)) in self.commits {
            let Some(committed) = committed else { continue };
            let Some(restored) = report.partition(&partition) else {
                omitted = omitted.saturating_add(1);
                continue;
            };
            let offset = committed.min(restored.end_offset).max(restored.start_offset);
            report.committed_offsets.push(RestoredOffset { group, partition, committed, offset });
        }
        if omitted > 0 {
            let count = count_of(omitted, "committed offset");
            report.warnings.push(format!("omitted: {count} of partitions that are not restored"));
        }
        if let Some((count, reason)) = self.undecoded {
            let count = count_of(count, "record");
            report.warnings.push(format!("omitted: {count} of __consumer_offsets that cannot be decoded ({reason})"));
        }
    }
}

/// Writes one file per group, in the format of `kafka-consumer-groups --reset-offsets --from-file`.
///
/// # Errors
/// I/O errors.
pub(super) fn write(directory: &Path, offsets: &[RestoredOffset]) -> Result<()> {
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    for one in offsets {
        let TopicPartition { topic, partition } = &one.partition;
        // writing to a String cannot fail
        let _ = writeln!(files.entry(&one.group).or_default(), "{topic},{partition},{}", one.offset);
    }
    for (group, text) in files {
        write_atomically(&directory.join(file_name(group)), text.as_bytes())?;
    }
    Ok(())
}

/// The file of a group. Bytes that are not safe in every file system are written as `%` and two hexadecimal digits.
fn file_name(group: &str) -> String {
    let mut name = String::new();
    for byte in group.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-' => name.push(char::from(byte)),
            _ => {
                let _ = write!(name, "%{byte:02X}"); // cannot fail
            }
        }
    }
    name + ".csv"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_name_is_safe_and_unique() {
        let cases = [("billing", "billing.csv"), ("a/b c", "a%2Fb%20c.csv"), ("a%2Fb", "a%252Fb.csv"), ("", ".csv")];
        for (group, name) in cases {
            assert_eq!(file_name(group), name);
        }
        assert_eq!(file_name("\u{fc}"), "%C3%BC.csv");
    }
}
