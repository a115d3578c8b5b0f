//! A log that grows while it is read.

use std::cell::Cell;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::{Place, replay};
use crate::format::builder::BatchBuilder;
use crate::limits::Limits;
use crate::log::SegmentReader;
use crate::log::committed::Wanted;
use crate::log::producer::ProducerStates;

/// A file that is removed when the test ends.
struct GrowingFile(PathBuf);

impl GrowingFile {
    fn new(bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("kbat-replay-{}.log", std::process::id()));
        fs::write(&path, bytes).unwrap();
        Self(path)
    }

    fn path(&self) -> &Path {
        &self.0
    }

    fn append(&self, bytes: &[u8]) {
        OpenOptions::new().append(true).open(&self.0).unwrap().write_all(bytes).unwrap();
    }
}

impl Drop for GrowingFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn batches_that_a_broker_completes_in_the_meantime_are_no_corruption() {
    let mut bytes = Vec::new();
    let mut half = Vec::new();
    for offset in 0..8 {
        let start = bytes.len();
        let mut builder = BatchBuilder::new().base_offset(offset);
        builder.append(1_700_000_000_000, None, Some(&[b'v'; 100])).unwrap();
        builder.finish_into(&mut bytes).unwrap();
        half.push(start.midpoint(bytes.len()));
    }
    let file = GrowingFile::new(bytes.get(..half[1]).unwrap());
    let pass = Cell::new(1);
    // the file grows by two batches after each time that it is opened
    let open = |limits: &Limits| {
        let reader = SegmentReader::open_with(file.path(), limits)?;
        let from = pass.replace(pass.get() + 2);
        file.append(bytes.get(half[from]..half[from + 2]).unwrap());
        Ok(reader)
    };
    let mut states = ProducerStates::new();
    let wanted = Wanted { fails: true, ..Wanted::ALL };
    let place = Place { base_offset: Some(0), next_base: None };
    replay(open, place, &Limits::default(), &mut states, &wanted).unwrap();
    assert_eq!(pass.get(), 5, "the file was read twice");
    assert_eq!(states.end_offset(), 3);
}
