//! Measures reading: batch headers, records, records with checksums, record headers. `cargo bench --bench decode`

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
use kbat::{Limits, Scratch};
use std::hint::black_box;

mod data;

fn walk(bytes: &[u8]) -> usize {
    kbat::batches(bytes).map(|batch| batch.expect("whole").size()).sum()
}

fn iterate(bytes: &[u8], scratch: &mut Scratch, check_crc: bool, headers: bool) -> i64 {
    let limits = Limits::default();
    let mut sum = 0;
    for batch in kbat::batches(bytes) {
        let batch = batch.expect("whole");
        if check_crc {
            batch.verify_crc().expect("right");
        }
        for record in batch.records(scratch, &limits).expect("readable") {
            let record = record.expect("readable");
            sum += record.offset() + record.timestamp();
            sum +=
                i64::from(record.key().map_or(0, |key| key[0])) + record.value().map_or(0, |value| value.len() as i64);
            if headers {
                sum += record.headers().map(|header| header.expect("readable").key().len() as i64).sum::<i64>();
            }
        }
    }
    sum
}

fn decode(criterion: &mut Criterion) {
    let mut scratch = Scratch::new();
    for (name, value_len, shape) in data::shapes() {
        let rows = data::rows(value_len);
        let bytes = data::segment(&rows, &shape);
        let mut group = criterion.benchmark_group(&name);
        group.throughput(Throughput::Elements(rows.len() as u64));
        group.bench_function("header walk", |bencher| bencher.iter(|| walk(black_box(&bytes))));
        group.bench_function("iterate", |bencher| {
            bencher.iter(|| iterate(black_box(&bytes), &mut scratch, false, false));
        });
        group.bench_function("iterate + CRC", |bencher| {
            bencher.iter(|| iterate(black_box(&bytes), &mut scratch, true, false));
        });
        if shape.headers > 0 {
            group.bench_function("iterate + CRC + headers", |bencher| {
                bencher.iter(|| iterate(black_box(&bytes), &mut scratch, true, true));
            });
        }
        group.finish();
    }
}

criterion_group! {
    name = benches;
    config = data::criterion(20);
    targets = decode
}
criterion_main!(benches);
