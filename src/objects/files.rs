//! [`ObjectFiles`]: the objects of a bucket as files in directories.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::TryStreamExt;
use object_store::path::Path as Key;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};

use super::ahead::ObjectFile;
#[cfg(feature = "python")]
use super::claim::{claim, release};
use super::error::{self, converted};
use super::runtime::{repeated, wait};
use super::shared::SharedStore;
#[cfg(feature = "python")]
use super::upload::upload;
use crate::error::{Error, ErrorKind, Result};
use crate::io::{Status, StatusKind, Store, StoredFile};

/// Objects under one prefix. The prefix is listed once, with everything in it; directories outside it, such as the one
/// around a single segment, are listed when they are needed.
pub(super) struct ObjectFiles {
    store: SharedStore,
    /// URL of the bucket, without a slash at the end.
    base: String,
    /// Key of the prefix or object.
    root: String,
    listings: Mutex<HashMap<String, Arc<ObjectListing>>>,
    /// Single objects that were requested, or their absence.
    heads: Mutex<HashMap<String, Option<ObjectMeta>>>,
}

/// The objects in a directory.
#[derive(Debug, Default)]
struct ObjectListing {
    objects: BTreeMap<String, ObjectMeta>,
    /// Subdirectories of a listing that does not contain their objects.
    directories: BTreeSet<String>,
}

impl ObjectListing {
    /// The objects and directories under a key, without the key itself.
    fn under<'l>(&'l self, key: &'l str) -> impl Iterator<Item = &'l str> {
        let is_under = move |other: &&str| child_of(other, key).is_some();
        let objects = self.objects.range(key.to_owned()..).map(|(key, _)| key.as_str());
        // keys such as `a-b` sort between `a` and `a/b`
        let objects = objects.take_while(move |other| other.starts_with(key)).filter(is_under);
        objects.chain(self.directories.iter().map(String::as_str).filter(is_under))
    }

    /// Adds an object. A marker, whose key ends with a slash, may have the name of another object.
    fn add(&mut self, object: ObjectMeta) {
        match self.objects.entry(object.location.to_string()) {
            Entry::Vacant(place) => {
                place.insert(object);
            }
            Entry::Occupied(mut known) if known.get().size == 0 => *known.get_mut() = object,
            Entry::Occupied(_) => {}
        }
    }

    /// Removes objects that have the key of a directory. The S3 console and Hadoop write such objects to mark folders:
    /// their keys end with a slash, which `object_store` removes.
    fn remove_markers(&mut self) {
        let mut parents = BTreeSet::new();
        for key in self.objects.keys() {
            let mut parent = parent_of(key);
            while !parent.is_empty() && parents.insert(parent.to_owned()) {
                parent = parent_of(parent);
            }
        }
        let is_marker = |key: &String, object: &ObjectMeta| {
            parents.contains(key) || object.size == 0 && self.directories.contains(key)
        };
        self.objects.retain(|key, object| !is_marker(key, object));
    }
}

/// The first component of a key under a directory.
fn child_of<'k>(key: &'k str, directory: &str) -> Option<&'k str> {
    let rest = if directory.is_empty() { key } else { key.strip_prefix(directory)?.strip_prefix('/')? };
    rest.split('/').next().filter(|child| !child.is_empty())
}

fn parent_of(key: &str) -> &str {
    key.rsplit_once('/').map_or("", |(parent, _)| parent)
}

impl std::fmt::Debug for ObjectFiles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // not the store, which knows secrets
        f.write_str(&self.base)
    }
}

impl ObjectFiles {
    pub(super) fn new(store: SharedStore, base: &str, root: &str) -> Self {
        let (base, root) = (base.to_owned(), root.to_owned());
        Self { store, base, root, listings: Mutex::default(), heads: Mutex::default() }
    }

    fn key_of<'p>(&self, path: &'p Path) -> Result<&'p str> {
        let text = path.to_str().and_then(|text| text.strip_prefix(self.base.as_str()));
        let key = text.map(|text| text.trim_matches('/'));
        key.ok_or_else(|| Error::argument(format!("the path is not in {}", self.base)).with_path(path))
    }

    fn is_under_root(&self, key: &str) -> bool {
        key == self.root || child_of(key, &self.root).is_some()
    }

    fn known(&self, directory: &str) -> Option<Arc<ObjectListing>> {
        let directory = if self.is_under_root(directory) { &self.root } else { directory };
        self.listings.lock().unwrap_or_else(PoisonError::into_inner).get(directory).cloned()
    }

    /// Lists a directory, or returns the known listing.
    fn listed(&self, directory: &str, path: &Path) -> Result<Arc<ObjectListing>> {
        if let Some(known) = self.known(directory) {
            return Ok(known);
        }
        let store = self.store.here()?;
        let is_deep = self.is_under_root(directory);
        let prefix = if is_deep { self.root.clone() } else { directory.to_owned() };
        let listing = repeated(|| wait(list(Arc::clone(&store), key(&prefix)?, is_deep)))?;
        let listing = Arc::new(listing.map_err(|error| converted(error).with_path(path))?);
        self.listings.lock().unwrap_or_else(PoisonError::into_inner).insert(prefix, Arc::clone(&listing));
        Ok(listing)
    }

    /// Requests the metadata of an object, whatever is known of it.
    fn current(&self, key: &str, path: &Path) -> Result<Option<ObjectMeta>> {
        let (store, wanted) = (self.store.here()?, self::key(key)?);
        match wait(async move { store.head(&wanted).await })?.map_err(converted) {
            Ok(object) => Ok(Some(object)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error.with_path(path)),
        }
    }

    /// The metadata of an object, which is requested once. `None` if there is no such object.
    fn head(&self, key: &str, path: &Path) -> Result<Option<ObjectMeta>> {
        if key.is_empty() {
            return Ok(None);
        }
        if let Some(known) = self.known(parent_of(key)) {
            return Ok(known.objects.get(key).cloned());
        }
        if let Some(known) = self.heads.lock().unwrap_or_else(PoisonError::into_inner).get(key) {
            return Ok(known.clone());
        }
        let object = self.current(key, path)?;
        self.heads.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned(), object.clone());
        Ok(object)
    }
}

impl Store for ObjectFiles {
    fn status(&self, path: &Path) -> Result<Status> {
        let key = self.key_of(path)?;
        // a name with an extension is probably that of an object
        let is_likely_object = Path::new(key).extension().is_some();
        // otherwise the listing answers, so that no request is needed for the name of a directory
        if (is_likely_object || self.known(parent_of(key)).is_some())
            && let Some(object) = self.head(key, path)?
        {
            return Ok(status_of(&object));
        }
        let listing = self.listed(key, path);
        if listing.as_ref().is_ok_and(|listing| listing.under(key).next().is_some()) {
            return Ok(Status { kind: StatusKind::Directory, len: 0, modified: None });
        }
        // an HTTP server that can't list answers for a directory with a page
        let can_list = !listing.as_ref().is_err_and(is_unsupported);
        if !is_likely_object
            && can_list
            && let Some(object) = self.head(key, path)?
        {
            return Ok(status_of(&object));
        }
        listing?;
        Err(not_found(path))
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        let key = self.key_of(directory)?;
        let listing = self.listed(key, directory)?;
        let children: BTreeSet<&str> = listing.under(key).filter_map(|other| child_of(other, key)).collect();
        if children.is_empty() && !key.is_empty() {
            return Err(not_found(directory));
        }
        Ok(children.into_iter().map(|child| directory.join(child)).collect())
    }

    #[cfg(feature = "python")]
    fn put(&self, path: &Path, from: &Path) -> Result<()> {
        upload(&self.store.here()?, &key(self.key_of(path)?)?, from)
    }

    #[cfg(feature = "python")]
    fn claim(&self, directory: &Path) -> Result<()> {
        claim(&self.store.here()?, &key(self.key_of(directory)?)?)
    }

    #[cfg(feature = "python")]
    fn release(&self, directory: &Path) -> Result<()> {
        release(&self.store.here()?, &key(self.key_of(directory)?)?)
    }

    fn open(&self, path: &Path) -> Result<Box<dyn StoredFile>> {
        let key = self.key_of(path)?;
        let Some(object) = self.head(key, path)? else { return Err(not_found(path)) };
        Ok(Box::new(ObjectFile::new(self.store.here()?, object)))
    }

    fn open_current(&self, path: &Path) -> Result<Box<dyn StoredFile>> {
        let Some(object) = self.current(self.key_of(path)?, path)? else { return Err(not_found(path)) };
        Ok(Box::new(ObjectFile::new(self.store.here()?, object)))
    }
}

/// Lists the objects under a prefix, or only those directly in it.
async fn list(store: Arc<dyn ObjectStore>, prefix: Key, is_deep: bool) -> object_store::Result<ObjectListing> {
    let mut listing = ObjectListing::default();
    if is_deep {
        let mut objects = store.list(Some(&prefix));
        while let Some(object) = objects.try_next().await? {
            listing.add(object);
        }
    } else {
        let found = store.list_with_delimiter(Some(&prefix)).await?;
        listing.directories.extend(found.common_prefixes.into_iter().map(|prefix| prefix.to_string()));
        found.objects.into_iter().for_each(|object| listing.add(object));
    }
    listing.remove_markers();
    Ok(listing)
}

fn key(text: &str) -> Result<Key> {
    Key::parse(text).map_err(|error| Error::argument(format!("{text:?} is not the key of an object: {error}")))
}

fn is_unsupported(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Io(error) if error.kind() == std::io::ErrorKind::Unsupported)
}

fn status_of(object: &ObjectMeta) -> Status {
    let since = u64::try_from(object.last_modified.timestamp_millis()).ok().map(Duration::from_millis);
    let modified: Option<SystemTime> = since.and_then(|since| UNIX_EPOCH.checked_add(since));
    Status { kind: StatusKind::File, len: object.size, modified }
}

fn not_found(path: &Path) -> Error {
    error::not_found().with_path(path)
}
