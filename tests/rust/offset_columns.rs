//! Offsets that a scan takes from batch headers: those of the records, and the checks that remain.

use std::sync::Arc;

use kbat::arrow::{ArrowScan, Column, Isolation, OnCorrupt, ScanOptions, ScanSource};
use kbat::{BatchBuilder, Compression, Limits, find_segments};

use crate::data::{data_dir, files};

/// The columns of a record whose values a header shows.
fn columns() -> Vec<Column> {
    let all = Column::all().into_iter();
    all.filter(|column| !["key", "value", "timestamp", "headers", "sequence"].contains(&column.name())).collect()
}

fn scanned(source: &ScanSource, options: &ScanOptions) -> Vec<Result<arrow_array::RecordBatch, String>> {
    ArrowScan::new(vec![source.clone()], options.clone()).map(|rows| rows.map_err(|error| error.to_string())).collect()
}

#[test]
fn rows_of_every_file_are_those_of_the_records() {
    let defaults = ScanOptions { columns: columns(), include_control: true, ..ScanOptions::default() };
    let cases = [
        defaults.clone(),
        ScanOptions { include_control: false, on_corrupt: OnCorrupt::Skip, ..defaults.clone() },
        ScanOptions { isolation: Isolation::ReadCommitted, on_corrupt: OnCorrupt::Report, ..defaults.clone() },
        ScanOptions { start_offset: Some(3), end_offset: Some(40), ..defaults.clone() },
        ScanOptions { start_timestamp: Some(1), ..defaults },
    ];
    let mut rows = 0;
    for path in files(&data_dir(), &["log"]) {
        let source = ScanSource::file(&find_segments(&path).unwrap()[0]);
        for options in &cases {
            let expected = scanned(&source, options);
            let found = scanned(&source, &ScanOptions { offsets_from_headers: true, ..options.clone() });
            assert!(found == expected, "{}: {options:?}", path.display());
            rows += found.iter().flatten().map(arrow_array::RecordBatch::num_rows).sum::<usize>();
        }
    }
    assert!(rows > 10_000);
}

/// A compressed batch of 20 records at offset 100.
fn batch() -> Vec<u8> {
    let mut builder = BatchBuilder::new().base_offset(100).compression(Compression::Zstd);
    for _ in 0..20 {
        builder.append(1_700_000_000_000, None, Some(b"a value that zstd compresses well")).unwrap();
    }
    let mut bytes = Vec::new();
    builder.finish_into(&mut bytes).unwrap();
    bytes
}

/// The error or the number of rows of a scan of some columns.
fn outcome(bytes: &[u8], columns: &[Column], check_crc: bool) -> Result<usize, String> {
    let options =
        ScanOptions { columns: columns.to_vec(), check_crc, offsets_from_headers: true, ..ScanOptions::default() };
    let source = ScanSource::memory(Arc::new(bytes.to_vec()));
    scanned(&source, &options).into_iter().map(|rows| rows.map(|rows| rows.num_rows())).sum()
}

/// The batch with a field of its header and a matching checksum.
fn with_field(position: usize, field: &[u8]) -> Vec<u8> {
    let mut bytes = batch();
    bytes[position..position + field.len()].copy_from_slice(field);
    let crc = crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes
}

/// CRC-32C, by the book.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 })
    };
    !bytes.iter().fold(u32::MAX, step)
}

#[test]
fn checksum_is_verified_and_records_are_not_decoded() {
    let mut flipped = batch();
    flipped[70] ^= 1;
    for columns in [&[Column::Offset][..], &[]] {
        assert_eq!(outcome(&batch(), columns, true), Ok(20));
        assert!(outcome(&flipped, columns, true).unwrap_err().contains("checksum"));
    }
    let broken = with_field(61, &[0; 8]);
    assert_eq!(outcome(&broken, &[Column::Offset], true), Ok(20));
    assert!(outcome(&broken, &[Column::Offset, Column::Timestamp], true).unwrap_err().contains("zstd"));
    assert_eq!(outcome(&flipped, &[Column::Offset], false), Ok(20));
}

#[test]
fn rows_do_not_depend_on_the_columns_if_corruption_does_not_end_the_scan() {
    let broken = ScanSource::memory(Arc::new(with_field(61, &[0; 8])));
    for on_corrupt in [OnCorrupt::Skip, OnCorrupt::Report] {
        for columns in [vec![Column::Offset], vec![], vec![Column::Offset, Column::Value]] {
            let options = ScanOptions { columns, on_corrupt, offsets_from_headers: true, ..ScanOptions::default() };
            let rows = scanned(&broken, &options).into_iter().map(|rows| rows.unwrap().num_rows()).sum::<usize>();
            assert_eq!(rows, usize::from(on_corrupt == OnCorrupt::Report));
        }
    }
}

#[test]
fn limit_of_records_holds() {
    let limits = Limits { record_count: 19, ..Limits::default() };
    let options = ScanOptions { columns: vec![], limits, offsets_from_headers: true, ..ScanOptions::default() };
    let found = scanned(&ScanSource::memory(Arc::new(batch())), &options);
    assert!(found[0].as_ref().unwrap_err().contains("record_count"), "{found:?}");
}

#[test]
fn headers_that_do_not_show_the_offsets_are_not_accepted() {
    let (last_offset_delta, count) = (23, 57);
    assert!(outcome(&with_field(count, &19_i32.to_be_bytes()), &[Column::Offset], true).is_err());
    assert_eq!(outcome(&with_field(last_offset_delta, &20_i32.to_be_bytes()), &[Column::Offset], true), Ok(20));
    // a million records in some hundred bytes
    let mut many = with_field(last_offset_delta, &999_999_i32.to_be_bytes());
    many[count..count + 4].copy_from_slice(&1_000_000_i32.to_be_bytes());
    let crc = crc32c(&many[21..]);
    many[17..21].copy_from_slice(&crc.to_be_bytes());
    assert!(outcome(&many, &[Column::Offset], true).is_err());
    // offsets beyond the largest one
    let last = with_field(0, &(i64::MAX - 5).to_be_bytes());
    let all = [Column::Offset, Column::Timestamp];
    assert_eq!(outcome(&last, &[Column::Offset], true), outcome(&last, &all, true));
}
