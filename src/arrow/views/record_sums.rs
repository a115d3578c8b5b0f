//! [`sum_records`]: sums over records, by groups such as topic and codec.
//!
//! The rows of an [`ArrowScan`](crate::arrow::ArrowScan) have the same figures. Their sums need neither columns nor
//! copies of keys and values.

use std::collections::{BTreeMap, HashMap};

use crate::arrow::interrupt::ProgressCallback;
use crate::arrow::options::ScanOptions;
use crate::arrow::origin::Origin;
use crate::arrow::records::read_records;
use crate::arrow::source::ScanSource;
use crate::arrow::stats::ScanStats;
use crate::arrow::views::sums::{BatchGroup, BatchKey, SizeCounts, day_of, group_of};
use crate::arrow::walk::{BatchContext, SourceWalk, Step};
use crate::compression::Scratch;
use crate::error::Result;
use crate::format::batch::Batch;
use crate::format::header::{BatchHeader, NO_TIMESTAMP};
use crate::format::record::Record;
use crate::num::u64_of;

/// Sums over the records of a group. The size of a record is that of its key, value and headers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordSums {
    /// Number of records.
    pub records: u64,
    /// Bytes of the keys.
    pub key_bytes: u64,
    /// Bytes of the values.
    pub value_bytes: u64,
    /// Bytes of the keys and values of headers.
    pub header_bytes: u64,
    /// Number of headers.
    pub headers: u64,
    /// Records whose key is null.
    pub null_keys: u64,
    /// Records with a key whose value is null.
    pub tombstones: u64,
    /// Bytes of the smallest record.
    pub smallest_record: Option<u64>,
    /// Bytes of the largest record.
    pub largest_record: Option<u64>,
    /// Number of records by class of size: the smallest size with the same 7 leading bits.
    pub sizes: BTreeMap<u64, u64>,
}

impl RecordSums {
    /// Adds a record, and returns its size. Its class of size is added by the caller.
    #[inline]
    fn count(&mut self, record: &Record<'_>) -> Result<u64> {
        let len = |bytes: Option<&[u8]>| u64_of(bytes.map_or(0, <[u8]>::len));
        let (key, value) = (len(record.key()), len(record.value()));
        let (mut header_bytes, mut headers) = (0_u64, 0_u64);
        for header in record.headers() {
            let header = header?;
            headers = headers.saturating_add(1);
            header_bytes = header_bytes.saturating_add(u64_of(header.key().len())).saturating_add(len(header.value()));
        }
        let size = key.saturating_add(value).saturating_add(header_bytes);
        self.add_sums(&Self {
            records: 1,
            key_bytes: key,
            value_bytes: value,
            header_bytes,
            headers,
            null_keys: u64::from(record.key().is_none()),
            tombstones: u64::from(record.key().is_some() && record.value().is_none()),
            smallest_record: Some(size),
            largest_record: Some(size),
            sizes: BTreeMap::new(),
        });
        Ok(size)
    }

    /// Adds everything except the classes of sizes.
    #[inline]
    fn add_sums(&mut self, other: &Self) {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.records, other.records);
        add(&mut self.key_bytes, other.key_bytes);
        add(&mut self.value_bytes, other.value_bytes);
        add(&mut self.header_bytes, other.header_bytes);
        add(&mut self.headers, other.headers);
        add(&mut self.null_keys, other.null_keys);
        add(&mut self.tombstones, other.tombstones);
        self.smallest_record = [self.smallest_record, other.smallest_record].into_iter().flatten().min();
        self.largest_record = self.largest_record.max(other.largest_record);
    }
}

/// Sums up the records of some sources. Control records are included if [`ScanOptions::include_control`] is set.
///
/// The day of a record is that of its own timestamp; other keys are those of its batch. The records of a corrupt batch
/// are not counted. The groups are in the order of their first records.
///
/// ```
/// # fn main() -> kbat::Result<()> {
/// use kbat::arrow::{BatchKey, ScanOptions, ScanSource, sum_records};
/// # let mut builder = kbat::BatchBuilder::new();
/// # builder.append(1_700_000_000_000, Some(b"key"), Some(b"value"))?;
/// # let mut bytes = Vec::new();
/// # builder.finish_into(&mut bytes)?;
/// let source = ScanSource::memory(std::sync::Arc::new(bytes));
/// let (groups, _) = sum_records(vec![source], &[BatchKey::Compression], &ScanOptions::default())?;
/// let (group, sums) = &groups[0];
/// assert_eq!((group.compression, sums.records, sums.key_bytes, sums.value_bytes), (Some("none"), 1, 3, 5));
/// # Ok(()) }
/// ```
///
/// # Errors
/// Corruption, unless [`ScanOptions::on_corrupt`] skips it; files that can't be read.
pub fn sum_records(
    sources: Vec<ScanSource>,
    keys: &[BatchKey],
    options: &ScanOptions,
) -> Result<(Vec<(BatchGroup, RecordSums)>, ScanStats)> {
    let mut stats = ScanStats::default();
    let groups = sum_records_watched(sources, keys, options, None, &mut stats)?;
    Ok((groups, stats))
}

/// Like [`sum_records`], with a callback for progress and cancellation. `stats` is also set if it fails.
pub(crate) fn sum_records_watched(
    sources: Vec<ScanSource>,
    keys: &[BatchKey],
    options: &ScanOptions,
    callback: Option<ProgressCallback>,
    stats: &mut ScanStats,
) -> Result<Vec<(BatchGroup, RecordSums)>> {
    let mut walk = SourceWalk::new(sources, callback);
    let mut parts = Parts { by_day: keys.contains(&BatchKey::Day), ..Parts::default() };
    let mut groups = RecordGroups { keys, places: HashMap::new(), found: Vec::new(), last: 0, records: 0 };
    let mut scratch = Scratch::new();
    let result = loop {
        let step = walk.step(options, |batch, context| {
            parts.read(batch, context, options, &mut scratch)?;
            groups.add(batch.header(), context.origin, &parts);
            Ok(())
        });
        match step {
            Ok(Step::End) => break Ok(()),
            Ok(Step::Batch | Step::SkippedBytes(_)) => {}
            Err(error) => break Err(error),
        }
    };
    *stats = ScanStats { records: groups.records, ..walk.stats() };
    result.map(|()| groups.finish())
}

/// The records of one batch, which are counted only if all of them can be read.
#[derive(Default)]
struct Parts {
    by_day: bool,
    /// Adjacent records with the same day, or all of them.
    found: Vec<TimedSums>,
    /// The sizes of all records.
    sizes: Vec<u64>,
}

struct TimedSums {
    timestamp: Option<i64>,
    sums: RecordSums,
}

impl Parts {
    fn read(
        &mut self,
        batch: &Batch<'_>,
        context: &BatchContext<'_>,
        options: &ScanOptions,
        scratch: &mut Scratch,
    ) -> Result<()> {
        self.found.clear();
        self.sizes.clear();
        read_records(batch, context, options, scratch, |records, _| {
            records.iter().try_for_each(|one| self.count(one))
        })?;
        Ok(())
    }

    /// Counts a record among those of its day.
    fn count(&mut self, record: &Record<'_>) -> Result<()> {
        let timestamp = Some(record.timestamp()).filter(|time| self.by_day && *time != NO_TIMESTAMP);
        if self.found.last().is_none_or(|last| day_of(last.timestamp) != day_of(timestamp)) {
            self.found.push(TimedSums { timestamp, sums: RecordSums::default() });
        }
        if let Some(last) = self.found.last_mut() {
            self.sizes.push(last.sums.count(record)?);
        }
        Ok(())
    }
}

/// The groups so far.
struct RecordGroups<'k> {
    keys: &'k [BatchKey],
    places: HashMap<BatchGroup, usize>,
    found: Vec<(BatchGroup, RecordSums, SizeCounts)>,
    /// Index of the last group: the next records are often of the same one.
    last: usize,
    records: u64,
}

impl RecordGroups<'_> {
    fn add(&mut self, header: &BatchHeader, origin: &Origin, parts: &Parts) {
        let mut sizes = parts.sizes.iter();
        for part in &parts.found {
            let group = group_of(self.keys, header, origin, part.timestamp);
            if self.found.get(self.last).is_none_or(|(known, ..)| *known != group) {
                let next = self.found.len();
                self.last = *self.places.entry(group.clone()).or_insert(next);
                if self.last == next {
                    self.found.push((group, RecordSums::default(), SizeCounts::default()));
                }
            }
            if let Some((_, sums, counts)) = self.found.get_mut(self.last) {
                sums.add_sums(&part.sums);
                let count = usize::try_from(part.sums.records).unwrap_or(usize::MAX);
                sizes.by_ref().take(count).for_each(|size| counts.add(*size));
            }
            self.records = self.records.saturating_add(part.sums.records);
        }
    }

    fn finish(self) -> Vec<(BatchGroup, RecordSums)> {
        let finished = |(group, sums, counts): (BatchGroup, RecordSums, SizeCounts)| {
            (group, RecordSums { sizes: counts.by_class(), ..sums })
        };
        self.found.into_iter().map(finished).collect()
    }
}
