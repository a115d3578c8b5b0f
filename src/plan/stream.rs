//! [`Stream`]: divides growing logs into micro-batches.
//!
//! ```text
//! initial_offset ──► startingOffsets, resolved                {"orders": {"0": 23, "1": 0}}
//! latest_offset  ──► the ends of all logs, within the limits   only complete batches; read_committed: only stable offsets
//! plan           ──► from start to end of a micro-batch        new partitions start at their first record
//! ```
//!
//! Offsets are the next ones to read, in Kafka's JSON form. A micro-batch is defined by offsets only, so that it has the
//! same rows if it runs again after a restart. Deleted segments and partitions are lost data: see `failOnDataLoss`.

use std::collections::{BTreeSet, HashMap};
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::plan::advice::advised;
use crate::plan::bounds::{Bound, ByPartition, check_names_all, offsets_json, offsets_of_json};
use crate::plan::interval::Interval;
use crate::plan::logs::{Log, list_logs, search_each};
use crate::plan::ranges::{LogRange, check_no_copies, end_offset, report_data_loss, stable_end_of, starting_offset};
use crate::plan::tasks::{Read, ReadTask};
use crate::plan::topics::PartitionName;
use crate::plural::some_of;

/// How much one micro-batch may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadLimit {
    /// Everything that is there.
    AllAvailable,
    /// What the options allow.
    OfOptions,
}

/// Plans the micro-batches of a stream. It keeps the last known ends.
pub struct Stream {
    read: Read,
    latest: ByPartition,
    last: Option<ByPartition>,
    target: Option<ByPartition>,
    last_trigger: Option<Instant>,
    is_new: bool,
    /// Last stable offsets that warnings have named, because corruption may hide the end of a transaction.
    stuck: ByPartition,
    /// Partitions that no longer existed when the ends were determined last, which a warning has named.
    gone: BTreeSet<PartitionName>,
    warnings: Vec<String>,
}

/// How often logs are listed again if one vanishes, and how long to wait before: a broker renames the directories of a
/// deleted topic one after the other.
const LISTINGS: usize = 5;
const LISTING_PAUSE: Duration = Duration::from_millis(20);

impl Stream {
    /// A stream of the rows of a read, whatever their timestamps.
    ///
    /// # Errors
    /// Options that have no effect on streams.
    pub fn new(read: Read) -> Result<Self> {
        read.options.check_stream()?;
        let warnings = read.options.warning().into_iter().collect();
        Ok(Self {
            read,
            latest: ByPartition::new(),
            last: None,
            target: None,
            last_trigger: None,
            is_new: false,
            stuck: ByPartition::new(),
            gone: BTreeSet::new(),
            warnings,
        })
    }

    /// Warnings since the last call.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// The offsets at which a new query starts, as JSON.
    ///
    /// # Errors
    /// Those of listing, and offsets that do not exist.
    pub fn initial_offset(&mut self) -> Result<String> {
        self.while_logs_vanish(Self::find_initial).map_err(|error| advised(error, &self.read.options))
    }

    fn find_initial(&mut self) -> Result<String> {
        let logs = self.logs(true)?;
        let bound = self.read.options.start().unwrap_or(Bound::Latest);
        self.is_new = true;
        self.warn_of_no_rows();
        check_names_all("starting", &bound, &logs.iter().map(|log| &log.partition).collect::<Vec<_>>())?;
        let options = &self.read.options;
        let found = search_each(&logs, |log| {
            let mut warnings = Vec::new();
            let start = starting_offset(log, &bound, options, &mut warnings)?;
            Ok((log.partition.clone(), start, warnings))
        })?;
        let mut starts = ByPartition::new();
        for (partition, start, warnings) in found {
            starts.insert(partition, start);
            self.warnings.extend(warnings);
        }
        // records may have come since the end of the query was fixed
        for (partition, end) in self.target.iter_mut().flatten() {
            *end = starts.get(partition).map_or(*end, |start| *start.max(end));
        }
        let json = offsets_json(&starts);
        self.last = Some(starts);
        Ok(json)
    }

    /// The end of the next micro-batch, which is its start if there is nothing to read yet. Without `start`, it begins
    /// where the last one ended.
    ///
    /// # Errors
    /// Those of listing, and lost data.
    pub fn latest_offset(&mut self, start: Option<&str>, limit: ReadLimit) -> Result<String> {
        let start = start.map(offsets_of_json).transpose()?.or_else(|| self.last.clone());
        let from = start.clone().unwrap_or_default();
        let latest = self.while_logs_vanish(|stream| stream.find_latest(&from));
        self.latest = latest.map_err(|error| advised(error, &self.read.options))?;
        match start {
            Some(start) if limit == ReadLimit::OfOptions => Ok(offsets_json(&self.within_limits(&start)?)),
            _ => Ok(offsets_json(&self.latest)),
        }
    }

    /// The last known ends of all logs, as JSON, for the progress of the query.
    #[must_use]
    pub fn report_latest_offset(&self) -> Option<String> {
        (!self.latest.is_empty()).then(|| offsets_json(&self.latest))
    }

    /// Fixes the end of the query: the ends of all logs now.
    ///
    /// # Errors
    /// Those of listing.
    pub fn prepare_for_available_now(&mut self) -> Result<()> {
        let target = self.while_logs_vanish(|stream| stream.logs(false).and_then(|logs| stream.ends(&logs)));
        self.target = Some(target.map_err(|error| advised(error, &self.read.options))?);
        self.warn_of_no_rows();
        Ok(())
    }

    /// Warns once if a new query that ends at the present ends of all logs starts there too.
    fn warn_of_no_rows(&mut self) {
        if self.is_new && self.target.is_some() && self.read.options.start().is_none() {
            self.is_new = false;
            self.warnings.push(
                "kbat: a stream starts at the latest offsets unless startingOffsets is set, so this new query with \
                 trigger(availableNow=True) reads no existing record; set startingOffsets=earliest to read them"
                    .to_owned(),
            );
        }
    }

    /// The tasks of a micro-batch.
    ///
    /// # Errors
    /// Those of listing, lost data, and corruption that hides a bound.
    pub fn plan(&mut self, start: &str, end: &str) -> Result<Vec<ReadTask>> {
        self.while_logs_vanish(|stream| stream.find_tasks(start, end))
            .map_err(|error| advised(error, &self.read.options))
    }

    fn find_tasks(&mut self, start: &str, end: &str) -> Result<Vec<ReadTask>> {
        let (starts, ends) = (offsets_of_json(start)?, offsets_of_json(end)?);
        let mut logs = self.logs(false)?;
        logs.retain(|log| ends.contains_key(&log.partition));
        let options = &self.read.options;
        let found = search_each(&logs, |log| Ok((log, log.start_offset()?, end_offset(log, options)?)))?;
        let found: HashMap<_, _> = found.into_iter().map(|found| (&found.0.partition, found)).collect();
        let mut ranges = Vec::new();
        for (partition, end) in &ends {
            let found = found.get(partition).copied();
            ranges.extend(self.range(partition, found, starts.get(partition).copied(), *end)?);
        }
        self.last = Some(ends);
        self.read.plan_ranges(&ranges, None, Interval::EVERYTHING, true)
    }

    /// Lists the logs again if one vanished after it was listed: the next listing shows that it is gone.
    fn while_logs_vanish<R>(&mut self, work: impl Fn(&mut Self) -> Result<R>) -> Result<R> {
        for _ in 0..LISTINGS {
            match work(self) {
                Err(error) if error.is_not_found() => std::thread::sleep(LISTING_PAUSE),
                done => return done,
            }
        }
        work(self)
    }

    fn logs(&mut self, is_complete: bool) -> Result<Vec<Log>> {
        let logs = list_logs(&self.read.options, is_complete, true, &mut self.warnings)?;
        for log in &logs {
            if !log.is_named() || log.partition.topic.is_none() || log.partition.partition.is_none() {
                let path = log.segments.first().map(|one| one.path.path().display().to_string()).unwrap_or_default();
                return Err(Error::argument(format!(
                    "kbat: {path} is not named <topic>-<partition>/<base offset>.log, so a stream can't store its \
                     offset; read it as a batch, or rename it"
                )));
            }
        }
        check_no_copies(&logs)?;
        Ok(logs)
    }

    fn ends(&mut self, logs: &[Log]) -> Result<ByPartition> {
        let options = &self.read.options;
        if !options.is_committed() {
            let ends = search_each(logs, |log| Ok((log.partition.clone(), end_offset(log, options)?)))?;
            return Ok(ends.into_iter().collect());
        }
        let ends = search_each(logs, |log| Ok((log, stable_end_of(log, options)?)))?;
        for (log, end) in &ends {
            if let Some(at) = end.damaged_at
                && self.stuck.insert(log.partition.clone(), end.offset) != Some(end.offset)
            {
                self.warnings.push(format!(
                    "kbat: this query reads {0} up to offset {1}, where a transaction begins whose end may be in the \
                     corrupt bytes at offset {at}; it continues when the producer ends another transaction; \
                     isolationLevel=read_uncommitted reads all records",
                    log.partition, end.offset
                ));
            }
        }
        Ok(ends.into_iter().map(|(log, end)| (log.partition.clone(), end.offset)).collect())
    }

    /// The ends of all logs; a log that no longer exists keeps its offset, in case it returns.
    fn find_latest(&mut self, start: &ByPartition) -> Result<ByPartition> {
        let logs = self.logs(false)?;
        let mut ends = match &self.target {
            Some(target) => target.clone(),
            None => self.ends(&logs)?,
        };
        let mut known: BTreeSet<&PartitionName> = logs.iter().map(|log| &log.partition).collect();
        let read = self.target.iter().flatten().filter(|(partition, end)| start.get(*partition) >= Some(*end));
        known.extend(read.map(|(partition, _)| partition));
        let is_listed = |partition: &&PartitionName| logs.iter().any(|log| log.partition == **partition);
        let back: Vec<&PartitionName> =
            self.gone.iter().filter(|one| start.contains_key(*one)).filter(is_listed).collect();
        if !back.is_empty() {
            self.warnings.push(format!(
                "kbat: {} can be read again; the query continues at the offset that it had reached there, also if the \
                 topic was created again, so that its first records are not read",
                some_of(&back)
            ));
        }
        let gone: Vec<&PartitionName> = start.keys().filter(|partition| !known.contains(partition)).collect();
        let options = &self.read.options;
        let is_new = gone.iter().any(|partition| !self.gone.contains(*partition));
        self.gone = gone.iter().copied().cloned().collect();
        if is_new || !gone.is_empty() && options.fail_on_data_loss {
            let verb = if gone.len() == 1 { "exists, or is" } else { "exist, or are" };
            let what = format!("{} no longer {verb} no longer selected; records may be lost", some_of(&gone));
            report_data_loss(&what, options, &mut self.warnings)?;
        }
        for (partition, offset) in start {
            let Some(end) = ends.get_mut(partition).filter(|end| **end < *offset) else { continue };
            let log = logs.iter().find(|log| log.partition == *partition);
            let is_after_stable =
                options.is_committed() && log.map(|log| end_offset(log, options)).transpose()? >= Some(*offset);
            if is_after_stable {
                // the query started inside a transaction that is open, or after its first record
                *end = *offset;
            } else {
                let what = format!(
                    "the end of {partition} went from {offset} back to {end}, where the query continues; records may be \
                     lost, and those before {end} may be new ones, which only a query with a new checkpoint reads"
                );
                report_data_loss(&what, options, &mut self.warnings)?;
            }
        }
        for partition in gone {
            ends.extend(start.get(partition).map(|offset| (partition.clone(), *offset)));
        }
        Ok(ends)
    }

    fn within_limits(&mut self, start: &ByPartition) -> Result<ByPartition> {
        let mut firsts = start.clone();
        if self.latest.keys().any(|partition| !start.contains_key(partition)) {
            for log in self.logs(false)? {
                let first = log.start_offset()?;
                firsts.entry(log.partition).or_insert(first);
            }
        }
        let count = |(partition, end): (&PartitionName, &i64)| {
            let first = firsts.get(partition).unwrap_or(end);
            (partition.clone(), end.saturating_sub(*first).max(0).unsigned_abs())
        };
        let counts: Vec<(PartitionName, u64)> = self.latest.iter().map(count).collect();
        let total = counts.iter().fold(0_u64, |total, (_, count)| total.saturating_add(*count));
        let (least, most) = (self.read.options.min_offsets_per_trigger, self.read.options.max_offsets_per_trigger);
        if let Some(least) = least
            && self.target.is_none()
            && self.is_too_early(total, least)
        {
            return Ok(start.clone());
        }
        Ok(most.map_or_else(|| self.latest.clone(), |most| share(most, &self.latest, &counts)))
    }

    fn is_too_early(&mut self, count: u64, least: u64) -> bool {
        let delay = Duration::from_millis(self.read.options.max_trigger_delay);
        if count < least && self.last_trigger.is_some_and(|last| last.elapsed() < delay) {
            return true;
        }
        self.last_trigger = Some(Instant::now());
        false
    }

    /// The range to read of a log, whose first offset and end are beside it; `None` for nothing. Reports lost data first.
    fn range<'l>(
        &mut self,
        partition: &PartitionName,
        found: Option<(&'l Log, i64, i64)>,
        start: Option<i64>,
        end: i64,
    ) -> Result<Option<LogRange<'l>>> {
        let options = &self.read.options;
        let mut lost = |what: String| report_data_loss(&what, options, &mut self.warnings);
        let Some((log, first, log_end)) = found else {
            if start.is_none_or(|start| start < end) {
                lost(format!("{partition} no longer exists, nor do its offsets before {end}"))?;
            }
            return Ok(None);
        };
        match start {
            Some(start) if start > end => lost(format!(
                "a micro-batch of {partition} starts at offset {start}, and ends at {end}: the log became shorter, or \
                 the query ran before with other startingOffsets, to which they must be set"
            ))?,
            None if first > 0 => lost(format!("{partition} is new and starts with offset {first}, not 0"))?,
            Some(start) if start < first.min(end) => {
                let before = first.min(end).saturating_sub(1);
                lost(format!("offsets {start} to {before} of {partition} no longer exist"))?;
            }
            _ => {}
        }
        if end > log_end {
            lost(format!("{partition} ends before offset {end}"))?;
        }
        let start = start.map_or(first, |start| start.max(first));
        Ok((start < end).then_some(LogRange { log, start: Some(start), end: Some(end), continues: true }))
    }
}

/// Distributes `most` offsets over partitions as Spark's Kafka source does: in proportion to `counts`, at least one.
///
/// A partition without offsets ends at its latest offset, which is before its start if the log became shorter.
fn share(most: u64, latest: &ByPartition, counts: &[(PartitionName, u64)]) -> ByPartition {
    let total = counts.iter().fold(0_u128, |total, (_, count)| total.saturating_add(u128::from(*count)));
    let end = |(partition, count): &(PartitionName, u64)| {
        let part = u128::from(most).saturating_mul(u128::from(*count));
        // rounded down, but at least one
        let part = part.checked_div(total).unwrap_or(0).max(u128::from(*count > 0));
        let taken = u64::try_from(part).unwrap_or(u64::MAX).min(*count);
        let end = latest.get(partition).copied().unwrap_or(0);
        (partition.clone(), end.saturating_sub_unsigned(*count).saturating_add_unsigned(taken))
    };
    counts.iter().map(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_shared_in_proportion() {
        let names: Vec<PartitionName> = (0..3).map(|number| PartitionName::new("t", number)).collect();
        let latest: ByPartition = names.iter().cloned().zip([100, 1_000, 5]).collect();
        let counts: Vec<(PartitionName, u64)> = names.iter().cloned().zip([90, 900, 1]).collect();
        let ends: Vec<i64> = share(100, &latest, &counts).into_values().collect();
        assert_eq!(ends, [10 + 9, 100 + 90, 5]);
    }

    /// The ends of partitions with these latest offsets and counts of new offsets.
    fn shared(most: u64, partitions: &[(i64, u64)]) -> Vec<i64> {
        let named = |number: usize| PartitionName::new(&format!("t{number}"), 0);
        let latest: ByPartition =
            partitions.iter().enumerate().map(|(number, (latest, _))| (named(number), *latest)).collect();
        let counts: Vec<_> =
            partitions.iter().enumerate().map(|(number, (_, count))| (named(number), *count)).collect();
        share(most, &latest, &counts).into_values().collect()
    }

    #[test]
    fn offsets_are_never_shared_past_the_end() {
        assert_eq!(shared(10, &[(8, 3), (7, 0), (1, 1)]), [8, 7, 1]);
        assert_eq!(shared(1, &[(5, 5), (5, 5)]), [1, 1]);
        assert_eq!(shared(1, &[(4, 0)]), [4]);
        let (end, count) = ((1 << 62) + 1, (1 << 62) + 1);
        assert_eq!(shared(1 << 62, &[(end, count), (2, 1)]), [(1 << 62) - 1, 2]);
    }
}
