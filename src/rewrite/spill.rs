//! [`Spill`]: keys that do not fit in memory, distributed over files by their hash.
//!
//! ```text
//! first walk     log ─► hash of the key ─► keys-0: key offset dirty │ keys-1 … │ keys-2 …
//! each part      keys-n ─► map of the part's keys ─► keys-n again ─► answers-n: one byte per record, 1 for the last
//! second walk    log ─► hash of the key ─► the next byte of answers-n
//! ```
//!
//! Both walks visit the same records in the same order, so the answers of a part are read sequentially. All files are
//! read and written sequentially; memory holds the keys of one part and a small buffer per file.

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use super::keys::{KeyMap, KeyWalk, KeyedRecord};
use crate::error::{Error, Result};
use crate::num::{low_u32, u64_of, usize_from_u64, usize_of};

/// Bytes of length, offset and the dirty flag before each key.
const HEAD_LEN: usize = 13;

/// The answers for all records of the log, by the hash of the key.
#[derive(Debug)]
pub(super) struct Spill {
    hasher: RandomState,
    answers: Vec<BufReader<File>>,
    _files: SpillDirectory,
}

impl Spill {
    /// Distributes the keys. Returns `None` if the keys of a part do not fit in `max_bytes`.
    pub(super) fn build(walk: KeyWalk<'_>, parts: usize, max_bytes: usize, work: &Path) -> Result<Option<Self>> {
        let files = SpillDirectory::create(work)?;
        let hasher = RandomState::new();
        let buffer_len = max_bytes.checked_div(parts).unwrap_or(0).clamp(512, 64 << 10);
        files.locate(spread(walk, parts, buffer_len, &hasher, &files))?;
        let mut answers = Vec::new();
        for part in 0..parts {
            match files.locate(answer(part, max_bytes, buffer_len, &files))? {
                Some(file) => answers.push(file),
                None => return Ok(None),
            }
        }
        Ok(Some(Self { hasher, answers, _files: files }))
    }

    /// The answer for the next record of the walk, which has this key.
    pub(super) fn is_latest(&mut self, key: &[u8]) -> Result<bool> {
        let part = part_of(&self.hasher, key, self.answers.len());
        let mut answer = [0];
        match self.answers.get_mut(part) {
            Some(answers) => answers.read_exact(&mut answer)?,
            None => return Err(Error::argument("the log changed while it was read")),
        }
        Ok(answer == [1])
    }

    pub(super) fn part_count(&self) -> usize {
        self.answers.len()
    }
}

fn part_of(hasher: &RandomState, key: &[u8], parts: usize) -> usize {
    let hash = u64::from(low_u32(hasher.hash_one(key)));
    usize_from_u64(hash.saturating_mul(u64_of(parts)) >> 32)
}

fn spread(
    walk: KeyWalk<'_>,
    parts: usize,
    buffer_len: usize,
    hasher: &RandomState,
    files: &SpillDirectory,
) -> Result<()> {
    let create = |part| Ok(BufWriter::with_capacity(buffer_len, File::create(files.keys(part))?));
    let mut keys = (0..parts).map(create).collect::<Result<Vec<_>>>()?;
    walk(&mut |record| {
        let mut head = [0; HEAD_LEN];
        let len = u32::try_from(record.key.len()).unwrap_or(u32::MAX);
        let fields =
            len.to_be_bytes().into_iter().chain(record.offset.to_be_bytes()).chain([u8::from(record.is_dirty)]);
        head.iter_mut().zip(fields).for_each(|(place, byte)| *place = byte);
        if let Some(file) = keys.get_mut(part_of(hasher, record.key, parts)) {
            file.write_all(&head)?;
            file.write_all(record.key)?;
        }
        Ok(true)
    })?;
    keys.iter_mut().try_for_each(Write::flush)?;
    Ok(())
}

/// Writes the answers of a part and opens them. Returns `None` if its keys do not fit.
fn answer(part: usize, max_bytes: usize, buffer_len: usize, files: &SpillDirectory) -> Result<Option<BufReader<File>>> {
    let mut map = KeyMap::new(max_bytes);
    let mut fits = true;
    each_record(&files.keys(part), buffer_len, &mut |record| {
        fits = map.take(record);
        Ok(fits)
    })?;
    if !fits {
        return Ok(None);
    }
    let mut answers = BufWriter::with_capacity(buffer_len, File::create(files.answers(part))?);
    each_record(&files.keys(part), buffer_len, &mut |record| {
        answers.write_all(&[u8::from(map.is_latest(record.key, record.offset))])?;
        Ok(true)
    })?;
    answers.flush()?;
    fs::remove_file(files.keys(part))?;
    Ok(Some(BufReader::with_capacity(buffer_len, File::open(files.answers(part))?)))
}

/// Reads the records that [`spread`] wrote, until the visitor returns `false`.
fn each_record(path: &Path, buffer_len: usize, visit: &mut dyn FnMut(KeyedRecord<'_>) -> Result<bool>) -> Result<()> {
    let mut file = BufReader::with_capacity(buffer_len, File::open(path)?);
    let (mut head, mut key) = ([0; HEAD_LEN], Vec::new());
    loop {
        match file.read_exact(&mut head) {
            Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(()),
            result => result?,
        }
        let [l0, l1, l2, l3, o0, o1, o2, o3, o4, o5, o6, o7, is_dirty] = head;
        // written by `spread` for a key that was in memory, so the length is trusted
        key.resize(usize_of(u32::from_be_bytes([l0, l1, l2, l3])), 0);
        file.read_exact(&mut key)?;
        let offset = i64::from_be_bytes([o0, o1, o2, o3, o4, o5, o6, o7]);
        if !visit(KeyedRecord { key: &key, offset, is_dirty: is_dirty == 1 })? {
            return Ok(());
        }
    }
}

/// The directory of the files. It is removed when dropped.
#[derive(Debug)]
struct SpillDirectory(PathBuf);

impl SpillDirectory {
    fn create(work: &Path) -> Result<Self> {
        let directory = work.join("keys");
        fs::create_dir(&directory).map_err(|error| Error::from(error).with_path(&directory))?;
        Ok(Self(directory))
    }

    fn keys(&self, part: usize) -> PathBuf {
        self.0.join(format!("keys-{part}"))
    }

    fn answers(&self, part: usize) -> PathBuf {
        self.0.join(format!("answers-{part}"))
    }

    /// Adds the directory to an error that has no path.
    fn locate<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| error.with_path(&self.0))
    }
}

impl Drop for SpillDirectory {
    fn drop(&mut self) {
        // on failure, it is removed with the output directory
        let _ = fs::remove_dir_all(&self.0);
    }
}
