//! [`PositionedFile`]: a file read by position, so that several readers can share it.

use std::fs::File;
use std::io::{Error as IoError, ErrorKind as IoErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind, Result};
use crate::io::page_cache::{self, read_some};
use crate::io::read_at::{ReadAt, StoredFile};
use crate::num::u64_of;

/// An open file and its path. Errors name the path.
#[derive(Debug)]
pub(crate) struct PositionedFile {
    content: Content,
    path: PathBuf,
}

/// A file that is open, and bytes of it that were read from the position at which a reader begins, or none.
#[cfg(feature = "arrow")]
pub(crate) struct OpenedFile {
    pub(crate) file: PositionedFile,
    pub(crate) bytes: Vec<u8>,
}

#[cfg(feature = "arrow")]
impl From<PositionedFile> for OpenedFile {
    fn from(file: PositionedFile) -> Self {
        Self { file, bytes: Vec::new() }
    }
}

/// Where the bytes are.
#[derive(Debug)]
enum Content {
    Local(Local),
    Stored(Box<dyn StoredFile>),
}

/// A file of the file system.
#[derive(Debug)]
struct Local {
    file: File,
    /// Whether pages that a read brings into the page cache are dropped again.
    leaves_page_cache: bool,
    /// The same file, opened to bypass the page cache.
    direct: Option<page_cache::Direct>,
}

/// Opens an open file once more. Unlike a clone, it has a read-ahead of its own.
#[cfg(all(feature = "arrow", target_os = "linux"))]
fn reopen(file: &File) -> std::io::Result<File> {
    use std::os::fd::AsRawFd;

    File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(all(feature = "arrow", not(target_os = "linux")))]
fn reopen(file: &File) -> std::io::Result<File> {
    file.try_clone()
}

impl PositionedFile {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let open = || {
            let metadata = std::fs::metadata(path)?;
            if metadata.is_dir() {
                return Err(IoError::from(IoErrorKind::IsADirectory));
            }
            // checked before opening: opening a pipe blocks until it has a writer
            if metadata.is_file() { File::open(path).map(Some) } else { Ok(None) }
        };
        let Some(file) = open().map_err(|error| Error::from(error).with_path(path))? else {
            let message =
                "this is a pipe or a device, but segments are read by position: copy it to a file, or pass its bytes";
            return Err(Error::argument(message).with_path(path));
        };
        let local = Local { file, leaves_page_cache: false, direct: None };
        Ok(Self { content: Content::Local(local), path: path.to_path_buf() })
    }

    /// Opens a file of the file system once more: the same one, even if another has its name now. `None` if that fails,
    /// and for a file in a store.
    #[cfg(feature = "arrow")]
    pub(crate) fn reopened(&self) -> Option<Self> {
        let Content::Local(local) = &self.content else { return None };
        let file = reopen(&local.file).or_else(|_| local.file.try_clone()).ok()?;
        let local = Local { file, leaves_page_cache: false, direct: None };
        Some(Self { content: Content::Local(local), path: self.path.clone() })
    }

    /// An open file of another store.
    pub(crate) fn stored(file: Box<dyn StoredFile>, path: &Path) -> Self {
        Self { content: Content::Stored(file), path: path.to_path_buf() }
    }

    /// From now on, leaves the page cache as it is: see [`page_cache`].
    pub(crate) fn leave_page_cache(&mut self) {
        if let Content::Local(local) = &mut self.content {
            local.leaves_page_cache = true;
            page_cache::expect_scattered_reads(&local.file);
            local.direct = page_cache::Direct::open(&self.path);
        }
    }

    /// Whether the file is in a store.
    pub(crate) fn is_stored(&self) -> bool {
        matches!(self.content, Content::Stored(_))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Current length of the file in bytes.
    pub(crate) fn len(&self) -> Result<u64> {
        match &self.content {
            Content::Local(local) => {
                local.file.metadata().map(|metadata| metadata.len()).map_err(|error| self.locate(error))
            }
            Content::Stored(file) => file.byte_len().map_err(|error| error.with_path(&self.path)),
        }
    }

    /// Reads at a position until `out` is full or the file ends. Returns the number of bytes read.
    pub(crate) fn read_at(&self, out: &mut [u8], position: u64) -> Result<usize> {
        match &self.content {
            Content::Local(local) => local.read_at(out, position).map_err(|error| self.locate(error).at(position)),
            Content::Stored(file) => {
                file.read_bytes_at(out, position).map_err(|error| error.with_path(&self.path).at(position))
            }
        }
    }

    /// Fails if the file is now shorter than the bytes already read from it.
    pub(crate) fn check_not_truncated(&self, read_to: u64) -> Result<()> {
        let len = self.len()?;
        if len >= read_to {
            return Ok(());
        }
        let message = format!("the file was truncated to {len} bytes while it was read");
        Err(Error::new(ErrorKind::InvalidFile(message)).at(len).with_path(&self.path))
    }

    /// Sets the position after which nothing needs to be read in advance.
    pub(crate) fn limit_ahead(&self, end: u64) {
        if let Content::Stored(file) = &self.content {
            file.limit_ahead(end);
        }
    }

    /// See [`ReadAt::expect_reads`](crate::io::ReadAt::expect_reads).
    pub(crate) fn expect_reads(&self, position: u64) {
        if let Content::Stored(file) = &self.content {
            file.expect_reads(position);
        }
    }

    /// See [`ReadAt::spare_requests`](crate::io::ReadAt::spare_requests).
    pub(crate) fn spare_requests(&self) -> usize {
        match &self.content {
            Content::Local(_) => 0,
            Content::Stored(file) => file.spare_requests(),
        }
    }

    /// See [`ReadAt::request_ahead`](crate::io::ReadAt::request_ahead).
    pub(crate) fn request_ahead(&self, position: u64, count: usize) -> usize {
        match &self.content {
            Content::Local(_) => 0,
            Content::Stored(file) => file.request_ahead(position, count),
        }
    }

    /// See [`ReadAt::read_over_damage`](crate::io::ReadAt::read_over_damage).
    pub(crate) fn read_over_damage(&self) {
        if let Content::Stored(file) = &self.content {
            file.read_over_damage();
        }
    }

    /// See [`ReadAt::damage_in`](crate::io::ReadAt::damage_in).
    pub(crate) fn damage_in(&self, range: Range<u64>) -> Option<Error> {
        match &self.content {
            Content::Local(_) => None,
            Content::Stored(file) => file.damage_in(range).map(|error| error.with_path(&self.path)),
        }
    }

    /// Returns the first position at or after `position` that is not in a hole of a sparse file, or the file's length
    /// if only a hole follows.
    pub(crate) fn next_data(&self, position: u64) -> Result<u64> {
        match &self.content {
            Content::Local(local) => match next_data(&local.file, position) {
                Data::At(found) => Ok(found),
                Data::None => self.len(),
                Data::Unknown => Ok(position),
            },
            Content::Stored(file) => file.next_data(position),
        }
    }

    fn locate(&self, error: IoError) -> Error {
        Error::from(error).with_path(&self.path)
    }
}

impl ReadAt for PositionedFile {
    fn byte_len(&self) -> Result<u64> {
        self.len()
    }

    fn read_bytes_at(&self, out: &mut [u8], position: u64) -> Result<usize> {
        self.read_at(out, position)
    }

    fn next_data(&self, position: u64) -> Result<u64> {
        PositionedFile::next_data(self, position)
    }

    fn limit_ahead(&self, end: u64) {
        PositionedFile::limit_ahead(self, end);
    }

    fn expect_reads(&self, position: u64) {
        PositionedFile::expect_reads(self, position);
    }

    fn spare_requests(&self) -> usize {
        PositionedFile::spare_requests(self)
    }

    fn request_ahead(&self, position: u64, count: usize) -> usize {
        PositionedFile::request_ahead(self, position, count)
    }

    fn read_over_damage(&self) {
        PositionedFile::read_over_damage(self);
    }

    fn damage_in(&self, range: Range<u64>) -> Option<Error> {
        PositionedFile::damage_in(self, range)
    }
}

impl Local {
    fn read_at(&self, out: &mut [u8], position: u64) -> std::io::Result<usize> {
        let mut done = 0_usize;
        while let Some(room) = out.get_mut(done..).filter(|room| !room.is_empty()) {
            let place = position.saturating_add(u64_of(done));
            let read = match &self.direct {
                Some(direct) if page_cache::Direct::takes(room) => direct.read_at(room, place),
                _ if self.leaves_page_cache => page_cache::read_at(&self.file, room, place),
                _ => read_some(&self.file, room, place),
            };
            match read {
                Ok(0) => break,
                Ok(count) => done = done.saturating_add(count),
                Err(error) if error.kind() == IoErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }
}

/// Where the data of a sparse file continues.
#[cfg_attr(not(target_os = "linux"), expect(dead_code, reason = "only Linux can report holes"))]
enum Data {
    At(u64),
    /// Only a hole follows.
    None,
    /// The system cannot report holes.
    Unknown,
}

#[cfg(target_os = "linux")]
fn next_data(file: &File, position: u64) -> Data {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;

    // moving the file's own position is fine: all reads pass a position
    match seek(file, SeekFrom::Data(position)) {
        Ok(found) => Data::At(found),
        Err(Errno::NXIO) => Data::None,
        Err(_) => Data::Unknown,
    }
}

#[cfg(not(target_os = "linux"))]
fn next_data(_file: &File, _position: u64) -> Data {
    Data::Unknown
}
