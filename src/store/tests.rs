//! Reads the corpora through a [`Store`] in memory, and compares every answer with that of the file system.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Error as IoError, ErrorKind as IoErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::io::{Location, Progress, Status, StatusKind, Store, StoredFile};
use crate::limits::Limits;
use crate::log::{LogDirectory, PartitionLog, SegmentReader};
use crate::plan::find_segments;
use crate::repair::{SalvageOptions, salvage, verify};

const DATA: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");

/// Files in memory, under `memory://bucket`.
#[derive(Debug)]
struct MemoryStore(BTreeMap<PathBuf, &'static [u8]>);

impl MemoryStore {
    /// Copies a directory.
    fn of(directory: &Path) -> Location {
        let mut files = BTreeMap::new();
        let root = Path::new("memory://bucket").join(directory.file_name().unwrap());
        let mut pending = vec![directory.to_path_buf()];
        while let Some(path) = pending.pop() {
            if path.is_dir() {
                pending.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            } else {
                let bytes: &'static [u8] = std::fs::read(&path).unwrap().leak();
                files.insert(root.join(path.strip_prefix(directory).unwrap()), bytes);
            }
        }
        Location::in_store(root, Arc::new(Self(files)))
    }
}

impl Store for MemoryStore {
    fn status(&self, path: &Path) -> Result<Status> {
        if let Some(bytes) = self.0.get(path) {
            return Ok(Status { kind: StatusKind::File, len: u64::try_from(bytes.len()).unwrap(), modified: None });
        }
        if self.0.keys().any(|key| key.starts_with(path)) {
            return Ok(Status { kind: StatusKind::Directory, len: 0, modified: None });
        }
        Err(Error::from(IoError::from(IoErrorKind::NotFound)).with_path(path))
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        self.status(directory)?;
        let child = |key: &PathBuf| Some(directory.join(key.strip_prefix(directory).ok()?.iter().next()?));
        let mut found: Vec<_> = self.0.keys().filter_map(child).collect();
        found.dedup();
        Ok(found)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn StoredFile>> {
        self.status(path)?;
        Ok(Box::new(*self.0.get(path).unwrap()))
    }
}

/// The answers of a location, without its path.
fn answers(location: &Location) -> String {
    let mut text = String::new();
    let limits = Limits::default();
    let plain = |text: String| text.replace(&location.display().to_string(), "");
    match find_segments(location) {
        Ok(segments) => {
            for segment in segments {
                writeln!(text, "{:?} {:?} {}", segment.partition, segment.base_offset, segment.size).unwrap();
                let mut reader = SegmentReader::open_with(&segment.path, &limits).unwrap();
                while let Some(batch) = reader.next_batch() {
                    let batch = batch.map(|batch| (batch.position(), batch.base_offset(), batch.crc()));
                    writeln!(text, "{}", plain(format!("{batch:?}"))).unwrap();
                }
            }
        }
        Err(error) => writeln!(text, "{}", plain(error.to_string())).unwrap(),
    }
    let logs = LogDirectory::open(location).map(|directory| directory.partitions().to_vec());
    for log in logs.into_iter().flatten().chain(PartitionLog::open(location)) {
        let end = log.end_offset().map_err(|error| plain(error.to_string()));
        let stable = log.last_stable_offset().map_err(|error| plain(error.to_string()));
        writeln!(text, "{} {end:?} {stable:?} {:?}", log.start_offset(), log.leader_epochs().ok()).unwrap();
        for offset in 0..40 {
            let place = log.find_offset(offset).map(|found| found.map(|(_, place)| place));
            writeln!(text, "{}", plain(format!("{place:?}"))).unwrap();
        }
    }
    let report = verify(location, &limits, &mut Progress::none()).map(|report| report.to_string());
    writeln!(text, "{}", plain(format!("{report:?}"))).unwrap();
    text
}

#[test]
fn a_store_gives_the_answers_of_the_file_system() {
    let mut count = 0;
    for root in ["corpus", "corpus-legacy", "log-dir"] {
        let mut cases = vec![Path::new(DATA).join(root)];
        cases.extend(std::fs::read_dir(Path::new(DATA).join(root)).unwrap().map(|case| case.unwrap().path()));
        for case in cases.into_iter().filter(|case| case.is_dir()) {
            assert_eq!(answers(&MemoryStore::of(&case)), answers(&Location::local(&case)), "{}", case.display());
            count += 1;
        }
    }
    assert!(count > 20, "only {count} cases");
}

#[test]
fn a_location_in_a_store_is_repaired_into_the_file_system() {
    let case = Path::new(DATA).join("corpus/codec-lz4");
    let out = std::env::temp_dir().join(format!("kbat-store-{}", std::process::id()));
    let results = [Location::local(&case), MemoryStore::of(&case)].map(|source| {
        salvage(&source, &out, &SalvageOptions::default(), &mut Progress::none()).unwrap();
        let content = answers(&Location::local(&out));
        std::fs::remove_dir_all(&out).unwrap();
        content
    });
    let [local, stored] = results;
    assert_eq!(local, stored);
}
