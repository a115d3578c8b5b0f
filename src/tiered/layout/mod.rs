//! Segments of tiered storage as the partition directories of a broker, so that everything that reads directories reads
//! them too.
//!
//! A partition is presented as `<topic>-<partition>`, with the names that a broker gives to its files. Its segments are
//! those that [`choose`](crate::tiered::choose()) selects; what it omits is in the warnings of the partition.
//! [`joined`] presents such a partition and the directory of a broker as one log.

mod claims;
mod ends;
mod file;
mod joined;
mod known;
mod partition;
mod search;
mod stored;
mod watermark;

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::io::{Location, Status, StatusKind, Store, StoredFile};
use crate::store::{LogFile, LogFileKind, parse_partition_directory};
use crate::tiered::aiven::{EncryptionKeys, aiven_partition};
use crate::tiered::local;
use file::no_file;
use known::Known;
pub use known::RemoteOptions;
use partition::{Listed, ListedPartition};
use search::{FoundSegments, Layout, collect, collect_watermarked, layout_of, parse};

impl Location {
    /// If this contains segments of tiered storage, returns a location that presents them as the partition directories
    /// of a broker: of Aiven's plugin, decrypted with `keys`, of Kafka's `LocalTieredStorage`, and of Pinterest's
    /// uploader. Returns any other location unchanged.
    ///
    /// # Errors
    /// I/O errors of listing; [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for keys without tiered
    /// storage, for a partition in two directories, and for directories with segments of a broker and of tiered storage.
    pub fn with_layout(self, keys: &EncryptionKeys) -> Result<Self> {
        self.with_layout_of(&RemoteOptions::new().keys(keys.clone()))
    }

    /// Like [`Location::with_layout`], with more options.
    ///
    /// # Errors
    /// The errors of [`Location::with_layout`]; [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) if the
    /// metadata topic is not at its location; corruption of that topic.
    pub fn with_layout_of(self, options: &RemoteOptions) -> Result<Self> {
        let found = self.with_known_layout(&Known::new(options, None)?)?;
        found.check_effect(options)?;
        Ok(found)
    }

    /// Fails if there are options for tiered storage, and no segment of it is here.
    fn check_effect(&self, options: &RemoteOptions) -> Result<()> {
        if options.metadata.is_none() || self.is_layout() {
            return Ok(());
        }
        let message = "remote_log_metadata has no effect: no segment of tiered storage is here";
        Err(Error::argument(message).with_path(self))
    }

    fn with_known_layout(self, known: &Known) -> Result<Self> {
        if self.status_if_there()?.is_none() {
            // the path of a partition or file as it is presented
            for parent in [self.directory(), self.directory().directory()] {
                let status = match parent.status_if_there() {
                    Err(error) if matches!(error.kind(), ErrorKind::Io(_)) => return Err(error),
                    status => status.ok().flatten(),
                };
                if status.is_some_and(|status| status.is_directory())
                    && layout_of(&parent).is_ok_and(|layout| layout != Layout::Broker)
                    && let Ok(presented) = parent.with_layout_of_directory(known)
                {
                    let presented = presented.sibling(self.path());
                    return Ok(if presented.status_if_there()?.is_some() { presented } else { self });
                }
            }
            return Ok(self);
        }
        if let Some((segment, ".log")) = parse(self.name())
            && self.with_extension("rsm-manifest").status_if_there()?.is_some()
        {
            let partition = self.directory().with_layout_of_directory(known)?;
            let log = LogFile::live(segment.start_offset, LogFileKind::Log).to_string();
            return Ok(partition.join(log));
        }
        self.with_layout_of_directory(known)
    }

    fn with_layout_of_directory(self, known: &Known) -> Result<Self> {
        let found = match layout_of(&self)? {
            Layout::Broker => Vec::new(),
            Layout::WithIds => collect(&self)?,
            Layout::Watermarked => collect_watermarked(&self)?,
        };
        if found.is_empty() {
            if known.keys.is_empty() {
                return Ok(self);
            }
            let message = "encryption_keys have no effect: no segment of Aiven's plugin is here";
            return Err(Error::argument(message).with_path(&self));
        }
        let mut partitions: BTreeMap<PathBuf, ListedPartition> = BTreeMap::new();
        for FoundSegments { name, directory, content } in found {
            let text = format!("{}-{}", name.topic, name.partition);
            let is_here = matches!(content, Listed::Watermarked(_)) && directory == self;
            let path = if is_here { self.path().to_path_buf() } else { self.path().join(&text) };
            if let Some(other) = partitions.get(&path) {
                let why = match content {
                    Listed::WithIds(..) => "with two topic ids, since the topic was created again",
                    Listed::Watermarked(_) | Listed::Plain => "in two directories, such as those of two clusters",
                };
                let message = format!(
                    "partition {text} is here {why}: name {} or {}",
                    other.directory.display(),
                    directory.display()
                );
                return Err(Error::argument(message).with_path(&self));
            }
            partitions.insert(path, ListedPartition::new(directory, name, content, known.clone()));
        }
        // a location inside a single partition is that partition
        let only = partitions.iter().next().filter(|_| partitions.len() == 1);
        let path = match only {
            Some((path, _)) if is_partition(&self) => path.clone(),
            _ => self.path().to_path_buf(),
        };
        let files = TieredFiles { root: self.path().to_path_buf(), partitions };
        Ok(Self::in_store(path, Arc::new(files)))
    }

    /// Presents the directory of a partition with a broker's names so that each offset is read once. Returns a location
    /// with another layout, which is presented so, unchanged.
    fn without_overlaps(self, known: &Known) -> Self {
        let Some(name) = parse_partition_directory(self.absolute().name()).filter(|_| !self.is_layout()) else {
            return self;
        };
        let path = self.path().to_path_buf();
        let partition = ListedPartition::new(self, name, Listed::Plain, known.clone());
        let partitions = BTreeMap::from([(path.clone(), partition)]);
        Self::in_store(path.clone(), Arc::new(TieredFiles { root: path, partitions }))
    }
}

/// Whether this is the directory of one partition in a layout of tiered storage.
fn is_partition(location: &Location) -> bool {
    let absolute = location.absolute();
    local::Directory::parse(absolute.name()).is_some() || aiven_partition(&absolute).is_some()
}

/// The partitions of tiered storage as directories.
struct TieredFiles {
    root: PathBuf,
    partitions: BTreeMap<PathBuf, ListedPartition>,
}

impl fmt::Debug for TieredFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TieredFiles").field("root", &self.root).finish_non_exhaustive()
    }
}

impl TieredFiles {
    /// The file at a path.
    fn file(&self, path: &Path) -> Result<&file::File> {
        let found = path.parent().and_then(|parent| self.partitions.get(parent)).zip(path.file_name());
        let file = match found {
            Some((partition, name)) => partition.files()?.get(name.to_str().unwrap_or_default()),
            None => None,
        };
        file.ok_or_else(|| no_file(path))
    }
}

impl Store for TieredFiles {
    fn status(&self, path: &Path) -> Result<Status> {
        if path == self.root || self.partitions.contains_key(path) {
            return Ok(Status { kind: StatusKind::Directory, len: 0, modified: None });
        }
        self.file(path)?.status()
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        if let Some(partition) = self.partitions.get(directory) {
            return Ok(partition.files()?.keys().map(|name| directory.join(name)).collect());
        }
        if directory == self.root {
            return Ok(self.partitions.keys().cloned().collect());
        }
        Err(no_file(directory))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn StoredFile>> {
        self.file(path)?.open()
    }

    fn is_layout(&self) -> bool {
        true
    }

    fn is_finished(&self, path: &Path) -> bool {
        let partition = path.parent().and_then(|parent| self.partitions.get(parent));
        let are_objects = partition.is_some_and(ListedPartition::is_finished);
        self.file(path).is_ok_and(|file| file.is_finished(are_objects))
    }

    fn part_of(&self, path: &Path) -> Option<(PathBuf, u64)> {
        self.file(path).ok()?.part_of()
    }

    fn warnings(&self, directory: &Path) -> Result<Vec<(i64, String)>> {
        match self.partitions.get(directory) {
            Some(partition) => Ok(partition.warnings()?.to_vec()),
            None => Ok(Vec::new()),
        }
    }
}
