//! Arguments that name a location: paths and URLs, and the keyword arguments for stores and remote storage.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use object_store::ObjectStore;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyString};

use crate::error::Error;
use crate::io::{Location, Target, refuse_inside_store};
use crate::objects::{SCHEMES, StoreOptions};
use crate::plan::{Selection, warning_of_unlisted};
use crate::python::runtime::errors::OrRaise;
use crate::python::runtime::warning::warn;
use crate::store::parse_partition_directory;
use crate::tiered::RemoteOptions;
use crate::tiered::aiven::EncryptionKeys;

/// A store that the caller opened, the beginning of its paths, and the prefix of its keys.
type OpenedStore = (Arc<dyn ObjectStore>, String, String);

/// The keyword arguments `storage_options`, `store`, `encryption_keys`, `remote`, `remote_log_metadata` of a function.
#[derive(Default)]
pub(crate) struct StoreArguments {
    options: StoreOptions,
    opened: Option<OpenedStore>,
    /// Keys, and the topic with the states of segments.
    tiered: RemoteOptions,
    /// Where the earlier segments of the partitions are.
    remote: Option<Location>,
    /// Whether `remote` is in a store, so that the options are those of it.
    is_remote_stored: bool,
}

impl StoreArguments {
    /// Parses the keyword arguments that a function does not declare.
    pub(crate) fn new(function: &str, arguments: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut stores = Self::default();
        let (mut remote, mut metadata) = (None, None);
        for (name, value) in arguments.into_iter().flatten() {
            let name: String = name.extract()?;
            match name.as_str() {
                "storage_options" | "store" | "encryption_keys" | "remote" | "remote_log_metadata"
                    if value.is_none() => {}
                "storage_options" => stores.options = options_of(&value)?,
                "store" => stores.opened = Some(opened(&value)?),
                "encryption_keys" => stores.tiered = stores.tiered.keys(keys_of(&value)?),
                "remote" => remote = Some(path_of("remote", &value)?),
                "remote_log_metadata" => metadata = Some((path_of("remote_log_metadata", &value)?, value.py())),
                _ => {
                    let message = format!("{function}() got an unexpected keyword argument '{name}'");
                    return Err(PyTypeError::new_err(message));
                }
            }
        }
        if stores.opened.is_some() && !stores.options.is_empty() {
            return Err(PyValueError::new_err("pass store or storage_options, not both: a store has its own options"));
        }
        if let Some((metadata, py)) = metadata {
            let metadata = stores.locate_beside(py, metadata)?;
            stores.tiered = stores.tiered.metadata(metadata);
        }
        if let Some((remote, py)) = remote.zip(arguments.map(Bound::py)) {
            stores.is_remote_stored = stores.opened.is_some() || is_url(&remote) && !remote.starts_with("file:");
            stores.remote = Some(match (&stores.opened, remote.to_str()) {
                (Some(opened), Some(text)) => in_opened(opened, text)?,
                _ => stores.locate_beside(py, remote.clone())?,
            });
        }
        Ok(stores)
    }

    /// Whether the earlier segments are in remote storage.
    pub(crate) fn has_remote(&self) -> bool {
        self.remote.is_some()
    }

    /// The location of a path or URL, with the segments of it in remote storage.
    pub(crate) fn locate(&self, py: Python<'_>, path: PathBuf) -> PyResult<Location> {
        let location = match path.to_str() {
            None => Location::local(path),
            Some(text) => self.parse(py, text)?,
        };
        let present = || match &self.remote {
            Some(remote) => location.with_remote(remote.clone(), &self.tiered),
            None => location.with_layout_of(&self.tiered),
        };
        py.detach(present).or_raise(py)
    }

    /// Like [`StoreArguments::locate`], for the only path of a function: it must not be a file that `remote` has no
    /// effect on.
    pub(crate) fn locate_one(&self, py: Python<'_>, path: PathBuf) -> PyResult<Location> {
        let location = self.locate(py, path)?;
        py.detach(|| Location::check_remote_effect(std::slice::from_ref(&location))).or_raise(py)?;
        Ok(location)
    }

    /// The location of a path in the file system, or of a URL with the same options, as it is: without its layout.
    pub(crate) fn locate_beside(&self, py: Python<'_>, path: PathBuf) -> PyResult<Location> {
        if let Some(text) = path.to_str() {
            refuse_broken_path(text)?;
        }
        match path.to_str().filter(|text| text.contains("://")) {
            Some(url) if url.starts_with("file:") => Location::parse(url, &StoreOptions::default()).or_raise(py),
            Some(url) => Location::parse(url, &self.options).or_raise(py),
            None => Ok(Location::local(path)),
        }
    }

    /// A file or directory to write.
    pub(crate) fn locate_target(&self, py: Python<'_>, target: PathBuf) -> PyResult<Target> {
        if self.remote.is_some() {
            let message = "remote has no effect on a target: pass it to the function that reads";
            return Err(PyTypeError::new_err(message));
        }
        let target = self.locate_beside(py, target)?;
        py.detach(|| Target::new(target)).or_raise(py)
    }

    /// A file or directory to write, which must not exist in a store.
    pub(crate) fn locate_empty(&self, py: Python<'_>, target: PathBuf) -> PyResult<Target> {
        let target = self.locate_beside(py, target)?;
        py.detach(|| Target::empty(target)).or_raise(py)
    }

    /// The source of a function and the directory that it writes. The options are those of the one that is a URL, or
    /// of both.
    pub(crate) fn locate_both(&self, py: Python<'_>, source: PathBuf, out: PathBuf) -> PyResult<(Location, Target)> {
        let is_of_target = self.opened.is_none() && !self.is_remote_stored && is_url(&out) && !is_url(&source);
        let source = if is_of_target {
            let (tiered, remote) = (self.tiered.clone(), self.remote.clone());
            Self { tiered, remote, ..Self::default() }.locate_all(py, source)?
        } else {
            self.locate_all(py, source)?
        };
        refuse_inside_store(&source, &self.locate_beside(py, out.clone())?).or_raise(py)?;
        Ok((source, self.locate_empty(py, out)?))
    }

    /// Like [`StoreArguments::locate`]. Warns of segments of tiered storage that are omitted.
    pub(crate) fn locate_all(&self, py: Python<'_>, path: PathBuf) -> PyResult<Location> {
        self.locate_selected(py, path, &Selection::default())
    }

    /// Like [`StoreArguments::locate_all`], with the warnings of the partitions that are selected.
    pub(crate) fn locate_selected(&self, py: Python<'_>, path: PathBuf, selection: &Selection) -> PyResult<Location> {
        let location = self.locate_one(py, path)?;
        if location.may_omit() {
            let omitted = || -> crate::error::Result<Vec<String>> {
                let mut warnings = location.warnings()?;
                warnings.extend(warning_of_unlisted(&location, selection));
                for entry in if location.is_dir() { location.entries()? } else { Vec::new() } {
                    if parse_partition_directory(entry.name()).is_none_or(|partition| selection.includes(&partition)) {
                        warnings.extend(entry.warnings()?);
                    }
                }
                Ok(warnings)
            };
            warn(py, &py.detach(omitted).or_raise(py)?)?;
        }
        Ok(location)
    }

    fn parse(&self, py: Python<'_>, text: &str) -> PyResult<Location> {
        refuse_broken_path(text)?;
        match &self.opened {
            Some(opened) if self.remote.is_none() => in_opened(opened, text),
            _ if self.is_remote_stored && (text.starts_with("file:") || !text.contains("://")) => {
                Location::parse(text, &StoreOptions::default()).or_raise(py)
            }
            _ => Location::parse(text, &self.options).or_raise(py),
        }
    }
}

/// Refuses an empty path, which would be the working directory, and a URL that was a `pathlib.Path`.
fn refuse_broken_path(text: &str) -> PyResult<()> {
    if text.is_empty() {
        return Err(PyValueError::new_err("the path is empty: name a path or a URL, or . for the working directory"));
    }
    if let Some((scheme, _)) = text.split_once(":/").filter(|(_, rest)| !rest.starts_with('/'))
        && SCHEMES.contains(&scheme)
    {
        let message = format!("{text}: pathlib removes a slash from URLs; pass the URL as a str");
        return Err(PyValueError::new_err(message));
    }
    Ok(())
}

fn is_url(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.contains("://"))
}

/// A path in a store that the caller opened.
fn in_opened((store, base, prefix): &OpenedStore, text: &str) -> PyResult<Location> {
    if text.contains("://") {
        let message = format!("{text}: with store, the path is relative to the store, not a URL");
        return Err(PyValueError::new_err(message));
    }
    let key = [prefix.trim_matches('/'), text.trim_matches('/')].join("/");
    Ok(Location::of_objects(Arc::clone(store), base, key.trim_matches('/')))
}

/// The path or URL of an argument.
fn path_of(name: &str, value: &Bound<'_, PyAny>) -> PyResult<PathBuf> {
    value.extract().map_err(|_| {
        let message = format!("{name} must be a path or a URL, not {}", value.get_type());
        PyTypeError::new_err(message)
    })
}

/// Refuses to pickle what is in a store: the credentials would be in the pickle.
pub(crate) fn refuse_stored(location: &Location) -> PyResult<()> {
    if location.is_local() {
        return Ok(());
    }
    let path = location.path();
    let message = if is_url(path) {
        format!("{} is in a store and can't be pickled: open its URL again", path.display())
    } else {
        format!("{} is read from tiered storage and can't be pickled: open it again with its arguments", path.display())
    };
    Err(PyTypeError::new_err(message))
}

/// A mapping of names to values. Other than texts, numbers and booleans are accepted.
fn options_of(value: &Bound<'_, PyAny>) -> PyResult<StoreOptions> {
    let mut options = Vec::new();
    let Ok(items) = value.call_method0("items") else {
        return Err(PyTypeError::new_err("storage_options must be a mapping of names to values"));
    };
    for item in items.try_iter()? {
        let (name, value): (String, Bound<'_, PyAny>) = item?.extract()?;
        let is_scalar = value.is_instance_of::<PyString>() || value.extract::<f64>().is_ok();
        // the names of fsspec have mappings and lists as values; the error about the name says more than one about the
        // type
        if value.is_instance_of::<PyBytes>() {
            let message = format!("the storage option {name:?} must be a text, a number or a boolean, not bytes");
            return Err(PyTypeError::new_err(message));
        }
        options.push((name, if is_scalar { option_text(&value)? } else { String::new() }));
    }
    Ok(StoreOptions::new(options))
}

/// The value of an option as `object_store` parses it.
fn option_text(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let text = value.str()?.to_string();
    Ok(if value.is_instance_of::<PyBool>() { text.to_ascii_lowercase() } else { text })
}

/// Private keys by id: paths of PEM files, or a function that returns the PEM text of an id.
fn keys_of(value: &Bound<'_, PyAny>) -> PyResult<EncryptionKeys> {
    let mut keys = EncryptionKeys::new();
    if value.is_callable() {
        let load = value.clone().unbind();
        keys.set_callback(move |id| {
            Python::attach(|py| load.call1(py, (id,))?.extract::<Option<String>>(py)).map_err(Error::other)
        });
        return Ok(keys);
    }
    let Ok(items) = value.call_method0("items") else {
        let message = "encryption_keys must be a mapping of ids to paths of PEM files, or a function";
        return Err(PyTypeError::new_err(message));
    };
    for item in items.try_iter()? {
        let (id, value): (String, Bound<'_, PyAny>) = item?.extract()?;
        let py = value.py();
        // not part of a message: it may be the key itself
        let Ok(path) = value.extract::<PathBuf>() else {
            let message = format!("the encryption key {id:?} must be the path of a PEM file, or the PEM text");
            return Err(PyTypeError::new_err(message));
        };
        match path.to_str().filter(|text| text.contains("-----BEGIN")) {
            Some(pem) => keys.insert_pem(id, pem).or_raise(py)?,
            None => keys.insert_file(id, path).or_raise(py)?,
        }
    }
    Ok(keys)
}

/// Opens the store of an obstore object again, from its public attributes.
fn opened(value: &Bound<'_, PyAny>) -> PyResult<OpenedStore> {
    let class = value.get_type().name()?.to_string();
    let (scheme, bucket_key) = match class.as_str() {
        "S3Store" => ("s3", "bucket"),
        "GCSStore" => ("gs", "bucket"),
        "AzureStore" => ("az", "container_name"),
        _ => {
            let message = format!("store must be an S3Store, GCSStore or AzureStore of obstore, not {class}");
            return Err(PyTypeError::new_err(message));
        }
    };
    if value.getattr("credential_provider").is_ok_and(|provider| !provider.is_none()) {
        let message = "a store with a credential_provider can't be opened again: pass storage_options";
        return Err(PyValueError::new_err(message));
    }
    let prefix = value.getattr("prefix").ok().and_then(|prefix| prefix.extract::<String>().ok()).unwrap_or_default();
    let mut options = Vec::new();
    let mut bucket = None;
    for name in ["config", "client_options"] {
        let Ok(config) = value.getattr(name).and_then(|config| config.call_method0("items")) else { continue };
        for item in config.try_iter()? {
            let (name, value): (String, Bound<'_, PyAny>) = item?.extract()?;
            let text = option_text(&value)?;
            if name.trim_start_matches("aws_").trim_start_matches("google_") == bucket_key
                || name == format!("azure_{bucket_key}")
            {
                bucket = Some(text);
            } else {
                options.push((name, text));
            }
        }
    }
    let bucket = bucket.ok_or_else(|| PyValueError::new_err(format!("the store has no {bucket_key}")))?;
    let base = format!("{scheme}://{bucket}");
    let store = StoreOptions::new(options).open(scheme, &base).or_raise(value.py())?;
    Ok((store, base, prefix))
}
