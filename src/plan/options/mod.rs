//! [`ReadOptions`]: the options of a read, parsed from names and texts.
//!
//! Options of Spark's own Kafka source have the same meaning here. Options that only concern a broker's connection are
//! ignored, with a warning. Any other name is refused: wrong rows are worse than an error.

mod rows;
mod table;
#[cfg(test)]
mod tests;

use crate::arrow::{Isolation, OnCorrupt};
use crate::error::{Error, Result};
use crate::limits::Limits;
use crate::plan::bounds::{Bound, check_batch_bounds};
use crate::plan::columns::{PlanColumn, PlanView, column_named, default_columns};
use crate::plan::discover::Replicas;
use crate::plan::interval::Interval;
use crate::plan::paths::absolute;
use crate::plan::topics::Subscription;

pub use rows::OptionRow;
pub(crate) use rows::{OptionParser, OptionTable, narrowed, row, set};
pub(crate) use table::LIMIT_OPTIONS;
pub use table::option_rows;

/// Names and texts, as the user wrote them.
pub type Pairs = Vec<(String, String)>;

/// A warning about all options without effect: those of brokers, and those of the other kind of job.
pub(crate) fn warning_of_ignored(of_brokers: &[String], of_others: &[String], where_not: &str) -> Option<String> {
    let kinds = [(of_brokers, ", because there is no broker"), (of_others, where_not)];
    let named = kinds.iter().filter(|(names, _)| !names.is_empty());
    let warnings = named.map(|(names, why)| format!("kbat: these options have no effect{why}: {}", names.join(", ")));
    let warnings = warnings.collect::<Vec<_>>().join("; ");
    (!warnings.is_empty()).then_some(warnings)
}

/// What to do if a partition has no record since its starting time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimestampStrategy {
    /// Raise an error.
    Error,
    /// Start at the end of the log.
    Latest,
}

/// The options of one read.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "the switches are independent of each other")]
pub struct ReadOptions {
    pub(crate) paths: Vec<String>,
    pub(crate) storage: Pairs,
    pub(crate) session_storage: Pairs,
    pub(crate) encryption_keys: Pairs,
    pub(crate) remote: Option<String>,
    pub(crate) remote_log_metadata: Option<String>,
    pub(crate) subscription: Subscription,
    pub(crate) starting_offsets: Option<Bound>,
    pub(crate) ending_offsets: Option<Bound>,
    pub(crate) starting_timestamp: Option<i64>,
    pub(crate) ending_timestamp: Option<i64>,
    pub(crate) starting_timestamps: Option<Bound>,
    pub(crate) ending_timestamps: Option<Bound>,
    pub(crate) timestamp_strategy: Option<TimestampStrategy>,
    pub(crate) fail_on_data_loss: bool,
    pub(crate) replicas: Replicas,
    pub(crate) isolation: Isolation,
    pub(crate) min_partitions: Option<u64>,
    pub(crate) max_records_per_partition: Option<i64>,
    pub(crate) max_partition_bytes: u64,
    pub(crate) max_offsets_per_trigger: Option<u64>,
    pub(crate) min_offsets_per_trigger: Option<u64>,
    pub(crate) max_trigger_delay: u64,
    pub(crate) view: PlanView,
    pub(crate) columns: Vec<String>,
    pub(crate) include_headers: bool,
    pub(crate) include_control: bool,
    pub(crate) check_crc: bool,
    pub(crate) on_corrupt: OnCorrupt,
    pub(crate) leave_page_cache: bool,
    pub(crate) metrics_path: Option<String>,
    pub(crate) topic: Option<String>,
    pub(crate) partition: Option<i32>,
    pub(crate) limits: Limits,
    /// Options that have no effect because they concern a broker.
    pub(crate) ignored: Vec<String>,
    /// Options of writes, which a view or the session may have, too.
    pub(crate) of_writes: Vec<String>,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            paths: Vec::new(),
            storage: Vec::new(),
            session_storage: Vec::new(),
            encryption_keys: Vec::new(),
            remote: None,
            remote_log_metadata: None,
            subscription: Subscription::All,
            starting_offsets: None,
            ending_offsets: None,
            starting_timestamp: None,
            ending_timestamp: None,
            starting_timestamps: None,
            ending_timestamps: None,
            timestamp_strategy: None,
            fail_on_data_loss: true,
            replicas: Replicas::Error,
            isolation: Isolation::ReadUncommitted,
            min_partitions: None,
            max_records_per_partition: None,
            max_partition_bytes: 384 << 20,
            max_offsets_per_trigger: None,
            min_offsets_per_trigger: None,
            max_trigger_delay: 15 * 60_000,
            view: PlanView::Records,
            columns: Vec::new(),
            include_headers: false,
            include_control: false,
            check_crc: true,
            on_corrupt: OnCorrupt::Fail,
            leave_page_cache: false,
            metrics_path: None,
            topic: None,
            partition: None,
            limits: Limits::default(),
            ignored: Vec::new(),
            of_writes: Vec::new(),
        }
    }
}

impl ReadOptions {
    /// Parses options, whatever the case of their names. `session_storage` are the options of the store that apply to
    /// `s3://` URLs if the read has none.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) that names the option and its possible values,
    /// or the option to use instead.
    pub fn parse(given: &[(String, String)], session_storage: &[(String, String)]) -> Result<Self> {
        let mut options = table::parse(given)?;
        options.session_storage = session_storage.to_vec();
        options.check_columns()?;
        options.check_view()?;
        Ok(options)
    }

    /// Where to start, by precedence; `None` if no option sets it.
    pub(crate) fn start(&self) -> Option<Bound> {
        let time = self.starting_timestamp.map(Bound::Timestamp);
        time.or_else(|| self.starting_timestamps.clone()).or_else(|| self.starting_offsets.clone())
    }

    /// Where to end, by precedence; `None` if no option sets it.
    pub(crate) fn end(&self) -> Option<Bound> {
        let time = self.ending_timestamp.map(Bound::Timestamp);
        time.or_else(|| self.ending_timestamps.clone()).or_else(|| self.ending_offsets.clone())
    }

    /// The timestamps of the rows of a batch read, in milliseconds since the epoch.
    pub(crate) fn times(&self) -> Interval {
        Interval::new(self.starting_timestamp, self.ending_timestamp)
    }

    /// What a row describes.
    #[must_use]
    pub fn view(&self) -> PlanView {
        self.view
    }

    /// Whether batch headers show which records are rows, if no bound excludes some of a batch.
    #[must_use]
    pub fn has_totals(&self) -> bool {
        self.view == PlanView::Records && self.fails() && !self.is_committed()
    }

    /// How corrupt bytes are handled.
    #[must_use]
    pub fn on_corrupt(&self) -> OnCorrupt {
        self.on_corrupt
    }

    /// Which records of transactions are rows.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.isolation
    }

    /// Whether checksums are verified.
    #[must_use]
    pub fn check_crc(&self) -> bool {
        self.check_crc
    }

    /// Whether control records are rows.
    #[must_use]
    pub fn include_control(&self) -> bool {
        self.include_control
    }

    /// Bounds on untrusted input.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Names of options that have no effect because they concern a broker.
    #[must_use]
    pub fn ignored(&self) -> &[String] {
        &self.ignored
    }

    /// Whether the read itself names options of a store.
    #[must_use]
    pub fn has_storage(&self) -> bool {
        !self.storage.is_empty()
    }

    /// The largest and the smallest number of offsets in a micro-batch.
    #[must_use]
    pub fn offsets_per_trigger(&self) -> (Option<u64>, Option<u64>) {
        (self.max_offsets_per_trigger, self.min_offsets_per_trigger)
    }

    /// The paths to read: URLs, and absolute paths of files.
    ///
    /// # Errors
    /// No path, or one that only this process could read.
    pub fn absolute_paths(&self) -> Result<Vec<String>> {
        if self.paths.is_empty() {
            return Err(Error::argument(
                "kbat: no path; write .load(\"/path/to/log.dir\"): a log directory, a partition directory or a .log \
                 file; in SQL, CREATE TEMPORARY VIEW name USING kbat OPTIONS (path '/path/to/log.dir'), because a table \
                 does not pass its path",
            ));
        }
        self.paths.iter().map(|path| absolute(path)).collect()
    }

    /// Where the earlier segments of the paths are, and the topic with their states: URLs, and absolute paths.
    ///
    /// # Errors
    /// A location that only this process could read.
    pub(crate) fn remote_paths(&self) -> Result<(Option<String>, Option<String>)> {
        let absolute = |path: &Option<String>| path.as_deref().map(absolute).transpose();
        Ok((absolute(&self.remote)?, absolute(&self.remote_log_metadata)?))
    }

    pub(crate) fn fails(&self) -> bool {
        self.on_corrupt == OnCorrupt::Fail
    }

    pub(crate) fn is_committed(&self) -> bool {
        self.isolation == Isolation::ReadCommitted
    }

    /// The columns of a read for which the user sets no schema: the option `columns`, or the default columns.
    ///
    /// # Errors
    /// An unknown column.
    pub fn column_names(&self) -> Result<Vec<String>> {
        let mut names = self.columns.clone();
        if names.is_empty() {
            names = default_columns(self.view).iter().map(PlanColumn::name).collect();
        }
        let there = names.iter().map(|name| column_named(name, self.view)).collect::<Result<Vec<_>>>()?;
        for (is_added, name) in [(self.include_headers, "headers"), (self.on_corrupt == OnCorrupt::Report, "error")] {
            if is_added && !there.iter().any(|column| column.field == name) {
                names.push(name.to_owned());
            }
        }
        Ok(names)
    }

    /// The columns of [`column_names`](Self::column_names), each with its name in the schema.
    ///
    /// # Errors
    /// An unknown column.
    pub fn schema(&self) -> Result<Vec<(String, &'static PlanColumn)>> {
        let named = |name: String| column_named(&name, self.view).map(|column| (name, column));
        self.column_names()?.into_iter().map(named).collect()
    }

    /// Checks the rules of a batch read.
    ///
    /// # Errors
    /// Bounds that exclude each other.
    pub fn check_batch(&self) -> Result<()> {
        check_batch_bounds(self.start().as_ref(), self.end().as_ref())
    }

    /// Checks the rules of a stream.
    ///
    /// # Errors
    /// An ending bound, limits that exclude each other, or a view that changes while segments grow.
    pub fn check_stream(&self) -> Result<()> {
        if let Some(end) = self.end() {
            let name = match end {
                Bound::Timestamp(_) | Bound::Timestamps(_) => "an ending timestamp",
                _ => "endingOffsets",
            };
            return Err(Error::argument(format!(
                "kbat: {name} has no effect on a stream, which has no end; remove it, or use spark.read"
            )));
        }
        if let (Some(least), Some(most)) = (self.min_offsets_per_trigger, self.max_offsets_per_trigger)
            && least > most
        {
            return Err(Error::argument(format!(
                "kbat: minOffsetsPerTrigger={least} is higher than maxOffsetsPerTrigger={most}"
            )));
        }
        if self.view == PlanView::Segments {
            return Err(Error::argument(
                "kbat: view=segments can't be streamed, because a segment's row changes while the segment grows; read \
                 it as a batch, or stream view=batches",
            ));
        }
        Ok(())
    }

    /// A warning about the ignored options, for all of them.
    #[must_use]
    pub fn warning(&self) -> Option<String> {
        warning_of_ignored(&self.ignored, &self.of_writes, " on a read, only on writes")
    }

    /// Refuses options about records for the other views.
    fn check_view(&self) -> Result<()> {
        if self.view.has_records() || !(self.is_committed() || self.include_control) {
            return Ok(());
        }
        let name = if self.include_control { "includeControl" } else { "isolationLevel=read_committed" };
        Err(Error::argument(format!(
            "kbat: {name} applies to records, and view={} shows everything stored: remove one of them",
            self.view.name()
        )))
    }

    fn check_columns(&self) -> Result<()> {
        let mut seen = Vec::new();
        for name in &self.columns {
            let column = column_named(name, self.view).map_err(|error| {
                let reason = error.to_string();
                let reason = reason.strip_prefix("kbat: ").unwrap_or(&reason);
                Error::argument(format!("kbat: option columns='{name}': {reason}"))
            })?;
            if seen.contains(&column.field) {
                let given = self.columns.join(",");
                let message = format!("kbat: option columns='{given}': it names {} twice", column.name());
                return Err(Error::argument(message));
            }
            seen.push(column.field);
        }
        if seen.contains(&"error") && self.on_corrupt != OnCorrupt::Report {
            return Err(Error::argument("kbat: option columns: the column error requires onCorrupt=report"));
        }
        if self.include_headers && !self.view.has_records() {
            return Err(Error::argument(format!(
                "kbat: option includeHeaders: view={} has no record headers; remove it",
                self.view.name()
            )));
        }
        Ok(())
    }
}
