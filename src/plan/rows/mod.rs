//! [`TaskReader`]: reads the rows of a task.

pub(super) mod shape;

use std::collections::{HashMap, VecDeque};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use sha3::{Digest, Sha3_256};

use crate::arrow::column_table::ERROR_COLUMN;
use crate::arrow::{
    ArrowScan, BatchColumn, BatchScan, Column, ScanOptions, ScanSource, ScanStats, SegmentColumn, SegmentScan,
    TimestampUnit,
};
use crate::error::{Error, Result};
use crate::io::Location;
use crate::io::location::split_scheme;
use crate::plan::advice::advised;
use crate::plan::arrow_error::arrow_error;
use crate::plan::columns::PlanView;
use crate::plan::discover::segments_at;
use crate::plan::interval::Interval;
use crate::plan::logs::Stores;
use crate::plan::options::ReadOptions;
use crate::plan::pieces::Piece;
use crate::plan::ranges::report_data_loss;
use crate::plan::rows::shape::{in_order, own_rows};
use crate::plan::tasks::ReadTask;
use crate::plan::totals::{self, Groups};
use crate::store::SegmentFile;

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
    current: Option<(Vec<Piece>, RowScan)>,
    done: ScanStats,
    rows_left: Option<u64>,
    warnings: Vec<String>,
    has_empty_headers: bool,
    has_begun: bool,
    ended: bool,
}

enum RowScan {
    Records(Box<ArrowScan>),
    Batches(Box<BatchScan>),
    Segments(Box<SegmentScan>),
}

impl RowScan {
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
        let ScanStats { batches, records, bytes_read, batches_skipped, bytes_lost, offsets_lost, .. } = self.stats();
        let counts = serde_json::json!({
            "batches": batches,
            "records": records,
            "bytes_read": bytes_read,
            "batches_skipped": batches_skipped,
            "bytes_lost": bytes_lost,
            "offsets_lost": offsets_lost,
        });
        let pieces = serde_json::to_vec(&self.task.pieces).map_err(Error::other)?;
        let digest = Sha3_256::digest(pieces).first_chunk().copied().map_or(0, u128::from_be_bytes);
        let directory = PathBuf::from(directory);
        let in_directory = |error: std::io::Error| Error::from(error).with_path(&directory);
        std::fs::create_dir_all(&directory).map_err(in_directory)?;
        let name = format!("{digest:032x}.kbat-metrics.json");
        let begun = directory.join(format!(".{name}.{}", std::process::id()));
        std::fs::write(&begun, counts.to_string()).map_err(in_directory)?;
        std::fs::rename(&begun, directory.join(name)).map_err(in_directory)
    }

    fn advance(&mut self) -> Result<Option<RecordBatch>> {
        self.has_begun = true;
        if !self.task.totals.is_empty() && self.rows_left != Some(0) {
            return self.totals().map(Some);
        }
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
            if let Some(batch) = rows.next() {
                let batch = own_rows(&batch?, pieces, self.options.on_corrupt)?;
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
            } else {
                self.done = self.done.plus(&rows.stats());
                let sizes = local_sizes(pieces)?;
                check_sizes(pieces, |path| sizes.get(path).copied())?;
                self.current = None;
            }
        }
    }

    /// The rows of a task that computes totals.
    fn totals(&mut self) -> Result<RecordBatch> {
        self.rows_left = Some(0);
        let mut groups = Groups::default();
        while let Some(pieces) = self.runs.pop_front() {
            let sources = self.sources(&pieces)?;
            let Some(first) = sources.first() else { continue };
            let totals = groups.of(&first.origin, &self.task.groups);
            let (_, options) = self.scan_options(pieces.first());
            let is_whole = options.start_offset.is_none() && options.end_offset.is_none();
            if is_whole && self.task.times == Interval::EVERYTHING && totals::has_header_totals(&self.task.totals) {
                totals.add_headers(&sources, &self.task.totals, &options)?;
            } else {
                totals.add_records(sources, &self.task.totals, &options)?;
            }
            let sizes = local_sizes(&pieces)?;
            check_sizes(&pieces, |path| sizes.get(path).copied())?;
        }
        self.done = self.done.plus(&groups.stats());
        groups.rows(&self.task.groups, &self.task.totals)
    }

    /// Opens the scan of a run of pieces.
    fn open(&mut self, pieces: &[Piece]) -> Result<RowScan> {
        let sources = self.sources(pieces)?;
        let (names, options) = self.scan_options(pieces.first());
        Ok(match self.options.view {
            PlanView::Records => {
                let columns = parsed::<Column>(&names)?;
                RowScan::Records(Box::new(ArrowScan::new(sources, ScanOptions { columns, ..options })))
            }
            PlanView::Internal => {
                let columns = internal_columns(&names)?;
                RowScan::Records(Box::new(ArrowScan::new(sources, ScanOptions { columns, ..options })))
            }
            PlanView::Batches => {
                RowScan::Batches(Box::new(BatchScan::new(sources, parsed::<BatchColumn>(&names)?, options)))
            }
            PlanView::Segments => {
                RowScan::Segments(Box::new(SegmentScan::new(sources, parsed::<SegmentColumn>(&names)?, options)))
            }
        })
    }

    /// The sources of a run of pieces. A file that no longer exists is lost data.
    fn sources(&mut self, pieces: &[Piece]) -> Result<Vec<ScanSource>> {
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
            source.is_planned = true;
            if !piece.is_whole && (piece.start, piece.end) != (0, file.size) {
                source = source.within(piece.start, piece.end);
            }
            source.committed = piece.committed.clone().map(Arc::new);
            source.next_base = piece.next_base;
            if piece.is_labelled {
                source = source.or_topic_partition(piece.topic.as_deref(), piece.partition);
            }
            sources.push(source);
        }
        Ok(sources)
    }

    /// The columns to scan, and the options of the scan of a run of pieces.
    fn scan_options(&self, first: Option<&Piece>) -> (Vec<&str>, ScanOptions) {
        let (start_offset, end_offset, part) = first
            .map_or((None, None, Interval::EVERYTHING), |first| (first.start_offset, first.end_offset, first.part));
        let names = self.task.columns.iter().filter(|name| *name != ERROR_COLUMN.name).map(String::as_str);
        let mut names: Vec<&str> = names.collect();
        if part != Interval::EVERYTHING && !names.contains(&OFFSET) {
            names.push(OFFSET);
        }
        let default = ScanOptions::default();
        // a scan that needs few rows decodes few batches
        let most = self.task.limit.map_or(default.max_rows, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        let options = ScanOptions {
            max_rows: default.max_rows.min(most),
            timestamp_unit: TimestampUnit::Microsecond,
            start_offset,
            end_offset,
            start_timestamp: self.task.times.start,
            end_timestamp: self.task.times.end,
            missing_timestamp: matches!(self.options.view, PlanView::Records | PlanView::Internal)
                .then_some(MISSING_TIMESTAMP),
            include_control: self.options.include_control,
            check_crc: self.options.check_crc,
            on_corrupt: self.options.on_corrupt,
            isolation: self.options.isolation,
            limits: self.options.limits.clone(),
            leave_page_cache: self.options.leave_page_cache,
            offsets_from_headers: true,
            ..default
        };
        (names, options)
    }

    /// The schema of the Arrow batches.
    ///
    /// # Errors
    /// Columns of another version.
    pub fn schema(&self) -> Result<SchemaRef> {
        if !self.task.totals.is_empty() {
            return Ok(totals::schema_of(&self.task.groups, &self.task.totals));
        }
        let (names, options) = self.scan_options(None);
        let schema = match self.options.view {
            PlanView::Records => ScanOptions { columns: parsed::<Column>(&names)?, ..options }.schema(),
            PlanView::Internal => ScanOptions { columns: internal_columns(&names)?, ..options }.schema(),
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
            let is_local = split_scheme(path).is_none() && !self.stores.has_remote() && Path::new(path).is_file();
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
}

impl Iterator for TaskReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let mut next = self.advance().map_err(|error| advised(error, &self.options)).transpose();
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
            let _ = self.write_counts(); // the caller reads no more, so it gets no error
        }
    }
}

fn is_alike(one: &Piece, other: &Piece) -> bool {
    let key = |piece: &Piece| {
        (piece.topic.clone(), piece.partition, piece.is_labelled, piece.start_offset, piece.end_offset, piece.part)
    };
    key(one) == key(other)
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

/// Parses names of columns of internal topics.
fn internal_columns(names: &[&str]) -> Result<Vec<Column>> {
    names.iter().map(|name| Column::of_internal(name)).collect()
}

/// Parses names of columns.
fn parsed<T: FromStr<Err = Error>>(names: &[&str]) -> Result<Vec<T>> {
    names.iter().map(|name| name.parse()).collect()
}
