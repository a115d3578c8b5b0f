//! Measures encoding rows as batches. `cargo bench --bench encode`

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

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

mod data;

fn encode(criterion: &mut Criterion) {
    for (name, value_len, shape) in data::shapes() {
        let rows = data::rows(value_len);
        let mut out = Vec::new();
        let mut group = criterion.benchmark_group(&name);
        group.throughput(Throughput::Elements(rows.len() as u64));
        group.bench_function("encode", |bencher| {
            bencher.iter(|| {
                for (base, rows) in data::batches_of(black_box(&rows), &shape) {
                    out.clear();
                    data::write(base, rows, &shape, &mut out);
                }
            });
        });
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = data::criterion(10);
    targets = encode
}
criterion_main!(benches);
