//! Measures converting batches to Arrow columns and back. `cargo bench --features arrow --bench columns`

#![allow(
    missing_docs,
    clippy::as_conversions,
    clippy::arithmetic_side_effects,
    reason = "a bench has no API and no untrusted input"
)]
#![allow(
    clippy::pedantic,
    clippy::indexing_slicing,
    clippy::expect_used,
    reason = "a bench has no API and no untrusted input"
)]

use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kbat::arrow::{ArrowScan, Column, EncodeOptions, EncodedBatches, ScanOptions, ScanSource};

mod data;

fn columns(criterion: &mut Criterion) {
    for (name, value_len, shape) in data::shapes() {
        let rows = data::rows(value_len);
        let source = ScanSource::memory(Arc::new(data::segment(&rows, &shape)));
        let mut group = criterion.benchmark_group(&name);
        group.throughput(Throughput::Elements(rows.len() as u64));
        for (what, columns) in [
            ("4 columns", vec![Column::Offset, Column::Timestamp, Column::Key, Column::Value]),
            ("default columns", Column::defaults()),
            ("offset only", vec![Column::Offset]),
        ] {
            let options = ScanOptions { columns, ..ScanOptions::default() };
            group.bench_function(what, |bencher| {
                bencher.iter(|| {
                    let scan = ArrowScan::new(vec![source.clone()], options.clone());
                    scan.map(|batch| batch.expect("readable").num_rows()).sum::<usize>()
                });
            });
        }
        group.finish();
    }
}

fn rows(criterion: &mut Criterion) {
    for (name, value_len, shape) in data::shapes() {
        let rows = data::rows(value_len);
        let source = ScanSource::memory(Arc::new(data::segment(&rows, &shape)));
        let scan = ArrowScan::new(vec![source], ScanOptions::default());
        let schema = scan.schema();
        let arrow_batches: Vec<_> = scan.map(|batch| batch.expect("readable")).collect();
        let options = EncodeOptions {
            magic: shape.magic,
            compression: shape.compression,
            batch_bytes: 16 << 10,
            ..EncodeOptions::default()
        };
        let mut group = criterion.benchmark_group(&name);
        group.throughput(Throughput::Elements(rows.len() as u64));
        group.bench_function("encode columns", |bencher| {
            bencher.iter(|| {
                let batches = EncodedBatches::new(&schema, arrow_batches.iter().cloned().map(Ok), options);
                let batches = batches.expect("these columns can be encoded");
                batches.map(|batch| batch.expect("writable").bytes.len()).sum::<usize>()
            });
        });
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = data::criterion(20);
    targets = columns, rows
}
criterion_main!(benches);
