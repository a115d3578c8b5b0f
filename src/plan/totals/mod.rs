//! [`Total`]: a value that tasks compute of their rows: of batch headers ([`headers`]), or of records.

mod headers;

use std::sync::Arc;

use arrow_array::{
    ArrayRef, Int32Array, Int64Array, RecordBatch, RecordBatchOptions, StringArray, TimestampMicrosecondArray,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef, TimeUnit};
use serde::{Deserialize, Serialize};

use crate::arrow::{Column, Origin, ScanOptions, ScanSource, ScanStats, Visited, microseconds_of, visit_records};
use crate::error::Result;
use crate::format::record::Record;
use crate::num::u64_of;
use crate::plan::arrow_error::arrow_error;

const UTC: &str = "UTC";

/// A value that a task computes of all its rows instead of returning them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Total {
    /// The number of rows.
    Count,
    /// The smallest offset.
    MinOffset,
    /// The largest offset.
    MaxOffset,
    /// The largest timestamp, in microseconds since the epoch; −1000 if no record has one.
    MaxTimestamp,
    /// The number of keys that are not null.
    KeyCount,
    /// The number of values that are not null.
    ValueCount,
}

/// A column by whose values tasks group their totals. All records of a log have the same ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupColumn {
    /// The topic.
    Topic,
    /// The partition.
    Partition,
}

impl Total {
    /// The total with a name: `count`, `min_offset`, `max_offset`, `max_timestamp`, `key_count` or `value_count`.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "count" => Some(Self::Count),
            "min_offset" => Some(Self::MinOffset),
            "max_offset" => Some(Self::MaxOffset),
            "max_timestamp" => Some(Self::MaxTimestamp),
            "key_count" => Some(Self::KeyCount),
            "value_count" => Some(Self::ValueCount),
            _ => None,
        }
    }

    fn data_type(self) -> DataType {
        match self {
            Self::MaxTimestamp => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
            _ => DataType::Int64,
        }
    }
}

impl GroupColumn {
    /// The column with a name in a scan.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::Topic, Self::Partition].into_iter().find(|column| column.column().name() == name)
    }

    fn column(self) -> Column {
        match self {
            Self::Topic => Column::Topic,
            Self::Partition => Column::Partition,
        }
    }
}

/// Whether headers have the totals, at least those of most batches.
pub(crate) fn has_header_totals(totals: &[Total]) -> bool {
    !totals.iter().any(|total| matches!(total, Total::KeyCount | Total::ValueCount))
}

/// The schema of rows of totals. Their columns have no names that matter.
pub(crate) fn schema_of(groups: &[GroupColumn], totals: &[Total]) -> SchemaRef {
    let group = |group: &GroupColumn| match group {
        GroupColumn::Topic => Field::new("topic", DataType::Utf8, true),
        GroupColumn::Partition => Field::new("partition", DataType::Int32, true),
    };
    let total = |total: &Total| Field::new("total", total.data_type(), true);
    Arc::new(Schema::new(groups.iter().map(group).chain(totals.iter().map(total)).collect::<Vec<_>>()))
}

/// The totals that a task computes.
#[derive(Debug, Clone, Copy)]
struct Wanted<'t>(&'t [Total]);

impl Wanted<'_> {
    fn any_of(self, totals: &[Total]) -> bool {
        self.0.iter().any(|total| totals.contains(total))
    }

    fn offsets(self) -> bool {
        self.any_of(&[Total::MinOffset, Total::MaxOffset])
    }

    fn timestamps(self) -> bool {
        self.any_of(&[Total::MaxTimestamp])
    }

    fn keys(self) -> bool {
        self.any_of(&[Total::KeyCount])
    }

    fn values(self) -> bool {
        self.any_of(&[Total::ValueCount])
    }

    /// The columns of a scan that has the totals.
    fn columns(self) -> Vec<Column> {
        let wanted = [
            (true, Column::Offset),
            (self.timestamps(), Column::Timestamp),
            (self.keys(), Column::Key),
            (self.values(), Column::Value),
        ];
        wanted.into_iter().filter_map(|(is_wanted, column)| is_wanted.then_some(column)).collect()
    }
}

/// The totals of what was read so far.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    rows: u64,
    offsets: Option<(i64, i64)>,
    /// In microseconds since the epoch.
    max_timestamp: Option<i64>,
    /// Those that are not null.
    keys: u64,
    values: u64,
    pub(crate) stats: ScanStats,
}

impl Totals {
    /// Adds the records of some sources, which are decoded if their headers are not enough.
    ///
    /// # Errors
    /// Corruption; timestamps that do not fit microseconds; I/O errors.
    pub(crate) fn add_records(
        &mut self,
        sources: Vec<ScanSource>,
        totals: &[Total],
        options: &ScanOptions,
    ) -> Result<()> {
        self.decode(sources, Wanted(totals), options)
    }

    fn decode(&mut self, sources: Vec<ScanSource>, wanted: Wanted<'_>, options: &ScanOptions) -> Result<()> {
        let options = ScanOptions { columns: wanted.columns(), ..options.clone() };
        let (stats, result) = visit_records(sources, &options, |visited| match visited {
            Visited::Records(records) => self.add_all(records, wanted),
            Visited::Offsets(offsets) => {
                let count = offsets.end().abs_diff(*offsets.start()).saturating_add(1);
                self.add(count, Some((*offsets.start(), *offsets.end())), None);
                Ok(())
            }
        });
        self.stats = self.stats.plus(&stats);
        result
    }

    fn add_all(&mut self, records: &[Record<'_>], wanted: Wanted<'_>) -> Result<()> {
        let offsets = || records.iter().map(Record::offset);
        self.add(u64_of(records.len()), offsets().min().zip(offsets().max()), None);
        if wanted.timestamps() {
            for record in records {
                self.max_timestamp = self.max_timestamp.max(Some(microseconds_of(record)?));
            }
        }
        let count = |part: fn(&Record<'_>) -> bool| u64_of(records.iter().filter(|record| part(record)).count());
        if wanted.keys() {
            self.keys = self.keys.saturating_add(count(|record| record.key().is_some()));
        }
        if wanted.values() {
            self.values = self.values.saturating_add(count(|record| record.value().is_some()));
        }
        Ok(())
    }

    fn add(&mut self, count: u64, offsets: Option<(i64, i64)>, timestamp: Option<i64>) {
        self.rows = self.rows.saturating_add(count);
        self.offsets = match (self.offsets, offsets) {
            (Some((low, high)), Some((first, last))) => Some((low.min(first), high.max(last))),
            (one, other) => one.or(other),
        };
        self.max_timestamp = self.max_timestamp.max(timestamp);
    }

    fn total(&self, total: Total) -> Option<i64> {
        match total {
            Total::Count => i64::try_from(self.rows).ok(),
            Total::KeyCount => i64::try_from(self.keys).ok(),
            Total::ValueCount => i64::try_from(self.values).ok(),
            Total::MinOffset => self.offsets.map(|(low, _)| low),
            Total::MaxOffset => self.offsets.map(|(_, high)| high),
            Total::MaxTimestamp => self.max_timestamp,
        }
    }
}

/// The totals of each partition that a task reads, or of all of them.
#[derive(Default)]
pub(crate) struct Groups {
    done: Vec<(Origin, Totals)>,
    current: Option<(Origin, Totals)>,
}

impl Groups {
    /// The totals of the records with an origin. Without columns to group by, all have the same.
    pub(crate) fn of(&mut self, origin: &Origin, columns: &[GroupColumn]) -> &mut Totals {
        let group = Origin {
            topic: origin.topic.clone().filter(|_| columns.contains(&GroupColumn::Topic)),
            partition: origin.partition.filter(|_| columns.contains(&GroupColumn::Partition)),
            segment: None,
        };
        if self.current.as_ref().is_some_and(|(current, _)| *current != group) {
            self.done.extend(self.current.take());
        }
        &mut self.current.get_or_insert_with(|| (group, Totals::default())).1
    }

    /// The counts of what was read and lost.
    pub(crate) fn stats(&self) -> ScanStats {
        let all = self.done.iter().chain(&self.current);
        all.fold(ScanStats::default(), |sum, (_, totals)| sum.plus(&totals.stats))
    }

    /// A row for each group that has records, or the only row. A group may have several rows.
    pub(crate) fn rows(mut self, columns: &[GroupColumn], totals: &[Total]) -> Result<RecordBatch> {
        if columns.is_empty() {
            self.of(&Origin::default(), columns);
        }
        let mut found = self.done;
        found.extend(self.current);
        found.retain(|(_, totals)| totals.rows > 0 || columns.is_empty());
        let groups = columns.iter().map(|column| -> ArrayRef {
            let origins = found.iter().map(|(origin, _)| origin);
            match column {
                GroupColumn::Topic => Arc::new(origins.map(|origin| origin.topic.as_deref()).collect::<StringArray>()),
                GroupColumn::Partition => Arc::new(origins.map(|origin| origin.partition).collect::<Int32Array>()),
            }
        });
        let totals_of = totals.iter().map(|total| -> ArrayRef {
            let values = found.iter().map(|(_, found)| found.total(*total));
            match total {
                Total::MaxTimestamp => Arc::new(values.collect::<TimestampMicrosecondArray>().with_timezone(UTC)),
                _ => Arc::new(values.collect::<Int64Array>()),
            }
        });
        let rows = RecordBatchOptions::new().with_row_count(Some(found.len()));
        RecordBatch::try_new_with_options(schema_of(columns, totals), groups.chain(totals_of).collect(), &rows)
            .map_err(|error| arrow_error(&error))
    }
}
