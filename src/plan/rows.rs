//! [`TaskReader`]: reads the rows of a task.

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use arrow_array::builder::BooleanBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, ListArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::NullBuffer;
use arrow_schema::{ArrowError, SchemaRef};
use arrow_select::filter::filter_record_batch;
use sha3::{Digest, Sha3_256};

use crate::arrow::{
    ArrowScan, BatchColumn, BatchScan, Column, OnCorrupt, ScanOptions, ScanSource, ScanStats, SegmentColumn,
    SegmentScan, TimestampUnit,
};
use crate::error::{Error, ErrorKind, Result};
use crate::io::Location;
use crate::io::location::split_scheme;
use crate::plan::columns::PlanView;
use crate::plan::discover::{Replicas, Selection, discover};
use crate::plan::interval::Interval;
use crate::plan::logs::{Stores, absolute};
use crate::plan::options::{LIMIT_OPTIONS, ReadOptions};
use crate::plan::ranges::report_data_loss;
use crate::plan::tasks::{Piece, ReadTask};
use crate::store::SegmentFile;

const ERROR: &str = "error";
const OFFSET: &str = "offset";
/// Spark's Kafka source has -1 ms for records without a timestamp.
const MISSING_TIMESTAMP: i64 = -1;

/// Reads the rows of a task as Arrow batches, with the columns of the task in their order; timestamps are in
/// microseconds, and `headers` is null for a record without headers, as in Spark's Kafka source. Ends after its first
/// error.
pub struct TaskReader {
    task: ReadTask,
    options: ReadOptions,
    stores: Stores,
    runs: VecDeque<Vec<Piece>>,
    current: Option<(Vec<Piece>, Rows)>,
    done: ScanStats,
    rows_left: Option<u64>,
    warnings: Vec<String>,
    has_empty_headers: bool,
    has_begun: bool,
    ended: bool,
}

enum Rows {
    Records(Box<ArrowScan>),
    Batches(Box<BatchScan>),
    Segments(Box<SegmentScan>),
}

impl Rows {
    fn next(&mut self) -> Option<Result<RecordBatch>> {
        match self {
            Self::Records(scan) => scan.next(),
            Self::Batches(scan) => scan.next(),
            Self::Segments(scan) => scan.next(),
        }
    }

    fn stats(&self) -> ScanStats {
        match self {
            Self::Records(scan) => scan.stats(),
            Self::Batches(scan) => scan.stats(),
            Self::Segments(scan) => scan.stats(),
        }
    }
}

impl TaskReader {
    /// Opens a task.
    ///
    /// # Errors
    /// Options of another version.
    pub fn new(task: ReadTask) -> Result<Self> {
        let options = ReadOptions::parse(&task.options, &task.session_storage)?;
        let paths: Vec<String> = task.pieces.iter().map(|piece| piece.path.clone()).collect();
        let stores = Stores::of(&options, &paths)?;
        // one scan reads the pieces with the same partition and bounds
        let mut runs: VecDeque<Vec<Piece>> = VecDeque::new();
        for piece in &task.pieces {
            match runs.back_mut().filter(|run| run.first().is_some_and(|first| is_alike(first, piece))) {
                Some(run) => run.push(piece.clone()),
                None => runs.push_back(vec![piece.clone()]),
            }
        }
        let rows_left = task.limit;
        Ok(Self {
            task,
            options,
            stores,
            runs,
            current: None,
            done: ScanStats::default(),
            rows_left,
            warnings: Vec::new(),
            has_empty_headers: false,
            has_begun: false,
            ended: false,
        })
    }

    /// Counts of what was read and lost so far.
    #[must_use]
    pub fn stats(&self) -> ScanStats {
        self.current.as_ref().map_or(self.done, |(_, rows)| self.done.plus(&rows.stats()))
    }

    /// Warnings since the last call.
    pub fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.warnings)
    }

    /// Writes the counts into the directory of the option `metricsPath`. A second run of the task replaces them.
    fn write_counts(&self) -> Result<()> {
        let Some(directory) = &self.options.metrics_path else { return Ok(()) };
        let ScanStats { batches, records, bytes_read, batches_skipped, bytes_lost, offsets_lost } = self.stats();
        let counts = serde_json::json!({
            "batches": batches,
            "records": records,
            "bytes_read": bytes_read,
            "batches_skipped": batches_skipped,
            "bytes_lost": bytes_lost,
            "offsets_lost": offsets_lost,
        });
        let pieces = serde_json::to_vec(&self.task.pieces).map_err(Error::other)?;
        let digest: String = Sha3_256::digest(pieces).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let directory = PathBuf::from(absolute(directory)?);
        let in_directory = |error: std::io::Error| Error::from(error).with_path(&directory);
        std::fs::create_dir_all(&directory).map_err(in_directory)?;
        let name = format!("{digest}.kbat-metrics.json");
        let begun = directory.join(format!(".{name}.{}", std::process::id()));
        std::fs::write(&begun, counts.to_string()).map_err(in_directory)?;
        std::fs::rename(&begun, directory.join(name)).map_err(in_directory)
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        self.has_begun = true;
        loop {
            if self.rows_left == Some(0) {
                return Ok(None);
            }
            if self.current.is_none() {
                let Some(pieces) = self.runs.pop_front() else { return Ok(None) };
                let rows = self.open(&pieces)?;
                self.current = Some((pieces, rows));
            }
            let Some((pieces, rows)) = &mut self.current else { continue };
            match rows.next() {
                Some(batch) => {
                    let batch = own_rows(&batch?, pieces, &self.options)?;
                    let is_null = self.options.view == PlanView::Records && !self.has_empty_headers;
                    let mut batch = in_order(&batch, &self.task.columns, is_null)?;
                    if let Some(left) = &mut self.rows_left {
                        let most = usize::try_from(*left).unwrap_or(usize::MAX).min(batch.num_rows());
                        batch = batch.slice(0, most);
                        *left = left.saturating_sub(crate::num::u64_of(most));
                    }
                    if batch.num_rows() > 0 {
                        return Ok(Some(batch));
                    }
                }
                None => {
                    self.done = self.done.plus(&rows.stats());
                    let sizes = local_sizes(pieces)?;
                    check_sizes(pieces, |path| sizes.get(path).copied())?;
                    self.current = None;
                }
            }
        }
    }

    /// Opens the scan of a run of pieces. A file that no longer exists is lost data.
    fn open(&mut self, pieces: &[Piece]) -> Result<Rows> {
        let files = self.files(pieces)?;
        check_sizes(pieces, |path| files.get(path).map(|file| file.size))?;
        let mut sources = Vec::new();
        for piece in pieces {
            let Some(file) = files.get(piece.path.as_str()) else {
                let what = format!("{} was deleted after the read was planned", piece.path);
                report_data_loss(&what, &self.options, &mut self.warnings)?;
                continue;
            };
            let mut source = ScanSource::file(file);
            if !piece.is_whole && (piece.start, piece.end) != (0, file.size) {
                source = source.within(piece.start, piece.end);
            }
            if piece.is_labelled {
                source = source.or_topic_partition(piece.topic.as_deref(), piece.partition);
            }
            sources.push(source);
        }
        let (names, options) = self.scan_options(pieces.first());
        Ok(match self.options.view {
            PlanView::Records => {
                let columns = parsed::<Column>(&names)?;
                Rows::Records(Box::new(ArrowScan::new(sources, ScanOptions { columns, ..options })))
            }
            PlanView::Batches => {
                Rows::Batches(Box::new(BatchScan::new(sources, parsed::<BatchColumn>(&names)?, options)))
            }
            PlanView::Segments => {
                Rows::Segments(Box::new(SegmentScan::new(sources, parsed::<SegmentColumn>(&names)?, options)))
            }
        })
    }

    /// The columns to scan, and the options of the scan of a run of pieces.
    fn scan_options(&self, first: Option<&Piece>) -> (Vec<&str>, ScanOptions) {
        let (start_offset, end_offset, part) = first
            .map_or((None, None, Interval::EVERYTHING), |first| (first.start_offset, first.end_offset, first.part));
        let names = self.task.columns.iter().filter(|name| *name != ERROR).map(String::as_str);
        let mut names: Vec<&str> = names.collect();
        if part != Interval::EVERYTHING && !names.contains(&OFFSET) {
            names.push(OFFSET);
        }
        let options = ScanOptions {
            timestamp_unit: TimestampUnit::Microsecond,
            start_offset,
            end_offset,
            start_timestamp: self.task.times.start,
            end_timestamp: self.task.times.end,
            missing_timestamp: (self.options.view == PlanView::Records).then_some(MISSING_TIMESTAMP),
            include_control: self.options.include_control,
            check_crc: self.options.check_crc,
            on_corrupt: self.options.on_corrupt,
            isolation: self.options.isolation,
            limits: self.options.limits.clone(),
            leave_page_cache: self.options.leave_page_cache,
            ..ScanOptions::default()
        };
        (names, options)
    }

    /// The schema of the Arrow batches.
    ///
    /// # Errors
    /// Columns of another version.
    pub fn schema(&self) -> Result<SchemaRef> {
        let (names, options) = self.scan_options(None);
        let schema = match self.options.view {
            PlanView::Records => ScanOptions { columns: parsed::<Column>(&names)?, ..options }.schema(),
            PlanView::Batches => BatchScan::schema_of(&parsed::<BatchColumn>(&names)?, &options),
            PlanView::Segments => SegmentScan::schema_of(&parsed::<SegmentColumn>(&names)?, &options),
        };
        let places = self.task.columns.iter().map(|name| schema.index_of(name));
        let places = places.collect::<std::result::Result<Vec<_>, _>>().map_err(|error| arrow_error(&error))?;
        schema.project(&places).map(Arc::new).map_err(|error| arrow_error(&error))
    }

    /// Keeps the empty lists of `headers`, instead of null.
    #[must_use]
    pub fn with_empty_headers(mut self) -> Self {
        self.has_empty_headers = true;
        self
    }

    /// The files of pieces that exist. A directory of a store is listed once.
    fn files(&self, pieces: &[Piece]) -> Result<HashMap<String, SegmentFile>> {
        let mut found = HashMap::new();
        let mut listed: HashMap<String, Vec<SegmentFile>> = HashMap::new();
        for piece in pieces {
            let path = piece.path.as_str();
            if found.contains_key(path) {
                continue;
            }
            let is_local = split_scheme(path).is_none() && Path::new(path).is_file();
            let file = if is_local {
                segments_at(&Location::local(path))?.into_iter().next()
            } else {
                let directory = path.rsplit_once('/').map_or(path, |(directory, _)| directory);
                if !listed.contains_key(directory) {
                    let segments = self.stores.locate(directory).and_then(|location| segments_at(&location));
                    listed.insert(directory.to_owned(), segments.unwrap_or_default());
                }
                let in_directory = listed.get(directory).into_iter().flatten();
                let file = in_directory.into_iter().find(|file| file.path.to_str() == Some(path)).cloned();
                match file {
                    Some(file) => Some(file),
                    None => self.stores.locate(path).and_then(|location| segments_at(&location))?.into_iter().next(),
                }
            };
            if let Some(file) = file {
                found.insert(path.to_owned(), file);
            }
        }
        Ok(found)
    }

    /// Adds the options that let a job continue after an error.
    fn advised(&self, error: Error) -> Error {
        let skip = "option onCorrupt=skip omits the batch, onCorrupt=report adds a row that describes it";
        let is_of_format = !matches!(
            error.kind(),
            ErrorKind::InvalidArgument(_)
                | ErrorKind::Io(_)
                | ErrorKind::Other(_)
                | ErrorKind::InvalidFile(_)
                | ErrorKind::UnsupportedMagic(_)
                | ErrorKind::UnsupportedCodec { .. }
                | ErrorKind::CompressionBelowMagic { .. }
        );
        match error.kind() {
            ErrorKind::Limit { .. } => error.with_note(format!(
                "for files you trust, raise the limit with one of the options {}",
                LIMIT_OPTIONS.join(", ")
            )),
            ErrorKind::Crc { .. } => {
                let lost = self.lost_offsets(&error);
                error.with_note(format!("{lost}{skip}, checkCrc=false reads its records all the same"))
            }
            _ if is_of_format => {
                let lost = self.lost_offsets(&error);
                error.with_note(format!("{lost}{skip}"))
            }
            _ => error,
        }
    }

    /// The offsets that a corrupt batch of a file affects, as reported with `onCorrupt=report`; empty if unknown.
    fn lost_offsets(&self, error: &Error) -> String {
        let find = || -> Option<(i64, i64)> {
            let first = error.position().base_offset.filter(|first| *first >= 0)?;
            let location = self.stores.locate(error.path()?.to_str()?).ok()?;
            let file = segments_at(&location).ok()?.into_iter().next()?;
            let options = ScanOptions {
                columns: Vec::new(),
                on_corrupt: OnCorrupt::Report,
                start_offset: Some(first),
                end_offset: Some(first.saturating_add(1)),
                limits: self.options.limits.clone(),
                ..ScanOptions::default()
            };
            for rows in ArrowScan::new(vec![ScanSource::file(&file)], options) {
                let rows = rows.ok()?;
                let errors = rows.column_by_name(ERROR)?.as_struct();
                let number = |name: &str| errors.column_by_name(name).map(|column| column.as_primitive::<Int64Type>());
                let (firsts, lasts) = (number("first_offset")?, number("last_offset")?);
                let complete = |row: &usize| errors.is_valid(*row) && firsts.is_valid(*row) && lasts.is_valid(*row);
                if let Some(row) = (0..rows.num_rows()).find(complete) {
                    return Some((firsts.value(row), lasts.value(row)));
                }
            }
            None
        };
        match find() {
            Some((first, last)) if first == last => format!("offset {first} can't be read; "),
            Some((first, last)) => format!("offsets {first} to {last} can't be read; "),
            None => String::new(),
        }
    }
}

impl Iterator for TaskReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let mut next = self.advance().map_err(|error| self.advised(error)).transpose();
        self.ended = !matches!(next, Some(Ok(_)));
        if self.ended
            && let Err(error) = self.write_counts()
            && !matches!(next, Some(Err(_)))
        {
            next = Some(Err(error));
        }
        next
    }
}

impl Drop for TaskReader {
    /// Writes the counts of a task that was stopped early, for example by a `LIMIT`.
    fn drop(&mut self) {
        if self.has_begun && !self.ended {
            let _ = self.write_counts(); // nobody is left to hear of an error
        }
    }
}

fn is_alike(one: &Piece, other: &Piece) -> bool {
    let key = |piece: &Piece| {
        (piece.topic.clone(), piece.partition, piece.is_labelled, piece.start_offset, piece.end_offset, piece.part)
    };
    key(one) == key(other)
}

/// The segments at a location; none if it does not exist.
fn segments_at(location: &Location) -> Result<Vec<SegmentFile>> {
    let selection = Selection::default().replicas(Replicas::Longest);
    match discover(std::slice::from_ref(location), &selection) {
        Ok(discovery) => Ok(discovery.into_segments()),
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The sizes of the files that exist. Objects of a store do not change while they are read: that is an error.
fn local_sizes(pieces: &[Piece]) -> Result<HashMap<&str, u64>> {
    let mut sizes = HashMap::new();
    for path in pieces.iter().map(|piece| piece.path.as_str()).filter(|path| split_scheme(path).is_none()) {
        match std::fs::metadata(path) {
            Ok(metadata) => {
                sizes.insert(path, metadata.len());
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(Error::from(error).with_path(Path::new(path))),
        }
    }
    Ok(sizes)
}

/// Refuses a file that ends before one of the pieces does. A scan would stop at its end without an error, and the rows
/// after it would be missing.
fn check_sizes<'p>(pieces: &'p [Piece], size_of: impl Fn(&'p str) -> Option<u64>) -> Result<()> {
    for piece in pieces.iter().filter(|piece| !piece.is_whole) {
        if let Some(size) = size_of(&piece.path).filter(|size| *size < piece.end) {
            return Err(Error::from(std::io::Error::other(format!(
                "kbat: {} has {size} bytes, and had {} or more when the read was planned: it was truncated or replaced \
                 since then; run the query again, or read a copy that does not change",
                piece.path, piece.end
            ))));
        }
    }
    Ok(())
}

fn arrow_error(error: &ArrowError) -> Error {
    Error::other(error.to_string())
}

/// Omits the rows that other pieces return: corruption that another window reports, and the rest of a split batch.
fn own_rows(batch: &RecordBatch, pieces: &[Piece], options: &ReadOptions) -> Result<RecordBatch> {
    let part = pieces.first().map_or(Interval::EVERYTHING, |first| first.part);
    let has_foreign_faults =
        options.on_corrupt == OnCorrupt::Report && pieces.iter().any(|piece| piece.own_end.is_some());
    if part == Interval::EVERYTHING && !has_foreign_faults {
        return Ok(batch.clone());
    }
    let faults = batch.column_by_name(ERROR).filter(|_| has_foreign_faults).map(|column| column.as_struct());
    let offsets = batch.column_by_name(OFFSET).map(|column| column.as_primitive::<Int64Type>());
    let mut kept = BooleanBuilder::with_capacity(batch.num_rows());
    for row in 0..batch.num_rows() {
        let is_own_fault = faults.filter(|faults| faults.is_valid(row)).is_none_or(|faults| {
            let path = faults.column_by_name("path").map(|column| column.as_string::<i32>().value(row));
            let at = faults.column_by_name("position").map(|column| column.as_primitive::<Int64Type>().value(row));
            let at = at.unwrap_or(0).unsigned_abs();
            let contains = |piece: &Piece| (piece.start..piece.own_end.unwrap_or(piece.end)).contains(&at);
            pieces.iter().any(|piece| Some(piece.path.as_str()) == path && contains(piece))
        });
        // a row without an offset is corruption, which the last part reports
        let is_in_part = match offsets.filter(|offsets| offsets.is_valid(row)).map(|offsets| offsets.value(row)) {
            Some(offset) => part.start.is_none_or(|start| offset >= start) && part.end.is_none_or(|end| offset < end),
            None => part.end.is_none(),
        };
        kept.append_value(is_own_fault && (part == Interval::EVERYTHING || is_in_part));
    }
    let kept: BooleanArray = kept.finish();
    filter_record_batch(batch, &kept).map_err(|error| arrow_error(&error))
}

/// Parses names of columns.
fn parsed<T: FromStr<Err = Error>>(names: &[&str]) -> Result<Vec<T>> {
    names.iter().map(|name| name.parse()).collect()
}

/// The columns in the order of the task. If `is_null`, empty lists become null.
fn in_order(batch: &RecordBatch, names: &[String], is_null: bool) -> Result<RecordBatch> {
    let schema = batch.schema();
    let places = names.iter().map(|name| schema.index_of(name)).collect::<std::result::Result<Vec<_>, _>>();
    let places = places.map_err(|error| arrow_error(&error))?;
    let fields: Vec<_> = places.iter().filter_map(|place| schema.fields().get(*place).cloned()).collect();
    let columns = places.iter().filter_map(|place| batch.columns().get(*place).cloned());
    let columns = columns.map(|column| match column.as_list_opt::<i32>() {
        Some(lists) if is_null => null_if_empty(lists),
        _ => column,
    });
    let rows = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    let schema = Arc::new(arrow_schema::Schema::new(fields));
    RecordBatch::try_new_with_options(schema, columns.collect(), &rows).map_err(|error| arrow_error(&error))
}

fn null_if_empty(lists: &ListArray) -> ArrayRef {
    let offsets = lists.offsets();
    if offsets.lengths().all(|length| length > 0) {
        return Arc::new(lists.clone());
    }
    let field = match lists.data_type() {
        arrow_schema::DataType::List(field) => Arc::clone(field),
        _ => return Arc::new(lists.clone()),
    };
    let is_valid: NullBuffer =
        offsets.lengths().enumerate().map(|(row, length)| length > 0 && lists.is_valid(row)).collect();
    Arc::new(ListArray::new(field, offsets.clone(), Arc::clone(lists.values()), Some(is_valid)))
}
