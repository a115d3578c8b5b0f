//! Arrow batches in the form that a task returns: only its own rows, and its columns in their order.

use std::sync::Arc;

use arrow_array::builder::BooleanBuilder;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, BooleanArray, ListArray, RecordBatch, RecordBatchOptions};
use arrow_buffer::NullBuffer;
use arrow_select::filter::filter_record_batch;

use crate::arrow::OnCorrupt;
use crate::arrow::column_table::ERROR_COLUMN;
use crate::error::Result;
use crate::plan::arrow_error::arrow_error;
use crate::plan::interval::Interval;
use crate::plan::pieces::Piece;
use crate::plan::rows::OFFSET;

/// Omits the rows that other pieces return: corruption that another window reports, and the rest of a split batch.
pub(super) fn own_rows(batch: &RecordBatch, pieces: &[Piece], on_corrupt: OnCorrupt) -> Result<RecordBatch> {
    let part = pieces.first().map_or(Interval::EVERYTHING, |first| first.part);
    let has_foreign_faults = on_corrupt == OnCorrupt::Report && pieces.iter().any(|piece| piece.own_end.is_some());
    if part == Interval::EVERYTHING && !has_foreign_faults {
        return Ok(batch.clone());
    }
    let faults = batch.column_by_name(ERROR_COLUMN.name).filter(|_| has_foreign_faults).map(AsArray::as_struct);
    let offsets = batch.column_by_name(OFFSET).map(AsArray::as_primitive::<Int64Type>);
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

/// The columns in the order of the task. If `is_null`, empty lists become null.
pub(super) fn in_order(batch: &RecordBatch, names: &[String], is_null: bool) -> Result<RecordBatch> {
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
