//! Counts the records of a segment, with every checksum verified.
//!
//! cargo run --example read [SEGMENT]

#![allow(clippy::arithmetic_side_effects, clippy::print_stdout, reason = "an example counts and prints")]

use kbat::{Limits, Scratch};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1);
    let path = path.as_deref().unwrap_or("tests/data/log-dir/codec-zstd-0/00000000000000000000.log");
    let bytes = std::fs::read(path)?;
    let (mut scratch, limits) = (Scratch::new(), Limits::default());
    let (mut records, mut nulls) = (0, 0);
    for batch in kbat::batches(&bytes) {
        let batch = batch?;
        batch.verify_crc()?;
        for record in batch.records(&mut scratch, &limits)? {
            records += 1;
            nulls += usize::from(record?.value().is_none());
        }
    }
    println!("{records} records, {nulls} of them without a value");
    Ok(())
}
