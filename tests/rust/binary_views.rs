//! `binary_view`: the same values as a scan with `binary`, without copies.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, RecordBatch};
use kbat::arrow::{ArrowScan, Column, OnCorrupt, ScanOptions, ScanSource};
use kbat::{BatchBuilder, Compression, find_segments};

use crate::data::{data_dir, files};

fn options(binary_view: bool) -> ScanOptions {
    let columns = vec![Column::Key, Column::Value, Column::Headers, Column::Offset];
    ScanOptions { columns, binary_view, include_control: true, on_corrupt: OnCorrupt::Skip, ..ScanOptions::default() }
}

fn scanned(source: &ScanSource, options: &ScanOptions) -> Vec<RecordBatch> {
    ArrowScan::new(vec![source.clone()], options.clone()).map(Result::unwrap).collect()
}

/// The values of a `binary` or `binary_view` column.
fn values(column: &ArrayRef) -> Vec<Option<&[u8]>> {
    match column.as_binary_view_opt() {
        Some(views) => views.iter().collect(),
        None => column.as_binary::<i32>().iter().collect(),
    }
}

/// Keys, values and header values of all Arrow batches.
fn all_values(batches: &[RecordBatch]) -> [Vec<Option<Vec<u8>>>; 3] {
    fn owned(values: Vec<Option<&[u8]>>) -> Vec<Option<Vec<u8>>> {
        values.into_iter().map(|value| value.map(<[u8]>::to_vec)).collect()
    }
    let column = |index: usize| batches.iter().flat_map(|batch| owned(values(batch.column(index)))).collect();
    let headers = batches.iter().flat_map(|batch| {
        // a slice of a list array has the elements of the complete array
        let lists = batch.column(2).as_list::<i32>().iter().flatten();
        lists.flat_map(|list| owned(values(list.as_struct().column(1)))).collect::<Vec<_>>()
    });
    [column(0), column(1), headers.collect()]
}

#[test]
fn values_of_every_file_are_those_of_the_copying_scan() {
    for path in files(&data_dir(), &["log"]) {
        let file = ScanSource::file(&find_segments(&path).unwrap()[0]);
        let buffer = ScanSource::memory(Arc::new(std::fs::read(&path).unwrap()));
        let expected = all_values(&scanned(&file, &options(false)));
        for source in [&file, &buffer] {
            // all Arrow batches are kept until the last one has been read
            let viewed = scanned(source, &ScanOptions { max_rows: 50, ..options(true) });
            assert!(all_values(&viewed) == expected, "{}", path.display());
        }
    }
}

#[test]
fn schema_says_what_the_arrays_are() {
    let source = ScanSource::memory(Arc::new(batches(3, 5, 100, Compression::Lz4)));
    for batch in scanned(&source, &options(true)) {
        assert_eq!(batch.schema(), options(true).schema());
    }
}

/// Batches with a number of records per batch and bytes per value.
fn batches(count: u8, records: u8, value_len: usize, compression: Compression) -> Vec<u8> {
    let mut bytes = Vec::new();
    for index in 0..count {
        let mut builder = BatchBuilder::new().base_offset(i64::from(index) * 100).compression(compression);
        for record in 0..records {
            let header = (&b"h"[..], Some(&[index, record, 3][..]));
            let (key, value) = ([index, record], vec![index ^ record; value_len]);
            builder.append_with_headers(1, Some(&key), Some(&value), &[header]).unwrap();
        }
        builder.finish_into(&mut bytes).unwrap();
    }
    bytes
}

#[test]
fn values_of_an_uncompressed_buffer_lie_in_it() {
    let bytes = Arc::new(batches(20, 20, 1000, Compression::None));
    let range = bytes.as_ptr_range();
    let source = ScanSource::memory(Arc::<Vec<u8>>::clone(&bytes));
    let viewed = scanned(&source, &options(true));
    let pointers = |column: usize| {
        let values = viewed.iter().flat_map(move |batch| values(batch.column(column)));
        values.map(|value| value.unwrap().as_ptr()).collect::<Vec<_>>()
    };
    assert_eq!(pointers(1).len(), 400);
    assert!(pointers(1).iter().all(|pointer| range.contains(pointer)));
    assert!(!pointers(0).iter().any(|pointer| range.contains(pointer)), "short values are in their views");
    let copied = scanned(&source, &options(false));
    assert!(!values(copied[0].column(1)).iter().any(|value| range.contains(&value.unwrap().as_ptr())));
    drop((source, copied));
    assert!(Arc::strong_count(&bytes) > 1, "Arrow batches hold the buffer");
}

#[test]
fn an_arrow_batch_holds_no_more_than_was_asked_for() {
    const MIB: usize = 1 << 20;
    for (compression, value_len) in [(Compression::None, 20_000), (Compression::Lz4, 20_000), (Compression::None, 13)] {
        let bytes = batches(200, 20, value_len, compression);
        let path =
            std::env::temp_dir().join(format!("kbat-views-{}-{value_len}-{compression}.log", std::process::id()));
        std::fs::write(&path, &bytes).unwrap();
        let file = ScanSource::file(&find_segments(&path).unwrap()[0]);
        for source in [file, ScanSource::memory(Arc::new(bytes))] {
            let is_file = source.path().is_some();
            for batch in scanned(&source, &ScanOptions { columns: vec![Column::Value], ..options(true) }) {
                let views = batch.column(0).as_binary_view();
                let held: usize = views.data_buffers().iter().map(arrow_buffer::Buffer::len).sum();
                // a window, and the bytes of the last batch
                assert!(!is_file || held <= 2 * MIB + MIB + 20 * value_len + MIB, "{held}");
                assert!(batch.num_rows() * value_len <= 3 * MIB, "{}", batch.num_rows());
            }
        }
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn arrow_batches_have_about_as_many_rows_as_those_of_the_copying_scan() {
    let bytes = batches(200, 20, 1000, Compression::None);
    let path = std::env::temp_dir().join(format!("kbat-views-rows-{}.log", std::process::id()));
    std::fs::write(&path, &bytes).unwrap();
    let file = ScanSource::file(&find_segments(&path).unwrap()[0]);
    let [viewed, copied] = [true, false].map(|binary_view| scanned(&file, &options(binary_view)).len());
    std::fs::remove_file(path).unwrap();
    assert!((copied..=copied + 1).contains(&viewed), "{viewed}, {copied}");
}

#[test]
fn arrow_batch_of_many_small_files_keeps_little_alive() {
    let directory = std::env::temp_dir().join(format!("kbat-views-files-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    for file in 0..200 {
        std::fs::write(directory.join(format!("{file:020}.log")), batches(1, 1, 100, Compression::None)).unwrap();
    }
    let sources = find_segments(&directory).unwrap().iter().map(ScanSource::file).collect::<Vec<_>>();
    let wanted = ScanOptions { columns: vec![Column::Value], ..options(true) };
    let mut rows = 0;
    for batch in ArrowScan::new(sources, wanted) {
        let batch = batch.unwrap();
        let buffers = batch.column(0).as_binary_view().data_buffers().iter();
        assert!(buffers.map(arrow_buffer::Buffer::len).sum::<usize>() <= 5 << 20);
        rows += batch.num_rows();
    }
    std::fs::remove_dir_all(directory).unwrap();
    assert_eq!(rows, 200);
}
