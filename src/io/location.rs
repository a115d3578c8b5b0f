//! [`Location`]: a path in the file system or in another store, such as a bucket.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::hash::{Hash, Hasher};
use std::io::Read;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::io::file::PositionedFile;
use crate::io::store::{Status, Store};
use crate::num::{u64_of, usize_from_u64};

/// A path, and the store that it is in: the file system, or objects with the names of files, such as a bucket or the
/// segments of tiered storage. Dereferences to the path, for names and messages.
///
/// Everything in kbat that only reads takes a location, so that it works with any store.
#[derive(Clone)]
pub struct Location {
    path: PathBuf,
    /// `None` for the file system.
    store: Option<Arc<dyn Store>>,
}

impl Location {
    /// A path in the file system.
    #[must_use]
    pub fn local(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), store: None }
    }

    /// A path in a store.
    pub(crate) fn in_store(path: impl Into<PathBuf>, store: Arc<dyn Store>) -> Self {
        Self { path: path.into(), store: Some(store) }
    }

    /// The path, or the URL of an object.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this is a path in the file system.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.store.is_none()
    }

    /// The path in the file system.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`] if the location is in another store.
    pub(crate) fn local_path(&self) -> Result<&Path> {
        if self.is_local() {
            return Ok(&self.path);
        }
        Err(Error::argument("this can only be changed in the file system: name a directory there as the target")
            .with_path(&self.path))
    }

    /// The last component of the path; empty if it is not UTF-8.
    pub(crate) fn name(&self) -> &str {
        self.path.file_name().and_then(OsStr::to_str).unwrap_or_default()
    }

    /// Another path in the same store.
    pub(crate) fn sibling(&self, path: &Path) -> Self {
        self.with(path.to_path_buf())
    }

    /// The file or directory with this name in this directory.
    #[must_use]
    pub fn join(&self, name: impl AsRef<Path>) -> Self {
        self.with(self.path.join(name))
    }

    /// The file with this name in the same directory.
    #[must_use]
    pub fn with_file_name(&self, name: impl AsRef<OsStr>) -> Self {
        self.with(self.path.with_file_name(name))
    }

    /// The file with the same name up to the extension.
    #[must_use]
    pub fn with_extension(&self, extension: impl AsRef<OsStr>) -> Self {
        self.with(self.path.with_extension(extension))
    }

    /// The directory that contains this; the current directory for a bare name.
    #[must_use]
    pub fn directory(&self) -> Self {
        self.with(directory_of(&self.path).to_path_buf())
    }

    /// The path with the current directory before it, if it is relative.
    pub(crate) fn absolute(&self) -> Self {
        if !self.is_local() {
            return self.clone();
        }
        self.with(std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone()))
    }

    /// The path without links, which is the same for all names of a file.
    pub(crate) fn resolved(&self) -> PathBuf {
        if !self.is_local() {
            return self.path.clone();
        }
        fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone())
    }

    fn with(&self, path: PathBuf) -> Self {
        Self { path, store: self.store.clone() }
    }

    /// What is here.
    ///
    /// # Errors
    /// I/O errors, also if nothing is here.
    pub(crate) fn status(&self) -> Result<Status> {
        match &self.store {
            Some(store) => store.status(&self.path),
            None => fs::metadata(&self.path).map(Status::from).map_err(|error| self.io_error(error)),
        }
    }

    /// Returns the status of a listed location, or `None` if a broker has deleted it since.
    ///
    /// # Errors
    /// I/O errors. A link without a target is one of them: its disk may not be mounted, so the data counts as
    /// inaccessible, not as deleted.
    pub(crate) fn status_if_there(&self) -> Result<Option<Status>> {
        match self.status() {
            Ok(status) => Ok(Some(status)),
            Err(error) if error.is_not_found() && !self.is_link() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Length of a file in bytes.
    ///
    /// # Errors
    /// The errors of [`Location::status`].
    pub(crate) fn len(&self) -> Result<u64> {
        self.status().map(|status| status.len)
    }

    /// Whether there is anything here.
    #[must_use]
    pub fn exists(&self) -> bool {
        self.status().is_ok()
    }

    /// Whether this is a directory.
    #[must_use]
    pub fn is_dir(&self) -> bool {
        self.status().is_ok_and(|status| status.is_directory())
    }

    /// Whether this is a link, possibly without a target.
    pub(crate) fn is_link(&self) -> bool {
        self.is_local() && self.path.is_symlink()
    }

    /// Lists a directory, sorted.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn entries(&self) -> Result<Vec<Self>> {
        let mut paths = if let Some(store) = &self.store {
            store.list(&self.path)?
        } else {
            let list = || fs::read_dir(&self.path)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>();
            list().map_err(|error| self.io_error(error))?
        };
        paths.sort();
        Ok(paths.into_iter().map(|path| self.with(path)).collect())
    }

    /// Whether the directories are made of objects in another layout, so that a broker never wrote them.
    pub(crate) fn is_layout(&self) -> bool {
        self.store.as_ref().is_some_and(|store| store.is_layout())
    }

    /// Whether parts of what is stored are omitted, which [`Location::warnings`] describes.
    pub(crate) fn may_omit(&self) -> bool {
        self.store.as_ref().is_some_and(|store| store.may_omit())
    }

    /// What a reader of this directory should know, such as parts that are omitted.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn warnings(&self) -> Result<Vec<String>> {
        Ok(self.warnings_by_offset()?.into_iter().map(|(_, text)| text).collect())
    }

    /// Like [`Location::warnings`], each with the lowest offset that it is about.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn warnings_by_offset(&self) -> Result<Vec<(i64, String)>> {
        self.store.as_ref().map_or_else(|| Ok(Vec::new()), |store| store.warnings(&self.path))
    }

    /// Whether this is a segment that was complete when it was stored, so that it must end with a batch.
    pub(crate) fn is_finished(&self) -> bool {
        self.store.as_ref().is_some_and(|store| store.is_finished(&self.path))
    }

    /// Whether this is a file in the directory of a broker, with which no segment in remote storage is read.
    #[cfg(feature = "plan")]
    pub(crate) fn is_read_alone(&self) -> bool {
        self.store.as_ref().is_some_and(|store| store.is_read_alone(&self.path))
    }

    /// If this is a part of another file: the path of that file, and the position at which the part begins.
    pub(crate) fn part_of(&self) -> Option<(PathBuf, u64)> {
        self.store.as_ref()?.part_of(&self.path)
    }

    /// The position of a byte in the whole file, if this is a part of one that does not begin with it.
    pub(crate) fn place_in_whole(&self, position: u64) -> Option<String> {
        let (whole, start) = self.part_of().filter(|(_, start)| *start > 0)?;
        Some(format!("byte {position} is byte {} of {}", position.saturating_add(start), whole.display()))
    }

    /// Adds the path to an error in this file and, if this is a part of another file, the position there.
    pub(crate) fn locate(&self, error: Error) -> Error {
        let is_here = error.path().is_none_or(|path| path == self.path);
        let position = error.position().byte.filter(|_| is_here);
        let error = error.with_path(&self.path);
        match position.and_then(|position| self.place_in_whole(position)) {
            Some(note) => error.with_note(note),
            None => error,
        }
    }

    /// Partition directories that belong to this directory, and that are not read with it.
    pub(crate) fn unlisted(&self) -> Vec<Self> {
        let paths = self.store.as_ref().map(|store| store.unlisted(&self.path)).unwrap_or_default();
        paths.into_iter().map(|path| self.with(path)).collect()
    }

    /// Writes a file of a store with the content of a file of the file system.
    ///
    /// # Errors
    /// The errors of [`Store::put`].
    pub(crate) fn put(&self, from: &Path) -> Result<()> {
        match &self.store {
            Some(store) => store.put(&self.path, from).map_err(|error| error.with_path(&self.path)),
            None => fs::copy(from, &self.path).map(drop).map_err(|error| self.io_error(error)),
        }
    }

    /// Runs `write` while this empty directory of a store is reserved. It stays reserved if that fails.
    ///
    /// # Errors
    /// Those of [`Store::claim`] and of `write`.
    pub(crate) fn reserved(&self, write: impl FnOnce() -> Result<()>) -> Result<()> {
        let Some(store) = &self.store else { return write() };
        store.claim(&self.path).map_err(|error| error.with_path(&self.path))?;
        write()?;
        store.release(&self.path).map_err(|error| error.with_path(&self.path))
    }

    /// Whether there is a file in a store, whatever was known before.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn exists_now(&self) -> Result<bool> {
        let Some(store) = &self.store else { return Ok(self.path.exists()) };
        match store.open_current(&self.path) {
            Ok(_) => Ok(true),
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error.with_path(&self.path)),
        }
    }

    /// Opens a file for reading by position.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn open(&self) -> Result<PositionedFile> {
        match &self.store {
            Some(store) => Ok(PositionedFile::stored(store.open(&self.path)?, &self.path)),
            None => PositionedFile::open(&self.path),
        }
    }

    /// Reads an entire file of at most `max_len` bytes.
    ///
    /// # Errors
    /// I/O errors; [`ErrorKind::InvalidFile`] for a larger file.
    pub(crate) fn read_small(&self, max_len: usize) -> Result<Vec<u8>> {
        self.refuse_large(self.head(max_len.saturating_add(1))?, max_len)
    }

    /// Like [`Location::read_small`], for a file that its owner replaces: if it was replaced since it was listed, reads
    /// its current content.
    ///
    /// # Errors
    /// As for [`Location::read_small`].
    #[cfg(feature = "tiered")]
    pub(crate) fn read_current(&self, max_len: usize) -> Result<Vec<u8>> {
        let Some(store) = &self.store else { return self.read_small(max_len) };
        self.read_small(max_len).or_else(|_| {
            let file = PositionedFile::stored(store.open_current(&self.path)?, &self.path);
            self.refuse_large(start_of(&file, max_len.saturating_add(1))?, max_len)
        })
    }

    /// Refuses the content of a file with more than `max_len` bytes. One byte more is enough: the file may grow while
    /// it is read.
    fn refuse_large(&self, content: Vec<u8>, max_len: usize) -> Result<Vec<u8>> {
        if content.len() <= max_len {
            return Ok(content);
        }
        let message = format!("the file is larger than {max_len} bytes, the most that a file of this kind may have");
        Err(Error::new(ErrorKind::InvalidFile(message)).with_path(&self.path))
    }

    /// Reads the first bytes of a file, or all if there are fewer.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn head(&self, max_len: usize) -> Result<Vec<u8>> {
        if !self.is_local() {
            return start_of(&self.open()?, max_len);
        }
        let mut content = Vec::new();
        // files in /proc have no length
        let file = self.open().map(drop).and_then(|()| Ok(File::open(&self.path)?));
        let read = file.and_then(|file| Ok(file.take(u64_of(max_len)).read_to_end(&mut content)?));
        read.map_err(|error| error.with_path(&self.path))?;
        Ok(content)
    }

    fn io_error(&self, error: std::io::Error) -> Error {
        Error::from(error).with_path(&self.path)
    }
}

/// The first bytes of an open file, or all if there are fewer.
fn start_of(file: &PositionedFile, max_len: usize) -> Result<Vec<u8>> {
    let mut content = vec![0; usize_from_u64(file.len()?).min(max_len)];
    let count = file.read_at(&mut content, 0)?;
    content.truncate(count);
    Ok(content)
}

/// Splits a URL after its scheme. `None` for a path.
pub(crate) fn split_scheme(text: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let is_scheme = scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_scheme.then_some((scheme, rest))
}

/// Refuses to write to a URL, which would become a directory with a name such as `s3:`.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`].
pub(crate) fn refuse_url(path: &Path) -> Result<()> {
    if path.to_str().and_then(split_scheme).is_some() {
        let message = "this writes to the file system only, because stores can neither append to objects nor rename them: \
                       name a directory there, and copy it to the store, for example with kbat copy";
        return Err(Error::argument(message).with_path(path));
    }
    Ok(())
}

/// The directory of a path; for a bare name, the current directory.
pub(crate) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

impl Deref for Location {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl AsRef<Path> for Location {
    fn as_ref(&self) -> &Path {
        &self.path
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

impl PartialEq for Location {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path
    }
}

impl Eq for Location {}

impl PartialOrd for Location {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Location {
    fn cmp(&self, other: &Self) -> Ordering {
        self.path.cmp(&other.path)
    }
}

impl Hash for Location {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.path.hash(state);
    }
}

impl From<&Self> for Location {
    fn from(location: &Self) -> Self {
        location.clone()
    }
}

/// Conversions from everything that names a path in the file system.
macro_rules! from_paths {
    ($($path:ty),+) => {
        $(impl From<$path> for Location {
            fn from(path: $path) -> Self {
                Self::local(path)
            }
        })+
    };
}

from_paths!(PathBuf, String, &Path, &PathBuf, &str, &String, &OsStr);
