//! Checks the schema that a caller declares for a read.

use crate::arrow::OnCorrupt;
use crate::error::{Error, Result};
use crate::plan::columns::{PlanColumn, PlanView, column_named, error_column};
use crate::plan::options::ReadOptions;

/// A column of a schema that the caller wants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedColumn {
    /// Its name, in any spelling.
    pub name: String,
    /// Its type in SQL.
    pub data_type: String,
    /// Whether it may be null.
    pub is_nullable: bool,
}

/// Returns the columns of a schema, which may be the user's.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for a schema without columns, and for a column that
/// does not exist, is repeated, or has another type in the source.
pub fn columns_of_schema(schema: &[WantedColumn], options: &ReadOptions) -> Result<Vec<&'static PlanColumn>> {
    let mut columns = Vec::new();
    for wanted in schema {
        let found = column_of(wanted, options.view)?;
        if columns.contains(&found) {
            let message = format!("kbat: the schema names the column {} twice", found.name());
            return Err(Error::argument(message));
        }
        columns.push(found);
    }
    if columns.is_empty() {
        let message = "kbat: the schema has no column; the cheapest column for counting rows is offset";
        return Err(Error::argument(message));
    }
    let has_error = columns.contains(&error_column());
    if options.on_corrupt == OnCorrupt::Report && !has_error {
        return Err(Error::argument(format!(
            "kbat: the schema has no column error, which onCorrupt=report fills: add error {}",
            error_column().data_type
        )));
    }
    if options.on_corrupt != OnCorrupt::Report && has_error {
        return Err(Error::argument("kbat: the column error requires onCorrupt=report"));
    }
    Ok(columns)
}

fn column_of(wanted: &WantedColumn, view: PlanView) -> Result<&'static PlanColumn> {
    let found = column_named(&wanted.name, view)?;
    let (name, right, declared) = (&wanted.name, found.data_type, &wanted.data_type);
    if right != declared {
        return Err(Error::argument(format!(
            "kbat: column {name} has type {right}, but the schema declares {declared}; declare it as {right} and \
             convert afterwards: CAST({name} AS {})",
            declared.to_uppercase()
        )));
    }
    if !wanted.is_nullable {
        return Err(Error::argument(format!(
            "kbat: the schema declares column {name} NOT NULL, but every column is nullable: remove NOT NULL"
        )));
    }
    Ok(found)
}
