//! The columns of a read, and their selection by a schema.
//!
//! The first seven columns of records are those of Spark's own Kafka source, with its names and types; `includeHeaders`
//! adds `headers`, as in that source. The option `columns` or a schema can name any others. The option `view` selects
//! one row per batch, segment or record of an internal topic, with different columns. A name matches in any case and
//! with or without underscores: `baseOffset` and `base_offset` name the same column, and the result keeps the requested
//! spelling.

use std::str::FromStr;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::arrow::column_table::ERROR_COLUMN;
use crate::arrow::{BatchColumn, Column, ColumnDefinition, SegmentColumn};
use crate::error::{Error, Result};

/// What a row describes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PlanView {
    /// A record.
    #[default]
    Records,
    /// A batch.
    Batches,
    /// A segment file.
    Segments,
    /// A record of one of Kafka's internal topics, with key and value as JSON.
    Internal,
}

impl PlanView {
    /// The value of the option `view`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Records => "records",
            Self::Batches => "batches",
            Self::Segments => "segments",
            Self::Internal => "internal",
        }
    }

    /// Whether a row is a record, so that offsets, timestamps and transactions decide which rows there are.
    pub(crate) fn has_records(self) -> bool {
        matches!(self, Self::Records | Self::Internal)
    }
}

impl FromStr for PlanView {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let all = [Self::Records, Self::Batches, Self::Segments, Self::Internal];
        let found = all.into_iter().find(|view| view.name() == name);
        found.ok_or_else(|| Error::argument("must be records, batches, segments or internal"))
    }
}

/// A column of a read.
#[derive(Debug, PartialEq, Eq)]
pub struct PlanColumn {
    /// Its name in a scan, in snake case.
    pub field: &'static str,
    /// Its type in SQL.
    pub data_type: &'static str,
    /// What it is.
    pub text: &'static str,
}

impl PlanColumn {
    /// Its name in a schema: the name in a scan, in camel case.
    #[must_use]
    pub fn name(&self) -> String {
        let mut name = String::new();
        for (number, word) in self.field.split('_').enumerate() {
            match word.split_at_checked(1).filter(|_| number > 0) {
                Some((first, rest)) => name.extend([first.to_uppercase().as_str(), rest]),
                None => name.push_str(word),
            }
        }
        name
    }
}

impl From<&ColumnDefinition> for PlanColumn {
    fn from(column: &ColumnDefinition) -> Self {
        Self { field: column.name, data_type: column.data_type.sql(), text: column.text }
    }
}

static RECORDS: LazyLock<Vec<PlanColumn>> =
    LazyLock::new(|| Column::all().into_iter().map(|column| column.definition().into()).collect());

static BATCHES: LazyLock<Vec<PlanColumn>> =
    LazyLock::new(|| BatchColumn::all().into_iter().map(|column| column.definition().into()).collect());

static SEGMENTS: LazyLock<Vec<PlanColumn>> =
    LazyLock::new(|| SegmentColumn::all().into_iter().map(|column| column.definition().into()).collect());

static INTERNAL: LazyLock<Vec<PlanColumn>> =
    LazyLock::new(|| Column::internal().into_iter().map(|column| column.definition().into()).collect());

static ERROR: LazyLock<PlanColumn> = LazyLock::new(|| PlanColumn::from(&ERROR_COLUMN));

/// The column that describes corruption, with `onCorrupt=report`.
#[must_use]
pub fn error_column() -> &'static PlanColumn {
    &ERROR
}

/// The columns of a view, and how many of them are read by default: those that are cheap. The option `includeHeaders`
/// adds `headers`.
#[must_use]
pub fn view_columns(view: PlanView) -> (&'static [PlanColumn], usize) {
    match view {
        PlanView::Records => {
            let defaults = Column::defaults().into_iter().filter(|column| *column != Column::Headers);
            (RECORDS.as_slice(), defaults.count())
        }
        PlanView::Batches => (BATCHES.as_slice(), BatchColumn::defaults().len()),
        PlanView::Segments => (SEGMENTS.as_slice(), SegmentColumn::defaults().len()),
        PlanView::Internal => (INTERNAL.as_slice(), Column::internal_defaults().len()),
    }
}

/// The default columns; for records, those of Spark's Kafka source.
pub(crate) fn default_columns(view: PlanView) -> &'static [PlanColumn] {
    let (columns, count) = view_columns(view);
    columns.get(..count).unwrap_or(columns)
}

fn plain(name: &str) -> String {
    name.replace('_', "").to_lowercase()
}

/// The column with a name.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument), which names every column, if there is none.
pub(crate) fn column_named(name: &str, view: PlanView) -> Result<&'static PlanColumn> {
    let (columns, _) = view_columns(view);
    let found = columns.iter().chain([error_column()]).find(|column| plain(column.field) == plain(name));
    found.ok_or_else(|| {
        let names: Vec<String> = columns.iter().map(PlanColumn::name).collect();
        Error::argument(format!("kbat: there is no column '{name}'; choose among {}", names.join(", ")))
    })
}
