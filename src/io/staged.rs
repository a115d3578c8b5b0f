//! [`StagedFile`]: a file that has a temporary name until it is complete. [`StagedDirectory`]: the same for a
//! directory.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use crate::error::{Error, Result};
use crate::io::atomic::{sync_directory, sync_directory_of, with_added_extension};
use crate::io::location::{directory_of, refuse_url};
use crate::io::lock::DirectoryLock;
use crate::io::unfinished::{INSIDE, PARTIAL};
#[cfg(feature = "python")]
use crate::io::unique::file_exists;
use crate::io::unique::{is_own_name, not_empty, own_name};

/// Part of the name of an incomplete directory that is not locked yet.
const BEGUN: &str = ".kbat-begun";
/// Suffix of an incomplete directory. Kafka uses it for partitions that are about to be deleted, so neither kbat nor a
/// broker treats the directory as a live partition, and a broker deletes the leftovers of a killed tool when it
/// starts.
const NOT_LIVE: &str = "-delete";
/// The directory that a new file system contains.
const LOST_AND_FOUND: &str = "lost+found";
/// Largest length of a name to which a suffix is added, in bytes: file systems allow 255 in all.
const MAX_STEM_LEN: usize = 200;

/// Whether a name is that of an incomplete file or directory.
pub(crate) fn is_partial(name: &str) -> bool {
    name.contains(PARTIAL)
}

/// An incomplete file. It is removed if dropped without [`StagedFile::commit`].
#[derive(Debug)]
pub(crate) struct StagedFile {
    writer: Option<BufWriter<File>>,
    staged: PathBuf,
    path: PathBuf,
    modified: Option<SystemTime>,
    committed: bool,
}

impl StagedFile {
    pub(crate) fn create(path: &Path) -> Result<Self> {
        let staged = with_added_extension(path, PARTIAL);
        let file = File::create(&staged).map_err(|error| Error::from(error).with_path(&staged))?;
        Ok(Self {
            writer: Some(BufWriter::new(file)),
            staged,
            path: path.to_path_buf(),
            modified: None,
            committed: false,
        })
    }

    /// Sets the file's modification time. Brokers use it in place of a timestamp for records that have none.
    pub(crate) fn set_modified(&mut self, modified: SystemTime) {
        self.modified = Some(modified);
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.write_all(bytes).map_err(|error| Error::from(error).with_path(&self.path))
    }

    /// Flushes the file to disk and renames it to its final name.
    pub(crate) fn commit(mut self) -> Result<()> {
        let Some(writer) = self.writer.take() else { return Ok(()) };
        let commit = || {
            let file = writer.into_inner().map_err(std::io::IntoInnerError::into_error)?;
            if let Some(modified) = self.modified {
                file.set_modified(modified)?;
            }
            file.sync_all()?;
            fs::rename(&self.staged, &self.path)
        };
        commit().map_err(|error: std::io::Error| Error::from(error).with_path(&self.path))?;
        self.committed = true;
        Ok(())
    }
}

impl Drop for StagedFile {
    fn drop(&mut self) {
        if !self.committed {
            // ignored: the error that caused the drop is the one to report
            let _ = fs::remove_file(&self.staged);
        }
    }
}

/// An incomplete directory next to its final location. It is removed if dropped without [`StagedDirectory::commit`].
///
/// Its name is unique and it is locked while in use. So two runs with the same target do not touch each other's files:
/// the first to finish succeeds, the other fails. The next run removes the unlocked directories of killed runs.
///
/// An existing directory can't be replaced if a file system is mounted on it, or if its parent is read-only. The incomplete
/// directory is then in it, and its files are moved up in the end.
#[derive(Debug)]
pub(crate) struct StagedDirectory {
    staged: PathBuf,
    path: PathBuf,
    /// Whether the target can't be replaced, so that the incomplete directory is in it.
    is_inside: bool,
    /// The parent directories that were created for the result, the outermost last.
    made: Vec<PathBuf>,
    lock: Option<DirectoryLock>,
    committed: bool,
}

/// The absolute path without links and `..`, as far as it exists.
fn real_path(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let existing = absolute.ancestors().find_map(|ancestor| Some((ancestor, fs::canonicalize(ancestor).ok()?)));
    let below = |ancestor: &Path| absolute.strip_prefix(ancestor).map(Path::to_path_buf).unwrap_or_default();
    existing.map_or_else(|| absolute.clone(), |(ancestor, real)| real.join(below(ancestor)))
}

/// Refuses a path inside the source directory, which is only read.
pub(crate) fn refuse_inside(source: &Path, path: &Path) -> Result<()> {
    if source.is_dir() && real_path(path).starts_with(real_path(source)) {
        let message = format!(
            "the output directory is inside {}, which is only read: name a directory outside it",
            source.display()
        );
        return Err(Error::argument(message).with_path(path));
    }
    Ok(())
}

impl StagedDirectory {
    /// Creates a directory for the output made from `source`, and its missing parents.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if `path` is not empty or is inside `source`;
    /// I/O errors.
    pub(crate) fn create(source: &Path, path: &Path) -> Result<Self> {
        refuse_inside(source, &resolved(path))?;
        Self::begin(path)
    }

    /// Creates a directory for an output, and its missing parents.
    fn begin(path: &Path) -> Result<Self> {
        refuse_url(path)?;
        let path = resolved(path);
        let is_inside = is_mount_point(&path) || path.is_dir() && !is_writable(directory_of(&path));
        let (inside, beside) = (path.join(INSIDE), shortened(&path));
        let stem = |part: &str| with_added_extension(if is_inside { &inside } else { &beside }, part);
        remove_abandoned(&stem(PARTIAL));
        let is_empty = match count_entries(&path) {
            Ok(count) => count == 0,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
            Err(error) => return Err(Error::from(error).with_path(&path)),
        };
        if !is_empty {
            return Err(not_empty().with_path(&path));
        }
        let own = format!("-{}{NOT_LIVE}", own_name());
        let begun = with_added_extension(&stem(BEGUN), &own);
        let mut directory = Self {
            staged: with_added_extension(&stem(PARTIAL), &own),
            path,
            is_inside,
            made: Vec::new(),
            lock: None,
            committed: false,
        };
        directory.make(&begun)?;
        Ok(directory)
    }

    fn make(&mut self, begun: &Path) -> Result<()> {
        for parent in self.path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()) {
            if parent.exists() {
                break;
            }
            self.made.push(parent.to_path_buf());
        }
        for parent in self.made.iter().rev() {
            fs::create_dir(parent).map_err(|error| Error::from(error).with_path(parent))?;
        }
        // renamed only once it is locked, so that other runs do not treat it as abandoned
        fs::create_dir(begun).map_err(|error| Error::from(error).with_path(begun))?;
        // not all file systems support locks, and Windows cannot rename a directory with an open file in it
        self.lock = if cfg!(unix) { DirectoryLock::acquire(begun).ok() } else { None };
        fs::rename(begun, &self.staged).map_err(|error| {
            let _ = fs::remove_dir_all(begun);
            Error::from(error).with_path(&self.staged)
        })
    }

    /// The directory to write to until it is committed.
    pub(crate) fn directory(&self) -> &Path {
        &self.staged
    }

    /// Renames the directory to its final name.
    ///
    /// # Errors
    /// I/O errors, for instance because another run has created the directory in the meantime.
    pub(crate) fn commit(mut self) -> Result<()> {
        let commit = || {
            sync_directory(&self.staged)?;
            self.put_in_place(&self.staged)
        };
        commit().map_err(|error: std::io::Error| Error::from(error).with_path(&self.path))?;
        self.committed = true;
        Ok(())
    }

    /// Renames the directory, or something in it, to the final name.
    fn put_in_place(&self, result: &Path) -> std::io::Result<()> {
        if self.is_inside {
            return self.move_up(result);
        }
        match fs::remove_dir(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::rename(result, &self.path)?;
        self.made.iter().try_for_each(|made| sync_directory_of(made))?;
        sync_directory_of(&self.path)
    }

    /// Moves everything in a directory to the target, in which it is.
    fn move_up(&self, result: &Path) -> std::io::Result<()> {
        if count_entries(&self.path)? > 1 {
            return Err(std::io::Error::from(std::io::ErrorKind::DirectoryNotEmpty)); // another run was first
        }
        let mut names =
            fs::read_dir(result)?.map(|entry| Ok(entry?.file_name())).collect::<std::io::Result<Vec<_>>>()?;
        // no reader sees a segment without its indexes
        names.sort_by_key(|name| (Path::new(name).extension() == Some(OsStr::new("log")), name.clone()));
        for name in names {
            fs::rename(result.join(&name), self.path.join(&name))?;
        }
        fs::remove_dir(result)?;
        sync_directory(&self.path)
    }
}

impl Drop for StagedDirectory {
    fn drop(&mut self) {
        if !self.committed {
            // ignored: the error that caused the drop is the one to report
            let _ = fs::remove_dir_all(&self.staged);
            for parent in &self.made {
                let _ = fs::remove_dir(parent);
            }
        }
    }
}

/// A file or directory that does not exist yet, in an incomplete directory next to its final location. It is removed if
/// dropped without [`StagedPath::commit`].
#[cfg(feature = "python")]
#[derive(Debug)]
pub(crate) struct StagedPath {
    directory: StagedDirectory,
    path: PathBuf,
}

#[cfg(feature = "python")]
impl StagedPath {
    /// Creates the incomplete directory, and missing parents of the path.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if there is something at the path; I/O errors.
    pub(crate) fn create(path: &Path) -> Result<Self> {
        refuse_existing(path)?;
        let directory = StagedDirectory::begin(path)?;
        let path = directory.staged.join(directory.path.file_name().unwrap_or(OsStr::new("result")));
        Ok(Self { directory, path })
    }

    /// The path to write, whose name is that of the target.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Renames what was written to its final name.
    ///
    /// # Errors
    /// I/O errors, for instance because another run has created something there in the meantime.
    pub(crate) fn commit(self) -> Result<()> {
        let commit = || {
            sync_tree(&self.path)?;
            self.directory.put_in_place(&self.path)
        };
        // dropping removes the incomplete directory
        commit().map_err(|error: std::io::Error| Error::from(error).with_path(&self.directory.path))
    }
}

/// Syncs a file, or a directory with everything in it.
#[cfg(feature = "python")]
fn sync_tree(path: &Path) -> std::io::Result<()> {
    if !path.is_dir() {
        return File::open(path)?.sync_all();
    }
    for entry in fs::read_dir(path)? {
        sync_tree(&entry?.path())?;
    }
    sync_directory(path)
}

/// Refuses a path at which there is something other than an empty directory.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument); I/O errors.
#[cfg(feature = "python")]
pub(crate) fn refuse_existing(path: &Path) -> Result<()> {
    let in_path = |error: std::io::Error| Error::from(error).with_path(path);
    if path.is_dir() {
        remove_abandoned(&with_added_extension(&path.join(INSIDE), PARTIAL));
        return if count_entries(path).map_err(in_path)? == 0 { Ok(()) } else { Err(not_empty().with_path(path)) };
    }
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(in_path(error)),
        Ok(_) => Err(file_exists().with_path(path)),
    }
}

/// The number of entries of a directory, without the one that a new file system contains.
fn count_entries(path: &Path) -> std::io::Result<usize> {
    Ok(fs::read_dir(path)?.filter(|entry| !entry.as_ref().is_ok_and(|one| one.file_name() == LOST_AND_FOUND)).count())
}

/// Removes the directories of killed runs with the same target, whose names begin with `stem`: those that are not locked.
/// Errors are ignored.
fn remove_abandoned(stem: &Path) {
    let Some(name) = stem.file_name() else { return };
    let prefix = format!("{}-", name.to_string_lossy());
    let parent = directory_of(stem);
    for name in partials_in(parent) {
        // other names are those of users
        let is_of_stem = (name.to_string_lossy().strip_prefix(&prefix))
            .and_then(|rest| rest.strip_suffix(NOT_LIVE))
            .is_some_and(is_own_name);
        let path = parent.join(name);
        if cfg!(unix) && is_of_stem && DirectoryLock::acquire(&path).is_ok() {
            let _ = fs::remove_dir_all(path);
        }
    }
}

/// The incomplete files and directories in a large directory, when it was last listed.
struct Listed {
    directory: PathBuf,
    at: Instant,
    partials: Vec<OsString>,
}

/// Lists the incomplete files and directories in a directory. A command that writes thousands of results to one
/// directory does not list it for each of them: a large one is listed once a second.
fn partials_in(directory: &Path) -> Vec<OsString> {
    const LARGE: usize = 1000;
    static LAST: Mutex<Option<Listed>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = &*last
        && known.directory == directory
        && known.at.elapsed() < Duration::from_secs(1)
    {
        return known.partials.clone();
    }
    let mut count = 0_usize;
    let names = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let partials: Vec<OsString> =
        names.inspect(|_| count = count.saturating_add(1)).filter(|name| is_partial(&name.to_string_lossy())).collect();
    if count > LARGE {
        *last = Some(Listed { directory: directory.to_path_buf(), at: Instant::now(), partials: partials.clone() });
    }
    partials
}

/// The path with a shorter name, if there is no room in it for a suffix.
fn shortened(path: &Path) -> PathBuf {
    match path.file_name().and_then(OsStr::to_str) {
        Some(name) if name.len() > MAX_STEM_LEN => {
            let end = (0..=MAX_STEM_LEN).rev().find(|end| name.is_char_boundary(*end)).unwrap_or(0);
            path.with_file_name(name.split_at(end).0)
        }
        _ => path.to_path_buf(),
    }
}

/// The path without a slash at its end; of a link or of `.`, the directory that it means.
fn resolved(path: &Path) -> PathBuf {
    let plain: PathBuf = path.components().collect();
    let is_named = matches!(plain.components().next_back(), Some(Component::Normal(_))) && !plain.is_symlink();
    if is_named { plain } else { fs::canonicalize(&plain).unwrap_or(plain) }
}

/// Whether files can be created in a directory.
fn is_writable(directory: &Path) -> bool {
    let probe = directory.join(format!("{INSIDE}{BEGUN}-{}{NOT_LIVE}", own_name()));
    fs::create_dir(&probe).is_ok() && fs::remove_dir(&probe).is_ok()
}

/// Whether a file system is mounted on a directory.
#[cfg(unix)]
fn is_mount_point(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let device = |path: &Path| fs::metadata(path).map(|status| status.dev()).ok();
    device(path).is_some_and(|own| device(directory_of(path)) != Some(own))
}

#[cfg(not(unix))]
fn is_mount_point(_: &Path) -> bool {
    false
}
