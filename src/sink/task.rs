//! [`TaskWriter`]: groups the rows of a task by partition, and writes the log of each partition from offset 0 on.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use arrow_array::{Array, ArrayRef, RecordBatch, UInt32Array};
use arrow_schema::ArrowError;
use arrow_select::take::take_record_batch;

use crate::arrow::{EncodedBatch, EncodedBatches};
use crate::error::{Error, ErrorKind, Result};
use crate::log::{LogWriter, LogWriterOptions, OffsetPolicy};
use crate::num::u64_of;
use crate::partitioner::partition_for_key;
use crate::plan::paths::text_of;
use crate::plural::count_of;
use crate::sink::files::{at, step};
use crate::sink::job::{ExistingTopic, WriteJob};
use crate::sink::open_logs::OpenLogs;
use crate::sink::options::{WriteOptions, check_topic};
use crate::sink::rows::RowColumns;
use crate::sink::written::{Fragment, WriteCounts, Written};
use crate::store::TopicPartition;

/// Bytes of a partition's records that are encoded together, about.
const RUN_LEN: usize = 1 << 20;
/// Bytes of records without a key that go to one partition before the next partition's turn. Much less would result in
/// small batches.
const TURN_LEN: usize = RUN_LEN;
/// Bytes of a record besides its key and value, about, so that records without a value count too.
const RECORD_OVERHEAD: usize = 16;
/// Bytes of records that wait in all partitions of a task, at most.
const MAX_WAITING_LEN: usize = 256 << 20;
/// The columns of a record.
const RECORD_COLUMNS: [&str; 4] = ["key", "value", "headers", "timestamp"];

/// Writes the rows of one task of a [`WriteJob`] to the task's own directory.
///
/// Dropping it leaves the files to the job, which removes them.
pub struct TaskWriter {
    options: WriteOptions,
    existing: BTreeMap<String, ExistingTopic>,
    /// A topic that does not exist yet.
    missing: ExistingTopic,
    directory: PathBuf,
    number: u32,
    /// Chooses the partition of rows without a key.
    turn: Turn,
    /// Timestamp of rows without one, in milliseconds since the epoch.
    now: i64,
    partitions: Vec<PartitionRows>,
    /// Numbers of partitions, by topic and partition.
    numbers: HashMap<String, HashMap<i32, usize>>,
    logs: OpenLogs,
    counted_topics: BTreeSet<String>,
    waiting_len: usize,
    max_waiting_len: usize,
    counts: WriteCounts,
}

/// Whose turn it is to get rows without a key.
struct Turn {
    number: u32,
    /// Bytes of records in this turn, about.
    len: usize,
}

impl Turn {
    /// The turn of a row whose value has these bytes.
    fn next(&mut self, value_len: usize) -> u32 {
        if self.len >= TURN_LEN {
            *self = Self { number: self.number.wrapping_add(1), len: 0 };
        }
        self.len = self.len.saturating_add(value_len).saturating_add(RECORD_OVERHEAD);
        self.number
    }
}

/// A partition of some rows.
struct PartitionRows {
    name: TopicPartition,
    /// Records that are not encoded yet, and their bytes.
    waiting: Vec<RecordBatch>,
    waiting_len: usize,
    /// The rows of the current Arrow batch.
    rows: Vec<u32>,
}

impl TaskWriter {
    /// A writer of the rows of a task; `attempt` differs between runs of the same task, also at the same time.
    ///
    /// # Errors
    /// Options of another version.
    pub fn new(job: &WriteJob, number: u32, attempt: u64) -> Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
        Ok(Self {
            options: job.options()?,
            existing: job.existing.clone(),
            missing: ExistingTopic::new(0, 0),
            directory: job.directory().join(format!("{number}-{attempt}")),
            number,
            turn: Turn { number, len: 0 },
            now: i64::try_from(now).unwrap_or(i64::MAX),
            partitions: Vec::new(),
            numbers: HashMap::new(),
            logs: OpenLogs::new(),
            counted_topics: BTreeSet::new(),
            waiting_len: 0,
            max_waiting_len: MAX_WAITING_LEN,
            counts: WriteCounts::default(),
        })
    }

    /// Writes the rows of an Arrow batch, or keeps them until there are enough for a batch.
    ///
    /// # Errors
    /// A row without a topic or a partition, or with one that is not valid; a record that Kafka's rules forbid; I/O
    /// errors, as after the job has ended.
    pub fn write(&mut self, rows: &RecordBatch) -> Result<()> {
        if rows.num_rows() == 0 {
            return Ok(());
        }
        let touched = self.group(rows)?;
        let records = records_of(rows)?;
        for number in touched {
            let Some(partition) = self.partitions.get_mut(number) else { continue };
            let places = std::mem::take(&mut partition.rows);
            let part = if places.len() == records.num_rows() {
                records.clone()
            } else {
                take_record_batch(&records, &UInt32Array::from(places)).map_err(|error| arrow_error(&error))?
            };
            self.keep(number, part)?;
        }
        Ok(())
    }

    /// Bytes of the records that are not encoded yet.
    #[must_use]
    pub fn waiting_len(&self) -> usize {
        self.waiting_len
    }

    /// Writes the remaining rows, closes all logs, and returns what was written, for [`WriteJob::commit`].
    ///
    /// # Errors
    /// Those of [`write`](Self::write).
    pub fn finish(mut self) -> Result<Written> {
        let mut order = self.logs.partitions(); // open logs first
        order.extend(0..self.partitions.len());
        for number in order {
            self.encode(number)?;
            self.logs.close(number)?;
        }
        let mut fragments = Vec::new();
        for (number, record_count) in self.logs.ends() {
            let Some(partition) = self.partitions.get(*number) else { continue };
            fragments.push(Fragment {
                topic: partition.name.topic.clone(),
                partition: partition.name.partition,
                directory: text_of(&self.directory.join(partition.name.directory_name()))?,
                record_count: *record_count,
            });
        }
        Ok(Written { number: self.number, fragments, counted_topics: self.counted_topics, counts: self.counts })
    }

    /// Stores in each partition which rows are its own; returns the numbers of the partitions.
    fn group(&mut self, rows: &RecordBatch) -> Result<Vec<usize>> {
        let topic = self.options.topic.clone();
        let columns = RowColumns::of(rows, topic.as_deref())?;
        let mut touched = Vec::new();
        for row in 0..rows.num_rows() {
            let topic = columns.topic(row)?;
            let partition = match columns.partition(row)? {
                Some(partition) => partition,
                None => self.partition_of(topic, columns.key(row), columns.value_len(row))?,
            };
            let number = self.number_of(topic, partition)?;
            let Some(partition) = self.partitions.get_mut(number) else { continue };
            if partition.rows.is_empty() {
                touched.push(number);
            }
            partition.rows.push(u32::try_from(row).map_err(Error::other)?);
        }
        Ok(touched)
    }

    /// The partition of a row with this key, and a value of these bytes. As in Kafka's producer, the key's hash decides,
    /// and many rows without a key in a row go to the same partition.
    fn partition_of(&mut self, topic: &str, key: Option<&[u8]>, value_len: usize) -> Result<i32> {
        let existing = self.existing.get(topic).unwrap_or(&self.missing);
        let of_topic = || NonZeroU32::new(existing.partition_count);
        let count = self.options.num_partitions.or_else(of_topic).ok_or_else(|| {
            Error::argument(format!(
                "kbat: rows of topic {topic} have no partition, and its number of partitions is unknown: add a column \
                 partition, or set the option numPartitions"
            ))
        })?;
        if !self.counted_topics.contains(topic) {
            self.counted_topics.insert(topic.to_owned());
        }
        let partition = match key {
            Some(key) => partition_for_key(key, count),
            None => self.turn.next(value_len).wrapping_add(existing.first_turn) % count,
        };
        i32::try_from(partition).map_err(Error::other)
    }

    fn number_of(&mut self, topic: &str, partition: i32) -> Result<usize> {
        let of_topic = self.numbers.get(topic);
        if let Some(number) = of_topic.and_then(|numbers| numbers.get(&partition)) {
            return Ok(*number);
        }
        if of_topic.is_none() {
            check_topic(topic)?;
        }
        let number = self.partitions.len();
        self.numbers.entry(topic.to_owned()).or_default().insert(partition, number);
        self.partitions.push(PartitionRows {
            name: TopicPartition { topic: topic.to_owned(), partition },
            waiting: Vec::new(),
            waiting_len: 0,
            rows: Vec::new(),
        });
        Ok(number)
    }

    /// Keeps records until there are enough.
    fn keep(&mut self, number: usize, records: RecordBatch) -> Result<()> {
        let Some(partition) = self.partitions.get_mut(number) else { return Ok(()) };
        let len = len_of(&records);
        partition.waiting.push(records);
        partition.waiting_len = partition.waiting_len.saturating_add(len);
        self.waiting_len = self.waiting_len.saturating_add(len);
        if partition.waiting_len >= RUN_LEN.max(self.options.batch_size.saturating_mul(8)) {
            self.encode(number)?;
        }
        while self.waiting_len > self.max_waiting_len {
            let largest = self.partitions.iter().enumerate().max_by_key(|(_, partition)| partition.waiting_len);
            let Some((number, _)) = largest else { break };
            self.encode(number)?;
        }
        Ok(())
    }

    /// Appends the waiting records of a partition to its log.
    fn encode(&mut self, number: usize) -> Result<()> {
        let Some(partition) = self.partitions.get_mut(number) else { return Ok(()) };
        let waiting = std::mem::take(&mut partition.waiting);
        self.waiting_len = self.waiting_len.saturating_sub(std::mem::take(&mut partition.waiting_len));
        let Some(schema) = waiting.first().map(RecordBatch::schema) else { return Ok(()) };
        let (directory, name, segment_bytes) = (&self.directory, &partition.name, self.options.segment_bytes);
        let log = self.logs.log(number, || open_log(directory, name, segment_bytes))?;
        let options = self.options.encoding(log.end_offset(), self.now);
        let batches = EncodedBatches::new(&schema, waiting.into_iter().map(Ok), options);
        let batches = batches.map_err(|error| of_rows(error, &partition.name))?;
        // a task writes from offset 0 on, so that the offset is the number of rows before these
        for batch in batches.after_rows(log.end_offset().unsigned_abs()) {
            let batch = batch.map_err(|error| of_rows(error, &partition.name))?;
            if u64_of(batch.bytes.len()) > segment_bytes {
                return Err(over_segment(&batch, &partition.name, segment_bytes));
            }
            log.append_batches(&batch.bytes, OffsetPolicy::Keep)?;
            self.counts.add(batch.record_count, batch.bytes.len());
        }
        Ok(())
    }

    /// Lowers the limits of open logs and of waiting bytes.
    #[cfg(test)]
    pub(super) fn with_limits(mut self, max_logs: usize, max_waiting_len: usize) -> Self {
        self.logs = OpenLogs::with_max(max_logs, usize::MAX);
        self.max_waiting_len = max_waiting_len;
        self
    }

    /// The number of open logs, and of waiting bytes.
    #[cfg(test)]
    pub(super) fn usage(&self) -> (usize, usize) {
        (self.logs.count(), self.waiting_len)
    }
}

fn open_log(directory: &Path, name: &TopicPartition, segment_bytes: u64) -> Result<LogWriter> {
    // no parent is created, so that a task that continues after its job has failed leaves nothing
    let partition = directory.join(name.directory_name());
    for missing in [directory, &partition] {
        if let Err(error) = step("directory").and_then(|()| fs::create_dir(missing))
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(Error::from(error).with_path(missing));
        }
    }
    at(&partition, step("log"))?;
    let options = LogWriterOptions { segment_bytes, ..LogWriterOptions::default() };
    LogWriter::open_existing(&partition, options)
}

/// Adds the partition to the error of a row.
fn of_rows(error: Error, name: &TopicPartition) -> Error {
    match error.kind() {
        ErrorKind::InvalidArgument(_) => Error::argument(format!("kbat: rows of {}: {error}", name.directory_name())),
        _ => error,
    }
}

fn over_segment(batch: &EncodedBatch, name: &TopicPartition, segment_bytes: u64) -> Error {
    let (len, records) = (batch.bytes.len(), count_of(u64::from(batch.record_count), "record"));
    let name = name.directory_name();
    Error::argument(format!(
        "kbat: a batch of {name} with {records} has {len} bytes, and option segmentBytes is {segment_bytes}: set it \
         higher, or batchSize lower"
    ))
}

/// The columns of records, without those that decide where they belong.
fn records_of(rows: &RecordBatch) -> Result<RecordBatch> {
    let schema = rows.schema();
    let is_read = |name: &str| RECORD_COLUMNS.contains(&name);
    let places: Vec<usize> =
        schema.fields().iter().enumerate().filter(|(_, field)| is_read(field.name())).map(|(place, _)| place).collect();
    rows.project(&places).map_err(|error| arrow_error(&error))
}

/// The bytes of an Arrow batch.
fn len_of(records: &RecordBatch) -> usize {
    let len =
        |column: &ArrayRef| column.to_data().get_slice_memory_size().unwrap_or_else(|_| column.get_array_memory_size());
    records.columns().iter().map(len).fold(0, usize::saturating_add)
}

fn arrow_error(error: &ArrowError) -> Error {
    Error::other(error.to_string())
}
