//! Columns that records are added to one by one: the same rows and errors as with a further column, with which each
//! column is filled from many records at once.

use std::sync::Arc;

use arrow_array::RecordBatch;
use kbat::arrow::{ArrowScan, Column, OnCorrupt, ScanOptions, ScanSource, TimestampUnit};
use kbat::{BatchBuilder, find_segments};

use crate::data::{data_dir, files};

type Scanned = Vec<Result<RecordBatch, String>>;

fn scanned(source: &ScanSource, options: &ScanOptions) -> Scanned {
    ArrowScan::new(vec![source.clone()], options.clone()).map(|rows| rows.map_err(|error| error.to_string())).collect()
}

/// The same scan with the column of sequences, which is then dropped.
fn expected(source: &ScanSource, options: &ScanOptions) -> Scanned {
    let columns = [&options.columns[..], &[Column::Sequence]].concat();
    let mut kept: Vec<_> = (0..options.columns.len()).collect();
    if options.on_corrupt == OnCorrupt::Report {
        kept.push(columns.len()); // the column of errors
    }
    let rows = scanned(source, &ScanOptions { columns, ..options.clone() });
    rows.into_iter().map(|rows| rows.map(|rows| rows.project(&kept).unwrap())).collect()
}

fn all_columns() -> ScanOptions {
    ScanOptions {
        columns: vec![Column::Key, Column::Value, Column::Topic, Column::Offset, Column::Timestamp, Column::Headers],
        include_control: true,
        max_rows: 300,
        max_bytes: 20_000,
        ..ScanOptions::default()
    }
}

fn cases() -> Vec<ScanOptions> {
    let all = all_columns();
    vec![
        all.clone(),
        ScanOptions { timestamp_unit: TimestampUnit::Microsecond, missing_timestamp: Some(-1), ..all.clone() },
        ScanOptions { columns: vec![Column::Value], ..all.clone() },
        ScanOptions { columns: vec![Column::Timestamp, Column::Key], start_offset: Some(3), ..all.clone() },
        ScanOptions { start_offset: Some(2), end_offset: Some(40), ..all.clone() },
        ScanOptions { start_timestamp: Some(1_500_000_000_000), end_timestamp: Some(1_800_000_000_000), ..all },
    ]
}

#[test]
fn rows_of_every_file_are_those_of_any_columns() {
    let mut rows = 0;
    for path in files(&data_dir(), &["log"]) {
        let segment = find_segments(&path).unwrap().swap_remove(0);
        let bytes = Arc::new(std::fs::read(&path).unwrap());
        for source in [ScanSource::file(&segment), ScanSource::memory(bytes)] {
            for options in cases() {
                let found = scanned(&source, &options);
                assert!(found == expected(&source, &options), "{}: {options:?}", path.display());
                rows += found.iter().flatten().map(RecordBatch::num_rows).sum::<usize>();
            }
        }
    }
    assert!(rows > 100_000, "{rows}");
}

#[test]
fn rows_and_errors_of_damaged_files_are_those_of_any_columns() {
    let (mut random, mut errors) = (1_u64, 0);
    for path in files(&data_dir(), &["log"]) {
        let whole = std::fs::read(&path).unwrap();
        for _ in 0..if whole.len() > 100_000 { 0 } else { 8 } {
            let mut bytes = whole.clone();
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let place = usize::try_from(random >> 33).unwrap() % bytes.len().max(1);
            if let Some(byte) = bytes.get_mut(place) {
                *byte ^= 1 << (random >> 30 & 7);
            }
            let source = ScanSource::memory(Arc::new(bytes));
            for on_corrupt in [OnCorrupt::Fail, OnCorrupt::Skip, OnCorrupt::Report] {
                let options = ScanOptions { check_crc: false, on_corrupt, ..all_columns() };
                let found = scanned(&source, &options);
                assert_eq!(found, expected(&source, &options), "{}", path.display());
                errors += found.iter().filter(|rows| rows.is_err()).count();
            }
        }
    }
    assert!(errors > 100, "{errors}");
}

#[test]
fn nulls_of_many_batches_stay_in_their_rows() {
    let mut bytes = Vec::new();
    let mut keys = Vec::new();
    for batch in 0..40_i64 {
        let mut builder = BatchBuilder::new().base_offset(batch * 10);
        for record in 0..10 {
            let key = (record % (batch + 1) != 3).then_some(&b"a key"[..]);
            builder.append(1_700_000_000_000, key, (batch % 7 != 2).then_some(&b"value"[..])).unwrap();
            keys.push(key);
        }
        builder.finish_into(&mut bytes).unwrap();
    }
    let source = ScanSource::memory(Arc::new(bytes));
    for max_rows in [7, 10, 35, 1000] {
        let options = ScanOptions { max_rows, ..all_columns() };
        let found = scanned(&source, &options);
        assert_eq!(found, expected(&source, &options));
        let column = |rows: &RecordBatch| rows.column(0).as_any().downcast_ref::<arrow_array::BinaryArray>().cloned();
        let arrays: Vec<_> = found.iter().map(|rows| column(rows.as_ref().unwrap()).unwrap()).collect();
        assert_eq!(arrays.iter().flatten().collect::<Vec<_>>(), keys);
    }
}

#[test]
fn column_that_is_listed_twice_has_the_same_values_twice() {
    let path = files(&data_dir(), &["log"]).into_iter().find(|path| path.to_string_lossy().contains("tiny-batches"));
    let source = ScanSource::memory(Arc::new(std::fs::read(path.unwrap()).unwrap()));
    let columns = vec![Column::Value, Column::Offset, Column::Value, Column::Offset];
    let found = scanned(&source, &ScanOptions { columns, ..all_columns() });
    for rows in &found {
        let rows = rows.as_ref().unwrap();
        assert_eq!((rows.column(0), rows.column(1)), (rows.column(2), rows.column(3)));
    }
    assert!(!found.is_empty());
}
