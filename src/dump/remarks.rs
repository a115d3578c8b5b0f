//! [`Remarks`]: what `kafka-dump-log` reports after all files.
//!
//! Kafka collects the reports in a `HashMap` by absolute path, so their order depends on Java's hashes. [`JavaMap`] has
//! the same order.

use std::collections::BTreeMap;
use std::io::Write;

use crate::error::Result;

/// Kafka's words.
const OUT_OF_ORDER: &str = "out of order";

/// Pairs of the value found in an index and the value found in the log.
type Mismatches = Vec<(i64, i64)>;

/// Problems by file.
#[derive(Default)]
pub(crate) struct Remarks {
    /// Entries of an offset index that differ from the log.
    pub(crate) index_mismatches: JavaMap<BTreeMap<i64, i64>>,
    /// Entries of a time index that differ from the log.
    pub(crate) time_mismatches: JavaMap<Mismatches>,
    /// Entries of a time index that are not after the one before.
    pub(crate) out_of_order: JavaMap<Mismatches>,
    /// Offsets in a time index that are not the last offset of a batch.
    pub(crate) not_found: JavaMap<Mismatches>,
    /// Records whose offset does not follow the one before.
    pub(crate) gaps: JavaMap<BTreeMap<i64, i64>>,
}

impl Remarks {
    /// Writes all of them.
    pub(crate) fn write(&self, out: &mut dyn Write) -> Result<()> {
        for (file, pairs) in self.index_mismatches.in_order() {
            writeln!(out, "Mismatches in :{file}")?;
            for (offset, found) in pairs.iter().rev() {
                writeln!(out, "  Index offset: {offset}, log offset: {found}")?;
            }
        }
        for (file, pairs) in self.time_mismatches.in_order() {
            writeln!(out, "Found timestamp mismatch in :{file}")?;
            for (timestamp, found) in pairs {
                writeln!(out, "  Index timestamp: {timestamp}, log timestamp: {found}")?;
            }
        }
        for (file, pairs) in self.out_of_order.in_order() {
            writeln!(out, "Found {OUT_OF_ORDER} timestamp in :{file}")?;
            for (timestamp, before) in pairs {
                writeln!(out, "  Index timestamp: {timestamp}, Previously indexed timestamp: {before}")?;
            }
        }
        for (file, pairs) in self.not_found.in_order() {
            writeln!(out, "The following indexed offsets are not found in :{file}")?;
            for (offset, found) in pairs {
                writeln!(out, "Indexed offset: {offset}, found log offset: {found}")?;
            }
        }
        for (file, pairs) in self.gaps.in_order() {
            writeln!(out, "Non-consecutive offsets in {file}")?;
            for (offset, next) in pairs {
                writeln!(out, "  {offset} is followed by {next}")?;
            }
        }
        Ok(())
    }
}

/// A map that is filled by `HashMap.computeIfAbsent` of Java and iterated in its order: by bucket, and within a bucket
/// the latest key first.
pub(crate) struct JavaMap<V> {
    buckets: usize,
    entries: Vec<(String, V)>,
}

impl<V> Default for JavaMap<V> {
    fn default() -> Self {
        Self { buckets: 16, entries: Vec::new() }
    }
}

impl<V: Default> JavaMap<V> {
    /// Changes the value of a key, which is added if it is missing. Java grows the table before it searches.
    pub(crate) fn update(&mut self, key: &str, change: impl FnOnce(&mut V)) {
        if self.entries.len() > self.buckets.saturating_sub(self.buckets / 4) {
            self.buckets = self.buckets.saturating_mul(2);
        }
        if let Some((_, value)) = self.entries.iter_mut().rev().find(|(known, _)| known == key) {
            change(value);
            return;
        }
        let mut value = V::default();
        change(&mut value);
        self.entries.push((key.to_owned(), value));
    }

    fn in_order(&self) -> Vec<&(String, V)> {
        let mut entries: Vec<_> = self.entries.iter().rev().collect();
        let mask = u32::try_from(self.buckets.saturating_sub(1)).unwrap_or(u32::MAX);
        entries.sort_by_key(|(key, _)| java_hash(key) & mask);
        entries
    }
}

/// The hash of a string in a `HashMap`.
fn java_hash(text: &str) -> u32 {
    let hash = text.encode_utf16().fold(0_u32, |hash, unit| hash.wrapping_mul(31).wrapping_add(u32::from(unit)));
    hash ^ (hash >> 16)
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_those_of_java() {
        // "hello".hashCode() is 99162322
        assert_eq!(java_hash("hello"), 99_163_451);
    }

    #[test]
    fn keys_of_a_bucket_are_in_reverse_order() {
        let mut map = JavaMap::<u8>::default();
        // "Aa" and "BB" have the same hash
        for key in ["Aa", "BB", "Aa"] {
            map.update(key, |count| *count += 1);
        }
        let order: Vec<_> = map.in_order().into_iter().map(|(key, count)| (key.as_str(), *count)).collect();
        assert_eq!(order, [("BB", 1), ("Aa", 2)]);
    }
}
