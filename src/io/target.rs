//! [`Target`]: where a result goes.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::io::Location;
use crate::io::staged;
use crate::io::unfinished::unfinished_write;
use crate::io::unique::{file_exists, not_empty, unique_name};

/// A file or directory that is written. One in a store is written to a temporary directory first, and uploaded when it
/// is complete: stores cannot rename what is complete, and files are patched while they are written.
#[derive(Debug)]
pub(crate) struct Target {
    location: Location,
    /// The directory that contains the result until it is uploaded.
    temporary: Option<TemporaryDirectory>,
    path: PathBuf,
    /// Whether nothing may exist there.
    must_be_new: bool,
}

impl Target {
    /// A target whose files replace existing ones of the same names.
    ///
    /// # Errors
    /// I/O errors.
    pub(crate) fn new(location: Location) -> Result<Self> {
        if location.is_local() {
            let path = location.path().to_path_buf();
            return Ok(Self { location, temporary: None, path, must_be_new: false });
        }
        let temporary = TemporaryDirectory::create()?;
        let name = Some(location.name()).filter(|name| !name.is_empty()).unwrap_or("result");
        let path = temporary.0.join(name);
        Ok(Self { location, temporary: Some(temporary), path, must_be_new: false })
    }

    /// A file or directory that must not exist. A directory in the file system may be empty.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if there is something in a store; the other
    /// cases are checked when a directory is written. I/O errors.
    pub(crate) fn empty(location: Location) -> Result<Self> {
        let existing = if location.is_local() { None } else { location.status_if_there()? };
        let error = match existing {
            None => return Ok(Self { must_be_new: true, ..Self::new(location)? }),
            Some(status) if status.is_file() => file_exists(),
            Some(_) => unfinished_write(&location.entries()?).map_or_else(not_empty, Error::argument),
        };
        Err(error.with_path(&location))
    }

    /// Where the result goes.
    pub(crate) fn location(&self) -> &Location {
        &self.location
    }

    /// The path in the file system to write to.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The final path of something at or below [`Target::path`].
    pub(crate) fn final_path(&self, written: &Path) -> PathBuf {
        match written.strip_prefix(&self.path) {
            Ok(rest) if rest.as_os_str().is_empty() => self.location.path().to_path_buf(),
            Ok(rest) => self.location.path().join(rest),
            Err(_) => written.to_path_buf(),
        }
    }

    /// Makes a result at [`Target::path`], and uploads it if it is for a store.
    ///
    /// # Errors
    /// Those of `make` and of [`Target::publish`].
    pub(crate) fn published<R>(&self, make: impl FnOnce(&Path) -> Result<R>) -> Result<R> {
        let result = make(&self.path)?;
        self.publish().map(|()| result)
    }

    /// Uploads a result for a store. Segments come last, so that no reader sees one without its indexes.
    ///
    /// # Errors
    /// A target that is no longer empty, or to which another result is uploaded; I/O errors and errors of the store. What
    /// was uploaded before the error stays.
    pub(crate) fn publish(&self) -> Result<()> {
        if self.temporary.is_none() {
            return Ok(());
        }
        let mut files = Vec::new();
        collect(&self.path, &mut files)?;
        files.sort_by_key(|file| (file.extension().is_some_and(|extension| extension == "log"), file.clone()));
        let is_directory = !files.is_empty() && !files.contains(&self.path);
        let upload = || files.iter().try_for_each(|file| self.upload(file));
        if self.must_be_new && is_directory {
            return self.location.reserved(upload);
        }
        if self.must_be_new && self.location.exists_now()? {
            return Err(file_exists().with_path(&self.location)); // another run was first
        }
        upload()
    }

    fn upload(&self, file: &Path) -> Result<()> {
        let to = self.location.sibling(&self.final_path(file));
        to.put(file).map_err(|error| {
            let target = self.location.display();
            error.with_note(format!(
                "the upload to {target} is incomplete: delete the objects that it has written there"
            ))
        })
    }
}

/// Refuses a target inside its source, which is only read.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument).
pub(crate) fn refuse_inside(source: &Location, target: &Location) -> Result<()> {
    if source.is_local() && target.is_local() {
        staged::refuse_inside(source, target)
    } else {
        refuse_inside_store(source, target)
    }
}

/// Refuses a target inside a source of the same store, which is only read. Those in the file system are checked when a
/// directory is written.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument).
pub(crate) fn refuse_inside_store(source: &Location, target: &Location) -> Result<()> {
    let (of_source, of_target) = (store_name(source), store_name(target));
    let is_inside = of_target.strip_prefix(&of_source).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if source.is_local() || target.is_local() || !is_inside {
        return Ok(());
    }
    let message =
        format!("the output directory is inside {}, which is only read: name a prefix outside it", source.display());
    Err(Error::argument(message).with_path(target))
}

/// Refuses a target that is one of the files to read.
///
/// # Errors
/// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument).
pub(crate) fn refuse_sources<'l>(target: &Location, sources: impl IntoIterator<Item = &'l Location>) -> Result<()> {
    let real = |path: &Location| fs::canonicalize(path.path()).ok();
    let of_target = if target.is_local() { real(target) } else { Some(store_name(target).into()) };
    let Some(of_target) = of_target else { return Ok(()) };
    for source in sources {
        let of_source = if source.is_local() { real(source) } else { Some(store_name(source).into()) };
        if source.is_local() == target.is_local() && of_source.as_ref() == Some(&of_target) {
            return Err(Error::argument("this file is one of those to read: name another one").with_path(target));
        }
    }
    Ok(())
}

/// The URL of a location in a store, with one of the schemes of S3 and without a slash at its end.
fn store_name(location: &Location) -> String {
    let url = location.path().to_string_lossy();
    let rest = url.strip_prefix("s3a://").or_else(|| url.strip_prefix("s3n://"));
    let url = rest.map_or_else(|| url.clone().into_owned(), |rest| format!("s3://{rest}"));
    url.trim_end_matches('/').to_owned()
}

/// Collects the files in a directory, or the file itself.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let in_path = |error: std::io::Error| Error::from(error).with_path(path);
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()), // nothing was written
        Err(error) => return Err(in_path(error)),
        Ok(metadata) if !metadata.is_dir() => {
            files.push(path.to_path_buf());
            return Ok(());
        }
        Ok(_) => {}
    }
    for entry in fs::read_dir(path).map_err(in_path)? {
        collect(&entry.map_err(in_path)?.path(), files)?;
    }
    Ok(())
}

/// A directory that is removed when it is dropped.
#[derive(Debug)]
struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    fn create() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("kbat-{}", unique_name()));
        fs::create_dir(&path).map_err(|error| Error::from(error).with_path(&path))?;
        Ok(Self(path))
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // a directory that cannot be removed is one in the system's temporary directory
        let _ = fs::remove_dir_all(&self.0);
    }
}
