//! [`sum_batches`]: sums over the headers of batches, by groups such as topic and codec.
//!
//! The rows of a [`BatchScan`](crate::arrow::BatchScan) have the same figures. Their sums need neither the rows nor the
//! Arrow arrays, and a log has many more batches than groups.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::arrow::interrupt::ProgressCallback;
use crate::arrow::options::{Isolation, ScanOptions};
use crate::arrow::origin::Origin;
use crate::arrow::source::ScanSource;
use crate::arrow::stats::ScanStats;
use crate::arrow::views::batches::stored_len;
use crate::arrow::walk::{SourceWalk, Step};
use crate::compression::Compression;
use crate::error::{Error, Result};
use crate::format::header::{BatchHeader, NO_TIMESTAMP};
use crate::num::{u64_of, usize_from_u64};

const DAY_MS: i64 = 86_400_000;

/// Sizes of a class have the same leading bits: up to 128 bytes each size is a class, larger ones are 1 to 2 % wide.
const CLASS_BITS: u32 = 7;
/// Half of the values of these bits.
const HALF_CLASSES: u64 = 64;

/// What batches are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BatchKey {
    /// The topic.
    Topic,
    /// The partition.
    Partition,
    /// The codec.
    Compression,
    /// The producer id; −1 for all batches without one.
    ProducerId,
    /// The message format.
    Magic,
    /// The day of the largest timestamp, in UTC.
    Day,
}

const KEYS: [(BatchKey, &str); 6] = [
    (BatchKey::Topic, "topic"),
    (BatchKey::Partition, "partition"),
    (BatchKey::Compression, "compression"),
    (BatchKey::ProducerId, "producer_id"),
    (BatchKey::Magic, "magic"),
    (BatchKey::Day, "day"),
];

impl fmt::Display for BatchKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = KEYS.iter().find(|(key, _)| key == self).map_or("", |(_, name)| name);
        f.write_str(name)
    }
}

impl FromStr for BatchKey {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        KEYS.iter().find(|(_, known)| *known == name).map(|(key, _)| *key).ok_or_else(|| {
            let names = KEYS.map(|(_, name)| name).join(", ");
            Error::argument(format!("batches can't be grouped by {name:?}; choose among {names}"))
        })
    }
}

/// The values of a group's keys. Those of other keys are `None`, and so are unknown ones.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct BatchGroup {
    /// The topic.
    pub topic: Option<Arc<str>>,
    /// The partition.
    pub partition: Option<i32>,
    /// The codec, such as zstd; none if it is not compressed; `unknown` for the codec bits 5 to 7.
    pub compression: Option<&'static str>,
    /// The producer id; −1 for none.
    pub producer_id: Option<i64>,
    /// The message format.
    pub magic: Option<u8>,
    /// Days since the epoch; `None` also for batches without a timestamp.
    pub day: Option<i64>,
}

/// Sums over the batches of a group. The header of a compressed set of magic 0 or 1 does not have a record count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BatchSums {
    /// Number of batches.
    pub batches: u64,
    /// Bytes as stored.
    pub bytes: u64,
    /// Records of the batches with a record count.
    pub records: u64,
    /// Number of batches without a record count.
    pub uncounted_batches: u64,
    /// Bytes of these batches.
    pub uncounted_bytes: u64,
    /// Bytes of the headers of all batches.
    pub batch_header_bytes: u64,
    /// Number of control batches.
    pub control_batches: u64,
    /// Number of batches of transactions, control batches included.
    pub transactional_batches: u64,
    /// Number of batches that begin after the offset that follows the batch before them.
    pub gaps: u64,
    /// Offsets without a record, in these gaps and within batches.
    pub missing_offsets: u64,
    /// The smallest timestamp in the headers, in milliseconds since the epoch.
    pub first_timestamp: Option<i64>,
    /// The largest timestamp in the headers.
    pub last_timestamp: Option<i64>,
    /// Bytes of the smallest batch.
    pub smallest_batch: Option<u64>,
    /// Bytes of the largest batch.
    pub largest_batch: Option<u64>,
    /// Number of batches by class of size: the smallest size with the same 7 leading bits.
    pub sizes: BTreeMap<u64, u64>,
}

impl BatchSums {
    fn add(&mut self, header: &BatchHeader, times: TimestampRange, gap: u64) {
        let size = u64_of(header.size());
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.batches, 1);
        add(&mut self.bytes, size);
        if let Some(count) = header.record_count() {
            add(&mut self.records, u64::try_from(count).unwrap_or(0));
        } else {
            add(&mut self.uncounted_batches, 1);
            add(&mut self.uncounted_bytes, size);
        }
        add(&mut self.batch_header_bytes, size.saturating_sub(u64_of(stored_len(header))));
        add(&mut self.control_batches, u64::from(header.is_control()));
        add(&mut self.transactional_batches, u64::from(header.is_transactional()));
        add(&mut self.gaps, u64::from(gap > 0));
        add(&mut self.missing_offsets, gap.saturating_add(missing_within(header)));
        self.first_timestamp = [self.first_timestamp, times.first].into_iter().flatten().min();
        self.last_timestamp = self.last_timestamp.max(times.last);
        self.smallest_batch = Some(self.smallest_batch.map_or(size, |smallest| smallest.min(size)));
        self.largest_batch = self.largest_batch.max(Some(size));
        add(self.sizes.entry(size_class(size)).or_default(), 1);
    }
}

/// Offsets of a batch without a record; 0 if its header does not show them.
fn missing_within(header: &BatchHeader) -> u64 {
    let (Some(base), Some(count)) = (header.base_offset(), header.record_count()) else { return 0 };
    let offsets = header.last_offset().saturating_sub(base).saturating_add(1);
    u64::try_from(offsets.saturating_sub(i64::from(count))).unwrap_or(0)
}

/// The smallest size of a size's class.
fn size_class(size: u64) -> u64 {
    let shift = class_shift(size);
    size.wrapping_shr(shift).wrapping_shl(shift)
}

/// The number of bits of a size after the leading ones.
fn class_shift(size: u64) -> u32 {
    size.checked_ilog2().unwrap_or(0).saturating_sub(CLASS_BITS.saturating_sub(1))
}

/// The number of sizes in each class.
#[derive(Debug, Default)]
pub(super) struct SizeCounts {
    /// By index of the class, which grows with the size.
    counts: Vec<u64>,
}

impl SizeCounts {
    /// Counts a size.
    #[inline]
    pub(super) fn add(&mut self, size: u64) {
        let index = class_index(size);
        if self.counts.len() <= index {
            self.counts.resize(index.saturating_add(1), 0);
        }
        if let Some(count) = self.counts.get_mut(index) {
            *count = count.saturating_add(1);
        }
    }

    /// The counts by the smallest size of each class.
    pub(super) fn by_class(&self) -> BTreeMap<u64, u64> {
        let counted = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counted.map(|(index, count)| (class_at(index), *count)).collect()
    }
}

/// The number of classes below that of a size. Up to 128 bytes, each size is a class; above, each power of two has 64.
fn class_index(size: u64) -> usize {
    let shift = class_shift(size);
    usize_from_u64(u64::from(shift).saturating_mul(HALF_CLASSES).saturating_add(size.wrapping_shr(shift)))
}

/// The smallest size of the class with an index.
fn class_at(index: usize) -> u64 {
    let index = u64_of(index);
    let shift = (index / HALF_CLASSES).saturating_sub(1);
    let leading = index.saturating_sub(shift.saturating_mul(HALF_CLASSES));
    leading.wrapping_shl(u32::try_from(shift).unwrap_or(0))
}

/// The smallest and the largest timestamp in a header.
#[derive(Debug, Clone, Copy)]
struct TimestampRange {
    first: Option<i64>,
    last: Option<i64>,
}

impl TimestampRange {
    fn of(header: &BatchHeader) -> Self {
        let known = |time: i64| Some(time).filter(|time| *time != NO_TIMESTAMP);
        let last = known(header.max_timestamp());
        // the field holds the delete horizon, if there is one
        let base = if header.delete_horizon_ms().is_none() { known(header.base_timestamp()) } else { None };
        Self { first: base.or(last), last }
    }
}

/// Sums up the batches of some sources, control batches included. Reads only headers.
///
/// Bounds by offset and timestamp select complete batches, as in [`BatchScan`](crate::arrow::BatchScan). The groups are
/// in the order of their first batches.
///
/// ```
/// # fn main() -> kbat::Result<()> {
/// use kbat::arrow::{BatchKey, ScanOptions, ScanSource, sum_batches};
/// # let mut builder = kbat::BatchBuilder::new();
/// # builder.append(1_700_000_000_000, Some(b"key"), Some(b"value"))?;
/// # let mut bytes = Vec::new();
/// # builder.finish_into(&mut bytes)?;
/// let source = ScanSource::memory(std::sync::Arc::new(bytes));
/// let (groups, _) = sum_batches(vec![source], &[BatchKey::Compression], &ScanOptions::default())?;
/// let (group, sums) = &groups[0];
/// assert_eq!((group.compression, sums.batches, sums.records), (Some("none"), 1, 1));
/// # Ok(()) }
/// ```
///
/// # Errors
/// Corruption, unless [`ScanOptions::on_corrupt`] skips it; files that can't be read.
pub fn sum_batches(
    sources: Vec<ScanSource>,
    keys: &[BatchKey],
    options: &ScanOptions,
) -> Result<(Vec<(BatchGroup, BatchSums)>, ScanStats)> {
    let mut stats = ScanStats::default();
    let groups = sum_watched(sources, keys, options, None, &mut stats)?;
    Ok((groups, stats))
}

/// Like [`sum_batches`], with a callback for progress and cancellation. `stats` is also set if it fails.
pub(crate) fn sum_watched(
    sources: Vec<ScanSource>,
    keys: &[BatchKey],
    options: &ScanOptions,
    callback: Option<ProgressCallback>,
    stats: &mut ScanStats,
) -> Result<Vec<(BatchGroup, BatchSums)>> {
    let mut walk = SourceWalk::new(sources, callback).with_bad_payloads(options);
    let options = ScanOptions {
        include_control: true,
        check_crc: false,
        isolation: Isolation::ReadUncommitted,
        ..options.clone()
    };
    let mut groups = BatchGroups { keys, places: HashMap::new(), found: Vec::new(), last: 0, before: None };
    let mut batches = 0_u64;
    let result = loop {
        let step = walk.step_header(&options, |header, origin| {
            batches = batches.saturating_add(1);
            groups.add(header, origin);
        });
        match step {
            Ok(Step::End) => break Ok(()),
            Ok(Step::Batch | Step::SkippedBytes(_)) => {}
            Err(error) => break Err(error),
        }
    };
    *stats = ScanStats { records: batches, ..walk.stats() };
    result.map(|()| groups.found)
}

/// The groups so far.
struct BatchGroups<'k> {
    keys: &'k [BatchKey],
    places: HashMap<BatchGroup, usize>,
    found: Vec<(BatchGroup, BatchSums)>,
    /// Index of the last batch's group: the next batch is often of the same one.
    last: usize,
    /// The origin and the last offset of the last batch.
    before: Option<(Origin, i64)>,
}

impl BatchGroups<'_> {
    fn add(&mut self, header: &BatchHeader, origin: &Origin) {
        let times = TimestampRange::of(header);
        let group = group_of(self.keys, header, origin, times.last);
        let gap = self.gap_before(header, origin);
        if self.found.get(self.last).is_none_or(|(known, _)| *known != group) {
            let next = self.found.len();
            self.last = *self.places.entry(group.clone()).or_insert(next);
            if self.last == next {
                self.found.push((group, BatchSums::default()));
            }
        }
        if let Some((_, sums)) = self.found.get_mut(self.last) {
            sums.add(header, times, gap);
        }
    }

    /// Offsets between the last batch of the same log and this one.
    fn gap_before(&mut self, header: &BatchHeader, origin: &Origin) -> u64 {
        let Some((before, last_offset)) = &mut self.before else {
            self.before = Some((origin.clone(), header.last_offset()));
            return 0;
        };
        let is_same = is_same_log(before, origin);
        if *before != *origin {
            before.clone_from(origin);
        }
        let expected = std::mem::replace(last_offset, header.last_offset()).saturating_add(1);
        let gap = header.base_offset().filter(|_| is_same).map_or(0, |base| base.saturating_sub(expected));
        u64::try_from(gap).unwrap_or(0)
    }
}

/// The group of a batch, or of those of its records that have a day in common.
pub(super) fn group_of(keys: &[BatchKey], header: &BatchHeader, origin: &Origin, timestamp: Option<i64>) -> BatchGroup {
    let mut group = BatchGroup::default();
    for key in keys {
        match key {
            BatchKey::Topic => group.topic.clone_from(&origin.topic),
            BatchKey::Partition => group.partition = origin.partition,
            BatchKey::Compression => {
                group.compression = Some(header.compression().map_or("unknown", Compression::name));
            }
            BatchKey::ProducerId => group.producer_id = Some(header.producer_id()),
            BatchKey::Magic => group.magic = Some(header.magic()),
            BatchKey::Day => group.day = day_of(timestamp),
        }
    }
    group
}

/// Days from the epoch to a timestamp.
pub(super) fn day_of(timestamp: Option<i64>) -> Option<i64> {
    timestamp.map(|time| time.div_euclid(DAY_MS))
}

/// Whether two files belong to one log. Each file outside a partition directory, which has no topic, is a log of its own.
fn is_same_log(one: &Origin, other: &Origin) -> bool {
    if one.topic.is_some() && other.topic.is_some() {
        return one.topic == other.topic && one.partition == other.partition;
    }
    one.segment.is_some() && one.segment == other.segment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_sizes_have_seven_leading_bits() {
        let pairs = [(0, 0), (1, 1), (127, 127), (128, 128), (129, 128), (255, 254), (256, 256), (1023, 1016)];
        for (size, class) in pairs {
            assert_eq!(size_class(size), class, "{size}");
        }
        assert_eq!(size_class(u64::MAX), 0xfe00_0000_0000_0000);
        let mut counts = SizeCounts::default();
        let mut expected = BTreeMap::new();
        for size in (0..2000).chain([4095, 4096, 1 << 20, 2_147_483_647, u64::MAX]) {
            counts.add(size);
            let count: &mut u64 = expected.entry(size_class(size)).or_default();
            *count = count.saturating_add(1);
        }
        assert_eq!(counts.by_class(), expected);
    }

    #[test]
    fn keys_are_parsed_from_their_names() {
        for (key, name) in KEYS {
            assert_eq!(name.parse::<BatchKey>().unwrap(), key);
            assert_eq!(key.to_string(), name);
        }
        let error = "codec".parse::<BatchKey>().unwrap_err();
        assert!(error.to_string().starts_with("batches can't be grouped by \"codec\"; choose among topic"), "{error}");
    }
}
