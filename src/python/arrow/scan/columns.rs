//! The arguments `view` and `columns` of a scan.

use std::fmt;
use std::str::FromStr;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::arrow::{BatchColumn, Column, Isolation, ScanOptions, SegmentColumn};
use crate::error::Error;
use crate::python::runtime::errors::OrRaise;

/// The rows of a scan and their columns. The columns of records are in the options.
#[derive(Clone)]
pub(crate) enum ScanRows {
    Records,
    /// Records of internal topics.
    Internal,
    Batches(Vec<BatchColumn>),
    Segments(Vec<SegmentColumn>),
}

/// Adds the columns of a view to the options.
pub(crate) fn with_columns(
    mut options: ScanOptions,
    view: &str,
    columns: Option<&Bound<'_, PyAny>>,
) -> PyResult<(ScanOptions, ScanRows)> {
    let rows = match view {
        "records" => {
            options.columns = columns.map_or_else(|| Ok(Column::defaults()), parse_columns)?;
            return Ok((options, ScanRows::Records));
        }
        "internal" => {
            options.columns = columns.map_or_else(|| Ok(Column::internal_defaults()), internal_columns)?;
            return Ok((options, ScanRows::Internal));
        }
        "batches" => ScanRows::Batches(columns.map_or_else(|| Ok(BatchColumn::defaults()), parse_columns)?),
        "segments" => ScanRows::Segments(columns.map_or_else(|| Ok(SegmentColumn::defaults()), parse_columns)?),
        _ => {
            let message = format!("view must be \"records\", \"batches\", \"segments\" or \"internal\", not {view:?}");
            return Err(PyValueError::new_err(message));
        }
    };
    if options.isolation == Isolation::ReadCommitted {
        return Err(PyValueError::new_err(
            "isolation=\"read_committed\" applies to records only; use view=\"records\"",
        ));
    }
    Ok((options, rows))
}

/// A column of the view `internal`.
#[derive(PartialEq)]
struct InternalColumn(Column);

impl FromStr for InternalColumn {
    type Err = Error;

    fn from_str(name: &str) -> crate::error::Result<Self> {
        Column::of_internal(name).map(Self)
    }
}

impl fmt::Display for InternalColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

pub(crate) fn internal_columns(columns: &Bound<'_, PyAny>) -> PyResult<Vec<Column>> {
    Ok(parse_columns::<InternalColumn>(columns)?.into_iter().map(|column| column.0).collect())
}

pub(crate) fn parse_columns<C>(columns: &Bound<'_, PyAny>) -> PyResult<Vec<C>>
where
    C: FromStr<Err = Error> + PartialEq + fmt::Display,
{
    if columns.is_instance_of::<PyString>() {
        return Err(PyValueError::new_err("columns must be a list of names, not one string"));
    }
    let mut parsed = Vec::new();
    for name in columns.try_iter()? {
        let column = name?.extract::<String>()?.parse::<C>().or_raise(columns.py())?;
        if parsed.contains(&column) {
            return Err(PyValueError::new_err(format!("column {column} is listed twice")));
        }
        parsed.push(column);
    }
    Ok(parsed)
}
