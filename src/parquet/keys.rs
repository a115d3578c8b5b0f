//! Assigns rows to directories in Hive's layout, as Spark writes and reads it.

use std::fmt::Write;
use std::str::FromStr;

use arrow_array::cast::AsArray;
use arrow_array::temporal_conversions::timestamp_s_to_datetime;
use arrow_array::types::{
    Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampMillisecondType,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Schema, TimeUnit};

use crate::error::{Error, Result};

/// Hive's directory for rows without a value.
const NULL_DIRECTORY: &str = "__HIVE_DEFAULT_PARTITION__";
const SECONDS_A_DAY: i64 = 86_400;

/// The value that names a level of directories.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PartitionBy {
    /// A column of text, integers or booleans. It is not written to the files.
    Column(String),
    /// The day of the timestamp in UTC: `date=2026-11-21`. Rows with −1, "no timestamp", go to the null directory.
    Date,
    /// The hour of the timestamp in UTC: `hour=09`.
    Hour,
}

impl PartitionBy {
    /// The name before `=` in the directories.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Column(name) => name,
            Self::Date => "date",
            Self::Hour => "hour",
        }
    }
}

impl FromStr for PartitionBy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "date" => Self::Date,
            "hour" => Self::Hour,
            column => Self::Column(column.to_owned()),
        })
    }
}

/// The columns of a schema that rows are partitioned by.
#[derive(Debug)]
pub(super) struct Keys {
    keys: Vec<(PartitionBy, usize)>,
    kept: Vec<usize>,
}

impl Keys {
    pub(super) fn new(schema: &Schema, partition_by: &[PartitionBy]) -> Result<Self> {
        let mut keys = Vec::new();
        let mut kept: Vec<usize> = (0..schema.fields().len()).collect();
        for (place, key) in partition_by.iter().enumerate() {
            if partition_by.iter().take(place).any(|before| before == key) {
                return Err(Error::argument(format!("partition_by lists {} twice", key.name())));
            }
            let (name, fits): (&str, fn(&DataType) -> bool) = match key {
                PartitionBy::Column(name) => (name, names_a_directory),
                PartitionBy::Date | PartitionBy::Hour => ("timestamp", |data_type| is_timestamp(data_type)),
            };
            let Some((index, field)) = schema.column_with_name(name) else {
                let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
                return Err(Error::argument(format!(
                    "no column {name} to partition by; the columns are {}",
                    names.join(", ")
                )));
            };
            if !fits(field.data_type()) {
                let message = format!("column {name} of type {} can't name a directory", field.data_type());
                return Err(Error::argument(message));
            }
            if matches!(key, PartitionBy::Column(_)) {
                kept.retain(|kept| *kept != index);
            }
            keys.push((key.clone(), index));
        }
        if kept.is_empty() {
            return Err(Error::argument("no column is left to write: partition_by lists all of them".to_owned()));
        }
        Ok(Self { keys, kept })
    }

    /// Indexes of the columns written to the files.
    pub(super) fn kept(&self) -> &[usize] {
        &self.kept
    }

    /// Runs of adjacent rows for one directory: the directory, the first row, the number of rows.
    pub(super) fn runs(&self, rows: &RecordBatch) -> Vec<(String, usize, usize)> {
        if self.keys.is_empty() {
            return vec![(String::new(), 0, rows.num_rows())];
        }
        let mut runs: Vec<(String, usize, usize)> = Vec::new();
        let (mut values, mut last) = (Vec::new(), Vec::new());
        for row in 0..rows.num_rows() {
            values.clear();
            values.extend(self.keys.iter().map(|(key, index)| value(rows, key, *index, row)));
            match runs.last_mut() {
                Some((_, _, len)) if values == last => *len = len.saturating_add(1),
                _ => runs.push((self.directory(&values), row, 1)),
            }
            std::mem::swap(&mut values, &mut last);
        }
        runs
    }

    fn directory(&self, values: &[PartitionValue<'_>]) -> String {
        let mut path = String::new();
        for ((key, _), value) in self.keys.iter().zip(values) {
            let text = match (key, value) {
                (_, PartitionValue::Null | PartitionValue::Text("")) => NULL_DIRECTORY.to_owned(),
                (PartitionBy::Date, PartitionValue::Number(day)) => date(*day),
                (PartitionBy::Hour, PartitionValue::Number(hour)) => format!("{hour:02}"),
                (_, PartitionValue::Number(number)) => number.to_string(),
                (_, PartitionValue::Bool(value)) => value.to_string(),
                (_, PartitionValue::Text(text)) => escape(text),
            };
            let separator = if path.is_empty() { "" } else { "/" };
            path = path + separator + &escape(key.name()) + "=" + &text;
        }
        path
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum PartitionValue<'a> {
    Null,
    Number(i64),
    Bool(bool),
    Text(&'a str),
}

fn names_a_directory(data_type: &DataType) -> bool {
    use DataType::{Boolean, Int8, Int16, Int32, Int64, Utf8};
    matches!(data_type, Boolean | Int8 | Int16 | Int32 | Int64 | Utf8)
}

fn is_timestamp(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Timestamp(TimeUnit::Millisecond | TimeUnit::Microsecond, _))
}

fn value<'a>(rows: &'a RecordBatch, key: &PartitionBy, index: usize, row: usize) -> PartitionValue<'a> {
    let Some(column) = rows.columns().get(index).filter(|column| column.is_valid(row)) else {
        return PartitionValue::Null;
    };
    match (key, column.data_type()) {
        (PartitionBy::Date, data_type) => seconds(column, data_type, row)
            .map_or(PartitionValue::Null, |seconds| PartitionValue::Number(seconds.div_euclid(SECONDS_A_DAY))),
        (PartitionBy::Hour, data_type) => seconds(column, data_type, row).map_or(PartitionValue::Null, |seconds| {
            PartitionValue::Number(seconds.rem_euclid(SECONDS_A_DAY).div_euclid(3600))
        }),
        (_, DataType::Utf8) => PartitionValue::Text(column.as_string::<i32>().value(row)),
        (_, DataType::Boolean) => PartitionValue::Bool(column.as_boolean().value(row)),
        (_, DataType::Int8) => PartitionValue::Number(column.as_primitive::<Int8Type>().value(row).into()),
        (_, DataType::Int16) => PartitionValue::Number(column.as_primitive::<Int16Type>().value(row).into()),
        (_, DataType::Int32) => PartitionValue::Number(column.as_primitive::<Int32Type>().value(row).into()),
        (_, DataType::Int64) => PartitionValue::Number(column.as_primitive::<Int64Type>().value(row)),
        _ => PartitionValue::Null,
    }
}

/// Seconds since the epoch; `None` for −1 ms, which means no timestamp.
fn seconds(column: &dyn Array, data_type: &DataType, row: usize) -> Option<i64> {
    let milliseconds = match data_type {
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            column.as_primitive::<TimestampMicrosecondType>().value(row).div_euclid(1000)
        }
        _ => column.as_primitive::<TimestampMillisecondType>().value(row),
    };
    (milliseconds != crate::format::NO_TIMESTAMP).then_some(milliseconds.div_euclid(1000))
}

/// Formats a day since 1970-01-01 as year, month and day.
fn date(day: i64) -> String {
    match timestamp_s_to_datetime(day.saturating_mul(SECONDS_A_DAY)) {
        Some(time) => time.date().to_string(),
        None => NULL_DIRECTORY.to_owned(), // more than 262,000 years away
    }
}

/// Escapes a name as Hive does: characters with a meaning in paths or in the layout become `%` and two hexadecimal
/// digits.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if c.is_ascii_control() || "\"#%'*/:=?\\{}[]^".contains(c) {
            // writing to a String does not fail
            let _ = write!(escaped, "%{:02X}", u32::from(c));
        } else {
            escaped.push(c);
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::{date, escape};

    #[test]
    fn date_of_days_is_that_of_the_calendar() {
        let known = [
            (0, "1970-01-01"),
            (-1, "1969-12-31"),
            (59, "1970-03-01"),
            (11_016, "2000-02-29"),
            (20_778, "2026-11-21"),
            (2_932_896, "9999-12-31"),
        ];
        for (day, text) in known {
            assert_eq!(date(day), text);
        }
    }

    #[test]
    fn escape_takes_what_would_change_the_layout() {
        assert_eq!(escape("orders.v2_eu-1"), "orders.v2_eu-1");
        assert_eq!(escape("a/b=c%\n"), "a%2Fb%3Dc%25%0A");
    }
}
