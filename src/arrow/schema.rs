//! Columns as Arrow types, and by name.

use std::str::FromStr;
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema, SchemaRef, TimeUnit};

use crate::arrow::column_table::{
    BatchColumn, Column, ColumnDefinition, ColumnType, ERROR_COLUMN, ERROR_FIELDS, SegmentColumn, View,
};
use crate::error::{Error, Result};

impl Column {
    /// Every column of ordinary records.
    #[must_use]
    pub fn all() -> Vec<Self> {
        Self::of_view(View::Records)
    }

    /// The default columns of ordinary records: those of Spark's Kafka source, headers included.
    #[must_use]
    pub fn defaults() -> Vec<Self> {
        Self::defaults_of(View::Records)
    }

    /// Every column of the records of internal topics. They have `key` and `value` as JSON.
    /// [`ScanOptions::decoder`](crate::arrow::ScanOptions::decoder) selects how they are decoded. If that fails, the row
    /// has the reason.
    #[must_use]
    pub fn internal() -> Vec<Self> {
        Self::of_view(View::Internal)
    }

    /// The default columns of the records of internal topics.
    #[must_use]
    pub fn internal_defaults() -> Vec<Self> {
        Self::defaults_of(View::Internal)
    }

    /// The column of internal topics with a name.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for an unknown name.
    pub fn of_internal(name: &str) -> Result<Self> {
        let columns = Self::internal();
        let found = columns.iter().find(|column| column.name() == name).copied();
        found.ok_or_else(|| unknown(name, " in the view internal", columns.into_iter().map(Self::name)))
    }

    /// Whether the column is built from a decoded key or value.
    pub(crate) fn is_decoded(self) -> bool {
        !self.definition().views.contains(&View::Records)
    }
}

impl FromStr for Column {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let columns = Self::all();
        let found = columns.iter().find(|column| column.name() == name).copied();
        found.ok_or_else(|| {
            let names = columns.into_iter().map(Self::name);
            if name != ERROR_COLUMN.name {
                return unknown(name, "", names);
            }
            Error::argument(format!(
                "the column {name:?} is added as the last column when corruption is reported; choose among {}",
                names.collect::<Vec<_>>().join(", ")
            ))
        })
    }
}

impl BatchColumn {
    /// Every column.
    #[must_use]
    pub fn all() -> Vec<Self> {
        Self::of_view(View::Batches)
    }

    /// The default columns: all that need only the header.
    #[must_use]
    pub fn defaults() -> Vec<Self> {
        Self::defaults_of(View::Batches)
    }
}

impl FromStr for BatchColumn {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let columns = Self::all();
        let found = columns.iter().find(|column| column.name() == name).copied();
        found.ok_or_else(|| unknown(name, " in the view batches", columns.into_iter().map(Self::name)))
    }
}

impl SegmentColumn {
    /// Every column.
    #[must_use]
    pub fn all() -> Vec<Self> {
        Self::of_view(View::Segments)
    }

    /// The default columns: all except [`SegmentColumn::BatchCount`].
    #[must_use]
    pub fn defaults() -> Vec<Self> {
        Self::defaults_of(View::Segments)
    }
}

impl FromStr for SegmentColumn {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let columns = Self::all();
        let found = columns.iter().find(|column| column.name() == name).copied();
        found.ok_or_else(|| unknown(name, " in the view segments", columns.into_iter().map(Self::name)))
    }
}

/// The error for a name that no column of a view has.
fn unknown(name: &str, in_view: &str, names: impl Iterator<Item = &'static str>) -> Error {
    let names = names.collect::<Vec<_>>().join(", ");
    Error::argument(format!("there is no column {name:?}{in_view}; choose among {names}"))
}

impl ColumnType {
    /// The type in Arrow.
    fn arrow(self, unit: TimestampUnit, binary_view: bool) -> DataType {
        match self {
            Self::Binary => binary(binary_view),
            Self::Text => DataType::Utf8,
            Self::Boolean => DataType::Boolean,
            Self::Int8 => DataType::Int8,
            Self::Int16 => DataType::Int16,
            Self::Int32 => DataType::Int32,
            Self::Int64 => DataType::Int64,
            Self::Float64 => DataType::Float64,
            Self::Timestamp => DataType::Timestamp(unit.into(), Some("UTC".into())),
            Self::Headers => DataType::List(Arc::new(header_field(binary_view))),
            Self::Error => DataType::Struct(error_fields()),
        }
    }
}

/// The element of the `headers` list.
pub(crate) fn header_field(binary_view: bool) -> Field {
    Field::new("element", DataType::Struct(header_fields(binary_view)), true)
}

pub(crate) fn header_fields(binary_view: bool) -> Fields {
    Fields::from(vec![Field::new("key", DataType::Utf8, true), Field::new("value", binary(binary_view), true)])
}

fn binary(view: bool) -> DataType {
    if view { DataType::BinaryView } else { DataType::Binary }
}

/// The fields of the `error` column.
pub(crate) fn error_fields() -> Fields {
    let field = |(name, data_type): (&str, ColumnType)| {
        Field::new(name, data_type.arrow(TimestampUnit::Millisecond, false), true)
    };
    ERROR_FIELDS.into_iter().map(field).collect()
}

/// The schema of some columns, with the column `error` after them if corruption is reported as rows.
pub(crate) fn schema_of(
    columns: impl Iterator<Item = &'static ColumnDefinition>,
    unit: TimestampUnit,
    binary_view: bool,
    reports_corruption: bool,
) -> SchemaRef {
    let error = reports_corruption.then_some(&ERROR_COLUMN);
    let field = |column: &ColumnDefinition| Field::new(column.name, column.data_type.arrow(unit, binary_view), true);
    Arc::new(Schema::new(columns.chain(error).map(field).collect::<Vec<_>>()))
}

/// Unit of the `timestamp` column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum TimestampUnit {
    /// Milliseconds, as in Kafka: every timestamp fits.
    #[default]
    Millisecond,
    /// Microseconds, as in Spark: a timestamp more than 292,000 years from 1970 does not fit and is an error.
    Microsecond,
}

impl TimestampUnit {
    /// A time in this unit; the largest or smallest one if it does not fit.
    pub(crate) fn of_milliseconds(self, milliseconds: i64) -> i64 {
        match self {
            Self::Millisecond => milliseconds,
            Self::Microsecond => milliseconds.saturating_mul(1000),
        }
    }
}

impl From<TimestampUnit> for TimeUnit {
    fn from(unit: TimestampUnit) -> Self {
        match unit {
            TimestampUnit::Millisecond => Self::Millisecond,
            TimestampUnit::Microsecond => Self::Microsecond,
        }
    }
}
