//! [`ArrowScan`]: segments and buffers to Arrow batches.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::RecordBatchOptions;
use arrow_schema::SchemaRef;

use crate::arrow::columns::{Columns, Origin};
use crate::arrow::schema::{Column, TimestampUnit, schema_of};
use crate::compression::Scratch;
use crate::error::{Error, Result};
use crate::format::batch::Batch;
use crate::format::record::Record;
use crate::limits::Limits;
use crate::log::{Input, SegmentFile};

/// What to read and how.
#[derive(Debug, Clone)]
pub struct ScanOptions {
    /// Columns, in this order. Default [`Column::DEFAULT`].
    pub columns: Vec<Column>,
    /// Unit of the timestamp column. Default milliseconds.
    pub timestamp_unit: TimestampUnit,
    /// First offset to give.
    pub start_offset: Option<i64>,
    /// First offset not to give any more.
    pub end_offset: Option<i64>,
    /// Whether control records come too. Default no.
    pub include_control: bool,
    /// Whether checksums are checked. Default yes.
    pub check_crc: bool,
    /// Bounds on untrusted input.
    pub limits: Limits,
    /// An Arrow batch has no more rows than this. Default 16,384.
    pub max_rows: usize,
    /// An Arrow batch ends with the Kafka batch that takes its keys, values and headers past this many bytes. Default 2 MiB.
    pub max_bytes: usize,
}

impl Default for ScanOptions {
    fn default() -> Self {
        Self {
            columns: Column::DEFAULT.to_vec(),
            timestamp_unit: TimestampUnit::default(),
            start_offset: None,
            end_offset: None,
            include_control: false,
            check_crc: true,
            limits: Limits::default(),
            max_rows: 16_384,
            max_bytes: 2 << 20,
        }
    }
}

impl ScanOptions {
    /// Schema of the Arrow batches.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        schema_of(&self.columns, self.timestamp_unit)
    }

    /// Whether a batch has nothing that is asked for, by its header.
    fn passes_over(&self, batch: &Batch<'_>) -> bool {
        let starts_after = |end: i64| batch.base_offset().is_some_and(|base| base >= end);
        (batch.is_control() && !self.include_control)
            || self.start_offset.is_some_and(|start| batch.last_offset() < start)
            || self.end_offset.is_some_and(starts_after)
    }

    fn wants(&self, offset: i64) -> bool {
        self.start_offset.is_none_or(|start| offset >= start) && self.end_offset.is_none_or(|end| offset < end)
    }
}

/// Something to scan: a file or a buffer, and what is known of it.
#[derive(Clone)]
pub struct ScanSource {
    place: Place,
    origin: Origin,
}

#[derive(Clone)]
enum Place {
    File(PathBuf),
    Memory(Arc<dyn AsRef<[u8]> + Send + Sync>),
}

impl ScanSource {
    /// A segment file.
    #[must_use]
    pub fn file(segment: &SegmentFile) -> Self {
        let partition = segment.partition.as_ref();
        let origin = Origin {
            topic: partition.map(|partition| partition.topic.as_str().into()),
            partition: partition.map(|partition| partition.partition),
            segment: Some(segment.path.to_string_lossy().into()),
        };
        Self { place: Place::File(segment.path.clone()), origin }
    }

    /// A buffer of batches.
    #[must_use]
    pub fn memory(bytes: Arc<dyn AsRef<[u8]> + Send + Sync>) -> Self {
        Self { place: Place::Memory(bytes), origin: Origin::default() }
    }

    /// Sets topic and partition where the directory's name does not tell them.
    #[must_use]
    pub fn or_topic_partition(mut self, topic: Option<&str>, partition: Option<i32>) -> Self {
        self.origin.topic = self.origin.topic.or_else(|| topic.map(Into::into));
        self.origin.partition = self.origin.partition.or(partition);
        self
    }

    fn open(&self, limits: &Limits) -> Result<Input> {
        match &self.place {
            Place::File(path) => Input::open(path, limits),
            Place::Memory(bytes) => Ok(Input::memory(Arc::clone(bytes), limits)),
        }
    }

    fn locate(&self, error: Error) -> Error {
        match &self.place {
            Place::File(path) => error.with_path(path),
            Place::Memory(_) => error,
        }
    }
}

/// Iterates the Arrow batches of some sources, in their order. Reads as it goes; holds one window of a file, one
/// [`Scratch`] and the Arrow batch under construction. Ends after its first error.
///
/// ```
/// # fn main() -> kbat::Result<()> {
/// use kbat::arrow::{ArrowScan, Column, ScanOptions, ScanSource};
/// # let mut builder = kbat::BatchBuilder::new();
/// # builder.append(1_700_000_000_000, Some(b"key"), Some(b"value"))?;
/// # let mut bytes = Vec::new();
/// # builder.finish_into(&mut bytes)?;
/// let options = ScanOptions { columns: vec![Column::Offset, Column::Value], ..ScanOptions::default() };
/// for arrow_batch in ArrowScan::new(vec![ScanSource::memory(std::sync::Arc::new(bytes))], options) {
///     assert_eq!(arrow_batch?.num_rows(), 1);
/// }
/// # Ok(()) }
/// ```
pub struct ArrowScan {
    options: ScanOptions,
    schema: SchemaRef,
    sources: std::vec::IntoIter<ScanSource>,
    current: Option<(ScanSource, Input)>,
    columns: Columns,
    scratch: Scratch,
    /// Parts of an Arrow batch that had more rows than asked for.
    ready: VecDeque<arrow_array::RecordBatch>,
    ended: bool,
}

impl ArrowScan {
    /// Opens nothing yet.
    #[must_use]
    pub fn new(sources: Vec<ScanSource>, options: ScanOptions) -> Self {
        Self {
            schema: options.schema(),
            columns: Columns::new(&options.columns, options.timestamp_unit),
            sources: sources.into_iter(),
            current: None,
            scratch: Scratch::new(),
            ready: VecDeque::new(),
            ended: false,
            options,
        }
    }

    /// Schema of the Arrow batches.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Reads Kafka batches until an Arrow batch is full.
    fn advance(&mut self) -> Result<Option<arrow_array::RecordBatch>> {
        if let Some(part) = self.ready.pop_front() {
            return Ok(Some(part));
        }
        loop {
            let rows = self.columns.rows();
            if rows >= self.options.max_rows.max(1) || (rows > 0 && self.columns.data_len() >= self.options.max_bytes) {
                return self.emit();
            }
            if self.current.is_none() {
                let Some(source) = self.sources.next() else { return self.emit() };
                let input = source.open(&self.options.limits)?;
                self.current = Some((source, input));
            }
            if !self.read_batch()? {
                self.current = None;
            }
        }
    }

    /// Decodes the next Kafka batch of the current source; `false` at its end.
    fn read_batch(&mut self) -> Result<bool> {
        let Some((source, input)) = &mut self.current else { return Ok(false) };
        let Some(batch) = input.next_batch() else { return Ok(false) };
        let batch = batch.map_err(|error| source.locate(error))?;
        if !self.options.passes_over(&batch) {
            decode(&batch, &source.origin, &self.options, &mut self.scratch, &mut self.columns)
                .map_err(|error| source.locate(error))?;
        }
        Ok(true)
    }

    fn emit(&mut self) -> Result<Option<arrow_array::RecordBatch>> {
        let rows = self.columns.rows();
        if rows == 0 {
            return Ok(None);
        }
        let arrays = self.columns.finish()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let whole = arrow_array::RecordBatch::try_new_with_options(Arc::clone(&self.schema), arrays, &options)
            .map_err(|error| Error::argument(error.to_string()))?;
        let most = self.options.max_rows.max(1);
        for start in (0..rows).step_by(most) {
            self.ready.push_back(whole.slice(start, most.min(rows.saturating_sub(start))));
        }
        Ok(self.ready.pop_front())
    }
}

/// Records that are parsed before their parts go to the columns: they stay in a first-level cache.
const CHUNK: usize = 128;

/// Appends the records of one batch to the columns.
fn decode(
    batch: &Batch<'_>,
    origin: &Origin,
    options: &ScanOptions,
    scratch: &mut Scratch,
    columns: &mut Columns,
) -> Result<()> {
    if options.check_crc {
        batch.verify_crc()?;
    }
    let bounded = options.start_offset.is_some() || options.end_offset.is_some();
    let check_records = options.check_crc && batch.is_legacy_wrapper();
    let mut base_offset = batch.base_offset();
    let mut rows = 0_usize;
    let mut records = batch.records(scratch, &options.limits)?;
    let mut chunk = Vec::with_capacity(CHUNK);
    let mut more = true;
    while more {
        chunk.clear();
        more = records.read_into(&mut chunk, CHUNK)?;
        if check_records {
            chunk.iter().try_for_each(Record::verify_crc)?;
        }
        if let Some(first) = chunk.first() {
            base_offset.get_or_insert(first.offset());
        }
        if bounded {
            chunk.retain(|record| options.wants(record.offset()));
        }
        columns.push_all(&chunk)?;
        rows = rows.wrapping_add(chunk.len());
    }
    // 32-bit offsets: what a batch can add is bounded by the limits, what is there by max_bytes
    Limits::check("decompressed_len", 0x7fff_ffff, columns.longest())?;
    columns.extend(batch, base_offset.unwrap_or_else(|| batch.last_offset()), origin, rows)
}

impl Iterator for ArrowScan {
    type Item = Result<arrow_array::RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let next = self.advance().transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        next
    }
}
