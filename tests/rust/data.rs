//! Finds and reads the files in `tests/data`, and converts records to the form of Kafka's answers.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kbat::{Batch, Limits, Record, Scratch, TimestampType};
use serde_json::{Value, json};

/// The directory of all test data.
pub(crate) fn data_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// A text file's content; the file may have `.gz` added to its name.
pub(crate) fn text(path: &Path) -> String {
    if path.exists() {
        return fs::read_to_string(path).unwrap();
    }
    let mut zipped = path.as_os_str().to_owned();
    zipped.push(".gz");
    let file = fs::File::open(&zipped).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut content = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut content).unwrap();
    content
}

/// The lines of a JSON lines file.
pub(crate) fn json_lines(path: &Path) -> Vec<Value> {
    text(path).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Every file under `root` with one of these extensions, sorted. Skips directories of tiered storage, whose `.log` files
/// may be encrypted.
pub(crate) fn files(root: &Path, extensions: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if path.file_name().is_some_and(|name| name != "tiered") {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|extension| extensions.iter().any(|wanted| extension == *wanted)) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// A file of a case: `file("corpus/codec-lz4/00000000000000000000.log")`.
pub(crate) fn file(name: &str) -> Vec<u8> {
    let path = data_dir().join(name);
    fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Base64 or null.
pub(crate) fn base64(bytes: Option<&[u8]>) -> Value {
    bytes.map_or(Value::Null, |bytes| STANDARD.encode(bytes).into())
}

/// The inverse of [`base64`].
pub(crate) fn from_base64(value: &Value) -> Option<Vec<u8>> {
    value.as_str().map(|text| STANDARD.decode(text).unwrap())
}

/// Kafka's name of a timestamp type.
pub(crate) fn timestamp_type_name(timestamp_type: Option<TimestampType>) -> &'static str {
    timestamp_type.map_or("NoTimestampType", TimestampType::name)
}

/// A record's headers as `[key, value]` pairs; keys decoded as Java does.
pub(crate) fn headers_json(record: &Record<'_>) -> kbat::Result<Value> {
    let pair = |header: kbat::Result<kbat::Header<'_>>| {
        header.map(|header| json!([header.key_lossy(), base64(header.value())]))
    };
    record.headers().map(pair).collect::<kbat::Result<Vec<_>>>().map(Value::from)
}

/// The first batch of a buffer.
pub(crate) fn first(bytes: &[u8]) -> Batch<'_> {
    kbat::batches(bytes).next().expect("a batch").unwrap()
}

/// A record without its lifetime.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) offset: i64,
    pub(crate) timestamp: i64,
    pub(crate) timestamp_type: Option<TimestampType>,
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<(Vec<u8>, Option<Vec<u8>>)>,
    pub(crate) sequence: i32,
}

impl Owned {
    pub(crate) fn of(record: &Record<'_>) -> kbat::Result<Self> {
        let headers = record
            .headers()
            .map(|header| header.map(|header| (header.key().to_vec(), header.value().map(<[u8]>::to_vec))))
            .collect::<kbat::Result<_>>()?;
        Ok(Self {
            offset: record.offset(),
            timestamp: record.timestamp(),
            timestamp_type: record.timestamp_type(),
            key: record.key().map(<[u8]>::to_vec),
            value: record.value().map(<[u8]>::to_vec),
            headers,
            sequence: record.sequence(),
        })
    }
}

/// The records of a batch, or its first error.
pub(crate) fn records(batch: &Batch<'_>) -> kbat::Result<Vec<Owned>> {
    records_within(batch, &Limits::default())
}

/// The records of a batch under limits, or its first error.
pub(crate) fn records_within(batch: &Batch<'_>, limits: &Limits) -> kbat::Result<Vec<Owned>> {
    let mut scratch = Scratch::new();
    batch.records(&mut scratch, limits)?.map(|record| Owned::of(&record?)).collect()
}

/// The records of all batches, or the first error.
pub(crate) fn all_records(bytes: &[u8]) -> kbat::Result<Vec<Owned>> {
    let mut all = Vec::new();
    for batch in kbat::batches(bytes) {
        all.extend(records(&batch?)?);
    }
    Ok(all)
}
