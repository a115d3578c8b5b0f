//! Batches to Arrow columns. `cargo bench --features arrow --bench columns`

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
use kbat::arrow::{ArrowScan, Column, ScanOptions, ScanSource};

mod data;

fn columns(criterion: &mut Criterion) {
    for (name, value_len, shape) in data::shapes() {
        let rows = data::rows(value_len);
        let source = ScanSource::memory(Arc::new(data::segment(&rows, &shape)));
        let mut group = criterion.benchmark_group(&name);
        group.throughput(Throughput::Elements(rows.len() as u64));
        for (what, columns) in [
            ("4 columns", vec![Column::Offset, Column::Timestamp, Column::Key, Column::Value]),
            ("default columns", Column::DEFAULT.to_vec()),
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

criterion_group! {
    name = benches;
    config = data::criterion(20);
    targets = columns
}
criterion_main!(benches);
