//! The records of all benches, generated with a fixed seed: 16-byte keys, and JSON values of 100 or 1,000 bytes with
//! words of a small vocabulary, so that they compress like those of real topics. Timestamps increase by 0 to 3 ms.

#![allow(dead_code, reason = "each bench uses only some of the items")]

use std::time::Duration;

use criterion::Criterion;
use kbat::format::NewHeader;
use kbat::{BatchBuilder, Compression};

/// Bytes of a batch before compression.
const BATCH_LEN: usize = 16 << 10;
/// Bytes of records in one set.
const TOTAL_LEN: usize = 8 << 20;

const WORDS: [&str; 16] = [
    "order", "view", "cart", "refund", "region", "queue", "batch", "note", "event", "click", "paid", "retry",
    "eu-west", "us-east", "pending", "shipped",
];

/// A record to write.
pub(crate) struct Row {
    pub(crate) timestamp: i64,
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below
    }
}

/// Rows whose values have `value_len` bytes.
pub(crate) fn rows(value_len: usize) -> Vec<Row> {
    let mut random = Random(1);
    let mut timestamp = 1_700_000_000_000;
    (0..TOTAL_LEN / (value_len + 25))
        .map(|_| {
            timestamp += random.next(4) as i64;
            let key = format!("{:016x}", random.next(u64::MAX)).into_bytes();
            let mut value = format!("{{\"id\":{},\"text\":\"", random.next(1 << 40));
            while value.len() < value_len - 2 {
                value.push_str(WORDS[random.next(16) as usize]);
                value.push(' ');
            }
            value.truncate(value_len - 2);
            value.push_str("\"}");
            Row { timestamp, key, value: value.into_bytes() }
        })
        .collect()
}

/// The format of the batches that rows are written to.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) magic: u8,
    pub(crate) compression: Compression,
    pub(crate) headers: usize,
    pub(crate) batch_len: usize,
}

impl Shape {
    pub(crate) fn new(compression: Compression) -> Self {
        Self { magic: 2, compression, headers: 0, batch_len: BATCH_LEN }
    }
}

/// The rows of one batch each.
pub(crate) fn batches_of<'a>(rows: &'a [Row], shape: &Shape) -> impl Iterator<Item = (usize, &'a [Row])> {
    let per = (shape.batch_len / (rows[0].value.len() + 25)).max(1);
    rows.chunks(per).enumerate().map(move |(i, rows)| (i * per, rows))
}

/// Appends one batch.
pub(crate) fn write(base: usize, rows: &[Row], shape: &Shape, out: &mut Vec<u8>) {
    let headers: [NewHeader; 3] = [(b"trace-id", Some(b"7f3a9c")), (b"source", Some(b"checkout")), (b"empty", None)];
    let mut builder = BatchBuilder::new().magic(shape.magic).compression(shape.compression).base_offset(base as i64);
    for row in rows {
        builder
            .append_with_headers(row.timestamp, Some(&row.key), Some(&row.value), &headers[..shape.headers])
            .expect("the rows are well-formed");
    }
    builder.finish_into(out).expect("the settings are well-formed");
}

/// A segment of those rows.
pub(crate) fn segment(rows: &[Row], shape: &Shape) -> Vec<u8> {
    let mut out = Vec::new();
    if shape.magic < 2 && shape.compression == Compression::None {
        write(0, rows, shape, &mut out);
        return out;
    }
    for (base, rows) in batches_of(rows, shape) {
        write(base, rows, shape, &mut out);
    }
    out
}

/// The measured shapes: name, length of values, and settings.
pub(crate) fn shapes() -> Vec<(String, usize, Shape)> {
    let mut shapes = Vec::new();
    for (name, value_len) in [("100B", 100), ("1KB", 1000)] {
        for compression in Compression::ALL {
            shapes.push((format!("{name}-{compression}"), value_len, Shape::new(compression)));
        }
    }
    let none = Shape::new(Compression::None);
    let lz4 = Shape::new(Compression::Lz4);
    shapes.push(("100B-none-1MB-batches".into(), 100, Shape { batch_len: 1 << 20, ..none }));
    shapes.push(("100B-lz4-1MB-batches".into(), 100, Shape { batch_len: 1 << 20, ..lz4 }));
    shapes.push(("100B-none-3-headers".into(), 100, Shape { headers: 3, ..none }));
    shapes.push(("100B-lz4-3-headers".into(), 100, Shape { headers: 3, ..lz4 }));
    shapes.push(("100B-none-v1".into(), 100, Shape { magic: 1, ..none }));
    shapes.push(("100B-lz4-v1".into(), 100, Shape { magic: 1, ..lz4 }));
    shapes
}

/// The time of each bench: one second after a short warm-up.
pub(crate) fn criterion(samples: usize) -> Criterion {
    Criterion::default()
        .sample_size(samples)
        .measurement_time(Duration::from_secs(1))
        .warm_up_time(Duration::from_millis(300))
}
